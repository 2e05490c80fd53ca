//! How many invocations of a function are in flight, where no number says it: rule M3 of *MXFaaS* (ISCA 2023, "Parameter Setting").
//!
//! ```text
//!   N (1 + I/B) (1 + HighReady/(I+B))
//! ```
//!
//! N is the number of cores, here of workers: none is a function's own. B is how long an invocation computes, I how long it waits for something else than its turn. While one
//! waits, I/B others can compute. HighReady is a threshold, not what is measured: the time for which an invocation may be ready and not run before its function counts as
//! overloaded. Some are queued at the workers then, so that none of these runs dry. The paper sets it to 40 % of the execution time I+B, so that the last factor is always 1.4; here it is 150 %, and the factor
//! 2.5. The default order runs the oldest first, so that the younger ones begin their waits later, and 1.4 leaves the cores idle: with 5 bursts of 0.2 ms and waits of 5 ms between them they were
//! busy for 0.83 of their time on the real server. In that order those that are in flight do not delay older ones, and cost memory only.
//!
//! I and B are means of recent invocations. The paper reports every 200 ms; so often the number may change here. It is left alone while the rule stays near it: what is in
//! flight at a limit that goes up and down is hard to reason about, and gains nothing.

use std::time::{Duration, Instant};

/// HighReady as a part of the execution time.
const HIGH_READY: f64 = 1.5;
/// How often the number may change.
const PERIOD: Duration = Duration::from_millis(200);
/// Invocations that count as much as all before them.
const MEMORY: f64 = 16.0;
/// The number changes where the rule is further from it than this part, and than what rounding makes of it.
const SLACK: f64 = 0.125;
/// The most for each worker: as many as a worker keeps that wait.
pub const PER_WORKER_MAX: usize = 16_384;

/// What an invocation used, which is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// For how long it computed: B.
    pub busy: Duration,
    /// For how long it waited for something else than its turn: I.
    pub idle: Duration,
}

/// How many invocations of a function are in flight, and what is known of those that were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InFlight {
    workers: usize,
    max: usize,
    /// Means of those whose period is over, in nanoseconds; none before the first invocation is over.
    means: Option<Means>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Means {
    busy: f64,
    idle: f64,
    /// Sums of the period under way.
    count: f64,
    busy_sum: f64,
    idle_sum: f64,
    began: Instant,
}

impl InFlight {
    /// Of a function of which nothing is known, on so many workers: as if it never waited.
    #[must_use]
    pub fn new(workers: usize) -> InFlight {
        let workers = workers.max(1);
        InFlight { workers, max: bounded(rule(workers, 1.0, 0.0), workers), means: None }
    }

    /// The most that may be in flight.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// The same after one more invocation is over. The first one says at once how many there may be, since a function that waits is slow to end more while few are in flight.
    #[must_use]
    pub fn step(self, used: Used, now: Instant) -> InFlight {
        let (busy, idle) = (used.busy.as_nanos() as f64, used.idle.as_nanos() as f64);
        let Some(mut means) = self.means else {
            let means = Means { busy, idle, count: 0.0, busy_sum: 0.0, idle_sum: 0.0, began: now };
            return InFlight { means: Some(means), ..self }.follow();
        };
        means.count += 1.0;
        means.busy_sum += busy;
        means.idle_sum += idle;
        if now.saturating_duration_since(means.began) < PERIOD {
            return InFlight { means: Some(means), ..self };
        }
        let mean = |old: f64, sum: f64| (MEMORY * old + sum) / (MEMORY + means.count);
        let (busy, idle) = (mean(means.busy, means.busy_sum), mean(means.idle, means.idle_sum));
        let means = Means { busy, idle, count: 0.0, busy_sum: 0.0, idle_sum: 0.0, began: now };
        InFlight { means: Some(means), ..self }.follow()
    }

    /// The number that the rule gives, unless it is near enough.
    fn follow(self) -> InFlight {
        let Some(Means { busy, idle, .. }) = self.means else { return self };
        let exact = rule(self.workers, busy, idle);
        let is_near = (exact - self.max as f64).abs() <= 0.5 + SLACK * self.max as f64;
        InFlight { max: if is_near { self.max } else { bounded(exact, self.workers) }, ..self }
    }
}

/// The paper's rule, for I and B in any unit. What never computes may be in flight without an end.
fn rule(workers: usize, busy: f64, idle: f64) -> f64 {
    let waits = if busy > 0.0 { idle / busy } else { f64::INFINITY };
    workers as f64 * (1.0 + waits) * (1.0 + HIGH_READY)
}

/// At least one for each worker, and not more than workers keep.
fn bounded(exact: f64, workers: usize) -> usize {
    // A float becomes the nearest integer that there is.
    (exact.round() as usize).clamp(workers, workers.saturating_mul(PER_WORKER_MAX))
}
