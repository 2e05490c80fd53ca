//! How many requests of one function are taken and run at the same time.
//!
//! A request is taken (or refused, with 429) before its body is read. When it is complete it may run, or waits here until another of the
//! function is over. So what the workers' queues hold may all run.
//!
//! How many run is a number, or [follows](InFlight) what those do that ran. Then it may fall below what runs: these go on, and none that waits follows them until enough are
//! over. When it rises, those that wait are let in by the next that is over.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use crate::in_flight::{InFlight, Used};
use crate::percentile::follow;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The part of executions that take at most as long as is expected: the upper ones count, those of the average do not keep a promise.
const EXPECTED_PERCENTILE: f64 = 0.9;
/// How often it is looked for places of clients that have gone.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// A request at a gate.
pub trait Entrant {
    /// The gate lets it in: it runs from now on, and is to [leave](Gate::leave).
    fn let_in(&mut self);

    /// Whether its client has gone.
    fn is_gone(&self) -> bool;
}

/// A function's limits, and what runs and waits; `T` is a request.
pub struct Gate<T> {
    /// Requests that run at the same time; `usize::MAX` for no limit. It changes under the queue's lock only, and only where it follows.
    running_max: AtomicUsize,
    /// Whether it follows.
    follows: bool,
    /// Requests taken that need not run yet; none for no limit.
    queue_max: Option<usize>,
    taken: AtomicUsize,
    queue: Mutex<Queue<T>>,
    expected_ns: AtomicU64,
}

#[derive(Debug)]
struct Queue<T> {
    running: usize,
    waiting: VecDeque<T>,
    /// When it was last looked which of their clients have gone.
    looked: Option<Instant>,
    /// How many may run, where that follows.
    in_flight: Option<InFlight>,
}

/// The number where there is no limit.
const UNLIMITED: usize = usize::MAX;

impl<T> fmt::Debug for Gate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gate { running_max, follows, queue_max, taken, .. } = self;
        let mut debug = f.debug_struct("Gate");
        debug
            .field("running_max", running_max)
            .field("follows", follows)
            .field("queue_max", queue_max)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

impl<T: Entrant> Gate<T> {
    /// A gate for so many at the same time, and so many more that wait; none for no limit.
    #[must_use]
    pub fn new(concurrency_max: Option<usize>, queue_max: Option<usize>) -> Gate<T> {
        // Those that wait are limited only where those that run are.
        let queue_max = concurrency_max.and(queue_max);
        Gate::with(concurrency_max.unwrap_or(UNLIMITED), None, queue_max)
    }

    /// A gate for as many at the same time as is right for what they do, and so many more that wait; none for no limit.
    #[must_use]
    pub fn following(in_flight: InFlight, queue_max: Option<usize>) -> Gate<T> {
        Gate::with(in_flight.max(), Some(in_flight), queue_max)
    }

    fn with(running_max: usize, in_flight: Option<InFlight>, queue_max: Option<usize>) -> Gate<T> {
        let queue = Mutex::new(Queue { running: 0, waiting: VecDeque::new(), looked: None, in_flight });
        let (running_max, taken) = (AtomicUsize::new(running_max), AtomicUsize::new(0));
        Gate { running_max, follows: in_flight.is_some(), queue_max, taken, queue, expected_ns: AtomicU64::new(0) }
    }

    /// Whether there is any limit to keep.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.running_max() != UNLIMITED
    }

    /// How many may run now; none for no limit.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        Some(self.running_max()).filter(|max| *max != UNLIMITED)
    }

    /// What is known of those that ran, where it is a matter of that how many may; for a gate in the place of this one.
    #[must_use]
    pub fn in_flight(&self) -> Option<InFlight> {
        if self.follows { self.queue().in_flight } else { None }
    }

    fn running_max(&self) -> usize {
        // Relaxed: a number to compare with another; what it limits is counted under the lock.
        self.running_max.load(Ordering::Relaxed)
    }

    /// Takes one more request, if there is room; what it says it took has to be given back with [`Gate::leave`]. `now` is asked for the time where there is none.
    pub fn take(&self, now: impl FnOnce() -> Instant) -> bool {
        let Some(queue_max) = self.queue_max else { return true };
        let taken_max = self.running_max().saturating_add(queue_max);
        // Relaxed, here and below: a number to compare with a limit; it orders nothing else.
        if self.taken.fetch_add(1, Ordering::Relaxed) < taken_max {
            return true;
        }
        // Room may be had of those whose client has gone; each that is dropped gives its place back.
        let gone = self.remove_gone(now());
        let room = !gone.is_empty();
        drop(gone);
        if room && self.taken.load(Ordering::Relaxed) <= taken_max {
            return true;
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Lets a complete request run, or keeps it until it may.
    pub fn enter(&self, mut request: T) -> Option<T> {
        if self.is_limited() {
            let mut queue = self.queue();
            // Where the limit has just risen, those that wait come first.
            if queue.running >= self.running_max() || !queue.waiting.is_empty() {
                queue.waiting.push_back(request);
                return None;
            }
            queue.running += 1;
            request.let_in();
        }
        Some(request)
    }

    /// A request is over; `ran` says whether it was let in. The next one that may run now, if there is one. Then there may be [more](Gate::next).
    pub fn leave(&self, ran: bool) -> Option<T> {
        if self.queue_max.is_some() {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
        if !ran {
            return None;
        }
        let mut queue = self.queue();
        queue.running -= 1;
        self.let_next_in(&mut queue)
    }

    /// One more that may run now, after one has left: the limit has risen.
    pub fn next(&self) -> Option<T> {
        if self.follows { self.let_next_in(&mut self.queue()) } else { None }
    }

    fn let_next_in(&self, queue: &mut Queue<T>) -> Option<T> {
        // It may have fallen below what runs.
        if queue.running >= self.running_max() {
            return None;
        }
        let mut request = queue.waiting.pop_front()?;
        queue.running += 1;
        request.let_in();
        Some(request)
    }

    /// Whether it is asked what requests [use](Gate::learn).
    #[must_use]
    pub const fn follows(&self) -> bool {
        self.follows
    }

    /// A request that ran is over, and [leaves](Gate::leave) next: those that may run by what it used are let in then.
    pub fn learn(&self, used: Used, now: Instant) {
        let mut queue = self.queue();
        if let Some(in_flight) = queue.in_flight {
            let in_flight = in_flight.step(used, now);
            queue.in_flight = Some(in_flight);
            self.running_max.store(in_flight.max(), Ordering::Relaxed);
        }
    }

    /// How long an execution is expected to take: a running percentile of those that were.
    #[must_use]
    pub fn expected(&self) -> Duration {
        Duration::from_nanos(self.expected_ns.load(Ordering::Relaxed))
    }

    /// Forgets how long executions took and what they did: from now on others come, on so many workers. The limits stay, and so does what runs and waits.
    pub fn begin_anew(&self, workers: usize) {
        self.expected_ns.store(0, Ordering::Relaxed);
        if self.follows {
            let in_flight = InFlight::new(workers);
            self.queue().in_flight = Some(in_flight);
            self.running_max.store(in_flight.max(), Ordering::Relaxed);
        }
    }

    /// Takes note of an execution.
    pub fn observe(&self, ran: Duration) {
        let expected = self.expected_ns.load(Ordering::Relaxed);
        // Two at once may make one of them not count.
        self.expected_ns.store(follow(expected, ran.as_nanos() as u64, EXPECTED_PERCENTILE), Ordering::Relaxed);
    }

    /// Those that wait and whose client has gone; none if it was looked just now: if each request that is refused looked at all that wait, refusing would cost more
    /// than answering.
    fn remove_gone(&self, now: Instant) -> Vec<T> {
        let mut queue = self.queue();
        if queue.looked.is_some_and(|looked| now.saturating_duration_since(looked) < LOOK_PAUSE) {
            return Vec::new();
        }
        queue.looked = Some(now);
        let (gone, waiting): (Vec<T>, Vec<T>) = std::mem::take(&mut queue.waiting).into_iter().partition(T::is_gone);
        queue.waiting = waiting.into();
        gone
    }

    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        // Nothing that is done under the lock can panic half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
