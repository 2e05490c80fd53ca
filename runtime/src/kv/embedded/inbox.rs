//! What the writer is told, waited for on its own thread: with a limit, and without a runtime, whose way through epoll takes longer than a commit's share of the processor.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::Message;

/// The messages of one thread, which alone waits for them.
pub(super) struct Inbox {
    messages: mpsc::Receiver<Message>,
    /// Wakes that thread.
    waker: Waker,
}

/// What comes next.
pub(super) enum Next {
    Message(Message),
    /// Nothing has come in time.
    Late,
    /// No handle of the store is left.
    Gone,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Inbox {
    /// For this thread.
    pub(super) fn new(messages: mpsc::Receiver<Message>) -> Inbox {
        Inbox { messages, waker: Arc::new(Unpark(thread::current())).into() }
    }

    /// What is there already.
    pub(super) fn take(&mut self) -> Option<Message> {
        self.messages.try_recv().ok()
    }

    /// What comes next, until that time if there is one.
    pub(super) fn wait(&mut self, until: Option<Instant>) -> Next {
        let mut context = Context::from_waker(&self.waker);
        loop {
            // Before each wait: the wake-up may have ended another wait of this thread, and there is only one.
            if let Poll::Ready(message) = self.messages.poll_recv(&mut context) {
                return message.map_or(Next::Gone, Next::Message);
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return Next::Late,
                Some(time) => thread::park_timeout(time),
            }
        }
    }
}
