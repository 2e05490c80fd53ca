//! The one loop that runs an invocation in its sandbox: resume the guest, look what it stopped for, answer, resume.
//!
//! Knows neither HTTP nor the order: a worker runs a [`Driver`] a quantum at a time; [`alone`](super::alone) runs one to its end.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use awsm_abi::component::{STACK, STACKS_MAX, Violation};
use bytes::Bytes;
use sledge_sandbox::{Backtrace, CallError, Event, HostCall, InstanceId, Refusal, Sandbox, Slot, Stacks, TrapCode, limits};

use super::program::{LEAVES_INIT, Program, Stage};
use crate::component_trap::ComponentTrap;
use crate::host::{
    self, Answer, CallFailure, CallId, Completion, Context, EffectTrace, HostFunction, ImportedFunction, Outgoing, Panicked,
    Pending, Stop, Watch, wasi,
};
use crate::kv::{Commit, KvError};
use crate::memory_stack::MemoryStack;
use crate::outcome::Failure;
use crate::phases::{Phase, PhaseClock};
use crate::reply::{self, Content, Fields, Pipe, ReplyHead, Stream};
use crate::schedule::{Microtask, Site};
use crate::txn::{PutOff, Settled};

const _: () = assert!(STACKS_MAX as usize <= limits::FIBERS_MAX, "the glue of a component says it first");

/// An invocation that has begun.
#[derive(Debug)]
pub struct Driver {
    pub(super) sandbox: Box<Sandbox>,
    context: Context,
    /// Index of the call that runs, or is to begin next.
    stage: usize,
    /// That of the call with which it began.
    first: usize,
    /// The host call that was last begun.
    call: Option<HostCall>,
    /// The guest's stacks, by the numbers that a component has for them.
    stacks: Stacks,
    next: Next,
}

/// What is to be done next.
#[derive(Debug)]
enum Next {
    /// Begin the next of the calls that make it up.
    Stage,
    /// Let the guest run.
    Guest,
    /// Call the host again, before the guest goes on.
    Again,
    /// [Complete](Driver::complete) the host call.
    Completion,
    /// To learn what became of the commit of its transaction; it has ended so.
    Settle { commit: Box<Commit>, result: Result<(), Failure> },
    /// Nothing: what it has read is not there any more.
    Stale,
    /// Nothing: it is over.
    End(Result<(), Failure>),
}

/// What a quantum came to.
#[derive(Debug)]
pub enum Progress {
    /// The quantum is over, there is more to do.
    Preempted,
    /// A host call has done a part of its work: the quantum may be over.
    Yields,
    /// The guest waits: run it when this time has come. Without a time it waits for ever.
    Waits {
        /// When it goes on.
        until: Option<Instant>,
    },
    /// A host call waits: [complete](Driver::complete) it when this is done, and only then run it.
    Pends(Pending),
    /// What it has read of the key-value store is not there any more: it is to run again from its beginning, in a fresh sandbox.
    Stale,
    /// The invocation is over.
    Ended(Result<(), Failure>),
}

/// What is left of an invocation that is over.
#[derive(Debug)]
pub struct Remains<R = Bytes> {
    /// The sandbox, to be put back to its pool (which keeps it only if it ended in good order).
    pub sandbox: Box<Sandbox>,
    /// What the guest wrote to its standard output.
    pub reply: R,
    /// What it said about that.
    pub head: Option<Box<ReplyHead>>,
}

impl Driver {
    /// An invocation in a fresh sandbox.
    #[inline]
    #[must_use]
    pub fn new(sandbox: Box<Sandbox>, context: Context) -> Driver {
        Driver { sandbox, context, stage: 0, first: 0, call: None, stacks: Stacks::default(), next: Next::Stage }
    }

    /// An invocation in a sandbox in which one of that program has ended, and [can be followed](Driver::is_reusable) by another: only the last of the calls is made again.
    #[must_use]
    pub fn again(sandbox: Box<Sandbox>, context: Context, program: &Program) -> Driver {
        let mut driver = Driver::new(sandbox, context);
        driver.skip_to_last(program);
        driver
    }

    /// Makes one that has not begun one that [follows another](Driver::again).
    pub(crate) const fn skip_to_last(&mut self, program: &Program) {
        self.first = program.stages.len().saturating_sub(1);
        self.stage = self.first;
    }

    /// Whether another invocation can run in its sandbox [again](Driver::again): all calls have returned, it left no call on another stack, and nothing open that the next one would miss.
    #[must_use]
    pub fn is_reusable(&self, program: &Program) -> bool {
        self.stage(program).is_none() && self.sandbox.fibers().count() == 1 && !self.context.has_opened()
    }

    /// Runs until the quantum is over or the invocation is. The thread must be a worker, and `program` always the same: that of the sandbox's template.
    pub fn run(&mut self, program: &Program) -> Progress {
        self.run_until::<false>(program)
    }

    /// The same, but also stops after each host call: what that gave others to do does not wait for the end of the quantum.
    pub fn run_to_host_call(&mut self, program: &Program) -> Progress {
        self.run_until::<true>(program)
    }

    fn run_until<const HOST_CALL: bool>(&mut self, program: &Program) -> Progress {
        loop {
            let next = match &self.next {
                Next::Guest => match self.sandbox.resume() {
                    Event::HostCall(call) => self.host_call(program, call).or_else(|| HOST_CALL.then_some(Progress::Yields)),
                    Event::Returned => self.returned(program),
                    Event::Trapped(trap) => Some(Progress::Ended(Err(self.trapped(trap.code)))),
                    Event::Preempted => Some(Progress::Preempted),
                    Event::Waits { time } => Some(Progress::Waits { until: time.map(|time| Instant::now() + time) }),
                },
                Next::Stage => self.begin(program),
                Next::Again => {
                    self.next = Next::Guest;
                    self.carry_out(program, host::call)
                }
                // The caller of this has not kept to the rules.
                Next::Completion | Next::Settle { .. } => Some(Progress::Ended(Err(Failure::Internal))),
                Next::Stale => Some(Progress::Stale),
                Next::End(result) => Some(Progress::Ended(result.clone())),
            };
            if let Some(progress) = next {
                let Progress::Ended(mut result) = progress else { return progress };
                if result.is_ok()
                    && let Some(failure) = self.context.shortfall()
                {
                    result = Err(failure);
                }
                return if self.context.transaction().is_some() { self.settle(result) } else { Progress::Ended(result) };
            }
        }
    }

    /// Goes on with the host call that pended. Then it is to be run, unless it waits for something else.
    pub fn complete(&mut self, program: &Program, completion: Result<Completion, Panicked>) -> Option<Pending> {
        if let Next::Settle { .. } = self.next {
            self.settled(completion.is_ok());
            return None;
        }
        let Next::Completion = self.next else { return None };
        self.next = Next::Guest;
        let progress = match completion {
            Ok(completion) => self.carry_out(program, |imported, instance, sandbox, context| {
                host::complete(imported, instance, sandbox, context, completion)
            }),
            Err(Panicked) => Some(self.failed(program)),
        };
        match progress {
            Some(Progress::Pends(pending)) => return Some(pending),
            Some(Progress::Ended(result)) => self.next = Next::End(result),
            // Whatever is to be done now is done when it runs.
            Some(Progress::Preempted | Progress::Yields | Progress::Waits { .. } | Progress::Stale) | None => {}
        }
        None
    }

    /// It has ended so, as far as it is concerned: what its transaction makes of that.
    fn settle(&mut self, result: Result<(), Failure>) -> Progress {
        // The last ones that it has made; the worker has seen the others.
        self.context.put_off_calls();
        let Some(transaction) = self.context.transaction() else { return Progress::Ended(result) };
        let commit = match transaction.settle(result.is_ok(), self.context.kv()) {
            Settled::Commit(commit) => commit,
            settled => return self.end_of(settled, result),
        };
        let (transaction, Some(space)) = (Arc::clone(transaction), self.context.kv().cloned()) else {
            return self.end_of(Settled::Commit(commit), result);
        };
        let (made, contended) = (commit.clone(), transaction.contended(commit.changes.iter().map(|(key, _)| key)));
        self.next = Next::Settle { commit: Box::new(commit), result };
        Progress::Pends(Pending::only(async move {
            transaction.take_turns(contended).await;
            transaction.came(space.commit(made).await);
        }))
    }

    /// The commit has come to something; or the host has panicked over it.
    fn settled(&mut self, has_come: bool) {
        let Next::Settle { commit, result } = mem::replace(&mut self.next, Next::Stale) else { return };
        let settled = match self.context.transaction() {
            Some(transaction) if has_come => transaction.take_outcome(&commit),
            _ => Settled::Failed(KvError::Unknown("the host failed".to_owned())),
        };
        self.next = match self.end_of(settled, result) {
            Progress::Ended(result) => Next::End(result),
            _ => Next::Stale,
        };
    }

    /// What a transaction makes of how its invocation has ended.
    fn end_of(&mut self, settled: Settled, result: Result<(), Failure>) -> Progress {
        let result = match settled {
            Settled::Done => result,
            Settled::Stale => return Progress::Stale,
            Settled::Failed(KvError::Unknown(_)) => Err(Failure::OutcomeUnknown),
            Settled::Failed(error) => Err(Failure::NotCommitted(error)),
            Settled::Commit(_) => Err(Failure::Internal),
        };
        self.context.settled(result.is_ok());
        Progress::Ended(result)
    }

    /// Whether a commit is under way of which it is not known yet whether it is made.
    #[must_use]
    pub fn is_committing(&self) -> bool {
        matches!(&self.next, Next::Settle { commit, .. } if !commit.changes.is_empty())
    }

    /// Calls that begin now that it has ended.
    pub fn take_put_off(&mut self) -> Vec<PutOff> {
        self.context.take_put_off()
    }

    /// The invocation's side of the outside world.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// It runs from that time on.
    pub fn start_clock(&mut self, now: Instant) {
        if let Some(phases) = self.context.phases_mut() {
            phases.start(now);
        }
    }

    /// Until that time it ran.
    pub fn count_time(&mut self, now: Instant) {
        if let Some(phases) = self.context.phases_mut() {
            phases.count(now);
        }
    }

    /// For so long it waited for something else than its turn.
    pub fn count_wait(&mut self, time: Duration) {
        if let Some(phases) = self.context.phases_mut() {
            phases.wait(time);
        }
    }

    /// What it does when it goes on: it begins where it called the host, in its phase.
    #[must_use]
    pub fn microtask(&self) -> Microtask {
        let (instance, import) = self.call.map_or((0, 0), |call| (call.instance.index() as u32, call.import));
        // Numbers are small; that some places share one does no harm.
        let site =
            [import, instance, self.context.phase()].iter().fold(1, |site: u32, part| site.wrapping_mul(0x0100_0193) ^ part);
        Microtask { site: Site(site), declared: self.context.declared().and_then(Phase::burst) }
    }

    /// For how long it ran in each phase, if its function declares any or is profiled.
    pub const fn take_phases(&mut self) -> Option<Box<PhaseClock>> {
        self.context.phases_mut().take()
    }

    /// What it has said is to come behind its reply.
    pub const fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.context.take_trailers()
    }

    /// What watches it, with what it did so far.
    pub const fn take_watch(&mut self) -> Option<Box<Watch>> {
        self.context.take_watch()
    }

    /// What it did, if it is over and was watched.
    pub fn take_trace(&mut self) -> Option<EffectTrace> {
        self.context.take_trace()
    }

    /// The first of the calls of other functions that it has made and that were not taken yet.
    pub fn next_outgoing(&mut self) -> Option<Outgoing> {
        self.context.next_outgoing()
    }

    /// A call was made, and its reply comes there; or it was not.
    pub fn called(&mut self, id: CallId, answer: Result<reply::Answer, CallFailure>) {
        self.context.called(id, answer);
    }

    /// Says of all calls of other functions that there are no such functions.
    pub fn refuse_calls(&mut self) {
        while let Some(call) = self.next_outgoing() {
            if let Some(id) = call.id {
                self.called(id, Err(CallFailure::Failed(Failure::NotFound)));
            }
        }
    }

    /// Its reply, if that is a stream and was not taken yet, with what was said about it.
    pub fn take_stream(&mut self) -> Option<(Arc<Pipe>, Stream, Option<Box<ReplyHead>>)> {
        self.context.take_stream()
    }

    /// Makes the stream a whole reply, if the invocation is over and all of it is there. Whether it was made one.
    pub fn complete_stream(&mut self) -> bool {
        self.context.complete_stream()
    }

    /// Ends it, wherever it is; what is left can only be thrown away.
    pub fn kill(&mut self) {
        self.sandbox.kill();
    }

    /// Takes it apart.
    #[inline]
    #[must_use]
    pub fn finish(mut self) -> Remains {
        let (reply, head) = self.take_reply();
        Remains { sandbox: self.sandbox, reply: reply.into_bytes(), head }
    }

    /// What the guest wrote to its standard output, and what it said about that. For an invocation that is over.
    pub(super) fn take_reply(&mut self) -> (Content, Option<Box<ReplyHead>>) {
        let Driver { sandbox, context, .. } = self;
        context.take_reply(|bytes| sandbox.split_share(bytes as u64))
    }

    /// How the guest came to where it is.
    #[must_use]
    pub fn backtrace(&self) -> Backtrace {
        self.sandbox.backtrace()
    }

    /// The call that runs, or ran when it ended.
    #[must_use]
    pub fn stage<'a>(&self, program: &'a Program) -> Option<&'a Stage> {
        program.stages.get(self.stage)
    }

    /// The name of the host function that was called last.
    #[must_use]
    pub fn host_function(&self, program: &Program) -> Option<&'static str> {
        let call = self.call?;
        program.imports.get(call.instance.index(), call.import).map(|imported| imported.function.name)
    }

    /// The sandbox.
    #[must_use]
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Prepares the next call, or ends the invocation when there is none.
    fn begin(&mut self, program: &Program) -> Option<Progress> {
        let Some(stage) = program.stages.get(self.stage) else { return Some(Progress::Ended(Ok(()))) };
        if self.stage == self.first {
            if let Some(share) = self.context.take_body_share() {
                self.sandbox.join_share(share);
            }
            if !self.sandbox.set_host_bytes(self.context.kept_bytes()) {
                return Some(Progress::Ended(Err(self.refused().unwrap_or(Failure::MemoryLimit))));
            }
        }
        if program.serves_http(stage) {
            self.context.serve_http();
        }
        let callee = program.callee(self.stage, &self.sandbox);
        // Both were checked when the function was loaded.
        let prepared = callee.map(|callee| self.sandbox.prepare_callee(callee));
        if !matches!(prepared, Some(Ok(()))) {
            tracing::error!(function = self.context.name(), ?stage, ?prepared, "a call could not be prepared");
            return Some(Progress::Ended(Err(Failure::Internal)));
        }
        self.next = Next::Guest;
        None
    }

    /// A call returned: the one on the first stack, as the glue of a component returns on no other.
    fn returned(&mut self, program: &Program) -> Option<Progress> {
        if !self.stacks.is_first(&self.sandbox) {
            let trap = ComponentTrap::NoSuchStack;
            return Some(Progress::Ended(Err(Failure::Component { trap, message: trap.to_string().into() })));
        }
        self.next = Next::Stage;
        let stage = program.stages.get(self.stage);
        self.stage += 1;
        if matches!(stage, Some(Stage::Status(_)))
            && let Some(status) = self.sandbox.result(0).map(Slot::u32)
            && status != 0
        {
            return Some(Progress::Ended(Err(self.exited(status))));
        }
        None
    }

    fn host_call(&mut self, program: &Program, call: HostCall) -> Option<Progress> {
        self.context.count_host_call();
        self.call = Some(call);
        self.carry_out(program, host::call)
    }

    /// Does `work` for the host call. A panic in it is a bug of the host, and ends this invocation only.
    fn carry_out(
        &mut self,
        program: &Program,
        work: impl FnOnce(&ImportedFunction, InstanceId, &mut Sandbox, &mut Context) -> Answer,
    ) -> Option<Progress> {
        let found = self.call.and_then(|call| Some((call, program.imports.get(call.instance.index(), call.import)?)));
        let Some((call, imported)) = found else {
            let (function, call) = (&self.context.name(), self.call);
            tracing::error!(function, ?call, "a host call of nothing that the host provides");
            return Some(Progress::Ended(Err(Failure::Internal)));
        };
        let (sandbox, context) = (&mut self.sandbox, &mut self.context);
        // Whatever the panic left half done is in this sandbox and this context, and both are thrown away.
        let answer = catch_unwind(AssertUnwindSafe(|| work(imported, call.instance, sandbox, context)));
        if !self.sandbox.set_host_bytes(self.context.kept_bytes()) {
            return Some(Progress::Ended(Err(self.refused().unwrap_or(Failure::MemoryLimit))));
        }
        match answer {
            Ok(Answer::Done) => None,
            Ok(Answer::Again) => {
                self.next = Next::Again;
                Some(Progress::Yields)
            }
            Ok(Answer::Waits(pending)) => {
                self.next = Next::Completion;
                Some(Progress::Pends(pending))
            }
            Ok(Answer::Ended(Stop::Exit(status))) => {
                let leaves = self.leaves_init(program, imported.function, status);
                self.sandbox.finish();
                if leaves {
                    self.stage += 1;
                    self.next = Next::Stage;
                    return None;
                }
                Some(Progress::Ended(if status == 0 { Ok(()) } else { Err(self.exited(status)) }))
            }
            Ok(Answer::Ended(Stop::ReplyTooLarge)) => Some(Progress::Ended(Err(Failure::ReplyTooLarge))),
            Ok(Answer::Ended(Stop::Trap(trap))) => {
                Some(Progress::Ended(Err(self.component_trapped(trap, call.instance, imported.function))))
            }
            Ok(Answer::Ended(Stop::Switch(stack))) => self.switch(program, call.instance, imported.function, stack),
            Ok(Answer::Ended(Stop::Deadline)) => Some(Progress::Ended(Err(Failure::Deadline))),
            Ok(Answer::Ended(Stop::Body(error))) => Some(Progress::Ended(Err(error.into()))),
            // What watches it knows why, or its context.
            Ok(Answer::Ended(Stop::Refused)) => {
                Some(Progress::Ended(Err(self.context.take_refused().unwrap_or(Failure::Internal))))
            }
            Ok(Answer::Ended(Stop::Errno(_) | Stop::Again | Stop::Waits)) | Err(_) => Some(self.failed(program)),
        }
    }

    /// Goes on on another of the guest's stacks. The next number starts one, by a call of what that instance exports for it.
    /// The glue of a component asks for nothing else; a plain module may ask for anything.
    fn switch(&mut self, program: &Program, instance: InstanceId, called: &HostFunction, stack: u32) -> Option<Progress> {
        let trap = match self.stacks.switch(&mut self.sandbox, stack, |sandbox| sandbox.export_function(instance, STACK)) {
            Ok(()) => return None,
            Err(CallError::NoStack) => return Some(Progress::Ended(Err(self.refused().unwrap_or(Failure::NoMemory)))),
            Err(CallError::Fibers { .. }) => ComponentTrap::Violation(Violation::StacksExhausted),
            Err(CallError::NoFiber | CallError::Types { .. } | CallError::NoEntry(_)) => ComponentTrap::NoSuchStack,
            Err(_) => return Some(self.failed(program)),
        };
        Some(Progress::Ended(Err(self.component_trapped(trap, instance, called))))
    }

    fn failed(&self, program: &Program) -> Progress {
        let import = self.host_function(program);
        tracing::error!(function = self.context.name(), import, "the host failed in a host call");
        Progress::Ended(Err(Failure::Internal))
    }

    /// A component did what it may not, in the call of a host function by that instance.
    fn component_trapped(&self, trap: ComponentTrap, instance: InstanceId, called: &HostFunction) -> Failure {
        let places = self.sandbox.locations().into_iter().map(|place| (place.module, place.function, place.offset));
        let (artifact, _) = self.sandbox.module(instance);
        let message = trap.told(artifact.descriptor(), places, (called.module, called.name));
        Failure::Component { trap, message: message.into() }
    }

    /// Whether an exit with that status ends `init` and nothing else. Not on a stack that the guest has begun, whose first one would wait for ever; and
    /// not from within a component, which is entered still.
    fn leaves_init(&self, program: &Program, called: &HostFunction, status: u32) -> bool {
        status == LEAVES_INIT
            && called.module == wasi::MODULE
            && matches!(self.stage(program), Some(Stage::Init(_)))
            && self.stacks.is_first(&self.sandbox)
    }

    fn exited(&self, status: u32) -> Failure {
        self.refused().unwrap_or(Failure::Exit(status))
    }

    /// What a guest that gave up may have given up for: it was refused memory.
    fn refused(&self) -> Option<Failure> {
        self.sandbox.refusal().map(|refusal| match refusal {
            Refusal::Limit => Failure::MemoryLimit,
            Refusal::Exhausted => Failure::NoMemory,
        })
    }

    /// Guests that are refused memory commonly abort, which is `unreachable`.
    fn trapped(&self, code: TrapCode) -> Failure {
        let known = match code {
            TrapCode::Unreachable => self.refused(),
            // Within its memory, but the server has none for the page that it would have had for itself.
            TrapCode::MemoryOutOfBounds if self.sandbox.was_refused_copy() => self.refused(),
            TrapCode::MemoryOutOfBounds => MemoryStack::overflowed(&self.sandbox).map(Failure::MemoryStack),
            _ => None,
        };
        known.unwrap_or(Failure::Trap(code))
    }
}
