//! What is there at once, and what is not.
//!
//! An `async fn` keeps room for all that it may ever wait for, and is moved with that room each time it is handed on: what answers any request would have
//! 4.5 KiB, of which most requests need nothing. So what requests pass are plain functions. They give what is there, and only what waits is put on the heap.

use std::pin::Pin;

/// A future on the heap.
pub(super) type Later<T> = Pin<Box<dyn Future<Output = T>>>;

/// A result, or a future that comes to it.
pub(super) enum Step<T> {
    /// It is there.
    Now(T),
    /// Something has to be waited for.
    Later(Later<T>),
}

impl<T> Step<T> {
    /// What that future comes to.
    pub(super) fn later(future: impl Future<Output = T> + 'static) -> Step<T> {
        Step::Later(Box::pin(future))
    }

    /// Waits for it if that is needed.
    pub(super) async fn result(self) -> T {
        match self {
            Step::Now(result) => result,
            Step::Later(future) => future.await,
        }
    }
}
