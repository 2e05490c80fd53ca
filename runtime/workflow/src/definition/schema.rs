//! A JSON Schema of definitions, for editors: they complete fields and mark mistakes while a definition is written.
//!
//! It is made from the table of fields by which definitions are read, so both know the same fields. What it cannot say (targets, names that are unique, fields of one query language
//! alone) `sledge workflow check` says. Draft 7, which most editors read.

use serde_json::{Map, Value, json};

use super::fields::{FIELDS, TYPES, Types};
use super::limits::{ATTEMPTS_MAX, BRANCHES_MAX, DELAY_SECONDS_MAX, HANDLERS_MAX, SECONDS_MAX, STATE_NAME_CHARS_MAX};
use crate::dataset::Delimiter;

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let mut definitions = parts();
    for (name, types) in TYPES {
        definitions.insert(name.to_owned(), state(name, types));
    }
    let by_type = TYPES.map(|(name, _)| {
        json!({ "if": { "properties": { "Type": { "const": name } }, "required": ["Type"] }, "then": reference(name) })
    });
    definitions.insert(
        "state".to_owned(),
        json!({
            "type": "object",
            "required": ["Type"],
            "properties": { "Type": { "enum": TYPES.map(|(name, _)| name) } },
            "allOf": by_type,
        }),
    );
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "urn:sledge:schema:workflow",
        "title": "A workflow in Amazon States Language",
        "type": "object",
        "required": ["StartAt", "States"],
        "additionalProperties": false,
        "properties": {
            "Comment": text("What the workflow is for."),
            "Version": { "const": "1.0" },
            "QueryLanguage": reference("queryLanguage"),
            "TimeoutSeconds": whole(1, SECONDS_MAX, "The most seconds of an execution."),
            "StartAt": reference("stateName"),
            "States": reference("states"),
        },
        "definitions": definitions,
    })
}

/// One type of state: its fields by the table.
fn state(name: &str, types: Types) -> Value {
    let own = FIELDS.iter().filter(|field| field.belongs_to(types));
    let mut properties: Map<String, Value> = own.map(|field| (field.name().to_owned(), field_schema(field.name()))).collect();
    properties.insert("Type".to_owned(), json!({ "const": name }));
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let required: &[&str] = match name {
        "Task" => &["Type", "Resource"],
        "Choice" => &["Type", "Choices"],
        "Parallel" => &["Type", "Branches"],
        _ => &["Type"],
    };
    schema["required"] = json!(required);
    schema["allOf"] = match name {
        "Task" | "Pass" | "Parallel" => json!([one_of(&["Next", "End"])]),
        "Wait" => json!([one_of(&["Next", "End"]), one_of(&["Seconds", "SecondsPath", "Timestamp", "TimestampPath"])]),
        "Map" => json!([one_of(&["Next", "End"]), one_of(&["ItemProcessor", "Iterator"])]),
        _ => json!([]),
    };
    if schema["allOf"] == json!([])
        && let Some(members) = schema.as_object_mut()
    {
        members.remove("allOf");
    }
    schema
}

/// Exactly one of these fields is there.
fn one_of(fields: &[&str]) -> Value {
    json!({ "oneOf": fields.iter().map(|field| json!({ "required": [field] })).collect::<Vec<_>>() })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn whole(least: u64, most: u64, description: &str) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "description": description })
}

/// A number, or an expression of JSONata that gives one.
fn number(least: u64, most: u64, description: &str) -> Value {
    let number = json!({ "type": "number", "minimum": least, "maximum": most });
    json!({ "anyOf": [number, reference("expression")], "description": description })
}

fn path(description: &str) -> Value {
    json!({ "type": ["string", "null"], "description": description })
}

fn words(words: &[&str], description: &str) -> Value {
    json!({ "enum": words, "description": description })
}

/// The values of a field of states.
fn field_schema(name: &str) -> Value {
    match name {
        "Comment" => text("What the state is for."),
        "QueryLanguage" => reference("queryLanguage"),
        "Next" | "Default" => reference("stateName"),
        "End" => json!({ "const": true, "description": "The state is the last one." }),
        "InputPath" => path("Which part of the input the state sees."),
        "OutputPath" => path("Which part becomes the output."),
        "ResultPath" => path("Where the result is put into the input; null drops it."),
        "ItemsPath" => path("Where the array of items lies."),
        "TimeoutSecondsPath"
        | "HeartbeatSecondsPath"
        | "SecondsPath"
        | "TimestampPath"
        | "MaxConcurrencyPath"
        | "ToleratedFailureCountPath"
        | "ToleratedFailurePercentagePath"
        | "ErrorPath"
        | "CausePath" => text("A path to the value."),
        "Parameters" => json!({ "description": "What is handed over: a template, in which keys that end with .$ hold paths." }),
        "Arguments" => json!({ "description": "What is handed over: an object with expressions." }),
        "ResultSelector" => json!({ "description": "What is taken of the result: a template." }),
        "Output" => json!({ "description": "The output: a value with expressions." }),
        "Assign" => json!({ "type": "object", "description": "Variables, by name." }),
        "Result" => json!({ "description": "The output." }),
        "Resource" => text(
            "fn:NAME, a Lambda function's ARN, arn:aws:states:::lambda:invoke, http(s)://..., kv:get, kv:set, kv:add, kv:delete, workflow:NAME.",
        ),
        "Credentials" => json!({ "not": {}, "description": "Not supported: this server has no roles." }),
        "TimeoutSeconds" => number(1, SECONDS_MAX, "The most seconds of the task."),
        "HeartbeatSeconds" => number(1, SECONDS_MAX, "The most seconds between two signs of life."),
        "Seconds" => number(0, SECONDS_MAX, "How long it waits."),
        "Timestamp" => text("Until when it waits: 2030-01-31T12:00:00Z."),
        "Error" | "Cause" => text("With what the execution fails."),
        "Retry" => json!({ "type": "array", "maxItems": HANDLERS_MAX, "items": reference("retrier") }),
        "Catch" => json!({ "type": "array", "maxItems": HANDLERS_MAX, "items": reference("catcher") }),
        "Choices" => json!({ "type": "array", "minItems": 1, "items": reference("rule") }),
        "Branches" => json!({ "type": "array", "minItems": 1, "maxItems": BRANCHES_MAX, "items": reference("machine") }),
        "ItemProcessor" | "Iterator" => reference("processor"),
        "ItemSelector" => json!({ "description": "The input of an iteration, in place of the item." }),
        "Items" => json!({ "type": ["string", "array", "object"], "description": "The items." }),
        "ItemReader" => reference("itemReader"),
        "ItemBatcher" => reference("itemBatcher"),
        "ResultWriter" => reference("resultWriter"),
        "MaxConcurrency" => number(0, SECONDS_MAX, "Iterations at the same time; 0 for as many as there may be."),
        "ToleratedFailureCount" => number(0, SECONDS_MAX, "How many iterations may fail."),
        "ToleratedFailurePercentage" => number(0, 100, "How many iterations of a hundred may fail."),
        "Label" => text("What runs of the Map are called."),
        _ => json!({}),
    }
}

/// What states consist of.
fn parts() -> Map<String, Value> {
    let name =
        json!({ "type": "string", "minLength": 1, "maxLength": STATE_NAME_CHARS_MAX, "description": "The name of a state." });
    let errors = json!({ "type": "array", "minItems": 1, "items": { "type": "string" }, "description": "Names of errors, such as States.ALL." });
    let machine = |more: Value| {
        let mut properties =
            json!({ "Comment": text("What it is for."), "StartAt": reference("stateName"), "States": reference("states") });
        for (key, value) in more.as_object().into_iter().flatten() {
            properties[key] = value.clone();
        }
        json!({ "type": "object", "required": ["StartAt", "States"], "properties": properties, "additionalProperties": false })
    };
    let mode = json!({ "type": "object", "properties": { "Mode": { "const": "INLINE" } }, "additionalProperties": false });
    let parts = json!({
        "queryLanguage": words(&["JSONPath", "JSONata"], "How data is read and written; JSONPath if it is left out."),
        "expression": { "type": "string", "pattern": "^\\{%[\\s\\S]*%\\}$", "description": "An expression of JSONata: {% ... %}." },
        "stateName": name,
        "states": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "minLength": 1, "maxLength": STATE_NAME_CHARS_MAX },
            "additionalProperties": reference("state"),
        },
        "machine": machine(json!({})),
        "processor": machine(json!({ "ProcessorConfig": mode })),
        "retrier": {
            "type": "object",
            "required": ["ErrorEquals"],
            "additionalProperties": false,
            "properties": {
                "Comment": text("What it is for."),
                "ErrorEquals": errors,
                "IntervalSeconds": whole(1, SECONDS_MAX, "Seconds before the first attempt; 1 if it is left out."),
                "MaxAttempts": whole(0, ATTEMPTS_MAX, "3 if it is left out."),
                "BackoffRate": { "type": "number", "minimum": 1, "description": "By what the interval grows; 2 if it is left out." },
                "MaxDelaySeconds": whole(1, DELAY_SECONDS_MAX - 1, "The longest interval."),
                "JitterStrategy": words(&["FULL", "NONE"], "FULL: intervals are random."),
            },
        },
        "catcher": {
            "type": "object",
            "required": ["ErrorEquals", "Next"],
            "additionalProperties": false,
            "properties": {
                "Comment": text("What it is for."),
                "ErrorEquals": errors,
                "Next": reference("stateName"),
                "ResultPath": path("Where the error is put into the input."),
                "Output": field_schema("Output"),
                "Assign": field_schema("Assign"),
            },
        },
    });
    let Value::Object(mut parts) = parts else { return Map::new() };
    parts.extend(rules());
    parts.extend(stores());
    parts
}

/// Rules of a Choice: comparisons of JSONPath, conditions of JSONata.
fn rules() -> Map<String, Value> {
    let mut tests = Map::new();
    for (kind, operand) in [("String", "string"), ("Numeric", "number"), ("Timestamp", "string"), ("Boolean", "boolean")] {
        for relation in ["Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"] {
            if kind != "Boolean" || relation == "Equals" {
                tests.insert(format!("{kind}{relation}"), json!({ "type": operand }));
                tests.insert(format!("{kind}{relation}Path"), json!({ "type": "string" }));
            }
        }
    }
    for name in ["IsPresent", "IsNull", "IsNumeric", "IsString", "IsBoolean", "IsTimestamp"] {
        tests.insert(name.to_owned(), json!({ "type": "boolean" }));
    }
    let inner = reference("comparison");
    tests.insert("StringMatches".to_owned(), text("A pattern in which * stands for any characters."));
    tests.insert("And".to_owned(), json!({ "type": "array", "minItems": 1, "items": inner }));
    tests.insert("Or".to_owned(), json!({ "type": "array", "minItems": 1, "items": inner }));
    tests.insert("Not".to_owned(), inner);
    tests.insert("Variable".to_owned(), text("A path to the value that is compared."));
    tests.insert("Comment".to_owned(), text("What it is for."));
    let mut rule = tests.clone();
    rule.insert("Condition".to_owned(), json!({ "anyOf": [{ "type": "boolean" }, reference("expression")] }));
    rule.insert("Next".to_owned(), reference("stateName"));
    rule.insert("Output".to_owned(), field_schema("Output"));
    rule.insert("Assign".to_owned(), field_schema("Assign"));
    let mut rules = Map::new();
    rules.insert("comparison".to_owned(), json!({ "type": "object", "properties": tests, "additionalProperties": false }));
    rules.insert(
        "rule".to_owned(),
        json!({ "type": "object", "required": ["Next"], "properties": rule, "additionalProperties": false }),
    );
    rules
}

/// `ItemReader`, `ItemBatcher` and `ResultWriter` of a Map.
fn stores() -> Map<String, Value> {
    let given =
        json!({ "description": "{\"Bucket\": ..., \"Key\": ...} of kv:get, {\"Bucket\": ..., \"Prefix\": ...} otherwise." });
    let delimiters = Delimiter::ALL.map(|(name, _)| name);
    let config = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "InputType": words(&["JSON", "JSONL", "CSV"], "How the value of kv:get holds items; JSON if it is left out."),
            "ItemsPointer": { "type": "string", "pattern": "^(/|$)", "description": "Where the array lies in the JSON: /orders/items." },
            "MaxItems": number(0, SECONDS_MAX, "The first so many; 0 for all."),
            "MaxItemsPath": text("A path to the value."),
            "CSVHeaderLocation": words(&["FIRST_ROW", "GIVEN"], "Where the names of the columns are."),
            "CSVHeaders": { "type": "array", "minItems": 1, "items": { "type": "string" }, "description": "The names of the columns." },
            "CSVDelimiter": words(&delimiters, "What stands between columns; COMMA if it is left out."),
        },
    });
    let stores = json!({
        "itemReader": {
            "type": "object",
            "required": ["Resource"],
            "additionalProperties": false,
            "properties": {
                "Resource": words(&["kv:get", "kv:list", "kv:scan"], "The value of a key; keys of a bucket; keys with their values."),
                "Parameters": given,
                "Arguments": given,
                "ReaderConfig": config,
            },
        },
        "itemBatcher": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "MaxItemsPerBatch": number(1, SECONDS_MAX, "Items of a batch."),
                "MaxItemsPerBatchPath": text("A path to the value."),
                "MaxInputBytesPerBatch": number(1, 262_144, "Bytes of a batch."),
                "MaxInputBytesPerBatchPath": text("A path to the value."),
                "BatchInput": { "description": "What each batch has beside its items." },
            },
        },
        "resultWriter": {
            "type": "object",
            "required": ["Resource"],
            "additionalProperties": false,
            "properties": {
                "Resource": { "const": "kv:set" },
                "Parameters": given,
                "Arguments": given,
                "WriterConfig": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "Transformation": words(&["NONE", "COMPACT", "FLATTEN"], "With metadata; outputs alone; elements of outputs."),
                        "OutputType": words(&["JSON", "JSONL"], "An array, or a value on each line."),
                    },
                },
            },
        },
    });
    if let Value::Object(stores) = stores { stores } else { Map::new() }
}
