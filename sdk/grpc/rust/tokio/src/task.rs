//! Tasks: the original's.

pub use tokio_original::task::*;

/// Calls the function: there are no other threads that could go on meanwhile.
#[cfg(feature = "rt-multi-thread")]
pub fn block_in_place<F: FnOnce() -> R, R>(function: F) -> R {
    function()
}
