//! What a function answers, from its sandbox to the client or the function that asked.
//!
//! ```text
//!   guest --> ReplyBytes | Writer --> Reply { head, content: whole | stream } --ReplyTo--> Answer --> connection | caller's host call
//! ```
//!
//! * [`bytes`]: what was written, and the buffers for it; [`stream`]: what goes out while it is written; [`head`]: what is said about it;
//! * [`answer`]: the way from the worker to where the reply is waited for, until the deadline; [`record`]: what is known of the invocation besides.
//!
//! Knows neither host functions nor HTTP's connections: both read and write what is here.

pub mod answer;
pub mod bytes;
pub mod head;
pub mod record;
pub mod stream;

use std::collections::VecDeque;
use std::time::Duration;

use ::bytes::Bytes;

use crate::outcome::Failure;

pub use answer::{Answer, ReplyTo, channel};
pub use bytes::{BUFFER_BYTES_MIN, Buffers, ReplyBytes, ReplyPiece};
pub use head::{Fields, ReplyHead};
pub use record::{Parent, Record};
pub use stream::{Pipe, Refused, Stream, Unfinished, Writer};

/// What a function answers.
#[derive(Debug)]
pub enum Content {
    /// All of it.
    Whole(Bytes),
    /// The same of a long one.
    Pieces(Box<Pieces>),
    /// What it writes from now on; it is not over.
    Stream(Stream),
}

impl Content {
    /// All that is there, as one piece: nothing of a stream.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Content::Whole(bytes) => bytes,
            Content::Pieces(pieces) => pieces.join(),
            Content::Stream(_) => Bytes::new(),
        }
    }
}

/// The pieces of a long reply, none of which is empty.
#[derive(Debug)]
pub struct Pieces(pub VecDeque<Bytes>);

impl Pieces {
    /// All of them as one.
    #[must_use]
    pub fn join(&self) -> Bytes {
        let mut all = Vec::with_capacity(self.0.iter().map(Bytes::len).sum());
        self.0.iter().for_each(|piece| all.extend_from_slice(piece));
        Bytes::from(all)
    }
}

/// How an invocation ended, or how its reply begins: the same for a client and for a function that called.
#[derive(Debug)]
pub struct Reply {
    /// What the function wrote, or why there is nothing.
    pub result: Result<Content, Failure>,
    /// What the function said about its reply.
    pub head: Option<Box<ReplyHead>>,
    /// What it says behind what it wrote; of a stream what is known when it begins, all of it is at its end.
    pub trailers: Option<Box<Fields>>,
    /// Time from arrival until a worker took it.
    pub queued: Duration,
    /// Time from then until it was over, getting a sandbox included.
    pub ran: Duration,
    /// What else is known of it.
    pub record: Record,
}
