//! The parts of a Map: items, iterations, what is tolerated, batches. `stores` has what items are read from and results are written to.

use std::sync::Arc;

use super::check::{Node, briefly};
use super::fields::check_members;
use super::limits::SECONDS_MAX;
use super::payload::Payload;
use super::reader::{Reader, Scope};
use super::state::{Batcher, MachineIndex, MapState, QueryLanguage};
use super::values::{Range, number, payload, selection};
use super::{handlers, payload::Selection, stores};

/// The most that a count of items, failures or iterations can be set to.
pub(super) const COUNT_MAX: u64 = SECONDS_MAX;
/// Bytes of a batch, as Step Functions has it.
const BATCH_BYTES_MAX: u64 = 262_144;

/// A Map state.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<MapState> {
    let handlers = handlers::read(reader, node, scope);
    let processor = processor(reader, node, scope);
    let (items_path, items) = items(reader, node, scope)?;
    let item_selector = item_selector(reader, node, scope);
    let count = |field, least| Range { field, least, most: COUNT_MAX, fraction: false };
    let concurrency = number(reader, node, count("MaxConcurrency", 0), scope.language);
    let tolerated_count = number(reader, node, count("ToleratedFailureCount", 0), scope.language);
    let percentage = Range { field: "ToleratedFailurePercentage", least: 0, most: 100, fraction: true };
    let tolerated_percentage = number(reader, node, percentage, scope.language);
    let batcher = match node.get("ItemBatcher") {
        Some(field) => self::batcher(reader, &field, scope).map(Some),
        None => Some(None),
    };
    let item_reader = match node.get("ItemReader") {
        Some(field) => stores::item_reader(reader, &field, scope).map(Some),
        None => Some(None),
    };
    let writer = match node.get("ResultWriter") {
        Some(field) => stores::result_writer(reader, &field, scope).map(Some),
        None => Some(None),
    };
    let label = match node.get("Label") {
        Some(label) => reader.checker.string(&label).map(|label| Some(Arc::from(label))),
        None => Some(None),
    };
    Some(MapState {
        processor: processor?,
        items_path,
        items,
        item_selector: item_selector?,
        concurrency: concurrency?,
        tolerated_count: tolerated_count?,
        tolerated_percentage: tolerated_percentage?,
        batcher: batcher?,
        reader: item_reader?,
        writer: writer?,
        label: label?,
        handlers: handlers?,
    })
}

/// `ItemProcessor`, or `Iterator` of old definitions.
fn processor(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<MachineIndex> {
    let field = match (node.get("ItemProcessor"), node.get("Iterator")) {
        (Some(field), None) | (None, Some(field)) => field,
        (Some(_), Some(old)) => {
            reader.checker.report_key(&old, "\"Iterator\" is the old name of \"ItemProcessor\"", Some("remove it".to_owned()));
            return None;
        }
        (None, None) => {
            reader.checker.report(
                node,
                "a Map state needs \"ItemProcessor\"",
                Some("give the state machine that handles one item".to_owned()),
            );
            return None;
        }
    };
    if let Some(config) = field.get("ProcessorConfig")
        && reader.checker.object(&config).is_some()
    {
        processor_config(reader, &config);
    }
    reader.inner(&field, scope)
}

fn processor_config(reader: &mut Reader<'_>, config: &Node<'_>) {
    check_members(&mut reader.checker, config, "\"ProcessorConfig\"", &["Mode", "ExecutionType"]);
    if let Some(mode) = config.get("Mode") {
        match mode.value.as_str() {
            Some("INLINE") => {}
            Some("DISTRIBUTED") => {
                let help = "use \"INLINE\", with \"ItemReader\" for items in the key-value store";
                reader.checker.report(&mode, "distributed Map states are not supported", Some(help.to_owned()));
            }
            _ => {
                reader.checker.report(&mode, format!("unknown mode {}", briefly(mode.value)), Some("give \"INLINE\"".to_owned()))
            }
        }
    }
    if let Some(kind) = config.get("ExecutionType") {
        reader.checker.report_key(&kind, "\"ExecutionType\" belongs to distributed Map states", Some("remove it".to_owned()));
    }
}

/// `ItemsPath` or `Items`.
fn items(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<(Selection, Option<Payload>)> {
    if scope.language == QueryLanguage::JsonPath {
        return selection(&mut reader.checker, node.get("ItemsPath")).map(|items_path| (items_path, None));
    }
    if let Some(field) = node.get("Items")
        && !field.value.is_array()
        && !field.value.is_object()
        && !field.value.is_string()
    {
        reader.checker.report(&field, format!("expected an array or an expression, found {}", briefly(field.value)), None);
    }
    payload(reader, node.get("Items"), "Items", scope.language).map(|items| (Selection::Whole, items))
}

/// `ItemSelector`, or `Parameters` of old definitions.
fn item_selector(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<Option<Payload>> {
    match (node.get("ItemSelector"), node.get("Parameters").filter(|_| scope.language == QueryLanguage::JsonPath)) {
        (Some(_), Some(old)) => {
            reader.checker.report_key(
                &old,
                "\"Parameters\" of a Map is the old name of \"ItemSelector\"",
                Some("remove it".to_owned()),
            );
            None
        }
        (new, old) => payload(reader, new.or(old), "ItemSelector", scope.language),
    }
}

fn batcher(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<Batcher> {
    reader.checker.object(node)?;
    let known = ["MaxItemsPerBatch", "MaxItemsPerBatchPath", "MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath", "BatchInput"];
    check_members(&mut reader.checker, node, "\"ItemBatcher\"", &known);
    let items = Range { field: "MaxItemsPerBatch", least: 1, most: COUNT_MAX, fraction: false };
    let items_max = number(reader, node, items, scope.language);
    let bytes = Range { field: "MaxInputBytesPerBatch", least: 1, most: BATCH_BYTES_MAX, fraction: false };
    let bytes_max = number(reader, node, bytes, scope.language);
    if matches!((&items_max, &bytes_max), (Some(None), Some(None))) {
        reader.checker.report(
            node,
            "the size of a batch is missing",
            Some("give MaxItemsPerBatch or MaxInputBytesPerBatch".to_owned()),
        );
    }
    let input = payload(reader, node.get("BatchInput"), "BatchInput", scope.language);
    Some(Batcher { items_max: items_max?, bytes_max: bytes_max?, input: input? })
}
