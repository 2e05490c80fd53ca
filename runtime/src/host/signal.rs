//! What wakes a guest that waits for several things: whichever is first.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use crate::timeout::before;

/// Woken by whatever is waited for.
#[derive(Debug, Default)]
pub(super) struct Signal(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_woken: bool,
    waker: Option<Waker>,
}

impl Signal {
    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_woken {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Waits until it is woken, or until that time.
    pub(super) async fn wait(self: Arc<Signal>, until: Option<Instant>) {
        let woken = poll_fn(|context| self.poll(context));
        match until {
            Some(until) => drop(before(|| until, woken).await),
            None => woken.await,
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Signal>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Signal>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_woken = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
