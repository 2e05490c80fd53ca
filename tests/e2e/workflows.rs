//! Workflows: real functions in the order that a definition says, over HTTP.

use crate::{assert_failure, entry_with, eventually, fastest_below};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Client, Reply, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

fn task(resource: &str, more: &Value) -> Value {
    let mut state = json!({ "Type": "Task", "Resource": resource, "End": true });
    for (key, value) in more.as_object().expect("an object") {
        if key == "Next" {
            state.as_object_mut().expect("an object").remove("End");
        }
        state[key] = value.clone();
    }
    state
}

fn machine(first: &str, states: Value) -> Value {
    json!({ "StartAt": first, "States": states })
}

/// A server with workflows, each by its name, and the function `task`. Their files are in the folder.
struct Served {
    server: Server,
    folder: tempfile::TempDir,
}

fn write(folder: &Path, name: &str, definition: &Value) {
    fs::write(folder.join(format!("{name}.json")), definition.to_string()).expect("write a definition");
}

fn serve_with(more: &Value, workflows: &[(&str, Value)]) -> Served {
    let folder = tempfile::tempdir().expect("a folder");
    let entries: Vec<_> = workflows
        .iter()
        .map(|(name, definition)| {
            write(folder.path(), name, definition);
            let mut entry = json!({ "name": name, "path": folder.path().join(format!("{name}.json")) });
            for (key, value) in more.as_object().expect("an object") {
                entry[key] = value.clone();
            }
            entry
        })
        .collect();
    let functions = [entry_with("task", "task.c", &json!({ "route": "/task", "deadline_ms": 20_000 }))];
    let server = Server::start(json!({ "kv": "memory", "workers": 2, "functions": functions, "workflows": entries }));
    Served { server, folder }
}

fn serve(workflows: &[(&str, Value)]) -> Served {
    serve_with(&json!({}), workflows)
}

impl Served {
    fn start(&self, name: &str, input: &Value) -> Reply {
        self.server.client().post(&format!("/{name}"), input.to_string())
    }

    #[track_caller]
    fn output(&self, name: &str, input: &Value) -> Value {
        let reply = self.start(name, input);
        assert_eq!(reply.status, 200, "{reply:?}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"));
        reply.json()
    }

    #[track_caller]
    fn error(&self, name: &str, input: &Value) -> (String, String) {
        let reply = self.start(name, input);
        let text = |key: &str| reply.json()[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (reply.status, text("code"), text("workflow")),
            (500, "workflow_failed".to_owned(), name.to_owned()),
            "{}",
            reply.text()
        );
        (text("error"), text("cause"))
    }
}

#[test]
fn what_one_function_replies_is_the_input_of_the_next() {
    let by_path = machine(
        "First",
        json!({
            "First": task("fn:task", &json!({ "Parameters": { "word.$": "$.word", "by": "First" }, "ResultPath": "$.first", "Next": "Which" })),
            "Which": { "Type": "Choice", "Choices": [{ "Variable": "$.first.word", "StringEquals": "short", "Next": "Done" }], "Default": "Second" },
            "Second": task("arn:aws:lambda:eu-west-1:123456789012:function:task", &json!({ "InputPath": "$.first", "OutputPath": "$.by" })),
            "Done": { "Type": "Succeed" },
        }),
    );
    let by_query = json!({
        "QueryLanguage": "JSONata", "StartAt": "First", "States": {
            "First": { "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Arguments": { "FunctionName": "task", "Payload": { "sum": "{% $states.input.a + $states.input.b %}" } },
                       "Assign": { "sum": "{% $states.result.Payload.sum %}" }, "Output": "{% $states.result.Payload %}", "Next": "Which" },
            "Which": { "Type": "Choice", "Choices": [{ "Condition": "{% $sum > 10 %}", "Next": "Large" }], "Default": "Small" },
            "Large": { "Type": "Pass", "Output": { "large": "{% $sum %}" }, "End": true },
            "Small": { "Type": "Fail", "Error": "TooSmall", "Cause": "{% 'only ' & $string($sum) %}" },
        }
    });
    let served = serve(&[("by_path", by_path), ("by_query", by_query)]);
    let short = json!({ "word": "short", "z": 1, "a": 2 });
    assert_eq!(
        served.output("by_path", &short),
        json!({ "word": "short", "z": 1, "a": 2, "first": { "word": "short", "by": "First" } })
    );
    assert_eq!(
        served.start("by_path", &short).text(),
        r#"{"word":"short","z":1,"a":2,"first":{"word":"short","by":"First"}}"#,
        "in its order"
    );
    assert_eq!(served.output("by_path", &json!({ "word": "long" })), json!("First"));
    assert_eq!(served.output("by_query", &json!({ "a": 7, "b": 8 })), json!({ "large": 15 }));
    assert_eq!(served.error("by_query", &json!({ "a": 1, "b": 2 })), ("TooSmall".to_owned(), "only 3".to_owned()));
    eventually("all are counted", || {
        let metrics = served.server.admin().get("/metrics").text();
        let lines = metrics.lines().filter_map(|line| line.strip_prefix("sledge_workflow_requests_total{"));
        lines.filter_map(|line| line.split(' ').next_back()?.parse::<u64>().ok()).sum::<u64>() == 5
    });
    served.server.stop();
}

#[test]
fn failures_have_names_are_tried_again_and_caught() {
    let catches = |names: &[&str]| {
        let catch = json!([{ "ErrorEquals": names, "ResultPath": "$.caught", "Next": "Caught" }]);
        machine(
            "Try",
            json!({ "Try": task("fn:task", &json!({ "Catch": catch })), "Caught": { "Type": "Pass", "OutputPath": "$.caught", "End": true } }),
        )
    };
    let retry = json!([{ "ErrorEquals": ["Flaky"], "IntervalSeconds": 1, "BackoffRate": 1.0, "MaxAttempts": 3 }]);
    let served = serve(&[
        ("plain", machine("Try", json!({ "Try": task("fn:task", &json!({})) }))),
        ("refused", catches(&["Refused"])),
        ("all", catches(&["States.ALL"])),
        ("again", machine("Try", json!({ "Try": task("fn:task", &json!({ "Retry": retry })) }))),
        ("missing", machine("Try", json!({ "Try": task("fn:absent", &json!({})) }))),
    ]);
    assert_eq!(served.output("refused", &json!({ "do": "refuse" }))["Error"], "Refused");
    let (error, cause) = served.error("plain", &json!("refuse"));
    assert_eq!((error.as_str(), cause.contains("not today")), ("Refused", true), "{cause}");
    assert_eq!(served.error("plain", &json!("plain")), ("Http.Status.503".to_owned(), "come back later".to_owned()));
    let (error, cause) = served.error("plain", &json!("crash"));
    assert_eq!((error.as_str(), cause.contains("unreachable")), ("Runtime.ExitError", true), "{cause}");
    assert_eq!(served.error("refused", &json!({ "do": "crash" })).0, "Runtime.ExitError", "that is not caught");
    assert_eq!(served.output("all", &json!({ "do": "crash" }))["Error"], "Runtime.ExitError");
    let (error, cause) = served.error("missing", &json!({}));
    assert_eq!((error.as_str(), cause.contains("absent")), ("Lambda.ResourceNotFoundException", true), "{cause}");
    let began = Instant::now();
    assert_eq!(served.output("again", &json!("flaky")), json!({ "times": 3 }));
    assert!(began.elapsed() >= Duration::from_secs(2), "it waits between attempts");
    served.server.stop();
}

#[test]
fn branches_and_items_run_at_the_same_time() {
    let named = |name: &str| machine(name, json!({ name: task("fn:task", &json!({})) }));
    let slow = || named("Slow");
    let parallel = machine(
        "Both",
        json!({ "Both": { "Type": "Parallel", "Branches": [slow(), named("Slower"), machine("P", json!({ "P": { "Type": "Pass", "Result": 7, "End": true } }))], "End": true } }),
    );
    let map = machine(
        "Each",
        json!({ "Each": { "Type": "Map", "ItemsPath": "$.words", "ItemProcessor": slow(), "MaxConcurrency": 2, "End": true } }),
    );
    let fails = machine(
        "Both",
        json!({ "Both": { "Type": "Parallel", "Branches": [machine("Never", json!({ "Never": task("fn:task", &json!({ "Parameters": "never" })) })), slow()], "End": true } }),
    );
    let served = serve(&[("parallel", parallel), ("map", map), ("fails", fails)]);
    // One after the other they would take 600 ms.
    fastest_below("two at the same time", Duration::from_millis(580), || {
        let began = Instant::now();
        assert_eq!(served.output("parallel", &json!("slow")), json!(["done", "done", 7]));
        began.elapsed()
    });
    // One after the other they would take 900 ms.
    let took = fastest_below("two at the same time", Duration::from_millis(890), || {
        let began = Instant::now();
        let words = json!({ "words": ["slow", "slow", "slow", 4] });
        assert_eq!(served.output("map", &words), json!(["done", "done", "done", 4]));
        began.elapsed()
    });
    assert!(took >= Duration::from_millis(590), "more than two at the same time: {took:?}");
    // What fails ends what runs beside it.
    let began = Instant::now();
    assert_eq!(served.error("fails", &json!("refuse")).0, "Refused");
    assert!(began.elapsed() < Duration::from_secs(10));
    served.server.stop();
}

#[test]
fn time_is_limited_for_a_task_and_for_the_whole() {
    let never =
        json!({ "Parameters": "never", "TimeoutSeconds": 1, "Catch": [{ "ErrorEquals": ["States.Timeout"], "Next": "Late" }] });
    let served = serve_with(
        &json!({ "deadline_ms": 8_000 }),
        &[
            (
                "late",
                machine(
                    "Never",
                    json!({ "Never": task("fn:task", &never), "Late": { "Type": "Pass", "Result": "late", "End": true } }),
                ),
            ),
            ("whole", machine("Wait", json!({ "Wait": { "Type": "Wait", "Seconds": 3_000_000, "End": true } }))),
            ("short", machine("Wait", json!({ "Wait": { "Type": "Wait", "Seconds": 1, "End": true } }))),
        ],
    );
    assert_eq!(served.output("late", &json!({})), json!("late"));
    let began = Instant::now();
    assert_eq!(served.output("short", &json!(5)), json!(5));
    assert!(began.elapsed() >= Duration::from_secs(1));
    let reply = served.start("whole", &json!({}));
    assert_eq!((reply.status, reply.json()["code"].as_str()), (504, Some("deadline")), "{}", reply.text());
    served.server.stop();
}

#[test]
fn the_store_and_other_workflows_are_tasks_too() {
    let add = machine(
        "Add",
        json!({ "Add": task("kv:add", &json!({ "Parameters": { "Key": "n", "Value.$": "$.by" }, "Next": "Set" })),
        "Set": task("kv:set", &json!({ "Parameters": { "Bucket": "b", "Key": "last", "Value.$": "$" }, "Next": "Get" })),
        "Get": task("kv:get", &json!({ "Parameters": { "Bucket": "b", "Key": "last" }, "Next": "Delete" })),
        "Delete": task("kv:delete", &json!({ "Parameters": { "Bucket": "b", "Key": "last" }, "ResultPath": null, "Next": "Gone" })),
        "Gone": task("kv:get", &json!({ "Parameters": { "Bucket": "b", "Key": "last" }, "ResultPath": "$.gone" })) }),
    );
    let twice = machine(
        "One",
        json!({ "One": task("workflow:add", &json!({ "ResultPath": "$.one", "Next": "Two" })), "Two": task("workflow:add", &json!({})) }),
    );
    let deep = machine("Down", json!({ "Down": task("workflow:deep", &json!({})) }));
    let served = serve(&[
        ("add", add),
        ("twice", twice),
        ("deep", deep),
        ("bad", machine("Add", json!({ "Add": task("kv:add", &json!({ "Parameters": { "Key": "word" } })) }))),
    ]);
    assert_eq!(
        served.output("add", &json!({ "by": 5 })),
        json!({ "Value": { "Value": 5 }, "Found": true, "gone": { "Value": null, "Found": false } })
    );
    assert_eq!(served.output("twice", &json!({ "by": 1 }))["Value"], json!({ "Value": 7 }));
    let (error, cause) = served.error("deep", &json!({}));
    assert_eq!((error.as_str(), cause.contains("wait for each other")), ("States.Runtime", true), "{cause}");
    served.server.stop();
}

#[test]
fn what_a_client_does_wrong_is_said_and_one_that_leaves_ends_its_execution() {
    let served = serve(&[(
        "w",
        machine(
            "Never",
            json!({ "Never": task("fn:task", &json!({ "Next": "Count" })), "Count": task("kv:add", &json!({ "Parameters": { "Key": "after" } })) }),
        ),
    )]);
    let client = served.server.client();
    assert_failure(&client.post("/w", "{"), 400, "bad_request", "input_not_json", None);
    let reply = client.get("/w");
    assert_failure(&reply, 405, "method_not_allowed", "see_allow", None);
    assert_eq!(reply.header("allow"), Some("POST"));
    let large = json!("x".repeat(300_000));
    assert_eq!(served.error("w", &large).0, "States.DataLimitExceeded");
    assert_eq!(served.output("w", &json!({ "a": 1 })), json!({ "Value": 1 }));
    let impatient = Client::new(served.server.address, Duration::from_secs(3));
    assert!(impatient.try_post("/w", b"\"never\"", &[]).is_err());
    // Its function is gone with it, and nothing comes behind it.
    let is_cancelled =
        |line: &str| line.starts_with("sledge_requests_total{") && line.contains("cancelled") && line.ends_with(" 1");
    eventually("the call is given up", || served.server.admin().get("/metrics").text().lines().any(is_cancelled));
    assert_eq!(served.output("w", &json!({ "a": 1 })), json!({ "Value": 2 }));
    served.server.stop();
}

#[test]
fn a_definition_with_mistakes_is_quarantined_and_served_when_it_is_mended() {
    let good = machine("P", json!({ "P": { "Type": "Pass", "End": true } }));
    let bad = machine("P", json!({ "P": { "Type": "Pass", "Next": "Q" }, "R": { "Type": "Pass", "End": true, "Ends": 1 } }));
    let callback = machine("C", json!({ "C": task("fn:task.waitForTaskToken", &json!({})) }));
    let served = serve(&[("good", good.clone()), ("bad", bad), ("callback", callback)]);
    assert_eq!(served.output("good", &json!(1)), json!(1));
    let client = served.server.client();
    assert_failure(&client.post("/bad", "1"), 503, "quarantined", "quarantined", None);
    assert_failure(&client.post("/callback", "1"), 503, "quarantined", "quarantined", None);
    let ready = served.server.admin().get("/readyz");
    for words in ["workflow bad", "States.P.Next", "workflow callback", ".waitForTaskToken"] {
        assert!(ready.text().contains(words), "{words}: {}", ready.text());
    }
    // What is wrong is said before a server starts, too.
    let path = |name: &str| served.folder.path().join(format!("{name}.json"));
    let check = |name: &str| process::run(sledge_command(&["workflow", "check"]).arg(path(name)), b"", TIME_MAX);
    let done = check("bad");
    assert!(
        done.code() == 1 && done.stderr.contains("bad.json:1:") && done.stderr.contains("States.R.Ends"),
        "all at once: {}",
        done.stderr
    );
    assert!(check("good").text().contains("good; states: 1"));
    write(served.folder.path(), "bad", &good);
    write(served.folder.path(), "callback", &good);
    served.server.signal(Signal::HUP);
    eventually("both are served", || ["bad", "callback"].iter().all(|name| client.post(&format!("/{name}"), "2").status == 200));
    eventually("nothing is wrong", || !served.server.admin().get("/readyz").text().contains("workflow"));
    served.server.stop();
}

#[test]
fn workflows_have_names_and_routes_of_their_own() {
    let check = |workflows: Value| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sledge.json");
        write(folder.path(), "w", &machine("P", json!({ "P": { "Type": "Pass", "End": true } })));
        let functions = [entry_with("task", "task.c", &json!({}))];
        fs::write(&file, json!({ "functions": functions, "workflows": workflows }).to_string()).expect("write the configuration");
        let done = process::run(sledge_command(&["config", "check"]).arg(&file), b"", TIME_MAX);
        (done.code(), done.stderr)
    };
    assert_eq!(
        check(json!([{ "name": "w", "path": "w.json" }, { "name": "w", "path": "w.json", "tenant": "other", "route": "/o" }])),
        (0, String::new())
    );
    for (workflows, words) in [
        (json!([{ "name": "task", "path": "w.json" }]), "workflows[0].route: `/task` is also used by functions[0]"),
        (
            json!([{ "name": "w", "path": "w.json" }, { "name": "w", "path": "w.json", "route": "/x" }]),
            "workflows[1].name: `w` is also used by workflows[0]",
        ),
        (json!([{ "name": "a b", "path": "w.json" }]), "workflows[0].name"),
        (json!([{ "name": "w", "path": "none.json" }]), "workflow w: "),
        (json!([{ "name": "w", "path": "w.json", "deadline_ms": 0 }]), "workflows[0].deadline_ms: 0 is out of range"),
        (json!([{ "name": "w", "path": "w.json", "deadlines": 0 }]), "unknown key `deadlines` at workflows[0]"),
    ] {
        let (code, stderr) = check(workflows.clone());
        assert!(code == 1 && stderr.contains(words), "{workflows}: {stderr}");
    }
}

#[test]
fn workflows_are_tested_and_drawn_without_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let definition = machine(
        "Charge",
        json!({
            "Charge": task("fn:charge", &json!({ "Retry": [{ "ErrorEquals": ["Busy"], "IntervalSeconds": 60, "MaxAttempts": 2 }], "Next": "Wait" })),
            "Wait": { "Type": "Wait", "Seconds": 31_536_000, "Next": "Ship" },
            "Ship": task("fn:ship", &json!({})),
        }),
    );
    write(folder.path(), "order", &definition);
    let suite = |expected: Value| {
        let charge = json!([{ "error": "Busy" }, { "return": { "paid": true } }]);
        let case =
            json!({ "name": "busy once", "mocks": { "Charge": charge, "Ship": { "return": "sent" } }, "expect": expected });
        write(folder.path(), "order.test", &json!({ "workflow": "order.json", "cases": [case] }));
        let began = Instant::now();
        let done = process::run(sledge_command(&["workflow", "test"]).arg(folder.path().join("order.test.json")), b"", TIME_MAX);
        assert!(began.elapsed() < Duration::from_secs(30), "a year takes no time");
        (done.code(), done.text().to_owned(), done.stderr)
    };
    let (code, out, error) = suite(json!({ "output": "sent", "calls": { "Charge": 2 }, "elapsed_s": 31_536_060 }));
    assert!(code == 0 && out.contains("busy once ... ok") && out.contains("1 passed, 0 failed"), "{out}{error}");
    let (code, out, error) = suite(json!({ "output": "lost" }));
    assert!(
        code == 1 && out.contains("0 passed, 1 failed") && error.contains("expected \"lost\"") && error.contains("sent"),
        "{out}{error}"
    );
    let (code, _, error) = suite(json!({ "outputs": 1 }));
    assert!(code == 1 && error.contains("outputs") && error.contains("order.test.json:1:"), "{error}");

    let file = folder.path().join("order.json");
    let drawn = process::run(sledge_command(&["workflow", "draw"]).arg(&file), b"", TIME_MAX).text().to_owned();
    for words in ["Charge · Task", "Wait · Wait", "Ship · Task", "(end)"] {
        assert!(drawn.contains(words), "{drawn}");
    }
    let svg = folder.path().join("order.svg");
    assert_eq!(process::run(sledge_command(&["workflow", "draw"]).arg(&file).arg("--svg").arg(&svg), b"", TIME_MAX).code(), 0);
    let svg = fs::read_to_string(&svg).expect("it is written");
    assert!(svg.starts_with("<svg") && svg.contains("Charge"), "{svg}");
}

/// Many at the same time, on both workers, each with tasks at the same time.
#[test]
fn many_executions_at_the_same_time_do_not_mix() {
    let each = machine("T", json!({ "T": task("fn:task", &json!({ "Next": "U" })), "U": task("fn:task", &json!({})) }));
    let map = machine("Each", json!({ "Each": { "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": each, "End": true } }));
    let served = serve(&[("map", map)]);
    let address = served.server.address;
    thread::scope(|scope| {
        for client in 0..8_u64 {
            scope.spawn(move || {
                let http = Client::new(address, TIME_MAX);
                for round in 0..20_u64 {
                    let items: Vec<_> = (0..10_u64).map(|item| json!({ "id": client * 1_000 + round * 10 + item })).collect();
                    let reply = http.post("/map", json!({ "items": items }).to_string());
                    assert_eq!((reply.status, reply.json()), (200, json!(items)));
                }
            });
        }
    });
    served.server.stop();
}
