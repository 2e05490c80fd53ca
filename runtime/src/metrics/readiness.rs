//! For how long requests wait for a core, in proportion to their execution: what a function is scaled out on.
//!
//! *MXFaaS* (ISCA 2023) compares that with two thresholds: above 40 % a function is overloaded, below 10 % it has more cores than it needs. A mean since the server started says
//! nothing of now. So the counts of some earlier moment are kept, at which the metrics were asked for too: the scrape gets a mean over the time since then. Requests pay nothing for
//! that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A mean is of at least so long, where there is anything to ask that long, and of twice as long or the time between two questions at most.
const WINDOW: Duration = Duration::from_secs(10);

/// What functions had counted when that was asked for, by function and tenant.
#[derive(Debug, Default)]
pub(super) struct Readiness(BTreeMap<(String, String), [Sample; 2]>);

/// What a function had counted until then, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    ready: u64,
    executed: u64,
}

impl Readiness {
    /// The ratio of a function that has counted that by now; none where no request has ended in the time for which it counts.
    pub(super) fn ratio(&mut self, function: &(String, String), ready: u64, executed: u64, now: Instant) -> Option<f64> {
        let sample = Sample { at: now, ready, executed };
        if let Some(samples) = self.0.get_mut(function) {
            if now.saturating_duration_since(samples[1].at) >= WINDOW {
                *samples = [samples[1], sample];
            }
        } else {
            // The first answer is the mean since the start.
            self.0.insert(function.clone(), [Sample { at: now, ready: 0, executed: 0 }, sample]);
        }
        let before = self.0.get(function)?[0];
        let (ready, executed) = (ready.saturating_sub(before.ready), executed.saturating_sub(before.executed));
        (executed > 0).then(|| ready as f64 / executed as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_the_time_since_an_earlier_question() {
        let (mut readiness, start) = (Readiness::default(), Instant::now());
        let mut ask = |name: &str, seconds: u64, ready, executed| {
            let function = (name.to_owned(), "t".to_owned());
            readiness.ratio(&function, ready, executed, start + Duration::from_secs(seconds))
        };
        assert_eq!(ask("f", 0, 0, 0), None, "nothing has ended");
        assert_eq!(ask("f", 1, 10, 100), Some(0.1), "since the start");
        assert_eq!(ask("f", 10, 100, 200), Some(0.5), "since the first question");
        assert_eq!(ask("f", 19, 150, 300), Some(0.5));
        // Twenty seconds after the start the ten before count.
        assert_eq!(ask("f", 20, 180, 300), Some(0.8));
        assert_eq!(ask("f", 31, 180, 300), None, "nothing since");
        assert_eq!(ask("g", 31, 5, 10), Some(0.5), "another one");
        assert_eq!(ask("f", 41, 190, 340), Some(0.25));
    }
}
