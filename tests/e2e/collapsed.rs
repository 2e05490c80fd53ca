//! `memo`: equal requests at the same time are one run.
//!
//! The functions wait (`pause`) without a processor, and are said to be pure: to wait counts as a look at the clock. So what is sent meanwhile has arrived before their runs are over, also where the
//! machine is slow.

use crate::kv::ask;
use crate::{entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply, post_bytes};
use sledge_tests::server::Server;
use std::fs;
use std::time::Duration;

const COLLAPSED: &str = "sledge; fwd=miss; collapsed";

fn server(more: &Value) -> Server {
    let mut settings = json!({ "memo": "auto", "pure": true, "deadline_ms": 60_000 });
    for (key, value) in more.as_object().expect("an object") {
        settings[key] = value.clone();
    }
    let functions = [entry_with("f", "transaction.c", &settings), entry_with("writer", "transaction.c", &json!({}))];
    let server = Server::start(json!({ "workers": 2, "kv": "memory", "functions": functions }));
    // A first run shows that runs can be given again.
    assert_eq!(ask(&server.client(), "/f", "pause 0"), ["paused"]);
    server
}

/// So many connections, each with that request.
fn sent(server: &Server, body: &str, count: usize) -> Vec<Raw> {
    let send = |_| {
        let mut raw = Raw::connect(server.address);
        raw.send(post_bytes("/f", body.as_bytes(), ""));
        raw
    };
    (0..count).map(send).collect()
}

fn under_way(server: &Server, count: usize) {
    let line = format!("sledge_requests_under_way {count}\n");
    eventually("they have arrived", || server.admin().get("/metrics").text().contains(&line));
}

fn replies(connections: Vec<Raw>) -> Vec<Reply> {
    connections.into_iter().map(|mut raw| raw.reply().expect("a reply")).collect()
}

/// How the table has answered, as the replies say it; each has that text.
#[track_caller]
fn ways(replies: &[Reply], text: &str) -> Vec<Option<String>> {
    replies.iter().for_each(|reply| assert_eq!((reply.status, reply.text().as_str()), (200, text), "{reply:?}"));
    replies.iter().map(|reply| reply.header("cache-status").map(str::to_owned)).collect()
}

fn count(server: &Server, metric: &str, label: &str) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let begin = format!("sledge_{metric}_total{{function=\"f\",tenant=\"default\",{label}}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&begin)).map_or(0, |count| count.parse().expect("a number"))
}

#[test]
fn equal_requests_at_the_same_time_are_one_run_and_others_are_not() {
    let server = server(&json!({}));
    let equal = sent(&server, "pause 4000", 50);
    let others: Vec<_> = (0..3).flat_map(|number| sent(&server, &format!("pause 4000\nbody {number}"), 1)).collect();
    under_way(&server, 53);
    let ways_equal = ways(&replies(equal), "paused\n");
    assert_eq!(ways_equal.iter().filter(|way| way.is_none()).count(), 1, "{ways_equal:?}");
    let collapsed = ways_equal.iter().filter(|way| way.as_deref() == Some(COLLAPSED)).count() as u64;
    assert_eq!(collapsed, 49, "{ways_equal:?}");
    assert_eq!(ways(&replies(others), "paused\nbody\n"), [None, None, None]);
    let events = || ["collapsed", "miss", "hit"].map(|event| count(&server, "memo_events", &format!("event=\"{event}\"")));
    eventually("they are counted", || events() == [49, 5, 0]);
    eventually("the replies are counted", || count(&server, "requests", "outcome=\"ok\"") == 54);
    // The run of those that were waited for is kept at once.
    assert_eq!(ways(&replies(sent(&server, "pause 4000", 1)), "paused\n"), [Some("sledge; hit".to_owned())]);
    server.stop();
}

#[test]
fn where_the_client_of_a_run_goes_or_it_traps_those_that_waited_run() {
    let server = server(&json!({}));
    let leader = sent(&server, "pause 4000\nbody 1", 1);
    under_way(&server, 1);
    let followers = sent(&server, "pause 4000\nbody 1", 5);
    under_way(&server, 6);
    drop(leader);
    assert_eq!(ways(&replies(followers), "paused\nbody\n"), [const { None }; 5]);
    eventually("they are counted", || count(&server, "memo_events", "event=\"miss\"") == 7);

    let all = sent(&server, "pause 500\ntrap", 4);
    let replies = replies(all);
    replies.iter().for_each(|reply| assert_eq!(reply.status, 500, "{reply:?}"));
    // The first of all was cancelled.
    eventually("they are counted", || count(&server, "memo_refusals", "reason=\"failed\"") == 5);
    server.stop();
}

#[test]
fn a_write_between_is_seen_by_those_that_waited() {
    let server = server(&json!({}));
    let client = server.client();
    assert_eq!(ask(&client, "/writer", "set a one"), ["set"]);
    let leader = sent(&server, "get a\npause 4000", 1);
    under_way(&server, 1);
    let followers = sent(&server, "get a\npause 4000", 3);
    under_way(&server, 4);
    assert_eq!(ask(&client, "/writer", "set a two"), ["set"]);
    assert_eq!(ways(&replies(leader), "stored one\npaused\n"), [None]);
    assert_eq!(ways(&replies(followers), "stored two\npaused\n"), [const { None }; 3]);
    // Without a write they get what it has read.
    let all = sent(&server, "pause 4000\nget a", 3);
    let ways = ways(&replies(all), "paused\nstored two\n");
    assert!(ways.iter().filter(|way| way.is_none()).count() == 1, "{ways:?}");
    server.stop();
}

#[test]
fn those_that_wait_run_as_soon_as_the_run_has_written() {
    let server = server(&json!({}));
    let mut leader = sent(&server, "pause 4000\nset x 1\npause 12000", 1);
    under_way(&server, 1);
    let follower = sent(&server, "pause 4000\nset x 1\npause 12000", 1);
    under_way(&server, 2);
    let misses = || count(&server, "memo_events", "event=\"miss\"");
    eventually("it runs", || misses() == 3);
    assert!(!leader[0].answers_within(Duration::from_millis(1)), "it runs still");
    // No more wait for a version that writes.
    let next = sent(&server, "pause 4000\nset x 1\npause 12000", 2);
    eventually("they run", || misses() == 5);
    drop((leader, follower, next));
    server.stop();
}

/// Its caller could be what it would wait for.
#[test]
fn what_a_function_calls_does_not_wait() {
    let functions = [
        entry_with("f", "transaction.c", &json!({ "memo": "auto", "pure": true })),
        entry_with("caller", "transaction.c", &json!({})),
    ];
    let server = Server::start(json!({ "workers": 2, "kv": "memory", "functions": functions }));
    let client = server.client();
    assert_eq!(ask(&client, "/f", "pause 0"), ["paused"]);
    assert_eq!(ask(&client, "/caller", "both f pause 1000"), ["paused;", "paused;"]);
    eventually("they are counted", || count(&server, "memo_events", "event=\"miss\"") == 3);
    server.stop();
}

#[test]
fn a_client_that_waits_and_goes_makes_room() {
    let server = server(&json!({ "concurrency_max": 2 }));
    let mut leader = sent(&server, "pause 5000", 1);
    under_way(&server, 1);
    let follower = sent(&server, "pause 5000", 1);
    under_way(&server, 2);
    let third = sent(&server, "body 1", 1);
    under_way(&server, 3);
    drop(follower);
    assert_eq!(ways(&replies(third), "body\n"), [None]);
    assert!(!leader[0].answers_within(Duration::from_millis(1)), "it runs still");
    assert_eq!(ways(&replies(leader), "paused\n"), [None]);
    server.stop();
}

#[test]
fn requests_wait_for_half_of_their_time() {
    let server = server(&json!({ "deadline_ms": 24_000 }));
    let mut leader = sent(&server, "pause 22000", 1);
    under_way(&server, 1);
    // It runs after twelve seconds, and has not time enough; what matters is that it has begun.
    let follower = sent(&server, "pause 22000", 1);
    under_way(&server, 2);
    assert_eq!(count(&server, "memo_events", "event=\"miss\""), 2);
    eventually("it runs", || count(&server, "memo_events", "event=\"miss\"") == 3);
    assert!(!leader[0].answers_within(Duration::from_millis(1)), "it runs still");
    drop((leader, follower));
    server.stop();
}

#[test]
fn those_that_wait_are_answered_by_the_version_that_they_came_to() {
    let server = server(&json!({ "content_type": "text/old" }));
    let all = sent(&server, "pause 3000", 4);
    under_way(&server, 4);
    let file = server.folder().join("sledge.json");
    let config = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, config.replace("text/old", "text/new")).expect("write the configuration");
    server.signal(Signal::HUP);
    let new = || replies(sent(&server, "body 1", 1)).remove(0);
    eventually("the next version is served", || new().header("content-type") == Some("text/new"));
    let replies = replies(all);
    replies.iter().for_each(|reply| assert_eq!(reply.header("content-type"), Some("text/old"), "{reply:?}"));
    let ways = ways(&replies, "paused\n");
    assert_eq!(ways.iter().filter(|way| way.is_none()).count(), 1, "{ways:?}");
    server.stop();
}

/// A table that is in the way of a request shrinks.
#[test]
fn tables_make_room_for_requests() {
    const TOTAL: u64 = 48 << 20;
    let memo = json!({ "memo": "auto", "memo_bytes_max": 12 << 20, "memory_bytes_max": 64 << 20 });
    let functions = [entry_with("f", "transaction.c", &memo)];
    let total = json!({ "kv": "memory", "memory_total_bytes_max": TOTAL, "reply_bytes_max": TOTAL });
    let server = crate::kv::server(&total, &functions);
    let (client, admin) = (server.client(), server.admin());
    for bytes in 2_000_000..2_000_004 {
        (0..2).for_each(|_| assert_eq!(client.post("/f", format!("flood {bytes}")).status, 200));
    }
    let table_bytes = || {
        let metrics = admin.get("/metrics").text();
        let begin = "sledge_memo_bytes{function=\"f\",tenant=\"default\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(begin)?.parse::<u64>().ok()).expect("the table's bytes")
    };
    let used_bytes = || admin.get("/status").json()["memory_bytes_used"].as_u64().expect("bytes");
    let (before, used) = (table_bytes(), used_bytes());
    assert!(before > 8_000_000 && used > before, "{before} {used}");
    // A reply for which there is room without half of the table only. There is a sandbox for it already. What the server used may have counted the reply before (2 MB), which it may have let go since:
    // hence half of the table, and not a little of it.
    let bytes = (TOTAL - used) as usize + 4_000_000;
    let reply = client.post("/f", format!("flood {bytes}"));
    assert_eq!((reply.status, reply.body.len()), (200, bytes));
    let after = table_bytes();
    assert!(after < before, "{after} {before}");
    server.stop();
}
