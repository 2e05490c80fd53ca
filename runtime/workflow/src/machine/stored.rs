//! What the `ItemReader` and the `ResultWriter` of a Map ask the store for.
//!
//! They are tasks like others: the caller carries them out, and a durable one makes the writes of a `ResultWriter` in the commit of the step that takes its answer in. The history
//! has them as `TaskScheduled` and so on of the service `kv`, in the Map: so it says what was read. Results are not in it twice.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::event::Purpose;
use super::failure::{Failure, Fault, cut, name};
use super::flow::Exit;
use super::frame::Iterations;
use super::history::{Details, HistoryKind};
use super::limits::{CAUSE_BYTES_MAX, PREFIX_BYTES_MAX};
use super::run::Run;
use super::tasks::{Asked, of};
use crate::data::json_bytes;
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::dataset::limits::ITEMS_BYTES_MAX;
use crate::definition::payload::{Payload, Selection};
use crate::definition::state::{ItemReader, MapState};
use crate::definition::{Kind, Resource, State};

/// Members of a writer's input that are the machine's own: the history leaves them out where they are large.
const RESULTS: &str = "Results";

impl Run<'_> {
    /// Asks the store for the items of a Map.
    pub(super) fn start_reader(&mut self, slot: u32, state: &State, reader: &ItemReader) -> Result<(), Fault> {
        let effective = self.effective_input(slot, state)?;
        let mut given = self.store_arguments(slot, state, reader.payload.as_ref(), &effective)?;
        let items_max = self.count(slot, state, &effective, "MaxItems", reader.items_max.as_ref())?;
        // Formats always serialise.
        let mut config = reader.format.as_ref().and_then(|format| serde_json::to_value(format).ok()).unwrap_or_else(|| json!({}));
        if let Some(most) = items_max.filter(|most| *most > 0) {
            config["MaxItems"] = most.into();
        }
        given.insert("ReaderConfig".to_owned(), config);
        self.ask_store(slot, state, &reader.resource, given, Purpose::Read);
        Ok(())
    }

    /// The store has answered with the items of a Map.
    pub(super) fn items_read(&mut self, slot: u32, state: &State, map: &MapState, answer: Arc<Value>) -> Result<(), Fault> {
        let effective = self.effective_input(slot, state)?;
        // More than a state may hold, so that many items come from the store; but the execution holds them until the Map has ended.
        if json_bytes(&answer, ITEMS_BYTES_MAX, VALUE_DEPTH_MAX).is_err() {
            let cause = format!("The items have more than {ITEMS_BYTES_MAX} bytes, or are nested too deeply.");
            return Err(failed(name::READER, &cause));
        }
        let details = Details { output: Some(Arc::clone(&answer)), ..Details::default() };
        self.note_stored(slot, Purpose::Read, HistoryKind::TaskSucceeded, details);
        let Some(reader) = &map.reader else { return Ok(()) };
        let answer = match &reader.pointer {
            Some(pointer) => match answer.pointer(pointer) {
                Some(found) => Arc::new(found.clone()),
                None => return Err(failed(name::READER, &format!("ItemsPointer \"{pointer}\" leads to nothing."))),
            },
            None => answer,
        };
        let answer = match &map.items_path {
            Selection::Path(path) => self.selected_items(slot, state, path, &answer)?,
            _ => answer,
        };
        let Value::Array(mut items) = Arc::unwrap_or_clone(answer) else {
            return Err(failed(name::READER, "Attempting to map over non-iterable node."));
        };
        // As in Step Functions, zero does not limit.
        if let Some(most) = self.count(slot, state, &effective, "MaxItems", reader.items_max.as_ref())?.filter(|most| *most > 0) {
            items.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        self.start_iterations(slot, state, map, effective, Arc::new(Value::Array(items)))
    }

    /// Asks the store to keep the results of a Map.
    pub(super) fn start_writer(&mut self, slot: u32, state: &State, map: &MapState, ended: Iterations) -> Result<(), Fault> {
        let Some(writer) = &map.writer else { return Ok(()) };
        let mut given = self.store_arguments(slot, state, writer.payload.as_ref(), &ended.effective)?;
        let prefix = match given.get("Prefix") {
            None => "",
            Some(Value::String(prefix)) if prefix.len() <= PREFIX_BYTES_MAX => prefix.trim_end_matches('/'),
            Some(_) => {
                return Err(failed(name::WRITER, &format!("Prefix is to be a text of at most {PREFIX_BYTES_MAX} bytes.")));
            }
        };
        // A number of its own, so that no run overwrites another one's results, whatever its execution is called. Not more than that: executions write it down with the task.
        let run = format!("{:016x}", (self.random)());
        let about = &self.execution.about;
        let folder = if prefix.is_empty() { String::new() } else { format!("{prefix}/") } + &format!("{}/{run}", about.name);
        let label = map.label.as_ref().unwrap_or(&state.name);
        let arn = format!("{}/{label}:{run}", about.machine_id.replacen(":stateMachine:", ":mapRun:", 1));
        given.insert("Folder".to_owned(), folder.into());
        given.insert("MapRunArn".to_owned(), arn.into());
        // Two words always serialise.
        given.insert("WriterConfig".to_owned(), serde_json::to_value(writer.config).unwrap_or_default());
        given.insert(RESULTS.to_owned(), results(ended, map.item_selector.is_none()));
        self.ask_store(slot, state, &writer.resource, given, Purpose::Write);
        Ok(())
    }

    /// The store has kept the results of a Map.
    pub(super) fn results_written(&mut self, slot: u32, state: &State, output: Arc<Value>) -> Result<Exit, Fault> {
        if !self.fits(&output) {
            return Err(Fault::too_large(&state.name));
        }
        let details = Details { output: Some(Arc::clone(&output)), ..Details::default() };
        self.note_stored(slot, Purpose::Write, HistoryKind::TaskSucceeded, details);
        self.note_map_succeeded(slot);
        self.exit_with(slot, state, output)
    }

    /// `Parameters` or `Arguments`: an object.
    fn store_arguments(
        &mut self,
        slot: u32,
        state: &State,
        payload: Option<&Payload>,
        effective: &Value,
    ) -> Result<Map<String, Value>, Fault> {
        let Some(payload) = payload else { return Ok(Map::new()) };
        match self.view(slot, state, effective).payload(payload)? {
            Value::Object(members) => Ok(members),
            _ => Err(Fault::runtime("The arguments of ItemReader or ResultWriter are no object.")),
        }
    }

    fn ask_store(&mut self, slot: u32, state: &State, resource: &Arc<Resource>, given: Map<String, Value>, purpose: Purpose) {
        let input = Arc::new(Value::Object(given));
        self.ask(slot, state, Asked { resource, written: None, input, timeout_s: None, heartbeat_s: None, purpose });
    }

    /// `TaskScheduled`, without results.
    pub(super) fn note_stored_scheduled(&mut self, slot: u32, resource: &Resource, purpose: Purpose, input: &Arc<Value>) {
        self.note_in(slot, HistoryKind::TaskScheduled, |run, _| {
            let parameters = match (purpose, input.as_object()) {
                (Purpose::Write, Some(members)) => {
                    let own = members.iter().filter(|(key, _)| *key != RESULTS);
                    Arc::new(Value::Object(own.map(|(key, value)| (key.clone(), value.clone())).collect()))
                }
                _ => Arc::clone(input),
            };
            let region = run.execution.about.id.split(':').nth(3).map(Arc::from);
            Details { region, parameters: Some(parameters), ..of(resource) }
        });
    }

    /// An event of a task of the Map itself.
    pub(super) fn note_stored(&mut self, slot: u32, purpose: Purpose, kind: HistoryKind, details: Details) {
        let Some(Kind::Map(map)) = self.state(slot).map(|state| &state.kind) else { return };
        let resource = match purpose {
            Purpose::Read => map.reader.as_ref().map(|reader| &reader.resource),
            Purpose::Write => map.writer.as_ref().map(|writer| &writer.resource),
            Purpose::Work => None,
        };
        let Some(Details { resource, resource_type, .. }) = resource.map(|resource| of(resource)) else { return };
        self.note_in(slot, kind, |_, _| Details { resource, resource_type, ..details });
    }
}

/// What a Map's iterations came to, in their order. Inputs are given where the items are the inputs: an `ItemSelector` makes others, which are not kept.
fn results(mut ended: Iterations, items_are_inputs: bool) -> Value {
    let are_inputs = items_are_inputs || ended.batched;
    let mut items = match Arc::unwrap_or_clone(std::mem::take(&mut ended.items)) {
        Value::Array(items) if are_inputs => items.into_iter(),
        _ => Vec::new().into_iter(),
    };
    ended.failures.sort_unstable();
    let entries = (0_u32..).zip(std::mem::take(&mut ended.results.values)).map(|(index, value)| {
        let mut entry = Map::new();
        entry.insert("Index".to_owned(), index.into());
        if let Some(item) = items.next() {
            entry.insert("Input".to_owned(), item);
        }
        let value = value.map_or(Value::Null, Arc::unwrap_or_clone);
        match value {
            Value::Object(failure) if ended.failures.binary_search(&index).is_ok() => entry.extend(failure),
            output => drop(entry.insert("Output".to_owned(), output)),
        }
        Value::Object(entry)
    });
    Value::Array(entries.collect())
}

/// The failure of a Map whose task of the store has failed: the error of the store is in the cause, since handlers look for the names of the States Language.
pub(super) fn failure(purpose: Purpose, of_store: &Failure) -> Failure {
    let error = if purpose == Purpose::Write { name::WRITER } else { name::READER };
    let cause = match (&of_store.error, &of_store.cause) {
        (Some(error), Some(cause)) => format!("{error}: {cause}"),
        (Some(text), None) | (None, Some(text)) => text.to_string(),
        (None, None) => return Failure::named(error),
    };
    Failure::given(Some(error), Some(cut(&cause, CAUSE_BYTES_MAX)))
}

fn failed(error: &str, cause: &str) -> Fault {
    Fault::plain(Failure::given(Some(error), Some(cause)))
}
