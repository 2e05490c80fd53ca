//! Executions of a server that become tests, which run without one; and Maps over the key-value store.

use crate::durable::{machine, printed, serve, sledge, start, wait_for_end};
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::sledge_command;
use std::fs;
use std::path::Path;

fn task(input: &Value, more: &Value) -> Value {
    let mut state = json!({ "Type": "Task", "Resource": "fn:task", "Parameters": input, "End": true });
    for (key, value) in more.as_object().expect("an object") {
        if key == "Next" {
            state.as_object_mut().expect("an object").remove("End");
        }
        state[key] = value.clone();
    }
    state
}

/// Tries again, chooses, and does things at the same time.
fn order() -> Value {
    let retry = json!([{ "ErrorEquals": ["Flaky"], "IntervalSeconds": 1, "BackoffRate": 1.0, "MaxAttempts": 3 }]);
    machine(
        "Charge",
        &json!({
            "Charge": task(&json!("flaky"), &json!({ "Retry": retry, "ResultPath": "$.charge", "Next": "Paid" })),
            "Paid": { "Type": "Choice", "Choices": [{ "Variable": "$.charge.times", "NumericGreaterThan": 2, "Next": "Each" }], "Default": "Refused" },
            "Refused": { "Type": "Fail", "Error": "Refused" },
            "Each": { "Type": "Map", "ItemsPath": "$.items", "ResultPath": "$.counts", "Next": "Both",
                      "ItemProcessor": machine("Count", &json!({ "Count": { "Type": "Task", "Resource": "fn:task", "Parameters": { "item.$": "$" }, "End": true } })) },
            "Both": { "Type": "Parallel", "ResultPath": "$.both", "Next": "Rest",
                      "Branches": [machine("Slow", &json!({ "Slow": task(&json!("slow"), &json!({})) })), machine("Echo", &json!({ "Echo": task(&json!({ "a": 1 }), &json!({})) }))] },
            "Rest": { "Type": "Wait", "Seconds": 1, "Next": "Done" },
            "Done": { "Type": "Succeed" },
        }),
    )
}

fn test(file: &Path) -> Finished {
    process::run(sledge_command(&["workflow", "test"]).arg(file), b"", TIME_MAX)
}

#[test]
fn an_execution_becomes_a_test_that_a_changed_definition_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &[("order", order())]);
    let input = json!({ "items": ["a", "b", "c"] });
    assert_eq!(start(&server, "/order?name=one", &input).status, 202);
    let ended = wait_for_end(&server, "order", "one");
    assert_eq!(ended["status"], "SUCCEEDED", "{ended}");
    let definition = server.admin().get("/workflows/order/executions/one/definition").json();
    assert_eq!(definition["definition"], json!(order().to_string()));
    let out = folder.path().join("one.test.json");
    let path = out.to_str().expect("a path").to_owned();
    let told = printed(&server, &["workflow", "record", "order", "one", "--out", &path]);
    assert!(told.contains("one.test.json") && told.contains("one.asl.json"), "{told}");
    server.stop();
    // Without a server.
    let done = test(&out);
    assert!(done.code() == 0 && done.text().contains("1 passed, 0 failed"), "{done:?}");
    let recorded: Value = serde_json::from_str(&fs::read_to_string(&out).expect("a test file")).expect("JSON");
    let case = &recorded["cases"][0];
    assert_eq!(case["mocks"]["Charge"].as_array().map(Vec::len), Some(3), "two errors and an answer");
    assert_eq!((&case["input"], &case["expect"]["output"]), (&input, &ended["output"]));
    let events = case["expect"]["events"].as_object().expect("events");
    assert!(["top", "Each[0]", "Each[1]", "Each[2]", "Both[0]", "Both[1]"].iter().all(|place| events.contains_key(*place)));
    // Another definition: the test says where it differs.
    let own = folder.path().join("one.asl.json");
    let changed = |change: &dyn Fn(&mut Value), told: &str| {
        let mut source = order();
        change(&mut source);
        fs::write(&own, source.to_string()).expect("write");
        let done = test(&out);
        assert!(done.code() == 1 && done.stderr.contains(told), "{told}: {done:?}");
    };
    changed(
        &|source| source["States"]["Charge"]["Retry"][0]["MaxAttempts"] = json!(1),
        "expected the status SUCCEEDED, found FAILED: Flaky",
    );
    changed(
        &|source| source["States"]["Paid"]["Choices"][0]["NumericGreaterThan"] = json!(5),
        "found FailStateEntered \"Refused\"",
    );
    changed(&|source| source["States"]["Both"]["ResultPath"] = json!("$.all"), "ParallelStateExited \"Both\": output: $.both");
    fs::write(&own, order().to_string()).expect("write");
    assert_eq!(test(&out).code(), 0);
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let waits = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 600, "End": true } }));
    let server = serve(folder.path(), &[("waits", waits)]);
    assert_eq!(start(&server, "/waits?name=one", &json!({})).status, 202);
    let out = folder.path().join("own.test.json").to_str().expect("a path").to_owned();
    let refused = |words: &str| {
        let done = sledge(&server, &["workflow", "record", "waits", "one", "--out", &out]);
        assert!(done.code() == 1 && done.stderr.contains(words), "{words}: {done:?}");
    };
    refused("the execution has not ended");
    printed(&server, &["workflow", "stop", "waits", "one", "--error", "Enough"]);
    fs::write(&out, "mine").expect("write");
    refused("the file exists");
    assert_eq!(fs::read_to_string(&out).expect("read"), "mine");
    fs::remove_file(&out).expect("remove");
    printed(&server, &["workflow", "record", "waits", "one", "--out", &out]);
    let done = test(Path::new(&out));
    assert!(done.code() == 0, "{done:?}");
    let missing = sledge(&server, &["workflow", "record", "waits", "none"]);
    assert!(missing.code() == 1 && missing.stderr.contains("there is no execution of that name"), "{missing:?}");
    server.stop();
}

#[test]
fn a_map_reads_its_items_from_the_store_and_writes_its_results_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |key: &str, value: Value, next: &str| json!({ "Type": "Task", "Resource": "kv:set", "Parameters": { "Key": key, "Value": value }, "ResultPath": null, "Next": next });
    let processor = machine("P", &json!({ "P": { "Type": "Pass", "Parameters": { "got.$": "$.Value" }, "End": true } }));
    let map = json!({ "Type": "Map", "End": true, "ItemProcessor": processor,
        "ItemReader": { "Resource": "kv:scan", "Parameters": { "Prefix": "in/" } },
        "ResultWriter": { "Resource": "kv:set", "Parameters": { "Prefix": "out" }, "WriterConfig": { "Transformation": "COMPACT" } } });
    let definition =
        machine("A", &json!({ "A": put("in/1", json!("x"), "B"), "B": put("in/2", json!({ "y": 2 }), "M"), "M": map }));
    let server = serve(folder.path(), &[("map", definition)]);
    assert_eq!(start(&server, "/map?name=one", &json!({})).status, 202);
    let ended = wait_for_end(&server, "map", "one");
    let manifest = ended["output"]["ResultWriterDetails"]["Key"].as_str().expect("a key").to_owned();
    assert!(manifest.starts_with("out/one/") && manifest.ends_with("/manifest.json"), "{ended}");
    let told = printed(&server, &["workflow", "history", "map", "one"]);
    assert!(told.contains("resource=scan") && told.contains("in/2"), "{told}");
    server.stop();
    let exported = process::run(sledge_command(&["kv", "export"]).arg(folder.path().join("kv.redb")), b"", TIME_MAX);
    assert!(exported.text().contains("SUCCEEDED_0.json"), "{exported:?}");
}

#[test]
fn executions_are_paused_and_restarted_from_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let slow =
        machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 1, "Next": "F f" }, "F f": { "Type": "Fail", "Error": "No" } }));
    let server = serve(folder.path(), &[("slow", slow)]);
    assert_eq!(printed(&server, &["workflow", "pause", "slow"]), "slow is paused");
    assert!(printed(&server, &["workflow", "list"]).contains("true"));
    assert_eq!(start(&server, "/slow?name=one", &json!({})).status, 202);
    assert!(printed(&server, &["workflow", "list", "slow"]).contains("RUNNING (paused)"));
    assert!(printed(&server, &["workflow", "show", "slow", "one"]).contains("\"paused\": true"));
    assert_eq!(printed(&server, &["workflow", "resume", "slow"]), "slow goes on");
    assert_eq!(wait_for_end(&server, "slow", "one")["error"], "No");
    assert_eq!(printed(&server, &["workflow", "restart", "slow", "one", "--from", "F f"]), "one goes on");
    let ended = wait_for_end(&server, "slow", "one");
    assert_eq!((&ended["status"], &ended["redrives"]), (&json!("FAILED"), &json!(1)));
    for (arguments, words) in [
        (&["workflow", "restart", "slow", "one", "--from", "X"][..], "give an input"),
        (&["workflow", "pause", "slow", "one"], "the execution has ended"),
        (&["workflow", "pause", "none"], "there is no workflow of that name"),
    ] {
        let done = sledge(&server, arguments);
        assert!(done.code() == 1 && done.stderr.contains(words), "{arguments:?}: {done:?}");
    }
    server.stop();
}

#[test]
fn editors_have_a_schema() {
    let done = process::run(&mut sledge_command(&["workflow", "schema"]), b"", TIME_MAX);
    let schema: Value = serde_json::from_str(&done.text()).expect("JSON");
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["required"], json!(["StartAt", "States"]));
    assert!(schema["definitions"]["Map"]["properties"].get("ItemReader").is_some());
}
