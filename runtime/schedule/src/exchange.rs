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

use crate::shared::Rest;
use crate::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};

/// The queues between workers; `W` is what they hold.
pub struct Exchange<W> {
    injector: Injector<W>,
    slots: Box<[Slot<W>]>,
}

/// A worker, as the others see it.
struct Slot<W> {
    stealer: Stealer<W>,
    waker: OnceLock<Waker>,
    /// How it [rests](Rest). If it is idle it waits, or is about to; if it has only what is speculative to do it runs that. Either may be woken for others' work.
    rest: AtomicU8,
    /// Has work that others may take.
    backlog: AtomicBool,
}

/// Which worker was woken, if one was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// None rests: those that run guests look for work in their next turn.
    None,
    /// One that waits.
    Idle,
    /// That one, which runs what is speculative. If it does so without ticks it is to be interrupted.
    Slack(usize),
}

const BUSY: u8 = Rest::Busy as u8;
const SLACK: u8 = Rest::Slack as u8;
const IDLE: u8 = Rest::Idle as u8;

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
            rest: AtomicU8::new(BUSY),
            backlog: AtomicBool::new(false),
        };
        (Exchange { injector: Injector::new(), slots: deques.iter().map(slot).collect() }, deques)
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.slots.len()
    }

    /// Queues work for whichever worker has time first. Which one was woken for it.
    pub fn inject(&self, work: W) -> Woken {
        self.injector.push(work);
        self.wake_one()
    }

    /// Whether work waits for any worker.
    pub fn has_injected(&self) -> bool {
        !self.injector.is_empty()
    }

    /// Whether a worker still waits, or is about to.
    pub fn is_idle(&self, index: usize) -> bool {
        self.slots[index].rest.load(Ordering::Relaxed) == IDLE
    }

    /// Whether a worker does something that is asked for, or was woken for that.
    pub fn is_busy(&self, index: usize) -> bool {
        self.slots[index].rest.load(Ordering::Relaxed) == BUSY
    }

    /// How that one of the other workers rests that rests most.
    pub fn others(&self, index: usize) -> Rest {
        let others = self.slots.iter().enumerate().filter(|(other, _)| *other != index);
        match others.map(|(_, slot)| slot.rest.load(Ordering::Relaxed)).max() {
            Some(IDLE) => Rest::Idle,
            Some(SLACK) => Rest::Slack,
            _ => Rest::Busy,
        }
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

    /// Wakes a worker that waits, if there is one, or else one that runs what is speculative.
    fn wake_one(&self) -> Woken {
        fence(Ordering::SeqCst);
        let mut slack = None;
        for (index, slot) in self.slots.iter().enumerate() {
            match slot.rest.load(Ordering::Relaxed) {
                IDLE if self.wake_if_rests(index) => return Woken::Idle,
                SLACK => slack = slack.or(Some(index)),
                _ => {}
            }
        }
        match slack {
            Some(index) if self.wake_if_rests(index) => Woken::Slack(index),
            _ => Woken::None,
        }
    }

    /// Wakes that worker, unless it has come to be busy meanwhile.
    fn wake_if_rests(&self, index: usize) -> bool {
        let rests = self.slots[index].rest.swap(BUSY, Ordering::SeqCst) != BUSY;
        if rests {
            self.wake(index);
        }
        rests
    }

    /// How many workers have what others may take.
    pub fn backlogs(&self) -> usize {
        self.slots.iter().filter(|slot| slot.backlog.load(Ordering::Relaxed)).count()
    }

    /// Says whether a worker's queue has what others may take, and if so wakes one of them. Which one that was.
    pub fn set_backlog(&self, index: usize, backlog: bool) -> Woken {
        let slot = &self.slots[index];
        if slot.backlog.load(Ordering::Relaxed) != backlog {
            slot.backlog.store(backlog, Ordering::SeqCst);
        }
        if backlog && self.slots.len() > 1 { self.wake_one() } else { Woken::None }
    }

    /// Marks a worker idle; false when there is work after all, and then it is not.
    pub fn try_idle(&self, index: usize) -> bool {
        self.try_rest(index, IDLE)
    }

    /// The same of one that runs what is speculative, and nothing else.
    pub fn try_slack(&self, index: usize) -> bool {
        self.try_rest(index, SLACK)
    }

    fn try_rest(&self, index: usize, rest: u8) -> bool {
        let slot = &self.slots[index];
        slot.rest.store(rest, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let others = || self.slots.iter().enumerate().any(|(other, slot)| other != index && slot.backlog.load(Ordering::SeqCst));
        if !self.injector.is_empty() || others() {
            slot.rest.store(BUSY, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Marks a worker busy.
    pub fn busy(&self, index: usize) {
        let slot = &self.slots[index];
        if slot.rest.load(Ordering::Relaxed) != BUSY {
            slot.rest.store(BUSY, Ordering::SeqCst);
        }
    }

    /// A worker's share of what was injected: what it has taken from there so far leaves the others as much. Of what does not count it takes what stands before the end of that: so nothing waits
    /// there behind what is speculative for others to take it.
    pub fn take_injected(&self, counts: impl Fn(&W) -> bool) -> Vec<W> {
        let share = self.injector.len().div_ceil(self.slots.len());
        let (mut taken, mut counted) = (Vec::new(), 0);
        while counted < share
            && let Some(work) = insist(|| self.injector.steal())
        {
            counted += usize::from(counts(&work));
            taken.push(work);
        }
        taken
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
