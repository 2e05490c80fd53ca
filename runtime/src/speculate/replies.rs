//! What functions have replied to their callers, to stand for runs (speculation.md, S10): the reply to an argument, with all that it rests on.
//!
//! Only replies of runs are learned that are committed with their callers, and that would be the same wherever all that they rest on is so still. A reply is never predicted: either it stands for the run, and
//! its caller's commit proves it, or the function runs.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::Of;
use super::bounded::Weigh;
use super::functions::Functions;
use crate::memo::callees::Version;
use crate::memo::key::Digest;
use crate::txn::footprint::Footprint;

/// Bytes of a reply and of all that it rests on. What has more is not kept.
pub const REPLY_BYTES_MAX: usize = 64 << 10;

/// What a run has replied, and what that rests on.
#[derive(Debug)]
pub struct Known {
    /// The reply.
    pub reply: Bytes,
    /// What it has read and changed of the store, with all that it has called.
    pub footprint: Arc<Footprint>,
    /// The functions that it has called, and those that these have called, each with its version.
    pub callees: Box<[Version]>,
    /// How many functions waited for it: there is a limit to that.
    pub depth: u32,
}

/// What functions have replied.
#[derive(Debug)]
pub struct Replies {
    /// With the number of replies that have stood for runs.
    functions: Functions<Arc<Known>, u64>,
}

impl Known {
    /// Bytes of it and of all that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let callees = self.callees.iter().map(|(name, _)| size_of::<Version>() + name.len());
        size_of::<Known>() + self.reply.len() + self.footprint.bytes() + callees.sum::<usize>()
    }
}

impl Weigh for Arc<Known> {
    fn heap_bytes(&self) -> usize {
        self.bytes()
    }
}

impl Replies {
    /// Nothing yet, and room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Replies {
        Replies { functions: Functions::new(bytes_max) }
    }

    /// What may stand for a run of a version of a function with the argument of that key, if what it rests on is so still. To be asked once for each call.
    pub fn take(&mut self, version: u64, argument: &Digest) -> Option<Arc<Known>> {
        let function = self.functions.get_mut(version)?;
        let known = Arc::clone(function.known.get_mut(argument)?);
        function.caution.takes().then_some(known)
    }

    /// Whether something would be taken now.
    #[must_use]
    pub fn has(&self, version: u64, argument: &Digest) -> bool {
        let function = self.functions.peek(version);
        function.is_some_and(|function| function.known.peek(argument).is_some() && !function.caution.pauses())
    }

    /// A reply has stood for a run, and its caller is committed.
    pub fn was_right(&mut self, version: u64) {
        if let Some(function) = self.functions.get_mut(version) {
            function.more += 1;
            function.caution.was_right();
        }
    }

    /// What such a reply rests on is not so any more.
    pub fn was_wrong(&mut self, version: u64, argument: &Digest) {
        self.functions.change(version, |function| {
            function.known.remove(argument);
            function.caution.was_wrong();
        });
    }

    /// Learns what a run has replied that was committed.
    pub fn learn(&mut self, of: Of<'_>, argument: Digest, known: Arc<Known>) {
        self.functions.learn(of, |function| {
            function.known.remove(&argument);
            function.known.change(argument, || known, |_| ());
        });
    }

    /// Drops what is known of a version of a function.
    pub fn forget(&mut self, version: u64) {
        self.functions.forget(version);
    }

    /// Bytes of all of it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.functions.bytes()
    }

    /// Drops what was not used for longest; false where there is nothing.
    pub fn evict(&mut self) -> bool {
        self.functions.evict()
    }

    /// All functions, for people: what they have replied is not shown.
    #[must_use]
    pub fn known(&self) -> Vec<KnownReplies> {
        let known = self.functions.iter().map(|(version, function)| KnownReplies {
            function: function.name.to_string(),
            version: *version,
            replies: function.known.len(),
            bytes: function.bytes(),
            skipped: function.more,
        });
        let mut known: Vec<_> = known.collect();
        known.sort_unstable_by(|one, other| (&one.function, one.version).cmp(&(&other.function, other.version)));
        known
    }
}

/// What is known of a function's replies.
#[derive(Clone, Debug, Serialize)]
pub struct KnownReplies {
    /// Its name.
    pub function: String,
    /// The number of its version.
    pub version: u64,
    /// Arguments to which a reply is known.
    pub replies: usize,
    /// Bytes of all that.
    pub bytes: usize,
    /// Replies that have stood for runs.
    pub skipped: u64,
}

#[cfg(test)]
mod tests {
    use super::super::functions::FUNCTION_PART;
    use super::*;
    use crate::txn::{Isolation, Outside, Transaction};

    const F: Of<'_> = Of { name: "f", version: 7 };

    fn known(bytes: usize) -> Arc<Known> {
        let caller = Transaction::begin(&Isolation { contention: Arc::default(), outside: Outside::Refused });
        let footprint = Transaction::join(&caller).footprint(REPLY_BYTES_MAX).unwrap();
        Arc::new(Known { reply: vec![0; bytes].into(), footprint: Arc::new(footprint), callees: Box::default(), depth: 1 })
    }

    fn key(number: u64) -> Digest {
        *blake3::hash(&number.to_le_bytes()).as_bytes()
    }

    #[test]
    fn a_reply_is_that_to_the_argument_by_that_version_and_a_wrong_one_is_gone() {
        let mut replies = Replies::new(1 << 20);
        assert!(replies.take(7, &key(1)).is_none() && !replies.has(7, &key(1)));
        replies.learn(F, key(1), known(1));
        replies.learn(F, key(2), known(2));
        replies.learn(F, key(1), known(3));
        let mut taken = |number| replies.take(7, &key(number)).map(|known| known.reply.len());
        assert_eq!([taken(1), taken(2), taken(3)], [Some(3), Some(2), None], "the last one counts");
        assert!(replies.take(8, &key(1)).is_none());
        replies.was_right(7);
        replies.was_wrong(7, &key(1));
        assert!(!replies.has(7, &key(1)) && !replies.has(7, &key(2)), "it is not taken for a while");
        let paused = (0..100).take_while(|_| replies.take(7, &key(2)).is_none()).count();
        assert!((1..10).contains(&paused) && replies.has(7, &key(2)), "{paused}");
        assert_eq!((replies.known()[0].replies, replies.known()[0].skipped), (1, 1));
        replies.forget(7);
        assert_eq!((replies.bytes(), replies.known().len()), (0, 0));
        replies.was_wrong(7, &key(2));
        assert_eq!(replies.bytes(), 0);
    }

    #[test]
    fn the_bounds_hold_whatever_comes_and_a_function_leaves_room_for_others() {
        for seed in 0..10 {
            let (mut random, mut replies) = (fastrand::Rng::with_seed(seed), Replies::new(200_000));
            for _ in 0..3_000 {
                let (version, argument) = (random.u64(..12), key(random.u64(..200)));
                match random.u8(..20) {
                    0 => replies.forget(version),
                    1 => _ = replies.evict(),
                    2..6 => _ = replies.take(version, &argument),
                    6 => replies.was_wrong(version, &argument),
                    _ => replies.learn(Of { name: "f", version }, argument, known(random.usize(..4_000))),
                }
                assert!(replies.bytes() <= 200_000, "seed {seed}: {} bytes", replies.bytes());
                assert!(replies.functions.iter().all(|(_, of)| of.known.bytes() <= 200_000 / FUNCTION_PART), "seed {seed}");
            }
            while replies.evict() {}
            assert_eq!(replies.bytes(), 0, "seed {seed}");
        }
    }
}
