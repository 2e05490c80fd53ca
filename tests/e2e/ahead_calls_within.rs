//! `speculation` of functions that executions call: their callees begin with them, or need not run, also where the execution goes ahead of itself or is durable. They answer what the same functions answer without,
//! and leave the same in the store.

use crate::ahead::{Store, model, some_lines};
use crate::durable::machine;
use crate::kv::ask;
use crate::transactions::{function, on_every_store};
use serde_json::{Value, json};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::random::Random;
use sledge_tests::server::Server;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const STEPS: usize = 3;
/// Workflows with the same three steps, each by its name, type and speculation.
const WORKFLOWS: [(&str, &str, &str); 4] = [
    ("express", "express", "off"),
    ("express-ahead", "express", "outputs"),
    ("standard", "standard", "off"),
    ("standard-ahead", "standard", "outputs"),
];

/// A step that has a function do what the input has for it. `t` calls others and has `speculation`.
fn step(number: usize) -> Value {
    let mut step = json!({
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": { "FunctionName.$": "$.function", "Request": { "Method": "POST", "Path": "/", "Body.$": format!("$.lines[{number}]") } },
        "ResultSelector": { "text.$": "$.Payload" },
        "ResultPath": format!("$.step{number}"),
    });
    if number + 1 < STEPS {
        step["Next"] = json!(format!("S{}", number + 1));
    } else {
        step["End"] = json!(true);
    }
    step
}

/// A server with those workflows and a function with that level, which calls `u`; `plain` has none, and calls `u`, too.
fn serve(folder: &Path, kv: &Value, level: &str) -> Server {
    let path = folder.join("workflow.asl.json");
    let states: Value = (0..STEPS).map(|number| (format!("S{number}"), step(number))).collect::<serde_json::Map<_, _>>().into();
    fs::write(&path, machine("S0", &states).to_string()).expect("write a definition");
    let workflow = |(name, of_type, speculation): (&str, &str, &str)| json!({ "name": name, "path": path, "type": of_type, "speculation": speculation });
    let functions = [function("t", json!({ "speculation": level })), function("plain", json!({})), function("u", json!({}))];
    Server::start(json!({ "kv": kv["kv"], "workers": 2, "functions": functions, "workflows": WORKFLOWS.map(workflow) }))
}

/// What an execution of these lines says, step by step.
#[track_caller]
fn run(client: &Client, workflow: &str, function: &str, lines: &[String]) -> Vec<String> {
    let body = json!({ "function": function, "lines": lines }).to_string();
    let reply = client.try_post(&format!("/{workflow}"), body.as_bytes(), &[("prefer", "wait=60")]).expect("an answer");
    assert_eq!(reply.status, 200, "{workflow}: {}", reply.text());
    let output = reply.json();
    let text = |step| output[format!("step{step}")]["text"].as_str().map(|text| text.trim_end().to_owned());
    // A value that an earlier step has written may be one of the transaction's own.
    (0..STEPS).map(|step| text(step).expect("a text").replace("own ", "stored ")).collect()
}

/// How many runs have come to that.
fn runs(server: &Server, result: &str) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let name = format!("sledge_speculative_runs_total{{tenant=\"default\",result=\"{result}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

/// The first step calls three functions, each of which takes a second.
#[test]
fn what_a_step_calls_begins_with_the_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &json!({ "kv": "memory" }), "calls");
    let address = server.address;
    thread::scope(|scope| {
        for (workflow, ..) in WORKFLOWS {
            scope.spawn(move || {
                let client = Client::new(address, TIME_MAX);
                let calls =
                    (0..3).map(|call| format!("invoke u pause 1000;set {workflow}{call} 1")).collect::<Vec<_>>().join("\n");
                let lines = [calls, format!("get {workflow}0"), "get x".to_owned()];
                let took = |function: &str| {
                    let began = Instant::now();
                    let told = run(&client, workflow, function, &lines);
                    assert_eq!(told, ["paused;set;\npaused;set;\npaused;set;", "stored 1", "error 44"]);
                    began.elapsed()
                };
                let plain = took("plain");
                assert!(plain >= Duration::from_secs(3), "{workflow}: {plain:?}");
                // What is called, and how long that takes, is learned first. Where the machine is busy nothing is begun ahead for a while.
                crate::fastest_below(workflow, Duration::from_secs(2), || took("t"));
            });
        }
    });
    server.stop();
}

/// What a step with such lines answers: a line that begins with `invoke` is done by a callee.
fn in_order(store: &mut Store, lines: &str) -> String {
    let each = |line: &str| match line.strip_prefix("invoke u ") {
        Some(lines) => lines.split(';').map(|line| model(store, line) + ";").collect(),
        None => model(store, line),
    };
    lines.lines().map(each).collect::<Vec<String>>().join("\n")
}

#[test]
fn steps_that_call_answer_and_leave_what_they_do_without() {
    answer_and_leave_what_they_do_without("calls");
}

#[test]
fn steps_whose_callees_are_left_out_answer_and_leave_what_they_do_without() {
    answer_and_leave_what_they_do_without("skips");
}

fn answer_and_leave_what_they_do_without(level: &str) {
    on_every_store(|kv| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve(folder.path(), kv, level);
        let client = server.client();
        let (mut store, mut random) = (Store::new(), Random::new(23, "calls within"));
        let call = |random: &mut Random, reads: bool| {
            let lines = if reads { format!("get k{}\nget k{}", random.below(4), random.below(4)) } else { some_lines(random) };
            format!("invoke u {}", lines.replace('\n', ";"))
        };
        // The same few steps again and again, so that it is known what they call, and what that replies.
        let steps: Vec<String> = (0..9)
            .map(|step| {
                let reads = step % 3 > 0;
                let parts = [call(&mut random, reads), some_lines(&mut random), call(&mut random, reads)];
                parts[..if step % 2 == 0 { 3 } else { 1 }].join("\n")
            })
            .collect();
        let end = Instant::now() + TIME_MAX;
        // As many rounds as it takes.
        for round in (0..).take_while(|round| *round < 120 || level == "skips" && runs(&server, "skipped") == 0) {
            assert!(Instant::now() < end, "{kv}: nothing is left out");
            // Others change what callees have read.
            if random.below(4) == 0 {
                let line = some_lines(&mut random);
                line.lines().for_each(|line| drop(model(&mut store, line)));
                assert_eq!(client.post("/plain", line).status, 200);
            }
            let (workflow, ..) = WORKFLOWS[random.below(4) as usize];
            let lines: Vec<String> = (0..STEPS).map(|_| random.pick(&steps).clone()).collect();
            let expected: Vec<String> = lines.iter().map(|lines| in_order(&mut store, lines)).collect();
            assert_eq!(run(&client, workflow, "t", &lines), expected, "{kv}, {workflow}, round {round}: {lines:?}");
        }
        let keys: Vec<String> = (0..4).map(|key| format!("get k{key}")).collect();
        let left: Vec<String> = keys.iter().map(|line| model(&mut store, line)).collect();
        assert_eq!(ask(&client, "/plain", &keys.join("\n")), left, "{kv}");
        let skipped = runs(&server, "skipped");
        assert_eq!(skipped > 0, level == "skips", "{kv}: {skipped}");
        server.stop();
    });
}

/// Money is moved by callees of steps, and by other clients, at the same time: it never gets more or less, also between two callees or two steps.
#[test]
fn steps_that_call_at_the_same_time_are_one_after_the_other() {
    on_every_store(|kv| {
        for level in ["calls", "skips"] {
            let folder = tempfile::tempdir().expect("a folder");
            let server = serve(folder.path(), kv, level);
            let accounts = (0..4).map(|account| format!("set a{account} 100")).collect::<Vec<_>>().join("\n");
            ask(&server.client(), "/plain", &accounts);
            let address = server.address;
            let some_accounts = |random: &mut Random| {
                let from = random.below(4);
                (from, (from + 1 + random.below(3)) % 4)
            };
            thread::scope(|scope| {
                scope.spawn(move || {
                    let (client, mut random) = (Client::new(address, TIME_MAX), Random::new(9, "accounts"));
                    for _ in 0..20 {
                        let (from, to) = some_accounts(&mut random);
                        assert_eq!(ask(&client, "/plain", &format!("move a{from} a{to} 1 1")), ["moved"]);
                    }
                });
                for (number, (workflow, ..)) in WORKFLOWS.into_iter().enumerate() {
                    scope.spawn(move || {
                        let (client, mut random) = (Client::new(address, TIME_MAX), Random::new(number as u64, "accounts"));
                        for _ in 0..10 {
                            let (from, to) = some_accounts(&mut random);
                            let lines = [
                                "invoke u total 4 1\ninvoke u total 4 0".to_owned(),
                                format!("invoke u move a{from} a{to} 1 1\ninvoke u total 4 0"),
                                "invoke u total 4 1".to_owned(),
                            ];
                            let told = run(&client, workflow, "t", &lines);
                            assert_eq!(told, ["total 400;\ntotal 400;", "moved;\ntotal 400;", "total 400;"], "{kv}, {workflow}");
                        }
                    });
                }
            });
            assert_eq!(ask(&server.client(), "/plain", "total 4 0"), ["total 400"]);
            server.stop();
        }
    });
}
