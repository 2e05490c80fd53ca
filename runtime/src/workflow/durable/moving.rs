//! Moves: an execution that has not ended goes on with what is served now: the versions of functions that its tasks call, and, where that is asked for, the definition.
//!
//! ```text
//!   repin --pin--> served versions --say--> live: Execution::moved -> its next commit (checkpoint, head, definition, versions)
//!      \--queued--> taken out of its queue -> the same commit -> back to its place in the queue
//! ```
//!
//! What holds: an execution goes on by one definition and its versions, or by the other with its own. What cannot go on by the new definition is left as it is, and the client is told which state
//! differs. An execution that is queued neither begins nor is stopped while it is moved.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Event, Misfit, Status};

use super::core::Core;
use super::journal::{Glance, Place, Summary};
use super::pins::Pins;
use super::{Executions, Refused};
use crate::workflow::{OF_FUNCTION, Runner, Workflow};

/// How long to wait for an execution that begins, or is stopped, at this moment.
const BEGINNING: Duration = Duration::from_millis(1);
const ENDED: Refused = Refused::NotRepinnable(Cow::Borrowed("it has ended"));

/// Why an execution cannot go on by another definition.
pub(super) fn refused(misfits: &[Misfit]) -> Refused {
    if misfits.contains(&Misfit::Ended) {
        return ENDED;
    }
    let reasons: Vec<_> = misfits.iter().map(ToString::to_string).collect();
    Refused::NotRepinnable(reasons.join("; ").into())
}

impl Executions {
    /// The fingerprint of the definition that this server serves for executions there.
    pub(super) fn served_definition(&self, place: &Place) -> Result<u64, Refused> {
        let workflow = self.workflow(&place.tenant, &place.workflow).ok_or(Refused::NoWorkflow)?;
        match &workflow.definition {
            Ok(definition) => Ok(definition.fingerprint()),
            Err(problem) => Err(Refused::Quarantined(problem.clone())),
        }
    }
}

/// The definition that is served, if it has that fingerprint.
fn served(workflow: &Workflow, fingerprint: u64) -> Result<Arc<Definition>, Refused> {
    const CALLS: &str = "asynchronous calls have no definition of their own, and go on by the settings with which they were made; leave --definition out";
    const OTHER: &str = "the server that owns the executions serves another definition of the workflow; give all servers of a store the same one \
         (SIGHUP reads it again), and ask again";
    if workflow.config.name.starts_with(OF_FUNCTION) {
        return Err(Refused::NotRepinnable(CALLS.into()));
    }
    match &workflow.definition {
        Ok(definition) if definition.fingerprint() == fingerprint => Ok(Arc::clone(definition)),
        Ok(_) => Err(Refused::NotRepinnable(OTHER.into())),
        Err(problem) => Err(Refused::Quarantined(problem.clone())),
    }
}

impl<R: Runner + 'static> Core<R> {
    /// Moves an execution that has not ended to the versions that are served now; with a fingerprint also to the definition that is served, which has to be that one.
    pub(super) async fn repin(self: &Rc<Self>, place: &Place, fingerprint: Option<u64>) -> Result<Summary, Refused> {
        loop {
            let summary = self.find(place)?;
            let workflow = self.executions.workflow(&place.tenant, &place.workflow).ok_or(Refused::NoWorkflow)?;
            let definition = match fingerprint {
                Some(fingerprint) => served(&workflow, fingerprint)?,
                None => self.definition(&workflow, summary.definition)?,
            };
            match summary.status {
                Status::Running => {
                    let pins = self.pin(&workflow, &definition).await?;
                    return self.repin_running(place, &summary, definition, &pins).await;
                }
                Status::New => {
                    let pins = self.pin(&workflow, &definition).await?;
                    if let Some(summary) = self.repin_queued(place, summary, definition, pins).await? {
                        return Ok(summary);
                    }
                    tokio::time::sleep(BEGINNING).await;
                }
                Status::Succeeded | Status::Failed | Status::TimedOut | Status::Aborted => return Err(ENDED),
            }
        }
    }

    async fn repin_running(
        self: &Rc<Self>,
        place: &Place,
        summary: &Summary,
        definition: Arc<Definition>,
        pins: &Rc<Pins>,
    ) -> Result<Summary, Refused> {
        self.pins.will_move(summary.id, pins);
        // Nothing happens to the machine: the execution writes its next checkpoint.
        let told = self.say(summary.id, Event::Continue, Some(definition)).await;
        drop(self.pins.take_move(summary.id));
        told.map_err(|refused| if matches!(refused, Refused::NoTask) { ENDED } else { refused })?;
        self.find(place)
    }

    /// Moves one that has not begun; none where it begins, or is stopped, at this moment.
    async fn repin_queued(
        self: &Rc<Self>,
        place: &Place,
        summary: Summary,
        definition: Arc<Definition>,
        pins: Rc<Pins>,
    ) -> Result<Option<Summary>, Refused> {
        let id = summary.id;
        let Some(glance) = self.journal().glance(id)?.filter(|glance| glance.is_queued) else { return Ok(None) };
        let Some(key) = glance.key.clone() else { return Ok(None) };
        if !self.queues.with(place, |gates| gates.give_up(&key, id)) {
            return Ok(None);
        }
        let moved = self.write_queued(summary, &glance, definition, pins).await;
        self.queues.with(place, |gates| gates.wait(&key, id));
        moved.map(Some)
    }

    async fn write_queued(
        self: &Rc<Self>,
        summary: Summary,
        glance: &Glance,
        definition: Arc<Definition>,
        pins: Rc<Pins>,
    ) -> Result<Summary, Refused> {
        let live = self.load(summary.id)?.ok_or(Refused::NoExecution)?;
        let written = async {
            let (mut live, records, summary) = live.pinned(pins).requeued(definition, summary)?;
            self.write(records.clone()).await?;
            live.hold(&records);
            Ok(summary)
        };
        let written = written.await;
        if written.is_err() {
            // It was loaded, and is in the journal alone again, as it was.
            self.pins.hold(&glance.pins);
        }
        written
    }
}
