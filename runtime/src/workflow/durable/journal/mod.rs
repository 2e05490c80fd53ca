//! The journal: what is written of executions, and reading it.
//!
//! ```text
//!   E tenant workflow name             -> Summary: what an execution is and how it ended
//!   C id                               -> Checkpoint: where it stands; of a failed one where it stood, for a redrive
//!   H id event                         -> events of its history from that number on, those of one step
//!   L tenant workflow !started !id     -> its name: all of a workflow, the newest first
//!   S tenant workflow status !started !id -> its name: the same by status
//!   F expires id                       -> its place, and the bytes that it takes up: what is removed when
//!   P tenant workflow                  -> nothing: the workflow is paused
//!   T tenant schedule                  -> when the schedule has started something last
//!   D fingerprint                      -> a definition with which executions began
//!   V number                           -> a Set: versions of functions to which executions are pinned
//! ```
//!
//! Numbers are big-endian, so that keys are in their order; `!` turns it around. Names end with a zero.

mod checkpoint;
mod expiry;
mod key;
mod listing;
mod summary;
mod write;

use std::ops::Bound;
use std::sync::Arc;

use serde_json::value::RawValue;
use sledge_workflow::definition::Definition;

pub use self::checkpoint::{Checkpoint, Glance};
pub(super) use self::checkpoint::{Standing, checkpoint};
pub use self::expiry::Expired;
pub(super) use self::expiry::expiry;
pub(super) use self::key::Part;
pub use self::listing::{LISTED_MAX, Listing, Page, Position};
pub use self::summary::{Parent, Place, Summary};
pub(super) use self::write::{begun, changed, definition, ended, history, no_pins, paused, pins, schedule};

use self::checkpoint::HEAD_BYTES_MAX;
use self::key::{
    CHECKPOINTS, DEFINITIONS, HISTORIES, Key, PAUSED, PINS, SCHEDULES, checkpoint_key, last_number, of_workflow, summary_key,
};
use super::pins::Set;
use super::timetable::Kept;
use crate::kv::{KvError, Order, Records};

/// Events that one answer gives.
pub const EVENTS_MAX: usize = 1_000;
/// Bytes of events after which an answer ends: items that a Map has read are in its history, and large.
pub const EVENTS_BYTES_MAX: usize = 8 << 20;

/// A tenant, and the name of a workflow of it.
pub type WorkflowName = (Arc<str>, Arc<str>);

/// Events of a history.
#[derive(Debug)]
pub struct Events {
    /// Each as JSON.
    pub events: Vec<Box<RawValue>>,
    /// The number of the last one, if there are more behind it.
    pub next: Option<u64>,
}

/// Reads the journal. It may wait for the disk, or for Redis.
#[derive(Clone, Debug)]
pub struct Journal {
    records: Records,
}

fn damaged(what: &str, error: &impl std::fmt::Display) -> KvError {
    KvError::Unavailable(format!("the journal of executions is damaged: {what}: {error}"))
}

impl Journal {
    /// That of a store.
    #[must_use]
    pub const fn new(records: Records) -> Journal {
        Journal { records }
    }

    /// What an execution is; none where there is no such.
    ///
    /// # Errors
    /// When the store cannot be read now, or what is in it is damaged.
    pub fn summary(&self, place: &Place) -> Result<Option<Summary>, KvError> {
        let Some(found) = self.records.get(&summary_key(place).0)? else { return Ok(None) };
        serde_json::from_slice(&found).map(Some).map_err(|error| damaged(&place.name, &error))
    }

    /// Where an execution stands, or stood when it failed.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn checkpoint(&self, id: u64) -> Result<Option<(Checkpoint, Glance)>, KvError> {
        let Some(found) = self.records.get(&checkpoint_key(id).0)? else { return Ok(None) };
        let (glance, json) = Glance::read(&found).ok_or_else(|| damaged("a checkpoint", &"its head is wrong"))?;
        let checkpoint = serde_json::from_slice(json);
        checkpoint.map(|checkpoint| Some((checkpoint, glance))).map_err(|error| damaged("a checkpoint", &error))
    }

    /// What the head of an execution's checkpoint says; none where there is no such.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn glance(&self, id: u64) -> Result<Option<Glance>, KvError> {
        let Some(found) = self.records.get(&checkpoint_key(id).0)? else { return Ok(None) };
        let (glance, _) = Glance::read(&found).ok_or_else(|| damaged("a checkpoint", &"its head is wrong"))?;
        Ok(Some(glance))
    }

    /// The tenant of an execution that has not succeeded; none where there is no such.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn tenant(&self, id: u64) -> Result<Option<Arc<str>>, KvError> {
        Ok(self.glance(id)?.map(|glance| glance.workflow.0))
    }

    /// Versions to which executions are pinned.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn pins(&self, number: u64) -> Result<Option<Set>, KvError> {
        let Some(found) = self.records.get(&Key::new(PINS).number(number).0)? else { return Ok(None) };
        Set::from_json(&found).map(Some).map_err(|error| damaged("what executions are pinned to", &error))
    }

    /// The numbers of all sets of versions.
    pub(super) fn sets(&self) -> Result<Vec<u64>, KvError> {
        let mut numbers = Vec::new();
        self.all(&Key::new(PINS), 0, |key, _| {
            numbers.extend(last_number(key));
            true
        })?;
        Ok(numbers)
    }

    /// A definition with which executions began.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn definition(&self, fingerprint: u64) -> Result<Option<Definition>, KvError> {
        let Some(found) = self.records.get(&Key::new(DEFINITIONS).number(fingerprint).0)? else { return Ok(None) };
        let source = std::str::from_utf8(&found).map_err(|error| damaged("a definition", &error))?;
        let first = |mistakes: Vec<_>| mistakes.first().map(ToString::to_string).unwrap_or_default();
        Definition::parse(source).map(Some).map_err(|mistakes| damaged("a definition", &first(mistakes)))
    }

    /// When a schedule has started something last.
    pub(super) fn schedule(&self, tenant: &str, name: &str) -> Result<Option<Kept>, KvError> {
        let Some(found) = self.records.get(&of_workflow(SCHEDULES, tenant, name).0)? else { return Ok(None) };
        serde_json::from_slice(&found).map(Some).map_err(|error| damaged(name, &error))
    }

    /// Tenants and names of the workflows that are paused.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn paused_workflows(&self) -> Result<Vec<WorkflowName>, KvError> {
        let mut found = Vec::new();
        self.all(&Key::new(PAUSED), 0, |key, _| {
            let mut names = key.get(1..).unwrap_or_default().split(|byte| *byte == 0);
            let mut name = || names.next().and_then(|name| std::str::from_utf8(name).ok()).map(Arc::from);
            if let (Some(tenant), Some(workflow)) = (name(), name()) {
                found.push((tenant, workflow));
            }
            true
        })?;
        Ok(found)
    }

    /// Calls `with` with the number of each execution that has a checkpoint, and what the head of that says.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn each_checkpoint(&self, mut with: impl FnMut(u64, Glance)) -> Result<(), KvError> {
        self.all(&Key::new(CHECKPOINTS), HEAD_BYTES_MAX, |key, value| {
            if let Some((id, (glance, _))) = last_number(key).zip(Glance::read(value)) {
                with(id, glance);
            }
            true
        })
    }

    /// The largest number of an execution that was written.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn last_id(&self) -> Result<u64, KvError> {
        let mut last = 0;
        for kind in [CHECKPOINTS, HISTORIES] {
            let bounds = (Bound::Included(&[kind][..]), Bound::Excluded(&[kind + 1][..]));
            self.records.scan(bounds, Order::Falling, |key, _| {
                let number = key.get(1..9).and_then(last_number);
                last = last.max(number.unwrap_or(0));
                false
            })?;
        }
        Ok(last)
    }

    /// Events of an execution's history, from the first or from the last one on. `behind` is the number of the one before them.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn history(&self, id: u64, order: Order, behind: Option<u64>, max: usize) -> Result<Events, KvError> {
        let key = |number: u64| Key::new(HISTORIES).number(id).number(number).0;
        // Rows are steps: the one that holds the next event may begin before it.
        let (mut first, mut last) = (key(0), key(u64::MAX));
        match (order, behind) {
            (Order::Falling, Some(behind)) => last = key(behind),
            (Order::Rising, Some(behind)) => {
                let bounds = (Bound::Included(&*key(0)), Bound::Included(&*key(behind.saturating_add(1))));
                self.records.scan(bounds, Order::Falling, |key, _| {
                    first = key.to_vec();
                    false
                })?;
            }
            (_, None) => {}
        }
        let is_wanted = |number: u64| match (order, behind) {
            (_, None) => true,
            (Order::Rising, Some(behind)) => number > behind,
            (Order::Falling, Some(behind)) => number < behind,
        };
        let (max, mut bytes, mut events) = (max.clamp(1, EVENTS_MAX), 0, Vec::new());
        let (mut next, mut failed) = (None, None);
        let mut last_taken = None;
        let bounds = (Bound::Included(&*first), Bound::Included(&*last));
        self.records.scan(bounds, order, |key, value| {
            let mut step: Vec<Box<RawValue>> = match serde_json::from_slice(value) {
                Ok(step) => step,
                Err(error) => {
                    failed = Some(damaged("a history", &error));
                    return false;
                }
            };
            let first = last_number(key).unwrap_or_default();
            let numbered = step.drain(..).zip(first..).map(|(event, number)| (number, event));
            let mut numbered: Vec<_> = numbered.filter(|(number, _)| is_wanted(*number)).collect();
            if order == Order::Falling {
                numbered.reverse();
            }
            for (number, event) in numbered {
                if events.len() == max || bytes >= EVENTS_BYTES_MAX {
                    next = last_taken;
                    return false;
                }
                last_taken = Some(number);
                bytes += event.get().len();
                events.push(event);
            }
            true
        })?;
        failed.map_or(Ok(Events { events, next }), Err)
    }

    /// All whose keys begin so, with so much of each value as is wanted at least.
    fn all(&self, prefix: &Key, head_bytes: usize, with: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), KvError> {
        let end = prefix.behind();
        self.records.scan_heads((Bound::Included(&*prefix.0), end.as_ref().map(|key| &**key)), head_bytes, with)
    }
}
