//! What the blocked sandboxes of one worker wait for: host calls that pend, and clients that may go.
//!
//! Each blocked task has a waker of its own, which any thread may call: it notes the task's number and wakes the worker, which polls in its
//! next turn what was noted. A waker outlives the wait that it was made for, so that a task may be polled in vain, also a later one with the
//! same number: that does no harm.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::host::Pending;
use crate::invoke::Dispatcher;
use crate::invoke::work::Started;
use crate::schedule::core::TaskId;

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
    wait: Option<Wait>,
}

/// One task's wait.
#[derive(Debug)]
struct Wait {
    since: Instant,
    /// When it goes on without more.
    until: Option<Instant>,
    pending: Option<Pending>,
}

/// The tasks that something has happened to.
#[derive(Debug)]
struct Woken {
    ids: Mutex<Vec<TaskId>>,
    /// Whether there are any.
    some: AtomicBool,
    dispatcher: Arc<Dispatcher>,
    /// The worker's.
    index: usize,
}

#[derive(Debug)]
struct Wakeup {
    id: TaskId,
    /// Whether it is noted already.
    noted: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Wakeup>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Wakeup>) {
        // AcqRel, with the swap in `take_woken`: what was done before this is seen by the poll that follows.
        if !self.noted.swap(true, Ordering::AcqRel) {
            self.woken.ids.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
            self.woken.some.store(true, Ordering::Release);
            self.woken.dispatcher.exchange().wake(self.woken.index);
        }
    }
}

impl Waits {
    /// None yet, of the dispatcher's worker with that index.
    #[must_use]
    pub fn new(dispatcher: Arc<Dispatcher>, index: usize) -> Waits {
        Waits {
            places: Vec::new(),
            woken: Arc::new(Woken { ids: Mutex::default(), some: AtomicBool::new(false), dispatcher, index }),
        }
    }

    /// A task blocks: until that time, or until `pending` is done; and in any case until its client has gone. False when it need not.
    pub fn begin(
        &mut self,
        started: &mut Started,
        id: TaskId,
        now: Instant,
        until: Option<Instant>,
        pending: Option<Pending>,
    ) -> bool {
        while self.places.len() <= id.0 as usize {
            let id = TaskId(self.places.len() as u32);
            let wakeup = Arc::new(Wakeup { id, noted: AtomicBool::new(false), woken: Arc::clone(&self.woken) });
            let waker = Waker::from(Arc::clone(&wakeup));
            self.places.push(Place { wakeup, waker, wait: None });
        }
        self.places[id.0 as usize].wait = Some(Wait { since: now, until, pending });
        !self.poll(started, id)
    }

    /// Looks whether a task may go on: what it waited for is done, or it is to be ended, since nobody waits for it. Then it waits no more.
    pub fn poll(&mut self, started: &mut Started, id: TaskId) -> bool {
        let Some(place) = self.places.get_mut(id.0 as usize) else { return false };
        let Some(wait) = &mut place.wait else { return false };
        let context = &mut Context::from_waker(&place.waker);
        let mut done = started.invocation.reply.poll_closed(context).is_ready();
        while !done && let Some(pending) = &mut wait.pending {
            match pending.poll(context) {
                Poll::Ready(completion) => {
                    wait.pending = started.driver.complete(&started.invocation.function.program, completion);
                    done = wait.pending.is_none();
                }
                Poll::Pending => break,
            }
        }
        if done {
            started.invocation.times.blocked += self.end(id);
        }
        done
    }

    /// Ends a task's wait, if it waits, and gives up what it waited for. For how long it has waited.
    pub fn end(&mut self, id: TaskId) -> Duration {
        let Some(wait) = self.places.get_mut(id.0 as usize).and_then(|place| place.wait.take()) else { return Duration::ZERO };
        let now = Instant::now();
        wait.until.map_or(now, |until| until.min(now)).saturating_duration_since(wait.since)
    }

    /// Whether there are tasks to poll.
    #[must_use]
    pub fn has_woken(&self) -> bool {
        // Relaxed: a hint; what is done about it looks again.
        self.woken.some.load(Ordering::Relaxed)
    }

    /// The tasks to poll.
    #[must_use]
    pub fn take_woken(&mut self) -> Vec<TaskId> {
        // Acquire, with the Release above; what is noted after this is found the next time, for which the worker was woken.
        if !self.woken.some.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.woken.some.store(false, Ordering::Release);
        let ids = mem::take(&mut *self.woken.ids.lock().unwrap_or_else(PoisonError::into_inner));
        for place in ids.iter().filter_map(|id| self.places.get(id.0 as usize)) {
            place.wakeup.noted.swap(false, Ordering::AcqRel);
        }
        ids
    }
}
