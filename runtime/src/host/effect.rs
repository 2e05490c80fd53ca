//! What host functions do to the world, and what one invocation did.
//!
//! Every host function has an [`Effect`]. An invocation that is watched carries a [`Watch`]: it is asked before each host call, may end the invocation there, and keeps
//! an [`EffectTrace`] of what was read and changed. An invocation that is not watched pays one comparison with null a host call.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{Args, HostFunction};
use crate::kv::{BucketKey, BucketName, Commit};
use crate::txn::footprint::Footprint;

/// What a host function can do to the world. It decides whether invocations may be run, repeated, snapshotted or merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Effect {
    /// The same answer to every invocation of a function, and nothing changes.
    Safe,
    /// Reads or changes what belongs to this invocation and follows from its input: its streams, what it has open, its reply's head, its end. Files are streams too,
    /// once they are open: a call that is [`External`](Effect::External) or [`Scratch`](Effect::Scratch) came before.
    Stream,
    /// Reads what the request says beside its body.
    Head,
    /// Reads what differs from one moment to the next: the clock, random numbers.
    Entropy,
    /// Says something to the operator.
    Log,
    /// Reads the key-value store.
    KvRead,
    /// Writes the key-value store.
    KvWrite,
    /// Calls another function.
    Call,
    /// Begins a reply that goes out while it is written, unless it is held until the invocation is over.
    Reply,
    /// Reads files below a folder that the invocation may change for itself alone, or changes its private copies of them. Files may differ from one moment to the next, but
    /// nothing is left when the invocation is over. What a call of an [`External`](Effect::External) function comes to that works on such a folder; no function
    /// declares it.
    Scratch,
    /// Reaches something outside that cannot be taken back: files, sockets, signals.
    External,
}

impl Effect {
    /// All of them, in order.
    pub const ALL: [Effect; Effect::External as usize + 1] = [
        Effect::Safe,
        Effect::Stream,
        Effect::Head,
        Effect::Entropy,
        Effect::Log,
        Effect::KvRead,
        Effect::KvWrite,
        Effect::Call,
        Effect::Reply,
        Effect::Scratch,
        Effect::External,
    ];
}

/// A set of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects(u16);

impl Effects {
    /// That one only.
    pub(super) const fn of(effect: Effect) -> Effects {
        Effects(1 << effect as u8)
    }

    /// And that one.
    pub(super) const fn and(self, effect: Effect) -> Effects {
        Effects(self.0 | 1 << effect as u8)
    }

    /// And those.
    #[must_use]
    pub const fn with(self, others: Effects) -> Effects {
        Effects(self.0 | others.0)
    }

    /// But not that one.
    #[must_use]
    pub const fn without(self, effect: Effect) -> Effects {
        Effects(self.0 & !(1 << effect as u8))
    }

    /// Whether that one is in it.
    #[must_use]
    pub const fn contains(self, effect: Effect) -> bool {
        self.0 & 1 << effect as u8 != 0
    }

    /// Adds one.
    pub const fn insert(&mut self, effect: Effect) {
        self.0 |= 1 << effect as u8;
    }
}

/// A part of a request's head.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeadField {
    /// The method.
    Method,
    /// Path and query.
    Target,
    /// The header of that name, also where there is none.
    Header(String),
    /// All headers.
    Headers,
    /// The trailer of that name, also where there is none.
    Trailer(String),
}

/// What one invocation has read and changed.
#[derive(Clone, Debug, Default)]
pub struct EffectTrace {
    /// The effects of the host functions that it called.
    pub effects: Effects,
    /// What it read of its request's head.
    pub head: BTreeSet<HeadField>,
    /// The keys that it read, with the version that each had (zero for none), in order.
    pub read: Vec<(BucketKey, u64)>,
    /// The buckets of which it listed keys, with their prefix.
    pub listed: Vec<(BucketName, Box<[u8]>)>,
    /// The same outside of a transaction, with the version that each set of keys had, in order.
    pub sets: Vec<(BucketName, u64)>,
    /// The keys that it changed, in order.
    pub written: Vec<BucketKey>,
    /// Whether the store failed in what was asked of it: then what it depended on is not known.
    pub read_failed: bool,
    /// Whether its transaction has put off calls whose reply is not wanted, which begin now.
    pub has_sent: bool,
    /// What its transaction has read and changed, where it had one of its own and that was made.
    pub transaction: Option<Commit>,
    /// What its run has come to in the store, where that may stand for another run.
    pub footprint: Option<Arc<Footprint>>,
}

/// Why a host call is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What the function would do.
    pub why: &'static str,
    /// Whether the operator may accept it.
    pub acceptable: bool,
}

/// Says what is wrong with a host call, of which the effect is that.
pub type Guard = Box<dyn Fn(&HostFunction, Effect, &Args) -> Option<Objection> + Send + Sync>;

/// What watches an invocation.
#[derive(Default)]
pub struct Watch {
    guard: Option<Guard>,
    /// What it objected to, and in which host function; then the invocation is over.
    pub objection: Option<(&'static str, Objection)>,
    /// What the invocation did so far.
    pub trace: EffectTrace,
    /// How many bytes its footprint may have, if that is kept.
    pub footprint_bytes_max: Option<usize>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("objection", &self.objection).field("trace", &self.trace).finish_non_exhaustive()
    }
}

impl Watch {
    /// One that may end the invocation.
    #[must_use]
    pub fn guarded(guard: Guard) -> Watch {
        Watch { guard: Some(guard), ..Watch::default() }
    }

    /// One that keeps the run's footprint, if that has so many bytes at most.
    #[must_use]
    pub fn keeping(footprint_bytes_max: usize) -> Watch {
        Watch { footprint_bytes_max: Some(footprint_bytes_max), ..Watch::default() }
    }

    /// Whether a call may be made, which has that effect.
    pub(super) fn admits(&mut self, function: &'static HostFunction, effect: Effect, args: &Args) -> bool {
        if let Some(objection) = self.guard.as_ref().and_then(|guard| guard(function, effect, args)) {
            self.objection = Some((function.name, objection));
            return false;
        }
        self.trace.effects.insert(effect);
        true
    }
}
