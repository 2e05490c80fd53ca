//! The connections of one thread: which are idle for too long, and which have to go because the server stops or another client wants the place.
//!
//! A connection would set and stop a timer of its own with every request. Instead one task looks at all of them when the first one's time may
//! be over, and gives [orders](Order) to those that are to end; a request costs a look at a clock that is rough, but cheap.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::framing::Refusal;

/// How long a connection is kept for one more request when the server stops: a client that is about to send one, or has sent it already, is
/// answered and told to close, instead of finding the connection closed.
const LAST_REQUEST_MS: u64 = 100;
/// How long a connection has to be idle to be closed when there is no room for others.
const SHED_IDLE_MS: u64 = 1_000;
/// How long not to look for such connections again.
const SHED_PAUSE_MS: u64 = 250;
/// Looks at all connections while the longest idle time passes once, at most; and how far they are apart at least and at most.
const LOOKS: u64 = 64;
const PAUSE_MIN_MS: u64 = 5;
const PAUSE_MAX_MS: u64 = 1_000;

/// What a connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The server stops: answer what is there, then close.
    Finish,
    /// Nothing came for too long.
    Expire,
    /// Others want its place.
    Yield,
}

/// What happens on a connection.
pub(super) struct Activity {
    /// Its place in the list.
    place: Cell<usize>,
    began_ms: u64,
    /// When it began to wait for a request.
    since_ms: Cell<u64>,
    /// Requests that are not answered yet.
    requests: Cell<usize>,
    /// Requests that have begun, counted around; and the one that is refused.
    begun: Cell<u32>,
    refused: Cell<Option<(u32, Refusal)>>,
    /// Whether the client has still to fetch what was written, or is being left: that has limits of its own.
    is_writing: Cell<bool>,
    /// Whether to close with patience.
    lingers: Cell<bool>,
    /// Whether it knows that the server stops.
    is_finishing: Cell<bool>,
    order: Cell<Option<Order>>,
    waker: OnceCell<Waker>,
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").field("requests", &self.requests).field("order", &self.order).finish_non_exhaustive()
    }
}

impl Activity {
    fn new(place: usize) -> Activity {
        let began_ms = now_ms();
        Activity {
            place: Cell::new(place),
            began_ms,
            since_ms: Cell::new(began_ms),
            requests: Cell::new(0),
            begun: Cell::new(0),
            refused: Cell::new(None),
            is_writing: Cell::new(false),
            lingers: Cell::new(false),
            is_finishing: Cell::new(false),
            order: Cell::new(None),
            waker: OnceCell::new(),
        }
    }

    /// Waits for an order. For the connection's own task, which is the same for its whole life.
    pub(super) async fn order(&self) -> Order {
        poll_fn(|task| {
            self.waker.get_or_init(|| task.waker().clone());
            self.order.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    fn tell(&self, order: Order) {
        self.order.set(Some(order));
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Says that the client has to fetch what was written, or has done so.
    pub(super) fn writes(&self, is_writing: bool) {
        if self.is_writing.replace(is_writing) && !is_writing {
            self.since_ms.set(now_ms());
        }
    }

    /// Says that the connection is to be closed with patience: the client may still be sending.
    pub(super) fn linger(&self) {
        self.lingers.set(true);
    }

    /// Whether it is.
    pub(super) fn lingers(&self) -> bool {
        self.lingers.get()
    }

    /// Says that a request is refused, counted from 1 on; there may be others before it that are good.
    pub(super) fn refuse(&self, request: u32, refusal: Refusal) {
        self.refused.set(Some((request, refusal)));
    }

    /// Whether one was because its body is too large: then no more is read.
    pub(super) fn is_any_too_large(&self) -> bool {
        matches!(self.refused.get(), Some((_, Refusal::TooLarge)))
    }

    /// Why the request that began last is refused, if it is.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.refused.get().filter(|(request, _)| *request == self.begun.get()).map(|(_, refusal)| refusal)
    }

    /// Since when it has waited for a request; none while it does not.
    pub(super) fn idle_since_ms(&self) -> Option<u64> {
        (self.requests.get() == 0 && !self.is_writing.get()).then(|| self.since_ms.get())
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(super) struct UnderWay(Rc<Activity>);

impl UnderWay {
    pub(super) fn new(activity: &Rc<Activity>) -> UnderWay {
        activity.requests.set(activity.requests.get() + 1);
        activity.begun.set(activity.begun.get().wrapping_add(1));
        UnderWay(Rc::clone(activity))
    }

    /// Its connection's.
    pub(super) const fn activity(&self) -> &Rc<Activity> {
        &self.0
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.requests.set(self.0.requests.get() - 1);
        self.0.since_ms.set(now_ms());
    }
}

/// All of a thread.
#[derive(Debug, Default)]
pub(super) struct Connections {
    list: RefCell<Vec<Rc<Activity>>>,
    /// Heard by the task that looks after them, if it waits for the first one or has to know at once.
    more: Notify,
    is_waited_for: Cell<bool>,
    shed_ms: Cell<u64>,
}

/// A connection in the list; dropping it takes it out.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    connections: &'a Connections,
    pub(super) activity: Rc<Activity>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut list = self.connections.list.borrow_mut();
        let place = self.activity.place.get();
        list.swap_remove(place);
        if let Some(moved) = list.get(place) {
            moved.place.set(place);
        }
    }
}

impl Connections {
    /// Adds a connection that begins.
    pub(super) fn add(&self) -> Listed<'_> {
        let mut list = self.list.borrow_mut();
        let activity = Rc::new(Activity::new(list.len()));
        list.push(Rc::clone(&activity));
        if self.is_waited_for.get() {
            self.more.notify_one();
        }
        Listed { connections: self, activity }
    }

    /// Tells those that are idle to go. Not again and again.
    pub(super) fn shed(&self) {
        let now_ms = now_ms();
        if now_ms < self.shed_ms.get() + SHED_PAUSE_MS {
            return;
        }
        self.shed_ms.set(now_ms);
        for activity in self.list.borrow().iter() {
            if activity.idle_since_ms().is_some_and(|since| now_ms >= since + SHED_IDLE_MS) {
                activity.tell(Order::Yield);
            }
        }
    }

    /// Ends connections whose time is over, for as long as it is waited for: those that have waited for a request for `idle`, and all when `stop` changes.
    pub(super) async fn look_after(&self, idle: Duration, mut stop: watch::Receiver<bool>) {
        let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2);
        let pause_ms = (idle_ms / LOOKS).clamp(PAUSE_MIN_MS, PAUSE_MAX_MS);
        let mut stopped_ms = None;
        loop {
            let next_ms = self.look(now_ms(), idle_ms, stopped_ms);
            let stops = async {
                if stopped_ms.is_some() || stop.wait_for(|stop| *stop).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            // Later ones wait for longer, unless the server stops.
            self.is_waited_for.set(next_ms.is_none() || stopped_ms.is_some());
            let pause_ms = if stopped_ms.is_some() { PAUSE_MIN_MS } else { pause_ms };
            let pause = next_ms.map(|next| Duration::from_millis(next.saturating_sub(now_ms()).max(pause_ms)));
            tokio::select! {
                () = stops => stopped_ms = Some(now_ms()),
                () = self.more.notified() => {}
                () = sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
    }

    /// Looks at each; returns when to look again, if there are any.
    fn look(&self, now_ms: u64, idle_ms: u64, stopped_ms: Option<u64>) -> Option<u64> {
        let mut next_ms = None::<u64>;
        for activity in self.list.borrow().iter() {
            let since_ms = activity.idle_since_ms();
            let mut due_ms = since_ms.unwrap_or(now_ms) + idle_ms;
            if since_ms.is_some() && now_ms >= due_ms {
                activity.tell(Order::Expire);
                due_ms = now_ms + idle_ms;
            }
            if let Some(stopped_ms) = stopped_ms.filter(|_| !activity.is_finishing.get()) {
                let finish_ms = stopped_ms.max(activity.began_ms) + LAST_REQUEST_MS;
                if now_ms >= finish_ms {
                    activity.is_finishing.set(true);
                    activity.tell(Order::Finish);
                } else {
                    due_ms = due_ms.min(finish_ms);
                }
            }
            next_ms = Some(next_ms.map_or(due_ms, |next| next.min(due_ms)));
        }
        next_ms
    }
}

/// A clock that goes in steps of a few milliseconds, at a fifth of the other's cost.
pub(super) fn now_ms() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000
}
