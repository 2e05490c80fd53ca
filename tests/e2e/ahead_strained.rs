//! `speculation` where there is little of something: a thousand executions at once, a full disk, and inputs that are made to be guessed wrong.

use crate::ahead_over_kills::step;
use crate::disk::Small;
use crate::durable::machine;
use crate::kv::{Redis, ask};
use crate::transactions::function;
use serde_json::{Value, json};
use sledge_tests::admin::Admin;
use sledge_tests::http::{Client, Raw, TIME_MAX, post_bytes};
use sledge_tests::server::Server;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const EXECUTIONS: usize = 1_000;
/// What all tables of a tenant have at most, and all stories.
const TABLES_BYTES_MAX: u64 = 7 << 20;
const STORIES_BYTES_MAX: u64 = 2 << 20;

/// Ends what goes on beside a test, also where that fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Three steps, one after the other, and a Choice between the second one and the last.
fn definition() -> Value {
    let which = json!({ "Type": "Choice", "Choices": [{ "Variable": "$.step1.text", "StringMatches": "error*", "Next": "Out" }], "Default": "S2" });
    let states = json!({ "S0": step(0, Some("S1")), "S1": step(1, Some("Which")), "Which": which, "S2": step(2, Some("Out")), "Out": { "Type": "Succeed" } });
    machine("S0", &states)
}

fn config(folder: &Path, level: &str) -> Value {
    config_of("express", folder, level)
}

fn config_of(kind: &str, folder: &Path, level: &str) -> Value {
    let path = folder.join("workflow.asl.json");
    std::fs::write(&path, definition().to_string()).expect("write a definition");
    let workflow = json!({ "name": "ahead", "path": path, "type": kind, "speculation": level });
    let plain = crate::entry_with("plain", "transaction.c", &json!({}));
    json!({ "workers": 2, "functions": [function("t", json!({})), plain], "workflows": [workflow] })
}

/// Each step leaves a mark of its own.
fn lines(number: usize) -> [String; 3] {
    [
        format!("get shared\nset p{number} 1\nadd n 1"),
        format!("get p{number}\nset q{number} 1\nadd n 1"),
        format!("get q{number}\nset r{number} 1\nadd n 1"),
    ]
}

fn metric(admin: &Admin, name: &str) -> u64 {
    let metrics = admin.get("/metrics").text();
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()).unwrap_or(0)
}

/// Which executions have left that mark.
fn marked(client: &Client, mark: &str) -> BTreeSet<usize> {
    let keys = ask(client, "/plain", &format!("list {mark}"));
    keys[0].split(' ').filter_map(|key| key.strip_prefix(mark)?.parse().ok()).collect()
}

/// Those that have ended well have done all steps, any other some of the first ones, and each step counts once.
fn assert_whole(client: &Client, ended: &BTreeSet<usize>, what: &str) {
    let [p, q, r] = ["p", "q", "r"].map(|mark| marked(client, mark));
    assert!(ended.is_subset(&r) && r.is_subset(&q) && q.is_subset(&p), "{what}: {ended:?} have ended; {p:?} {q:?} {r:?}");
    assert_eq!(ask(client, "/plain", "get n"), [format!("stored {}", p.len() + q.len() + r.len())], "{what}");
}

fn a_thousand(kv: &Value) {
    let (folder, what) = (tempfile::tempdir().expect("a folder"), kv.to_string());
    let mut config = config(folder.path(), "outputs");
    (config["kv"], config["memory_total_bytes_max"]) = (kv.clone(), json!(256 << 20));
    let server = Server::start(config);
    let (client, admin, is_over) = (server.client(), server.admin(), AtomicBool::new(false));
    let body = |number| json!({ "lines": lines(number) }).to_string();
    ask(&client, "/plain", "set shared 1");
    let ended: BTreeSet<usize> = thread::scope(|scope| {
        let looks = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let [used, most] = ["used", "max"].map(|which| metric(&admin, &format!("sledge_memory_{which}_bytes")));
                assert!(used <= most && most == 256 << 20, "{what}: {used} of {most} bytes");
                thread::sleep(Duration::from_millis(50));
            }
        });
        let over = Over(&is_over);
        let mut clients: Vec<Raw> = (0..EXECUTIONS).map(|_| Raw::connect(server.address)).collect();
        for (number, raw) in clients.iter_mut().enumerate() {
            raw.send(post_bytes("/ahead", body(number).as_bytes(), ""));
        }
        let begun = clients.iter_mut().enumerate().filter_map(|(number, raw)| {
            let reply = raw.reply().expect("a reply");
            // Those for which there is no room are refused, or fail where a function of theirs has none.
            let has_no_memory = reply.status == 500 && reply.text().contains("no_memory");
            assert!(matches!(reply.status, 200 | 503) || has_no_memory, "{what}: {} {}", reply.status, reply.text());
            (reply.status == 200).then_some(number)
        });
        let begun: BTreeSet<usize> = begun.collect();
        drop(over);
        looks.join().expect("memory is within its bounds");
        begun
    });
    println!("{what}: {} of {EXECUTIONS}", ended.len());
    // Of those whose functions wait for Redis fewer than have room at once, where all others are refused before these end, and take the room of some between two of their functions.
    assert!(ended.len() > EXECUTIONS / 200, "{what}: {}", ended.len());
    // The last ones may not have given all of their memory back.
    crate::eventually("there is room again", || client.post("/plain", "get n").status == 200);
    assert_whole(&client, &ended, &what);
    // Those that were refused can be had now.
    for number in (0..EXECUTIONS).filter(|number| !ended.contains(number)).take(10) {
        crate::eventually(&what, || client.post("/ahead", body(number)).status == 200);
    }
    server.stop();
}

#[test]
fn a_thousand_express_executions_at_once_are_right() {
    let (folder, redis) = (tempfile::tempdir().expect("a folder"), Redis::start());
    a_thousand(&json!(folder.path().join("kv.redb")));
    a_thousand(&json!(redis.url()));
}

/// Each that is accepted ends well, and has done each step once.
fn a_thousand_durable(kv: &Value) {
    let (folder, what) = (tempfile::tempdir().expect("a folder"), kv.to_string());
    let mut config = config_of("standard", folder.path(), "outputs");
    config["kv"] = kv.clone();
    let server = Server::start(config);
    let (client, admin, address) = (server.client(), server.admin(), server.address);
    ask(&client, "/plain", "set shared 1");
    thread::scope(|scope| {
        for part in 0..8 {
            scope.spawn(move || {
                let client = Client::new(address, TIME_MAX);
                for number in (part..EXECUTIONS).step_by(8) {
                    let body = json!({ "lines": lines(number) }).to_string();
                    let reply = client.post(&format!("/ahead?name=one-{number}"), body);
                    assert_eq!(reply.status, 202, "{number}: {}", reply.text());
                }
            });
        }
    });
    let ended = |status: &str| metric(&admin, &format!("sledge_executions_total{{status=\"{status}\"}}"));
    crate::eventually(&what, || ended("SUCCEEDED") + ended("FAILED") + ended("TIMED_OUT") == EXECUTIONS as u64);
    assert_eq!(ended("SUCCEEDED"), EXECUTIONS as u64, "{what}");
    assert_whole(&client, &(0..EXECUTIONS).collect(), &what);
    server.stop();
}

#[test]
fn a_thousand_durable_executions_at_once_are_right() {
    let (folder, redis) = (tempfile::tempdir().expect("a folder"), Redis::start());
    a_thousand_durable(&json!(folder.path().join("kv.redb")));
    a_thousand_durable(&json!(redis.url()));
}

/// Executions by several clients while the disk is full for a while. Those that fail say why, and what was told is there.
#[test]
fn a_full_disk_fails_executions_that_are_ahead_until_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(small) = Small::start(config(folder.path(), "outputs")) else {
        // Here nothing may be mounted; `disk.rs` goes the same way by a limit.
        return;
    };
    let (address, client) = (small.server.address, small.server.client());
    let run = |client: &Client, number: usize| {
        let reply = client.post("/ahead", json!({ "lines": lines(number) }).to_string());
        (reply.status, reply.text())
    };
    let mut told: BTreeSet<usize> = (0..20).collect();
    assert!(told.iter().all(|number| run(&client, *number).0 == 200));
    small.fill();
    let full = |(status, text): &(u16, String)| {
        *status == 500 && text.contains("Lambda.ServiceException") && text.contains("is full (ENOSPC): free some space")
    };
    // There may be room in blocks that the file has already.
    let mut next = 20;
    loop {
        assert!(next < 20_000, "the disk is never full");
        let reply = run(&client, next);
        if full(&reply) {
            break;
        }
        assert_eq!(reply.0, 200, "{}", reply.1);
        told.insert(next);
        next += 1;
    }
    // Several at the same time. Not one of them says that it has ended well, if it has not.
    thread::scope(|scope| {
        let clients: Vec<_> = (1..=4)
            .map(|of| {
                scope.spawn(move || {
                    let client = Client::new(address, TIME_MAX);
                    let numbers = (next + of * 100..).take(10);
                    numbers.map(|number| (number, run(&client, number))).collect::<Vec<_>>()
                })
            })
            .collect();
        for (number, reply) in clients.into_iter().flat_map(|client| client.join().expect("it is answered")) {
            assert!(full(&reply) || reply.0 == 200, "{reply:?}");
            if reply.0 == 200 {
                told.insert(number);
            }
        }
    });
    small.free();
    crate::eventually("there is room", || small.admin.get("/readyz").text() == "ready\n");
    for number in next + 1_000..next + 1_020 {
        let (status, text) = run(&client, number);
        assert_eq!(status, 200, "{text}");
        told.insert(number);
    }
    assert_whole(&client, &told, "a full disk");
    small.server.stop();
}

/// Inputs that never come again, answers that are long and never the same, ways that change, and conflicts in each execution: what is learned stays within its bounds, and all answers are right.
#[test]
fn inputs_that_are_made_to_be_guessed_wrong_take_no_more_memory_than_the_tables_may() {
    const LEARNED: usize = 100;
    const ROUNDS: usize = 500;
    let (folder, is_over) = (tempfile::tempdir().expect("a folder"), AtomicBool::new(false));
    let mut config = config(folder.path(), "skips");
    config["kv"] = json!(folder.path().join("kv.redb"));
    // Several workers keep more idle sandboxes the more they take from each other.
    config["workers"] = json!(1);
    let server = Server::start(config);
    let (client, admin, address) = (server.client(), server.admin(), server.address);
    let run = |number: usize| {
        let text = format!("{number:04}").repeat(1_000);
        let missing = number.is_multiple_of(3);
        let second = if missing { "get missing".to_owned() } else { "get long".to_owned() };
        let lines =
            [format!("get shared\nset long {text}\nadd n 1"), second, format!("get long\nget shared\nset p{number} {text}")];
        let reply = client.post("/ahead", json!({ "lines": lines }).to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        let output = reply.json();
        let said = output["step1"]["text"].as_str().unwrap_or_default().replace("own ", "stored ");
        let wanted = if missing { "error 44\n".to_owned() } else { format!("stored {text}\n") };
        assert!(said == wanted && output["step2"].is_null() == missing, "{number}: {output}");
    };
    ask(&client, "/plain", "set shared 0");
    let used = || metric(&admin, "sledge_memory_used_bytes");
    let (before, most) = thread::scope(|scope| {
        scope.spawn(|| {
            let client = Client::new(address, TIME_MAX);
            for value in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                ask(&client, "/plain", &format!("set shared {value}"));
                thread::sleep(Duration::from_millis(2));
            }
        });
        let _over = Over(&is_over);
        // Until there are as many idle sandboxes as there will be.
        (0..LEARNED).for_each(run);
        let before = used();
        let most =
            (LEARNED..ROUNDS).inspect(|number| run(*number)).filter(|number| number.is_multiple_of(20)).map(|_| used()).max();
        (before, most.expect("some"))
    });
    println!("{before} bytes, then at most {most}");
    // Sandboxes that are idle count, too.
    assert!(most <= before + TABLES_BYTES_MAX + STORIES_BYTES_MAX + (4 << 20), "{before} bytes, then {most}");
    assert_eq!(ask(&client, "/plain", "get n"), [format!("stored {ROUNDS}")]);
    server.stop();
}
