//! Durable executions: they outlive the request that started them, the server's restarts and its crashes.
//!
//! ```text
//!   http, admin --Message--> core (a thread) --spawn--> live, one task for each execution in memory
//!      \--read--> journal <--- records, with the store's changes of the step, in one commit ---/
//! ```
//!
//! - [`journal`]: what is written, and reading it; `core`: which executions there are, their timers, starting and finding them; `live`: one that is in memory, step by step, or ahead of that;
//!   `gate`, `queue`: which may begin, where there are limits; `task`: what its tasks do; `places`: whose turn it is; [`pins`]: the versions of functions that they call, `pinning`: how these are
//!   found and kept; `called`: the workflows of calls of functions; `back_off`: pauses before what is tried again; `steer`: pauses and restarts; `moving`: executions that go on with what is
//!   served now; `removal`: of those that have ended; `quota`: the bytes that they take up; `outbox`: starts what functions have left behind; [`timetable`]: what schedules start; `counts`: for the
//!   metrics.
//! - Where servers share a store in Redis, one of them owns the executions: `owner` (which one, and for how long), `term` (what that means for all of the above), `forward` (the others ask it).
//!
//! What holds:
//! - A step is committed before anything that follows from it is done: tasks begin, callers are answered, other executions are told only then.
//! - A task's changes of the store are made in the commit of the step that takes its result in. A crash before it leaves neither, and the task runs again; after it, both are there.
//! - All that is in memory is also in the journal, but for what tasks have done since. So an execution that waits for a long time is not kept in memory at all.

mod back_off;
mod called;
mod core;
mod counts;
mod forward;
mod gate;
pub mod journal;
mod live;
mod moving;
mod outbox;
mod owner;
mod pinning;
pub mod pins;
mod places;
mod queue;
mod quota;
mod removal;
mod steer;
mod task;
mod term;
#[cfg(test)]
mod tests;
pub mod timetable;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sledge_workflow::machine::{Event, Outcome, Status};
use tokio::sync::{mpsc, oneshot, watch};

use self::called::Called;
use self::counts::Counts;
pub use self::counts::{Counted, ENDS};
pub use self::gate::Queue;
use self::journal::{Journal, Place, Summary};
pub use self::pinning::Pinned;
use self::quota::Quota;
pub use self::quota::Size;
use self::term::Term;
use self::timetable::Scheduled;
use super::express::Named;
use super::keeper::Keeper;
use super::outbox::OF_OUTBOX;
use super::{OF_FUNCTION, Reach, Runner, Workflow};
use crate::blocking;
use crate::kv::outbox::Bell;
use crate::kv::{KvError, Lease, Records, Space, Store};

/// Messages that wait for the thread; those that come then wait for room.
const MESSAGES_MAX: usize = 1_024;
/// How long the lease of the executions in Redis lasts when it is not renewed: no longer are they at rest when their owner has died.
const LEASE_TIME: Duration = Duration::from_secs(10);
/// How long to wait before the end of an execution is waited for again that another server goes on with.
const MOVED_PAUSE: Duration = Duration::from_millis(100);
/// The tenant in whose name records are written that concern none.
const TENANT: &str = "default";
/// Bytes of a name of an execution.
pub const NAME_BYTES_MAX: usize = 80;
/// Keys of a workflow's limits that one answer has.
pub const QUEUES_MAX: usize = 1_000;

/// All durable executions of a server: from any thread.
#[derive(Clone, Debug)]
pub struct Executions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    journal: Journal,
    /// Where records are written with which nothing of a tenant's changes.
    space: Space,
    messages: mpsc::Sender<Message>,
    /// Until the thread takes it.
    receiver: Mutex<Option<mpsc::Receiver<Message>>>,
    /// The workflows of calls of functions.
    called: Called,
    /// What executions of a tenant reach.
    tenants: Mutex<HashMap<Arc<str>, Reach>>,
    schedules: watch::Sender<Vec<Arc<Scheduled>>>,
    /// Tenants and workflows that are paused.
    paused: Mutex<HashSet<(Arc<str>, Arc<str>)>>,
    counts: Counts,
    /// How much of the store executions of a tenant may take up.
    quota: Quota,
    /// What keeps the versions of functions to which executions are pinned; without it they are not.
    keeper: OnceLock<Arc<dyn Keeper>>,
    /// Where other servers use the same store: what one of them has to hold.
    lease: Option<Lease>,
    /// Whether a client has asked for anything.
    was_asked: AtomicBool,
    /// Rings when functions have left requests behind.
    bell: Arc<Bell>,
}

/// An execution that has begun.
#[derive(Debug)]
pub struct Started {
    /// Where it is found.
    pub place: Place,
    /// What it is.
    pub summary: Summary,
}

/// Why something is not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such workflow.
    #[error("there is no workflow of that name")]
    NoWorkflow,
    /// The workflow's definition is wrong.
    #[error("the workflow is quarantined: {0}")]
    Quarantined(String),
    /// There is an execution of that name.
    #[error("there is an execution of that name already")]
    Exists {
        /// What it is.
        summary: Box<Summary>,
    },
    /// The name is none.
    #[error("the name of an execution has 1 to {NAME_BYTES_MAX} letters, digits, `.`, `-` and `_`")]
    Name,
    /// The input is too large.
    #[error("the input has more than {0} bytes")]
    InputTooLarge(usize),
    /// The workflow has as many executions as it may.
    #[error("the workflow has {0} executions that have not ended (executions_max)")]
    TooMany(usize),
    /// The executions of the tenant take up as much of the store as they may.
    #[error(
        "the executions of the tenant take up {bytes} bytes of the store, those that have ended and are kept among them, of at most {bytes_max} \
         (executions_tenant_bytes_max); remove some that have ended (sledge workflow remove), keep them for fewer days (retention_days), or allow more"
    )]
    Full {
        /// What they take up.
        bytes: u64,
        /// What they may.
        bytes_max: u64,
    },
    /// There is no such execution.
    #[error("there is no execution of that name")]
    NoExecution,
    /// It cannot go on.
    #[error("the execution cannot be redriven: {0}")]
    NotRedrivable(Cow<'static, str>),
    /// It cannot be done to an execution as it is.
    #[error("{0}")]
    Impossible(String),
    /// It cannot be moved to other versions.
    #[error("the execution cannot be moved to what is served now: {0}")]
    NotRepinnable(Cow<'static, str>),
    /// No task waits for that.
    #[error("no task waits with that token")]
    NoTask,
    /// What the workflow's limits are kept for is too long.
    #[error("the key in the input for which the workflow has limits has more than {0} bytes")]
    Key(usize),
    /// The store does not work.
    #[error("{0}")]
    Unavailable(String),
    /// The server stops.
    #[error("the server is stopping")]
    Stopping,
    /// The lease of the executions was lost while the request was carried out.
    #[error(
        "the executions have gone over to another server meanwhile, and it is not known what has become of the request: ask again"
    )]
    Moved,
    /// The server that owns the executions does not answer.
    #[error(
        "the server that owns the executions has not answered within {0:?}, and it is not known what has become of the request: ask again"
    )]
    Unanswered(Duration),
}

impl From<KvError> for Refused {
    fn from(error: KvError) -> Refused {
        Refused::Unavailable(error.to_string())
    }
}

impl Refused {
    /// The name of the error for workflows that have started this.
    const fn error(&self) -> &'static str {
        match self {
            Refused::NoWorkflow | Refused::Quarantined(_) => "StepFunctions.StateMachineDoesNotExistException",
            Refused::Exists { .. } => "StepFunctions.ExecutionAlreadyExistsException",
            Refused::Name => "StepFunctions.InvalidNameException",
            Refused::InputTooLarge(_) | Refused::Key(_) => "StepFunctions.InvalidExecutionInputException",
            Refused::TooMany(_) | Refused::Full { .. } => "StepFunctions.ExecutionLimitExceededException",
            Refused::NoExecution => "StepFunctions.ExecutionDoesNotExistException",
            Refused::NotRedrivable(_) | Refused::NotRepinnable(_) | Refused::Impossible(_) => {
                "StepFunctions.ExecutionNotRedrivableException"
            }
            Refused::NoTask => "StepFunctions.TaskDoesNotExistException",
            Refused::Unavailable(_) | Refused::Stopping | Refused::Moved | Refused::Unanswered(_) => {
                "StepFunctions.ServiceUnavailableException"
            }
        }
    }
}

type Told<T> = oneshot::Sender<Result<T, Refused>>;

/// What the thread is asked for. `definition` of `Repin` is the fingerprint of the definition that is served, if the execution is to be moved to that, too.
#[derive(Debug)]
enum Message {
    Start { workflow: Arc<Workflow>, name: Option<String>, input: Value, answer: Told<Started> },
    Stop { place: Place, error: Option<Arc<str>>, cause: Option<Arc<str>>, answer: Told<Summary> },
    Redrive { place: Place, answer: Told<Summary> },
    Restart { place: Place, state: Arc<str>, input: Option<Value>, answer: Told<Summary> },
    Pause { place: Place, paused: bool, answer: Told<Summary> },
    PauseAll { tenant: Arc<str>, workflow: Arc<str>, paused: bool, answer: Told<()> },
    Repin { place: Place, definition: Option<u64>, answer: Told<Summary> },
    Remove { place: Place, answer: Told<()> },
    Callback { tenant: Option<Arc<str>>, token: Arc<str>, event: Event, answer: Told<()> },
    Express { workflow: Arc<Workflow>, named: Named, input: Value, answer: Told<Outcome> },
    Wait { place: Place, answer: Told<Summary> },
    Queues { tenant: Arc<str>, workflow: Arc<str>, answer: Told<Vec<Queue>> },
}

impl Executions {
    /// Those of a store.
    #[must_use]
    pub fn of(store: &Store) -> Executions {
        Executions::leased(store, LEASE_TIME)
    }

    /// The same where a lease lasts so long, if the store needs one.
    #[must_use]
    fn leased(store: &Store, time: Duration) -> Executions {
        Executions::new(store.records(), store.space(TENANT), store.shared().map(|redis| redis.lease(time)))
    }

    /// Those in these records. `space` is where they are written; `lease` has to be held for that, if it is there.
    #[must_use]
    pub fn new(records: Records, space: Space, lease: Option<Lease>) -> Executions {
        let (messages, receiver) = mpsc::channel(MESSAGES_MAX);
        let (receiver, tenants, schedules) = (Mutex::new(Some(receiver)), Mutex::default(), watch::Sender::default());
        let (journal, counts) = (Journal::new(records), Counts::default());
        let (paused, keeper, was_asked) = (Mutex::default(), OnceLock::new(), AtomicBool::new(false));
        Executions(Arc::new(Shared {
            journal,
            space,
            messages,
            receiver,
            called: Called::default(),
            tenants,
            schedules,
            paused,
            counts,
            quota: Quota::default(),
            keeper,
            lease,
            was_asked,
            bell: Arc::default(),
        }))
    }

    /// Executions that begin from now on are pinned to the versions of functions with which they begin, and this keeps them. To be called before [`run`](Executions::run).
    pub fn pin_with(&self, keeper: Arc<dyn Keeper>) {
        // The first one stays.
        let _ = self.0.keeper.set(keeper);
    }

    /// Executions of each tenant may take up so many bytes of the store; further ones are refused. To be called before [`run`](Executions::run).
    pub fn limit(&self, bytes_max: u64) {
        self.0.quota.limit(bytes_max);
    }

    /// The bytes of the store that the executions of each tenant take up, where that is limited and this server carries them out.
    #[must_use]
    pub fn bytes(&self) -> Vec<(Arc<str>, u64)> {
        self.0.quota.now()
    }

    /// Executions of that tenant reach that.
    pub fn know(&self, tenant: &str, reach: &Reach) {
        self.tenants().entry(tenant.into()).or_insert_with(|| reach.clone());
    }

    /// How many there are, and how they have ended.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.0.counts.now()
    }

    /// These are the schedules from now on.
    pub fn keep(&self, schedules: Vec<Arc<Scheduled>>) {
        self.0.schedules.send_replace(schedules);
    }

    /// The workflow of that name, as it is served now.
    #[must_use]
    pub fn workflow(&self, tenant: &str, name: &str) -> Option<Arc<Workflow>> {
        if let Some(function) = name.strip_prefix(OF_FUNCTION) {
            return self.of_function(tenant, function);
        }
        if let Some(function) = name.strip_prefix(OF_OUTBOX) {
            return self.of_outbox(tenant, function);
        }
        self.tenants().get(tenant)?.workflows.find(name)
    }

    /// A workflow that calls that function, and again where it fails.
    #[must_use]
    pub fn of_function(&self, tenant: &str, function: &str) -> Option<Arc<Workflow>> {
        let reach = self.tenants().get(tenant)?.clone();
        Some(self.0.called.workflow(tenant, function, &reach))
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<Arc<str>, Reach>> {
        // Single insertions, which cannot be half done.
        self.0.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All workflows of a tenant that are served now, by name.
    #[must_use]
    pub fn workflows(&self, tenant: &str) -> Vec<Arc<Workflow>> {
        self.tenants().get(tenant).map(|reach| reach.workflows.all()).unwrap_or_default()
    }

    /// Executes them, until `stopped` says so and nothing is under way any more. To be called once, within a runtime for local tasks; `places` is how many functions run for them at the same time.
    pub async fn run<R: Runner + 'static>(&self, runner: R, places: usize, stopped: watch::Receiver<bool>) {
        let receiver = self.0.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(receiver) = receiver else { return };
        let run = async {
            match self.0.lease.clone() {
                Some(lease) => owner::run(self.clone(), lease, runner, places, receiver, stopped).await,
                None => core::run(self.clone(), runner, places, receiver, stopped, Term::for_ever()).await,
            }
        };
        tokio::select! {
            () = run => {}
            () = outbox::keep(self.clone()) => {}
        }
    }

    /// Whether this server has anything to do with durable executions. One that has not leaves their lease to others: it could not go on with any.
    fn is_wanted(&self) -> bool {
        let has_durable = |reach: &Reach| {
            reach.workflows.all().iter().any(|workflow| workflow.is_durable())
                || reach.functions.any(|function| function.asynchronous.is_some() || function.has_outbox())
        };
        // Relaxed: a flag that orders nothing else.
        self.0.was_asked.load(Ordering::Relaxed)
            || !self.0.schedules.borrow().is_empty()
            || self.tenants().values().any(has_durable)
    }

    /// Starts an execution; it has begun for good when this returns. Without a name it gets one. A name that an execution has which runs with the same input is that one.
    ///
    /// # Errors
    /// What is wrong with the workflow, the name or the input, or when the store does not work.
    pub async fn start(&self, workflow: &Arc<Workflow>, name: Option<String>, input: Value) -> Result<Started, Refused> {
        self.ask(|answer| Message::Start { workflow: Arc::clone(workflow), name, input, answer }).await
    }

    /// Stops an execution. One that has ended stays as it is.
    ///
    /// # Errors
    /// When there is none, or the store does not work.
    pub async fn stop(&self, place: Place, error: Option<Arc<str>>, cause: Option<Arc<str>>) -> Result<Summary, Refused> {
        self.ask(|answer| Message::Stop { place, error, cause, answer }).await
    }

    /// Has an execution that failed, timed out or was stopped go on where that happened.
    ///
    /// # Errors
    /// When there is none, it has not failed, or the store does not work.
    pub async fn redrive(&self, place: Place) -> Result<Summary, Refused> {
        self.ask(|answer| Message::Redrive { place, answer }).await
    }

    /// Has an execution that failed, timed out or was stopped go on at a state of its top level: with that input, or with the one that the state had last.
    ///
    /// # Errors
    /// When there is none, it cannot go on there, or the store does not work.
    pub async fn restart(&self, place: Place, state: Arc<str>, input: Option<Value>) -> Result<Summary, Refused> {
        self.ask(|answer| Message::Restart { place, state, input, answer }).await
    }

    /// Pauses an execution, or lets it go on: paused, it takes in what its tasks and callbacks tell, and begins nothing.
    ///
    /// # Errors
    /// When there is none, it has ended, or the store does not work.
    pub async fn pause(&self, place: Place, paused: bool) -> Result<Summary, Refused> {
        self.ask(|answer| Message::Pause { place, paused, answer }).await
    }

    /// The same for a workflow: for all of its executions, and those that begin while it is paused.
    ///
    /// # Errors
    /// When there is no such workflow, or the store does not work.
    pub async fn pause_all(&self, tenant: Arc<str>, workflow: Arc<str>, paused: bool) -> Result<(), Refused> {
        self.ask(|answer| Message::PauseAll { tenant, workflow, paused, answer }).await
    }

    /// Whether a workflow is paused.
    #[must_use]
    pub fn is_paused(&self, tenant: &str, workflow: &str) -> bool {
        self.paused().contains(&(tenant.into(), workflow.into()))
    }

    fn set_paused(&self, tenant: &Arc<str>, workflow: &Arc<str>, paused: bool) {
        let key = (Arc::clone(tenant), Arc::clone(workflow));
        let mut known = self.paused();
        if paused {
            known.insert(key);
        } else {
            known.remove(&key);
        }
    }

    fn paused(&self) -> MutexGuard<'_, HashSet<(Arc<str>, Arc<str>)>> {
        // Single insertions, which cannot be half done.
        self.0.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves an execution that has not ended to the versions of functions that are served now; `with_definition` also to the definition, from its next transition on.
    ///
    /// # Errors
    /// When there is none, it has ended, it stands where it cannot go on by the new definition (then nothing has changed), or the store does not work.
    pub async fn repin(&self, place: Place, with_definition: bool) -> Result<Summary, Refused> {
        let definition = if with_definition { Some(self.served_definition(&place)?) } else { None };
        self.ask(|answer| Message::Repin { place, definition, answer }).await
    }

    /// Removes an execution that has ended, with its history.
    ///
    /// # Errors
    /// When there is none, it has not ended, a task waits for it, or the store does not work.
    pub async fn remove(&self, place: Place) -> Result<(), Refused> {
        self.ask(|answer| Message::Remove { place, answer }).await
    }

    /// Tells the task that waits with that token how its work has ended, or that it is alive. `event` is one of the machine's callbacks.
    ///
    /// # Errors
    /// When no task waits with it, or the store does not work.
    pub async fn call_back(&self, token: Arc<str>, event: Event) -> Result<(), Refused> {
        self.ask(|answer| Message::Callback { tenant: None, token, event, answer }).await
    }

    /// The same for a client that may tell this tenant's tasks alone.
    ///
    /// # Errors
    /// As for [`call_back`](Executions::call_back); tokens of other tenants are as those of no task.
    pub async fn call_back_of(&self, tenant: Arc<str>, token: Arc<str>, event: Event) -> Result<(), Refused> {
        self.ask(|answer| Message::Callback { tenant: Some(tenant), token, event, answer }).await
    }

    /// Has an express execution run to its end, under that name. It is given up when the future is dropped, and when the server stops.
    ///
    /// # Errors
    /// When the server stops.
    pub async fn execute(&self, workflow: &Arc<Workflow>, named: Named, input: Value) -> Result<Outcome, Refused> {
        self.ask(|answer| Message::Express { workflow: Arc::clone(workflow), named, input, answer }).await
    }

    /// Waits until an execution has ended.
    ///
    /// # Errors
    /// When there is none, or the store does not work.
    pub async fn wait(&self, place: Place) -> Result<Summary, Refused> {
        loop {
            match self.ask(|answer| Message::Wait { place: place.clone(), answer }).await {
                // It goes on at another server, or at this one when it has the lease again.
                Err(Refused::Moved) => tokio::time::sleep(MOVED_PAUSE).await,
                ended => return ended,
            }
        }
    }

    /// What runs and waits of a workflow with limits, by key, those with the longest queues first: [`QUEUES_MAX`] at most.
    ///
    /// # Errors
    /// When the server stops.
    pub async fn queues(&self, tenant: Arc<str>, workflow: Arc<str>) -> Result<Vec<Queue>, Refused> {
        self.ask(|answer| Message::Queues { tenant, workflow, answer }).await
    }

    /// Reads in the journal, on a thread that may block.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Journal) -> Result<T, KvError> + Send + 'static,
    ) -> Result<T, Refused> {
        let executions = self.clone();
        Ok(blocking::run(move || read(&executions.0.journal)).await?)
    }

    async fn ask<T>(&self, message: impl FnOnce(Told<T>) -> Message) -> Result<T, Refused> {
        let (answer, answered) = oneshot::channel();
        // Relaxed: a flag that orders nothing else.
        self.0.was_asked.store(true, Ordering::Relaxed);
        self.0.messages.send(message(answer)).await.map_err(|_| Refused::Stopping)?;
        answered.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Why a message that was taken is not answered.
    fn unanswered(&self) -> Refused {
        if self.0.lease.is_some() && !self.0.messages.is_closed() { Refused::Moved } else { Refused::Stopping }
    }
}

/// Whether that can be the name of an execution.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(fits)
}

/// An execution's name for clients: an ARN, as Step Functions has it.
#[must_use]
pub fn name_of(Place { tenant, workflow, name }: &Place) -> String {
    format!("arn:aws:states:local:{tenant}:execution:{workflow}:{name}")
}

/// A workflow's name for clients.
#[must_use]
pub fn name_of_workflow(tenant: &str, workflow: &str) -> String {
    format!("arn:aws:states:local:{tenant}:stateMachine:{workflow}")
}

/// A status as Step Functions calls it; there, what is queued is running.
#[must_use]
pub const fn status_name(status: Status) -> &'static str {
    match status {
        Status::New => "QUEUED",
        Status::Running => "RUNNING",
        Status::Succeeded => "SUCCEEDED",
        Status::Failed => "FAILED",
        Status::TimedOut => "TIMED_OUT",
        Status::Aborted => "ABORTED",
    }
}
