//! Steering: executions are paused and resumed, one by one or all of a workflow, and restarted from a state.
//!
//! A pause is in the machine's own state, and so in the checkpoint: it lasts over restarts of the server. That a workflow is paused is a record, which is there before the first of its
//! executions is told: those that a crash leaves untold are told when the server is there again.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;
use sledge_workflow::machine::{Event, Status};

use super::core::Core;
use super::journal::{self, Journal, LISTED_MAX, Listing, Place, Summary};
use super::{Message, Refused};
use crate::kv::{KvError, Order};
use crate::workflow::Runner;

/// Executions that are told at the same time that their workflow is paused or resumed.
const TOLD_AT_ONCE: usize = 64;
/// How long to wait for executions that are being started.
const STARTING: Duration = Duration::from_millis(2);
/// Events of a page in which the entering of a state is looked for.
const EVENTS: usize = 1_000;

impl<R: Runner + 'static> Core<R> {
    /// Carries out what a client asks for; what is no steering comes back.
    pub(super) async fn steer(self: &Rc<Self>, message: Message) -> Option<Message> {
        // Clients that have gone need no answer.
        match message {
            Message::Restart { place, state, input, answer } => drop(answer.send(self.restart(&place, state, input).await)),
            Message::Pause { place, paused, answer } => drop(answer.send(self.pause(&place, paused).await)),
            Message::PauseAll { tenant, workflow, paused, answer } => {
                drop(answer.send(self.pause_all(tenant, workflow, paused).await));
            }
            other => return Some(other),
        }
        None
    }

    /// Has an execution that has ended go on at a state, with the input that the state had last if none is given.
    async fn restart(self: &Rc<Self>, place: &Place, state: Arc<str>, input: Option<Value>) -> Result<Summary, Refused> {
        let summary = self.find(place)?;
        match summary.status {
            Status::New | Status::Running => {
                return Err(Refused::Impossible("the execution has not ended; wait for its end, or stop it".to_owned()));
            }
            // Its checkpoint is gone.
            Status::Succeeded => {
                let why = "the execution has succeeded, and where it stood is not kept; start a new one";
                return Err(Refused::Impossible(why.to_owned()));
            }
            Status::Failed | Status::TimedOut | Status::Aborted => {}
        }
        if summary.parent.is_some() {
            let why = "a task of another execution has waited for it; restart that one";
            return Err(Refused::Impossible(why.to_owned()));
        }
        let input = match input {
            Some(input) => input,
            None => entered(self.journal(), summary.id, &state)?.ok_or_else(|| {
                Refused::Impossible(format!("the execution has not been in the state {state:?}; give an input"))
            })?,
        };
        self.tell_again(place, &summary, Event::Restarted { state, input }).await?;
        self.find(place)
    }

    /// Pauses an execution, or lets it go on.
    async fn pause(self: &Rc<Self>, place: &Place, paused: bool) -> Result<Summary, Refused> {
        let summary = self.find(place)?;
        match summary.status {
            Status::Running => {}
            Status::New => return Err(Refused::Impossible("the execution is queued: pause its workflow, or stop it".to_owned())),
            _ => return Err(Refused::Impossible("the execution has ended".to_owned())),
        }
        if summary.paused == paused {
            return Ok(summary);
        }
        match self.tell(summary.id, if paused { Event::Paused } else { Event::Resumed }).await {
            // It has ended meanwhile.
            Ok(()) | Err(Refused::NoTask) => self.find(place),
            Err(refused) => Err(refused),
        }
    }

    /// Pauses a workflow, with all of its executions and those that begin, or lets it and them go on. This returns when that is written; executions are told one after the other.
    async fn pause_all(self: &Rc<Self>, tenant: Arc<str>, workflow: Arc<str>, paused: bool) -> Result<(), Refused> {
        let found = self.executions.workflow(&tenant, &workflow).ok_or(Refused::NoWorkflow)?;
        if !found.is_durable() {
            let why = "its executions are express: they live as long as a request, and are not paused; set `type = \"standard\"`";
            return Err(Refused::Impossible(why.to_owned()));
        }
        let records = vec![journal::paused(&tenant, &workflow, paused)];
        self.write(records).await?;
        self.executions.set_paused(&tenant, &workflow, paused);
        self.tell_all(tenant, workflow, paused);
        Ok(())
    }

    /// Finds out which workflows are paused, before anything goes on.
    pub(super) fn read_paused(self: &Rc<Self>) -> Result<(), KvError> {
        let found = self.journal().paused_workflows()?;
        // What another server has changed meanwhile is not known here.
        self.executions.paused().clear();
        for (tenant, workflow) in found {
            self.executions.set_paused(&tenant, &workflow, true);
            self.tell_all(tenant, workflow, true);
        }
        Ok(())
    }

    /// Tells all executions of a workflow that have not ended.
    fn tell_all(self: &Rc<Self>, tenant: Arc<str>, workflow: Arc<str>, paused: bool) {
        let core = Rc::clone(self);
        self.launch(async move {
            // Those that began before the workflow was paused, and are not in the journal yet.
            while core.is_starting(&tenant, &workflow) {
                tokio::time::sleep(STARTING).await;
            }
            let mut after = None;
            loop {
                // It may have been changed again meanwhile.
                if core.is_stopping() || core.executions.is_paused(&tenant, &workflow) != paused {
                    return;
                }
                let (tenant, workflow) = (Arc::clone(&tenant), Arc::clone(&workflow));
                let listing = Listing { tenant, workflow, status: Some(Status::Running), after, max: LISTED_MAX };
                let (found, next) = match core.journal().list(&listing) {
                    Ok(page) => page,
                    Err(error) => {
                        tracing::warn!(workflow = &*listing.workflow, %error, "executions cannot be told of a pause now");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        continue;
                    }
                };
                let told = found.into_iter().filter(|(_, summary)| summary.paused != paused).map(|(place, _)| {
                    let core = Rc::clone(&core);
                    async move {
                        if let Err(refused) = core.pause(&place, paused).await {
                            tracing::debug!(execution = &*place.name, "an execution was not told of a pause: {refused}");
                        }
                    }
                });
                stream::iter(told).buffer_unordered(TOLD_AT_ONCE).collect::<()>().await;
                match next {
                    Some(position) => after = Some(position),
                    None => return,
                }
            }
        });
    }
}

/// The input with which a state was entered last; none if it never was.
fn entered(journal: &Journal, id: u64, state: &str) -> Result<Option<Value>, KvError> {
    let mut before = None;
    loop {
        let page = journal.history(id, Order::Falling, before, EVENTS)?;
        for event in &page.events {
            // Most events are no such, and large.
            if !event.get().contains("StateEntered\"") {
                continue;
            }
            let Ok(event) = serde_json::from_str::<Value>(event.get()) else { continue };
            let details = &event["stateEnteredEventDetails"];
            if details["name"] == state {
                return Ok(details["input"].as_str().and_then(|input| serde_json::from_str(input).ok()));
            }
        }
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(None),
        }
    }
}
