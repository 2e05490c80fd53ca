//! The short way of unary calls: one message there and one back, which are complete, without compression. The original's `unary` functions of client and server come here first
//! (`prepare` adds that), and go on as they are where a call is another: where it waits, streams, has a deadline or a limit, or fails.
//!
//! ```text
//!   client: encoder -> SCRATCH -> host -> SCRATCH -> decoder        server: host -> Whole -> decoder, handler, encoder -> Whole -> host
//! ```
//!
//! What comes out is the same either way: messages, metadata, statuses. Only what lies between (boxed bodies, streams, routers, maps of headers that say what all say) is left out.

#[cfg(feature = "channel")]
pub(crate) mod client;
pub(crate) mod message;
#[cfg(feature = "server")]
pub(crate) mod server;
#[cfg(feature = "server")]
pub(crate) mod whole;

#[cfg(feature = "server")]
pub(crate) use server::{take_reply, Service};
