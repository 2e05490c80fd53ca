//! How many requests there are, from how many sources more may come, and how far the server is with stopping.

use crate::shared::Phase;
use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The requests of a server, counted. A *source* is a thread through which requests come.
#[derive(Debug)]
pub struct Requests {
    count: AtomicUsize,
    count_max: usize,
    sources: AtomicUsize,
    phase: AtomicU8,
}

impl Requests {
    /// None yet, of at most so many; they come from so many sources.
    #[must_use]
    pub fn new(sources: usize, count_max: usize) -> Requests {
        let (count, sources, phase) = (AtomicUsize::new(0), AtomicUsize::new(sources), AtomicU8::new(Phase::Serving as u8));
        Requests { count, count_max, sources, phase }
    }

    /// One more request; whether there is room for it. It has to [leave](Requests::leave) in either case.
    #[must_use]
    pub fn enter(&self) -> bool {
        // Relaxed: a number to compare with a limit. That it is seen where the source is seen closed follows from the Release in `close_source`.
        self.count.fetch_add(1, Ordering::Relaxed) < self.count_max
    }

    /// A request is over. Whether workers may be waiting for exactly this to leave, and are to be woken.
    #[must_use]
    pub fn leave(&self) -> bool {
        // Release, with the Acquire of `is_over`: a worker that leaves sees everything that was done for the last request.
        self.count.fetch_sub(1, Ordering::Release) == 1 && self.phase() != Phase::Serving
    }

    /// Requests that are not over.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// No more requests come from one of the sources. Whether that was the last one, and workers are to be woken.
    #[must_use]
    pub fn close_source(&self) -> bool {
        // Release, with the Acquire of `is_over`: a worker that sees the last source closed sees all requests that came from any of them.
        self.sources.fetch_sub(1, Ordering::Release) == 1
    }

    /// Whether there is nothing more to do, now and ever. In this order: with the count read first, a request could come between the two.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.sources.load(Ordering::Acquire) == 0 && self.count.load(Ordering::Acquire) == 0
    }

    /// How far the server is with stopping.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Serving,
            1 => Phase::Draining,
            _ => Phase::Killing,
        }
    }

    /// Goes on with stopping; never back.
    pub fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
    }
}
