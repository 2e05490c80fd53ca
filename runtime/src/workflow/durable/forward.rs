//! Requests of clients at a server that does not own the executions: it has the owner carry them out, and reads in the journal what came of it.
//!
//! Each can be asked for twice: a start has its name before it leaves, and the owner takes it for the same one; to stop what is stopped changes nothing. So a client, or this server, may ask again
//! whenever an answer is lost.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sledge_workflow::machine::Event;
use sledge_workflow::machine::limits::DATA_BYTES_MAX;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::spawn_local;

use super::gate::Queue;
use super::journal::{Place, Summary};
use super::owner::Server;
use super::term::Term;
use super::{Message, Refused, Started, is_name};
use crate::kv::Fence;
use crate::workflow::{Runner, Workflow, express};

/// How long the owner may take to answer. It is longer than a lease, so that another server may have become the owner meanwhile.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
/// Requests of this server that wait for the owner, and requests of other servers that the owner carries out, at the same time.
pub(super) const FORWARDED_MAX: usize = 256;
const CARRIED_OUT_MAX: usize = 64;
/// How long answers are kept for a server that asked.
const ANSWER_KEPT: Duration = Duration::from_secs(30);
/// How often this server looks for an answer: at the beginning, and later.
const LOOK_MIN: Duration = Duration::from_millis(2);
const LOOK_MAX: Duration = Duration::from_millis(50);
/// How often the owner is reminded of a request that is not answered.
const REMIND: Duration = Duration::from_secs(2);
/// How often this server looks whether an execution has ended: at the beginning, and later.
const WAIT_MIN: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long to wait before the inbox is opened again.
const RETRY: Duration = Duration::from_millis(500);

/// What the owner is asked for.
#[derive(Debug, Serialize, Deserialize)]
enum Asked {
    Start { place: Place, input: Box<RawValue> },
    Stop { place: Place, error: Option<Arc<str>>, cause: Option<Arc<str>> },
    Redrive { place: Place },
    Restart { place: Place, state: Arc<str>, input: Option<Box<RawValue>> },
    Repin { place: Place, definition: Option<u64> },
    Pause { place: Place, paused: bool },
    PauseAll { tenant: Arc<str>, workflow: Arc<str>, paused: bool },
    Remove { place: Place },
    Queues { tenant: Arc<str>, workflow: Arc<str> },
    Callback { tenant: Option<Arc<str>>, token: Arc<str>, told: Told },
}

/// What a task is told by a callback.
#[derive(Debug, Serialize, Deserialize)]
enum Told {
    Succeeded { output: Box<RawValue> },
    Failed { error: Option<Arc<str>>, cause: Option<Arc<str>> },
    Heartbeat,
}

/// What the owner answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answered {
    Done,
    Queues(Vec<Queue>),
    NoWorkflow,
    Quarantined(String),
    Exists,
    Name,
    InputTooLarge(usize),
    TooMany(usize),
    Full { bytes: u64, bytes_max: u64 },
    NoExecution,
    NotRedrivable(String),
    NotRepinnable(String),
    Impossible(String),
    Key(usize),
    NoTask,
    Unavailable(String),
    Moved,
}

impl From<&Refused> for Answered {
    fn from(refused: &Refused) -> Answered {
        match refused {
            Refused::NoWorkflow => Answered::NoWorkflow,
            Refused::Quarantined(why) => Answered::Quarantined(why.clone()),
            Refused::Exists { .. } => Answered::Exists,
            Refused::Name => Answered::Name,
            Refused::InputTooLarge(max) => Answered::InputTooLarge(*max),
            Refused::TooMany(max) => Answered::TooMany(*max),
            Refused::Full { bytes, bytes_max } => Answered::Full { bytes: *bytes, bytes_max: *bytes_max },
            Refused::NoExecution => Answered::NoExecution,
            Refused::NotRedrivable(why) => Answered::NotRedrivable(why.to_string()),
            Refused::NotRepinnable(why) => Answered::NotRepinnable(why.to_string()),
            Refused::Impossible(why) => Answered::Impossible(why.clone()),
            Refused::Key(max) => Answered::Key(*max),
            Refused::NoTask => Answered::NoTask,
            Refused::Unavailable(why) => Answered::Unavailable(why.clone()),
            Refused::Stopping | Refused::Moved | Refused::Unanswered(_) => Answered::Moved,
        }
    }
}

/// JSON of what always is JSON.
fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

fn unreadable(error: &serde_json::Error) -> Refused {
    Refused::Unavailable(format!(
        "what servers tell each other in Redis cannot be read: {error}: have all servers of a store the same version"
    ))
}

impl<R: Runner + 'static> Server<R> {
    /// Has the owner do what a client asks for.
    pub(super) async fn forward(&self, message: Message) {
        // Clients that have gone need no answer.
        match message {
            Message::Start { workflow, name, input, answer } => drop(answer.send(self.start(&workflow, name, &input).await)),
            Message::Stop { place, error, cause, answer } => {
                drop(answer.send(self.steer(Asked::Stop { place, error, cause }).await));
            }
            Message::Redrive { place, answer } => drop(answer.send(self.steer(Asked::Redrive { place }).await)),
            Message::Repin { place, definition, answer } => {
                drop(answer.send(self.steer(Asked::Repin { place, definition }).await));
            }
            Message::Restart { place, state, input, answer } => {
                let input = input.as_ref().map(raw);
                drop(answer.send(self.steer(Asked::Restart { place, state, input }).await));
            }
            Message::Pause { place, paused, answer } => drop(answer.send(self.steer(Asked::Pause { place, paused }).await)),
            Message::PauseAll { tenant, workflow, paused, answer } => {
                drop(answer.send(self.ask(&Asked::PauseAll { tenant, workflow, paused }).await.map(drop)));
            }
            Message::Remove { place, answer } => drop(answer.send(self.ask(&Asked::Remove { place }).await.map(drop))),
            Message::Queues { tenant, workflow, answer } => drop(answer.send(self.queues(tenant, workflow).await)),
            Message::Callback { tenant, token, event, answer } => {
                drop(answer.send(self.call_back(tenant, token, event).await));
            }
            Message::Wait { place, mut answer } => {
                let ended = tokio::select! {
                    ended = self.wait(place) => ended,
                    () = answer.closed() => return,
                };
                drop(answer.send(ended));
            }
            // It needs no owner.
            Message::Express { .. } => {}
        }
    }

    async fn start(&self, workflow: &Workflow, name: Option<String>, input: &Value) -> Result<Started, Refused> {
        let input = raw(input);
        if input.get().len() > DATA_BYTES_MAX {
            return Err(Refused::InputTooLarge(DATA_BYTES_MAX));
        }
        let name =
            name.unwrap_or_else(|| format!("{:x}-{:016x}", express::now_ms().max(0).cast_unsigned() << 20, fastrand::u64(..)));
        if !is_name(&name) {
            return Err(Refused::Name);
        }
        let place = workflow.place(&name);
        let done = self.ask(&Asked::Start { place: place.clone(), input }).await?;
        let summary = self.read(place.clone()).await?;
        match done {
            Done::Exists => Err(Refused::Exists { summary: Box::new(summary) }),
            Done::Now | Done::Queues(_) => Ok(Started { place, summary }),
        }
    }

    async fn call_back(&self, tenant: Option<Arc<str>>, token: Arc<str>, event: Event) -> Result<(), Refused> {
        let told = match event {
            Event::CallbackSucceeded { output, .. } => Told::Succeeded { output: raw(&output) },
            Event::CallbackFailed { error, cause, .. } => Told::Failed { error, cause },
            Event::CallbackHeartbeat { .. } => Told::Heartbeat,
            _ => return Err(Refused::NoTask),
        };
        self.ask(&Asked::Callback { tenant, token, told }).await.map(drop)
    }

    /// Waits until an execution has ended, whichever server goes on with it.
    async fn wait(&self, place: Place) -> Result<Summary, Refused> {
        let mut pause = WAIT_MIN;
        loop {
            let summary = self.read(place.clone()).await?;
            if !summary.is_open() {
                return Ok(summary);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(WAIT_MAX);
        }
    }

    /// Asks for something that is done to one execution, and reads what that is then.
    async fn steer(&self, asked: Asked) -> Result<Summary, Refused> {
        let place = match &asked {
            Asked::Stop { place, .. }
            | Asked::Redrive { place }
            | Asked::Restart { place, .. }
            | Asked::Repin { place, .. }
            | Asked::Pause { place, .. } => place.clone(),
            Asked::Start { .. }
            | Asked::PauseAll { .. }
            | Asked::Remove { .. }
            | Asked::Queues { .. }
            | Asked::Callback { .. } => {
                return Err(Refused::NoExecution);
            }
        };
        self.ask(&asked).await?;
        self.read(place).await
    }

    /// What runs and waits of a workflow, as the owner knows it.
    async fn queues(&self, tenant: Arc<str>, workflow: Arc<str>) -> Result<Vec<Queue>, Refused> {
        match self.ask(&Asked::Queues { tenant, workflow }).await? {
            Done::Queues(queues) => Ok(queues),
            Done::Now | Done::Exists => Ok(Vec::new()),
        }
    }

    async fn read(&self, place: Place) -> Result<Summary, Refused> {
        self.executions.read(move |journal| journal.summary(&place)).await?.ok_or(Refused::NoExecution)
    }

    /// Asks the owner, and waits for its answer.
    async fn ask(&self, asked: &Asked) -> Result<Done, Refused> {
        let Ok(_permit) = self.forwarded.acquire().await else { return Err(Refused::Stopping) };
        let request = serde_json::to_vec(asked).map_err(|error| unreadable(&error))?;
        let id = format!("{:032x}", fastrand::u128(..));
        self.post.ask(&id, &request, ANSWER_TIME_MAX).await?;
        let begun = Instant::now();
        let (mut pause, mut reminded) = (LOOK_MIN, begun);
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(LOOK_MAX);
            // Where Redis does not answer now it may later.
            if let Ok(Some(answer)) = self.post.collect(&id).await {
                return answered(&answer);
            }
            if self.is_stopping() {
                return Err(Refused::Stopping);
            }
            if begun.elapsed() > ANSWER_TIME_MAX {
                return Err(Refused::Unanswered(ANSWER_TIME_MAX));
            }
            if reminded.elapsed() > REMIND {
                reminded = Instant::now();
                drop(self.post.remind(&id).await);
            }
        }
    }
}

/// What became of what the owner was asked for.
#[derive(Debug)]
enum Done {
    Now,
    /// What was asked for.
    Queues(Vec<Queue>),
    /// There is an execution of that name already.
    Exists,
}

/// What the owner has answered.
fn answered(answer: &[u8]) -> Result<Done, Refused> {
    const NOT_SERVED: &str =
        "the server that owns the executions does not serve this workflow: give all servers of a store the same workflows";
    match serde_json::from_slice(answer).map_err(|error| unreadable(&error))? {
        Answered::Done => Ok(Done::Now),
        Answered::Queues(queues) => Ok(Done::Queues(queues)),
        Answered::Exists => Ok(Done::Exists),
        Answered::NoWorkflow => Err(Refused::Unavailable(NOT_SERVED.to_owned())),
        Answered::Quarantined(why) => Err(Refused::Quarantined(why)),
        Answered::Name => Err(Refused::Name),
        Answered::InputTooLarge(max) => Err(Refused::InputTooLarge(max)),
        Answered::TooMany(max) => Err(Refused::TooMany(max)),
        Answered::Full { bytes, bytes_max } => Err(Refused::Full { bytes, bytes_max }),
        Answered::NoExecution => Err(Refused::NoExecution),
        Answered::NotRedrivable(why) => Err(Refused::NotRedrivable(why.into())),
        Answered::NotRepinnable(why) => Err(Refused::NotRepinnable(why.into())),
        Answered::Impossible(why) => Err(Refused::Impossible(why)),
        Answered::Key(max) => Err(Refused::Key(max)),
        Answered::NoTask => Err(Refused::NoTask),
        Answered::Unavailable(why) => Err(Refused::Unavailable(why)),
        Answered::Moved => Err(Refused::Moved),
    }
}

/// Where the owner takes requests of the other servers.
pub(super) struct Inbox<R> {
    pub server: Rc<Server<R>>,
    pub fence: Fence,
    pub term: Term,
    /// Where the executions take messages.
    pub own: mpsc::Sender<Message>,
}

impl<R: Runner + 'static> Inbox<R> {
    /// Takes requests and has them carried out. To be dropped when the term is over.
    pub(super) async fn serve(self) {
        let (inbox, busy) = (Rc::new(self), Arc::new(Semaphore::new(CARRIED_OUT_MAX)));
        loop {
            if let Ok(mut open) = inbox.server.post.open().await {
                // A request that was taken when the lease is over is not lost: the server that asks reminds the next owner of it.
                while let Ok(place) = Arc::clone(&busy).acquire_owned().await
                    && let Ok(id) = open.next().await
                {
                    if let Some(id) = id.filter(|_| inbox.term.holds() && !inbox.server.is_stopping()) {
                        let own = Rc::clone(&inbox);
                        spawn_local(inbox.term.clone().within(async move {
                            own.carry_out(&id).await;
                            drop(place);
                        }));
                    }
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn carry_out(&self, id: &str) {
        // One that cannot be claimed stays where it is.
        let Ok(Some(request)) = self.server.post.claim(&self.fence, id).await else { return };
        let done = async {
            match serde_json::from_slice(&request) {
                Ok(asked) => self.ask(asked).await,
                Err(error) => Err(unreadable(&error)),
            }
        };
        let done = tokio::time::timeout(ANSWER_TIME_MAX, done).await.unwrap_or(Err(Refused::Moved));
        let answer = done.unwrap_or_else(|refused| Answered::from(&refused));
        let answer = serde_json::to_vec(&answer).unwrap_or_default();
        if let Err(error) = self.server.post.answer(id, &answer, ANSWER_KEPT).await {
            tracing::debug!(%error, "another server is not answered");
        }
    }

    async fn ask(&self, asked: Asked) -> Result<Answered, Refused> {
        match asked {
            Asked::Queues { tenant, workflow } => {
                return self.tell(|answer| Message::Queues { tenant, workflow, answer }).await.map(Answered::Queues);
            }
            Asked::Start { place, input } => {
                let workflow = self.server.executions.workflow(&place.tenant, &place.workflow).ok_or(Refused::NoWorkflow)?;
                let (input, name) = (read(&input)?, Some(place.name.to_string()));
                self.tell(|answer| Message::Start { workflow, name, input, answer }).await.map(drop)?;
            }
            Asked::Stop { place, error, cause } => {
                self.tell(|answer| Message::Stop { place, error, cause, answer }).await.map(drop)?;
            }
            Asked::Redrive { place } => self.tell(|answer| Message::Redrive { place, answer }).await.map(drop)?,
            Asked::Repin { place, definition } => {
                self.tell(|answer| Message::Repin { place, definition, answer }).await.map(drop)?;
            }
            Asked::Restart { place, state, input } => {
                let input = input.as_deref().map(read).transpose()?;
                self.tell(|answer| Message::Restart { place, state, input, answer }).await.map(drop)?;
            }
            Asked::Pause { place, paused } => self.tell(|answer| Message::Pause { place, paused, answer }).await.map(drop)?,
            Asked::Remove { place } => self.tell(|answer| Message::Remove { place, answer }).await?,
            Asked::PauseAll { tenant, workflow, paused } => {
                self.tell(|answer| Message::PauseAll { tenant, workflow, paused, answer }).await?;
            }
            Asked::Callback { tenant, token, told } => {
                let event = match told {
                    Told::Succeeded { output } => Event::CallbackSucceeded { token: Arc::clone(&token), output: read(&output)? },
                    Told::Failed { error, cause } => Event::CallbackFailed { token: Arc::clone(&token), error, cause },
                    Told::Heartbeat => Event::CallbackHeartbeat { token: Arc::clone(&token) },
                };
                self.tell(|answer| Message::Callback { tenant, token, event, answer }).await?;
            }
        }
        Ok(Answered::Done)
    }

    async fn tell<T>(&self, message: impl FnOnce(oneshot::Sender<Result<T, Refused>>) -> Message) -> Result<T, Refused> {
        let (answer, answered) = oneshot::channel();
        self.own.send(message(answer)).await.map_err(|_| Refused::Moved)?;
        answered.await.unwrap_or(Err(Refused::Moved))
    }
}

fn read(json: &RawValue) -> Result<Value, Refused> {
    serde_json::from_str(json.get()).map_err(|error| unreadable(&error))
}
