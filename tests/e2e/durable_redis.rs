//! Durable executions in Redis: servers that share them, of which one is paused or killed.

use crate::durable::{chain, config, execution, machine, number, start, wait_for_end};
use crate::eventually;
use crate::kv::Redis;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::server::Server;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Longer than the lease of the executions lasts.
const PAUSE: Duration = Duration::from_secs(12);
const TAKEN: &str = "it holds their lease";
const LOST: &str = "has lost the lease";

fn serve(folder: &Path, redis: &Redis, workflows: &[(&str, Value)], more: &Value) -> Server {
    let mut more = more.clone();
    more["kv"] = json!(redis.url());
    Server::start(config(folder, workflows, &more))
}

/// Starts an execution at a server, again where the executions just go over to another one.
#[track_caller]
fn begin(server: &Server, name: &str, input: &Value) {
    eventually(name, || {
        let reply = start(server, &format!("/chain?name={name}"), input);
        match reply.status {
            // 409: an earlier request was carried out, whose answer was lost.
            202 | 409 => true,
            503 => false,
            _ => panic!("{name}: {}: {}", reply.status, reply.text()),
        }
    });
}

#[track_caller]
fn check(server: &Server, count: usize) {
    for number in 0..count {
        let ended = wait_for_end(server, "chain", &format!("e{number}"));
        assert_eq!((&ended["status"], &ended["output"]["n"]), (&json!("SUCCEEDED"), &json!(number)), "{ended}");
    }
    let counts = ["a", "b", "c", "e"].map(|key| number(server, key));
    // Each with the one that asks.
    assert_eq!(counts, [1, 1, 2, 1].map(|each| (each * count + 1).to_string()));
}

#[test]
fn a_server_that_is_paused_for_longer_than_its_lease_does_nothing_twice() {
    const EXECUTIONS: usize = 20;
    let (folder, redis) = (tempfile::tempdir().expect("a folder"), Redis::start());
    let tick =
        machine("T", &json!({ "T": { "Type": "Task", "Resource": "kv:add", "Parameters": { "Key": "ticks" }, "End": true } }));
    let workflows = [("chain", chain()), ("tick", tick)];
    let more = json!({ "schedules": [{ "name": "s", "expression": "rate(1 second)", "workflow": "tick", "catch_up": "all" }] });
    let first = serve(folder.path(), &redis, &workflows, &more);
    first.wait_for_log(TAKEN);
    let second = serve(folder.path(), &redis, &workflows, &more);
    for number in 0..EXECUTIONS {
        begin([&first, &second][number % 2], &format!("e{number}"), &json!({ "n": number }));
    }
    // While tasks are under way, and timers about to run out.
    first.signal(Signal::STOP);
    second.wait_for_log(TAKEN);
    thread::sleep(PAUSE);
    first.signal(Signal::CONT);
    first.wait_for_log(LOST);
    check(&second, EXECUTIONS);
    for number in 0..EXECUTIONS {
        assert_eq!(execution(&first, "chain", &format!("e{number}"))["status"], "SUCCEEDED", "both read the same");
    }
    // Each time of the schedule was one execution, and each of them has added once.
    first.stop();
    second.stop();
    let server = serve(folder.path(), &redis, &workflows, &json!({}));
    let ticks = || {
        let listed = server.admin().get("/workflows/tick/executions?max=1000").json();
        listed["executions"].as_array().map_or(&[][..], Vec::as_slice).to_vec()
    };
    eventually("all ticks have ended", || ticks().iter().all(|one| one["status"] == "SUCCEEDED"));
    let ticks = ticks().len();
    assert!(ticks >= 10, "{ticks}");
    assert_eq!(number(&server, "ticks"), (ticks + 1).to_string());
    server.stop();
}

#[test]
fn another_server_goes_on_where_one_was_killed() {
    const EXECUTIONS: usize = 20;
    let (folder, redis) = (tempfile::tempdir().expect("a folder"), Redis::start());
    let workflows = [("chain", chain())];
    let mut first = serve(folder.path(), &redis, &workflows, &json!({}));
    first.wait_for_log(TAKEN);
    let second = serve(folder.path(), &redis, &workflows, &json!({}));
    for number in 0..EXECUTIONS {
        begin([&first, &second][number % 2], &format!("e{number}"), &json!({ "n": number }));
    }
    first.signal(Signal::KILL);
    first.wait(TIME_MAX);
    // It waits for the lease, and so does its client.
    begin(&second, &format!("e{EXECUTIONS}"), &json!({ "n": EXECUTIONS }));
    check(&second, EXECUTIONS + 1);
    second.stop();
}

#[test]
fn executions_go_on_when_redis_is_there_again() {
    const EXECUTIONS: usize = 10;
    let (folder, mut redis) = (tempfile::tempdir().expect("a folder"), Redis::start());
    // Functions that cannot reach the store fail.
    let retry = json!([{ "ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "BackoffRate": 1.0, "MaxAttempts": 60 }]);
    let mut definition = chain();
    for state in ["A", "E"] {
        definition["States"][state]["Retry"] = retry.clone();
    }
    for (branch, state) in [(0, "C1"), (1, "C2")] {
        definition["States"]["C"]["Branches"][branch]["States"][state]["Retry"] = retry.clone();
    }
    let workflows = [("chain", definition)];
    let server = serve(folder.path(), &redis, &workflows, &json!({}));
    for number in 0..EXECUTIONS {
        begin(&server, &format!("e{number}"), &json!({ "n": number }));
    }
    redis.stop();
    let refused = start(&server, "/chain?name=none", &json!({}));
    assert_eq!(refused.status, 503, "{}", refused.text());
    redis.restart();
    eventually("Redis answers", || execution(&server, "chain", "e0")["status"].is_string());
    check(&server, EXECUTIONS);
    server.stop();
}
