//! Work that blocks its thread (files): carried out by a bounded pool of threads beside a worker, awaited like any other future.
//!
//! Each worker's runtime has at most [`THREADS_MAX`] such threads; what is more waits in their queue. A guest has one operation there, or a few if it is a
//! component whose operations go on by themselves.

use std::future::Future;

use tokio::task::{AbortHandle, spawn_blocking};

/// Threads of one worker that block.
pub const THREADS_MAX: usize = 16;

/// Gives an operation up that has not begun; one that has goes on, unheard.
struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `work` on a thread that may block. It takes along all that it needs, and must not see a guest's memory.
///
/// # Panics
/// In the future, when `work` does: a bug of the host, which ends the invocation.
pub fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + 'static {
    let task = spawn_blocking(work);
    let abort = Abort(task.abort_handle());
    async move {
        let _abort = abort;
        match task.await {
            Ok(output) => output,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // It was given up: the runtime ends, and does not poll this any more.
            Err(_) => std::future::pending().await,
        }
    }
}
