//! Callees that begin with their caller, before it has called them: it is known from earlier runs what it calls, and with what. Where the caller comes to just that call it adopts the run, and waits for what is
//! left of it; where it does not, the run is dropped, and leaves nothing.
//!
//! A callee that begins so is a task behind all that is asked for, until its caller comes to it: other workers may take it, and its caller runs on. What it reads and writes, logs and sends waits in its
//! [transaction](crate::txn), and what is counted and learned in its [account](crate::invoke::ahead::account). Where its transaction is refused when it is called, it runs again, as an ordinary call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sledge_sandbox::Sandbox;

use super::Worker;
use super::calls::{invocation, watched_call};
use super::known::{Proof, is_known, learn};
use crate::host::{Body, CallFailure, RpcRequest};
use crate::invoke::ahead::account::{Account, Entry};
use crate::invoke::ahead::remote::Asked;
use crate::invoke::ahead::window::{Reached, Window};
use crate::invoke::ahead::{Ahead, Run};
use crate::invoke::caller::Caller;
use crate::invoke::function::Function;
use crate::invoke::urgency::{Stake, Urgency};
use crate::invoke::work::Started;
use crate::invoke::{Dispatcher, Invocation};
use crate::memo::callees::Callees;
use crate::outcome::Failure;
use crate::reply::{Answer, Reply};
use crate::schedule::{Demand, Rank};
use crate::speculate::depth::depth;
use crate::speculate::sequence::Expected;
use crate::speculate::times;
use crate::telemetry::Trace;
use crate::txn::Transaction;

/// Callees of one run that may be begun and not be called yet, where the workers have time.
const DEPTH_MAX: u32 = 12;
/// What it costs to begin a callee, about: an invocation with its sandbox, and a turn.
const LAUNCH: Duration = Duration::from_micros(20);
/// Bytes of an input by which calls are predicted.
pub(super) const INPUT_BYTES_MAX: usize = 64 << 10;

/// A call that a function makes now.
pub(super) struct Call<'a> {
    pub(super) name: &'a Arc<str>,
    pub(super) input: &'a Bytes,
    /// Which of its host calls this is.
    pub(super) host_call: u32,
    /// What a call by gRPC says besides.
    pub(super) rpc: Option<&'a RpcRequest>,
}

/// What runs where a callee that was begun ahead is not adopted: the call, as it is without that.
struct Again {
    dispatcher: Arc<Dispatcher>,
    function: Arc<Function>,
    caller: (Arc<Caller>, u32),
    asked: Asked,
    request_id: Option<Arc<str>>,
    trace: Option<Arc<Trace>>,
    joins: Arc<Transaction>,
    tells: Option<Arc<Callees>>,
    account: Arc<Account>,
    urgency: Option<Arc<Urgency>>,
}

impl Again {
    async fn reply(self) -> Result<Reply, Failure> {
        // It was begun with that.
        let (_, input, rpc) = Asked::request(&self.asked.callee, &self.asked.argument).ok_or(Failure::Internal)?;
        let callee = invocation(&self.dispatcher, self.function, self.caller, input, rpc);
        let mut callee = callee.map_err(|failure| match failure {
            CallFailure::Failed(failure) => failure,
            // It was begun before, below the same caller.
            CallFailure::TooDeep => Failure::Internal,
        })?;
        (callee.request_id, callee.trace) = (self.request_id, self.trace);
        callee.tell_trace();
        (callee.joins, callee.tells, callee.account) = (Some(self.joins), self.tells, Some(self.account));
        callee.urgency = self.urgency.filter(|_| !callee.function.gate.is_limited());
        self.dispatcher.begin(callee, &*self.dispatcher).reply().await
    }
}

impl Worker {
    /// Counts the sandbox of a run that begins ahead among those of all of them; an error where they have as much as they may have together. One that is called by what is ahead is not counted: its caller would
    /// see the refusal.
    pub(super) fn count_ahead(&self, invocation: &mut Invocation, sandbox: &Sandbox) -> Result<(), Failure> {
        if invocation.demand() == Demand::Speculative && !invocation.identity.is_call() {
            invocation.memory_ahead = self.dispatcher.reserve_ahead(sandbox, &invocation.function.template)?;
        }
        Ok(())
    }

    /// A run begins: so do the first of the calls that it is expected to make. It has not run yet.
    pub(super) fn begin_ahead(&mut self, started: &mut Started) {
        let Started { invocation, driver, ahead, .. } = started;
        let Some(speculation) = &invocation.function.ahead else { return };
        // What is learned of a call has to wait for its caller's commit.
        if invocation.identity.is_call() && invocation.account.is_none() {
            return;
        }
        let transaction = driver.context().transaction().filter(|transaction| transaction.may_have_beside());
        let Some(transaction) = transaction.cloned() else { return };
        let Some(input) = whole(&invocation.input.body) else { return };
        let expected = match invocation.runs_again() || transaction.is_repeated() {
            false => speculation.calls(invocation.function.version, &input, LAUNCH),
            // Its callees take their turns over the keys over which it has conflicted.
            true => Vec::new(),
        };
        let account = Account::new(invocation.function.skips.then(|| Arc::clone(speculation)));
        *ahead = Some(Box::new(Ahead::new(input, Window::new(expected), transaction, account, Instant::now())));
        self.begin_expected(started);
    }

    /// Begins as many of the expected calls as may be begun now.
    fn begin_expected(&mut self, started: &mut Started) {
        let Some(mut ahead) = started.ahead.take() else { return };
        if ahead.window.expects_more() {
            let now = Instant::now();
            let is_short = started.invocation.function.ahead.as_ref().is_none_or(|tables| tables.is_short_of_memory());
            let depth = if is_short { 0 } else { depth(self.dispatcher.workload(now), DEPTH_MAX) as usize };
            while let Some(expected) = ahead.window.next(depth) {
                if let Some(run) = self.begin_call(started, &expected, &ahead, now) {
                    ahead.window.put(expected, run);
                }
            }
        }
        started.ahead = Some(ahead);
    }

    /// Begins a call before it is made, if that can be.
    fn begin_call(&mut self, started: &mut Started, expected: &Expected, ahead: &Ahead, now: Instant) -> Option<Run> {
        let (name, input, rpc) = Asked::request(&expected.callee, &expected.argument)?;
        let callee = started.invocation.function.neighbours.find(&name).ok()?;
        // One with a limit would take the place of a call that is made.
        if !callee.can_be_dropped() || callee.gate.is_limited() {
            return None;
        }
        // It need not run at all, as a rule.
        if rpc.is_none() && is_known(&started.invocation.function, &callee, &input) {
            return None;
        }
        let transaction = Transaction::beside(started.driver.context().transaction()?)?;
        // By which host call it is called is not known yet.
        let mut invocation = self.callee(started, &name, input, 0, rpc).ok()?;
        let context = started.driver.context();
        let replies = ahead.account.replies();
        let tells = (context.is_watched() || replies.is_some()).then(Arc::<Callees>::default);
        if let Some(tells) = &tells {
            tells.made();
        }
        let account = Arc::new(Account::new(replies.cloned()));
        invocation.identity.is_speculative = true;
        let (above, identity) = (started.invocation.urgency.as_ref(), &started.invocation.identity);
        let ordinal = u32::try_from(expected.ordinal).unwrap_or(u32::MAX);
        let rank = || Rank::new(identity.root(), identity.path().steps().iter().copied().chain([ordinal.saturating_add(1)]));
        let stake = Stake::of_callee(above, rank, self.dispatcher.changes());
        invocation.urgency = stake.urgency().cloned();
        invocation.request_id = context.request_id().cloned();
        invocation.trace = context.trace().map(|trace| trace.call());
        invocation.tell_trace();
        invocation.joins = Some(Arc::clone(&transaction));
        (invocation.tells, invocation.account) = (tells.clone(), Some(Arc::clone(&account)));
        let dispatcher = Arc::clone(&self.dispatcher);
        let answer = dispatcher.begin(invocation, &mut *self);
        Some(Run { callee, answer, stake, transaction, began: now, account, tells })
    }

    /// A run has come to a call. What answers it, where that was begun before or is known.
    pub(super) fn reach(&mut self, started: &mut Started, call: &Call<'_>) -> Option<Answer> {
        let ahead = started.ahead.as_mut()?;
        let asked = Asked::of(call.name, call.input, call.rpc)?;
        let now = Instant::now();
        let ordinal = ahead.reached(&asked.callee, &asked.argument, now);
        let Reached { adopted, dropped } = ahead.window.reached(ordinal, &asked.callee, &asked.argument);
        if let Some((ordinal, run)) = dropped {
            drop_run(&started.invocation.function, ordinal, run, now);
        }
        let answer = match adopted {
            Some(adopted) => self.adopt(started, (call, asked), adopted, now),
            // What a call by gRPC says besides is in no key of what is known.
            None if call.rpc.is_some() => None,
            None => self.skip(started, call, ordinal),
        };
        self.begin_expected(started);
        answer
    }

    /// What answers a call for which that was begun. None where the function is another one by now.
    fn adopt(
        &self,
        started: &mut Started,
        (call, asked): (&Call<'_>, Asked),
        (ordinal, mut run): (usize, Run),
        now: Instant,
    ) -> Option<Answer> {
        let served = started.invocation.function.neighbours.find(call.name);
        let function = Arc::clone(&started.invocation.function);
        let transaction =
            started.driver.context().transaction().filter(|_| served.is_ok_and(|served| Arc::ptr_eq(&served, &run.callee)));
        let (Some(to), Some(account)) = (transaction.cloned(), started.account().cloned()) else {
            drop_run(&function, ordinal, run, now);
            return None;
        };
        run.stake.ask();
        let tells = watched_call(started, true);
        let again = Again {
            dispatcher: Arc::clone(&self.dispatcher),
            function: Arc::clone(&run.callee),
            caller: (Arc::clone(started.calls_as()), call.host_call),
            asked,
            request_id: started.driver.context().request_id().cloned(),
            trace: started.driver.context().trace().map(|trace| trace.call()),
            joins: Arc::clone(&to),
            tells: tells.clone(),
            account: Arc::clone(&account),
            urgency: started.invocation.urgency.clone(),
        };
        Some(Answer::later(async move {
            let Run { answer, transaction, began, account: left, tells: told, .. } = run;
            let reply = answer.reply().await;
            let (failure, took, worked) = match &reply {
                Ok(reply) => (reply.result.as_ref().err(), reply.queued + reply.ran, reply.record.worked()),
                Err(failure) => (Some(failure), began.elapsed(), Duration::ZERO),
            };
            // What has failed since something was short might not have failed now.
            let is_believed = failure.is_none_or(|failure| !failure.is_temporary());
            if !is_believed || !to.adopt(&transaction) {
                if let Some(speculation) = &function.ahead {
                    speculation.call_squashed(function.version, ordinal, took);
                }
                return again.reply().await;
            }
            account.take_from(&left);
            let (saved, cost) = (worked, times::cost(worked, now.elapsed(), LAUNCH));
            account.put(Entry::Adopted { function, ordinal, saved, cost });
            if let (Some(tells), Some(told)) = (tells, told) {
                match told.take() {
                    Ok(parts) => parts.into_iter().for_each(|part| tells.tell(Ok(part))),
                    Err(why) => tells.tell(Err(why)),
                }
            }
            reply
        }))
    }

    /// A run is over, or runs again. What was begun for it and not called is dropped; what it leaves to be counted and learned is, or goes to its caller. Where another's commit decides about it, what is only
    /// learned waits for that.
    pub(super) fn end_ahead(&mut self, started: &mut Started, proof: Proof) {
        let Some(ahead) = started.ahead.take() else { return };
        let (function, now) = (&started.invocation.function, Instant::now());
        let (account, transaction) = (Arc::clone(&ahead.account), Arc::clone(&ahead.transaction));
        let (window, input, calls) = ahead.end();
        window.into_begun().for_each(|(ordinal, run)| drop_run(function, ordinal, run, now));
        if proof == Proof::Committed {
            account.put(Entry::Called { function: Arc::clone(function), input, calls });
        } else {
            account.failed();
        }
        if let Some(above) = &started.invocation.account {
            return above.take_from(&account);
        }
        let (ended, left): (Vec<_>, Vec<_>) = account.take().into_iter().partition(|entry| matches!(entry, Entry::Ended { .. }));
        for entry in ended {
            if let Entry::Ended { function, failure, .. } = entry {
                self.shard.note(&function, |row| row.ended(failure.as_ref()));
            }
        }
        if let Some(speculation) = &function.ahead {
            learn(left, proof, &transaction, speculation);
        }
    }
}

/// Ends what was begun for a call that is not made.
fn drop_run(caller: &Function, ordinal: usize, run: Run, now: Instant) {
    if let Some(speculation) = &caller.ahead {
        speculation.call_dropped(caller.version, ordinal, now.saturating_duration_since(run.began));
    }
}

/// All of a body, where it is there and not too large.
pub(super) fn whole(body: &Body) -> Option<Bytes> {
    if !body.is_complete() || body.left() > INPUT_BYTES_MAX {
        return None;
    }
    let mut all = Vec::with_capacity(body.left());
    body.pieces().for_each(|piece| all.extend_from_slice(piece));
    Some(all.into())
}
