//! Which runs may be remembered: those whose answer only depends on what a key has and on versions of the store.
//!
//! What a run has called is a part of it ([`Part`]). Each [`Effect`] has a rule. There is no rule for all others, so an effect that is added without one does not compile.

use serde::Serialize;

use super::callees::{Part, Version};
use crate::host::{Effect, EffectTrace, Effects};
use crate::kv::{BucketKey, Commit};
use crate::reply::{Content, ReplyHead};

/// Keys that an entry depends on and changes, and versions of functions, at most.
const KEYS_MAX: usize = 256;

/// Why a run is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Why {
    /// It read the clock or random numbers.
    Entropy,
    /// It wrote to the log.
    Logged,
    /// It wrote to the store outside of a transaction.
    Wrote,
    /// It changed a key that it had read: what it has read is not there any more.
    Updated,
    /// It called another function, and that cannot be repeated: the call failed, its reply was not waited for, or an instance is kept.
    Called,
    /// Its reply went out while it was written, or has trailers.
    Streamed,
    /// It used files.
    Files,
    /// It reached something outside: another server, a socket, a file.
    External,
    /// The store failed in what it asked of it.
    ReadFailed,
    /// The store was changed between two of its reads, or a function that it called was deployed between two calls.
    Changed,
    /// It was refused memory, which another run may get.
    Memory,
    /// It failed.
    Failed,
    /// Its reply is too large for the table, or it used too many keys or functions.
    Large,
    /// Runs read too many different headers.
    Varies,
}

impl Why {
    /// All of them, in order.
    pub const ALL: [Why; 14] = [
        Why::Entropy,
        Why::Logged,
        Why::Wrote,
        Why::Updated,
        Why::Called,
        Why::Streamed,
        Why::Files,
        Why::External,
        Why::ReadFailed,
        Why::Changed,
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
            Why::Updated => "updated",
            Why::Called => "called",
            Why::Streamed => "streamed",
            Why::Files => "files",
            Why::External => "external",
            Why::ReadFailed => "read_failed",
            Why::Changed => "changed",
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
            Why::Wrote => {
                "wrote to the key-value store outside of a transaction; with `isolation = \"serializable\"` writes can be made again"
            }
            Why::Updated => "changed a key that it had read, so that its next run reads something else",
            Why::Called => "called a function without waiting for its reply, one that failed, or one that keeps its instance",
            Why::Streamed => "sent its reply while it was written, or trailers",
            Why::Files => "used files of a folder",
            Why::External => "reached another server, a socket or a file",
            Why::ReadFailed => "an operation on the key-value store failed",
            Why::Changed => {
                "the key-value store was changed between two reads, or a function was deployed between two calls of it"
            }
            Why::Memory => "was refused memory",
            Why::Failed => "failed",
            Why::Large => {
                "the reply is larger than a quarter of `memo_bytes_max`, or the run used more than 256 keys and functions"
            }
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
    /// What the functions did that it called.
    ///
    /// # Errors
    /// Why it cannot be repeated on their account.
    pub called: Result<&'a [Part], Why>,
    /// Whether it was ended since its client had gone.
    pub is_cancelled: bool,
}

/// What an answer rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Basis {
    /// What was read of the store, in order and each once, and what was changed there.
    pub store: Commit,
    /// The versions of the functions that were called, in order and each once.
    pub callees: Vec<Version>,
}

/// What the effect makes of a run; none where it does not matter, or is in the key, among the reads or in the transaction.
const fn rule(effect: Effect, pure: bool, is_transaction: bool) -> Option<Why> {
    match effect {
        // The first two follow from the function and the body, the third from the head. What was called has rules of its own.
        Effect::Safe | Effect::Stream | Effect::Head | Effect::KvRead | Effect::Call => None,
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
        // What a transaction has written is a part of its commit, and of what is kept.
        Effect::KvWrite => {
            if is_transaction {
                None
            } else {
                Some(Why::Wrote)
            }
        }
        Effect::Reply => Some(Why::Streamed),
        Effect::Scratch => Some(Why::Files),
        Effect::External => Some(Why::External),
    }
}

/// Why a run cannot be remembered, whatever it does from now on, or may change something.
#[must_use]
pub fn refused(trace: &EffectTrace, pure: bool) -> Option<Why> {
    why(trace.effects, pure, false)
}

pub(super) fn why(effects: Effects, pure: bool, is_transaction: bool) -> Option<Why> {
    let done = Effect::ALL.into_iter().filter(|effect| effects.contains(*effect));
    done.into_iter().find_map(|effect| rule(effect, pure, is_transaction))
}

/// What a run depended on, and what it changed of the store.
///
/// Versions that a transaction has for its own writes are in none of that. They are counted from one in each transaction, so that a run of an equal request is told the same.
///
/// # Errors
/// When it cannot be remembered.
pub fn judge(trace: &EffectTrace, ended: &Ended<'_>, pure: bool) -> Result<Basis, Why> {
    let parts = ended.called?;
    if let Some(why) = why(effects(trace, parts), pure, trace.transaction.is_some()) {
        return Err(why);
    }
    ended_in_order(trace, ended)?;
    let basis = basis(trace, parts)?;
    let Commit { expected, listed, changes, .. } = &basis.store;
    let is_read = |key: &BucketKey| expected.binary_search_by(|(read, _)| read.cmp(key)).is_ok();
    if changes.iter().any(|(key, _)| is_read(key)) {
        return Err(Why::Updated);
    }
    if expected.len() + listed.len() + changes.len() + basis.callees.len() > KEYS_MAX {
        return Err(Why::Large);
    }
    Ok(basis)
}

/// What a run did that another one has called, as a part of that. `joined`: whether it was a part of its transaction, too.
///
/// # Errors
/// When its caller cannot be remembered on its account.
pub fn part(callee: Version, trace: &EffectTrace, ended: &Ended<'_>, (pure, joined): (bool, bool)) -> Result<Part, Why> {
    let parts = ended.called?;
    ended_in_order(trace, ended)?;
    let mut effects = effects(trace, parts);
    if pure {
        // The word of its own developer.
        effects = effects.without(Effect::Entropy).without(Effect::Log);
    }
    let Basis { store, callees } = basis(trace, parts)?;
    if store.expected.len() + store.listed.len() + callees.len() > KEYS_MAX {
        return Err(Why::Large);
    }
    match (joined, store.changes.is_empty()) {
        (true, _) => Ok(Part { callee, effects, store: Commit::default(), callees }),
        (false, true) => Ok(Part { callee, effects, store, callees }),
        (false, false) => Err(Why::Wrote),
    }
}

/// What a run did, with all that it has called.
fn effects(trace: &EffectTrace, parts: &[Part]) -> Effects {
    parts.iter().fold(trace.effects, |effects, part| effects.with(part.effects))
}

fn ended_in_order(trace: &EffectTrace, ended: &Ended<'_>) -> Result<(), Why> {
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
    if trace.has_sent {
        return Err(Why::Called);
    }
    Ok(())
}

fn basis(trace: &EffectTrace, parts: &[Part]) -> Result<Basis, Why> {
    let mut store = match &trace.transaction {
        Some(commit) => commit.clone(),
        None => Commit { listed: trace.sets.clone(), ..Commit::new(trace.read.clone(), Vec::new()) },
    };
    let mut callees = Vec::new();
    for part in parts {
        store.expected.extend_from_slice(&part.store.expected);
        store.listed.extend_from_slice(&part.store.listed);
        callees.push(part.callee.clone());
        callees.extend_from_slice(&part.callees);
    }
    in_order(&mut store.expected)?;
    in_order(&mut store.listed)?;
    in_order(&mut callees)?;
    Ok(Basis { store, callees })
}

/// Sorts them, each once.
///
/// # Errors
/// When one of them had two versions.
fn in_order<T: Ord>(versions: &mut Vec<(T, u64)>) -> Result<(), Why> {
    versions.sort_unstable();
    versions.dedup();
    if versions.windows(2).any(|two| two[0].0 == two[1].0) { Err(Why::Changed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::host::{offered, offered_to_components};
    use crate::kv::{BucketName, Change};

    fn judged(trace: &EffectTrace, pure: bool) -> Result<Commit, Why> {
        let content = Content::Whole(Bytes::new());
        judge(trace, &well(&content), pure).map(|basis| basis.store)
    }

    fn well(content: &Content) -> Ended<'_> {
        Ended {
            content: Some(content),
            head: None,
            has_trailers: false,
            was_refused_memory: false,
            called: Ok(&[]),
            is_cancelled: false,
        }
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
            let known = matches!(function.effect, Effect::Safe | Effect::Stream | Effect::Head | Effect::KvRead | Effect::Call);
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
        let bucket = BucketName::new(b"b").unwrap();
        trace.sets = vec![(bucket.clone(), 3), (bucket.clone(), 3)];
        assert_eq!(judged(&trace, false).unwrap().listed, [(bucket.clone(), 3)]);
        trace.sets.push((bucket.clone(), 4));
        assert_eq!(judged(&trace, false), Err(Why::Changed));
        trace.transaction = Some(Commit { listed: vec![(bucket.clone(), 4)], ..Commit::new(Vec::new(), Vec::new()) });
        assert_eq!(judged(&trace, false).unwrap().listed, [(bucket, 4)]);
    }

    #[test]
    fn what_a_transaction_wrote_can_be_made_again_unless_it_had_read_it() {
        let mut trace = doing(&[Effect::KvRead, Effect::KvWrite]);
        assert_eq!(judged(&trace, true), Err(Why::Wrote), "outside of one");
        let changes = vec![(key("b"), Change::Delete), (key("c"), Change::Add(1))];
        let commit = Commit::new(vec![(key("z"), 1), (key("a"), 7)], changes.clone());
        trace.transaction = Some(commit);
        assert_eq!(judged(&trace, false), Ok(Commit::new(vec![(key("a"), 7), (key("z"), 1)], changes.clone())));
        trace.transaction = Some(Commit::new(vec![(key("z"), 1), (key("c"), 0), (key("a"), 7)], changes));
        assert_eq!(judged(&trace, false), Err(Why::Updated));
        let many = (0..=KEYS_MAX).map(|number| (key(&number.to_string()), Change::Delete)).collect();
        trace.transaction = Some(Commit::new(Vec::new(), many));
        assert_eq!(judged(&trace, false), Err(Why::Large));
    }

    #[test]
    fn what_a_run_called_is_a_part_of_it() {
        let content = Content::Whole(Bytes::new());
        let mut called = doing(&[Effect::KvRead, Effect::Entropy]);
        called.read = vec![(key("a"), 1)];
        let g: Version = ("g".into(), 7);
        let of = |trace: &EffectTrace, pure, joined| part(g.clone(), trace, &well(&content), (pure, joined));
        let mut calling = doing(&[Effect::Call, Effect::KvRead]);
        calling.read = vec![(key("b"), 2)];
        let judged = |parts: &[Part], pure| judge(&calling, &Ended { called: Ok(parts), ..well(&content) }, pure);
        let one = of(&called, false, false).unwrap();
        assert_eq!(judged(std::slice::from_ref(&one), false), Err(Why::Entropy));
        let store = Commit::new(vec![(key("a"), 1), (key("b"), 2)], Vec::new());
        let whole = Ok(Basis { store, callees: vec![g.clone()] });
        assert_eq!(judged(std::slice::from_ref(&one), true), whole, "the caller's developer says so");
        assert_eq!(judged(&[of(&called, true, false).unwrap()], false), whole, "or the callee's");
        let joined = of(&called, true, true).unwrap();
        assert!(joined.store.expected.is_empty(), "its caller's transaction has that");

        let later = Part { callee: ("g".into(), 8), ..one.clone() };
        assert_eq!(judged(&[one.clone(), later], true), Err(Why::Changed));
        called.read = vec![(key("a"), 2)];
        assert_eq!(judged(&[one.clone(), of(&called, true, false).unwrap()], true), Err(Why::Changed));
        let outer = Part { callee: ("h".into(), 3), callees: vec![g.clone()], ..one };
        assert_eq!(judged(&[outer], true).unwrap().callees, [g.clone(), ("h".into(), 3)]);

        called.transaction = Some(Commit::new(Vec::new(), vec![(key("a"), Change::Delete)]));
        assert_eq!(of(&called, true, false).unwrap_err(), Why::Wrote, "in a transaction of its own");
        assert!(of(&called, true, true).is_ok());
        calling.has_sent = true;
        assert_eq!(judge(&calling, &well(&content), true), Err(Why::Called), "behind its commit");
        called.read_failed = true;
        assert_eq!(of(&called, true, true).unwrap_err(), Why::ReadFailed);
        let failed = Ended { content: None, ..well(&content) };
        assert_eq!(part(g, &doing(&[]), &failed, (true, true)).unwrap_err(), Why::Failed);
    }

    #[test]
    fn how_a_run_has_ended_counts() {
        let content = Content::Whole(Bytes::new());
        let well = well(&content);
        let nothing = EffectTrace::default();
        assert!(judge(&nothing, &well, false).is_ok());
        assert_eq!(judge(&nothing, &Ended { called: Err(Why::Called), ..well }, true), Err(Why::Called));
        assert_eq!(judge(&nothing, &Ended { content: None, ..well }, true), Err(Why::Failed));
        assert_eq!(judge(&nothing, &Ended { has_trailers: true, ..well }, true), Err(Why::Streamed));
        assert_eq!(judge(&nothing, &Ended { was_refused_memory: true, ..well }, true), Err(Why::Memory));
        assert_eq!(Why::ALL.map(|why| why as usize), std::array::from_fn(|index| index));
    }
}
