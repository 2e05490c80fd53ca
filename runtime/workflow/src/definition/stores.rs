//! `ItemReader` and `ResultWriter` of a Map: the key-value store that items come from and results go to.

use std::sync::Arc;

use super::check::{Node, briefly};
use super::fields::check_members;
use super::map::COUNT_MAX;
use super::mistake::shown;
use super::payload::{Number, Payload};
use super::reader::{Reader, Scope};
use super::resource::{KeyValueOperation, Resource};
use super::state::{ItemReader, QueryLanguage, ResultWriter};
use super::states::arguments;
use super::values::{Range, number};
use crate::dataset::limits::{COLUMNS_MAX, HEADER_BYTES_MAX};
use crate::dataset::{Delimiter, Format, OutputType, Transformation, WriterConfig};

/// `ItemReader`.
pub(super) fn item_reader(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<ItemReader> {
    use KeyValueOperation::{Get, List, Scan};
    reader.checker.object(node)?;
    let named = Named { name: "\"ItemReader\"", config: "ReaderConfig", operations: &[Get, List, Scan] };
    let stored = stored(reader, node, scope, named);
    let operation = match stored.as_ref().map(|(resource, _)| &**resource) {
        Some(Resource::KeyValue { operation }) => Some(*operation),
        _ => None,
    };
    let config = match node.get("ReaderConfig") {
        Some(config) => reader_config(reader, &config, scope, operation.is_some_and(KeyValueOperation::is_of_bucket)),
        None => Some(Config::default()),
    };
    let (resource, payload) = stored?;
    let Config { format, pointer, items_max } = config?;
    let format = (operation == Some(Get)).then(|| format.unwrap_or_default());
    Some(ItemReader { resource, payload, format, pointer, items_max })
}

/// `ResultWriter`.
pub(super) fn result_writer(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<ResultWriter> {
    reader.checker.object(node)?;
    let named = Named { name: "\"ResultWriter\"", config: "WriterConfig", operations: &[KeyValueOperation::Set] };
    let stored = stored(reader, node, scope, named);
    let config = match node.get("WriterConfig") {
        Some(config) => writer_config(reader, &config),
        None => Some(WriterConfig::default()),
    };
    let (resource, payload) = stored?;
    Some(ResultWriter { resource, payload, config: config? })
}

/// What is read or written, as messages name it.
struct Named {
    name: &'static str,
    config: &'static str,
    operations: &'static [KeyValueOperation],
}

/// The resource and what it is given.
fn stored(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    scope: &Scope<'_>,
    Named { name, config, operations }: Named,
) -> Option<(Arc<Resource>, Option<Payload>)> {
    let field = if scope.language == QueryLanguage::JsonPath { "Parameters" } else { "Arguments" };
    check_members(&mut reader.checker, node, name, &["Resource", field, config]);
    let resource = resource(reader, node, name, operations);
    let wanted = match resource.as_deref() {
        Some(Resource::KeyValue { operation: KeyValueOperation::Get }) => "\"Key\": ...",
        _ => "\"Bucket\": ..., \"Prefix\": ...",
    };
    let is_given = node.get(field).is_some();
    if !is_given {
        let help = format!("give \"{field}\": {{{wanted}}}");
        reader.checker.report(node, format!("{name} needs \"{field}\""), Some(help));
    }
    let payload = arguments(reader, node, scope.language);
    if let (Some(resource), Some(given)) = (&resource, node.get(field)) {
        check_arguments(reader, &given, resource, field, scope);
    }
    Some((resource?, payload?))
}

fn resource(reader: &mut Reader<'_>, node: &Node<'_>, name: &str, operations: &[KeyValueOperation]) -> Option<Arc<Resource>> {
    let known: Vec<_> = operations.iter().map(|operation| format!("\"kv:{}\"", operation.name())).collect();
    let help = format!("use {}", known.join(", "));
    let Some(field) = node.get("Resource") else {
        reader.checker.report(node, format!("{name} needs \"Resource\""), Some(help));
        return None;
    };
    let text = reader.checker.string(&field)?;
    match Resource::parse(text) {
        Ok(resource @ Resource::KeyValue { operation }) if operations.contains(&operation) => Some(Arc::new(resource)),
        _ => {
            let message = format!("{name} cannot use \"{}\"; S3 and other stores are not supported", shown(text));
            reader.checker.report(&field, message, Some(help));
            None
        }
    }
}

/// Whether the arguments have what the resource asks for, as far as that can be seen without an input.
fn check_arguments(reader: &mut Reader<'_>, given: &Node<'_>, resource: &Resource, field: &str, scope: &Scope<'_>) {
    let Some(members) = given.value.as_object() else { return };
    for name in
        resource.required().iter().filter(|_| matches!(resource, Resource::KeyValue { operation: KeyValueOperation::Get }))
    {
        let computed = scope.language == QueryLanguage::JsonPath && members.contains_key(&format!("{name}.$"));
        if !computed && !members.contains_key(*name) {
            let message = format!("\"{field}\" of this resource needs \"{name}\"");
            reader.checker.report(given, message, Some(format!("give \"{name}\"")));
        }
    }
}

/// What `ReaderConfig` says.
#[derive(Default)]
struct Config {
    format: Option<Format>,
    pointer: Option<Arc<str>>,
    items_max: Option<Number>,
}

fn reader_config(reader: &mut Reader<'_>, config: &Node<'_>, scope: &Scope<'_>, of_bucket: bool) -> Option<Config> {
    reader.checker.object(config)?;
    let of_csv = ["CSVHeaderLocation", "CSVHeaders", "CSVDelimiter"];
    let known = ["InputType", "ItemsPointer", "MaxItems", "MaxItemsPath"];
    check_members(&mut reader.checker, config, "\"ReaderConfig\"", &[&known[..], &of_csv[..]].concat());
    let range = Range { field: "MaxItems", least: 0, most: COUNT_MAX, fraction: false };
    let items_max = number(reader, config, range, scope.language);
    let pointer = match config.get("ItemsPointer") {
        Some(pointer) => items_pointer(reader, &pointer).map(Some),
        None => Some(None),
    };
    let kind = config.get("InputType");
    if of_bucket {
        for field in ["InputType", "ItemsPointer"].iter().chain(&of_csv).filter_map(|field| config.get(field)) {
            let help = "kv:list and kv:scan give an item for each key: remove it";
            reader.checker.report_key(&field, "this field of \"ReaderConfig\" belongs to kv:get", Some(help.to_owned()));
        }
        return Some(Config { format: None, pointer: pointer?, items_max: items_max? });
    }
    let given = kind.as_ref().map_or(Some("JSON"), |kind| kind.value.as_str());
    let format = match given {
        Some("JSON") => Some(Format::Json),
        Some("JSONL") => Some(Format::Jsonl),
        Some("CSV") => csv(reader, config),
        _ => {
            if let Some(kind) = &kind {
                let help = "give \"JSON\", \"JSONL\" or \"CSV\"".to_owned();
                reader.checker.report(kind, format!("unknown type of input {}", briefly(kind.value)), Some(help));
            }
            None
        }
    };
    if given != Some("CSV") {
        for field in of_csv.iter().filter_map(|field| config.get(field)) {
            let help = Some("remove it, or set \"InputType\": \"CSV\"".to_owned());
            reader.checker.report_key(&field, "this field belongs to \"InputType\": \"CSV\"", help);
        }
    }
    Some(Config { format: Some(format?), pointer: pointer?, items_max: items_max? })
}

fn items_pointer(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Arc<str>> {
    let text = reader.checker.string(node)?;
    if text.is_empty() || text.starts_with('/') {
        return Some(text.into());
    }
    let help = "write it as /orders/items (RFC 6901)".to_owned();
    reader.checker.report(node, format!("\"{}\" is not a JSON pointer", shown(text)), Some(help));
    None
}

fn csv(reader: &mut Reader<'_>, config: &Node<'_>) -> Option<Format> {
    let delimiter = match config.get("CSVDelimiter") {
        None => Some(Delimiter::default()),
        Some(field) => {
            let found = Delimiter::ALL.into_iter().find(|(name, _)| field.value.as_str() == Some(name));
            if found.is_none() {
                let help = format!("give one of {}", Delimiter::ALL.map(|(name, _)| name).join(", "));
                reader.checker.report(&field, format!("unknown delimiter {}", briefly(field.value)), Some(help));
            }
            found.map(|(_, delimiter)| delimiter)
        }
    };
    let headers = match config.get("CSVHeaderLocation") {
        Some(field) if field.value.as_str() == Some("GIVEN") => match config.get("CSVHeaders") {
            Some(headers) => csv_headers(reader, &headers).map(Some),
            None => {
                let help = "give the names of the columns in \"CSVHeaders\"".to_owned();
                reader.checker.report(&field, "\"CSVHeaders\" is missing", Some(help));
                None
            }
        },
        Some(field) if field.value.as_str() == Some("FIRST_ROW") => {
            if let Some(headers) = config.get("CSVHeaders") {
                let help = "remove them, or set \"CSVHeaderLocation\": \"GIVEN\"".to_owned();
                reader.checker.report_key(&headers, "the names of the columns are in the first row", Some(help));
            }
            Some(None)
        }
        other => {
            let message = "CSV needs \"CSVHeaderLocation\"";
            let help = "give \"FIRST_ROW\", or \"GIVEN\" with \"CSVHeaders\"".to_owned();
            reader.checker.report(other.as_ref().unwrap_or(config), message, Some(help));
            None
        }
    };
    Some(Format::Csv { delimiter: delimiter?, headers: headers? })
}

fn csv_headers(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Vec<Arc<str>>> {
    let given = reader.checker.filled_array(node, "name of a column")?;
    let names: Vec<Arc<str>> = node.elements().filter_map(|name| reader.checker.string(&name).map(Arc::from)).collect();
    if names.len() > COLUMNS_MAX || names.iter().map(|name| name.len()).sum::<usize>() > HEADER_BYTES_MAX {
        let message = format!("more than {COLUMNS_MAX} columns, or names of more than {HEADER_BYTES_MAX} bytes");
        reader.checker.report(node, message, Some("read fewer columns".to_owned()));
    }
    (names.len() == given.len()).then_some(names)
}

fn writer_config(reader: &mut Reader<'_>, config: &Node<'_>) -> Option<WriterConfig> {
    reader.checker.object(config)?;
    check_members(&mut reader.checker, config, "\"WriterConfig\"", &["OutputType", "Transformation"]);
    let transformation = choice(
        reader,
        config,
        "Transformation",
        &[("NONE", Transformation::None), ("COMPACT", Transformation::Compact), ("FLATTEN", Transformation::Flatten)],
    );
    let output_type = choice(reader, config, "OutputType", &[("JSON", OutputType::Json), ("JSONL", OutputType::Jsonl)]);
    Some(WriterConfig { transformation: transformation?, output_type: output_type? })
}

/// A field that is one of a few words, the first one if it is left out.
fn choice<T: Copy + Default>(reader: &mut Reader<'_>, config: &Node<'_>, field: &str, words: &[(&str, T)]) -> Option<T> {
    let Some(node) = config.get(field) else { return Some(T::default()) };
    let found = words.iter().find(|(word, _)| node.value.as_str() == Some(word));
    if found.is_none() {
        let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let message = format!("unknown word {} for \"{field}\"", briefly(node.value));
        reader.checker.report(&node, message, Some(format!("give {}", known.join(" or "))));
    }
    found.map(|(_, value)| *value)
}
