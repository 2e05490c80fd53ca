//! The calls of other functions that guests make.
//!
//! A callee whose caller waits for it runs at once, where the caller would: within its quantum, on this thread, without a queue, a wake-up or another turn. Most end there, and their
//! caller goes on with the reply. One that has to wait, or that the end of the quantum stops, becomes a task of its own: the caller goes on too, and waits as for any call.
//! Guests are suspended in a host call while what they call runs: no guest is ever on another's stack. The host's own stack is as deep as the chain of calls, which has a limit.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::ahead::Call;
use super::turn::Left;
use super::{Begun, Worker};
use crate::host::{Body, CallFailure, CallId, Outgoing, RpcRequest, coming};
use crate::invoke::caller::Caller;
use crate::invoke::function::Function;
use crate::invoke::work::{Blocks as _, Started, Work};
use crate::invoke::{self, Dispatcher, Intake, Invocation};
use crate::memo::callees::Callees;
use crate::memo::rule::Why;
use crate::outcome::Failure;
use crate::reply::{Answer, BUFFER_BYTES_MIN, Stream};
use crate::schedule::{Event, TaskId};
use crate::txn::PutOff;
use crate::worker::spans;

/// What came of a guest's calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Called {
    /// For how long the callees ran at once.
    pub(super) ran: Duration,
    /// Whether that was as long as a quantum is.
    pub(super) quantum_is_over: bool,
}

/// Runs an invocation at once, within its caller's quantum.
struct Within<'a> {
    worker: &'a mut Worker,
    quantum_began: Instant,
    called: &'a mut Called,
}

impl Intake for Within<'_> {
    const KEEPS_DEADLINES: bool = true;

    fn take(self, invocation: Box<Invocation>) -> Option<Answer> {
        let Within { worker, quantum_began, called } = self;
        let (task, began) = (invocation.task(TaskId(0), false), invocation.times.arrived);
        // What answers its caller, whose reply may have begun, is not to be mixed up with what answers it.
        let of_caller = worker.answer.take();
        let came = match worker.start(invocation, began) {
            Begun::Runs(started) => Some(worker.run_within(started, (began, quantum_began))),
            // It waits when its turn comes.
            Begun::Checks(checking) => Some((Duration::ZERO, Some(Work::Checking(checking)))),
            // No callee waits for an equal request; one that did would do so as a task.
            Begun::Follows(mut invocation) => {
                let later = invocation.make_way();
                worker.answer_with(later);
                Some((Duration::ZERO, Some(Work::Job(invocation))))
            }
            Begun::Over => None,
        };
        let answer = mem::replace(&mut worker.answer, of_caller);
        let Some((ran, work)) = came else { return answer };
        let now = Instant::now();
        worker.scheduler.step(Event::Called { task, ran, is_over: work.is_none() }, now);
        if let Some(work) = work {
            worker.scheduler.step(Event::Arrived(work), now);
        }
        called.ran += now.saturating_duration_since(began);
        called.quantum_is_over = now.saturating_duration_since(quantum_began) >= worker.settings.quantum;
        answer
    }
}

impl Worker {
    /// Runs what is called until it is over or has to wait. For how long it ran, and what is left of it.
    fn run_within(&mut self, started: Box<Started>, begun: (Instant, Instant)) -> (Duration, Option<Work>) {
        match self.run_until(None, started, begun, false) {
            Left::Over { ran, .. } => (ran, None),
            Left::Preempted { ran, started } if started.invocation.times.cpu >= started.invocation.function.cpu_max => {
                self.end_early(started, Failure::CpuLimit, Instant::now());
                (ran, None)
            }
            Left::Preempted { ran, started } | Left::Phase { ran, started } => (ran, Some(Work::Started(started))),
            Left::Waits { ran, mut started, unwaited, .. } => {
                started.unwaited = Some(unwaited);
                (ran, Some(Work::Started(started)))
            }
        }
    }

    /// Takes in the calls of other functions that a guest has made: in a quantum, what it waits for runs at once.
    pub(super) fn call(&mut self, started: &mut Started, quantum_began: Option<Instant>) -> Called {
        let mut called = Called::default();
        while let Some(Outgoing { name, input, host_call, id, rpc }) = started.driver.next_outgoing() {
            let transaction = started.driver.context().transaction();
            if let (None, Some(transaction)) = (id, transaction.filter(|transaction| !transaction.may_split())) {
                transaction.put_off(PutOff { name, input, host_call });
                let _ = watched_call(started, false);
                continue;
            }
            if let Some(id) = id
                && let Some(answer) = self.reach(started, &Call { name: &name, input: &input, host_call, rpc: rpc.as_ref() })
            {
                started.driver.called(id, Ok(answer));
                continue;
            }
            let transaction = started.driver.context().transaction();
            // What is not waited for is no part of what its caller does.
            let joins = id.and(transaction).cloned();
            let account = id.and_then(|_| started.account()).cloned();
            let tells = watched_call(started, id.is_some());
            let trace = started.driver.context().trace().map(|trace| trace.call());
            let answer = match self.callee(started, &name, input, host_call, rpc) {
                Ok(mut callee) => {
                    callee.request_id = started.driver.context().request_id().cloned();
                    (callee.trace, callee.joins, callee.tells, callee.account) = (trace, joins, tells, account);
                    callee.tell_trace();
                    if id.is_some() {
                        started.invocation.urges(&mut callee);
                    }
                    let dispatcher = Arc::clone(&self.dispatcher);
                    match (id, quantum_began) {
                        (Some(CallId::Now), Some(quantum_began)) if self.scheduler.may_begin_within() => {
                            let (began, before) = (callee.times.arrived, called.ran);
                            started.driver.count_time(began);
                            let answer = dispatcher.begin(callee, Within { worker: self, quantum_began, called: &mut called });
                            let ran = called.ran - before;
                            started.driver.start_clock(began + ran);
                            started.waited(ran);
                            Ok(answer)
                        }
                        (Some(_), _) => Ok(dispatcher.begin(callee, &mut *self)),
                        (None, _) => {
                            dispatcher.begin_unanswered(callee, &mut *self);
                            continue;
                        }
                    }
                }
                Err(failure) => {
                    let caller = started.invocation.function.name();
                    tracing::debug!(caller, callee = &*name, ?failure, "a call was refused");
                    if let Some(tells) = tells {
                        tells.refuse(Why::Called);
                    }
                    if let Some(trace) = &trace {
                        spans::tell_refused(trace, &name, &failure);
                    }
                    Err(failure)
                }
            };
            if let Some(id) = id {
                started.driver.called(id, answer);
            }
        }
        called
    }

    /// Begins the calls that an invocation's transaction has put off until it was made.
    pub(super) fn begin_put_off(&mut self, started: &mut Started) {
        for PutOff { name, input, host_call } in started.driver.take_put_off() {
            match self.callee(started, &name, input, host_call, None) {
                Ok(mut callee) => {
                    callee.request_id = started.driver.context().request_id().cloned();
                    let dispatcher = Arc::clone(&self.dispatcher);
                    dispatcher.begin_unanswered(callee, &mut *self);
                }
                Err(failure) => {
                    let caller = started.invocation.function.name();
                    tracing::warn!(caller, callee = &*name, ?failure, "a call that waited for a commit was refused");
                }
            }
        }
    }

    /// The invocation of a function that a guest calls, admitted.
    pub(super) fn callee(
        &self,
        started: &mut Started,
        name: &str,
        input: Bytes,
        host_call: u32,
        rpc: Option<RpcRequest>,
    ) -> Result<Box<Invocation>, CallFailure> {
        let function = started.invocation.function.neighbours.find(name).map_err(CallFailure::Failed)?;
        invocation(&self.dispatcher, function, (Arc::clone(started.calls_as()), host_call), input, rpc)
    }
}

/// The same of that version of a function, which that one calls by which of its host calls.
pub(super) fn invocation(
    dispatcher: &Arc<Dispatcher>,
    function: Arc<Function>,
    caller: (Arc<Caller>, u32),
    input: Bytes,
    rpc: Option<RpcRequest>,
) -> Result<Box<Invocation>, CallFailure> {
    if !caller.0.may_call(function.number, function.cycles_max()) {
        return Err(CallFailure::TooDeep);
    }
    let admission = dispatcher.admit(&function).map_err(CallFailure::Failed)?;
    let (head, more, timeout) = rpc.map_or((None, None, None), |rpc| (Some(rpc.head), rpc.more, rpc.timeout));
    let input = invoke::Input { head, body: body(&function, input, more)? };
    let now = Instant::now();
    let mut invocation = Invocation::new(function, admission, Some(caller), input, now);
    if let Some(timeout) = timeout {
        invocation.deadline = invocation.deadline.min(now + timeout);
    }
    Ok(invocation)
}

/// Where a callee tells what it did, if that is asked for. What becomes of a call whose reply is not wanted is not known when its caller is over.
pub(super) fn watched_call(started: &mut Started, is_wanted: bool) -> Option<Arc<Callees>> {
    if !started.is_told() {
        return None;
    }
    let callees = started.callees.get_or_insert_default();
    if !is_wanted {
        callees.refuse(Why::Called);
        return None;
    }
    callees.made();
    Some(Arc::clone(callees))
}

/// What a guest calls a function with, and what it writes behind that. It counts as the server's from when the caller hands it over until the callee begins.
fn body(callee: &Function, input: Bytes, more: Option<Stream>) -> Result<Body, CallFailure> {
    let share = match callee.template.budget() {
        Some(budget) if input.len() >= BUFFER_BYTES_MIN => {
            Some(budget.claim(input.len() as u64).ok_or(CallFailure::Failed(Failure::NoMemory))?)
        }
        _ => None,
    };
    let mut body = more.map_or_else(Body::default, coming);
    body.push(input);
    body.set_share(share);
    Ok(body)
}
