//! Tables of definitions with what they give: `machine_cases/*.json`.
//!
//! A case has `name`; `states` (the first one is where it starts; names without `Next` and `End` end) or `definition`; `language`; `input`; `replies` of tasks by state;
//! and of what is expected: `output`, or `error` and `cause`, or `status`; `events`: the types of the history's events; `inputs`: what tasks were given, in order;
//! (of a ResultWriter without `Folder` and `MapRunArn`); `seconds`: virtual time at the end; `details`: of events by type (the first one of that type), parts of their JSON.

mod driver;

use driver::{Player, START_MS, definition};
use serde_json::{Map, Value, json};
use sledge_workflow::machine::Limits;

/// Whether all members of `part` are in `whole`, at any depth.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        _ => whole == part,
    }
}

fn source(case: &Value) -> Value {
    if let Some(definition) = case.get("definition") {
        return definition.clone();
    }
    let mut states = case["states"].as_object().expect("states").clone();
    let start = states.keys().next().expect("a state").clone();
    finish(&mut states);
    let mut source = json!({ "StartAt": start, "States": states });
    if let Some(language) = case.get("language") {
        source["QueryLanguage"] = language.clone();
    }
    source
}

/// States without `Next` and `End` end.
fn finish(states: &mut Map<String, Value>) {
    for state in states.values_mut() {
        let kind = state["Type"].as_str().unwrap_or_default();
        if !matches!(kind, "Choice" | "Succeed" | "Fail") && state.get("Next").is_none() && state.get("End").is_none() {
            state["End"] = json!(true);
        }
    }
}

fn check(file: &str, case: &Value) -> Result<(), String> {
    let definition = definition(&source(case));
    let mut limits = Limits::default();
    if let Some(limit) = case["limits"]["items"].as_u64() {
        limits.items = limit as usize;
    }
    if let Some(limit) = case["limits"]["frames"].as_u64() {
        limits.frames = limit as usize;
    }
    if let Some(limit) = case["limits"]["history_events"].as_u64() {
        limits.history_events = limit;
    }
    let played = Player::new(definition, limits, 7)
        .replies(&case["replies"])
        .play(case.get("input").cloned().unwrap_or_else(|| json!({})));
    let result = played.result();
    let fail = |what: &str, found: &Value, expected: &Value| {
        Err(format!("{file}: {}: {what}\n  found    {found}\n  expected {expected}", case["name"]))
    };
    for key in ["output", "error", "cause", "status"] {
        if let Some(expected) = case.get(key)
            && result.get(key) != Some(expected)
        {
            return fail(key, &result, expected);
        }
    }
    if !["output", "error", "cause", "status"].iter().any(|key| case.get(key).is_some()) {
        return fail("nothing is expected", &result, &Value::Null);
    }
    let events = json!(played.events());
    if let Some(expected) = case.get("events")
        && events != *expected
    {
        return fail("events", &events, expected);
    }
    let inputs = Value::Array(played.started.iter().map(|task| without_chance(&task.input)).collect());
    if let Some(expected) = case.get("inputs")
        && inputs != *expected
    {
        return fail("inputs", &inputs, expected);
    }
    let seconds = json!((played.now_ms - START_MS) as f64 / 1_000.0);
    if let Some(expected) = case["seconds"].as_f64()
        && seconds.as_f64() != Some(expected)
    {
        return fail("seconds", &seconds, &json!(expected));
    }
    for (kind, expected) in case["details"].as_object().into_iter().flatten() {
        let found = played
            .history
            .iter()
            .find(|event| event.kind.name() == kind)
            .map(|event| serde_json::to_value(event).expect("an event is JSON"));
        let found = found.unwrap_or_default();
        if !contains(&found, expected) {
            return fail(kind, &found, expected);
        }
    }
    Ok(())
}

/// A task's input without what is made by chance: where a ResultWriter writes.
fn without_chance(input: &Value) -> Value {
    let mut input = input.clone();
    if let Some(members) = input.as_object_mut().filter(|members| members.contains_key("Results")) {
        members.retain(|key, _| !matches!(key.as_str(), "Folder" | "MapRunArn"));
    }
    input
}

#[test]
fn cases_give_what_they_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine_cases");
    let (mut failed, mut count) = (Vec::new(), 0);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder of cases").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file of cases");
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for case in &cases {
            count += 1;
            let caught = std::panic::catch_unwind(|| check(&name, case));
            match caught {
                Ok(Ok(())) => {}
                Ok(Err(message)) => failed.push(message),
                Err(_) => failed.push(format!("{name}: {}: panicked", case["name"])),
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count} cases failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count >= 120, "only {count} cases");
}
