//! Executions that wait to begin, since their workflow has limits: each is in the journal with its input, and a number in a [gate](super::gate) here.
//!
//! What holds: an execution that was accepted begins at some time, also after a restart, unless it is stopped before. It is counted as running from the moment at which its gate opens, so
//! that no other takes its place while its first step is written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sledge_workflow::data::{Limits, Scope, Variables};
use sledge_workflow::machine::{Event, Failure, Outcome, Status};
use tokio::sync::Notify;

use super::core::{Core, OfWorkflow};
use super::gate::{Gates, Queue};
use super::journal::{self, Glance, Place, Summary};
use super::live::Live;
use super::{QUEUES_MAX, Refused};
use crate::config::WorkflowLimits;
use crate::workflow::{Runner, Workflow, express};

/// Bytes of a key.
const KEY_BYTES_MAX: usize = 256;
/// How long to wait before an execution is tried to begin again that could not.
const RETRY: Duration = Duration::from_secs(1);
/// The longest sleep: the calendar's clock may have been set, or the limits.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// What waits, by workflow.
#[derive(Debug, Default)]
pub(super) struct Queues {
    gates: RefCell<HashMap<OfWorkflow, Gates>>,
    changed: Notify,
}

/// A workflow has no variables before it begins.
struct NoVariables;

impl Variables for NoVariables {
    fn get(&self, _: &str) -> Option<&Value> {
        None
    }
}

impl Queues {
    /// An execution that has not ended when the server starts.
    pub(super) fn recover(&self, glance: &Glance, id: u64) {
        let Some(key) = &glance.key else { return };
        let mut gates = self.gates.borrow_mut();
        let gates = gates.entry(glance.workflow.clone()).or_default();
        if glance.is_queued {
            gates.wait(key, id);
        } else {
            gates.run(key);
        }
    }

    /// What runs and waits of a workflow.
    pub(super) fn of(&self, workflow: &OfWorkflow) -> Vec<Queue> {
        self.gates.borrow().get(workflow).map(|gates| gates.queues(QUEUES_MAX)).unwrap_or_default()
    }

    pub(super) fn with<T>(&self, place: &Place, with: impl FnOnce(&mut Gates) -> T) -> T {
        let of = (Arc::clone(&place.tenant), Arc::clone(&place.workflow));
        let result = with(self.gates.borrow_mut().entry(of).or_default());
        self.changed.notify_one();
        result
    }
}

/// What the limits of a workflow are kept for with that input: its text where it is one, else its JSON; empty where there is nothing.
fn key(limits: &WorkflowLimits, input: &Value) -> Result<Arc<str>, Refused> {
    let Some(path) = limits.path() else { return Ok("".into()) };
    let scope = Scope { limits: Limits::default(), ..Scope::new(input, &Value::Null, &NoVariables) };
    let key: Arc<str> = match path.read(&scope).as_deref() {
        Ok(Value::String(text)) => text.as_str().into(),
        Ok(value) => value.to_string().into(),
        Err(_) => "".into(),
    };
    // A zero ends it where it is written.
    if key.len() > KEY_BYTES_MAX || key.contains('\0') { Err(Refused::Key(KEY_BYTES_MAX)) } else { Ok(key) }
}

/// Has executions begin as soon as they may.
pub(super) async fn keep<R: Runner + 'static>(core: Rc<Core<R>>) {
    loop {
        let next_ms = open(&core);
        let wait = next_ms.map_or(SLEEP_MAX, |at_ms| express::time_until(at_ms).min(SLEEP_MAX));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = core.queues.changed.notified() => {}
        }
    }
}

/// Has those begin that may now; when the next one may, if that is known.
fn open<R: Runner + 'static>(core: &Rc<Core<R>>) -> Option<i64> {
    let now_ms = express::now_ms();
    let (mut begin, mut next_ms) = (Vec::new(), None::<i64>);
    core.queues.gates.borrow_mut().retain(|(tenant, workflow), gates| {
        // Those of a workflow that is not served, or is paused, wait until it is no more.
        let Some(served) = core.executions.workflow(tenant, workflow) else { return true };
        if core.executions.is_paused(tenant, workflow) {
            return true;
        }
        let (opened, at_ms) = gates.open(served.config.limits.as_ref(), now_ms);
        begin.extend(opened.into_iter().map(|(key, id)| ((Arc::clone(tenant), Arc::clone(workflow)), key, id)));
        next_ms = next_ms.into_iter().chain(at_ms).min();
        !gates.is_empty()
    });
    for (of, key, id) in begin {
        core.launch(begin_queued(Rc::clone(core), of, key, id));
    }
    next_ms
}

/// Begins an execution whose gate has opened.
async fn begin_queued<R: Runner + 'static>(core: Rc<Core<R>>, of: OfWorkflow, key: Arc<str>, id: u64) {
    let begun = async {
        let Some((checkpoint, glance)) = core.journal().checkpoint(id)? else { return Err(Refused::NoTask) };
        if !glance.is_queued {
            return Err(Refused::NoTask);
        }
        let input = (*core.find(&checkpoint.place)?.input).clone();
        core.tell(id, Event::Started { input }).await
    };
    let refused = match begun.await {
        Ok(()) => return,
        Err(refused) => refused,
    };
    let is_gone = matches!(refused, Refused::NoTask | Refused::NoExecution);
    if !is_gone {
        tracing::warn!(execution = id, "an execution cannot begin now: {refused}");
        tokio::time::sleep(RETRY).await;
    }
    if let Some(gates) = core.queues.gates.borrow_mut().get_mut(&of) {
        if is_gone {
            gates.end(&key);
        } else {
            gates.put_back(&key, id);
        }
    }
}

impl<R: Runner + 'static> Core<R> {
    /// What the limits of a workflow are kept for with that input, and whether an execution may begin now. It is counted as running then.
    pub(super) fn admit(&self, workflow: &Workflow, input: &Value) -> Result<(Option<Arc<str>>, bool), Refused> {
        let Some(limits) = &workflow.config.limits else { return Ok((None, true)) };
        let key = key(limits, input)?;
        let may_begin = self.queues.with(&workflow.place(""), |gates| gates.admit(&key, Some(limits), express::now_ms()));
        Ok((Some(key), may_begin))
    }

    /// Keeps an execution that is to begin later.
    pub(super) async fn queue(&self, mut live: Live<R>, input: Value) -> Result<Summary, Refused> {
        let (records, summary) = live.queued(input);
        self.write(records.clone()).await?;
        live.hold(&records);
        let (place, key) = live.whose();
        self.begun(place, false, false);
        self.executions.0.counts.queued(1);
        if let Some(key) = key {
            self.queues.with(place, |gates| gates.wait(key, summary.id));
        }
        Ok(summary)
    }

    /// One that ran, or was to begin, does not.
    pub(super) fn runs_no_more(&self, place: &Place, key: Option<&Arc<str>>) {
        if let Some(key) = key {
            self.queues.with(place, |gates| gates.end(key));
        }
    }

    /// One that had ended runs again.
    pub(super) fn redriven(&self, place: &Place, key: &Arc<str>) {
        self.queues.with(place, |gates| gates.run(key));
    }

    /// Stops an execution that has not begun, and says what it is then; none where it begins at this moment.
    pub(super) async fn stop_queued(
        &self,
        place: &Place,
        mut summary: Summary,
        error: Option<Arc<str>>,
        cause: Option<Arc<str>>,
    ) -> Result<Option<Summary>, Refused> {
        let Some(glance) = self.journal().glance(summary.id)?.filter(|glance| glance.is_queued) else { return Ok(None) };
        let Some(key) = glance.key else { return Ok(None) };
        if !self.queues.with(place, |gates| gates.give_up(&key, summary.id)) {
            return Ok(None);
        }
        let retention_days =
            self.executions.workflow(&place.tenant, &place.workflow).map_or(0, |workflow| workflow.config.retention_days);
        summary.ended(&Outcome::Aborted(Failure { error, cause }), express::now_ms(), retention_days);
        let mut records = journal::ended(place, &summary, Status::New);
        let size = glance.size.with(&records);
        records.extend(journal::expiry(place, &summary, size.total()));
        if let Err(error) = self.write(records).await {
            self.queues.with(place, |gates| gates.wait(&key, summary.id));
            return Err(error.into());
        }
        self.pins.release(&glance.pins);
        if let Some(used) = self.executions.0.quota.of(&place.tenant) {
            used.change(glance.size.total(), size.total());
        }
        self.executions.0.counts.queued(-1);
        self.ended(place, None, &summary);
        Ok(Some(summary))
    }
}
