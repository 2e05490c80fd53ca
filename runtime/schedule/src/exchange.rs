//! What workers share to help each other: the injector, their queues, which of them are idle, and how they are woken.
//!
//! Waking. A worker that finds nothing marks itself idle, looks once more, and only then waits; a thread that has new work first makes it
//! known and then looks for an idle worker. Both orders are sequentially consistent, so that one of the two sees the other.
//!
//! What a worker accepted itself it usually runs sooner than another core would wake up (tens of microseconds). So others get some of it only
//! when they have nothing to do and it has a *backlog*: what still waited after the worker had run guests for a while. That it puts into its
//! queue, for others to steal, begun or not; what no other took it takes back itself.

use std::fmt;
use std::sync::OnceLock;
use std::task::Waker;

use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};

use crate::sync::atomic::{AtomicBool, Ordering, fence};

/// The queues between workers; `W` is what they hold.
pub struct Exchange<W> {
    injector: Injector<W>,
    slots: Box<[Slot<W>]>,
}

/// A worker, as the others see it.
struct Slot<W> {
    stealer: Stealer<W>,
    waker: OnceLock<Waker>,
    /// Waits, or is about to, and may be woken for others' work.
    idle: AtomicBool,
    /// Has work that others may take.
    backlog: AtomicBool,
}

impl<W> fmt::Debug for Exchange<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("workers", &self.slots.len()).finish_non_exhaustive()
    }
}

impl<W> Exchange<W> {
    /// The exchange of so many workers, with the queue of each, in order.
    #[must_use]
    pub fn new(workers: usize) -> (Exchange<W>, Vec<Deque<W>>) {
        let deques: Vec<Deque<W>> = (0..workers).map(|_| Deque::new_fifo()).collect();
        let slot = |deque: &Deque<W>| Slot {
            stealer: deque.stealer(),
            waker: OnceLock::new(),
            idle: AtomicBool::new(false),
            backlog: AtomicBool::new(false),
        };
        (Exchange { injector: Injector::new(), slots: deques.iter().map(slot).collect() }, deques)
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.slots.len()
    }

    /// Queues work for whichever worker has time first. False when none waits: one that runs guests finds it in its next turn.
    pub fn inject(&self, work: W) -> bool {
        self.injector.push(work);
        self.wake_one()
    }

    /// Whether work waits for any worker.
    pub fn has_injected(&self) -> bool {
        !self.injector.is_empty()
    }

    /// Whether a worker still waits, or is about to.
    pub fn is_idle(&self, index: usize) -> bool {
        self.slots[index].idle.load(Ordering::Relaxed)
    }

    /// Whether a worker other than that one has nothing to do.
    pub fn others_are_idle(&self, index: usize) -> bool {
        self.slots.iter().enumerate().any(|(other, slot)| other != index && slot.idle.load(Ordering::Relaxed))
    }

    /// Registers how a worker is woken.
    pub fn register(&self, index: usize, waker: &Waker) {
        // A task has one waker for its whole life.
        self.slots[index].waker.get_or_init(|| waker.clone());
    }

    /// Wakes that worker, whatever it does.
    pub fn wake(&self, index: usize) {
        if let Some(waker) = self.slots[index].waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Wakes all of them.
    pub fn wake_all(&self) {
        (0..self.slots.len()).for_each(|index| self.wake(index));
    }

    /// Wakes a worker that waits, if there is one.
    fn wake_one(&self) -> bool {
        fence(Ordering::SeqCst);
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.idle.load(Ordering::Relaxed) && slot.idle.swap(false, Ordering::SeqCst) {
                self.wake(index);
                return true;
            }
        }
        false
    }

    /// How many workers have what others may take.
    pub fn backlogs(&self) -> usize {
        self.slots.iter().filter(|slot| slot.backlog.load(Ordering::Relaxed)).count()
    }

    /// Says whether a worker's queue has what others may take, and if so wakes one of them.
    pub fn set_backlog(&self, index: usize, backlog: bool) {
        let slot = &self.slots[index];
        if slot.backlog.load(Ordering::Relaxed) != backlog {
            slot.backlog.store(backlog, Ordering::SeqCst);
        }
        if backlog && self.slots.len() > 1 {
            self.wake_one();
        }
    }

    /// Marks a worker idle; false when there is work after all, and then it is not.
    pub fn try_idle(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        slot.idle.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let others = || self.slots.iter().enumerate().any(|(other, slot)| other != index && slot.backlog.load(Ordering::SeqCst));
        if !self.injector.is_empty() || others() {
            slot.idle.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Marks a worker busy.
    pub fn busy(&self, index: usize) {
        let slot = &self.slots[index];
        if slot.idle.load(Ordering::Relaxed) {
            slot.idle.store(false, Ordering::SeqCst);
        }
    }

    /// A worker's share of what was injected: what it has taken from there so far leaves the others as much.
    pub fn take_injected(&self) -> Vec<W> {
        let count = self.injector.len().div_ceil(self.slots.len());
        (0..count).map_while(|_| insist(|| self.injector.steal())).collect()
    }

    /// Moves what another worker gave away to this one's own queue, as much of it as is fair.
    pub fn steal(&self, index: usize, own: &Deque<W>) {
        let (before, after) = self.slots.split_at(index);
        let others = after[1..].iter().chain(before);
        for slot in others.filter(|slot| slot.backlog.load(Ordering::Acquire)) {
            match insist(|| slot.stealer.steal_batch_and_pop(own)) {
                Some(work) => {
                    own.push(work);
                    return;
                }
                // It will be set again if there is more.
                None => slot.backlog.store(false, Ordering::SeqCst),
            }
        }
    }
}

fn insist<W>(mut steal: impl FnMut() -> Steal<W>) -> Option<W> {
    loop {
        match steal() {
            Steal::Success(work) => return Some(work),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
