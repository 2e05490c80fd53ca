//! Answers without a sandbox: from the table of a function, or by the run of an equal request, for which an invocation waits as a blocked one does. And what runs leave there.
//!
//! Where the store has to confirm an answer, the invocation is put aside as one that waits in a host call is: it has no sandbox, its deadline ends it, and it ends with its client ([`Checking`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Worker;
use super::known::leave_reply;
use crate::config::Instance;
use crate::host::{EffectTrace, Pending};
use crate::invoke::Invocation;
use crate::invoke::driver::Remains;
use crate::invoke::function::Function;
use crate::invoke::work::{Checking, Started, Work};
use crate::memo::callees::Part;
use crate::memo::check::{Check, Checked};
use crate::memo::flight::handles::Follower;
use crate::memo::rule::{self, Ended, Why};
use crate::memo::{Asked, Entry, How, Look, Memo, Now};
use crate::outcome::Failure;
use crate::reply::{Content, Reply};
use crate::schedule::{Event, TaskId};
use crate::txn::Transaction;
use crate::worker::spans::Over;

/// What a run was asked and did, for the table.
pub(super) struct Ran {
    /// None where only its caller asks.
    asked: Option<Box<Asked>>,
    trace: EffectTrace,
    called: Result<Vec<Part>, Why>,
    has_trailers: bool,
    was_refused_memory: bool,
}

impl Ran {
    /// That of one which is over; none where it was not watched.
    pub(super) fn of(started: &mut Started, has_trailers: bool) -> Option<Ran> {
        let trace = started.driver.take_trace()?;
        let called = started.callees.take().map_or(Ok(Vec::new()), |callees| callees.take());
        let was_refused_memory = started.driver.sandbox().refusal().is_some();
        Some(Ran { asked: started.asked.take(), trace, called, has_trailers, was_refused_memory })
    }
}

/// What a look into a table comes to.
pub(super) enum Recalled {
    /// It is over.
    Over,
    /// It runs, and is remembered under that, if it is.
    Runs(Box<Invocation>, Option<Box<Asked>>),
    /// The store decides.
    Checks(Box<Checking>),
    /// It waits for the run of an equal request.
    Follows(Box<Invocation>),
}

/// What a run has left for the requests that wait for it. Where it is dropped, they run.
pub(super) struct Landing {
    asked: Box<Asked>,
    entry: Option<Arc<Entry>>,
}

impl Landing {
    /// Answers them.
    pub(super) fn land(self, function: &Function) {
        self.asked.land(self.entry.as_ref(), Now { space: function.process.kv.as_ref(), version: &version_in(function) });
    }
}

/// The version that a function reaches by a name.
fn version_in(function: &Function) -> impl Fn(&str) -> Option<u64> {
    |name| function.neighbours.find(name).ok().map(|callee| callee.version)
}

impl Worker {
    /// Answers an invocation from its function's table, or by the run that it has waited for, if it can. Else gives it back, with what its run is remembered under.
    pub(super) fn recall(&mut self, mut invocation: Box<Invocation>, now: Instant) -> Recalled {
        // What is a part of another transaction reads what that has written.
        let memo = invocation.function.memo.as_ref().filter(|_| invocation.joins.is_none());
        let Some(memo) = memo else { return Recalled::Runs(invocation, None) };
        let memo = Arc::clone(memo);
        let follower = invocation.end_follow(now);
        let look = self.look(&memo, &invocation, follower);
        match look {
            Look::Hit(entry) => self.answer_with_entry(invocation, &entry, How::Hit, now),
            Look::Collapsed(entry) => self.answer_with_entry(invocation, &entry, How::Collapsed, now),
            Look::Check(check) => self.begin_check(invocation, check),
            Look::Wait(follower) => {
                invocation.follow(follower, now);
                Recalled::Follows(invocation)
            }
            Look::Run(asked) => Recalled::Runs(invocation, Some(asked)),
            Look::Bypass => Recalled::Runs(invocation, None),
        }
    }

    fn look(&self, memo: &Arc<Memo>, invocation: &Invocation, follower: Option<Follower>) -> Look {
        let (function, input) = (&invocation.function, &invocation.input);
        let version = version_in(function);
        let there = Now { space: function.process.kv.as_ref(), version: &version };
        let note = |event| self.shard.note(function, |row| row.remembered(event));
        match follower {
            Some(follower) => follower.end(there, note),
            // What a function calls does not wait: its caller may be what it would wait for.
            None => memo.look(&input.body, input.head.as_deref(), there, !invocation.identity.is_call(), note),
        }
    }

    /// What it has in hand waits for the run of an equal request, as a blocked sandbox waits: without a turn, until the run is over, its own time has come, or its client has gone.
    pub(super) fn follow(&mut self, id: TaskId, mut invocation: Box<Invocation>) -> Event<Work> {
        let later = invocation.make_way();
        self.answer_with(later);
        let until = invocation.follows.as_ref().map(|follows| follows.until);
        let blocks = !self.waits.poll_follower(&mut invocation, id);
        let (ran, work) = (Duration::ZERO, Work::Job(invocation));
        if blocks { Event::Blocked { ran, until, work } } else { Event::Preempted { ran, work } }
    }

    /// Has the store asked whether an entry answers an invocation. What changes the store takes its turn over keys as a run does.
    fn begin_check(&mut self, mut invocation: Box<Invocation>, check: Box<Check>) -> Recalled {
        let function = &invocation.function;
        // Without a store there is nothing that an entry depends on.
        let Some(space) = function.process.kv.clone() else { return Recalled::Runs(invocation, None) };
        let commit = check.commit();
        let transaction = function.isolation.as_ref().filter(|_| check.changes()).map(Transaction::begin);
        let (said, outcome) = oneshot::channel();
        let pending = Pending::only(async move {
            if let Some(transaction) = &transaction {
                transaction.take_turns(transaction.contended(commit.changes.iter().map(|(key, _)| key))).await;
            }
            // If it is not waited for any more, the invocation is over.
            let _ = said.send(space.commit(commit).await);
        });
        // What runs at once is answered later.
        let later = invocation.make_way();
        self.answer_with(later);
        Recalled::Checks(Box::new(Checking { invocation, check, pending: Some(pending), outcome, wait: None }))
    }

    /// Waits for what the store says, or goes on with that.
    pub(super) fn check(&mut self, id: TaskId, mut checking: Box<Checking>, now: Instant) -> Event<Work> {
        self.waits.end(&mut *checking, id, now);
        if let Some(pending) = checking.pending.take()
            && self.waits.begin(&mut *checking, id, now, None, Some(pending))
        {
            return Event::Blocked { ran: Duration::ZERO, until: None, work: Work::Checking(checking) };
        }
        let Recalled::Runs(invocation, asked) = self.checked(*checking, now) else { return Event::Dropped };
        match self.give_sandbox(invocation, asked, now) {
            Some(started) => self.run(id, started, now, false),
            None => Event::Dropped,
        }
    }

    /// The store has said something, or the client has gone.
    fn checked(&mut self, checking: Checking, now: Instant) -> Recalled {
        let Checking { invocation, check, mut outcome, .. } = checking;
        if let Some(trace) = &invocation.trace {
            Over::of(&invocation, now, None).tell_checked(trace, invocation.times.taken);
        }
        if invocation.reply.is_closed() {
            // Its connection keeps the deadline too, and may have looked at the time first.
            let failure = if invocation.deadline <= now { Failure::Deadline } else { Failure::Cancelled };
            self.refuse(invocation, failure, now);
            return Recalled::Over;
        }
        let function = &invocation.function;
        let Some(memo) = &function.memo else { return Recalled::Runs(invocation, None) };
        let checked = memo.checked(*check, outcome.try_recv().ok(), invocation.input.head.as_deref(), |event| {
            self.shard.note(function, |row| row.remembered(event));
        });
        match checked {
            Checked::Hit(entry) => self.answer_with_entry(invocation, &entry, How::Hit, now),
            Checked::Run(asked) => Recalled::Runs(invocation, Some(asked)),
            Checked::Unknown => {
                self.refuse(invocation, Failure::OutcomeUnknown, now);
                Recalled::Over
            }
        }
    }

    /// Ends one for which the store was asked, and has not answered.
    pub(super) fn end_check(&mut self, id: TaskId, mut checking: Checking, failure: Failure, now: Instant) {
        // What it waits for is given up. The store may make a commit that it has.
        self.waits.end(&mut checking, id, now);
        let failure = if checking.check.changes() { Failure::OutcomeUnknown } else { failure };
        self.refuse(checking.invocation, failure, now);
    }

    /// Answers an invocation with what an equal one was answered.
    fn answer_with_entry(&mut self, mut invocation: Box<Invocation>, entry: &Entry, how: How, now: Instant) -> Recalled {
        tracing::debug!(target: "sledge::request", function = invocation.function.name(), ?how, "answered without a run");
        if let Some(trace) = invocation.trace.take() {
            Over::of(&invocation, now, None).tell_answered(&trace, invocation.times.taken, how);
        }
        if let Some(caller) = &invocation.tells {
            caller.tell(entry.part(invocation.function.callee()));
        }
        let counts = invocation.reply.end(&Ok(()), &mut None) || invocation.identity.is_call();
        let (queued, ran) = (invocation.times.queued(), invocation.times.since_taken(now));
        self.shard.note(&invocation.function, |row| {
            row.queue.observe(queued);
            row.blocked.add(invocation.times.blocked.as_nanos() as u64);
            if counts {
                row.ended(None);
            }
        });
        let record = invocation.record_at(now);
        let (result, head) = (Ok(Content::Whole(entry.body.clone())), Some(Box::new(entry.head(how))));
        let reply = Reply { result, head, trailers: None, queued, ran, record };
        self.answer_with(invocation.reply.send(reply));
        Recalled::Over
    }

    /// Leaves what a run was asked, did and wrote in its function's table, and tells its caller's. Gives what it has left for requests that wait for it.
    pub(super) fn remember(
        &self,
        invocation: &Invocation,
        ran: Ran,
        remains: &Remains<Content>,
        failure: Option<&Failure>,
    ) -> Option<Landing> {
        let function = &invocation.function;
        let ended = Ended {
            content: Some(&remains.reply).filter(|_| failure.is_none()),
            head: remains.head.as_deref(),
            has_trailers: ran.has_trailers,
            was_refused_memory: ran.was_refused_memory,
            called: ran.called.as_deref().map_err(|why| *why),
            is_cancelled: failure == Some(&Failure::Cancelled),
        };
        if let Some(caller) = &invocation.tells {
            let is_pure = function.memo.as_ref().is_some_and(|memo| memo.is_pure());
            let part = match function.instance {
                Instance::Call => rule::part(function.callee(), &ran.trace, &ended, (is_pure, invocation.joins.is_some())),
                // What it keeps from call to call is not known.
                Instance::Request | Instance::Application => Err(Why::Called),
            };
            if let Ok(part) = &part {
                leave_reply(invocation, &ran.trace, part, &remains.reply);
            }
            caller.tell(part);
        }
        let (Some(memo), Some(mut asked)) = (&function.memo, ran.asked) else { return None };
        let note = |event| self.shard.note(function, |row| row.remembered(event));
        let entry = memo.learn(&mut asked, &ran.trace, &ended, note);
        Some(Landing { asked, entry })
    }
}
