//! What the blocked tasks of one worker wait for: host calls that pend, a store that confirms an answer, runs of equal requests, and clients that may go.
//!
//! Each blocked task has a waker of its own, which any thread may call: it notes the task's number and wakes the worker, which polls in its
//! next turn what was noted. A waker outlives the wait that it was made for, so that a task may be polled in vain, also a later one with the
//! same number: that does no harm.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use crate::host::Pending;
use crate::invoke::work::{Blocks, Wait};
use crate::invoke::{Dispatcher, Invocation};
use crate::schedule::wakeups::Noted;
use crate::schedule::{TaskId, Wakeups};

/// The blocked tasks of one worker.
#[derive(Debug)]
pub struct Waits {
    /// By the number of the task.
    places: Vec<Place>,
    woken: Arc<Woken>,
}

#[derive(Debug)]
struct Place {
    wakeup: Arc<Wakeup>,
    waker: Waker,
    /// The host call that the task waits for, if that is what it waits for.
    pending: Option<Pending>,
}

/// The tasks to which something has happened, and their worker.
#[derive(Debug)]
struct Woken {
    wakeups: Wakeups,
    dispatcher: Arc<Dispatcher>,
    /// The worker's.
    index: usize,
}

#[derive(Debug)]
struct Wakeup {
    id: TaskId,
    noted: Noted,
    woken: Arc<Woken>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Wakeup>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Wakeup>) {
        let Woken { wakeups, dispatcher, index } = &*self.woken;
        if wakeups.note(self.id, &self.noted) {
            dispatcher.rouse(*index);
        }
    }
}

impl Waits {
    /// None yet, of the dispatcher's worker with that index.
    #[must_use]
    pub fn new(dispatcher: Arc<Dispatcher>, index: usize) -> Waits {
        Waits { places: Vec::new(), woken: Arc::new(Woken { wakeups: Wakeups::default(), dispatcher, index }) }
    }

    /// A task blocks: until that time, or until `pending` is done; and in any case until its client has gone. False when it need not.
    pub(crate) fn begin(
        &mut self,
        blocked: &mut impl Blocks,
        id: TaskId,
        now: Instant,
        until: Option<Instant>,
        pending: Option<Pending>,
    ) -> bool {
        self.place(id).pending = pending;
        *blocked.wait() = Some(Wait { since: now, until });
        !self.poll(blocked, id, now)
    }

    /// The place of a task.
    fn place(&mut self, id: TaskId) -> &mut Place {
        while self.places.len() <= id.0 as usize {
            let id = TaskId(self.places.len() as u32);
            let wakeup = Arc::new(Wakeup { id, noted: Noted::default(), woken: Arc::clone(&self.woken) });
            let waker = Waker::from(Arc::clone(&wakeup));
            self.places.push(Place { wakeup, waker, pending: None });
        }
        &mut self.places[id.0 as usize]
    }

    /// Looks whether a task may go on that has no sandbox and waits for the run of an equal request: that is over, or its client has gone.
    pub(crate) fn poll_follower(&mut self, invocation: &mut Invocation, id: TaskId) -> bool {
        let Some(follows) = &invocation.follows else { return false };
        let context = &mut Context::from_waker(&self.place(id).waker);
        invocation.reply.poll_closed(context).is_ready() || follows.follower.poll(context).is_ready()
    }

    /// Looks whether a task may go on: what it waited for is done, or it is to be ended, since its client has gone. Then it waits no more.
    pub(crate) fn poll(&mut self, blocked: &mut impl Blocks, id: TaskId, now: Instant) -> bool {
        let Some(place) = self.places.get_mut(id.0 as usize).filter(|_| blocked.wait().is_some()) else { return false };
        let context = &mut Context::from_waker(&place.waker);
        let mut done = blocked.reply().poll_closed(context).is_ready();
        while !done && let Some(pending) = &mut place.pending {
            match pending.poll(context) {
                Poll::Ready(completion) => {
                    place.pending = blocked.complete(completion);
                    done = place.pending.is_none();
                }
                Poll::Pending => break,
            }
        }
        if done {
            self.end(blocked, id, now);
        }
        done
    }

    /// Ends a task's wait, if it waits, and gives up what it waited for.
    pub(crate) fn end(&mut self, blocked: &mut impl Blocks, id: TaskId, now: Instant) {
        // A task whose time has come may have been handed off meanwhile: how long it waited goes with it. What pends stays, until it is done or given up here.
        if blocked.end_wait(now)
            && let Some(place) = self.places.get_mut(id.0 as usize)
        {
            place.pending = None;
        }
    }

    /// Whether there are tasks to poll.
    #[must_use]
    pub fn has_woken(&self) -> bool {
        self.woken.wakeups.has_some()
    }

    /// The tasks to poll.
    #[must_use]
    pub fn take_woken(&mut self) -> Vec<TaskId> {
        self.woken.wakeups.take(|id| self.places.get(id.0 as usize).map(|place| &place.wakeup.noted))
    }
}
