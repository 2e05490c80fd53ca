//! Write functions for Sledge in Rust.
//!
//! ```
//! #[sledge::function]
//! fn shout(text: &str) -> String {
//!     text.to_uppercase()
//! }
//!
//! assert_eq!(shout("hello"), "HELLO");
//! ```
//!
//! with `crate-type = ["cdylib", "rlib"]` in its `[lib]`, compiled by `awsm compile FOLDER`. Such a function is a *reactor*: a library that is
//! called for each request, each time in a fresh copy of its initial state. What comes in is a [`FromRequest`]: bytes, text,
//! [`Json`], or the whole [`Request`]; what goes out is an [`IntoReply`]: the same, a [`Reply`] with status and headers, one that goes out while it is written ([`Streaming`]), or a `Result`
//! of one, whose error is written to the function's log while the client is told that the function failed.
//!
//! Beside that there are the key-value store of the function's tenant ([`kv`]), other functions of that tenant ([`call`]), other servers ([`fetch`]), and messages for the
//! server's log ([`log`], [`phase`]). All of it works natively, too, where everything is in this thread's memory: functions are tested by plain
//! `cargo test`, and `testing` looks at what they did.
//!
//! A *command* needs nothing of this crate: it is a program whose `main` reads standard input and writes standard output.

pub mod call;
pub mod fetch;
mod function;
mod json;
pub mod kv;
mod note;
mod reply;
mod request;
mod sys;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

#[doc(hidden)]
pub use function::handle;
pub use json::Json;
pub use note::{Level, log, phase};
pub use reply::{Body, Failed, IntoReply, Outgoing, Reply, Streaming};
pub use request::{FromRequest, Head, Refused, Request, trailer};
pub use sledge_sdk_macros::function;
