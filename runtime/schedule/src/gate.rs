//! How many requests of one function are taken and run at the same time.
//!
//! A request is taken (or refused, with 429) before its body is read. When it is complete it may run, or waits here until another of the
//! function is over. So what the workers' queues hold may all run.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

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
    /// Requests that run at the same time; none for no limit.
    concurrency_max: Option<usize>,
    /// Requests taken and not over; none for no limit.
    taken_max: Option<usize>,
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
}

impl<T> fmt::Debug for Gate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gate { concurrency_max, taken_max, taken, .. } = self;
        let mut debug = f.debug_struct("Gate");
        debug
            .field("concurrency_max", concurrency_max)
            .field("taken_max", taken_max)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

impl<T: Entrant> Gate<T> {
    /// A gate for so many at the same time, and so many more that wait; none for no limit.
    #[must_use]
    pub fn new(concurrency_max: Option<usize>, queue_max: Option<usize>) -> Gate<T> {
        let taken_max = concurrency_max.zip(queue_max).map(|(running, waiting)| running.saturating_add(waiting));
        let queue = Mutex::new(Queue { running: 0, waiting: VecDeque::new(), looked: None });
        let taken = AtomicUsize::new(0);
        Gate { concurrency_max, taken_max, taken, queue, expected_ns: AtomicU64::new(0) }
    }

    /// Whether there is any limit to keep.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.concurrency_max.is_some()
    }

    /// Takes one more request, if there is room; what it says it took has to be given back with [`Gate::leave`]. `now` is asked for the time where there is none.
    pub fn take(&self, now: impl FnOnce() -> Instant) -> bool {
        let Some(taken_max) = self.taken_max else { return true };
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
        if let Some(concurrency_max) = self.concurrency_max {
            let mut queue = self.queue();
            if queue.running >= concurrency_max {
                queue.waiting.push_back(request);
                return None;
            }
            queue.running += 1;
            request.let_in();
        }
        Some(request)
    }

    /// A request is over; `ran` says whether it was let in. The next one that may run now, if there is one.
    pub fn leave(&self, ran: bool) -> Option<T> {
        if self.taken_max.is_some() {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
        if !ran {
            return None;
        }
        let mut queue = self.queue();
        match queue.waiting.pop_front() {
            Some(mut request) => {
                request.let_in();
                Some(request)
            }
            None => {
                queue.running -= 1;
                None
            }
        }
    }

    /// How long an execution is expected to take: a running percentile of those that were.
    #[must_use]
    pub fn expected(&self) -> Duration {
        Duration::from_nanos(self.expected_ns.load(Ordering::Relaxed))
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
