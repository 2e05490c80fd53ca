//! How busy the machine is with this server: what its threads have used of the processors' time lately.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How often it is looked: what is asked for meanwhile is answered with what was seen last.
const PERIOD: Duration = Duration::from_millis(20);

/// What was seen last.
#[derive(Debug, Default)]
pub(super) struct Busy(Mutex<Seen>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// When that was, and what the process had used by then.
    at: Option<(Instant, Duration)>,
    percent: u32,
}

impl Busy {
    /// The part of so many processors' time that was used lately, in percent.
    pub(super) fn percent(&self, processors: usize, now: Instant) -> u32 {
        // Single values, which cannot be half written.
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.at.is_none_or(|(at, _)| now.saturating_duration_since(at) >= PERIOD) {
            *seen = seen.after(now, used(), processors);
        }
        seen.percent
    }
}

impl Seen {
    fn after(self, now: Instant, used: Duration, processors: usize) -> Seen {
        let part = |(at, before): (Instant, Duration)| {
            let passed = now.saturating_duration_since(at).as_secs_f64() * processors.max(1) as f64;
            used.saturating_sub(before).as_secs_f64() / passed.max(1e-9)
        };
        // More than all of it would be other threads than workers.
        let percent = self.at.map_or(0.0, part).min(1.0) * 100.0;
        Seen { at: Some((now, used)), percent: percent.round() as u32 }
    }
}

/// What all threads have used until now.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
    Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_part_of_the_time_since_it_was_looked_last() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let seen = Seen::default().after(start, ms(500), 2);
        assert_eq!(seen.percent, 0, "nothing to compare with");
        let seen = seen.after(start + ms(20), ms(530), 2);
        assert_eq!(seen.percent, 75);
        assert_eq!(seen.after(start + ms(40), ms(530), 2).percent, 0);
        assert_eq!(seen.after(start + ms(40), ms(800), 2).percent, 100);
    }

    #[test]
    fn what_is_computed_is_seen() {
        let busy = Busy::default();
        assert_eq!(busy.percent(1, Instant::now()), 0);
        let end = Instant::now() + 2 * PERIOD;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        assert!(busy.percent(1, Instant::now()) > 0);
    }
}
