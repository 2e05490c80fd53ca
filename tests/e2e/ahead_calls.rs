//! `speculation = "calls"` and `"skips"`: functions whose callees begin with them, or need not run at all. They answer what the same functions answer without, and leave the same in the store.

use crate::ahead::{Store, model, some_lines};
use crate::kv::{Redis, ask};
use crate::transactions::{function, on_every_store};
use serde_json::{Value, json};
use sharing::{APPLICATIONS, Memory, TRAVEL, setup_body};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::random::Random;
use sledge_tests::server::Server;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A server with a caller whose callees begin with it, the same with a table of answers and the same without either, and what they call.
fn serve(kv: &Value) -> Server {
    serve_at("calls", kv)
}

/// The same with that level.
fn serve_at(level: &str, kv: &Value) -> Server {
    let ahead = json!({ "speculation": level });
    let functions = [
        function("t", ahead.clone()),
        function("remembered", json!({ "speculation": level, "memo": "auto" })),
        function("plain", json!({})),
        function("s", ahead),
        function("u", json!({})),
        // Its pauses do not make it one that answers something else each time.
        function("slow", json!({ "memo": "auto", "pure": true })),
    ];
    let mut config = json!({ "functions": functions });
    for (key, value) in kv.as_object().expect("an object") {
        config[key] = value.clone();
    }
    Server::start(config)
}

fn in_memory() -> Server {
    serve(&json!({ "kv": "memory", "workers": 2 }))
}

/// How many runs that were begun ahead came to that.
fn runs(server: &Server, result: &str) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let name = format!("sledge_speculative_runs_total{{tenant=\"default\",result=\"{result}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

/// How many calls of a function have ended so.
fn ended(server: &Server, name: &str, outcome: &str) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let sample = format!("sledge_requests_total{{function=\"{name}\",tenant=\"default\",outcome=\"{outcome}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&sample)?.parse().ok()).unwrap_or(0)
}

/// Four callees, each of which takes a second.
#[test]
fn callees_that_do_not_wait_for_each_other_run_at_the_same_time() {
    let server = in_memory();
    let client = server.client();
    let lines: Vec<String> = (0..4).map(|call| format!("invoke u pause 1000;set u{call} 1")).collect();
    let took = |path: &str| {
        let began = Instant::now();
        assert_eq!(ask(&client, path, &lines.join("\n")), ["paused;set;"; 4]);
        began.elapsed()
    };
    let plain = took("/plain");
    assert!(plain >= Duration::from_secs(4), "{plain:?}");
    // What is called, and how long that takes, is learned first. Where the machine is busy nothing is begun ahead for a while.
    let requests = Cell::new(1);
    crate::fastest_below("callees at the same time", Duration::from_secs(2), || {
        requests.set(requests.get() + 1);
        took("/t")
    });
    assert!(runs(&server, "adopted") >= 3);
    crate::eventually("each call is counted once", || ended(&server, "u", "ok") == 4 * requests.get());
    server.stop();
}

/// A callee waits for two callees of its own, each of which takes a second: these begin with it, and it begins with its caller.
#[test]
fn callees_of_callees_begin_with_them() {
    let server = in_memory();
    let client = server.client();
    // What begins with a call that is made at once has nothing to gain.
    let lines = "pause 1000\ninvoke s pause 20;invoke u pause 1000;invoke u pause 1001";
    let took = |path: &str| {
        let began = Instant::now();
        assert_eq!(ask(&client, path, lines), ["paused", "paused;paused;;paused;;"]);
        began.elapsed()
    };
    let plain = took("/plain");
    assert!(plain >= Duration::from_secs(3), "{plain:?}");
    let results = || ["adopted", "dropped"].map(|result| runs(&server, result));
    let requests = Cell::new(1);
    // Where the callee alone begins with its caller, it takes more than two seconds. Three are adopted, and none is dropped.
    crate::fastest_below("all callees", Duration::from_secs(2), || {
        requests.set(requests.get() + 1);
        let before = results();
        let took = took("/t");
        let after = results();
        let new = [0, 1].map(|result| after[result] - before[result]);
        println!("{took:?}, {new:?} adopted and dropped");
        if new == [3, 0] { took } else { Duration::MAX }
    });
    let counted = || (ended(&server, "s", "ok"), ended(&server, "u", "ok"));
    crate::eventually("each call is counted once", || counted() == (requests.get(), 2 * requests.get()));
    server.stop();
}

/// What a caller with such lines answers: a line that begins with `invoke` is done by a callee.
fn in_order(store: &mut Store, lines: &[String]) -> Vec<String> {
    let each = |line: &String| match line.strip_prefix("invoke u ") {
        Some(lines) => lines.split(';').map(|line| model(store, line) + ";").collect(),
        None => model(store, line),
    };
    lines.iter().map(each).collect()
}

#[test]
fn a_caller_answers_and_leaves_what_it_does_without() {
    answers_and_leaves_what_it_does_without("calls");
}

#[test]
fn a_caller_whose_callees_are_left_out_answers_and_leaves_what_it_does_without() {
    answers_and_leaves_what_it_does_without("skips");
}

fn answers_and_leaves_what_it_does_without(level: &str) {
    on_every_store(|kv| {
        let server = serve_at(level, kv);
        let client = server.client();
        let (mut store, mut random) = (Store::new(), Random::new(22, "calls"));
        // The same few bodies again and again: what they call is known soon, and what that replies, where they mostly read.
        let bodies: Vec<Vec<String>> = (0..8)
            .map(|body| {
                let some = |random: &mut Random, is_call: bool| {
                    let reads = level == "skips" && body % 4 > 0 && random.below(6) > 0;
                    let lines = match reads {
                        true => format!("get k{}\nget k{}", random.below(4), random.below(4)),
                        false => some_lines(random),
                    };
                    match is_call {
                        true => vec![format!("invoke u {}", lines.replace('\n', ";"))],
                        false => lines.lines().map(str::to_owned).collect(),
                    }
                };
                (0..5).flat_map(|part| some(&mut random, part % 2 == 1 || part == 4)).collect()
            })
            .collect();
        let is_far = kv["kv"].as_str().is_some_and(|kv| kv.starts_with("redis"));
        let has_gone_ahead = || match level {
            "skips" => runs(&server, "skipped") > 20,
            // The store is near, so to begin calls early does not always pay.
            _ => !is_far || runs(&server, "adopted") > 4 && runs(&server, "squashed") > 0,
        };
        let end = Instant::now() + TIME_MAX;
        // As many rounds as it takes.
        for round in (0..).take_while(|round| *round < 200 || !has_gone_ahead()) {
            assert!(Instant::now() < end, "{kv}: {} {}", runs(&server, "adopted"), runs(&server, "skipped"));
            // Others change what callees have read.
            if level == "skips" && random.below(4) == 0 {
                let line = some_lines(&mut random);
                line.lines().for_each(|line| drop(model(&mut store, line)));
                assert_eq!(client.post("/plain", line).status, 200);
            }
            let path = if random.below(3) == 0 { "/remembered" } else { "/t" };
            let lines = &bodies[random.below(8) as usize];
            let expected = in_order(&mut store, lines);
            // A value that the request itself has written is one of the transaction's own.
            let told: Vec<String> =
                ask(&client, path, &lines.join("\n")).iter().map(|line| line.replace("own ", "stored ")).collect();
            assert_eq!(told, expected, "{kv}, round {round}: {lines:?}");
        }
        let skipped = runs(&server, "skipped");
        assert_eq!(skipped > 0, level == "skips", "{kv}: {skipped}");
        server.stop();
    });
}

/// A callee that fails has failed for its caller, and has logged that once. One that is not called has logged nothing.
#[test]
fn what_is_not_called_has_never_been() {
    let server = in_memory();
    let client = server.client();
    let traps = || server.log().matches(" trap: unreachable").count();
    let settled = |count: usize| crate::eventually("the log", || traps() == count);
    let call = |path: &str, number: u64, called: &str| {
        ask(&client, path, &format!("body {number}\npause 20\ninvoke u {called}")).split_off(2)
    };
    assert_eq!(call("/plain", 0, "set a 1;trap"), ["error 12"]);
    settled(1);
    let (mut calls, mut others, end) = (1, 0, Instant::now() + TIME_MAX);
    // Where the machine is busy nothing is begun ahead for a while.
    loop {
        for _ in 0..5 {
            assert_eq!(call("/t", calls, "set a 1;trap"), ["error 12"]);
            calls += 1;
            settled(calls as usize);
        }
        let dropped = runs(&server, "dropped");
        // Its caller calls something else this time.
        others += 1;
        assert_eq!(call("/t", 1_000 + others, "get a;set b 2"), ["error 44;set;"]);
        assert_eq!(ask(&client, "/t", &format!("body {}\npause 300", 2_000 + others)), ["body", "paused"]);
        let there = ask(&client, "/plain", "get a\nget b");
        assert_eq!((traps() as u64, there), (calls, vec!["error 44".to_owned(), "stored 2".to_owned()]));
        if runs(&server, "adopted") >= 2 && runs(&server, "dropped") > dropped {
            break;
        }
        assert!(Instant::now() < end, "nothing was begun in vain");
    }
    let counted = || ["trap", "ok", "cancelled"].map(|outcome| ended(&server, "u", outcome));
    crate::eventually("all are counted once", || counted() == [calls, others, 0]);
    server.stop();
}

/// A callee that has read what its caller writes before it calls runs again when it is called.
#[test]
fn a_callee_sees_what_its_caller_has_written() {
    on_every_store(|kv| {
        let server = serve(kv);
        let client = server.client();
        ask(&client, "/plain", "set n 0");
        let (mut round, end) = (0, Instant::now() + TIME_MAX);
        while round < 12 || runs(&server, "squashed") < 4 {
            assert!(Instant::now() < end, "{kv}: {} were squashed", runs(&server, "squashed"));
            round += 1;
            let told = ask(&client, "/t", "next n 20\ninvoke u get n;list n;add n 10");
            let before = (round - 1) * 11 + 1;
            assert_eq!(told, [format!("next {before}"), format!("own {before};keys n;add;")], "{kv}, round {round}");
        }
        assert_eq!(ask(&client, "/plain", "get n"), [format!("stored {}", round * 11)]);
        assert_eq!(runs(&server, "adopted"), 0, "{kv}");
        server.stop();
    });
}

/// Two callees, one of which takes a second, and one of which calls another that does.
#[test]
fn callees_whose_replies_are_known_do_not_run_until_what_they_have_read_is_changed() {
    on_every_store(|kv| {
        let server = serve_at("skips", kv);
        let client = server.client();
        let count = || ["slow", "s"].map(|name| ended(&server, name, "ok"));
        assert_eq!(ask(&client, "/plain", "set a 1\nset b 1"), ["set", "set"]);
        let lines = "get x\ninvoke slow pause 1000;get a;set c 5\ninvoke s get b;invoke slow pause 1000";
        let told = |a: u32, b: u32| ["error 44".to_owned(), format!("paused;stored {a};set;"), format!("stored {b};paused;;")];
        assert_eq!(ask(&client, "/t", lines), told(1, 1));
        let before = count();
        for _ in 0..3 {
            assert_eq!(ask(&client, "/plain", "delete c"), ["delete"]);
            assert_eq!(ask(&client, "/t", lines), told(1, 1));
            assert_eq!(ask(&client, "/plain", "get c"), ["stored 5"], "{kv}: what it has written is written again");
        }
        assert_eq!((count(), runs(&server, "skipped")), (before, 6), "{kv}");
        // What a caller asks besides is its own business.
        assert_eq!(ask(&client, "/t", "invoke slow pause 1000;get a;set c 5\nget a"), ["paused;stored 1;set;", "stored 1"]);
        assert_eq!((count(), runs(&server, "skipped")), (before, 7), "{kv}");
        for (line, a, b) in [("set a 2", 2, 1), ("set b 3", 2, 3)] {
            let before = count();
            assert_eq!(ask(&client, "/plain", line), ["set"]);
            assert_eq!(ask(&client, "/t", lines), told(a, b), "{kv}: {line}");
            assert_ne!(count(), before, "{kv}: {line}");
        }
        // Also of one that answers from its own table.
        (0..3).for_each(|_| assert_eq!(ask(&client, "/remembered", lines), told(2, 3), "{kv}"));
        assert_eq!(ask(&client, "/plain", "set a 4"), ["set"]);
        assert_eq!(ask(&client, "/remembered", lines), told(4, 3), "{kv}");
        server.stop();
    });
}

/// What they do could not be done by others for them, or would be another thing each time.
#[test]
fn callees_that_do_more_than_to_answer_run_each_time() {
    on_every_store(|kv| {
        let server = serve_at("skips", kv);
        let client = server.client();
        let each_time = |lines: &str, told: &[&str]| {
            (0..4).for_each(|round| assert_eq!(ask(&client, "/t", lines), told, "{kv}, round {round}: {lines}"));
        };
        each_time("invoke u send plain add n 1", &["sent;"]);
        crate::eventually("what is sent", || ask(&client, "/plain", "get n") == ["stored 4"]);
        each_time("invoke s invoke u send plain add m 1", &["sent;;"]);
        crate::eventually("what is sent", || ask(&client, "/plain", "get m") == ["stored 4"]);
        each_time("invoke u pause 1", &["paused;"]);
        each_time("invoke u set a 1;trap", &["error 12"]);
        // It has read what its caller has written, and changes what it has read.
        each_time("set b 2\ninvoke u get b", &["set", "own 2;"]);
        each_time("delete l\ninvoke u list l\nset l 1", &["delete", "keys;", "set"]);
        (1..=4).for_each(|n| assert_eq!(ask(&client, "/t", "invoke u next k 0"), [format!("next {n};")], "{kv}"));
        assert_eq!(runs(&server, "skipped"), 0, "{kv}");
        each_time("invoke u add k 1", &["add;"]);
        assert_eq!((runs(&server, "skipped"), ask(&client, "/plain", "get k")), (3, vec!["stored 8".to_owned()]), "{kv}");
        // It answers something else at another place.
        each_time("invoke u get k", &["stored 8;"]);
        each_time("add k 1\ninvoke u get k\nset k 8", &["add", "own 9;", "set"]);
        server.stop();
    });
}

/// Money is moved by callees of callers at the same time: it never gets more or less, also between two callees.
#[test]
fn callers_at_the_same_time_are_one_after_the_other() {
    one_after_the_other("calls");
}

#[test]
fn callers_at_the_same_time_whose_callees_are_left_out_are_one_after_the_other() {
    one_after_the_other("skips");
}

fn one_after_the_other(level: &str) {
    // What naps is not known otherwise.
    let name = if level == "skips" { "slow" } else { "u" };
    on_every_store(|kv| {
        let server = serve_at(level, kv);
        let accounts = (0..4).map(|account| format!("set a{account} 100")).collect::<Vec<_>>().join("\n");
        ask(&server.client(), "/plain", &accounts);
        let address = server.address;
        thread::scope(|scope| {
            for client in 0..4_u64 {
                scope.spawn(move || {
                    let (client, mut random) = (Client::new(address, TIME_MAX), Random::new(client, "accounts"));
                    for _ in 0..25 {
                        let (from, to) = (random.below(4), random.below(4));
                        if from == to {
                            continue;
                        }
                        let lines =
                            format!("invoke {name} total 4 1\ninvoke {name} move a{from} a{to} 1 1\ninvoke {name} total 4 0");
                        assert_eq!(ask(&client, "/t", &lines), ["total 400;", "moved;", "total 400;"]);
                    }
                });
            }
        });
        assert_eq!(ask(&server.client(), "/plain", "total 4 0"), ["total 400"]);
        server.stop();
    });
}

/// The applications of `examples/sharing`: what they reply natively, byte for byte, also to clients at the same time, of which some write.
#[test]
fn the_railway_replies_what_it_replies_natively() {
    let source = programs::tests_folder().join("../examples/sharing");
    let folder = tempfile::tempdir_in(programs::folder()).expect("a folder");
    let mut compile = programs::awsm_command(&["compile", "-O", "0"]);
    compile.arg(&source).arg("-o").arg(folder.path().join("sharing.so")).args(["--", "--locked"]);
    let compiled = process::run(&mut compile, b"", Duration::from_secs(600));
    assert!(compiled.status.success(), "{compile:?}: {}", compiled.stderr);
    let config = fs::read_to_string(source.join("sledge.toml")).expect("the configuration");
    let at = |level: &str| {
        let lines = format!("isolation = \"serializable\"\nspeculation = \"{level}\"\n");
        let config = config.replace("127.0.0.1:8080", "127.0.0.1:0");
        let config = config.replace("[[functions]]\nname = \"ts-", &format!("[[functions]]\n{lines}name = \"ts-"));
        // A setup writes more than a transaction may.
        config.replace(&format!("{lines}name = \"ts-setup\""), "name = \"ts-setup\"")
    };
    let redis = Redis::start();
    for (level, kv) in ["calls", "skips"].into_iter().flat_map(|level| [(level, "memory".to_owned()), (level, redis.url())]) {
        let path = folder.path().join("sledge.toml");
        let admin = folder.path().join("admin.sock");
        fs::write(&path, format!("admin = {admin:?}\n{}", at(level).replace("\"memory\"", &format!("{kv:?}"))))
            .expect("a configuration");
        assert_railway(&path, &sledge_tests::admin::Admin::new(admin), (level, kv != "memory"));
    }
}

fn assert_railway(config: &Path, admin: &sledge_tests::admin::Admin, (level, is_far): (&str, bool)) {
    let server = Server::start_with(&mut programs::sledge_command(&["serve", "--config", config.to_str().expect("UTF-8")]));
    let mut memory = Memory::new();
    let body = setup_body(0, sharing::TRIPS);
    let native = memory.answer("ts-setup", body.as_bytes()).expect("a native setup");
    let reply = server.client().post("/ts-setup", &body);
    assert_eq!((reply.status, reply.body), (200, native));
    let asked: Vec<(&str, String, String)> = APPLICATIONS
        .into_iter()
        .chain([TRAVEL])
        .flat_map(|name| (0..4).map(move |input| (name, sharing::body(name, input, 0))))
        .map(|(name, body)| {
            let native = memory.answer(name, body.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, body, String::from_utf8(native).expect("text"))
        })
        .collect();
    let (address, asked) = (server.address, &asked);
    let ask_all = |client: &Client| {
        for (name, body, native) in asked {
            let reply = client.post(&format!("/{name}"), body);
            assert_eq!((reply.status, &reply.text()), (200, native), "{name} {body}");
        }
    };
    (0..4).for_each(|_| ask_all(&server.client()));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..2).for_each(|_| ask_all(&Client::new(address, TIME_MAX))));
        }
    });
    let count = |result: &str| -> u64 {
        let metrics = admin.get("/metrics").text();
        let name = format!("sledge_speculative_runs_total{{tenant=\"default\",result=\"{result}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
    };
    // On a store in the process functions may take too little time for that to be worth it; those that are left out need not begin. Where the machine is busy nothing is begun ahead for a while.
    if level == "skips" || is_far {
        let result = if level == "skips" { "skipped" } else { "adopted" };
        crate::eventually(&format!("{result} runs"), || {
            ask_all(&server.client());
            count(result) > 50
        });
    }
    assert_eq!(count("skipped") > 0, level == "skips", "{}", count("skipped"));
    server.stop();
}
