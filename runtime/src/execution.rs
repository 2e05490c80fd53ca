//! One invocation in its sandbox: the calls that make it up, the host calls in between, and how it ends.
//!
//! Knows neither HTTP nor the scheduler: whoever holds an [`Execution`] runs it a quantum at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sledge_sandbox::{Backtrace, Event, HostCall, Refusal, Sandbox, TrapCode, Value};

use crate::function::{Function, Stage};
use crate::host::{self, Answer, BUFFER_BYTES_MIN, Context, Stop};
use crate::outcome::Failure;

/// An invocation that has begun.
#[derive(Debug)]
pub struct Execution {
    function: Arc<Function>,
    sandbox: Sandbox,
    context: Context,
    /// Index of the call to begin next.
    stage: usize,
    /// Whether a call is in progress.
    calling: bool,
    /// A host call that wants to go on before the guest does.
    again: Option<HostCall>,
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
    /// The invocation is over.
    Ended(Result<(), Failure>),
}

/// What is left of an invocation that is over.
#[derive(Debug)]
pub struct Remains {
    /// Whose invocation it was.
    pub function: Arc<Function>,
    /// The sandbox, to be put back to its pool (which keeps it only if it ended in good order).
    pub sandbox: Sandbox,
    /// What the guest wrote to its standard output.
    pub reply: Bytes,
}

impl Execution {
    /// An invocation of `function` in a fresh sandbox.
    #[must_use]
    pub fn new(function: Arc<Function>, sandbox: Sandbox, context: Context) -> Execution {
        Execution { function, sandbox, context, stage: 0, calling: false, again: None }
    }

    /// Runs until the quantum is over or the invocation is. The thread must be a worker.
    pub fn run(&mut self) -> Progress {
        loop {
            let next = match self.again.take() {
                Some(call) => self.host_call(call),
                None if !self.calling => self.begin(),
                None => match self.sandbox.resume() {
                    Event::HostCall(call) => self.host_call(call),
                    Event::Returned => self.returned(),
                    Event::Trapped(trap) => Some(Progress::Ended(Err(self.trapped(trap.code)))),
                    Event::Preempted => Some(Progress::Preempted),
                    Event::Waits { time } => Some(Progress::Waits { until: time.map(|time| Instant::now() + time) }),
                },
            };
            if let Some(progress) = next {
                return progress;
            }
        }
    }

    /// Ends it, wherever it is; what is left can only be thrown away.
    pub fn kill(&mut self) {
        self.sandbox.kill();
    }

    /// Takes it apart.
    #[must_use]
    pub fn finish(self) -> Remains {
        let Execution { function, mut sandbox, context, .. } = self;
        let reply = context.into_reply();
        // It stays in memory until the client has taken it.
        let counts = reply.memory_bytes() >= BUFFER_BYTES_MIN;
        let share = if counts { sandbox.split_share(reply.memory_bytes() as u64) } else { None };
        Remains { function, sandbox, reply: reply.into_bytes(share) }
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
        let callee = stage.callee(&self.sandbox);
        // Both were checked when the function was loaded.
        let prepared = callee.map(|callee| self.sandbox.prepare(callee, &[]));
        if !matches!(prepared, Some(Ok(()))) {
            tracing::error!(function = self.function.name(), ?stage, ?prepared, "a call could not be prepared");
            return Some(Progress::Ended(Err(Failure::Internal)));
        }
        self.calling = true;
        None
    }

    /// A call returned.
    fn returned(&mut self) -> Option<Progress> {
        self.calling = false;
        let stage = self.function.stages.get(self.stage);
        self.stage += 1;
        if matches!(stage, Some(Stage::Status(_)))
            && let Some(&Value::I32(status)) = self.sandbox.results().first()
            && status != 0
        {
            return Some(Progress::Ended(Err(self.exited(status.cast_unsigned()))));
        }
        None
    }

    /// Carries out a host call. A panic in it is a bug of the host, and ends this invocation only.
    fn host_call(&mut self, call: HostCall) -> Option<Progress> {
        let Some(imported) = self.function.imports.get(call.instance.index(), call.import) else {
            tracing::error!(function = self.function.name(), ?call, "a host call of nothing that the host provides");
            return Some(Progress::Ended(Err(Failure::Internal)));
        };
        let (sandbox, context) = (&mut self.sandbox, &mut self.context);
        // Whatever the panic left half done is in this sandbox and this context, and both are thrown away.
        let answer = catch_unwind(AssertUnwindSafe(|| host::call(imported, call.instance, sandbox, context)));
        if !self.sandbox.set_host_bytes(self.context.kept_bytes()) {
            return Some(Progress::Ended(Err(self.refused().unwrap_or(Failure::MemoryLimit))));
        }
        match answer {
            Ok(Answer::Done) => None,
            Ok(Answer::Again) => {
                self.again = Some(call);
                Some(Progress::Preempted)
            }
            Ok(Answer::Ended(Stop::Exit(status))) => {
                self.sandbox.finish();
                Some(Progress::Ended(if status == 0 { Ok(()) } else { Err(self.exited(status)) }))
            }
            Ok(Answer::Ended(Stop::ReplyTooLarge)) => Some(Progress::Ended(Err(Failure::ReplyTooLarge))),
            Ok(Answer::Ended(Stop::Deadline)) => Some(Progress::Ended(Err(Failure::Deadline))),
            Ok(Answer::Ended(Stop::Errno(_) | Stop::Again)) | Err(_) => {
                tracing::error!(
                    function = self.function.name(),
                    import = imported.function.name,
                    "the host failed in a host call"
                );
                Some(Progress::Ended(Err(Failure::Internal)))
            }
        }
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
        self.refused().filter(|_| code == TrapCode::Unreachable).unwrap_or(Failure::Trap(code))
    }
}
