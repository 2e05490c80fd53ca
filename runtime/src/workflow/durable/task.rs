//! The tasks of a durable execution, each carried out so that its effects on the store are made together with the step that follows it.
//!
//! A function's or an operation's reads and writes are a transaction that is [settled](Transaction::settle) when it has answered: what is left of it is a [commit](Made), to which the execution
//! adds its own next checkpoint. So both are there after a crash or neither is, and then the task is carried out again. What has been read and was changed meanwhile makes it run again, too.
//!
//! A task that runs again since a hot key was changed stands in the [line](crate::txn::contention::Contention::line) of that key first, and so does an operation of a hot key. It holds nothing
//! there, no place either. So of thousands of tasks that read and change one key each conflicts a few times at most, and other tasks have the places.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sledge_workflow::definition::Resource;
use sledge_workflow::definition::resource::{KeyValueOperation, WorkflowMode, workflow_name};
use sledge_workflow::machine::{Failure, Outcome, Purpose, StartTask, Status, TaskId};

use super::back_off::BackOff;
use super::core::Core;
use super::journal::{Parent, Place, Summary};
use super::pinning::{Found, Missing};
use super::pins::Pins;
use super::{Refused, name_of};
use crate::config::Instance;
use crate::invoke::function::Function;
use crate::kv::{self, BucketKey, Commit, KvError};
use crate::txn::contention::First;
use crate::txn::{Isolation, Outside, Settled, Transaction, Verdict};
use crate::workflow::failure::{failed, of_function, of_store};
use crate::workflow::function::{Asked, Call, has_no_room, replied};
use crate::workflow::items::{Results, Unread};
use crate::workflow::{Runner, Workflow, express, http, items, outbox, store};

/// How often a task runs again since what it has read was changed.
pub(super) const STALE_MAX: u32 = 1_000;
/// How long to wait where the server has no room for a call, or the store does not work: the first time, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// A deadline for what has none.
const FOR_EVER: Duration = Duration::from_secs(366 * 86_400);

/// What a task came to.
pub(super) struct Finished {
    pub task: TaskId,
    /// When it began, in milliseconds since 1970.
    pub begun_ms: i64,
    pub result: Result<Value, Failure>,
    /// What is to be committed with that.
    pub made: Option<Made>,
}

/// What a task has done to the store, as far as that has still to be made.
#[derive(Clone)]
pub(super) struct Made {
    pub transaction: Arc<Transaction>,
    pub commit: Commit,
}

/// The execution whose task is carried out.
pub(super) struct Of {
    pub id: u64,
    pub place: Place,
    /// The versions of functions that it calls.
    pub pins: Rc<Pins>,
}

/// One attempt of a task.
struct Attempt {
    result: Result<Value, Failure>,
    /// Its transaction, if it had one, and whether what it has written is to stay: also where a function has replied with an error, since it has ended in good order.
    transaction: Option<(Arc<Transaction>, bool)>,
}

impl From<Result<Value, Failure>> for Attempt {
    fn from(result: Result<Value, Failure>) -> Attempt {
        Attempt { result, transaction: None }
    }
}

/// Carries a task of that execution out. `conflicted` is the key that was changed while it ran before, if it has.
pub(super) async fn carry_out<R: Runner + 'static>(
    core: Rc<Core<R>>,
    workflow: Arc<Workflow>,
    execution: Of,
    start: StartTask,
    mut conflicted: Option<BucketKey>,
) -> Finished {
    let begun_ms = express::now_ms();
    let mut runs = 0;
    loop {
        let first = match conflicted.take() {
            None => None,
            Some(key) => match core.unless_stopping(workflow.reach.contention.line(&key)).await {
                None => return Finished { task: start.task, begun_ms, result: stopping(), made: None },
                Some(first) => first,
            },
        };
        let Attempt { result, transaction } = attempt(&core, &workflow, &execution, &start, first).await;
        let Some((transaction, ended_well)) = transaction else {
            return Finished { task: start.task, begun_ms, result, made: None };
        };
        let settled = transaction.settle(ended_well, workflow.reach.kv.as_ref());
        match &settled {
            Settled::Done => transaction.decided(Verdict::Committed),
            Settled::Stale => transaction.decided(Verdict::Stale),
            Settled::Commit(_) | Settled::Failed(_) => {}
        }
        let (result, made) = match settled {
            Settled::Done => (result, None),
            Settled::Commit(commit) => (result, Some(Made { transaction, commit })),
            Settled::Failed(error) => (Err(of_store(&error)), None),
            Settled::Stale if runs < STALE_MAX => {
                runs += 1;
                conflicted = transaction.take_conflicted();
                continue;
            }
            Settled::Stale => (Err(conflict()), None),
        };
        return Finished { task: start.task, begun_ms, result, made };
    }
}

/// What a task failed with that has run again too often.
pub(super) fn conflict() -> Failure {
    failed("KeyValue.Conflict", format!("what the task reads was changed {STALE_MAX} times while it ran"))
}

/// `first`: its place in the line of a key that it is to have the lock of.
async fn attempt<R: Runner + 'static>(
    core: &Rc<Core<R>>,
    workflow: &Workflow,
    execution: &Of,
    start: &StartTask,
    first: Option<First>,
) -> Attempt {
    let StartTask { resource, input, .. } = start;
    if start.purpose != Purpose::Work {
        return dataset(core, workflow, start).await;
    }
    match &**resource {
        Resource::Function { name, .. } => function(core, workflow, execution, &Asked::plain(name, input), (start, first)).await,
        Resource::LambdaInvoke { .. } => match Asked::invoke(input) {
            Ok(asked) => function(core, workflow, execution, &asked, (start, first)).await,
            Err(failure) => Err(failure).into(),
        },
        Resource::KeyValue { operation } => key_value(core, workflow, (*operation, input), first).await,
        Resource::Workflow { .. } | Resource::StartExecution { .. } => nested(core, workflow, execution.id, start).await.into(),
        Resource::Http { .. } | Resource::HttpInvoke => request(core, workflow, execution.id, start).await.into(),
    }
}

/// Calls a function; where there is no room for that, later, and where the version to which the execution is pinned is missing, when it is there.
async fn function<R: Runner + 'static>(
    core: &Core<R>,
    workflow: &Workflow,
    execution: &Of,
    asked: &Asked<'_>,
    (start, mut first): (&StartTask, Option<First>),
) -> Attempt {
    let mut back_off = Core::<R>::missing_back_off();
    loop {
        let missing = match call_version(core, workflow, execution, asked, (start, first.take())).await {
            Ok(attempt) => return attempt,
            Err(missing) => missing,
        };
        // It takes no place while it waits.
        if core.wait_for_version(execution, asked.name, missing, &mut back_off).await.is_none() {
            return stopping().into();
        }
    }
}

/// Calls the version of a function to which the execution is pinned; unless that is missing.
async fn call_version<R: Runner + 'static>(
    core: &Core<R>,
    workflow: &Workflow,
    execution: &Of,
    asked: &Asked<'_>,
    (start, mut first): (&StartTask, Option<First>),
) -> Result<Attempt, Missing> {
    let Some(_place) = core.unless_stopping(core.place(workflow)).await else { return Ok(stopping().into()) };
    // It stands in a line where it was stale before.
    let (mut back_off, is_repeated) = (back_off(), first.is_some());
    loop {
        let function = match core.version(workflow, &execution.pins, asked).await {
            Found::Version(function) => function,
            Found::Failed(failure) => return Ok(Err(failure).into()),
            Found::Missing(missing) => return Err(missing),
        };
        let input = match asked.given(&function) {
            Ok(input) => input,
            Err(failure) => return Ok(Err(failure).into()),
        };
        let transaction = transaction(workflow, &function, &task_name(execution.id, start.task), is_repeated);
        // The next one of the line takes a place while this one waits for the lock or runs.
        match (&transaction, first.take()) {
            (Some(transaction), Some(first)) => transaction.take_first(first).await,
            (_, first) => drop(first),
        }
        let deadline = deadline(start);
        let call =
            Call { function: &function, input, deadline, joins: transaction.clone(), follows: false, tells: None, urgency: None };
        match replied(&core.runner, call).await {
            Ok(reply) => {
                let result = asked.output(Ok(reply));
                return Ok(Attempt { result, transaction: transaction.map(|transaction| (transaction, true)) });
            }
            Err(failure) if has_no_room(&failure) => {
                if core.unless_stopping(back_off.pause()).await.is_none() {
                    return Ok(stopping().into());
                }
            }
            Err(failure) => {
                let result = Err(of_function(asked.name, &failure));
                return Ok(Attempt { result, transaction: transaction.map(|transaction| (transaction, false)) });
            }
        }
    }
}

const fn back_off() -> BackOff {
    BackOff::new(BACK_OFF.0, BACK_OFF.1)
}

/// What a task comes to that the server does not carry out any more. Nothing takes it in.
fn stopping() -> Result<Value, Failure> {
    Err(failed("States.Runtime", "the server is stopping"))
}

/// Asks another server: again after a crash, with the same name.
async fn request<R: Runner + 'static>(
    core: &Core<R>,
    workflow: &Workflow,
    execution: u64,
    start: &StartTask,
) -> Result<Value, Failure> {
    let Some(_place) = core.unless_stopping(core.place(workflow)).await else { return stopping() };
    let deadline = deadline(start);
    if workflow.is_outbox() {
        return outbox::deliver(workflow.upstream.as_ref(), &start.input, deadline).await;
    }
    let name = task_name(execution, start.task);
    http::carry_out(workflow.upstream.as_ref(), &start.resource, &start.input, Some(&name), deadline).await
}

/// By when what a task does has to have ended.
pub(super) fn deadline(start: &StartTask) -> Instant {
    Instant::now() + start.deadline_ms.map_or(FOR_EVER, express::time_until)
}

/// The transaction of which a call of that function is a part. What cannot run again with the same input, or keeps what it does in its own memory, has none: its writes are made when it makes
/// them, and again if it runs again.
fn transaction(workflow: &Workflow, function: &Function, name: &str, is_repeated: bool) -> Option<Arc<Transaction>> {
    if function.streams_body || function.instance != Instance::Call {
        return None;
    }
    // Requests to other servers are made again where the task is.
    let default = || Isolation { contention: Arc::clone(&workflow.reach.contention), outside: Outside::Split };
    Some(Transaction::begin_repeatable(&function.isolation.clone().unwrap_or_else(default), name, is_repeated))
}

/// An operation of the store.
async fn key_value<R: Runner + 'static>(
    core: &Core<R>,
    workflow: &Workflow,
    (operation, input): (KeyValueOperation, &Value),
    first: Option<First>,
) -> Attempt {
    let asked = match store::Asked::read(operation, input) {
        Ok(asked) => asked,
        Err(failure) => return Err(failure).into(),
    };
    let space = match store::space(workflow.reach.kv.as_ref()) {
        Ok(space) => space,
        Err(failure) => return Err(failure).into(),
    };
    let contention = &workflow.reach.contention;
    let transaction = Transaction::begin(&Isolation { contention: Arc::clone(contention), outside: Outside::Split });
    let first = match first {
        Some(first) => Some(first),
        // It has no other key.
        None => match core.unless_stopping(contention.line(&asked.key)).await {
            Some(first) => first,
            None => return stopping().into(),
        },
    };
    if let Some(first) = first {
        transaction.take_first(first).await;
    }
    let mut back_off = back_off();
    loop {
        match operate(space, &transaction, &asked).await {
            Ok(output) => return Attempt { result: Ok(output), transaction: Some((transaction, true)) },
            Err(KvError::Unavailable(_)) => {
                if core.unless_stopping(back_off.pause()).await.is_none() {
                    return stopping().into();
                }
            }
            Err(error) => return Attempt { result: Err(of_store(&error)), transaction: Some((transaction, false)) },
        }
    }
}

/// The items of a Map, or its results: these are written in the commit of the step that takes the answer in.
async fn dataset<R: Runner + 'static>(core: &Core<R>, workflow: &Workflow, start: &StartTask) -> Attempt {
    let space = match store::space(workflow.reach.kv.as_ref()) {
        Ok(space) => space,
        Err(failure) => return Err(failure).into(),
    };
    if start.purpose == Purpose::Write {
        let isolation = Isolation { contention: Arc::clone(&workflow.reach.contention), outside: Outside::Split };
        let transaction = Transaction::begin(&isolation);
        let made = Results::of(&start.input).and_then(|results| {
            transaction.make(&results.commit)?;
            Ok(results.output)
        });
        return match made {
            Ok(output) => Attempt { result: Ok(output), transaction: Some((transaction, true)) },
            Err(unread) => Err(unread.into_failure()).into(),
        };
    }
    let mut back_off = back_off();
    loop {
        match items::read(space, start).await {
            Ok(output) => return Ok(output).into(),
            Err(Unread::Store(KvError::Unavailable(_))) => {
                if core.unless_stopping(back_off.pause()).await.is_none() {
                    return stopping().into();
                }
            }
            Err(unread) => return Err(unread.into_failure()).into(),
        }
    }
}

async fn operate(space: &kv::Space, transaction: &Transaction, asked: &store::Asked) -> Result<Value, KvError> {
    let store::Asked { bucket, key, change } = asked;
    let Some(change) = change else {
        let entry = match transaction.read(key)? {
            Some(known) => known,
            None => transaction.learn(key, space.read(bucket, key.clone()).await?)?,
        };
        return Ok(store::read(entry.as_ref()));
    };
    let commit = Commit::new(Vec::new(), vec![(key.clone(), change.clone())]);
    for unknown in transaction.needs(&commit, asked.is_sum())? {
        let entry = space.read(bucket, unknown.clone()).await?;
        transaction.learn(&unknown, entry)?;
    }
    match transaction.make(&commit)? {
        kv::Outcome::Committed { sum, .. } => Ok(store::changed(asked.is_sum(), sum)),
        // Nothing was expected.
        kv::Outcome::Conflict { .. } => Err(KvError::Unavailable("a conflict without a condition".to_owned())),
    }
}

/// An execution that a task starts.
struct Child {
    workflow: Arc<Workflow>,
    name: Option<String>,
    input: Value,
    mode: WorkflowMode,
    /// Whether the task's output is the execution's own, and not a description of it.
    is_plain: bool,
}

/// What a task starts, if it starts an execution.
fn child(workflow: &Workflow, start: &StartTask) -> Option<Result<Child, Failure>> {
    let (name, input, mode, is_plain) = match &*start.resource {
        Resource::Workflow { name, mode } => (Ok(Arc::clone(name)), (*start.input).clone(), *mode, true),
        Resource::StartExecution { mode } => {
            let named = workflow_name(start.input["StateMachineArn"].as_str().unwrap_or_default());
            (named, start.input.get("Input").cloned().unwrap_or_else(|| json!({})), *mode, false)
        }
        _ => return None,
    };
    let name = match name {
        Ok(name) => name,
        Err(error) => return Some(Err(failed("StepFunctions.InvalidArnException", error.to_string()))),
    };
    let Some(found) = workflow.reach.workflows.find(&name) else {
        let cause = format!("there is no workflow {name:?}");
        return Some(Err(failed("StepFunctions.StateMachineDoesNotExistException", cause)));
    };
    let own_name = if is_plain { None } else { start.input["Name"].as_str().map(str::to_owned) };
    Some(Ok(Child { workflow: found, name: own_name, input, mode, is_plain }))
}

/// The name of a task of that execution among all, and of what it starts where it does not give that a name: the same each time.
fn task_name(execution: u64, task: TaskId) -> String {
    format!("{execution:x}-{:x}", task.0)
}

/// Stops what a task has started and waits for: the task was given up.
pub(super) fn stop_child<R: Runner + 'static>(core: &Rc<Core<R>>, workflow: &Workflow, execution: u64, start: &StartTask) {
    let Some(Ok(child)) = child(workflow, start) else { return };
    if child.workflow.is_durable() && matches!(child.mode, WorkflowMode::Sync | WorkflowMode::SyncJson) {
        let name = child.name.unwrap_or_else(|| task_name(execution, start.task));
        let (core, place) = (Rc::clone(core), child.workflow.place(&name));
        let parent = Parent { execution, task: start.task };
        Rc::clone(&core).launch(async move {
            // The name that the task gives may be that of an execution which another client or task has started.
            if core.find(&place).is_ok_and(|summary| summary.parent == Some(parent)) {
                let _ = core.stop(&place, None, Some("the task that waited for it was given up".into())).await;
            }
        });
    }
}

/// Starts an execution of another workflow, and waits for it where the task does.
async fn nested<R: Runner + 'static>(
    core: &Rc<Core<R>>,
    workflow: &Workflow,
    execution: u64,
    start: &StartTask,
) -> Result<Value, Failure> {
    let Some(child) = child(workflow, start) else { return Err(failed("States.Runtime", "no workflow is named")) };
    let Child { workflow: other, name, input, mode, is_plain } = child?;
    let waits = matches!(mode, WorkflowMode::Sync | WorkflowMode::SyncJson);
    if !other.is_durable() {
        return not_durable(core, other, input, waits).await;
    }
    let name = name.unwrap_or_else(|| task_name(execution, start.task));
    let parent = Parent { execution, task: start.task };
    let place = other.place(&name);
    let mut back_off = back_off();
    let summary = loop {
        match core.start(&other, Some(&name), input.clone(), Some(parent)).await {
            Ok(started) => break started.summary,
            // It began before the server was stopped, or before the store answered.
            Err(Refused::Exists { summary }) if summary.parent == Some(parent) => break *summary,
            // The store does not work now: as for other tasks, later.
            Err(Refused::Unavailable(_)) => {
                if core.unless_stopping(back_off.pause()).await.is_none() {
                    return stopping();
                }
            }
            Err(refused) => return Err(failed(refused.error(), refused.to_string())),
        }
    };
    if !waits {
        return Ok(json!({ "ExecutionArn": name_of(&place), "StartDate": summary.started_ms }));
    }
    let Some(ended) = core.unless_stopping(core.wait(&place, summary)).await else { return stopping() };
    match (ended.status, ended.output.clone()) {
        (Status::Succeeded, Some(output)) if is_plain => Ok(Arc::unwrap_or_clone(output)),
        (Status::Succeeded, _) => Ok(described(&place, &ended, matches!(mode, WorkflowMode::SyncJson))),
        _ => Err(failed("States.TaskFailed", described(&place, &ended, false).to_string())),
    }
}

/// An express execution: it lives no longer than the task.
async fn not_durable<R: Runner + 'static>(
    core: &Rc<Core<R>>,
    other: Arc<Workflow>,
    input: Value,
    waits: bool,
) -> Result<Value, Failure> {
    if !waits {
        let own = Rc::clone(core);
        core.launch(async move { drop(express::execute(&other, &own.runner, input).await) });
        return Ok(json!({}));
    }
    match express::execute(&other, &core.runner, input).await {
        Outcome::Succeeded(output) => Ok(Arc::unwrap_or_clone(output)),
        Outcome::Failed(failure) | Outcome::Aborted(failure) => Err(failure),
        Outcome::TimedOut => Err(failed("States.Timeout", format!("the workflow {:?} took too long", other.config.name))),
    }
}

/// An execution as Step Functions describes it to a task that has waited for it.
fn described(place: &Place, summary: &Summary, is_json: bool) -> Value {
    let document = |value: &Value| if is_json { value.clone() } else { Value::String(value.to_string()) };
    let mut description = json!({
        "ExecutionArn": name_of(place),
        "Input": document(&summary.input),
        "InputDetails": { "Included": true },
        "Name": &*place.name,
        "StartDate": summary.started_ms,
        "StateMachineArn": super::name_of_workflow(&place.tenant, &place.workflow),
        "Status": super::status_name(summary.status),
        "StopDate": summary.stopped_ms,
    });
    if let Some(output) = &summary.output {
        description["Output"] = document(output);
        description["OutputDetails"] = json!({ "Included": true });
    }
    for (key, text) in [("Error", &summary.error), ("Cause", &summary.cause)] {
        if let Some(text) = text {
            description[key] = json!(&**text);
        }
    }
    description
}
