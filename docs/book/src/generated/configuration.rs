//! All keys of the configuration, of its JSON Schema.
//!
//! The schema is walked from the root. Each table of keys gets a section, under the way on which it is written in TOML: `[[functions]]`, `[functions.cors]`.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::cell;

/// How a table is written in TOML: `[telemetry]`, `[[functions.dirs]]`; empty for the keys at the top.
pub type TablePath = String;

/// A table of keys.
#[derive(Debug)]
struct Table<'a> {
    /// The ways on which it can be written; the first one found is its heading.
    paths: Vec<TablePath>,
    schema: &'a Value,
}

/// A section for each table.
pub(super) fn chapter() -> String {
    let schema = sledge::config::schema();
    let mut text = String::new();
    for table in of(&schema) {
        text += &section(&schema, &table);
    }
    text
}

/// Every table of the configuration, with its keys.
#[must_use]
pub fn tables() -> Vec<(TablePath, Vec<String>)> {
    let schema = sledge::config::schema();
    let keys = |table: &Table<'_>| properties(table.schema).map(|(key, _)| key.clone()).collect();
    of(&schema).iter().map(|table| (table.paths[0].clone(), keys(table))).collect()
}

/// The tables, those at the top first.
fn of(root: &Value) -> Vec<Table<'_>> {
    let mut tables = vec![Table { paths: vec![TablePath::new()], schema: root }];
    // Definitions that have a section, by where that is.
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut waiting = VecDeque::from([(String::new(), root)]);
    while let Some((path, schema)) = waiting.pop_front() {
        for (key, value) in properties(schema) {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            for (name, is_list) in definitions(value) {
                let Some(definition) = root.pointer(&format!("/$defs/{name}")) else { continue };
                if properties(definition).next().is_none() {
                    continue;
                }
                let way = if is_list { format!("[[{below}]]") } else { format!("[{below}]") };
                match known.get(name) {
                    Some(at) => tables[*at].paths.push(way),
                    None => {
                        known.insert(name, tables.len());
                        tables.push(Table { paths: vec![way], schema: definition });
                        waiting.push_back((below.clone(), definition));
                    }
                }
            }
        }
    }
    tables
}

/// The keys of a table.
fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Definitions that a value names, each with whether it is one of a list.
fn definitions(value: &Value) -> Vec<(&str, bool)> {
    let any = value.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let own = any.chain([value]).map(|one| (one, false));
    let all = own.chain(value.get("items").map(|one| (one, true)));
    all.filter_map(|(one, is_list)| Some((one.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?, is_list))).collect()
}

/// A section: what the table is for, and its keys.
fn section(root: &Value, table: &Table<'_>) -> String {
    let mut text = match &table.paths[0][..] {
        "" => String::from("## The server\n\n"),
        path => format!("## {path}\n\n"),
    };
    if !table.paths[0].is_empty() {
        text += &format!("{}\n\n", described(table.schema));
        let also: Vec<_> = table.paths[1..].iter().map(|path| format!("`{path}`")).collect();
        if !also.is_empty() {
            text += &format!("Also {}.\n\n", also.join(", "));
        }
    }
    text += "| key | value | default | meaning |\n|---|---|---|---|\n";
    let required: Vec<_> = table.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in properties(table.schema) {
        let default = match value.get("default") {
            _ if required.contains(&&**key) => "required".to_owned(),
            None | Some(Value::Null) => String::new(),
            Some(default) => format!("`{}`", cell(&default.to_string())),
        };
        let mut meaning = cell(&described(value));
        for (choice, means) in choices(root, value) {
            meaning += &format!("<br>`{choice}`: {}", cell(&means));
        }
        text += &format!("| `{key}` | {} | {default} | {meaning} |\n", kind(root, value));
    }
    text + "\n"
}

fn described(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().to_owned()
}

/// What a key's value is.
fn kind(root: &Value, value: &Value) -> String {
    if !choices(root, value).is_empty() {
        return "one of".to_owned();
    }
    let value = resolved(root, value);
    if let Some(options) = value.get("enum").and_then(Value::as_array) {
        return options.iter().map(|option| format!("`{}`", cell(&option.to_string()))).collect::<Vec<_>>().join(" or ");
    }
    let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|key| value.get(key)?.as_array());
    let kinds: Vec<String> = alternatives.flatten().filter(|one| one["type"] != "null").map(|one| kind(root, one)).collect();
    if !kinds.is_empty() {
        let mut kinds = kinds;
        kinds.dedup();
        return kinds.join(" or ");
    }
    if let Some(constant) = value.get("const") {
        return format!("`{}`", cell(&constant.to_string()));
    }
    let range = |low: &str, high: &str| match (value.get(low).filter(|least| **least != 0), value.get(high)) {
        (Some(low), Some(high)) => format!(", {low} to {high}"),
        (Some(low), None) => format!(", from {low}"),
        (None, Some(high)) => format!(", to {high}"),
        (None, None) => String::new(),
    };
    match type_of(value) {
        "integer" => format!("integer{}", range("minimum", "maximum")),
        "number" => format!("number{}", range("minimum", "maximum")),
        "array" => {
            format!("list of {}", value.get("items").map_or_else(|| "values".to_owned(), |items| plural(&kind(root, items))))
        }
        "object" => object(root, value),
        other => other.to_owned(),
    }
}

/// A table without a section of its own: the few keys that it has, or what the operator's keys stand for.
fn object(root: &Value, value: &Value) -> String {
    let required = value["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let keys: Vec<_> = required.map(|key| format!("{key} = ...")).collect();
    match value.get("additionalProperties").filter(|inner| inner.is_object()) {
        Some(inner) => format!("table of {}", plural(&kind(root, inner))),
        None if keys.is_empty() || keys.len() > 1 => "table".to_owned(),
        None => format!("`{{ {} }}`", keys.join(", ")),
    }
}

/// The type of a value that may also be left out.
fn type_of(value: &Value) -> &str {
    match &value["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("any value"),
        other => other.as_str().unwrap_or("any value"),
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "string" | "table" => format!("{kind}s"),
        other => other.replace("integer", "integers").replace("one of", "any of"),
    }
}

/// The values that a key can have, with what each means.
fn choices(root: &Value, value: &Value) -> Vec<(String, String)> {
    let given = value.get("anyOf").and_then(Value::as_array).filter(|any| any.iter().any(|one| one["type"] == "null"));
    let value = given.and_then(|any| any.iter().find(|one| one["type"] != "null")).unwrap_or(value);
    let value = resolved(root, value.get("items").unwrap_or(value));
    let options = value.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let choices: Option<Vec<_>> = options.map(|one| Some((one.get("const")?.as_str()?.to_owned(), described(one)))).collect();
    choices.unwrap_or_default()
}

/// What a reference stands for.
fn resolved<'a>(root: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(value)
}
