//! End to end: the real `sledge`, functions made by the real `awsm`, real sockets.
//!
//! Every test has a server of its own and waits for events with a deadline; none depends on how fast the machine is. A process of a test may be paused for half a
//! second at any moment.

mod admission;
mod ahead;
mod ahead_calls;
mod ahead_calls_within;
mod ahead_durable;
mod ahead_over_kills;
mod ahead_rpc;
mod ahead_slack;
mod ahead_strained;
mod ahead_under_load;
mod alone;
mod applications;
mod artifacts;
mod asynchronous;
mod attacks;
mod aws_api;
mod beyond;
mod bodies;
mod calls;
mod certificates;
mod clocks;
mod collapsed;
mod collector;
mod command;
mod compile;
mod components;
mod compose;
mod compression;
mod concurrency;
mod configuration;
mod confined;
mod contained;
mod cors;
mod deploy;
mod developed;
mod disk;
mod doctor;
mod durable;
mod durable_redis;
mod effects;
mod encoded;
mod encodings;
mod examples;
mod exceptions;
mod expected;
mod explain;
mod exporter;
mod failover;
mod faults;
mod fetch;
mod folders;
mod front;
mod fsync;
mod go;
mod gradual;
mod grants;
mod grpc;
mod heads;
mod http;
mod instances;
mod interfaces;
mod isolation;
mod joined;
mod kv;
mod languages;
mod life;
mod lifted;
mod many;
mod memo;
mod memory;
mod metrics;
mod names;
mod network;
mod operations;
mod outbox;
mod packaging;
mod pending;
mod phases;
mod pinned;
mod profiles;
mod projects;
mod protocol;
mod quarantine;
mod recorded;
mod redirects;
mod replies;
mod requests;
mod rights;
mod roots;
mod scheduling;
mod secrets;
mod service;
mod sharing;
mod shutdown;
mod snapshot;
mod sockets;
mod speculation;
mod statuses;
mod stores;
mod strain;
mod streaming;
mod telemetry;
mod tiers;
mod tokens;
mod trailers;
mod transactions;
mod unknown;
mod unread;
mod versions;
mod waiting;
mod warm;
mod workflows;

use serde_json::{Value, json};
use sledge_tests::programs;

/// The threads that may accept connections: tests of connections and workers run with each choice.
const LISTENERS: [&str; 2] = ["per-core", "dedicated"];

/// A function's entry in a configuration, by its name and its file in `functions/`.
fn entry(name: &str, file: &str) -> Value {
    json!({ "name": name, "path": programs::function(file) })
}

/// The same with more keys.
fn entry_with(name: &str, file: &str, more: &Value) -> Value {
    let mut entry = entry(name, file);
    for (key, value) in more.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    entry
}

/// A reply must be that failure, told as JSON.
#[track_caller]
fn assert_failure(reply: &sledge_tests::http::Reply, status: u16, code: &str, reason: &str, function: Option<&str>) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply:?}");
    let mut expected = json!({ "code": code, "reason": reason });
    if let Some(function) = function {
        expected["function"] = function.into();
    }
    assert_eq!(reply.json(), expected);
}

/// Measures again and again until one measurement is below the limit: the machine may delay any of them, and a server that is wrong is above it each time.
#[track_caller]
fn fastest_below(what: &str, limit: std::time::Duration, measure: impl Fn() -> std::time::Duration) -> std::time::Duration {
    let deadline = std::time::Instant::now() + sledge_tests::http::TIME_MAX;
    loop {
        let took = measure();
        if took < limit {
            return took;
        }
        assert!(std::time::Instant::now() < deadline, "{what}: never below {limit:?}, {took:?} in the end");
    }
}

/// Waits until the condition holds; each look is a request of its own.
#[track_caller]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + sledge_tests::http::TIME_MAX;
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
