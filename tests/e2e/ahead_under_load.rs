//! `speculation` under load, with Redis and kills of the server: a server that is asked looks into Redis at that moment, and finds there what the execution has written that asks.

use crate::ahead_over_kills::step;
use crate::durable::machine;
use crate::eventually;
use crate::kv::{Redis, ask};
use crate::outbox::Asked;
use crate::transactions::function;
use rustix::process::Signal;
use serde_json::json;
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: usize = 32;
/// Executions that the clients ask for in a second, if they are answered as fast.
const RATE: u32 = 500;
const ROUNDS: u64 = 4;
const ROUND: Duration = Duration::from_millis(2_500);
/// Of so many executions of a client one asks another server at its end.
const POSTS: u64 = 4;
/// Steps that leave something under a name of their own.
const MARKS: [&str; 3] = ["p", "q", "m"];

/// What a client was told of its executions, which it numbers from 1.
#[derive(Default)]
struct Told {
    begun: u64,
    done: BTreeSet<u64>,
}

/// Whether Redis has that key of the functions' bucket.
fn is_there(redis: &Redis, key: &str) -> bool {
    redis.ask(&format!("HEXISTS {{sledge:default}}:values \"b\\x00{key}\"")).starts_with(":1")
}

/// All keys of the functions' bucket.
fn keys(redis: &Redis) -> BTreeSet<String> {
    let all = redis.ask("HKEYS {sledge:default}:values");
    all.lines().filter_map(|line| line.strip_prefix("b\0")).map(str::to_owned).collect()
}

/// Executions one after the other until the server is gone, as many in a second as this client's part is. `ended`: how many have ended well, of all clients.
fn execute(client: &Client, number: usize, peer: &Asked, told: &mut Told, ended: &AtomicU64) {
    let mut next = Instant::now();
    loop {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += Duration::from_secs(1) * CLIENTS as u32 / RATE;
        told.begun += 1;
        let id = format!("{number}.{}", told.begun);
        let asks =
            if told.begun.is_multiple_of(POSTS) { format!("\npost http://{}/ {id}", peer.address()) } else { String::new() };
        let lines = [
            "get shared".to_owned(),
            format!("set p{id} 1\nadd n 1"),
            format!("get p{id}\nset q{id} 1\nadd n 1"),
            "get shared".to_owned(),
            format!("get q{id}\nset m{id} 1\nadd n 1{asks}"),
        ];
        let Ok(reply) = client.try_post("/ahead", json!({ "lines": lines }).to_string().as_bytes(), &[]) else { return };
        match reply.status {
            200 => {
                let output = reply.json();
                let last = output["step4"]["text"].as_str().unwrap_or_default().replace("own ", "stored ");
                assert!(last.starts_with("stored 1\nset\nadd"), "{output}");
                told.done.insert(told.begun);
                ended.fetch_add(1, Ordering::Relaxed);
            }
            // It has no room for it.
            503 => {}
            other => panic!("{other}: {}", reply.text()),
        }
    }
}

/// Executions that leave nothing, until runs go ahead: under load there may be no time to begin with that.
fn learn(server: &Server, goes_ahead: impl Fn() -> bool) {
    let client = server.client();
    let lines = ["get shared", "pause 20", "pause 20", "get shared", "pause 20"];
    eventually("runs go ahead", || {
        assert_eq!(client.post("/ahead", json!({ "lines": lines }).to_string()).status, 200);
        goes_ahead()
    });
}

#[test]
fn nothing_is_asked_for_that_is_not_in_redis_and_nothing_is_there_twice() {
    let (redis, folder) = (Arc::new(Redis::start()), tempfile::tempdir().expect("a folder"));
    let early: Arc<Mutex<Vec<String>>> = Arc::default();
    let peer = {
        // The peer outlives the test, and Redis is not to.
        let (redis, early) = (Arc::downgrade(&redis), Arc::clone(&early));
        Asked::looking(200, move |body| {
            let id = String::from_utf8_lossy(body);
            let redis = redis.upgrade();
            if !MARKS.iter().all(|mark| redis.as_ref().is_some_and(|redis| is_there(redis, &format!("{mark}{id}")))) {
                early.lock().expect("no test has failed").push(id.into_owned());
            }
        })
    };
    let path = folder.path().join("workflow.asl.json");
    let last = json!({ "S0": step(0, Some("S1")), "S1": step(1, Some("S2")), "S2": step(2, Some("S3")), "S3": step(3, Some("S4")), "S4": step(4, None) });
    std::fs::write(&path, machine("S0", &last).to_string()).expect("write a definition");
    let start = || {
        let workflow =
            json!({ "name": "ahead", "path": path, "type": "express", "speculation": "outputs", "deadline_ms": 60_000 });
        Server::start(
            json!({ "kv": redis.url(), "workers": 2, "functions": [function("t", peer.hosts())], "workflows": [workflow] }),
        )
    };
    let adopted = |server: &Server| -> u64 {
        let metrics = server.admin().get("/metrics").text();
        let name = "sledge_speculative_runs_total{tenant=\"default\",result=\"adopted\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap_or(0)
    };
    let mut told: Vec<Told> = (0..CLIENTS).map(|_| Told::default()).collect();
    let (done_before, went_ahead) = (AtomicU64::new(0), AtomicU64::new(0));
    for round in 0..ROUNDS {
        let server = start();
        ask(&server.client(), "/t", &format!("set shared {round}"));
        learn(&server, || adopted(&server) > 0);
        let (address, began, ended) = (server.address, Instant::now(), AtomicU64::new(0));
        thread::scope(|scope| {
            for (number, told) in told.iter_mut().enumerate() {
                let (peer, ended) = (&peer, &ended);
                scope.spawn(move || execute(&Client::new(address, TIME_MAX), number, peer, told, ended));
            }
            // Another client changes what they read.
            while began.elapsed() < ROUND || ended.load(Ordering::Relaxed) == 0 && began.elapsed() < TIME_MAX {
                ask(&server.client(), "/t", &format!("set shared {}", began.elapsed().as_millis() / 200));
                thread::sleep(Duration::from_millis(100));
            }
            went_ahead.fetch_add(adopted(&server), Ordering::Relaxed);
            server.signal(Signal::KILL);
        });
        let done: usize = told.iter().map(|told| told.done.len()).sum();
        let new = done as u64 - done_before.swap(done as u64, Ordering::Relaxed);
        println!("{:.0} executions a second", new as f64 / began.elapsed().as_secs_f64());
        assert!(new > 0, "round {round}: none has ended");
    }
    let server = start();
    let all = keys(&redis);
    let of = |mark: &str| -> BTreeSet<&str> {
        all.iter().filter_map(|key| key.strip_prefix(mark)).filter(|id| id.contains('.')).collect()
    };
    let [p, q, m] = MARKS.map(of);
    assert_eq!(*early.lock().expect("no test has failed"), [""; 0], "asked for before the commit");
    // One step after the other, each once, and all that a client was told.
    assert!(m.is_subset(&q) && q.is_subset(&p), "{p:?} {q:?} {m:?}");
    assert_eq!(ask(&server.client(), "/t", "get n"), [format!("stored {}", p.len() + q.len() + m.len())]);
    for (number, Told { begun, done }) in told.iter().enumerate() {
        for id in done {
            assert!(m.contains(format!("{number}.{id}").as_str()), "{number}.{id} of {begun} was told, and is not there");
        }
    }
    println!(
        "{} executions, of which {} have asked; {} runs were ahead",
        m.len(),
        peer.came().len(),
        went_ahead.load(Ordering::Relaxed)
    );
    assert!(went_ahead.load(Ordering::Relaxed) > 0, "nothing ran ahead");
    // All that is committed is asked for, and nothing else; what is asked for again has the same key.
    let wanted: BTreeSet<&str> = m
        .iter()
        .copied()
        .filter(|id| id.split_once('.').is_some_and(|(_, id)| id.parse::<u64>().is_ok_and(|id| id.is_multiple_of(POSTS))))
        .collect();
    let came = || peer.came().into_iter().map(|(_, body)| String::from_utf8(body).expect("a text")).collect::<BTreeSet<_>>();
    eventually("what is committed is asked for", || came().len() >= wanted.len());
    assert_eq!(came().iter().map(String::as_str).collect::<BTreeSet<_>>(), wanted);
    let mut keys: BTreeMap<Vec<u8>, String> = BTreeMap::new();
    for (key, body) in peer.came() {
        assert_eq!(*keys.entry(body).or_insert_with(|| key.clone()), key);
    }
    server.stop();
}
