//! A remembered reply, with everything that it rests on.

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};

use super::callees::Version;
use super::key::Digest;
use super::rule::Basis;
use crate::kv::Commit;
use crate::reply::{Content, ReplyHead};

/// RFC 9211: how a cache has handled a request.
pub(super) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// Parts of an entry that are not its reply, about.
const ENTRY_BYTES: usize = 256;
/// Bytes of a version of a callee beside its name, about.
const CALLEE_BYTES: usize = 48;

/// A remembered reply.
#[derive(Debug)]
pub struct Entry {
    /// What it says about itself.
    head: ReplyHead,
    /// Its body.
    pub body: Bytes,
    /// What the run read of the store, versions of keys and of sets of keys; and what it changed there.
    pub store: Commit,
    /// The versions of the functions that it called.
    pub callees: Box<[Version]>,
    /// Of status, head and body.
    pub(super) digest: Digest,
}

/// How a request was answered that did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// From the table.
    Hit,
    /// By the run of an equal request at the same time.
    Collapsed,
}

impl Entry {
    /// That of a run which wrote this.
    pub(super) fn new(head: Option<&ReplyHead>, content: &Content, Basis { store, callees }: Basis, digest: Digest) -> Entry {
        Entry { head: head.cloned().unwrap_or_default(), body: copied(content), store, callees: callees.into(), digest }
    }

    /// What a reply says about itself that was given so.
    #[must_use]
    pub fn head(&self, how: How) -> ReplyHead {
        let mut head = self.head.clone();
        // A cache that has forwarded a request says no `hit` (RFC 9211, section 2.2).
        let status = match how {
            How::Hit if self.changes() => "sledge; hit; detail=replayed",
            How::Hit => "sledge; hit",
            How::Collapsed => "sledge; fwd=miss; collapsed",
        };
        // One that has no room for it says nothing.
        let _ = head.headers.put(CACHE_STATUS, HeaderValue::from_static(status), true);
        head
    }

    /// Whether its run had the same to go by.
    pub(super) fn rests_on(&self, Basis { store, callees }: &Basis) -> bool {
        self.store.expected == store.expected && self.store.listed == store.listed && *self.callees == **callees
    }

    /// Whether its answer depends on the store.
    pub(super) const fn depends(&self) -> bool {
        !(self.store.expected.is_empty() && self.store.listed.is_empty())
    }

    /// Whether its answer comes with changes of the store.
    #[must_use]
    pub const fn changes(&self) -> bool {
        !self.store.changes.is_empty()
    }
}

/// What an entry of these takes up, about.
pub(super) fn bytes(head: Option<&ReplyHead>, content: &Content, Basis { store, callees }: &Basis) -> usize {
    let callees: usize = callees.iter().map(|(name, _)| CALLEE_BYTES + name.len()).sum();
    ENTRY_BYTES + size(content) + store.bytes() + callees + head.map_or(0, head_bytes)
}

fn size(content: &Content) -> usize {
    match content {
        Content::Whole(bytes) => bytes.len(),
        Content::Pieces(pieces) => pieces.0.iter().map(Bytes::len).sum(),
        Content::Stream(_) => 0,
    }
}

/// A copy: what a reply is written to is used again.
fn copied(content: &Content) -> Bytes {
    match content {
        Content::Whole(bytes) => Bytes::copy_from_slice(bytes),
        Content::Pieces(pieces) => pieces.join(),
        Content::Stream(_) => Bytes::new(),
    }
}

fn head_bytes(head: &ReplyHead) -> usize {
    head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 2 * size_of::<Bytes>()).sum()
}
