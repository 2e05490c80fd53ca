//! Map: its items, batches and iterations, and what is tolerated.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::evaluate::unexpected;
use super::failure::{Failure, Fault, name};
use super::frame::{Frame, Iterations, Phase, Results};
use super::history::{Details, HistoryKind};
use super::run::Run;
use crate::data::json_bytes;
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::definition::payload::{Number, Payload, Query, Selection};
use crate::definition::state::{Batcher, MapState};
use crate::definition::{QueryLanguage, State, whole};

impl Run<'_> {
    /// Finds the items of a Map, or asks the store for them.
    pub(super) fn start_map(&mut self, slot: u32, state: &State, map: &MapState) -> Result<(), Fault> {
        if let Some(reader) = &map.reader {
            return self.start_reader(slot, state, reader);
        }
        let effective = self.effective_input(slot, state)?;
        let items = self.items(slot, state, map, &effective)?;
        self.start_iterations(slot, state, map, effective, items)
    }

    /// `ItemsPath` or `Items`: an array.
    fn items(&mut self, slot: u32, state: &State, map: &MapState, effective: &Arc<Value>) -> Result<Arc<Value>, Fault> {
        if state.language == QueryLanguage::JsonPath {
            return match &map.items_path {
                Selection::Path(path) => self.selected_items(slot, state, path, effective),
                Selection::Whole if effective.is_array() => Ok(Arc::clone(effective)),
                _ => Err(Fault::runtime("Reference path \"$\" must point to array.")),
            };
        }
        let Some(items) = &map.items else {
            if effective.is_array() {
                return Ok(Arc::clone(effective));
            }
            let fault = Fault::query(&Arc::from(""), format!("Map state input must be an array but was: {effective}"));
            return Err(fault);
        };
        let found = self.view(slot, state, effective).payload(items)?;
        match (items, found) {
            (_, found @ Value::Array(_)) => Ok(Arc::new(found)),
            (Payload::Query(Query::Expression(expression)), other) => Err(unexpected(expression, "array", &other)),
            (_, other) => Err(Fault::query(&Arc::from("Items"), format!("The field 'Items' must be an array but was: {other}"))),
        }
    }

    pub(super) fn selected_items(
        &mut self,
        slot: u32,
        state: &State,
        path: &crate::data::Path,
        input: &Value,
    ) -> Result<Arc<Value>, Fault> {
        match self.view(slot, state, input).path(path)? {
            items @ Value::Array(_) => Ok(Arc::new(items)),
            _ => Err(Fault::runtime(format!("Reference path \"{}\" must point to array.", path.as_str()))),
        }
    }

    pub(super) fn start_iterations(
        &mut self,
        slot: u32,
        state: &State,
        map: &MapState,
        effective: Arc<Value>,
        items: Arc<Value>,
    ) -> Result<(), Fault> {
        let length = items.as_array().map_or(0, Vec::len);
        if length > self.execution.limits.items {
            return Err(Fault::runtime(format!(
                "The Map state has {length} items; the limit is {}.",
                self.execution.limits.items
            )));
        }
        let concurrency = self.count(slot, state, &effective, "MaxConcurrency", map.concurrency.as_ref())?;
        let most = self.execution.limits.iterations_at_once.max(1);
        let concurrency = match concurrency.map(|given| u32::try_from(given).unwrap_or(u32::MAX)) {
            None | Some(0) => most,
            Some(given) => given.min(most),
        };
        self.note_in(slot, HistoryKind::MapStateStarted, |_, _| Details { length: Some(length), ..Details::default() });
        let tolerated = self.tolerated(slot, state, map, &effective, length)?;
        let (items, batched) = match &map.batcher {
            Some(batcher) => (self.batches(slot, state, map, batcher, &effective, &items)?, true),
            None => (items, false),
        };
        let count = items.as_array().map_or(0, Vec::len);
        let iterations = Iterations {
            items,
            batched,
            effective,
            next: 0,
            running: 0,
            concurrency,
            results: Results::new(count),
            failed: 0,
            failures: Vec::new(),
            tolerated,
        };
        if let Some(frame) = self.execution.frames.get_mut(slot) {
            frame.phase = Phase::Map(Box::new(iterations));
        }
        let last = self.execution.frames.get(slot).map_or(0, |frame| frame.last_event);
        self.more_iterations(slot, state, map, last);
        Ok(())
    }

    /// Starts as many iterations as may run; ends the state when all have ended. `previous` is the event before an iteration that starts.
    fn more_iterations(&mut self, slot: u32, state: &State, map: &MapState, previous: u64) {
        loop {
            let Some(frame) = self.execution.frames.get_mut(slot) else { return };
            let Phase::Map(iterations) = &mut frame.phase else { return };
            let count = iterations.results.values.len() as u32;
            if iterations.next >= count {
                if iterations.running == 0
                    && let Phase::Map(ended) = std::mem::replace(&mut frame.phase, Phase::Ready)
                {
                    self.iterations_ended(slot, state, map, *ended);
                }
                return;
            }
            if iterations.running >= iterations.concurrency {
                return;
            }
            let number = iterations.next;
            iterations.next = iterations.next.saturating_add(1);
            iterations.running = iterations.running.saturating_add(1);
            if let Err(fault) = self.start_iteration(slot, state, map, number, previous) {
                return self.give_up(slot, Some(&state.name), fault);
            }
        }
    }

    fn start_iteration(&mut self, slot: u32, state: &State, map: &MapState, number: u32, previous: u64) -> Result<(), Fault> {
        let Some(frame) = self.execution.frames.get(slot) else { return Ok(()) };
        let Phase::Map(iterations) = &frame.phase else { return Ok(()) };
        let (effective, batched) = (Arc::clone(&iterations.effective), iterations.batched);
        let item = Arc::new(iterations.items.get(number as usize).cloned().unwrap_or_default());
        let input = match &map.item_selector {
            Some(selector) if !batched => {
                let given = self.view(slot, state, &effective).with_item((number, &item)).payload(selector)?;
                self.bounded(state, Arc::new(given))?
            }
            _ => Arc::clone(&item),
        };
        let last = self.note(previous, HistoryKind::MapIterationStarted, |_| iteration_details(state, number));
        if self.spawn(Some(slot), number, map.processor, input, Some(item), last) { Ok(()) } else { Err(self.too_many_frames()) }
    }

    pub(super) fn iteration_succeeded(&mut self, slot: u32, state: &State, map: &MapState, number: u32, last: u64) {
        let id = self.note(last, HistoryKind::MapIterationSucceeded, |_| iteration_details(state, number));
        if let Some(frame) = self.execution.frames.get_mut(slot) {
            frame.last_event = id;
        }
        self.more_iterations(slot, state, map, last);
    }

    pub(super) fn iteration_failed(&mut self, slot: u32, state: &State, map: &MapState, failed: &Frame, fault: Fault) {
        let Some(frame) = self.execution.frames.get(slot) else { return };
        let last = frame.last_event;
        let Phase::Map(iterations) = &frame.phase else { return };
        let fault = match iterations.tolerated {
            None => Some(fault),
            Some(tolerated) if iterations.failed > tolerated => Some(Fault::plain(Failure::given(
                Some(name::THRESHOLD),
                Some("The specified tolerated failure threshold was exceeded"),
            ))),
            Some(_) => None,
        };
        self.note(last, HistoryKind::MapIterationFailed, |_| iteration_details(state, failed.number));
        match fault {
            None => self.more_iterations(slot, state, map, last),
            Some(fault) => {
                self.note_aborted_task(slot, failed);
                self.give_up(slot, Some(&state.name), fault);
            }
        }
    }

    fn iterations_ended(&mut self, slot: u32, state: &State, map: &MapState, mut ended: Iterations) {
        if map.writer.is_some() {
            // Not at once: a task may be asked for in a transition only, for an execution that is paused has none.
            let Some(frame) = self.execution.frames.get_mut(slot) else { return };
            frame.phase = Phase::Ended(Box::new(ended));
            let id = frame.id;
            self.execution.ready.push_back(id);
            return;
        }
        self.note_map_succeeded(slot);
        match self.exit_with(slot, state, ended.results.take()) {
            Ok(exit) => self.leave(slot, state, exit, state.next),
            Err(fault) => self.fail(slot, fault),
        }
    }

    /// What follows does not follow that event: so Step Functions numbers it.
    pub(super) fn note_map_succeeded(&mut self, slot: u32) {
        let last = self.execution.frames.get(slot).map_or(0, |frame| frame.last_event);
        self.note(last, HistoryKind::MapStateSucceeded, |_| Details::default());
    }

    /// How many iterations may fail; none if nothing is said about it.
    fn tolerated(
        &mut self,
        slot: u32,
        state: &State,
        map: &MapState,
        effective: &Value,
        length: usize,
    ) -> Result<Option<u64>, Fault> {
        let count = match &map.tolerated_count {
            None => None,
            Some(number) => {
                let value = self.view(slot, state, effective).number(number)?;
                if value.as_f64().is_some_and(|number| number < 0.0) {
                    return Err(self.refused(number, "ToleratedFailureCount cannot be negative."));
                }
                Some(whole(&value).ok_or_else(|| not_integer("ToleratedFailureCount", number, &value))?)
            }
        };
        let percentage = match &map.tolerated_percentage {
            None => None,
            Some(number) => {
                let value = self.view(slot, state, effective).number(number)?;
                let percentage = value.as_f64().ok_or_else(|| not_number("ToleratedFailurePercentage", number, &value))?;
                if !(0.0..=100.0).contains(&percentage) {
                    return Err(self.refused(number, "ToleratedFailurePercentage must be between 0 and 100."));
                }
                // The largest count that is not above that part of the items.
                Some((percentage * length as f64 / 100.0).floor() as u64)
            }
        };
        Ok(match (count, percentage) {
            (Some(count), Some(percentage)) => Some(count.min(percentage)),
            (count, percentage) => count.or(percentage),
        })
    }

    fn refused(&self, number: &Number, cause: &'static str) -> Fault {
        match number {
            Number::Query(expression) => Fault::query(&expression.location, cause),
            _ => Fault::runtime(cause),
        }
    }

    /// A count from zero.
    pub(super) fn count(
        &mut self,
        slot: u32,
        state: &State,
        effective: &Value,
        field: &str,
        number: Option<&Number>,
    ) -> Result<Option<u64>, Fault> {
        let Some(number) = number else { return Ok(None) };
        let value = self.view(slot, state, effective).number(number)?;
        whole(&value).map(Some).ok_or_else(|| not_integer(field, number, &value))
    }

    /// `ItemBatcher`: inputs `{BatchInput, Items}`, each of as many items as it may have.
    fn batches(
        &mut self,
        slot: u32,
        state: &State,
        map: &MapState,
        batcher: &Batcher,
        effective: &Arc<Value>,
        items: &Arc<Value>,
    ) -> Result<Arc<Value>, Fault> {
        let items_max = self.count(slot, state, effective, "MaxItemsPerBatch", batcher.items_max.as_ref())?;
        let items_max = usize::try_from(items_max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX).max(1);
        let bytes_max = self.count(slot, state, effective, "MaxInputBytesPerBatch", batcher.bytes_max.as_ref())?;
        let most = self.execution.limits.data_bytes;
        let bytes_max = usize::try_from(bytes_max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX).min(most);
        let common = match &batcher.input {
            Some(payload) => Some(self.view(slot, state, effective).payload(payload)?),
            None => None,
        };
        let shell =
            json_bytes(&batch(common.as_ref(), Vec::new()), most, VALUE_DEPTH_MAX).map_err(|_| Fault::too_large(&state.name))?;
        let (mut batches, mut current, mut bytes) = (Vec::new(), Vec::new(), shell);
        for (number, item) in (0..).zip(items.as_array().into_iter().flatten()) {
            let given = match &map.item_selector {
                Some(selector) => self.view(slot, state, effective).with_item((number, item)).payload(selector)?,
                None => item.clone(),
            };
            let size = json_bytes(&given, most, VALUE_DEPTH_MAX).map_err(|_| Fault::too_large(&state.name))?;
            // Not the first: with a comma.
            if !current.is_empty() && (current.len() >= items_max || bytes + 1 + size > bytes_max) {
                batches.push(batch(common.as_ref(), std::mem::take(&mut current)));
                bytes = shell;
            }
            if current.is_empty() && bytes + size > bytes_max {
                return Err(Fault::runtime(format!("The item {number} alone is larger than a batch of {bytes_max} bytes.")));
            }
            bytes += size + usize::from(!current.is_empty());
            current.push(given);
        }
        if !current.is_empty() {
            batches.push(batch(common.as_ref(), current));
        }
        Ok(Arc::new(Value::Array(batches)))
    }
}

fn batch(common: Option<&Value>, items: Vec<Value>) -> Value {
    let mut members = Map::new();
    if let Some(common) = common {
        members.insert("BatchInput".to_owned(), common.clone());
    }
    members.insert("Items".to_owned(), Value::Array(items));
    Value::Object(members)
}

fn iteration_details(state: &State, number: u32) -> Details {
    Details { name: Some(Arc::clone(&state.name)), index: Some(number), ..Details::default() }
}

fn not_integer(field: &str, number: &Number, value: &Value) -> Fault {
    match number {
        Number::Query(expression) => unexpected(expression, "non-negative integer", value),
        Number::Path(path) => {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Fault::runtime(format!(
                "The {field}Path field refers to value \"{shown}\" which is not a valid integer: {}",
                path.as_str()
            ))
        }
        Number::Literal(_) => Fault::runtime(format!("The {field} field is not a whole number: {value}")),
    }
}

fn not_number(field: &str, number: &Number, value: &Value) -> Fault {
    match number {
        Number::Query(expression) => unexpected(expression, "number", value),
        Number::Path(path) => {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Fault::runtime(format!(
                "The {field}Path field refers to value \"{shown}\" which is not a valid float: {}",
                path.as_str()
            ))
        }
        Number::Literal(_) => Fault::runtime(format!("The {field} field is not a number: {value}")),
    }
}
