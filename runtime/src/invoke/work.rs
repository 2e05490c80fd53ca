//! What a worker has to do, and may give to another: invocations that wait for a sandbox, and those that have one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::ahead::Ahead;
use super::ahead::account::Account;
use super::caller::Caller;
use super::driver::{Driver, Remains};
use super::invocation::Invocation;
use crate::host::{Completion, Panicked, Pending};
use crate::kv::{KvError, Outcome};
use crate::memo::Asked;
use crate::memo::callees::Callees;
use crate::memo::check::Check;
use crate::phases::Phase;
use crate::reply::{Content, ReplyTo};
use crate::schedule::{self, Demand, Microtask, Rank, Site, Task, TaskId};

/// An invocation whose sandbox has run.
#[derive(Debug)]
pub struct Started {
    /// The invocation; its input is the driver's now.
    pub(crate) invocation: Box<Invocation>,
    pub(crate) driver: Driver,
    /// What its callees know of it; made at the first call.
    pub(crate) calls_as: Option<Arc<Caller>>,
    /// Since when it is blocked, if it is.
    pub(crate) wait: Option<Wait>,
    /// What it has to wait for when its turn comes: it ran within its caller's turn, and is no task that could be blocked there.
    pub(crate) unwaited: Option<Unwaited>,
    /// What it is remembered under, where its function's runs are looked at.
    pub(crate) asked: Option<Box<Asked>>,
    /// What it called, where it is looked at; made at the first call.
    pub(crate) callees: Option<Arc<Callees>>,
    /// What of its calls was begun before it has come to them, where its function asks for that.
    pub(crate) ahead: Option<Box<Ahead>>,
}

/// An invocation that an answer from its function's table may answer, once the store has confirmed that.
#[derive(Debug)]
pub struct Checking {
    /// The invocation.
    pub(crate) invocation: Box<Invocation>,
    /// The answer.
    pub(crate) check: Box<Check>,
    /// What asks the store, until that is waited for.
    pub(crate) pending: Option<Pending>,
    /// What the store says.
    pub(crate) outcome: oneshot::Receiver<Result<Outcome, KvError>>,
    /// Since when it is blocked, if it is.
    pub(crate) wait: Option<Wait>,
}

/// What an invocation has to wait for.
#[derive(Debug)]
pub(crate) struct Unwaited {
    /// When it goes on without more.
    pub(crate) until: Option<Instant>,
    /// What is to be done before.
    pub(crate) pending: Option<Pending>,
}

/// An invocation is blocked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// From then on.
    pub(crate) since: Instant,
    /// When it goes on without more.
    pub(crate) until: Option<Instant>,
}

/// What can be blocked.
pub(crate) trait Blocks {
    /// Since when it is, if it is.
    fn wait(&mut self) -> &mut Option<Wait>;

    /// Where its reply goes.
    fn reply(&mut self) -> &mut ReplyTo;

    /// For so long it waited for something else than its turn.
    fn waited(&mut self, time: Duration);

    /// What it waited for is done: what it waits for next, if it waits.
    fn complete(&mut self, completion: Result<Completion, Panicked>) -> Option<Pending>;

    /// It is blocked no longer. Whether it was.
    fn end_wait(&mut self, now: Instant) -> bool {
        let Some(Wait { since, until }) = self.wait().take() else { return false };
        self.waited(until.map_or(now, |until| until.min(now)).saturating_duration_since(since));
        true
    }
}

impl Blocks for Started {
    fn wait(&mut self) -> &mut Option<Wait> {
        &mut self.wait
    }

    fn reply(&mut self) -> &mut ReplyTo {
        &mut self.invocation.reply
    }

    fn waited(&mut self, time: Duration) {
        self.invocation.times.blocked += time;
        self.driver.count_wait(time);
    }

    fn complete(&mut self, completion: Result<Completion, Panicked>) -> Option<Pending> {
        self.driver.complete(&self.invocation.function.program, completion)
    }
}

impl Blocks for Checking {
    fn wait(&mut self) -> &mut Option<Wait> {
        &mut self.wait
    }

    fn reply(&mut self) -> &mut ReplyTo {
        &mut self.invocation.reply
    }

    fn waited(&mut self, time: Duration) {
        self.invocation.times.blocked += time;
    }

    fn complete(&mut self, _: Result<Completion, Panicked>) -> Option<Pending> {
        // What the store said comes another way; where the host has panicked nothing comes there.
        None
    }
}

impl Started {
    /// Takes one apart that is over; what its callees know of it comes too. The rest is dropped where it is, which costs less than to move it.
    pub(crate) fn finish(mut self: Box<Started>) -> (Box<Invocation>, Remains<Content>, Option<Arc<Caller>>) {
        let (reply, head) = self.driver.take_reply();
        let Started { invocation, driver: Driver { sandbox, .. }, calls_as, .. } = *self;
        (invocation, Remains { sandbox, reply, head }, calls_as)
    }

    /// Where what it calls leaves what is to be counted and learned.
    pub(crate) fn account(&self) -> Option<&Arc<Account>> {
        let own = self.ahead.as_ref().map(|ahead| &ahead.account);
        own.or(self.invocation.account.as_ref())
    }

    /// Whether what it calls is to tell what it did: it is looked at itself, or what it calls is to be known.
    pub(crate) fn is_told(&self) -> bool {
        self.driver.context().is_watched() || self.account().is_some_and(|account| account.replies().is_some())
    }

    /// What its callees know of it.
    pub(crate) fn calls_as(&mut self) -> &Arc<Caller> {
        let Started { invocation, calls_as, .. } = self;
        calls_as.get_or_insert_with(|| Arc::new(invocation.identity.caller(&invocation.function, invocation.deadline)))
    }
}

/// What a worker has to do, and may give to another.
#[derive(Debug)]
pub enum Work {
    /// An invocation that has not begun.
    Job(Box<Invocation>),
    /// One that has not, and may not have to.
    Checking(Box<Checking>),
    /// One that has.
    Started(Box<Started>),
}

impl Work {
    fn invocation(&self) -> &Invocation {
        match self {
            Work::Job(invocation) => invocation,
            Work::Checking(checking) => &checking.invocation,
            Work::Started(started) => &started.invocation,
        }
    }
}

impl schedule::Work for Work {
    fn task(&self, id: TaskId) -> Task {
        match self {
            Work::Job(invocation) => invocation.task(id, false),
            // It was taken, and has waited.
            Work::Checking(checking) => checking.invocation.task(id, true),
            Work::Started(started) => started.invocation.task(id, true),
        }
    }

    fn microtask(&self) -> Microtask {
        match self {
            Work::Job(invocation) => begins(invocation),
            Work::Checking(checking) => begins(&checking.invocation),
            Work::Started(started) => started.driver.microtask(),
        }
    }

    fn demand(&self) -> Demand {
        self.invocation().demand()
    }

    fn rank(&self) -> Rank {
        self.invocation().rank()
    }
}

/// What an invocation does that begins.
fn begins(invocation: &Invocation) -> Microtask {
    // That in which it begins is the first.
    let first = invocation.function.process.phases.as_ref().and_then(|phases| phases.as_slice().first());
    Microtask { site: Site::ENTRY, declared: first.and_then(Phase::burst) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FunctionConfig;
    use crate::host::{Body, Context, LogLines, ReplyBytes, Streams, Writer};
    use crate::invoke::function::{Function, Home};
    use crate::invoke::{Dispatcher, Input, by_hand};
    use crate::schedule::{FunctionId, Work as _};

    const MS: Duration = Duration::from_millis(1);

    fn started(now: Instant) -> Started {
        let function =
            Function::new(by_hand::loaded(&FunctionConfig::new("f", "f.wasm")), Home { number: FunctionId(7), ..Home::alone() });
        let log = LogLines::new(Arc::clone(&function.process), Arc::clone(&function.log), Writer::default());
        let context =
            Context::new(Arc::clone(&function.process), Streams::of_request(Body::default(), ReplyBytes::default(), 0, log));
        let driver = Driver::new(Box::new(function.template.instantiate().unwrap()), context);
        let (dispatcher, _deques) = Dispatcher::new(1, 1, 10, false);
        let admission = dispatcher.admit(&function).unwrap();
        let invocation = Invocation::new(Arc::new(function), admission, None, Input::default(), now);
        Started { invocation, driver, calls_as: None, wait: None, unwaited: None, asked: None, callees: None, ahead: None }
    }

    #[test]
    fn a_wait_counts_until_it_is_over_or_was_to_be() {
        let now = Instant::now();
        let mut started = started(now);
        assert!(!started.end_wait(now + MS), "it does not wait");
        let mut blocked = |until: Option<Duration>, end: Duration| {
            started.wait = Some(Wait { since: now + 10 * MS, until: until.map(|until| now + until) });
            let before = started.invocation.times.blocked;
            assert!(started.end_wait(now + end) && !started.end_wait(now + end), "it is over once");
            started.invocation.times.blocked - before
        };
        assert_eq!(blocked(None, 15 * MS), 5 * MS);
        assert_eq!(blocked(Some(30 * MS), 15 * MS), 5 * MS, "something else came first");
        assert_eq!(blocked(Some(30 * MS), 45 * MS), 20 * MS, "then it could have run");
        assert_eq!(blocked(Some(5 * MS), 15 * MS), Duration::ZERO);
        assert_eq!(started.invocation.times.blocked, 30 * MS);
    }

    #[test]
    fn its_callees_know_one_caller_and_the_order_whether_it_has_begun() {
        let now = Instant::now();
        let mut started = started(now);
        let caller = Arc::clone(started.calls_as());
        assert!(Arc::ptr_eq(&caller, started.calls_as()));
        assert_eq!((caller.sequence, caller.deadline), (1, started.invocation.deadline));
        let Started { invocation, .. } = self::started(now);
        for (work, begun) in [(Work::Job(invocation), false), (Work::Started(Box::new(started)), true)] {
            let task = work.task(TaskId(3));
            assert_eq!((task.id, task.function, task.age, task.started), (TaskId(3), FunctionId(7), 1, begun));
        }
    }
}
