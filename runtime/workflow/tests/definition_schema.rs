//! The JSON Schema for editors: it takes every definition that is good, and marks those with mistakes that a schema can see.

mod driver;

use driver::generate;
use serde_json::{Value, json};
use sledge_workflow::definition::{Definition, schema};

/// Whether a value is valid: of JSON Schema what the schema uses. Anything else in it fails the test.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let members = schema.as_object().ok_or("a schema is an object")?;
    for (keyword, says) in members {
        let good = match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" | "definitions" | "then" => true,
            "$ref" => {
                let pointer = says.as_str().unwrap_or_default().trim_start_matches('#');
                is_valid(root, root.pointer(pointer).ok_or(format!("no {says}"))?, value)?;
                true
            }
            "type" => match says {
                Value::Array(types) => types.iter().any(|name| is_of(name, value)),
                name => is_of(name, value),
            },
            "const" => says == value,
            "enum" => says.as_array().is_some_and(|all| all.contains(value)),
            "not" => is_valid(root, says, value).is_err(),
            "allOf" => {
                each(says).try_for_each(|part| is_valid(root, part, value))?;
                true
            }
            "anyOf" => each(says).any(|part| is_valid(root, part, value).is_ok()),
            "oneOf" => each(says).filter(|part| is_valid(root, part, value).is_ok()).count() == 1,
            "if" => match (is_valid(root, says, value), members.get("then")) {
                (Ok(()), Some(then)) => is_valid(root, then, value).is_ok(),
                _ => true,
            },
            "required" => !value.is_object() || each(says).all(|name| value.get(name.as_str().unwrap_or_default()).is_some()),
            "properties" => {
                let own = says.as_object().ok_or("properties")?;
                own.iter()
                    .filter_map(|(name, part)| Some((part, value.get(name)?)))
                    .try_for_each(|(part, own)| is_valid(root, part, own))?;
                true
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object();
                let others = value.as_object().into_iter().flatten();
                let mut others = others.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
                match says {
                    Value::Bool(false) => others.next().is_none(),
                    part => others.all(|(_, own)| is_valid(root, part, own).is_ok()),
                }
            }
            "propertyNames" => {
                value.as_object().into_iter().flatten().all(|(name, _)| is_valid(root, says, &json!(name)).is_ok())
            }
            "items" => each(value).all(|item| is_valid(root, says, item).is_ok()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= says.as_u64().unwrap_or(0)),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= says.as_u64().unwrap_or(0)),
            "minProperties" => value.as_object().is_none_or(|own| own.len() as u64 >= says.as_u64().unwrap_or(0)),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= says.as_u64().unwrap_or(0)),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= says.as_u64().unwrap_or(0)),
            "minimum" => value.as_f64().is_none_or(|number| number >= says.as_f64().unwrap_or(0.0)),
            "maximum" => value.as_f64().is_none_or(|number| number <= says.as_f64().unwrap_or(0.0)),
            "pattern" => {
                let pattern = regex_lite::Regex::new(says.as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            other => return Err(format!("the test does not know the keyword {other}")),
        };
        if !good {
            return Err(format!("{keyword}: {says}: {value}"));
        }
    }
    Ok(())
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn is_of(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[test]
fn every_good_definition_is_valid() {
    let schema = schema();
    let seed = fastrand::u64(..);
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..500 {
        let source = generate::definition(&mut rng);
        assert!(Definition::parse(&source.to_string()).is_ok());
        is_valid(&schema, &schema, &source).unwrap_or_else(|why| panic!("SEED={seed}: {why}\n{source:#}"));
    }
    let mut count = 0;
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine_cases")).expect("the folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a file of cases");
        let cases: Vec<Value> = serde_json::from_str(&text).expect("cases");
        for case in &cases {
            let source = completed(case);
            if Definition::parse(&source.to_string()).is_ok() {
                count += 1;
                is_valid(&schema, &schema, &source).unwrap_or_else(|why| panic!("{}: {why}\n{source:#}", case["name"]));
            }
        }
    }
    assert!(count > 120, "{count}");
}

/// The definition of a case, with the ends that it leaves out.
fn completed(case: &Value) -> Value {
    if let Some(own) = case.get("definition") {
        return own.clone();
    }
    let mut states = case["states"].clone();
    let first = states.as_object().and_then(|states| states.keys().next().cloned()).unwrap_or_default();
    for state in states.as_object_mut().into_iter().flatten().map(|(_, state)| state) {
        let ends = matches!(state["Type"].as_str(), Some("Choice" | "Succeed" | "Fail"));
        if !ends && state.get("Next").is_none() && state.get("End").is_none() {
            state["End"] = json!(true);
        }
    }
    let mut whole = json!({ "StartAt": first, "States": states });
    if let Some(language) = case.get("language") {
        whole["QueryLanguage"] = language.clone();
    }
    whole
}

#[test]
fn mistakes_that_a_schema_can_see_are_marked() {
    let schema = schema();
    let whole = |state: Value| json!({ "StartAt": "A", "States": { "A": state } });
    let map = |more: Value| {
        let mut state =
            json!({ "Type": "Map", "End": true, "ItemProcessor": { "StartAt": "B", "States": { "B": { "Type": "Succeed" } } } });
        more.as_object().into_iter().flatten().for_each(|(key, value)| state[key] = value.clone());
        whole(state)
    };
    assert_eq!(is_valid(&schema, &schema, &map(json!({}))), Ok(()));
    for wrong in [
        json!({}),
        json!({ "StartAt": "A", "States": {} }),
        json!({ "StartAt": "A", "States": { "A": { "Type": "Succeed" } }, "Timeout": 1 }),
        whole(json!({ "Type": "Sleep" })),
        whole(json!({ "Type": "Task", "End": true })),
        whole(json!({ "Type": "Pass" })),
        whole(json!({ "Type": "Pass", "Next": "B", "End": true })),
        whole(json!({ "Type": "Pass", "End": true, "Resource": "fn:f" })),
        whole(json!({ "Type": "Wait", "End": true })),
        whole(json!({ "Type": "Wait", "End": true, "Seconds": "5" })),
        whole(json!({ "Type": "Task", "Resource": "fn:f", "End": true, "Retry": [{ "ErrorEquals": [] }] })),
        whole(json!({ "Type": "Task", "Resource": "fn:f", "End": true, "Credentials": {} })),
        whole(json!({ "Type": "Choice", "Choices": [{ "Variable": "$", "StringEqual": "x", "Next": "A" }] })),
        map(json!({ "Iterator": { "StartAt": "B", "States": { "B": { "Type": "Succeed" } } } })),
        map(json!({ "ItemReader": { "Resource": "s3:getObject" } })),
        map(json!({ "ItemReader": { "Resource": "kv:get", "ReaderConfig": { "InputType": "XML" } } })),
        map(json!({ "ResultWriter": { "Resource": "kv:set", "WriterConfig": { "OutputType": "CSV" } } })),
        map(json!({ "ItemProcessor": { "StartAt": "B", "States": { "B": { "Type": "Nope" } } } })),
    ] {
        assert!(is_valid(&schema, &schema, &wrong).is_err(), "{wrong}");
    }
}
