//! What the replacements of tokio and tonic share: the host's functions, the entry points of a function, and where it waits.
//!
//! A function has one thread. Its `main` runs in [`entry`]'s `init-component` up to where it serves; what it leaves is what each request
//! begins with. `sledge_handle` answers one request. Both wait in [`park`] alone, for clocks, the request's body and the calls under way at once.
//!
//! Outside of WebAssembly there is [`rows`] alone.

pub mod rows;

#[cfg(target_family = "wasm")]
pub mod call;
#[cfg(target_family = "wasm")]
pub mod entry;
#[cfg(target_family = "wasm")]
pub mod exchange;
#[cfg(target_family = "wasm")]
mod once;
#[cfg(target_family = "wasm")]
pub mod park;
#[cfg(target_family = "wasm")]
mod stdout;
#[cfg(target_family = "wasm")]
mod sys;

#[cfg(target_family = "wasm")]
pub use sys::{Errno, E2BIG, EAGAIN, ELOOP, EMFILE, ENOENT, ENOTSUP};
