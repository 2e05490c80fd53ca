//! What workers share: the injector, who waits for work, how many requests there are, and whether the server is stopping.
//!
//! Waking. A worker that finds nothing marks itself idle, looks once more, and only then waits; whoever makes work known first makes it
//! known and then looks for an idle worker. Both orders are sequentially consistent, so that one of the two sees the other.
//!
//! What a worker accepted itself it usually runs sooner than another core would wake up (tens of microseconds). So its queue is offered to
//! others only once it has a *backlog*: work that still waited after the worker had run guests for a while.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};

use super::Job;

/// How far a server is with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// It is not.
    Serving,
    /// It takes no new connection and finishes what it has.
    Draining,
    /// It ends what still runs.
    Killing,
}

/// The shared side of all workers.
pub struct Crew {
    injector: Injector<Job>,
    seats: Box<[Seat]>,
    /// Requests admitted and not over.
    requests: AtomicUsize,
    requests_max: usize,
    /// Threads through which requests may still come.
    doors: AtomicUsize,
    phase: AtomicU8,
}

/// A worker, as the others see it.
struct Seat {
    stealer: Stealer<Job>,
    waker: OnceLock<Waker>,
    /// Waits, or is about to, and may be woken for others' work.
    idle: AtomicBool,
    /// Has work that others may take.
    backlog: AtomicBool,
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("workers", &self.seats.len()).field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl Crew {
    /// A crew of so many workers, with the queue of each, in order; requests come through as many threads as `doors` says.
    #[must_use]
    pub fn new(workers: usize, doors: usize, requests_max: usize) -> (Arc<Crew>, Vec<Deque<Job>>) {
        let deques: Vec<Deque<Job>> = (0..workers).map(|_| Deque::new_fifo()).collect();
        let seat = |deque: &Deque<Job>| Seat {
            stealer: deque.stealer(),
            waker: OnceLock::new(),
            idle: AtomicBool::new(false),
            backlog: AtomicBool::new(false),
        };
        let crew = Crew {
            injector: Injector::new(),
            seats: deques.iter().map(seat).collect(),
            requests: AtomicUsize::new(0),
            requests_max,
            doors: AtomicUsize::new(doors),
            phase: AtomicU8::new(Phase::Serving as u8),
        };
        (Arc::new(crew), deques)
    }

    /// A place for one more request, if the server has any left.
    #[must_use]
    pub fn admit(self: &Arc<Crew>) -> Option<Admission> {
        // Relaxed: a number to compare with a limit; it orders nothing else.
        if self.requests.fetch_add(1, Ordering::Relaxed) >= self.requests_max {
            self.requests.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Admission { crew: Arc::clone(self) })
    }

    /// Requests admitted and not over.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Says that through one of the doors no more requests will come.
    pub fn close_door(&self) {
        // Release, with the Acquire of is_over: who sees the last door closed sees all requests that came through it.
        if self.doors.fetch_sub(1, Ordering::Release) == 1 {
            self.wake_all();
        }
    }

    /// Whether there is nothing more to do, now and ever.
    pub(super) fn is_over(&self) -> bool {
        self.doors.load(Ordering::Acquire) == 0 && self.requests.load(Ordering::Acquire) == 0
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

    /// Goes on with stopping, and tells every worker.
    pub fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
        self.wake_all();
    }

    /// Queues a job for whichever worker has time first.
    pub fn inject(&self, job: Job) {
        self.injector.push(job);
        self.wake_one();
    }

    /// Registers how a worker is woken.
    pub(super) fn seat(&self, index: usize, waker: &Waker) {
        // A task has one waker for its whole life.
        self.seats[index].waker.get_or_init(|| waker.clone());
    }

    /// Wakes that worker, whatever it does.
    pub(super) fn wake(&self, index: usize) {
        if let Some(waker) = self.seats[index].waker.get() {
            waker.wake_by_ref();
        }
    }

    fn wake_all(&self) {
        (0..self.seats.len()).for_each(|index| self.wake(index));
    }

    /// Wakes a worker that waits, if there is one.
    fn wake_one(&self) {
        fence(Ordering::SeqCst);
        for (index, seat) in self.seats.iter().enumerate() {
            if seat.idle.load(Ordering::Relaxed) && seat.idle.swap(false, Ordering::SeqCst) {
                self.wake(index);
                return;
            }
        }
    }

    /// Says whether a worker has more than it can do at once, and if so wakes another.
    pub(super) fn set_backlog(&self, index: usize, backlog: bool) {
        let seat = &self.seats[index];
        if seat.backlog.load(Ordering::Relaxed) != backlog {
            seat.backlog.store(backlog, Ordering::SeqCst);
        }
        if backlog && self.seats.len() > 1 {
            self.wake_one();
        }
    }

    /// Marks a worker idle; false when there is work after all, and then it is not.
    pub(super) fn try_idle(&self, index: usize) -> bool {
        let seat = &self.seats[index];
        seat.idle.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let others = || self.seats.iter().enumerate().any(|(other, seat)| other != index && seat.backlog.load(Ordering::SeqCst));
        if !self.injector.is_empty() || others() {
            seat.idle.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Marks a worker busy.
    pub(super) fn busy(&self, index: usize) {
        let seat = &self.seats[index];
        if seat.idle.load(Ordering::Relaxed) {
            seat.idle.store(false, Ordering::SeqCst);
        }
    }

    /// A job that has not started: the worker's own, then the injector's, then (if `steal`) another worker's.
    pub(super) fn take(&self, index: usize, own: &Deque<Job>, steal: bool) -> Option<Job> {
        if let Some(job) = own.pop() {
            return Some(job);
        }
        if let Some(job) = insist(|| self.injector.steal_batch_and_pop(own)) {
            return Some(job);
        }
        if !steal {
            return None;
        }
        let (before, after) = self.seats.split_at(index);
        let others = after[1..].iter().chain(before);
        for seat in others.filter(|seat| seat.backlog.load(Ordering::Acquire)) {
            match insist(|| seat.stealer.steal_batch_and_pop(own)) {
                Some(job) => return Some(job),
                // It will be set again if there is more.
                None => seat.backlog.store(false, Ordering::SeqCst),
            }
        }
        None
    }
}

fn insist(mut steal: impl FnMut() -> Steal<Job>) -> Option<Job> {
    loop {
        match steal() {
            Steal::Success(job) => return Some(job),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}

/// A request's place among those that the server takes; given back when it is dropped.
#[derive(Debug)]
pub struct Admission {
    crew: Arc<Crew>,
}

impl Drop for Admission {
    fn drop(&mut self) {
        // Release, with the Acquire of is_over.
        if self.crew.requests.fetch_sub(1, Ordering::Release) == 1 && self.crew.phase() != Phase::Serving {
            // Workers may be waiting for exactly this to leave.
            self.crew.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_requests_are_admitted_than_the_limit() {
        let (crew, _deques) = Crew::new(1, 1, 2);
        let first = crew.admit().expect("there is room");
        let _second = crew.admit().expect("there is room");
        assert!(crew.admit().is_none());
        assert_eq!(crew.requests(), 2);
        drop(first);
        assert!(crew.admit().is_some());
    }

    #[test]
    fn stopping_goes_forward_only() {
        let (crew, _deques) = Crew::new(2, 2, 2);
        crew.advance(Phase::Killing);
        crew.advance(Phase::Draining);
        assert_eq!(crew.phase(), Phase::Killing);
    }

    #[test]
    fn it_is_over_when_the_last_door_is_closed_and_the_last_request_answered() {
        let (crew, _deques) = Crew::new(1, 2, 2);
        let request = crew.admit();
        crew.close_door();
        assert!(!crew.is_over());
        crew.close_door();
        assert!(!crew.is_over());
        drop(request);
        assert!(crew.is_over());
    }

    #[test]
    fn a_worker_does_not_wait_while_another_has_a_backlog() {
        let (crew, _deques) = Crew::new(2, 2, 2);
        assert!(crew.try_idle(0));
        crew.busy(0);
        crew.set_backlog(1, true);
        assert!(!crew.try_idle(0));
        assert!(crew.try_idle(1), "its own backlog is no reason");
    }
}
