//! The thread of durable executions: which there are, when they are due, and how they are found.
//!
//! An execution is in memory while it has something to do, and then has a task of its own ([`live`](super::live)). All others are a number and a time in [`Core::due`], or only in the journal.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::limits::DATA_BYTES_MAX;
use sledge_workflow::machine::{Event, Status};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::spawn_local;

use super::journal::{Journal, Parent, Place, Summary};
use super::live::{Live, Origin, Said};
use super::pins::Table;
use super::places::{Held, Places};
use super::queue::{self, Queues};
use super::term::Term;
use super::{Executions, Message, Refused, Started, is_name, timetable};
use crate::invoke::urgency::Urgency;
use crate::kv::{Commit, KvError, Record};
use crate::workflow::{CALL, OF_FUNCTION, Runner, Workflow, express};

/// How long to wait before the journal is read again that could not be read.
const RETRY: Duration = Duration::from_secs(1);
/// The longest sleep: the calendar's clock may have been set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// When an execution is looked at again whose workflow is not configured, in milliseconds.
const HOMELESS_MS: i64 = 60_000;
/// The same of one that cannot be read now.
const UNREAD_MS: i64 = 5_000;
/// How often what is kept no longer is looked for.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// Commits of steps that are under way at the same time: one group that is written, and one that is gathered meanwhile.
const COMMITS_MAX: usize = 512;

/// A tenant, and the name of a workflow of it.
pub(super) type OfWorkflow = (Arc<str>, Arc<str>);

/// What all executions share. It belongs to one thread.
pub(super) struct Core<R> {
    pub executions: Executions,
    pub runner: R,
    /// For functions that run for executions at the same time.
    places: Rc<Places>,
    /// For commits that are made at the same time.
    pub commits: Rc<Places>,
    /// Executions that are to begin later.
    pub queues: Queues,
    pub stopped: watch::Receiver<bool>,
    /// For how long all of this holds.
    pub term: Term,
    /// Those in memory.
    alive: RefCell<HashMap<u64, mpsc::UnboundedSender<Said>>>,
    /// The others that have timers: when the first one runs out.
    due: RefCell<BTreeSet<(i64, u64)>>,
    due_sooner: Notify,
    /// What waits for the end of an execution.
    waiting: RefCell<HashMap<u64, Vec<oneshot::Sender<Summary>>>>,
    /// Names that are being given.
    starting: RefCell<HashSet<Place>>,
    /// Executions that have not ended, by tenant and workflow.
    open: RefCell<HashMap<OfWorkflow, usize>>,
    last_id: Cell<u64>,
    /// Executions that have ended and are kept.
    pub kept: Cell<u64>,
    /// Those that are being removed.
    removing: RefCell<HashSet<u64>>,
    /// Definitions that executions have begun with, or were read for them.
    definitions: RefCell<HashMap<u64, Arc<Definition>>>,
    /// Those of which it is known that the journal has them.
    written: RefCell<HashSet<u64>>,
    /// When the last of those in memory has ended.
    emptied: Notify,
    /// The versions of functions to which executions are pinned.
    pub pins: Rc<Table>,
}

/// Executes until `stopped` says so, and what is under way then is written. If `term` is over before, all that was begun ends of itself, and this future is to be dropped.
pub(super) async fn run<R: Runner + 'static>(
    executions: Executions,
    runner: R,
    places: usize,
    mut messages: mpsc::Receiver<Message>,
    mut stopped: watch::Receiver<bool>,
    term: Term,
) {
    let core = Rc::new(Core {
        executions,
        runner,
        places: Places::new(places),
        commits: Places::new(COMMITS_MAX),
        queues: Queues::default(),
        stopped: stopped.clone(),
        term,
        alive: RefCell::default(),
        due: RefCell::default(),
        due_sooner: Notify::new(),
        waiting: RefCell::default(),
        starting: RefCell::default(),
        open: RefCell::default(),
        last_id: Cell::new(0),
        kept: Cell::new(0),
        removing: RefCell::default(),
        definitions: RefCell::default(),
        written: RefCell::default(),
        emptied: Notify::new(),
        pins: Rc::default(),
    });
    let serve = async {
        core.recover().await;
        let _alarm = Aborted(spawn_local(alarm(Rc::clone(&core))));
        let _purge = Aborted(spawn_local(purge(Rc::clone(&core))));
        let _queues = Aborted(spawn_local(queue::keep(Rc::clone(&core))));
        let _timetable = Aborted(spawn_local(timetable::keep(Rc::clone(&core))));
        while let Some(message) = messages.recv().await {
            core.launch(Rc::clone(&core).answer(message));
        }
    };
    tokio::select! {
        () = serve => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    messages.close();
    while !core.alive.borrow().is_empty() {
        core.emptied.notified().await;
    }
}

/// A task that ends with its owner.
struct Aborted(tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Wakes executions when they are due.
async fn alarm<R: Runner + 'static>(core: Rc<Core<R>>) {
    loop {
        let now_ms = express::now_ms();
        let first = core.due.borrow().first().copied();
        match first {
            Some((at_ms, id)) if at_ms <= now_ms => {
                core.due.borrow_mut().remove(&(at_ms, id));
                core.wake(id);
                tokio::task::yield_now().await;
            }
            first => {
                let wait = first.map_or(SLEEP_MAX, |(at_ms, _)| express::time_until(at_ms).min(SLEEP_MAX));
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = core.due_sooner.notified() => {}
                }
            }
        }
    }
}

/// Removes what is kept no longer.
async fn purge<R: Runner + 'static>(core: Rc<Core<R>>) {
    loop {
        tokio::time::sleep(PURGE_EVERY).await;
        if let Err(error) = core.purge().await {
            tracing::warn!(%error, "executions that are kept no longer cannot be removed now");
        }
        core.sweep().await;
    }
}

impl<R: Runner + 'static> Core<R> {
    pub(super) fn journal(&self) -> &Journal {
        &self.executions.0.journal
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopped.borrow()
    }

    /// A place for a task of that workflow, when its tenant has its turn.
    pub(super) async fn place(&self, workflow: &Workflow) -> Held {
        self.places.take(workflow.config.tenant.as_str().into()).await
    }

    /// The same, if one is free.
    pub(super) fn free_place(&self) -> Option<Held> {
        self.places.take_free()
    }

    /// A place is lent to what runs ahead.
    pub(super) fn lend_place(&self, urgency: &Arc<Urgency>) {
        self.places.lend(urgency);
    }

    /// Writes what concerns no tenant's entries.
    pub(super) async fn write(&self, records: Vec<Record>) -> Result<(), KvError> {
        let commit = Commit { records, ..Commit::default() };
        self.term.commit(self.executions.0.space.clone(), commit).await.map(drop)
    }

    /// Has this go on by itself, within the term.
    pub(super) fn launch(&self, work: impl Future<Output = ()> + 'static) {
        if self.term.is_leased() {
            spawn_local(self.term.clone().within(work));
        } else {
            spawn_local(work);
        }
    }

    /// What `work` comes to, unless the server stops before. It does not return when the term is over.
    pub(super) async fn unless_stopping<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stopped = self.stopped.clone();
        let output = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return None,
            output = work => output,
        };
        if !self.term.holds() {
            std::future::pending::<()>().await;
        }
        Some(output)
    }

    /// Finds out which executions have not ended, and goes on with those that have something to do.
    async fn recover(self: &Rc<Self>) {
        let (found, referred, mut bytes) = loop {
            let (mut found, mut referred, mut bytes) = (Vec::new(), HashSet::new(), HashMap::new());
            let read = self.journal().last_id().and_then(|last| {
                self.kept.set(self.journal().kept()?);
                self.add_kept(&mut bytes)?;
                self.read_paused()?;
                self.journal().each_checkpoint(|id, glance| {
                    referred.extend(&glance.pins);
                    if !glance.has_ended {
                        found.push((id, glance));
                    }
                })?;
                Ok(last)
            });
            match read {
                Ok(last) => {
                    self.last_id.set(last);
                    break (found, referred, bytes);
                }
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        };
        if !found.is_empty() {
            tracing::info!(executions = found.len(), "going on with the executions of workflows");
        }
        let now_ms = express::now_ms();
        for (id, glance) in found {
            self.queues.recover(&glance, id);
            if glance.is_queued {
                self.executions.0.counts.queued(1);
            }
            add(&mut bytes, &glance.workflow.0, glance.size.total());
            *self.open.borrow_mut().entry(glance.workflow).or_default() += 1;
            self.executions.0.counts.begun();
            self.pins.hold(&glance.pins);
            let due_ms = if glance.has_tasks { Some(now_ms) } else { glance.due_ms };
            // What waits for a callback alone is found by its token.
            if let Some(due_ms) = due_ms {
                self.due.borrow_mut().insert((due_ms, id));
            }
        }
        self.executions.0.quota.begin(&bytes);
        if let Err(error) = self.forget_sets(&referred).await {
            tracing::warn!(%error, "versions to which no execution is pinned cannot be removed from the journal now");
        }
        self.sweep().await;
    }

    async fn answer(self: Rc<Self>, message: Message) {
        let Some(message) = self.steer(message).await else { return };
        let Some(message) = self.remove_for(message).await else { return };
        // Clients that have gone need no answer.
        match message {
            Message::Start { workflow, name, input, answer } => {
                drop(answer.send(self.start(&workflow, name.as_deref(), input, None).await));
            }
            Message::Stop { place, error, cause, answer } => drop(answer.send(self.stop(&place, error, cause).await)),
            Message::Repin { place, definition, answer } => drop(answer.send(self.repin(&place, definition).await)),
            Message::Redrive { place, answer } => drop(answer.send(self.redrive(&place).await)),
            Message::Callback { tenant, token, event, answer } => {
                drop(answer.send(self.call_back(tenant.as_deref(), &token, event).await));
            }
            Message::Express { workflow, named, input, mut answer } => {
                let executed = self.unless_stopping(express::execute_as(&workflow, &self.runner, input, Some(&named), None));
                // A client that has gone gives it up.
                let ended = tokio::select! {
                    ended = executed => ended.ok_or(Refused::Stopping),
                    () = answer.closed() => return,
                };
                drop(answer.send(ended));
            }
            Message::Wait { place, mut answer } => {
                let waited = async {
                    let summary = self.find(&place)?;
                    Ok(self.wait(&place, summary).await)
                };
                // A client that has gone waits no longer.
                let ended = tokio::select! {
                    ended = waited => ended,
                    () = answer.closed() => return,
                };
                drop(answer.send(ended));
            }
            Message::Queues { tenant, workflow, answer } => drop(answer.send(Ok(self.queues.of(&(tenant, workflow))))),
            Message::Restart { .. } | Message::Pause { .. } | Message::PauseAll { .. } | Message::Remove { .. } => {}
        }
    }

    /// What an execution is.
    pub(super) fn find(&self, place: &Place) -> Result<Summary, Refused> {
        self.journal().summary(place)?.ok_or(Refused::NoExecution)
    }

    /// Starts an execution.
    pub(super) async fn start(
        self: &Rc<Self>,
        workflow: &Arc<Workflow>,
        name: Option<&str>,
        input: Value,
        parent: Option<Parent>,
    ) -> Result<Started, Refused> {
        if self.is_stopping() {
            return Err(Refused::Stopping);
        }
        let definition = match &workflow.definition {
            Ok(definition) => Arc::clone(definition),
            Err(problem) => return Err(Refused::Quarantined(problem.clone())),
        };
        let input_bytes = serde_json::to_vec(&input).map_or(usize::MAX, |json| json.len());
        if input_bytes > DATA_BYTES_MAX {
            return Err(Refused::InputTooLarge(DATA_BYTES_MAX));
        }
        let id = self.new_id();
        let name = name.map_or_else(|| format!("{id:x}-{:016x}", fastrand::u64(..)), str::to_owned);
        if !is_name(&name) {
            return Err(Refused::Name);
        }
        let place = workflow.place(&name);
        let Some(_starting) = Starting::new(self, &place) else {
            // Another client gives the same name at this moment: let it come first.
            tokio::time::sleep(Duration::from_millis(1)).await;
            return Box::pin(self.start(workflow, Some(&name), input, parent)).await;
        };
        if let Some(summary) = self.journal().summary(&place)? {
            let is_same = summary.is_open() && *summary.input == input && summary.parent == parent;
            return if is_same { Ok(Started { place, summary }) } else { Err(Refused::Exists { summary: Box::new(summary) }) };
        }
        let max = workflow.config.executions_max;
        if self.open.borrow().get(&(Arc::clone(&place.tenant), Arc::clone(&place.workflow))).is_some_and(|open| *open >= max) {
            return Err(Refused::TooMany(max));
        }
        let _reserved = self.executions.0.quota.reserve(&place.tenant, input_bytes)?;
        self.definitions.borrow_mut().insert(definition.fingerprint(), Arc::clone(&definition));
        let (key, may_begin) = self.admit(workflow, &input)?;
        let pins = match self.pin(workflow, &definition).await {
            Ok(pins) => pins,
            Err(refused) => {
                if may_begin {
                    self.runs_no_more(&place, key.as_ref());
                }
                return Err(refused);
            }
        };
        let origin = Origin { id, place: place.clone(), workflow: Arc::clone(workflow), definition, parent, key: key.clone() };
        let mut live = Live::new(self, origin).pinned(pins);
        if !may_begin {
            let summary = self.queue(live, input).await?;
            return Ok(Started { place, summary });
        }
        if self.executions.is_paused(&place.tenant, &place.workflow) {
            live.begin_paused();
        }
        let (answer, begun) = oneshot::channel();
        self.spawn(live, Said { event: Event::Started { input }, to: None, answer: Some(answer) });
        if let Err(refused) = begun.await.unwrap_or(Err(Refused::Stopping)) {
            self.runs_no_more(&place, key.as_ref());
            return Err(refused);
        }
        let summary = self.find(&place)?;
        Ok(Started { place, summary })
    }

    /// Numbers rise with time, so that what is written later lies behind.
    fn new_id(&self) -> u64 {
        let by_time = express::now_ms().max(0).cast_unsigned() << 20;
        let id = by_time.max(self.last_id.get() + 1);
        self.last_id.set(id);
        id
    }

    /// Stops an execution, and says what it is then.
    pub(super) async fn stop(
        self: &Rc<Self>,
        place: &Place,
        error: Option<Arc<str>>,
        cause: Option<Arc<str>>,
    ) -> Result<Summary, Refused> {
        let summary = loop {
            let summary = self.find(place)?;
            if summary.status != Status::New {
                break summary;
            }
            if let Some(summary) = self.stop_queued(place, summary, error.clone(), cause.clone()).await? {
                return Ok(summary);
            }
            // It begins at this moment.
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        if summary.status != Status::Running {
            return Ok(summary);
        }
        match self.tell(summary.id, Event::Stopped { error, cause }).await {
            // It has ended meanwhile, or before.
            Ok(()) | Err(Refused::NoTask) => self.find(place),
            Err(refused) => Err(refused),
        }
    }

    async fn redrive(self: &Rc<Self>, place: &Place) -> Result<Summary, Refused> {
        let summary = self.find(place)?;
        match summary.status {
            Status::New | Status::Running => return Err(Refused::NotRedrivable("it has not ended".into())),
            Status::Succeeded => return Err(Refused::NotRedrivable("it has succeeded".into())),
            Status::Failed | Status::TimedOut | Status::Aborted => {}
        }
        if summary.parent.is_some() {
            return Err(Refused::NotRedrivable("a task of another execution has waited for it: redrive that one".into()));
        }
        // A call of a function that has told its failure would only fail again at its last state: the function is called again.
        let is_call = place.workflow.starts_with(OF_FUNCTION);
        let again =
            if is_call { Event::Restarted { state: CALL.into(), input: (*summary.input).clone() } } else { Event::Redriven };
        match self.tell_again(place, &summary, again).await {
            Err(Refused::NoTask) => return Err(Refused::NotRedrivable("it was stopped before it began: start another".into())),
            told => told?,
        }
        self.find(place)
    }

    /// Tells an execution that has ended what has it go on. It keeps its versions of functions, if they are there still.
    pub(super) async fn tell_again(self: &Rc<Self>, place: &Place, summary: &Summary, event: Event) -> Result<(), Refused> {
        if let Some(pins) = self.pin_again(place, summary).await? {
            self.pins.will_move(summary.id, &pins);
        }
        let told = self.tell(summary.id, event).await;
        drop(self.pins.take_move(summary.id));
        told
    }

    async fn call_back(self: &Rc<Self>, tenant: Option<&str>, token: &str, event: Event) -> Result<(), Refused> {
        let id = token.split_once('-').and_then(|(id, _)| u64::from_str_radix(id, 16).ok()).ok_or(Refused::NoTask)?;
        if let Some(tenant) = tenant
            && self.journal().tenant(id)?.as_deref() != Some(tenant)
        {
            return Err(Refused::NoTask);
        }
        self.tell(id, event).await
    }

    /// Tells an execution something, and waits until it has taken that in for good.
    pub(super) async fn tell(self: &Rc<Self>, id: u64, event: Event) -> Result<(), Refused> {
        self.say(id, event, None).await
    }

    /// The same, where it is to go on by that definition from then on.
    pub(super) async fn say(self: &Rc<Self>, id: u64, event: Event, to: Option<Arc<Definition>>) -> Result<(), Refused> {
        loop {
            let (answer, taken) = oneshot::channel();
            let said = Said { event: event.clone(), to: to.clone(), answer: Some(answer) };
            let inbox = self.alive.borrow().get(&id).cloned();
            match inbox {
                // One that leaves memory at this moment does not take it.
                Some(inbox) => drop(inbox.send(said)),
                None if self.is_stopping() => return Err(Refused::Stopping),
                None => {
                    let live = self.load(id)?.ok_or(Refused::NoTask)?;
                    self.spawn(live, said);
                }
            }
            if let Ok(result) = taken.await {
                return result;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Adds what executions take up that have ended and are kept, where that is limited: it is not counted otherwise, since it takes time.
    fn add_kept(&self, bytes: &mut HashMap<Arc<str>, u64>) -> Result<(), KvError> {
        if self.executions.0.quota.is_set() {
            self.journal().each_kept(|tenant, size| add(bytes, tenant, size))?;
        }
        Ok(())
    }

    /// Whether an execution is in memory.
    pub(super) fn is_alive(&self, id: u64) -> bool {
        self.alive.borrow().contains_key(&id)
    }

    /// An execution does not come into memory any more, as long as what this gives lives; none where that is so already.
    pub(super) fn removing(&self, id: u64) -> Option<impl Drop + '_> {
        self.removing.borrow_mut().insert(id).then(|| Removing { core: self, id })
    }

    /// Whether an execution of that workflow is being started.
    pub(super) fn is_starting(&self, tenant: &str, workflow: &str) -> bool {
        self.starting.borrow().iter().any(|place| &*place.tenant == tenant && &*place.workflow == workflow)
    }

    /// Waits until an execution that is that has ended.
    pub(super) async fn wait(&self, place: &Place, summary: Summary) -> Summary {
        if !summary.is_open() {
            return summary;
        }
        let (sender, ended) = oneshot::channel();
        {
            let mut waiting = self.waiting.borrow_mut();
            let of_it = waiting.entry(summary.id).or_default();
            // Others may have gone.
            of_it.retain(|sender| !sender.is_closed());
            of_it.push(sender);
        }
        match self.find(place) {
            // Between the first look and the entry.
            Ok(summary) if !summary.is_open() => summary,
            _ => match ended.await {
                Ok(summary) => summary,
                // The server stops, and what waits with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Brings an execution into memory whose time has come.
    fn wake(self: &Rc<Self>, id: u64) {
        if self.alive.borrow().contains_key(&id) {
            return;
        }
        match self.load(id) {
            Ok(Some(live)) if live.has_ended() => {}
            Ok(Some(live)) => self.go_on(live),
            Ok(None) => {}
            Err(refused) => {
                tracing::warn!(execution = id, "an execution cannot go on now: {refused}");
                let pause_ms = if matches!(refused, Refused::Unavailable(_)) { UNREAD_MS } else { HOMELESS_MS };
                self.sleep_until(express::now_ms().saturating_add(pause_ms), id);
            }
        }
    }

    /// An execution as the journal has it; none where there is no such.
    pub(super) fn load(self: &Rc<Self>, id: u64) -> Result<Option<Live<R>>, Refused> {
        if self.removing.borrow().contains(&id) {
            return Ok(None);
        }
        let Some((checkpoint, glance)) = self.journal().checkpoint(id)? else { return Ok(None) };
        let Place { tenant, workflow, .. } = &checkpoint.place;
        let Some(workflow) = self.executions.workflow(tenant, workflow) else { return Err(Refused::NoWorkflow) };
        let definition = self.definition(&workflow, glance.definition)?;
        let pins = self.pins_of(&glance.pins)?;
        if !glance.has_ended {
            // From now on it is in memory, and holds them by itself.
            self.pins.release(&glance.pins);
        }
        Ok(Some(Live::of(self, id, checkpoint, workflow, definition).pinned(pins).of_size(glance.size)))
    }

    /// The definition with which an execution began: that which is served, or an earlier one.
    pub(super) fn definition(&self, workflow: &Workflow, fingerprint: u64) -> Result<Arc<Definition>, Refused> {
        if let Ok(definition) = &workflow.definition
            && definition.fingerprint() == fingerprint
        {
            return Ok(Arc::clone(definition));
        }
        if let Some(definition) = self.definitions.borrow().get(&fingerprint) {
            return Ok(Arc::clone(definition));
        }
        let missing = || Refused::Unavailable("the definition with which the execution began is not in the journal".to_owned());
        let definition = Arc::new(self.journal().definition(fingerprint)?.ok_or_else(missing)?);
        self.definitions.borrow_mut().insert(fingerprint, Arc::clone(&definition));
        Ok(definition)
    }

    /// Whether the journal has that definition, as far as is known.
    pub(super) fn has_written(&self, definition: &Definition) -> bool {
        self.written.borrow().contains(&definition.fingerprint())
    }

    /// The journal has it.
    pub(super) fn wrote(&self, definition: &Definition) {
        self.written.borrow_mut().insert(definition.fingerprint());
    }

    fn spawn(self: &Rc<Self>, live: Live<R>, first: Said) {
        let inbox = self.go_on_with(live);
        // It has just begun.
        let _ = inbox.send(first);
    }

    fn go_on(self: &Rc<Self>, live: Live<R>) {
        drop(self.go_on_with(live));
    }

    fn go_on_with(self: &Rc<Self>, live: Live<R>) -> mpsc::UnboundedSender<Said> {
        let (sender, inbox) = mpsc::unbounded_channel();
        self.alive.borrow_mut().insert(live.id, sender.clone());
        self.launch(live.run(inbox));
        sender
    }

    /// An execution leaves memory, and comes back at that time, if there is one.
    pub(super) fn leave(&self, id: u64, due_ms: Option<i64>) {
        let is_empty = {
            let mut alive = self.alive.borrow_mut();
            alive.remove(&id);
            alive.is_empty()
        };
        if let Some(due_ms) = due_ms {
            self.sleep_until(due_ms, id);
        }
        if is_empty {
            self.emptied.notify_one();
        }
    }

    fn sleep_until(&self, at_ms: i64, id: u64) {
        let is_first = self.due.borrow().first().is_none_or(|(first, _)| at_ms < *first);
        self.due.borrow_mut().insert((at_ms, id));
        if is_first {
            self.due_sooner.notify_one();
        }
    }

    /// One more execution of that workflow goes on, for the first time or again. One that was queued is counted already.
    pub(super) fn begun(&self, place: &Place, is_again: bool, was_queued: bool) {
        if was_queued {
            self.executions.0.counts.queued(-1);
            return;
        }
        if is_again {
            self.kept.set(self.kept.get().saturating_sub(1));
        }
        *self.open.borrow_mut().entry((Arc::clone(&place.tenant), Arc::clone(&place.workflow))).or_default() += 1;
        self.executions.0.counts.begun();
    }

    /// It has ended so. `key` is what the limits of its workflow were kept for.
    pub(super) fn ended(&self, place: &Place, key: Option<&Arc<str>>, summary: &Summary) {
        self.runs_no_more(place, key);
        if let Some(open) = self.open.borrow_mut().get_mut(&(Arc::clone(&place.tenant), Arc::clone(&place.workflow))) {
            *open = open.saturating_sub(1);
        }
        self.executions.0.counts.ended(summary.status);
        self.kept.set(self.kept.get() + 1);
        let waiting = self.waiting.borrow_mut().remove(&summary.id).unwrap_or_default();
        waiting.into_iter().for_each(|sender| drop(sender.send(summary.clone())));
    }
}

/// Adds bytes of a tenant.
fn add(bytes: &mut HashMap<Arc<str>, u64>, tenant: &str, more: u64) {
    match bytes.get_mut(tenant) {
        Some(sum) => *sum = sum.saturating_add(more),
        None => drop(bytes.insert(tenant.into(), more)),
    }
}

/// An execution that is being removed.
struct Removing<'a, R> {
    core: &'a Core<R>,
    id: u64,
}

impl<R> Drop for Removing<'_, R> {
    fn drop(&mut self) {
        self.core.removing.borrow_mut().remove(&self.id);
    }
}

/// A name that is being given.
struct Starting<'a, R> {
    core: &'a Core<R>,
    place: Place,
}

impl<'a, R> Starting<'a, R> {
    fn new(core: &'a Core<R>, place: &Place) -> Option<Starting<'a, R>> {
        core.starting.borrow_mut().insert(place.clone()).then(|| Starting { core, place: place.clone() })
    }
}

impl<R> Drop for Starting<'_, R> {
    fn drop(&mut self) {
        self.core.starting.borrow_mut().remove(&self.place);
    }
}
