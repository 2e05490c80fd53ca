//! Random definitions that are valid, random documents, and mutations of texts.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A random definition: machines up to three deep, all types of states, both query languages.
pub(crate) fn definition(rng: &mut Rng) -> Value {
    let jsonata = rng.u8(..4) == 0;
    let mut source = machine(rng, 0, &mut 0, jsonata);
    if jsonata {
        source["QueryLanguage"] = json!("JSONata");
    }
    if rng.u8(..4) == 0 {
        source["TimeoutSeconds"] = json!(rng.u64(1..100));
    }
    source
}

/// States in a row: each leads to the next one, some of them also to a later one.
fn machine(rng: &mut Rng, depth: usize, serial: &mut usize, jsonata: bool) -> Value {
    let count = rng.usize(1..5);
    let names: Vec<String> = (0..count)
        .map(|_| {
            *serial += 1;
            format!("S{serial}")
        })
        .collect();
    let mut states = Map::new();
    for (at, name) in names.iter().enumerate() {
        let later = &names[at + 1..];
        states.insert(name.clone(), state(rng, depth, serial, jsonata, later));
    }
    json!({ "StartAt": names[0], "States": states })
}

fn state(rng: &mut Rng, depth: usize, serial: &mut usize, jsonata: bool, later: &[String]) -> Value {
    let mut state = match (rng.u8(..10), later.first()) {
        (0 | 1, _) => pass(rng, jsonata),
        (2 | 3, _) => task(rng, jsonata),
        (4, _) => json!({ "Type": "Wait", "Seconds": rng.u64(0..20) }),
        (5, Some(next)) => return choice(rng, jsonata, later, next),
        (6, None) => return json!({ "Type": "Fail", "Error": "Made", "Cause": "by chance" }),
        (7, None) => return json!({ "Type": "Succeed" }),
        (8, _) if depth < 3 => {
            let branches: Vec<_> = (0..rng.usize(1..4)).map(|_| machine(rng, depth + 1, serial, jsonata)).collect();
            json!({ "Type": "Parallel", "Branches": branches })
        }
        (9, _) if depth < 3 => map(rng, depth, serial, jsonata),
        _ => json!({ "Type": "Pass" }),
    };
    match later.first() {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    if !later.is_empty() && matches!(state["Type"].as_str(), Some("Task" | "Parallel" | "Map")) && rng.bool() {
        state["Catch"] = json!([{ "ErrorEquals": [rng.choice(["States.ALL", "Boom", "States.Timeout"]).unwrap_or_default()], "Next": rng.choice(later) }]);
    }
    if matches!(state["Type"].as_str(), Some("Task" | "Parallel" | "Map")) && rng.bool() {
        state["Retry"] = json!([{ "ErrorEquals": [rng.choice(["States.ALL", "Boom"]).unwrap_or_default()], "MaxAttempts": rng.u64(0..3),
            "IntervalSeconds": rng.u64(1..5), "JitterStrategy": rng.choice(["FULL", "NONE"]).unwrap_or_default() }]);
    }
    state
}

fn pass(rng: &mut Rng, jsonata: bool) -> Value {
    if jsonata {
        return match rng.u8(..3) {
            0 => json!({ "Type": "Pass", "Output": "{% $states.input %}" }),
            1 => json!({ "Type": "Pass", "Output": { "a": document(rng, 2) } }),
            _ => json!({ "Type": "Pass" }),
        };
    }
    match rng.u8(..6) {
        0 => json!({ "Type": "Pass", "Result": document(rng, 3) }),
        1 => json!({ "Type": "Pass", "Result": document(rng, 2), "ResultPath": "$.a" }),
        2 => json!({ "Type": "Pass", "Parameters": { "a.$": "$", "name.$": "$$.State.Name" } }),
        3 => json!({ "Type": "Pass", "InputPath": "$.a" }),
        4 => json!({ "Type": "Pass", "OutputPath": null }),
        _ => json!({ "Type": "Pass", "Result": [1, 2, 3] }),
    }
}

fn task(rng: &mut Rng, jsonata: bool) -> Value {
    let resource =
        rng.choice(["fn:f", "kv:get", "fn:f.waitForTaskToken", "workflow:w", "https://example.org/"]).unwrap_or_default();
    let mut state = json!({ "Type": "Task", "Resource": resource });
    if rng.bool() {
        state["TimeoutSeconds"] = json!(rng.u64(5..30));
    }
    if rng.bool() {
        state["HeartbeatSeconds"] = json!(rng.u64(1..5));
    }
    if !jsonata && rng.bool() {
        state["ResultPath"] = json!(rng.choice(["$.a", "$.b.c", "$"]));
    }
    state
}

fn choice(rng: &mut Rng, jsonata: bool, later: &[String], next: &str) -> Value {
    let target = rng.choice(later).expect("a later state").clone();
    let rule = if jsonata {
        json!({ "Condition": rng.bool(), "Next": target })
    } else {
        json!({ "Variable": "$.a", "IsPresent": rng.bool(), "Next": target })
    };
    let mut state = json!({ "Type": "Choice", "Choices": [rule], "Default": next });
    if rng.u8(..8) == 0 && later.len() == 1 {
        state.as_object_mut().expect("an object").remove("Default");
    }
    state
}

fn map(rng: &mut Rng, depth: usize, serial: &mut usize, jsonata: bool) -> Value {
    let mut state =
        json!({ "Type": "Map", "ItemProcessor": machine(rng, depth + 1, serial, jsonata), "MaxConcurrency": rng.u64(0..4) });
    if jsonata {
        state["Items"] = json!([1, { "a": 2 }, [3]]);
    } else if rng.bool() {
        state["ItemSelector"] = json!({ "v.$": "$$.Map.Item.Value", "a.$": "$$.Map.Item.Index" });
    }
    if rng.bool() {
        state["ToleratedFailureCount"] = json!(rng.u64(0..3));
    }
    if rng.u8(..4) == 0 {
        state["ItemBatcher"] = json!({ "MaxItemsPerBatch": rng.u64(1..4) });
    }
    state
}

/// A random document.
pub(crate) fn document(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(-5..100)),
        3 => json!(rng.f64()),
        4 => json!(rng.choice(["", "a", "text", "2030-01-01T00:00:00Z"])),
        5 => Value::Array((0..rng.usize(..4)).map(|_| document(rng, depth - 1)).collect()),
        _ => Value::Object(
            (0..rng.usize(..4))
                .map(|_| (rng.choice(["a", "b", "c", "d"]).unwrap_or_default().to_owned(), document(rng, depth - 1)))
                .collect(),
        ),
    }
}

/// Changes a text at a few places: bytes, words of the language, pieces of itself.
pub(crate) fn mutate(rng: &mut Rng, text: &str) -> String {
    const WORDS: &[&str] = &[
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "true",
        "1e999",
        "-1",
        "0",
        "$",
        "$$",
        "$.",
        "$..*",
        "$[?(@",
        "States.Format('",
        "{% ",
        " %}",
        "{%%}",
        "\\u0000",
        "\\",
        "é",
        "\"Next\"",
        "\"End\"",
        "\"Type\"",
        "\"Parallel\"",
        "\"Map\"",
        "\"JSONata\"",
        "99999999999999999999",
        "\"\"",
        "S1",
        "S2",
        ".$\"",
        "\"QueryLanguage\": \"JSONata\", ",
    ];
    let mut out = text.to_owned();
    for _ in 0..rng.usize(1..5) {
        let place = |rng: &mut Rng, text: &str| {
            let at = rng.usize(..=text.len());
            (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        };
        let (a, b) = (place(rng, &out), place(rng, &out));
        let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 40));
        let to = (from..=to).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(from);
        match rng.u8(..4) {
            0 => out.replace_range(from..to, ""),
            1 => out.insert_str(from, rng.choice(WORDS).expect("a word")),
            2 => out.replace_range(from..to, rng.choice(WORDS).expect("a word")),
            _ => {
                let piece = out[from..to].to_owned();
                let at = place(rng, &out);
                out.insert_str(at, &piece);
            }
        }
    }
    out
}

/// Changes a document at a few places: values, names of members, members that are gone or in another place.
pub(crate) fn mutate_value(rng: &mut Rng, value: &mut Value) {
    for _ in 0..rng.usize(1..3) {
        mutate_once(rng, value);
    }
}

fn mutate_once(rng: &mut Rng, value: &mut Value) {
    const NAMES: &[&str] = &[
        "Next",
        "End",
        "Type",
        "ResultPath",
        "Parameters",
        "Assign",
        "Output",
        "Catch",
        "Retry",
        "x.$",
        "Seconds",
        "Comment",
        "MaxConcurrency",
        "a",
    ];
    let deeper = rng.u8(..4) > 0;
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            let at = rng.usize(..elements.len());
            match rng.u8(..6) {
                _ if deeper => mutate_once(rng, &mut elements[at]),
                0 => drop(elements.remove(at)),
                1 => elements.push(elements[at].clone()),
                _ => elements[at] = document(rng, 2),
            }
        }
        Value::Object(members) if !members.is_empty() => {
            let at = rng.usize(..members.len());
            let name = members.keys().nth(at).cloned().unwrap_or_default();
            let other = rng.choice(NAMES).copied().unwrap_or_default().to_owned();
            match rng.u8(..6) {
                _ if deeper => {
                    if let Some(member) = members.get_mut(&name) {
                        mutate_once(rng, member);
                    }
                }
                0 => drop(members.shift_remove(&name)),
                1 => {
                    let member = members.shift_remove(&name).unwrap_or_default();
                    members.insert(other, member);
                }
                2 => drop(members.insert(other, document(rng, 2))),
                _ => drop(members.insert(name, document(rng, 2))),
            }
        }
        Value::Number(_) => *value = json!(rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 50.0, 1e300])),
        Value::Bool(boolean) => *boolean = !*boolean,
        Value::String(text) => {
            *value = json!(match rng.u8(..4) {
                0 => mutate(rng, text),
                1 => format!("S{}", rng.u8(1..5)),
                2 => rng
                    .choice(["$", "$.a", "$$.Map.Item.Value", "$x", "{% $states.input %}", "States.ALL", "fn:g"])
                    .unwrap_or_default()
                    .to_owned(),
                _ => String::new(),
            });
        }
        other => *other = document(rng, 1),
    }
}
