//! A host call that has to wait: a future, and what is done with its output when the guest's memory is at hand again.
//!
//! ```text
//!   HostFunction --Call::wait--> Stop::Waits, Pending --worker polls--> Completion --with a Call--> answer
//! ```
//!
//! The future owns everything it needs: while it runs, the host does not look at the guest. The worker on which it was made polls it, or, where it became one of
//! several operations ([`super::canonical`]), the worker to which the invocation went meanwhile. Dropping it, as a deadline or a client that has gone does, gives
//! the operation up.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use super::{Call, Flat, Stop};

/// What is done when the wait is over: answers the call, ends it, or waits again.
pub type Completion = Box<dyn FnOnce(&mut Call<'_>) -> Result<Flat, Stop> + Send>;

/// What a guest waits for in a host call.
pub struct Pending(Pin<Box<dyn Future<Output = Completion> + Send>>);

/// The host panicked in a pending call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

impl Pending {
    /// Waits for `future`, and answers with what `then` makes of its output.
    pub(super) fn new<T: Send + 'static, R: Into<Flat>>(
        future: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut Call<'_>, T) -> Result<R, Stop> + Send + 'static,
    ) -> Pending {
        Pending(Box::pin(async move {
            let output = future.await;
            let completion: Completion = Box::new(move |call| then(call, output).map(R::into));
            completion
        }))
    }

    /// Waits for `future` without a host call that it answers.
    pub fn only(future: impl Future<Output = ()> + Send + 'static) -> Pending {
        Pending(Box::pin(async move {
            future.await;
            let completion: Completion = Box::new(|_| Ok(Flat::NONE));
            completion
        }))
    }

    /// Goes on as far as it can. Once ready, or when it has panicked, it must not be polled again.
    ///
    /// # Errors
    /// When it panics: a bug of the host, which ends this invocation only.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Completion, Panicked>> {
        // What the panic left half done is in this future only, which is thrown away.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// Waits on a thread that has nothing else to do, as `sledge run` does.
#[derive(Debug, Default)]
pub struct Waiter(Option<LocalRuntime>);

impl Waiter {
    /// One that has what waiting needs from the beginning, for [`Waiter::within`].
    ///
    /// # Errors
    /// Those of the system.
    pub fn started() -> io::Result<Waiter> {
        Ok(Waiter(Some(runtime()?)))
    }

    /// Runs something. What it lets go on by itself, such as a request to another server, goes on during each wait from then on, if this was
    /// [started](Waiter::started).
    pub fn within<T>(&self, run: impl FnOnce() -> T) -> T {
        let _entered = self.0.as_ref().map(LocalRuntime::enter);
        run()
    }

    /// Waits for what a call pends on; none when `until` comes first.
    ///
    /// # Errors
    /// When it panics, or the system refuses what waiting needs.
    pub fn wait(&mut self, mut pending: Pending, until: Option<Instant>) -> Result<Option<Completion>, Panicked> {
        let runtime = match self.0.take() {
            Some(runtime) => runtime,
            None => runtime().map_err(|error| {
                tracing::error!(%error, "cannot wait for a host call");
                Panicked
            })?,
        };
        let completion = runtime.block_on(async {
            let ready = std::future::poll_fn(|context| pending.poll(context));
            match until {
                Some(until) => tokio::time::timeout_at(until.into(), ready).await.ok().transpose(),
                None => ready.await.map(Some),
            }
        });
        // It goes while its runtime is there.
        drop(pending);
        self.0 = Some(runtime);
        completion
    }
}
