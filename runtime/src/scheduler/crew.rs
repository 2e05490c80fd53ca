//! What workers share: the injector, who waits for work, how many requests there are, and whether the server is stopping.
//!
//! Waking. A worker that finds nothing marks itself idle, looks once more, and only then waits; whoever makes work known first makes it
//! known and then looks for an idle worker. Both orders are sequentially consistent, so that one of the two sees the other.
//!
//! What a worker accepted itself it usually runs sooner than another core would wake up (tens of microseconds). So others get some of it only
//! when they have nothing to do and it has a *backlog*: what still waited after the worker had run guests for a while. That it puts into its
//! queue, for others to steal, begun or not; what nobody took it takes back itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};
use sledge_sandbox::Pools;

use super::gate::Gate;
use super::job::{Job, Work};
use crate::function::Function;
use crate::outcome::Failure;

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
    injector: Injector<Work>,
    seats: Box<[Seat]>,
    /// Requests admitted and not over.
    requests: AtomicUsize,
    requests_max: usize,
    /// Requests admitted so far.
    sequence: AtomicU64,
    /// What the admitted requests are expected to need of the workers until their deadlines, and how much there is; none if nobody asks.
    /// In millionths of a worker.
    load: AtomicU64,
    load_max: Option<u64>,
    /// Threads through which requests may still come.
    doors: AtomicUsize,
    phase: AtomicU8,
    /// Every worker's idle sandboxes.
    pools: Arc<Pools>,
    /// Whether there was a request or a change of what is served since the server last came to rest.
    stirred: AtomicBool,
}

/// A worker, as the others see it.
struct Seat {
    stealer: Stealer<Work>,
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
    /// A crew of so many workers, with the queue of each, in order; requests come through as many threads as `doors` says. `keeps_promises`
    /// says whether it takes only as many requests as it can be expected to answer by their deadlines.
    #[must_use]
    pub fn new(workers: usize, doors: usize, requests_max: usize, keeps_promises: bool) -> (Arc<Crew>, Vec<Deque<Work>>) {
        let deques: Vec<Deque<Work>> = (0..workers).map(|_| Deque::new_fifo()).collect();
        let seat = |deque: &Deque<Work>| Seat {
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
            sequence: AtomicU64::new(0),
            load: AtomicU64::new(0),
            load_max: keeps_promises.then_some(workers as u64 * LOAD_UNIT),
            doors: AtomicUsize::new(doors),
            phase: AtomicU8::new(Phase::Serving as u8),
            pools: Pools::new(workers),
            stirred: AtomicBool::new(false),
        };
        (Arc::new(crew), deques)
    }

    /// Every worker's idle sandboxes.
    #[must_use]
    pub fn pools(&self) -> &Arc<Pools> {
        &self.pools
    }

    /// A place for one more request of `function`.
    ///
    /// # Errors
    /// When the function or the server has as many as it takes, or is expected not to be done in time.
    pub fn admit(self: &Arc<Crew>, function: &Function) -> Result<Admission, Failure> {
        if function.kv.as_ref().is_some_and(|kv| !kv.is_open()) {
            return Err(Failure::NoStore);
        }
        let gate = &function.gate;
        if !gate.take() {
            return Err(Failure::FunctionBusy);
        }
        // From here on, dropping this gives back what was taken.
        let gate = gate.is_limited().then(|| Arc::clone(gate));
        let mut admission = Admission { crew: Arc::clone(self), gate, runs: false, load: 0, sequence: 0 };
        // Relaxed: numbers to compare with limits; they order nothing else.
        if self.requests.fetch_add(1, Ordering::Relaxed) >= self.requests_max {
            return Err(Failure::Busy);
        }
        admission.sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(load_max) = self.load_max {
            admission.load = load(function);
            if self.load.fetch_add(admission.load, Ordering::Relaxed) + admission.load > load_max {
                return Err(Failure::Overload);
            }
        }
        Ok(admission)
    }

    /// Requests admitted and not over.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Says that something was done.
    pub(super) fn stir(&self) {
        // Relaxed, here and below: whoever comes to rest looks only long after. Written only where it changes, since all workers do.
        if !self.is_stirred() {
            self.stirred.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the server has still to come to rest.
    pub(super) fn is_stirred(&self) -> bool {
        self.stirred.load(Ordering::Relaxed)
    }

    /// Whether nothing is to be done and nothing idle is kept any more: true once for each time that it comes to that.
    pub(super) fn comes_to_rest(&self) -> bool {
        let is_at_rest = self.requests() == 0 && (0..self.seats.len()).all(|worker| self.pools.idle(worker) == 0);
        is_at_rest && self.stirred.swap(false, Ordering::Relaxed)
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
        self.injector.push(Work::Job(Box::new(job)));
        self.wake_one();
    }

    /// Whether it is asked what requests can be expected to take.
    pub(super) fn keeps_promises(&self) -> bool {
        self.load_max.is_some()
    }

    /// Whether jobs wait for any worker.
    pub(super) fn has_injected(&self) -> bool {
        !self.injector.is_empty()
    }

    /// Whether a worker still waits, or is about to.
    pub(super) fn is_idle(&self, index: usize) -> bool {
        self.seats[index].idle.load(Ordering::Relaxed)
    }

    /// Whether a worker other than that one has nothing to do.
    pub(super) fn others_are_idle(&self, index: usize) -> bool {
        self.seats.iter().enumerate().any(|(other, seat)| other != index && seat.idle.load(Ordering::Relaxed))
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

    /// Says whether a worker's queue has what others may take, and if so wakes one of them.
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

    /// A worker's share of what was injected: what it has taken from there so far leaves the others as much.
    pub(super) fn take_injected(&self) -> Vec<Work> {
        let count = self.injector.len().div_ceil(self.seats.len());
        (0..count).map_while(|_| insist(|| self.injector.steal())).collect()
    }

    /// Moves what another worker gave away to this one's own queue, as much of it as is fair.
    pub(super) fn steal(&self, index: usize, own: &Deque<Work>) {
        let (before, after) = self.seats.split_at(index);
        let others = after[1..].iter().chain(before);
        for seat in others.filter(|seat| seat.backlog.load(Ordering::Acquire)) {
            match insist(|| seat.stealer.steal_batch_and_pop(own)) {
                Some(work) => {
                    own.push(work);
                    return;
                }
                // It will be set again if there is more.
                None => seat.backlog.store(false, Ordering::SeqCst),
            }
        }
    }
}

/// One worker's time, in the units in which load is counted.
const LOAD_UNIT: u64 = 1_000_000;

/// The part of a worker's time until its deadline that a request is expected to need.
fn load(function: &Function) -> u64 {
    let part = function.gate.expected().as_secs_f64() / function.deadline.as_secs_f64();
    // What needs all of it or more is taken by a worker that has nothing else.
    (part.min(1.0) * LOAD_UNIT as f64) as u64
}

fn insist(mut steal: impl FnMut() -> Steal<Work>) -> Option<Work> {
    loop {
        match steal() {
            Steal::Success(job) => return Some(job),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}

/// A request's place among those that the server and its function take; given back when it is dropped.
#[derive(Debug)]
pub struct Admission {
    crew: Arc<Crew>,
    /// Of functions with limits.
    gate: Option<Arc<Gate>>,
    /// Whether the gate has let it in.
    pub(super) runs: bool,
    load: u64,
    /// Its number among all that were admitted.
    pub(super) sequence: u64,
}

impl Admission {
    /// Lets a complete request run, or keeps it until it may.
    #[must_use]
    pub fn enter(job: Job) -> Option<Job> {
        match job.admission.gate.clone() {
            Some(gate) => gate.enter(job),
            None => Some(job),
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let crew = &self.crew;
        if let Some(job) = self.gate.as_ref().and_then(|gate| gate.leave(self.runs)) {
            crew.inject(job);
        }
        if self.load > 0 {
            crew.load.fetch_sub(self.load, Ordering::Relaxed);
        }
        crew.stir();
        // Release, with the Acquire of is_over.
        if crew.requests.fetch_sub(1, Ordering::Release) == 1 && crew.phase() != Phase::Serving {
            // Workers may be waiting for exactly this to leave.
            crew.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_goes_forward_only() {
        let (crew, _deques) = Crew::new(2, 2, 2, false);
        crew.advance(Phase::Killing);
        crew.advance(Phase::Draining);
        assert_eq!(crew.phase(), Phase::Killing);
    }

    #[test]
    fn it_is_over_when_the_last_door_is_closed_and_the_last_request_answered() {
        let (crew, _deques) = Crew::new(1, 2, 2, false);
        crew.requests.store(1, Ordering::Relaxed);
        let request = Admission { crew: Arc::clone(&crew), gate: None, runs: false, load: 0, sequence: 0 };
        crew.close_door();
        assert!(!crew.is_over());
        crew.close_door();
        assert!(!crew.is_over());
        drop(request);
        assert!(crew.is_over());
    }

    #[test]
    fn it_comes_to_rest_once_each_time() {
        let (crew, _deques) = Crew::new(1, 1, 1, false);
        assert!(!crew.comes_to_rest(), "nothing was done");
        crew.stir();
        crew.requests.store(1, Ordering::Relaxed);
        assert!(!crew.comes_to_rest(), "there is a request");
        crew.requests.store(0, Ordering::Relaxed);
        assert!(crew.comes_to_rest());
        assert!(!crew.comes_to_rest(), "nothing was done since");
    }

    #[test]
    fn a_worker_does_not_wait_while_another_has_a_backlog() {
        let (crew, _deques) = Crew::new(2, 2, 2, false);
        assert!(crew.try_idle(0));
        crew.busy(0);
        crew.set_backlog(1, true);
        assert!(!crew.try_idle(0));
        assert!(crew.try_idle(1), "its own backlog is no reason");
    }
}
