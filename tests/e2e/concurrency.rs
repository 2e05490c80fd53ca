//! `concurrency_max = "auto"`: how many requests of a function run at the same time follows what they do.

use std::time::{Duration, Instant};

use crate::{assert_failure, entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply, post_bytes};
use sledge_tests::server::Server;

const TIMEOUT: Duration = Duration::from_secs(120);

fn sample(server: &Server, name: &str) -> Option<f64> {
    let sample = format!("sledge_{name}{{function=\"f\",tenant=\"default\"}} ");
    let text = server.admin().get("/metrics").text();
    text.lines().find_map(|line| line.strip_prefix(&sample)).map(|value| value.parse().expect("a number"))
}

/// Waits until so many requests are counted as good: then what they have taught is known.
fn wait_for_ok(server: &Server, count: usize) {
    let sample = format!("sledge_requests_total{{function=\"f\",tenant=\"default\",outcome=\"ok\"}} {count}\n");
    eventually("they are counted", || server.admin().get("/metrics").text().contains(&sample));
}

fn limit(server: &Server) -> f64 {
    sample(server, "concurrency_limit").expect("a limit")
}

/// A function that carries out lines, with two workers.
fn config(more: &Value) -> Value {
    let mut function = entry_with("f", "phases.c", &json!({ "concurrency_max": "auto", "deadline_ms": 60_000 }));
    more.as_object().expect("an object").iter().for_each(|(key, value)| function[key] = value.clone());
    json!({ "workers": 2, "functions": [function] })
}

/// Sends so many at once.
fn send(server: &Server, count: usize, text: &str) -> Vec<Raw> {
    let mut sent: Vec<Raw> = (0..count).map(|_| Raw::connect(server.address)).collect();
    sent.iter_mut().for_each(|raw| raw.send(post_bytes("/f", text.as_bytes(), "")));
    sent
}

fn replies(mut sent: Vec<Raw>) -> Vec<Reply> {
    sent.iter_mut().map(|raw| raw.reply().expect("a reply")).collect()
}

fn statuses(sent: Vec<Raw>) -> [usize; 2] {
    let replies = replies(sent);
    [200, 429].map(|status| replies.iter().filter(|reply| reply.status == status).count())
}

/// 2 workers times (1 + 1.5), as long as nothing is known; more for requests that wait, and few again for requests that compute. No request is lost whichever way it goes.
#[test]
fn requests_that_wait_are_many_and_requests_that_compute_are_few() {
    let server = Server::start(config(&json!({ "queue_max": 0 })));
    assert_eq!((limit(&server), sample(&server, "ready_ratios")), (5.0, None));
    // Long enough for a client that is delayed to send all of them.
    let first = send(&server, 6, "sleep 3000");
    assert_eq!(statuses(first), [5, 1], "nothing is known of it");
    // It computes for far less than a hundredth of that; on a busy machine for a tenth.
    wait_for_ok(&server, 5);
    let learned = limit(&server);
    assert!(learned > 20.0, "{learned}");
    assert_eq!(statuses(send(&server, 16, "sleep 300")), [16, 0]);
    eventually("they are counted", || sample(&server, "blocked_seconds_total") >= Some(16.0 * 0.3));

    let begin = Instant::now();
    while limit(&server) > 7.0 {
        assert!(begin.elapsed() < TIMEOUT, "still {}", limit(&server));
        assert_eq!(statuses(send(&server, 2, "spin 20")), [2, 0]);
    }
    // Some of them are over while a client that is delayed sends the others.
    let replied = replies(send(&server, 24, "spin 300"));
    let of = |status| replied.iter().filter(|reply| reply.status == status).count();
    assert!(of(200) >= 2 && of(429) >= 3 && of(200) + of(429) == 24, "{replied:?}");
    let refused = replied.iter().find(|reply| reply.status == 429).expect("one");
    assert_failure(refused, 429, "too_many_requests", "queue_max", Some("f"));
    assert!(sample(&server, "ready_ratios") >= Some(0.0));
    server.stop();
}

/// Without `queue_max` all wait, and all are answered while the limit goes up and down.
#[test]
fn all_that_wait_are_answered() {
    let server = Server::start(config(&json!({})));
    for text in ["sleep 20", "spin 3", "sleep 20\nspin 1", "spin 5", "sleep 100"] {
        assert_eq!(statuses(send(&server, 60, text)), [60, 0], "{text}");
    }
    server.stop();
}

/// A reload that changes other limits goes on with what is known, and one that gives a number ends that.
#[test]
fn a_reload_keeps_what_was_learned() {
    let server = Server::start(config(&json!({})));
    assert_eq!(statuses(send(&server, 3, "sleep 2000")), [3, 0]);
    wait_for_ok(&server, 3);
    let learned = limit(&server);
    assert!(learned > 20.0, "{learned}");
    let reload = |more: &Value, times: usize| {
        let file = server.folder().join("sledge.json");
        let mut written: Value = serde_json::from_slice(&std::fs::read(&file).expect("the configuration")).expect("JSON");
        written["functions"] = config(more)["functions"].clone();
        std::fs::write(&file, written.to_string()).expect("write the configuration");
        server.signal(Signal::HUP);
        let begin = Instant::now();
        while server.log().matches("replaced f").count() < times {
            assert!(begin.elapsed() < TIMEOUT, "there is no new version");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    reload(&json!({ "queue_max": 5 }), 1);
    assert_eq!(limit(&server), learned);
    reload(&json!({ "queue_max": 5, "env": { "A": "1" } }), 2);
    assert_eq!(limit(&server), learned);
    reload(&json!({ "concurrency_max": 7 }), 3);
    assert_eq!(limit(&server), 7.0);
    server.stop();
}
