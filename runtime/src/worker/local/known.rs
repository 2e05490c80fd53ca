//! Calls whose replies are known: no callee runs. The caller's transaction [recalls](crate::txn::footprint) what a run has come to with the same argument, and the caller's commit proves that a run now would come to the same;
//! otherwise the caller runs again, and makes all of its calls. And what runs leave for that.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Worker;
use super::ahead::{Call, INPUT_BYTES_MAX, whole};
use super::calls::watched_call;
use crate::host::{EffectTrace, Effects};
use crate::invoke::Invocation;
use crate::invoke::ahead::account::Entry;
use crate::invoke::caller::Caller;
use crate::invoke::function::Function;
use crate::invoke::work::Started;
use crate::memo::callees::Part;
use crate::outcome::Failure;
use crate::reply::{Answer, Content, Record, Reply};
use crate::speculate::replies::{Known, REPLY_BYTES_MAX};
use crate::speculate::sequence::CALLS_MAX;
use crate::speculate::{Of, Speculation};
use crate::txn::{Transaction, Verdict};

/// What is known about what a run has read, now that it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// It was there, and the run counts.
    Committed,
    /// It was there, and the run has failed.
    Failed,
    /// It was not: the run is to be made again.
    Stale,
    /// Nothing, and the run has come to no end: perhaps since what it has read was not there.
    Endless,
    /// Nothing.
    Nothing,
}

impl Proof {
    /// That of a run that has ended so. `is_settled`: whether its transaction was asked what comes of that.
    pub(super) const fn of(result: &Result<(), Failure>, is_settled: bool) -> Proof {
        match result {
            Ok(()) => Proof::Committed,
            Err(Failure::Conflict) => Proof::Stale,
            Err(Failure::Deadline | Failure::CpuLimit) => Proof::Endless,
            Err(Failure::OutcomeUnknown | Failure::NotCommitted(_)) => Proof::Nothing,
            Err(_) if is_settled => Proof::Failed,
            Err(_) => Proof::Nothing,
        }
    }

    /// Learns what that says of replies that have stood for runs, and of those of runs. `transaction` is the outermost caller's.
    pub(super) fn learn(self, entry: &Entry, transaction: &Transaction, speculation: &Speculation) {
        match entry {
            Entry::Replied { function, argument, known } if transaction.leaves(&known.footprint) => {
                speculation.replied(Of { name: function.name(), version: function.version }, *argument, Arc::clone(known));
            }
            Entry::Skipped { version, argument, known } => {
                let is_wrong = match self {
                    Proof::Committed | Proof::Failed => return speculation.call_skipped(*version),
                    Proof::Stale => transaction.is_spoiled_by(&known.footprint),
                    Proof::Endless => true,
                    Proof::Nothing => false,
                };
                if is_wrong {
                    speculation.call_skipped_wrongly(*version, argument);
                }
            }
            _ => {}
        }
    }
}

/// Learns what the outermost run and its callees have left. Where another's commit decides about the run, that is when this is known.
pub(super) fn learn(mut left: Vec<Entry>, proof: Proof, transaction: &Transaction, speculation: &Arc<Speculation>) {
    let learn_all = |left: Vec<Entry>, proof: Proof, transaction: &Transaction, speculation: &Speculation| {
        for entry in left {
            proof.learn(&entry, transaction, speculation);
            entry.learn();
        }
    };
    if left.is_empty() || !matches!(proof, Proof::Committed | Proof::Failed) {
        return learn_all(left, proof, transaction, speculation);
    }
    // What it has changed is known now: later the commit has taken it.
    left.retain(|entry| if let Entry::Replied { known, .. } = entry { transaction.leaves(&known.footprint) } else { true });
    let speculation = Arc::clone(speculation);
    let then = transaction.when_decided(Box::new(move |verdict, outermost| match verdict {
        Verdict::Committed => learn_all(left, proof, outermost, &speculation),
        Verdict::Stale => {
            left.retain(Entry::is_fact);
            learn_all(left, Proof::Stale, outermost, &speculation);
        }
    }));
    if let Some(now) = then {
        now(Verdict::Committed, transaction);
    }
}

impl Worker {
    /// What answers a call in place of a run, where the reply is known, and the caller has seen nothing otherwise than the run.
    pub(super) fn skip(&self, started: &mut Started, call: &Call<'_>, ordinal: usize) -> Option<Answer> {
        let function = Arc::clone(&started.invocation.function);
        let speculation = function.ahead.as_ref().filter(|_| function.skips)?;
        if ordinal >= CALLS_MAX || call.input.len() > INPUT_BYTES_MAX || started.invocation.runs_again() {
            return None;
        }
        let callee = function.neighbours.find(call.name).ok()?;
        let argument = speculation.argument_key(callee.name(), call.input);
        let known = speculation.reply(callee.version, &argument)?;
        let context = started.driver.context();
        let (transaction, space) = (Arc::clone(context.transaction()?), context.kv().cloned());
        if !stands(&known, &callee, started.calls_as()) || !transaction.recall(&known.footprint, space.as_ref()) {
            return None;
        }
        if let Some(tells) = watched_call(started, true) {
            // It is a part of its caller's transaction.
            let (effects, store, callees) = (Effects::default(), Default::default(), known.callees.to_vec());
            tells.tell(Ok(Part { callee: callee.callee(), effects, store, callees }));
        }
        started.account()?.put(Entry::Skipped { version: callee.version, argument, known: Arc::clone(&known) });
        let (result, record) = (Ok(Content::Whole(known.reply.clone())), Record::default());
        let reply = Reply { result, head: None, trailers: None, queued: Duration::ZERO, ran: Duration::ZERO, record };
        Some(reply.into())
    }
}

/// Whether a callee need not be begun with its caller, since its reply is known.
pub(super) fn is_known(caller: &Function, callee: &Function, argument: &[u8]) -> bool {
    let speculation = caller.ahead.as_ref().filter(|_| caller.skips);
    speculation.is_some_and(|known| known.has_reply(callee.version, &known.argument_key(callee.name(), argument)))
}

/// Whether a run would reply that now, wherever the store is as it was: it would reach the same versions of functions, and come to no limit of chains of these.
fn stands(known: &Known, callee: &Function, caller: &Caller) -> bool {
    let is_same = |(name, version): &(Arc<str>, u64)| {
        let found = callee.neighbours.find(name);
        found.is_ok_and(|found| found.version == *version && !caller.is_below(found.number))
    };
    let may_call = caller.depth() <= known.depth && caller.may_call(callee.number, callee.cycles_max());
    may_call && callee.can_be_dropped() && known.callees.iter().all(is_same)
}

/// Leaves the reply of a run that a function has called, to be known when its caller is committed, if it would be the same again.
pub(super) fn leave_reply(invocation: &Invocation, trace: &EffectTrace, part: &Part, reply: &Content) {
    let Invocation { function, input, account, identity, .. } = invocation;
    let replies = account.as_ref().and_then(|account| Some((account, account.replies()?)));
    let (Some((account, replies)), Some(footprint)) = (replies, &trace.footprint) else { return };
    // What a call by gRPC says besides is in no key.
    if !part.is_repeatable() || !function.can_be_dropped() || input.head.is_some() {
        return;
    }
    let (Some(argument), Some(reply), Some(caller)) = (whole(&input.body), copied(reply), identity.above()) else { return };
    let (callees, depth) = (part.callees.clone().into(), caller.depth());
    let known = Known { reply, footprint: Arc::clone(footprint), callees, depth };
    if known.bytes() <= REPLY_BYTES_MAX {
        let argument = replies.argument_key(function.name(), &argument);
        account.put(Entry::Replied { function: Arc::clone(function), argument, known: Arc::new(known) });
    }
}

/// A copy, where it is not too large: what a reply is written to is used again.
fn copied(reply: &Content) -> Option<Bytes> {
    match reply {
        Content::Whole(bytes) if bytes.len() <= REPLY_BYTES_MAX => Some(Bytes::copy_from_slice(bytes)),
        // A long one.
        Content::Whole(_) | Content::Pieces(_) | Content::Stream(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_settled_has_proved_what_it_has_read_and_one_that_was_ended_has_not() {
        let of = |failure: Failure, is_settled| Proof::of(&Err(failure), is_settled);
        assert_eq!(Proof::of(&Ok(()), true), Proof::Committed);
        assert_eq!((of(Failure::Exit(3), true), of(Failure::Exit(3), false)), (Proof::Failed, Proof::Nothing));
        assert_eq!((of(Failure::Deadline, false), of(Failure::CpuLimit, false)), (Proof::Endless, Proof::Endless));
        assert_eq!((of(Failure::Cancelled, false), of(Failure::OutcomeUnknown, true)), (Proof::Nothing, Proof::Nothing));
        assert_eq!(of(Failure::Conflict, false), Proof::Stale);
    }
}
