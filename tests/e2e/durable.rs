//! Durable executions of workflows: over HTTP, from the command line, over restarts and kills.

use crate::{entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Reply, TIME_MAX};
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// A task that counts how often it is done, under a key of its own.
fn count(key: &str, next: Option<&str>) -> Value {
    let mut state = json!({ "Type": "Task", "Resource": "fn:task", "Parameters": format!("count {key}"), "ResultPath": null });
    match next {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    state
}

pub(crate) fn machine(first: &str, states: &Value) -> Value {
    json!({ "StartAt": first, "States": states })
}

/// Each step takes a moment, so that a kill meets many of them.
pub(crate) fn chain() -> Value {
    machine(
        "A",
        &json!({
            "A": count("a", Some("B")),
            "B": { "Type": "Task", "Resource": "kv:add", "Parameters": { "Key": "b" }, "ResultPath": null, "Next": "C" },
            "C": { "Type": "Parallel", "Branches": [machine("C1", &json!({ "C1": count("c", None) })), machine("C2", &json!({ "C2": count("c", None) }))],
                   "ResultPath": null, "Next": "D" },
            "D": { "Type": "Wait", "Seconds": 1, "Next": "E" },
            "E": count("e", None),
        }),
    )
}

/// The configuration of a server whose executions are in a file of the folder.
pub(crate) fn config(folder: &Path, workflows: &[(&str, Value)], more: &Value) -> Value {
    let entries: Vec<_> = workflows
        .iter()
        .map(|(name, definition)| {
            let path = folder.join(format!("{name}.json"));
            fs::write(&path, definition.to_string()).expect("write a definition");
            json!({ "name": name, "path": path, "type": "standard" })
        })
        .collect();
    let functions = [entry_with("task", "task.c", &json!({ "deadline_ms": 20_000 })), entry_with("kv", "kv.c", &json!({}))];
    let mut config = json!({ "kv": folder.join("kv.redb"), "workers": 2, "functions": functions, "workflows": entries });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    config
}

pub(crate) fn serve(folder: &Path, workflows: &[(&str, Value)]) -> Server {
    Server::start(config(folder, workflows, &json!({})))
}

pub(crate) fn start(server: &Server, path: &str, input: &Value) -> Reply {
    server.client().post(path, input.to_string())
}

/// What a command comes to that asks a server.
pub(crate) fn sledge(server: &Server, arguments: &[&str]) -> Finished {
    let mut command = sledge_command(arguments);
    command.arg("--admin").arg(server.folder().join("admin.sock"));
    process::run(&mut command, b"", TIME_MAX)
}

#[track_caller]
pub(crate) fn printed(server: &Server, arguments: &[&str]) -> String {
    let finished = sledge(server, arguments);
    assert_eq!(finished.code(), 0, "{arguments:?}: {finished:?}");
    finished.text().trim_end().to_owned()
}

pub(crate) fn execution(server: &Server, workflow: &str, name: &str) -> Value {
    server.admin().get(&format!("/workflows/{workflow}/executions/{name}")).json()
}

#[track_caller]
pub(crate) fn wait_for_end(server: &Server, workflow: &str, name: &str) -> Value {
    eventually(name, || execution(server, workflow, name)["status"] != "RUNNING");
    execution(server, workflow, name)
}

/// What the store holds under a key.
pub(crate) fn number(server: &Server, key: &str) -> String {
    server.client().post("/task", format!("\"count {key}\"")).text()
}

#[test]
fn a_client_starts_an_execution_and_may_wait_for_its_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let pass = machine("P", &json!({ "P": { "Type": "Pass", "Parameters": { "got.$": "$.x" }, "End": true } }));
    let fail = machine("F", &json!({ "F": { "Type": "Fail", "Error": "No", "Cause": "not today" } }));
    let slow = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 60, "End": true } }));
    let server = serve(folder.path(), &[("pass", pass), ("fail", fail), ("slow", slow)]);
    let reply = start(&server, "/pass?name=one", &json!({ "x": 7 }));
    assert_eq!(reply.status, 202, "{}", reply.text());
    let told = reply.json();
    assert_eq!(told["execution"], "one");
    assert_eq!(told["executionArn"], "arn:aws:states:local:default:execution:pass:one");
    let ended = wait_for_end(&server, "pass", "one");
    assert_eq!(
        (&ended["status"], &ended["input"], &ended["output"]),
        (&json!("SUCCEEDED"), &json!({ "x": 7 }), &json!({ "got": 7 }))
    );
    let exists = start(&server, "/pass?name=one", &json!({ "x": 7 }));
    assert_eq!((exists.status, &exists.json()["code"]), (409, &json!("execution_exists")));
    let bad = start(&server, "/pass?name=a%20b", &json!({}));
    assert_eq!((bad.status, &bad.json()["code"]), (400, &json!("bad_name")));
    // Clients that wait.
    let waits = |path: &str, seconds: &str| {
        let prefer = format!("respond-async, wait={seconds}");
        server.client().try_post(path, json!({ "x": 8 }).to_string().as_bytes(), &[("prefer", &prefer)]).expect("an answer")
    };
    let reply = waits("/pass", "30");
    assert_eq!((reply.status, reply.json()), (200, json!({ "got": 8 })));
    let reply = waits("/fail", "30");
    assert_eq!((reply.status, &reply.json()["error"], &reply.json()["cause"]), (500, &json!("No"), &json!("not today")));
    let reply = waits("/slow?name=s", "1");
    assert_eq!((reply.status, &reply.json()["execution"]), (202, &json!("s")), "it goes on");
    assert_eq!(execution(&server, "slow", "s")["status"], "RUNNING");
    server.stop();
}

#[test]
fn executions_end_as_without_kills_and_each_effect_is_there_once() {
    const EXECUTIONS: usize = 40;
    let folder = tempfile::tempdir().expect("a folder");
    let workflows = [("chain", chain())];
    let mut server = serve(folder.path(), &workflows);
    for number in 0..EXECUTIONS {
        assert_eq!(start(&server, &format!("/chain?name=e{number}"), &json!({ "n": number })).status, 202);
    }
    for pause_ms in [3, 40, 150, 700, 20] {
        thread::sleep(Duration::from_millis(pause_ms));
        server.signal(Signal::KILL);
        server.wait(TIME_MAX);
        server = serve(folder.path(), &workflows);
    }
    for number in 0..EXECUTIONS {
        let ended = wait_for_end(&server, "chain", &format!("e{number}"));
        assert_eq!((&ended["status"], &ended["output"]["n"]), (&json!("SUCCEEDED"), &json!(number)), "{ended}");
    }
    let counts = ["a", "b", "c", "e"].map(|key| number(&server, key));
    // Each with the one that asks.
    let wanted = [1, 1, 2, 1].map(|each| (each * EXECUTIONS + 1).to_string());
    assert_eq!(counts, wanted);
    server.stop();
}

#[test]
fn a_server_that_stops_hands_its_executions_on_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let workflows = [("chain", chain())];
    let server = serve(folder.path(), &workflows);
    for number in 0..20 {
        assert_eq!(start(&server, &format!("/chain?name=e{number}"), &json!({})).status, 202);
    }
    let begun = Instant::now();
    server.stop();
    // A server that waited for them would be killing by then.
    assert!(begun.elapsed() < Duration::from_secs(10), "what waits does not hold it up: {:?}", begun.elapsed());
    let server = serve(folder.path(), &workflows);
    for number in 0..20 {
        assert_eq!(wait_for_end(&server, "chain", &format!("e{number}"))["status"], "SUCCEEDED");
    }
    assert_eq!((number(&server, "a"), number(&server, "e")), ("21".to_owned(), "21".to_owned()));
    server.stop();
}

#[test]
fn operators_start_watch_and_stop_executions() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = json!({ "do": "nothing", "token.$": "$$.Task.Token" });
    let asks = machine(
        "Ask",
        &json!({ "Ask": { "Type": "Task", "Resource": "fn:task.waitForTaskToken", "Parameters": token, "TimeoutSeconds": 600, "End": true } }),
    );
    let refused = machine("R", &json!({ "R": { "Type": "Task", "Resource": "fn:task", "Parameters": "refuse", "End": true } }));
    let server = serve(folder.path(), &[("chain", chain()), ("asks", asks), ("refused", refused)]);
    let list = printed(&server, &["workflow", "list"]);
    assert!(list.contains("chain") && list.contains("standard"), "{list}");
    assert_eq!(printed(&server, &["workflow", "start", "chain", r#"{"x": 1}"#, "--name", "one", "--wait"]), r#"{"x":1}"#);
    let failed = sledge(&server, &["workflow", "start", "refused", "--name", "no", "--wait"]);
    assert_eq!(failed.code(), 1);
    assert!(failed.stderr.contains("FAILED: Refused"), "{failed:?}");
    let driven = printed(&server, &["workflow", "redrive", "refused", "no"]);
    assert_eq!(driven, "no goes on");
    let listed = printed(&server, &["workflow", "list", "chain", "--status", "succeeded"]);
    assert!(listed.contains("one") && listed.contains("SUCCEEDED"), "{listed}");
    let shown: Value = serde_json::from_str(&printed(&server, &["workflow", "show", "chain", "one"])).expect("JSON");
    assert_eq!((&shown["status"], &shown["input"]), (&json!("SUCCEEDED"), &json!({ "x": 1 })));
    let history = printed(&server, &["workflow", "history", "chain", "one"]);
    let types: Vec<&str> = history.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!((types.first(), types.last()), (Some(&"ExecutionStarted"), Some(&"ExecutionSucceeded")), "{history}");
    assert!(types.contains(&"ParallelStateStarted") && types.contains(&"LambdaFunctionSucceeded"), "{history}");
    // A task that waits for its answer.
    printed(&server, &["workflow", "start", "asks", "--name", "a"]);
    let given = || {
        let history = server.admin().get("/workflows/asks/executions/a/history").text();
        Some(history.split("\\\"token\\\":\\\"").nth(1)?.split('\\').next()?.to_owned())
    };
    eventually("the task is asked for", || given().is_some());
    let given = given().expect("a token");
    assert_eq!(printed(&server, &["workflow", "callback", &given, "--heartbeat"]), "the task was told");
    assert_eq!(printed(&server, &["workflow", "callback", &given, "--output", r#"{"paid": true}"#]), "the task was told");
    assert_eq!(wait_for_end(&server, "asks", "a")["output"], json!({ "paid": true }));
    let late = sledge(&server, &["workflow", "callback", &given, "--output", "1"]);
    assert!(late.code() == 1 && late.stderr.contains("no task waits with that token"), "{late:?}");
    // One that is stopped.
    printed(&server, &["workflow", "start", "asks", "--name", "b"]);
    assert_eq!(printed(&server, &["workflow", "stop", "asks", "b", "--error", "Enough"]), "b is ABORTED");
    assert_eq!(execution(&server, "asks", "b")["error"], "Enough");
    for (arguments, words) in [
        (&["workflow", "show", "chain", "none"][..], "there is no execution of that name"),
        (&["workflow", "start", "none"], "there is no workflow of that name"),
        (&["workflow", "start", "chain", "--name", "one"], "there is an execution of that name already"),
        (&["workflow", "redrive", "chain", "one"], "it has succeeded"),
        (&["workflow", "start", "chain", "{x"], "the JSON that was given is wrong"),
        (&["workflow", "list", "chain", "--status", "odd"], "give one of QUEUED, RUNNING"),
    ] {
        let finished = sledge(&server, arguments);
        assert!(finished.code() == 1 && finished.stderr.contains(words), "{arguments:?}: {finished:?}");
    }
    server.stop();
}

#[test]
fn a_changed_definition_is_for_new_executions() {
    let folder = tempfile::tempdir().expect("a folder");
    let version = |word: &str| {
        machine(
            "W",
            &json!({ "W": { "Type": "Wait", "Seconds": 2, "Next": "P" }, "P": { "Type": "Pass", "Result": word, "End": true } }),
        )
    };
    let server = serve(folder.path(), &[("w", version("before"))]);
    assert_eq!(start(&server, "/w?name=old", &json!({})).status, 202);
    fs::write(folder.path().join("w.json"), version("after").to_string()).expect("write");
    server.signal(Signal::HUP);
    server.wait_for_log("workflows changed");
    assert_eq!(start(&server, "/w?name=new", &json!({})).status, 202);
    // Also by a server that has never seen the earlier one.
    server.stop();
    let server = serve(folder.path(), &[("w", version("after"))]);
    assert_eq!(wait_for_end(&server, "w", "old")["output"], "before");
    assert_eq!(wait_for_end(&server, "w", "new")["output"], "after");
    server.stop();
}

#[test]
fn schedules_start_workflows_and_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let ticks = machine("T", &json!({ "T": count("ticks", None) }));
    let schedules = json!({ "schedules": [
        { "name": "each-second", "expression": "rate(1 second)", "workflow": "ticks" },
        { "name": "call", "expression": "rate(1 second)", "function": "task", "input": "count calls" },
        { "name": "never", "expression": "at(2020-01-01T00:00:00)", "workflow": "ticks", "zone": "Europe/Berlin" },
    ] });
    let config = |schedules: &Value| config(folder.path(), &[("ticks", ticks.clone())], schedules);
    let server = Server::start(config(&schedules));
    let listed = |workflow: &str| {
        let listed = server.admin().get(&format!("/workflows/{workflow}/executions?status=succeeded")).json();
        let names =
            listed["executions"].as_array().expect("a list").iter().map(|one| one["name"].as_str().expect("a name").to_owned());
        names.collect::<Vec<_>>()
    };
    eventually("both have run twice", || listed("ticks").len() >= 2 && listed("fn:task").len() >= 2);
    let names = listed("ticks");
    assert!(names.iter().all(|name| name.starts_with("each-second-2")), "{names:?}");
    server.stop();
    // What was missed is made up for, once.
    thread::sleep(Duration::from_millis(2_500));
    let catch_up = json!({ "schedules": [{ "name": "each-second", "expression": "rate(1 second)", "workflow": "ticks", "catch_up": "all" }] });
    let before = names.len();
    let server = Server::start(config(&catch_up));
    let count = || server.admin().get("/workflows/ticks/executions?max=1000").json()["executions"].as_array().map_or(0, Vec::len);
    eventually("times that were missed", || count() >= before + 3);
    server.stop();
}

/// Another server: answers each request with what its head and body were, and what it was asked.
fn other_server() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let address = listener.local_addr().expect("an address").to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    // It ends with the test.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, seen) = (stream.expect("a connection"), Arc::clone(&seen));
            thread::spawn(move || answer(BufReader::new(stream), &seen));
        }
    });
    (address, asked)
}

fn answer(mut stream: BufReader<TcpStream>, seen: &Mutex<Vec<String>>) {
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while stream.read_line(&mut head).is_ok_and(|bytes| bytes > 2) {}
        if head.is_empty() {
            return;
        }
        for line in head.lines() {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        let status = if head.starts_with("GET /missing") { "404 Not Found" } else { "200 OK" };
        let answer = json!({ "got": String::from_utf8_lossy(&body) }).to_string();
        seen.lock().expect("no panic").push(head);
        let reply = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nx-own: 1\r\n\r\n{answer}", answer.len());
        stream.get_mut().write_all(reply.as_bytes()).expect("answer");
    }
}

#[test]
fn tasks_are_requests_to_other_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, asked) = other_server();
    let invoke = |path: &str| json!({ "ApiEndpoint": format!("http://{address}{path}"), "Method": "GET", "Headers": { "X-Word": "hello" } });
    let definition = machine(
        "Post",
        &json!({
            "Post": { "Type": "Task", "Resource": format!("http://{address}/orders"), "ResultPath": "$.posted", "Next": "Get" },
            "Get": { "Type": "Task", "Resource": "arn:aws:states:::http:invoke", "Parameters": invoke("/there"), "ResultPath": "$.got", "Next": "Missing" },
            "Missing": { "Type": "Task", "Resource": "arn:aws:states:::http:invoke", "Parameters": invoke("/missing"),
                         "Catch": [{ "ErrorEquals": ["States.Http.StatusCode.404"], "ResultPath": "$.missing", "Next": "Elsewhere" }], "End": true },
            "Elsewhere": { "Type": "Task", "Resource": "http://127.0.0.1:1/", "Catch": [{ "ErrorEquals": ["States.ALL"], "ResultPath": "$.elsewhere", "Next": "Done" }], "End": true },
            "Done": { "Type": "Pass", "End": true },
        }),
    );
    let mut config = config(folder.path(), &[("asks", definition)], &json!({}));
    config["workflows"][0]["http_hosts"] = json!([address]);
    let mut express = config["workflows"][0].clone();
    (express["name"], express["type"]) = (json!("express"), json!("express"));
    config["workflows"].as_array_mut().expect("a list").push(express);
    let server = Server::start(config);
    assert_eq!(start(&server, "/asks?name=one", &json!({ "x": 1 })).status, 202);
    let ended = wait_for_end(&server, "asks", "one");
    // Only errors of States.Runtime's kind are not caught: what is not allowed is one.
    assert_eq!((&ended["status"], &ended["error"]), (&json!("FAILED"), &json!("States.Runtime")), "{ended}");
    assert!(ended["cause"].as_str().expect("a cause").contains("127.0.0.1:1 is not in the workflow's http_hosts"), "{ended}");
    let heads = asked.lock().expect("no panic").clone();
    assert_eq!(heads.len(), 3, "{heads:?}");
    assert!(
        heads[0].starts_with("POST /orders ") && heads[1].starts_with("GET /there ") && heads[1].contains("x-word: hello"),
        "{heads:?}"
    );
    let key = |head: &str| head.lines().find_map(|line| line.strip_prefix("idempotency-key: ").map(str::to_owned));
    let keys: Vec<_> = heads.iter().map(|head| key(head)).collect();
    assert!(keys.iter().all(Option::is_some) && keys[0] != keys[1], "{keys:?}");
    let history = printed(&server, &["workflow", "history", "asks", "one"]);
    assert!(history.contains(r#"\"got\":\"{\\\"x\\\":1}\""#) || history.contains("x-own"), "{history}");
    let failed = start(&server, "/express", &json!({ "x": 2 }));
    assert_eq!((failed.status, &failed.json()["error"]), (500, &json!("States.Runtime")));
    let heads = asked.lock().expect("no panic").clone();
    assert!(heads.len() == 6 && key(&heads[3]).is_none(), "{heads:?}");
    server.stop();
}

#[test]
fn what_is_wrong_with_a_configuration_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let schedules = json!({ "schedules": [
        { "name": "a", "expression": "cron(0 25 * * ? *)", "workflow": "chain" },
        { "name": "b", "expression": "rate(1 day)", "workflow": "none" },
        { "name": "c", "expression": "rate(1 day)" },
    ] });
    let mut config = config(folder.path(), &[("chain", chain())], &schedules);
    config["listen"] = json!("127.0.0.1:0");
    let file = folder.path().join("sledge.json");
    let check = |config: &Value| {
        fs::write(&file, config.to_string()).expect("write");
        process::run(sledge_command(&["config", "check"]).arg(&file), b"", TIME_MAX)
    };
    let checked = check(&config);
    for words in
        ["schedules[0].expression", "schedules[1].workflow", "there is no workflow `none`", "give either workflow or function"]
    {
        assert!(checked.code() == 1 && checked.stderr.contains(words), "{words}: {checked:?}");
    }
    config["schedules"] = json!([]);
    config["kv"] = json!("redis://127.0.0.1:1");
    assert_eq!(check(&config).code(), 0, "executions may be in Redis");
    config.as_object_mut().expect("an object").remove("kv");
    assert!(check(&config).stderr.contains("set `kv` to a file"));
}

#[test]
fn executions_beyond_the_bytes_of_their_tenant_are_refused_until_some_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let pass = machine("P", &json!({ "P": { "Type": "Pass", "End": true } }));
    let server = Server::start(config(folder.path(), &[("pass", pass)], &json!({ "executions_tenant_bytes_max": 100_000 })));
    let begin = |number: usize| start(&server, &format!("/pass?name=e{number}"), &json!({ "text": "x".repeat(2_000) }));
    let mut begun = 0;
    let refused = loop {
        let reply = begin(begun);
        if reply.status != 202 {
            break reply;
        }
        begun += 1;
    };
    assert_eq!((refused.status, &refused.json()["code"]), (429, &json!("executions_tenant_bytes_max")), "{}", refused.text());
    assert!(refused.text().contains("sledge workflow remove"), "{}", refused.text());
    assert!((3..50).contains(&begun), "{begun}");
    let bytes = || {
        let metrics = server.admin().get("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("sledge_executions_stored_bytes{tenant=\"default\"} "));
        line.expect("the metric").parse::<u64>().expect("a number")
    };
    // Those that have begun may go on.
    assert!((50_000..100_000 + 10_000 * begun as u64).contains(&bytes()), "{}", bytes());
    (0..begun).for_each(|number| drop(wait_for_end(&server, "pass", &format!("e{number}"))));
    assert_eq!(printed(&server, &["workflow", "remove", "pass", "e0"]), "e0 is removed");
    let removed = printed(&server, &["workflow", "remove", "pass", "--all", "--status", "succeeded"]);
    assert_eq!(removed, format!("executions removed: {}", begun - 1));
    eventually("nothing is stored", || bytes() == 0);
    assert_eq!(begin(begun).status, 202);
    server.stop();
}
