//! What is written of executions, beside their checkpoints.

use bytes::Bytes;
use serde::Serialize;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{HistoryEvent, Status};

use super::super::pins::Set;
use super::super::timetable::Kept;
use super::key::{
    DEFINITIONS, EXPIRIES, HISTORIES, Key, PAUSED, PINS, SCHEDULES, checkpoint_key, listed_key, of_workflow, status_key,
    summary_key,
};
use super::summary::{Place, Summary};
use crate::kv::Record;

/// JSON of what always is JSON.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// What is written when an execution begins, also again.
pub(in super::super) fn begun(place: &Place, summary: &Summary, before: Option<&Summary>) -> Vec<Record> {
    let mut records = Vec::new();
    if let Some(before) = before {
        records.push(Record::remove(status_key(place, before, before.status)));
        records.extend(before.expires_ms.map(|at| Record::remove(Key::new(EXPIRIES).time(at).number(before.id))));
    }
    records.extend([
        Record::put(summary_key(place), json(summary)),
        Record::put(listed_key(place, summary), Bytes::copy_from_slice(place.name.as_bytes())),
        Record::put(status_key(place, summary, summary.status), Bytes::copy_from_slice(place.name.as_bytes())),
    ]);
    records
}

/// What is written when an execution has ended that was `before`.
pub(in super::super) fn ended(place: &Place, summary: &Summary, before: Status) -> Vec<Record> {
    let name = || Bytes::copy_from_slice(place.name.as_bytes());
    let mut records = vec![
        Record::put(summary_key(place), json(summary)),
        Record::remove(status_key(place, summary, before)),
        Record::put(status_key(place, summary, summary.status), name()),
    ];
    // One that has not begun has nowhere to go on.
    if summary.status == Status::Succeeded || before == Status::New {
        records.push(Record::remove(checkpoint_key(summary.id)));
    }
    records
}

/// What an execution is, where nothing of it has changed by which it is found.
pub(in super::super) fn changed(place: &Place, summary: &Summary) -> Record {
    Record::put(summary_key(place), json(summary))
}

/// Whether a workflow is paused.
pub(in super::super) fn paused(tenant: &str, workflow: &str, paused: bool) -> Record {
    let key = of_workflow(PAUSED, tenant, workflow);
    if paused { Record::put(key, Bytes::new()) } else { Record::remove(key) }
}

/// A definition, to be found by its fingerprint.
pub(in super::super) fn definition(definition: &Definition) -> Record {
    let source = Bytes::copy_from_slice(definition.source().as_bytes());
    Record::put(Key::new(DEFINITIONS).number(definition.fingerprint()), source)
}

/// When a schedule has started something last.
pub(in super::super) fn schedule(tenant: &str, name: &str, kept: &Kept) -> Record {
    Record::put(of_workflow(SCHEDULES, tenant, name), json(kept))
}

/// Versions to which executions are pinned.
pub(in super::super) fn pins(number: u64, set: &Set) -> Record {
    Record::put(Key::new(PINS).number(number), set.to_json())
}

/// No execution is pinned to that set.
pub(in super::super) fn no_pins(number: u64) -> Record {
    Record::remove(Key::new(PINS).number(number))
}

/// Events of one step.
pub(in super::super) fn history(id: u64, events: &[HistoryEvent]) -> Option<Record> {
    let first = events.first()?;
    Some(Record::put(Key::new(HISTORIES).number(id).number(first.id), json(&events)))
}
