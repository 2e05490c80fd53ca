//! One invocation in its sandbox: the calls that make it up, the host calls in between, and how it ends.
//!
//! Knows neither HTTP nor the scheduler: whoever holds an [`Execution`] runs it a quantum at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sledge_sandbox::{Backtrace, Event, HostCall, InstanceId, Refusal, Sandbox, Slot, TrapCode};

use crate::host::{
    self, Answer, BUFFER_BYTES_MIN, Completion, Context, ImportedFunction, Outgoing, Output, Panicked, Pending, Pipe, ReplyHead,
    Stop, Stream,
};
use crate::invoke::function::{Function, Stage};
use crate::memory_stack::MemoryStack;
use crate::outcome::Failure;
use crate::phases::PhaseClock;

/// An invocation that has begun.
#[derive(Debug)]
pub struct Execution {
    function: Arc<Function>,
    sandbox: Box<Sandbox>,
    context: Context,
    /// Index of the call to begin next.
    stage: usize,
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
    Again(HostCall),
    /// [Complete](Execution::complete) that host call.
    Completion(HostCall),
    /// Nothing: it is over.
    End(Result<(), Failure>),
}

/// What a quantum came to.
#[derive(Debug)]
pub enum Progress {
    /// The quantum is over, there is more to do.
    Preempted,
    /// The guest waits: run it when this time has come. Without a time it waits for ever.
    Waits {
        /// When it goes on.
        until: Option<Instant>,
    },
    /// A host call waits: [complete](Execution::complete) it when this is done, and only then run it.
    Pends(Pending),
    /// The invocation is over.
    Ended(Result<(), Failure>),
}

/// What is left of an invocation that is over.
#[derive(Debug)]
pub struct Remains {
    /// Whose invocation it was.
    pub function: Arc<Function>,
    /// The sandbox, to be put back to its pool (which keeps it only if it ended in good order).
    pub sandbox: Box<Sandbox>,
    /// What the guest wrote to its standard output.
    pub reply: Bytes,
    /// What it said about that.
    pub head: Option<Box<ReplyHead>>,
}

impl Execution {
    /// An invocation of `function` in a fresh sandbox.
    #[must_use]
    pub fn new(function: Arc<Function>, sandbox: Box<Sandbox>, context: Context) -> Execution {
        Execution { function, sandbox, context, stage: 0, next: Next::Stage }
    }

    /// Runs until the quantum is over or the invocation is. The thread must be a worker.
    pub fn run(&mut self) -> Progress {
        loop {
            let next = match &self.next {
                Next::Guest => match self.sandbox.resume() {
                    Event::HostCall(call) => self.host_call(call),
                    Event::Returned => self.returned(),
                    Event::Trapped(trap) => Some(Progress::Ended(Err(self.trapped(trap.code)))),
                    Event::Preempted => Some(Progress::Preempted),
                    Event::Waits { time } => Some(Progress::Waits { until: time.map(|time| Instant::now() + time) }),
                },
                Next::Stage => self.begin(),
                &Next::Again(call) => {
                    self.next = Next::Guest;
                    self.carry_out(call, host::call)
                }
                // Whoever runs it has not kept to the rules.
                Next::Completion(_) => Some(Progress::Ended(Err(Failure::Internal))),
                Next::End(result) => Some(Progress::Ended(result.clone())),
            };
            if let Some(progress) = next {
                if matches!(progress, Progress::Ended(Ok(()))) && self.context.falls_short() {
                    return Progress::Ended(Err(Failure::ReplyIncomplete));
                }
                return progress;
            }
        }
    }

    /// Goes on with the host call that pended. Then it is to be run, unless it waits for something else.
    pub fn complete(&mut self, completion: Result<Completion, Panicked>) -> Option<Pending> {
        let Next::Completion(call) = self.next else { return None };
        self.next = Next::Guest;
        let progress = match completion {
            Ok(completion) => self.carry_out(call, |imported, instance, sandbox, context| {
                host::complete(imported, instance, sandbox, context, completion)
            }),
            Err(Panicked) => Some(self.failed(call)),
        };
        match progress {
            Some(Progress::Pends(pending)) => return Some(pending),
            Some(Progress::Ended(result)) => self.next = Next::End(result),
            // Whatever is to be done now is done when it runs.
            Some(Progress::Preempted | Progress::Waits { .. }) | None => {}
        }
        None
    }

    /// The invocation's side of the outside world.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// It runs from that time on.
    pub fn start_clock(&mut self, now: Instant) {
        if let Some(phases) = &mut self.context.phases {
            phases.start(now);
        }
    }

    /// Until that time it ran.
    pub fn count_time(&mut self, now: Instant) {
        if let Some(phases) = &mut self.context.phases {
            phases.count(now);
        }
    }

    /// For how long it ran in each phase, if its function declares any.
    pub const fn take_phases(&mut self) -> Option<Box<PhaseClock>> {
        self.context.phases.take()
    }

    /// The calls of other functions that it has made since that was last asked.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        self.context.take_outgoing()
    }

    /// Its reply, if that is a stream and nobody has asked for it yet, with what was said about it.
    pub fn take_stream(&mut self) -> Option<(Arc<Pipe>, Stream, Option<Box<ReplyHead>>)> {
        self.context.take_stream()
    }

    /// Ends it, wherever it is; what is left can only be thrown away.
    pub fn kill(&mut self) {
        self.sandbox.kill();
    }

    /// Takes it apart.
    #[must_use]
    pub fn finish(self) -> Remains {
        let Execution { function, mut sandbox, mut context, .. } = self;
        let head = context.reply_head.take();
        if let Output::Stream(writer) = &context.output {
            let bytes = writer.memory_bytes();
            writer.set_share(if bytes >= BUFFER_BYTES_MIN { sandbox.split_share(bytes as u64) } else { None });
        }
        let reply = context.into_reply();
        // It stays in memory until the client has taken it.
        let counts = reply.memory_bytes() >= BUFFER_BYTES_MIN;
        let share = if counts { sandbox.split_share(reply.memory_bytes() as u64) } else { None };
        Remains { function, sandbox, reply: reply.into_bytes(share), head }
    }

    /// How the guest came to where it is.
    #[must_use]
    pub fn backtrace(&self) -> Backtrace {
        self.sandbox.backtrace()
    }

    /// Whose invocation this is.
    #[must_use]
    pub const fn function(&self) -> &Arc<Function> {
        &self.function
    }

    /// Prepares the next call, or ends the invocation when there is none.
    fn begin(&mut self) -> Option<Progress> {
        let Some(stage) = self.function.stages.get(self.stage) else { return Some(Progress::Ended(Ok(()))) };
        if self.stage == 0 {
            if let Some(share) = self.context.take_body_share() {
                self.sandbox.join_share(share);
            }
            if !self.sandbox.set_host_bytes(self.context.kept_bytes()) {
                return Some(Progress::Ended(Err(self.refused().unwrap_or(Failure::MemoryLimit))));
            }
        }
        let callee = self.function.callee(self.stage, &self.sandbox);
        // Both were checked when the function was loaded.
        let prepared = callee.map(|callee| self.sandbox.prepare_callee(callee));
        if !matches!(prepared, Some(Ok(()))) {
            tracing::error!(function = self.function.name(), ?stage, ?prepared, "a call could not be prepared");
            return Some(Progress::Ended(Err(Failure::Internal)));
        }
        self.next = Next::Guest;
        None
    }

    /// A call returned.
    fn returned(&mut self) -> Option<Progress> {
        self.next = Next::Stage;
        let stage = self.function.stages.get(self.stage);
        self.stage += 1;
        if matches!(stage, Some(Stage::Status(_)))
            && let Some(status) = self.sandbox.result(0).map(Slot::u32)
            && status != 0
        {
            return Some(Progress::Ended(Err(self.exited(status))));
        }
        None
    }

    fn host_call(&mut self, call: HostCall) -> Option<Progress> {
        self.context.host_calls = self.context.host_calls.saturating_add(1);
        self.carry_out(call, host::call)
    }

    /// Does `work` for a host call. A panic in it is a bug of the host, and ends this invocation only.
    fn carry_out(
        &mut self,
        call: HostCall,
        work: impl FnOnce(&ImportedFunction, InstanceId, &mut Sandbox, &mut Context) -> Answer,
    ) -> Option<Progress> {
        let Some(imported) = self.function.imports.get(call.instance.index(), call.import) else {
            tracing::error!(function = self.function.name(), ?call, "a host call of nothing that the host provides");
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
                self.next = Next::Again(call);
                Some(Progress::Preempted)
            }
            Ok(Answer::Waits(pending)) => {
                self.next = Next::Completion(call);
                Some(Progress::Pends(pending))
            }
            Ok(Answer::Ended(Stop::Exit(status))) => {
                self.sandbox.finish();
                Some(Progress::Ended(if status == 0 { Ok(()) } else { Err(self.exited(status)) }))
            }
            Ok(Answer::Ended(Stop::ReplyTooLarge)) => Some(Progress::Ended(Err(Failure::ReplyTooLarge))),
            Ok(Answer::Ended(Stop::Deadline)) => Some(Progress::Ended(Err(Failure::Deadline))),
            Ok(Answer::Ended(Stop::Errno(_) | Stop::Again | Stop::Waits)) | Err(_) => Some(self.failed(call)),
        }
    }

    fn failed(&self, call: HostCall) -> Progress {
        let import = self.function.imports.get(call.instance.index(), call.import).map_or("", |imported| imported.function.name);
        tracing::error!(function = self.function.name(), import, "the host failed in a host call");
        Progress::Ended(Err(Failure::Internal))
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
            TrapCode::MemoryOutOfBounds => MemoryStack::overflowed(&self.sandbox).map(Failure::MemoryStack),
            _ => None,
        };
        known.unwrap_or(Failure::Trap(code))
    }
}
