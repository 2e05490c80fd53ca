//! tokio in a function of Sledge.
//!
//! Tasks, clocks, channels, `io` and macros are the original's. It has one thread, and waits in `sledge_grpc_rt::park`. What is here stands in the
//! place of what needs threads, sockets, signals or other processes.

#[doc(hidden)]
pub mod __sledge;
#[cfg(feature = "net")]
pub mod net;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "rt")]
pub mod runtime;
#[cfg(feature = "signal")]
pub mod signal;
#[cfg(feature = "rt")]
pub mod task;

pub use tokio_original::*;

#[cfg(feature = "macros")]
pub use sledge_tokio_macros::main;
#[cfg(feature = "macros")]
pub use tokio_macros::test;
