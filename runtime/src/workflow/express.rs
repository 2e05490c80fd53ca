//! One express execution, from its input to its output: the machine steps, and what it asks for is done here.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use sledge_workflow::definition::Resource;
use sledge_workflow::machine::{
    About, Action, Event, Execution, Failure, Limits, Outcome, Purpose, StartTask, TaskId, TimerId, step,
};

use super::failure::failed;
use super::function::{self, Asked};
use super::items::Unread;
use super::speculative;
use super::{DEPTH_MAX, Runner, Workflow, http, items, store};
use crate::telemetry::Trace;

/// States that follow each other without a pause: nothing else runs on the thread meanwhile.
const TRANSITIONS_PER_STEP: u32 = 8;

/// Tasks that answer at once and follow each other without a pause.
pub(super) const AT_ONCE_MAX: u32 = 32;

/// How an execution ended.
pub type Ended = Outcome;

/// What is waited for, as what it is told with when it has come. None where it was given up.
type Waiting<'a> = Pin<Box<dyn Future<Output = Option<Event>> + 'a>>;

/// Numbers executions of this process.
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// Executes a workflow with that input, for as long as it may take. Dropping the future gives it up, with all that it has begun.
pub async fn execute(workflow: &Workflow, runner: &impl Runner, input: Value) -> Ended {
    execute_as(workflow, runner, input, None, None).await
}

/// The same for one that has a name already. Spans are parts of that trace.
pub async fn execute_as(
    workflow: &Workflow,
    runner: &impl Runner,
    input: Value,
    named: Option<&Named>,
    trace: Option<Arc<Trace>>,
) -> Ended {
    let about = about(workflow, named);
    within(workflow, runner, input, (about, trace), Instant::now() + workflow.time_max(), 0).await
}

/// What an express execution is called, where the client has a say in that.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name, which others may have, too.
    pub name: Arc<str>,
    /// What tells those apart.
    pub id: Arc<str>,
}

impl Named {
    /// A name that the client is told. It does not say how many executions there were before.
    #[must_use]
    pub fn random(workflow: &Workflow) -> Named {
        let id: Arc<str> = format!("{:08x}", fastrand::u32(..)).into();
        Named { name: format!("{}-{id}", workflow.config.name).into(), id }
    }
}

/// The same for one that `depth` others wait for.
async fn within(
    workflow: &Workflow,
    runner: &impl Runner,
    input: Value,
    (about, trace): (About, Option<Arc<Trace>>),
    deadline: Instant,
    depth: u32,
) -> Ended {
    let Ok(definition) = &workflow.definition else {
        return Outcome::Failed(failed("States.Runtime", "the workflow is not served"));
    };
    let mut running = Running::new(workflow, runner, deadline, depth);
    let limits = Limits { transitions_per_step: TRANSITIONS_PER_STEP, ..Limits::default() };
    if let Some(speculation) = workflow.speculation().filter(|tables| speculative::goes_ahead(workflow, tables, runner.load())) {
        return speculative::execute(definition, (about, limits, trace), running, speculation, input).await;
    }
    let mut execution = Execution::new(definition, about, limits, false);
    let (mut random, mut actions) = (fastrand::Rng::new(), Vec::new());
    let (mut event, mut in_a_row) = (Event::Started { input }, 0);
    loop {
        running.follows = matches!(event, Event::TaskSucceeded { .. } | Event::TaskFailed { .. });
        step(definition, &mut execution, event, now_ms(), &mut || random.u64(..), &mut actions);
        let ended = poll_fn(|context| Poll::Ready(actions.drain(..).find_map(|action| running.carry_out(action, context)))).await;
        if let Some(outcome) = ended {
            return outcome;
        }
        if let Some(next) = running.at_once.pop_front() {
            if Instant::now() >= deadline {
                return Outcome::TimedOut;
            }
            in_a_row += 1;
            if in_a_row == AT_ONCE_MAX {
                // Others on this thread have their turn.
                in_a_row = 0;
                tokio::task::yield_now().await;
            }
            event = next;
            continue;
        }
        event = match tokio::time::timeout_at(deadline.into(), running.next()).await {
            Ok(Some(event)) => event,
            Ok(None) => return Outcome::Failed(failed("States.Runtime", "the execution waits for nothing")),
            Err(_) => return Outcome::TimedOut,
        };
    }
}

fn about(workflow: &Workflow, named: Option<&Named>) -> About {
    let (name, tenant) = (workflow.config.name.as_str(), workflow.config.tenant.as_str());
    let Named { name: execution, id } = named.cloned().unwrap_or_else(|| {
        // Relaxed: a number that orders nothing else.
        let number = EXECUTIONS.fetch_add(1, Ordering::Relaxed) + 1;
        Named { name: format!("{name}-{number}").into(), id: number.to_string().into() }
    });
    About {
        id: format!("arn:aws:states:local:{tenant}:express:{name}:{execution}:{id}").into(),
        name: execution,
        ..workflow.about.clone()
    }
}

/// The time, in milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "times of workflows are those of the calendar")]
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How long it is until that time of the calendar.
pub(super) fn time_until(at_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(at_ms.saturating_sub(now_ms())).unwrap_or(0))
}

/// What an execution has begun and not been told the end of.
pub(super) struct Running<'a, R> {
    workflow: &'a Workflow,
    runner: &'a R,
    deadline: Instant,
    depth: u32,
    /// Whether what it begins follows a task that has just ended, as a part of the same turn.
    follows: bool,
    /// What has come already.
    at_once: VecDeque<Event>,
    waiting: FuturesUnordered<Waiting<'a>>,
    given_up: HashMap<Begun, AbortHandle>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Begun {
    Task(TaskId),
    Timer(TimerId),
}

impl<'a, R: Runner> Running<'a, R> {
    fn new(workflow: &'a Workflow, runner: &'a R, deadline: Instant, depth: u32) -> Running<'a, R> {
        Running {
            workflow,
            runner,
            deadline,
            depth,
            follows: false,
            at_once: VecDeque::new(),
            waiting: FuturesUnordered::new(),
            given_up: HashMap::new(),
        }
    }

    /// The workflow, what calls its functions, and by when it has to have ended.
    pub(super) const fn of(&self) -> (&'a Workflow, &'a R, Instant) {
        (self.workflow, self.runner, self.deadline)
    }

    /// What has come already, the first of it.
    pub(super) fn take_at_once(&mut self) -> Option<Event> {
        self.at_once.pop_front()
    }

    /// Whether something is waited for.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives a task up.
    pub(super) fn cancel(&mut self, task: TaskId) {
        self.give_up(Begun::Task(task));
    }

    /// Does what the machine asks for; how the execution has ended, if it has.
    pub(super) fn carry_out(&mut self, action: Action, context: &mut Context<'_>) -> Option<Outcome> {
        match action {
            Action::StartTask(task) => {
                let id = task.task;
                let event = match Asked::of(&task) {
                    Some(Ok(asked)) => self.call(&asked, &task, context),
                    Some(Err(failure)) => Some(Err(failure)),
                    None => self.work(id, self.task(task), context),
                };
                self.at_once.extend(event.map(|result| ended(id, result)));
            }
            Action::SetTimer { timer, at_ms } => {
                let at = Instant::now().checked_add(time_until(at_ms)).filter(|at| *at <= self.deadline);
                self.begin(Begun::Timer(timer), async move {
                    match at {
                        Some(at) => tokio::time::sleep_until(at.into()).await,
                        // The execution ends before that.
                        None => std::future::pending().await,
                    }
                    Event::TimerFired { timer }
                });
            }
            Action::CancelTask { task } => self.give_up(Begun::Task(task)),
            Action::CancelTimer { timer } => self.give_up(Begun::Timer(timer)),
            Action::Yield => self.waiting.push(Box::pin(async {
                tokio::task::yield_now().await;
                Some(Event::Continue)
            })),
            Action::History(_) => {}
            Action::Ended(outcome) => return Some(outcome),
        }
        None
    }

    /// Calls a function: what it answered, if that was at once, as most do. What has to be kept of others is not made for these.
    fn call(&mut self, asked: &Asked<'_>, task: &StartTask, context: &mut Context<'_>) -> Option<Result<Value, Failure>> {
        let call = (self.deadline_of(task), self.follows);
        let mut begun = match function::begin(self.workflow, self.runner, asked, call) {
            Ok(begun) => begun,
            Err(failure) => return Some(Err(failure)),
        };
        if let Some((replied, _)) = begun.at_once() {
            return Some(asked.output(replied));
        }
        let (name, is_wrapped): (Box<str>, _) = (asked.name.into(), asked.is_wrapped);
        let answered = async move {
            let (replied, _) = begun.replied().await;
            function::output((&name, is_wrapped), replied)
        };
        self.work(task.task, answered, context)
    }

    /// Looks once whether that has an end already, and waits for it otherwise.
    fn work(
        &mut self,
        id: TaskId,
        answered: impl Future<Output = Result<Value, Failure>> + 'a,
        context: &mut Context<'_>,
    ) -> Option<Result<Value, Failure>> {
        let mut answered = Box::pin(answered);
        match answered.as_mut().poll(context) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => {
                self.begin(Begun::Task(id), async move { ended(id, answered.await) });
                None
            }
        }
    }

    /// By when a task has to have ended.
    pub(super) fn deadline_of(&self, task: &StartTask) -> Instant {
        let own = task.deadline_ms.and_then(|at_ms| Instant::now().checked_add(time_until(at_ms)));
        own.map_or(self.deadline, |own| own.min(self.deadline))
    }

    fn begin(&mut self, what: Begun, event: impl Future<Output = Event> + 'a) {
        let (handle, registration) = AbortHandle::new_pair();
        self.given_up.insert(what, handle);
        let event = Abortable::new(event, registration);
        self.waiting.push(Box::pin(async move { event.await.ok() }));
    }

    fn give_up(&mut self, what: Begun) {
        let is_it = |event: &Event| match (event, what) {
            (Event::TaskSucceeded { task, .. } | Event::TaskFailed { task, .. }, Begun::Task(given_up)) => *task == given_up,
            _ => false,
        };
        self.at_once.retain(|event| !is_it(event));
        if let Some(handle) = self.given_up.remove(&what) {
            handle.abort();
        }
    }

    /// What happens next; none where nothing can.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            let Some(event) = self.waiting.next().await? else { continue };
            match &event {
                Event::TaskSucceeded { task, .. } | Event::TaskFailed { task, .. } => {
                    self.given_up.remove(&Begun::Task(*task));
                }
                Event::TimerFired { timer } => {
                    self.given_up.remove(&Begun::Timer(*timer));
                }
                _ => {}
            }
            return Some(event);
        }
    }

    /// Carries a task out that is no function.
    fn task(&self, task: StartTask) -> impl Future<Output = Result<Value, Failure>> + 'a {
        let (workflow, runner, depth) = (self.workflow, self.runner, self.depth);
        let deadline = self.deadline_of(&task);
        async move {
            if task.purpose != Purpose::Work {
                let space = store::space(workflow.reach.kv.as_ref())?;
                return items::carry_out(space, &task).await.map_err(Unread::into_failure);
            }
            let StartTask { resource, input, .. } = task;
            match &*resource {
                Resource::KeyValue { operation } => store::carry_out(workflow.reach.kv.as_ref(), *operation, &input).await,
                Resource::Workflow { name, .. } => other(workflow, runner, name, (*input).clone(), deadline, depth).await,
                Resource::StartExecution { .. } => {
                    let name = input["StateMachineArn"].as_str().and_then(|arn| arn.rsplit(':').next()).unwrap_or_default();
                    other(workflow, runner, name, input["Input"].clone(), deadline, depth).await
                }
                Resource::Http { .. } | Resource::HttpInvoke => {
                    http::carry_out(workflow.upstream.as_ref(), &resource, &input, None, deadline).await
                }
                Resource::Function { .. } | Resource::LambdaInvoke { .. } => {
                    Err(failed("States.Runtime", "a function is called, and not carried out"))
                }
            }
        }
    }
}

/// A task has ended so.
pub(super) fn ended(task: TaskId, result: Result<Value, Failure>) -> Event {
    match result {
        Ok(output) => Event::TaskSucceeded { task, output },
        Err(Failure { error, cause }) => Event::TaskFailed { task, error, cause },
    }
}

/// Executes another workflow, and answers with its output.
async fn other(
    workflow: &Workflow,
    runner: &impl Runner,
    name: &str,
    input: Value,
    deadline: Instant,
    depth: u32,
) -> Result<Value, Failure> {
    let Some(other) = workflow.reach.workflows.find(name) else {
        return Err(failed("StepFunctions.StateMachineDoesNotExistException", format!("there is no workflow {name:?}")));
    };
    if depth + 1 >= DEPTH_MAX {
        return Err(failed("States.Runtime", format!("{DEPTH_MAX} workflows wait for each other, and no more can")));
    }
    let deadline = deadline.min(Instant::now() + other.time_max());
    let executed: Pin<Box<dyn Future<Output = Ended> + '_>> =
        Box::pin(within(&other, runner, input, (about(&other, None), None), deadline, depth + 1));
    match executed.await {
        Outcome::Succeeded(output) => Ok(Arc::unwrap_or_clone(output)),
        Outcome::Failed(failure) | Outcome::Aborted(failure) => Err(failure),
        Outcome::TimedOut => Err(failed("States.Timeout", format!("the workflow {name:?} took too long"))),
    }
}
