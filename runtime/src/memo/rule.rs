//! Which runs may be remembered: those whose answer only depends on what a key has and on versions of the store.
//!
//! Each [`Effect`] has a rule. There is no rule for all others, so an effect that is added without one does not compile.

use serde::Serialize;

use crate::host::{Effect, EffectTrace};
use crate::kv::Commit;
use crate::reply::{Content, ReplyHead};

/// Dependences on the store that an entry has, at most.
const READS_MAX: usize = 256;

/// Why a run is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Why {
    /// It read the clock or random numbers.
    Entropy,
    /// It wrote to the log.
    Logged,
    /// It wrote to the store.
    Wrote,
    /// It called another function.
    Called,
    /// Its reply went out while it was written, or has trailers.
    Streamed,
    /// It used files.
    Files,
    /// It reached something outside: another server, a socket, a file.
    External,
    /// It listed keys outside of a transaction, and these lists have no versions.
    Listed,
    /// A read of the store failed.
    ReadFailed,
    /// The store was changed between two of its reads.
    Changed,
    /// It read a store that is another server's (`redis://`): to look at its versions again would be a request to that.
    Remote,
    /// It was refused memory, which another run may get.
    Memory,
    /// It failed.
    Failed,
    /// Its reply is too large for the table, or it read too much of the store.
    Large,
    /// Runs read too many different headers.
    Varies,
}

impl Why {
    /// All of them, in order.
    pub const ALL: [Why; 15] = [
        Why::Entropy,
        Why::Logged,
        Why::Wrote,
        Why::Called,
        Why::Streamed,
        Why::Files,
        Why::External,
        Why::Listed,
        Why::ReadFailed,
        Why::Changed,
        Why::Remote,
        Why::Memory,
        Why::Failed,
        Why::Large,
        Why::Varies,
    ];

    /// Its name in metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Why::Entropy => "entropy",
            Why::Logged => "logged",
            Why::Wrote => "wrote",
            Why::Called => "called",
            Why::Streamed => "streamed",
            Why::Files => "files",
            Why::External => "external",
            Why::Listed => "listed",
            Why::ReadFailed => "read_failed",
            Why::Changed => "changed",
            Why::Remote => "remote",
            Why::Memory => "memory",
            Why::Failed => "failed",
            Why::Large => "large",
            Why::Varies => "varies",
        }
    }

    /// What it means to the function's developer.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Why::Entropy => "read the clock or random numbers; `pure = true` says that its reply does not depend on them",
            Why::Logged => "wrote to the log",
            Why::Wrote => "wrote to the key-value store",
            Why::Called => "called another function",
            Why::Streamed => "sent its reply while it was written, or trailers",
            Why::Files => "used files of a folder",
            Why::External => "reached another server, a socket or a file",
            Why::Listed => "listed keys outside of a transaction; lists have versions with `isolation = \"serializable\"`",
            Why::ReadFailed => "a read of the key-value store failed",
            Why::Changed => "the key-value store was changed between two reads",
            Why::Remote => "read a key-value store in Redis",
            Why::Memory => "was refused memory",
            Why::Failed => "failed",
            Why::Large => "the reply is larger than a quarter of `memo_bytes_max`, or the run read more than 256 keys",
            Why::Varies => "the function's runs read more than 32 different headers",
        }
    }
}

/// How a run has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// What it wrote; none where it failed.
    pub content: Option<&'a Content>,
    /// What it said about that.
    pub head: Option<&'a ReplyHead>,
    /// Whether something comes behind its reply.
    pub has_trailers: bool,
    /// Whether it was refused memory.
    pub was_refused_memory: bool,
    /// Whether its store is another server's.
    pub is_remote: bool,
}

/// What the effect makes of a run; none where it does not matter, or is in the key or among the reads.
const fn rule(effect: Effect, pure: bool) -> Option<Why> {
    match effect {
        // The first two follow from the function and the body, the third from the head.
        Effect::Safe | Effect::Stream | Effect::Head | Effect::KvRead => None,
        // The developer's word, which is looked at again and again.
        Effect::Entropy => {
            if pure {
                None
            } else {
                Some(Why::Entropy)
            }
        }
        Effect::Log => {
            if pure {
                None
            } else {
                Some(Why::Logged)
            }
        }
        Effect::KvWrite => Some(Why::Wrote),
        Effect::Call => Some(Why::Called),
        Effect::Reply => Some(Why::Streamed),
        Effect::Scratch => Some(Why::Files),
        Effect::External => Some(Why::External),
    }
}

/// What a run depended on of the store: in order, each once.
///
/// # Errors
/// When it cannot be remembered.
pub fn judge(trace: &EffectTrace, ended: &Ended<'_>, pure: bool) -> Result<Commit, Why> {
    let refused = Effect::ALL.into_iter().filter(|effect| trace.effects.contains(*effect)).find_map(|effect| rule(effect, pure));
    if let Some(why) = refused {
        return Err(why);
    }
    match ended.content {
        None => return Err(Why::Failed),
        Some(Content::Stream(_)) => return Err(Why::Streamed),
        Some(Content::Whole(_) | Content::Pieces(_)) => {}
    }
    if ended.has_trailers {
        return Err(Why::Streamed);
    }
    if ended.was_refused_memory {
        return Err(Why::Memory);
    }
    if trace.read_failed {
        return Err(Why::ReadFailed);
    }
    let reads = reads(trace)?;
    match reads.expected.is_empty() && reads.listed.is_empty() {
        false if ended.is_remote => Err(Why::Remote),
        _ => Ok(reads),
    }
}

fn reads(trace: &EffectTrace) -> Result<Commit, Why> {
    let mut reads = match &trace.transaction {
        Some(commit) if !commit.changes.is_empty() => return Err(Why::Wrote),
        Some(commit) => Commit { listed: commit.listed.clone(), ..Commit::new(commit.expected.clone(), Vec::new()) },
        None if !trace.listed.is_empty() => return Err(Why::Listed),
        None => Commit::new(trace.read.clone(), Vec::new()),
    };
    reads.expected.sort_unstable();
    reads.expected.dedup();
    reads.listed.sort_unstable();
    if reads.expected.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(Why::Changed);
    }
    if reads.expected.len() + reads.listed.len() > READS_MAX {
        return Err(Why::Large);
    }
    Ok(reads)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::host::{offered, offered_to_components};
    use crate::kv::{BucketKey, BucketName};

    fn judged(trace: &EffectTrace, pure: bool) -> Result<Commit, Why> {
        let content = Content::Whole(Bytes::new());
        let ended =
            Ended { content: Some(&content), head: None, has_trailers: false, was_refused_memory: false, is_remote: false };
        judge(trace, &ended, pure)
    }

    fn doing(effects: &[Effect]) -> EffectTrace {
        let mut trace = EffectTrace::default();
        effects.iter().for_each(|effect| trace.effects.insert(*effect));
        trace
    }

    fn key(name: &str) -> BucketKey {
        BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
    }

    /// Whatever a function can import.
    #[test]
    fn a_run_that_called_any_host_function_that_is_not_known_to_be_repeatable_is_not_remembered() {
        let mut repeatable = 0;
        for function in offered().chain(offered_to_components()) {
            let known = matches!(function.effect, Effect::Safe | Effect::Stream | Effect::Head | Effect::KvRead);
            let trace = doing(&[Effect::Safe, function.effect]);
            assert_eq!(judged(&trace, false).is_ok(), known, "{} {}", function.module, function.name);
            let is_pure = known || matches!(function.effect, Effect::Entropy | Effect::Log);
            assert_eq!(judged(&trace, true).is_ok(), is_pure, "{} {}", function.module, function.name);
            repeatable += usize::from(known);
        }
        assert!(repeatable > 20);
        // What reads random numbers or a clock, by any name, declares that; how exact a clock is does not change.
        for function in offered().chain(offered_to_components()) {
            let has = |part: &str| function.name.contains(part) || function.module.contains(part);
            let (is_random, is_clock) = (has("random"), has("clock"));
            let is_declared = function.effect == Effect::Entropy || !is_random && function.effect == Effect::Safe;
            assert!(!(is_random || is_clock) || is_declared, "{} {}: {:?}", function.module, function.name, function.effect);
        }
    }

    #[test]
    fn what_a_run_read_is_what_it_depends_on_and_what_changed_meanwhile_is_no_dependence() {
        let mut trace = doing(&[Effect::KvRead]);
        trace.read = vec![(key("b"), 2), (key("a"), 0), (key("b"), 2)];
        assert_eq!(judged(&trace, false).unwrap().expected, [(key("a"), 0), (key("b"), 2)]);
        trace.read.push((key("b"), 3));
        assert_eq!(judged(&trace, false), Err(Why::Changed));
        let mut trace = doing(&[Effect::KvRead]);
        trace.read_failed = true;
        assert_eq!(judged(&trace, true), Err(Why::ReadFailed));
        trace.read_failed = false;
        trace.listed.push((BucketName::new(b"b").unwrap(), Box::default()));
        assert_eq!(judged(&trace, false), Err(Why::Listed));
        trace.transaction =
            Some(Commit { listed: vec![(BucketName::new(b"b").unwrap(), 4)], ..Commit::new(Vec::new(), Vec::new()) });
        assert_eq!(judged(&trace, false).unwrap().listed, [(BucketName::new(b"b").unwrap(), 4)]);
        trace.transaction = Some(Commit::new(Vec::new(), vec![(key("a"), crate::kv::Change::Delete)]));
        assert_eq!(judged(&trace, false), Err(Why::Wrote));
    }

    #[test]
    fn how_a_run_has_ended_counts() {
        let content = Content::Whole(Bytes::new());
        let well = Ended { content: Some(&content), head: None, has_trailers: false, was_refused_memory: false, is_remote: true };
        let (nothing, mut reading) = (EffectTrace::default(), doing(&[Effect::KvRead]));
        reading.read.push((key("a"), 1));
        assert!(judge(&nothing, &well, false).is_ok());
        assert_eq!(judge(&reading, &well, false), Err(Why::Remote));
        assert_eq!(judge(&nothing, &Ended { content: None, ..well }, true), Err(Why::Failed));
        assert_eq!(judge(&nothing, &Ended { has_trailers: true, ..well }, true), Err(Why::Streamed));
        assert_eq!(judge(&nothing, &Ended { was_refused_memory: true, ..well }, true), Err(Why::Memory));
        assert_eq!(Why::ALL.map(|why| why as usize), std::array::from_fn(|index| index));
    }
}
