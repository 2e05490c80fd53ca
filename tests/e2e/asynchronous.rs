//! Calls whose clients do not wait for the reply, and workflows with limits.

use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Reply, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;

use crate::{entry_with, eventually};

/// A server with these functions, whose calls are kept in a file of the folder.
fn serve(folder: &Path, functions: &[Value]) -> Server {
    Server::start(json!({ "kv": folder.join("kv.redb"), "workers": 2, "functions": functions }))
}

fn task(asynchronous: &Value) -> Value {
    entry_with("task", "task.c", &json!({ "asynchronous": asynchronous, "deadline_ms": 20_000 }))
}

/// Asks for a call, for whose reply the client does not wait.
fn ask(server: &Server, path: &str, body: &[u8], headers: &[(&str, &str)]) -> Reply {
    let headers = [&[("prefer", "respond-async")], headers].concat();
    server.client().try_post(path, body, &headers).expect("a reply")
}

/// The id of a call that was taken.
#[track_caller]
fn taken(reply: &Reply) -> String {
    assert_eq!((reply.status, reply.header("preference-applied")), (202, Some("respond-async")), "{reply:?}");
    reply.json()["execution"].as_str().expect("an id").to_owned()
}

fn call(server: &Server, function: &str, id: &str) -> Value {
    server.admin().get(&format!("/workflows/fn:{function}/executions/{id}")).json()
}

fn end_of(server: &Server, function: &str, id: &str) -> Value {
    eventually(id, || !["RUNNING", "QUEUED"].map(Value::from).contains(&call(server, function, id)["status"]));
    call(server, function, id)
}

fn printed(server: &Server, arguments: &[&str]) -> String {
    let mut command = sledge_command(arguments);
    command.arg("--admin").arg(server.folder().join("admin.sock"));
    let finished = process::run(&mut command, b"", TIME_MAX);
    assert_eq!(finished.code(), 0, "{arguments:?}: {finished:?}");
    finished.text().trim_end().to_owned()
}

#[test]
fn a_client_does_not_wait_and_the_function_gets_all_of_its_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let head = entry_with("head", "head.c", &json!({ "asynchronous": {}, "methods": ["POST", "PUT"] }));
    let server = serve(folder.path(), &[head, entry_with("plain", "head.c", &json!({})), task(&json!({}))]);
    let lines = b"method\ntarget\nheader x-a\n";
    let reply = ask(&server, "/head?b=%20c", lines, &[("x-a", "1")]);
    let ended = end_of(&server, "head", &taken(&reply));
    assert_eq!((&ended["status"], &ended["output"]), (&json!("SUCCEEDED"), &json!("POST\n/head?b=%20c\n1\n")), "{ended}");
    assert_eq!(ended["input"]["Headers"]["x-a"], "1");
    // The body is the same byte for byte, also if it is no text.
    for body in [&b"  { \"a\" : 1.50 }\n"[..], b"\xff\xfe\x00", b""] {
        let ended = end_of(&server, "task", &taken(&ask(&server, "/task", body, &[])));
        let same = if body.starts_with(b" ") { json!({ "a": 1.5 }) } else { Value::from(String::from_utf8_lossy(body)) };
        assert_eq!(ended["output"], if body.is_empty() { Value::Null } else { same }, "{ended}");
    }
    // Preferences of others, and functions that have no such calls.
    let waited = server.client().try_post("/head", lines, &[("prefer", "wait=10")]).expect("a reply");
    assert_eq!((waited.status, waited.text().lines().next()), (200, Some("POST")));
    assert_eq!(ask(&server, "/plain", lines, &[]).text().lines().next(), Some("POST"));
    let both = server.client().try_post("/task", b"1", &[("prefer", "handling=lenient, Respond-Async")]).expect("a reply");
    taken(&both);
    // More than a request may have.
    assert_eq!(ask(&server, "/task", &vec![b'x'; 300_000], &[]).status, 413);
    server.stop();
}

#[test]
fn a_request_that_is_repeated_with_its_key_is_one_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &[task(&json!({}))]);
    let again = |body: &[u8], moment: &str| ask(&server, "/task", body, &[("idempotency-key", "order-1"), ("date", moment)]);
    let first = taken(&again(b"\"count k\"", "1"));
    assert_eq!((first.as_str(), taken(&again(b"\"count k\"", "2"))), ("order-1", first.clone()));
    assert_eq!(end_of(&server, "task", &first)["output"], 1);
    assert_eq!(taken(&again(b"\"count k\"", "3")), first, "also when it is done");
    let other = again(b"\"count x\"", "1");
    assert_eq!((other.status, &other.json()["code"]), (409, &json!("execution_exists")));
    let odd = ask(&server, "/task", b"1", &[("idempotency-key", "a b")]);
    assert_eq!((odd.status, &odd.json()["code"]), (400, &json!("bad_name")));
    assert_eq!(server.client().post("/task", "\"count k\"").text(), "2");
    server.stop();
}

#[test]
fn a_call_that_fails_is_repeated_and_then_told_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let failing = |name: &str, more: Value| {
        let mut asynchronous = json!({ "retry_after_s": 1, "retries": 2 });
        more.as_object().expect("an object").iter().for_each(|(key, value)| asynchronous[key] = value.clone());
        entry_with(name, "task.c", &json!({ "asynchronous": asynchronous }))
    };
    let functions = [
        failing("flaky", json!({})),
        failing("dead", json!({ "retries": 0 })),
        failing("told", json!({ "retries": 1, "on_failure": "letters" })),
        entry_with("letters", "echo.wat", &json!({})),
    ];
    let server = serve(folder.path(), &functions);
    // It fails twice.
    let flaky = taken(&ask(&server, "/flaky", b"\"flaky\"", &[]));
    let dead = taken(&ask(&server, "/dead", b"\"crash\"", &[]));
    let told = taken(&ask(&server, "/told?x=1", b"\"refuse\"", &[]));
    let ended = end_of(&server, "dead", &dead);
    assert_eq!((&ended["status"], &ended["error"]), (&json!("FAILED"), &json!("Runtime.ExitError")), "{ended}");
    assert!(printed(&server, &["workflow", "list", "fn:dead", "--status", "failed"]).contains(&dead));
    printed(&server, &["workflow", "redrive", "fn:dead", &dead]);
    eventually("it failed again", || call(&server, "dead", &dead)["status"] == "FAILED");
    let history = printed(&server, &["workflow", "history", "fn:dead", &dead]);
    assert_eq!(history.matches("TaskScheduled").count(), 2, "{history}");
    let ended = end_of(&server, "told", &told);
    assert_eq!((&ended["status"], &ended["error"]), (&json!("FAILED"), &json!("Refused")), "{ended}");
    let history = server.admin().get(&format!("/workflows/fn:told/executions/{told}/history")).json();
    let letter = history["events"].as_array().expect("events").iter().find(|event| event["type"] == "LambdaFunctionSucceeded");
    let letter =
        letter.expect("the call of `letters`")["lambdaFunctionSucceededEventDetails"]["output"].as_str().expect("output");
    let letter: Value = serde_json::from_str(letter).expect("JSON");
    assert_eq!((&letter["function"], &letter["error"]), (&json!("told"), &json!("Refused")), "{letter}");
    assert_eq!((&letter["request"]["Path"], &letter["request"]["Body"]), (&json!("/told?x=1"), &json!("\"refuse\"")));
    assert!(letter["cause"].as_str().expect("a cause").contains("not today"), "{letter}");
    let ended = end_of(&server, "flaky", &flaky);
    assert_eq!((&ended["status"], &ended["output"]), (&json!("SUCCEEDED"), &json!({ "times": 3 })), "{ended}");
    server.stop();
}

#[test]
fn calls_that_were_taken_are_made_once_over_kills() {
    const CALLS: usize = 60;
    let folder = tempfile::tempdir().expect("a folder");
    let functions = [task(&json!({ "running_max": 8 }))];
    let mut server = serve(folder.path(), &functions);
    let ids: Vec<_> = (0..CALLS).map(|_| taken(&ask(&server, "/task", b"\"count k\"", &[]))).collect();
    for pause_ms in [1, 30, 5, 60] {
        thread::sleep(Duration::from_millis(pause_ms));
        server.signal(Signal::KILL);
        server.wait(TIME_MAX);
        server = serve(folder.path(), &functions);
    }
    for id in &ids {
        assert_eq!(end_of(&server, "task", id)["status"], "SUCCEEDED");
    }
    assert_eq!(server.client().post("/task", "\"count k\"").text(), (CALLS + 1).to_string());
    server.stop();
}

#[test]
fn workflows_with_limits_have_queues_that_can_be_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("slow.json");
    let definition = json!({ "StartAt": "W", "States": { "W": { "Type": "Wait", "SecondsPath": "$.seconds", "End": true } } });
    fs::write(&path, definition.to_string()).expect("write a definition");
    let limits = json!({ "key": "$.customer", "running_max": 1 });
    let workflow = json!({ "name": "slow", "path": path, "type": "standard", "limits": limits });
    let config = json!({ "kv": folder.path().join("kv.redb"), "functions": [task(&json!({}))], "workflows": [workflow] });
    let server = Server::start(config.clone());
    let start = |name: &str, customer: &str, seconds: u32| {
        let input = json!({ "customer": customer, "seconds": seconds }).to_string();
        server.client().post(&format!("/slow?name={name}"), input).json()["status"].clone()
    };
    // Those that run do so until they are stopped.
    let statuses = [start("a1", "a", 600), start("a2", "a", 1), start("b1", "b", 600), start("a3", "a", 600)];
    assert_eq!(statuses, ["RUNNING", "QUEUED", "RUNNING", "QUEUED"]);
    assert_eq!(printed(&server, &["workflow", "queues", "slow"]), "key  running  queued\na    1        2\nb    1        0");
    let queued = printed(&server, &["workflow", "list", "slow", "--status", "queued"]);
    assert_eq!(queued.lines().skip(1).map(|line| &line[..2]).collect::<Vec<_>>(), ["a3", "a2"]);
    let metrics = server.admin().get("/metrics").text();
    for (name, value) in [("open", 4), ("queued", 2)] {
        assert!(metrics.contains(&format!("sledge_executions_{name} {value}\n")), "{name}: {metrics}");
    }
    for name in ["a3", "a1", "b1"] {
        printed(&server, &["workflow", "stop", "slow", name]);
    }
    let ended = printed(&server, &["workflow", "start", "slow", r#"{"customer": "a", "seconds": 0}"#, "--wait"]);
    assert_eq!(ended, r#"{"customer":"a","seconds":0}"#, "it was the third of its customer");
    assert!(printed(&server, &["workflow", "queues", "slow"]).lines().count() == 1);
    let long = server.client().post("/slow", json!({ "customer": "x".repeat(300) }).to_string());
    assert_eq!((long.status, &long.json()["code"]), (400, &json!("bad_key")));
    server.stop();
}

#[test]
fn what_is_wrong_with_a_configuration_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("w.json"), json!({ "StartAt": "S", "States": { "S": { "Type": "Succeed" } } }).to_string())
        .expect("write a definition");
    let file = folder.path().join("sledge.json");
    let check = |config: Value| {
        fs::write(&file, config.to_string()).expect("write");
        process::run(sledge_command(&["config", "check"]).arg(&file), b"", TIME_MAX)
    };
    let of_function = |asynchronous: Value| json!({ "kv": "kv.redb", "functions": [task(&asynchronous)] });
    let of_workflow = |kind: &str, limits: Value| json!({ "kv": "kv.redb", "functions": [], "workflows": [{ "name": "w", "path": "w.json", "type": kind, "limits": limits }] });
    for (config, words) in [
        (json!({ "functions": [task(&json!({}))] }), "functions[0].asynchronous: there is no key-value store"),
        (of_function(json!({ "retries": 101 })), "functions[0].asynchronous.retries: 101 is out of range"),
        (of_function(json!({ "retry_after_s": 0 })), "functions[0].asynchronous.retry_after_s: 0 is out of range"),
        (of_function(json!({ "running_max": 0 })), "functions[0].asynchronous.running_max: 0 is out of range"),
        (of_function(json!({ "on_failure": "task" })), "functions[0].asynchronous.on_failure: is the function itself"),
        (of_function(json!({ "on_failure": "a b" })), "functions[0].asynchronous.on_failure: `a b` is not a valid name"),
        (of_function(json!({ "retry": 1 })), "unknown key `retry` at functions[0].asynchronous"),
        (of_workflow("standard", json!({})), "workflows[0].limits: nothing is limited"),
        (of_workflow("express", json!({ "running_max": 1 })), "workflows[0].limits: express executions are not queued"),
        (of_workflow("standard", json!({ "running_max": 0 })), "workflows[0].limits.running_max: 0 is out of range"),
        (of_workflow("standard", json!({ "starts_max": 1, "period_s": 0 })), "workflows[0].limits.period_s: 0 is out of range"),
        (
            of_workflow("standard", json!({ "starts_max": 1, "key": "customer" })),
            "workflows[0].limits.key: `customer` is no path",
        ),
        (of_workflow("standard", json!({ "starts_max": 1, "key": "$.a[*]" })), "is not a path to one place of the input"),
        (
            of_workflow("standard", json!({ "starts_max": 1, "key": "$$.Execution.Id" })),
            "is not a path to one place of the input",
        ),
    ] {
        let checked = check(config.clone());
        assert!(checked.code() == 1 && checked.stderr.contains(words), "{words}: {config}: {checked:?}");
    }
    assert_eq!(check(of_workflow("standard", json!({ "starts_max": 1, "key": "$.a.b" }))).code(), 0);
}
