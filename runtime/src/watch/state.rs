//! Where a worker stands whose guest may run without ticks.
//!
//! ```text
//!              arm                enter                disturb, readable
//!   Out ----------------> Armed <-------> Runs ---------------------------> Fired
//!    ^                      ^  \  leave                                      | |
//!    |                      |   `----------------- readable ---------------->| |
//!    |                      `------------------------ arm -------------------' |
//!    `-- taken out -- Leaves <-------------------------------------------------'
//! ```
//!
//! Only the worker leaves Out, enters and leaves Runs by its own decision, and arms; only the watcher's thread takes out. Every step is a
//! compare-and-exchange. An event that fires for a state that is over makes the next one Fired, which costs the worker a look in vain and loses nothing.

use crate::sync::atomic::{AtomicU8, Ordering, fence};

/// Not in the watcher's epoll.
const OUT: u8 = 0;
/// Waits for an event.
const ARMED: u8 = 1;
/// The same, and a guest runs without ticks: an event interrupts it.
const RUNS: u8 = 2;
/// Something has come. What comes next is not seen, until it is armed again.
const FIRED: u8 = 3;
/// Is being taken out.
const LEAVES: u8 = 4;
/// Cannot be watched.
const NEVER: u8 = 5;

/// What arming comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    /// It was armed, and nothing has come.
    Already,
    /// Its registration is to be made to wait for an event again.
    Again,
    /// It is to be registered.
    Anew,
    /// It cannot be armed now.
    Not,
}

/// What an event came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fired {
    /// A guest that is to be interrupted.
    Runs,
    /// Nothing that anything waits for.
    Noted,
}

/// Where one worker stands.
#[derive(Debug, Default)]
pub(super) struct State(AtomicU8);

impl State {
    /// Makes it armed, and says what is to be done for that.
    pub(super) fn arm(&self) -> Armed {
        match self.get() {
            ARMED => Armed::Already,
            FIRED if self.step(FIRED, ARMED) => Armed::Again,
            OUT if self.step(OUT, ARMED) => Armed::Anew,
            _ => Armed::Not,
        }
    }

    /// Never arms it again.
    pub(super) fn give_up(&self) {
        self.0.store(NEVER, Ordering::SeqCst);
    }

    /// Whether it is armed and nothing has come.
    pub(super) fn is_armed(&self) -> bool {
        self.get() == ARMED
    }

    /// Whether something has come since it was armed.
    pub(super) fn has_fired(&self) -> bool {
        self.get() == FIRED
    }

    /// A guest is about to run without ticks; false when it is not armed.
    pub(super) fn enter(&self) -> bool {
        let enters = self.step(ARMED, RUNS);
        // With the one in `disturb`: either that sees that a guest runs, or what was done before it is seen after this.
        fence(Ordering::SeqCst);
        enters
    }

    /// The guest has stopped.
    pub(super) fn leave(&self) {
        self.step(RUNS, ARMED);
    }

    /// Another thread has made known something that the worker is to look at: whether a guest is to be interrupted for that.
    pub(super) fn disturb(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) == RUNS && self.step(RUNS, FIRED)
    }

    /// An event has come.
    pub(super) fn fired(&self) -> Fired {
        // The worker enters and leaves meanwhile, never for long.
        loop {
            match self.get() {
                RUNS if self.step(RUNS, FIRED) => return Fired::Runs,
                ARMED if self.step(ARMED, FIRED) => return Fired::Noted,
                ARMED | RUNS => {}
                _ => return Fired::Noted,
            }
        }
    }

    /// Takes it out by `delete`, if it was not armed again.
    pub(super) fn take_out(&self, delete: impl FnOnce()) {
        if self.step(FIRED, LEAVES) {
            delete();
            self.step(LEAVES, OUT);
        }
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}
