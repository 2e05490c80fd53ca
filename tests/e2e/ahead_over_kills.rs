//! `speculation` beside kills of the server: what clients were told is in the store, what an execution leaves is that of its first steps, and another server is asked for nothing that was not committed.

use crate::durable::machine;
use crate::eventually;
use crate::kv::{Redis, ask};
use crate::outbox::Asked;
use crate::transactions::function;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;
const ROUNDS: u64 = 3;
/// Steps that leave something under a name of their own: `p`, `q` and `r`.
const MARKS: [&str; 3] = ["p", "q", "r"];

/// A step that does what the input has for it.
pub(crate) fn step(number: usize, next: Option<&str>) -> Value {
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

/// What a client has done so far: the number of the last execution that it has begun, and of the last of which it was told the end.
#[derive(Clone, Copy, Default)]
struct Done {
    begun: u64,
    told: u64,
}

/// Executions one after the other until the server is gone.
fn execute(client: &Client, number: usize, peer: &Asked, done: &mut Done, told: &AtomicU64) {
    loop {
        done.begun += 1;
        let now = done.begun;
        let lines = [
            "get shared".to_owned(),
            format!("set p{number} {now}"),
            format!("get p{number}\nset q{number} {now}"),
            format!("get q{number}\nset r{number} {now}\nadd n 1"),
            format!("get r{number}\npost http://{}/ {number}.{now}", peer.address()),
        ];
        let Ok(reply) = client.try_post("/ahead", json!({ "lines": lines }).to_string().as_bytes(), &[]) else { return };
        assert_eq!(reply.status, 200, "{}", reply.text());
        let output = reply.json();
        for step in 2..=4 {
            let text = output[format!("step{step}")]["text"].as_str().unwrap_or_default().replace("own ", "stored ");
            assert_eq!(text.lines().next(), Some(format!("stored {now}").as_str()), "{output}");
        }
        done.told = now;
        told.fetch_add(1, Ordering::Relaxed);
    }
}

fn over_kills(kv: &Value, level: &str) {
    let (peer, folder) = (Asked::start(200), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("workflow.asl.json");
    let last = json!({ "S0": step(0, Some("S1")), "S1": step(1, Some("S2")), "S2": step(2, Some("S3")), "S3": step(3, Some("S4")), "S4": step(4, None) });
    std::fs::write(&path, machine("S0", &last).to_string()).expect("write a definition");
    let start = || {
        let workflow = json!({ "name": "ahead", "path": path, "type": "express", "speculation": level, "deadline_ms": 60_000 });
        Server::start(json!({ "kv": kv, "workers": 2, "functions": [function("t", peer.hosts())], "workflows": [workflow] }))
    };
    let mut done = [Done::default(); CLIENTS];
    for round in 0..ROUNDS {
        let server = start();
        ask(&server.client(), "/t", &format!("set shared {round}"));
        let address = server.address;
        let told = [const { AtomicU64::new(0) }; CLIENTS];
        thread::scope(|scope| {
            for ((number, done), told) in done.iter_mut().enumerate().zip(&told) {
                let peer = &peer;
                scope.spawn(move || execute(&Client::new(address, TIME_MAX), number, peer, done, told));
            }
            // What is waited for may not come once a client has failed: then the server has to go all the same.
            let all = || told.iter().all(|told| told.load(Ordering::Relaxed) > 0);
            let until = Instant::now() + TIME_MAX;
            while !all() && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
            thread::sleep(Duration::from_millis(700 + 150 * round));
            server.signal(Signal::KILL);
        });
    }
    let server = start();
    let client = server.client();
    let number = |key: &str| -> u64 {
        let lines = ask(&client, "/t", &format!("get {key}"));
        lines[0].strip_prefix("stored ").map_or(0, |number| number.parse().expect("a number"))
    };
    for (of, Done { begun, told }) in done.iter().enumerate() {
        let [p, q, r] = MARKS.map(|mark| number(&format!("{mark}{of}")));
        assert!(*told > 0 && *told <= r && r <= q && q <= p && p <= *begun, "{kv}: {told} were told, {begun} begun; {p} {q} {r}");
    }
    let [begun, told] = [done.iter().map(|done| done.begun).sum::<u64>(), done.iter().map(|done| done.told).sum()];
    // Each client had one under way at most when the server was killed.
    assert!(told + CLIENTS as u64 * ROUNDS >= begun, "{kv}: {told} of {begun}");
    assert!(
        (told.saturating_sub(CLIENTS as u64 * ROUNDS)..=begun).contains(&number("n")),
        "{kv}: {begun} begun, {}",
        number("n")
    );
    // What was told is asked for, and nothing that was not committed. What is asked for again has the same key.
    let bodies = || peer.came().into_iter().map(|(_, body)| String::from_utf8(body).expect("a text")).collect::<BTreeSet<_>>();
    for (of, Done { told, .. }) in done.iter().enumerate() {
        eventually("what was told is asked for", || bodies().contains(&format!("{of}.{told}")));
    }
    let marks: Vec<u64> = (0..CLIENTS).map(|of| number(&format!("r{of}"))).collect();
    let mut keys: BTreeMap<Vec<u8>, String> = BTreeMap::new();
    for (key, body) in peer.came() {
        let text = String::from_utf8_lossy(&body).into_owned();
        let (of, at) = text.split_once('.').expect("two numbers");
        assert!(
            at.parse::<u64>().expect("a number") <= marks[of.parse::<usize>().expect("a number")],
            "{kv}: {text} was not committed"
        );
        assert_eq!(*keys.entry(body).or_insert_with(|| key.clone()), key, "{kv}: {text} has two keys");
    }
    server.stop();
}

#[test]
fn what_was_told_is_there_after_a_kill_and_nothing_was_asked_for_before_its_commit() {
    let (folder, redis) = (tempfile::tempdir().expect("a folder"), Redis::start());
    for level in ["outputs", "skips"] {
        over_kills(&json!(folder.path().join(format!("{level}.redb"))), level);
        over_kills(&json!(redis.url()), level);
        redis.ask("FLUSHALL");
    }
}
