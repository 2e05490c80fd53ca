//! `speculation` of standard workflows: their executions go ahead of themselves as express ones do, and are in the journal as if they did not.

use crate::durable::{execution, machine, printed, wait_for_end};
use crate::eventually;
use crate::kv::{Redis, ask};
use crate::outbox::Asked;
use crate::transactions::{function, on_every_store};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::server::Server;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A step that does what the input has for it.
fn step(number: usize, next: Option<&str>) -> Value {
    let mut step = json!({
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": { "FunctionName": "t", "Request": { "Method": "POST", "Path": "/", "Body.$": format!("$.lines[{number}]") } },
        "ResultSelector": { "text.$": "$.Payload" },
        "ResultPath": format!("$.step{number}"),
    });
    match next {
        Some(next) => step["Next"] = json!(next),
        None => step["End"] = json!(true),
    }
    step
}

/// Four steps, one after the other. Where the second one has failed to find a key, the third one is left out.
fn chain() -> Value {
    machine(
        "S0",
        &json!({
            "S0": step(0, Some("S1")),
            "S1": step(1, Some("Which")),
            "Which": { "Type": "Choice", "Choices": [{ "Variable": "$.step1.text", "StringMatches": "error*", "Next": "S3" }], "Default": "S2" },
            "S2": step(2, Some("S3")),
            "S3": step(3, None),
        }),
    )
}

/// A server with the chain as two workflows, with and without speculation.
fn serve(folder: &Path, kv: &Value, level: &str, functions: &Value) -> Server {
    let path = folder.join("workflow.asl.json");
    fs::write(&path, chain().to_string()).expect("write a definition");
    let workflow = |name: &str, level: &str| json!({ "name": name, "path": path, "type": "standard", "speculation": level });
    let workflows = [workflow("ahead", level), workflow("plain", "off")];
    Server::start(json!({ "kv": kv, "workers": 2, "functions": functions, "workflows": workflows }))
}

/// Has an execution of that name end. Its output, and how long it took.
#[track_caller]
fn run(server: &Server, workflow: &str, name: &str, lines: &[&str; 4]) -> (Value, Duration) {
    let (began, path) = (Instant::now(), format!("/{workflow}?name={name}"));
    let body = json!({ "lines": lines }).to_string();
    let reply = server.client().try_post(&path, body.as_bytes(), &[("prefer", "wait=60")]).expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    (reply.json(), began.elapsed())
}

/// The events of an execution, without times.
fn events(server: &Server, workflow: &str, name: &str) -> Vec<Value> {
    let told = server.admin().get(&format!("/workflows/{workflow}/executions/{name}/history")).json();
    let mut events = told["events"].as_array().unwrap_or_else(|| panic!("{told}")).clone();
    for event in &mut events {
        event.as_object_mut().expect("an object").remove("timestamp").expect("a time");
    }
    events
}

#[test]
fn steps_run_at_the_same_time_and_the_history_is_that_of_one_after_the_other() {
    on_every_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve(folder.path(), &store["kv"], "paths", &json!([function("t", json!({}))]));
        let lines = ["pause 1000\nset a 1", "pause 1000\nadd n 1\nget n", "pause 1000\nset c 1", "pause 1000\nget c"];
        let (plain, one_by_one) = run(&server, "plain", "p", &lines);
        assert!(one_by_one >= Duration::from_secs(4), "{one_by_one:?}");
        // How long steps take, and how their answers look, is learned first.
        for number in 0..3 {
            run(&server, "ahead", &format!("learns-{number}"), &lines);
        }
        // A machine that is busy with others may hold one execution up.
        let explained = |name: &str| -> Value {
            serde_json::from_str(&printed(&server, &["workflow", "explain", "ahead", name, "--json"])).expect("JSON")
        };
        let results = |told: &Value| -> Vec<String> {
            let runs = told["runs"].as_array().expect("runs").iter();
            runs.map(|run| run["result"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let went_ahead = |number: usize| {
            ask(&server.client(), "/t", "set n 0");
            let name = format!("one-{number}");
            let (output, took) = run(&server, "ahead", &name, &lines);
            let told = explained(&name);
            // The function is pinned when the first step calls it, since only inputs name it; in Redis it is not, since there is no folder for that.
            let results = results(&told);
            let wanted = results.len() == 4 && results.ends_with(&["adopted", "adopted"].map(str::to_owned));
            println!("{took:?} beside {one_by_one:?}: {told:#}");
            (took + Duration::from_secs(1) <= one_by_one && wanted).then_some((name, output, told))
        };
        let (name, output, told) = (0..5).find_map(went_ahead).expect("steps run at the same time");
        // Its last step reads what one before it has written, whether that is committed or not.
        let text = |output: &Value| output.to_string().replace("own ", "stored ").replace("role/ahead", "role/plain");
        assert_eq!(text(&output), text(&plain));
        let [ahead, alone] = [events(&server, "ahead", &name), events(&server, "plain", "p")]
            .map(|events| events.iter().map(text).collect::<Vec<_>>());
        assert_eq!(ahead, alone);
        assert_eq!(told["outcome"], "succeeded");
        server.stop();
    });
}

/// What a step logs that was begun and is not wanted is never logged.
#[test]
fn a_step_that_is_not_wanted_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let kv = json!(folder.path().join("kv.redb"));
    let server = serve(folder.path(), &kv, "paths", &json!([function("t", json!({}))]));
    for number in 0..4 {
        run(&server, "ahead", &format!("e{number}"), &["set a 1", "get a\npause 100", "get a", "get a"]);
    }
    // The third step is expected, and would trap. On a busy machine it may not have begun in time.
    let dropped = |number: usize| {
        let name = format!("wrong-{number}");
        run(&server, "ahead", &name, &["delete a", "get a\npause 500", "set trapped 1\ntrap", "get b"]);
        let told = printed(&server, &["workflow", "explain", "ahead", &name, "--json"]);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        println!("{told:#}");
        let third: Vec<&Value> = told["runs"].as_array().expect("runs").iter().filter(|run| run["state"] == "S2").collect();
        let dropped = third.iter().all(|run| run["result"] == "dropped");
        assert!(dropped, "{told:#}");
        // Only what is expected begins: after an execution in which it was wrong it has to be learned anew.
        (0..4).for_each(|again| {
            run(&server, "ahead", &format!("again-{number}-{again}"), &["set a 1", "get a\npause 100", "get a", "get a"]);
        });
        third.len() == 1
    };
    assert!((0..5).any(dropped), "the third step was never begun");
    assert!(!server.log().contains("unreachable"), "{}", server.log());
    assert_eq!(ask(&server.client(), "/t", "get trapped"), ["error 44"]);
    server.stop();
}

const EXECUTIONS: usize = 12;

/// Steps that leave something under names of the execution's own, count themselves, and ask another server behind their commit.
fn lines(number: usize, peer: &Asked) -> [String; 4] {
    [
        format!("get shared\npause 40\nset p{number} 1\nadd n 1"),
        format!("get p{number}\npause 40\nset q{number} 1\nadd n 1"),
        format!("pause 40\nget q{number}\nset r{number} 1\nadd n 1\nget shared"),
        format!("get r{number}\npost http://{}/ {number}\nadd n 1", peer.address()),
    ]
}

fn over_kills(kv: &Value, level: &str) {
    let (peer, folder) = (Asked::start(200), tempfile::tempdir().expect("a folder"));
    let start = || serve(folder.path(), kv, level, &json!([function("t", peer.hosts())]));
    let begin = |server: &Server, workflow: &str, number: usize| {
        let body = json!({ "lines": lines(number, &peer) }).to_string();
        let reply = server.client().post(&format!("/{workflow}?name=e{number}"), body);
        assert_eq!(reply.status, 202, "{kv}: {}", reply.text());
    };
    let mut server = start();
    ask(&server.client(), "/t", "set shared 0");
    // Of executions that nothing disturbs.
    for number in 100..103 {
        begin(&server, "ahead", number);
        assert_eq!(wait_for_end(&server, "ahead", &format!("e{number}"))["status"], "SUCCEEDED");
    }
    let calm = events(&server, "ahead", "e100");
    for (round, pause_ms) in [60, 130, 250].into_iter().enumerate() {
        for number in (0..EXECUTIONS).filter(|number| number % 3 == round) {
            begin(&server, "ahead", number);
        }
        // Others change what they read.
        ask(&server.client(), "/t", &format!("set shared {round}"));
        thread::sleep(Duration::from_millis(pause_ms));
        server.signal(Signal::KILL);
        server.wait(TIME_MAX);
        server = start();
    }
    for number in 0..EXECUTIONS {
        let name = format!("e{number}");
        let ended = wait_for_end(&server, "ahead", &name);
        assert_eq!(ended["status"], "SUCCEEDED", "{kv}, {level}: {ended}");
        for step in 1..=2 {
            let text = ended["output"][format!("step{step}")]["text"].as_str().unwrap_or_default().to_owned();
            assert!(text.contains("stored 1\n") || text.contains("own 1\n"), "{kv}, {level}: {ended}");
        }
        let kinds = |events: &[Value]| events.iter().map(|event| event["type"].clone()).collect::<Vec<_>>();
        assert_eq!(kinds(&events(&server, "ahead", &name)), kinds(&calm), "{kv}, {level}: {name}");
        assert_eq!(execution(&server, "ahead", &name)["status"], "SUCCEEDED");
    }
    let counted = ask(&server.client(), "/t", "get n");
    assert_eq!(counted, [format!("stored {}", 4 * (EXECUTIONS + 3))], "{kv}, {level}: each step counts once");
    eventually("what was left behind is asked for", || {
        let bodies: BTreeSet<Vec<u8>> = peer.came().into_iter().map(|(_, body)| body).collect();
        (0..EXECUTIONS).all(|number| bodies.contains(number.to_string().as_bytes()))
    });
    let keys: BTreeSet<String> = peer.came().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), EXECUTIONS + 3, "{kv}, {level}: each has been asked for by one key");
    server.stop();
}

#[test]
fn executions_end_as_without_kills_and_each_step_counts_once() {
    let (folder, redis) = (tempfile::tempdir().expect("a folder"), Redis::start());
    for level in ["outputs", "skips"] {
        over_kills(&json!(folder.path().join(format!("{level}.redb"))), level);
        over_kills(&json!(redis.url()), level);
        redis.ask("FLUSHALL");
    }
}
