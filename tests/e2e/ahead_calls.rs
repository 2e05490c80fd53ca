//! `speculation = "calls"`: functions whose callees begin with them. They answer what the same functions answer without, and leave the same in the store.

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
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A server with a caller whose callees begin with it, the same with a table of answers and the same without either, and what they call.
fn serve(kv: &Value) -> Server {
    let ahead = json!({ "speculation": "calls" });
    let functions = [
        function("t", ahead.clone()),
        function("remembered", json!({ "speculation": "calls", "memo": "auto" })),
        function("plain", json!({})),
        function("s", ahead),
        function("u", json!({})),
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
    // What is called, and how long that takes, is learned first.
    (0..2).for_each(|_| _ = took("/t"));
    let ahead = took("/t");
    assert!(ahead + Duration::from_secs(2) <= plain, "{ahead:?}");
    assert!(runs(&server, "adopted") >= 3);
    assert_eq!(ended(&server, "u", "ok"), 16, "each call is counted once");
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
    (0..2).for_each(|_| _ = took("/t"));
    let ahead = took("/t");
    assert!(ahead + Duration::from_secs(1) <= plain, "{ahead:?}");
    assert_eq!((runs(&server, "adopted"), runs(&server, "dropped")), (3, 0));
    assert_eq!((ended(&server, "s", "ok"), ended(&server, "u", "ok")), (4, 8), "each call is counted once");
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
    on_every_store(|kv| {
        let server = serve(kv);
        let client = server.client();
        let (mut store, mut random) = (Store::new(), Random::new(22, "calls"));
        // The same few bodies again and again: what they call is known soon.
        let bodies: Vec<Vec<String>> = (0..8)
            .map(|_| {
                let some = |random: &mut Random, is_call: bool| match is_call {
                    true => vec![format!("invoke u {}", some_lines(random).replace('\n', ";"))],
                    false => some_lines(random).lines().map(str::to_owned).collect(),
                };
                (0..5).flat_map(|part| some(&mut random, part % 2 == 1 || part == 4)).collect()
            })
            .collect();
        for round in 0..200 {
            let path = if random.below(3) == 0 { "/remembered" } else { "/t" };
            let lines = &bodies[random.below(8) as usize];
            let expected = in_order(&mut store, lines);
            // A value that the request itself has written is one of the transaction's own.
            let told: Vec<String> =
                ask(&client, path, &lines.join("\n")).iter().map(|line| line.replace("own ", "stored ")).collect();
            assert_eq!(told, expected, "{kv}, round {round}: {lines:?}");
        }
        if kv["kv"].as_str().is_some_and(|kv| kv.starts_with("redis")) {
            let [adopted, squashed] = ["adopted", "squashed"].map(|result| runs(&server, result));
            assert!(adopted > 20 && squashed > 0, "{adopted} {squashed}");
        }
        server.stop();
    });
}

/// A callee that fails has failed for its caller, and has logged that once. One that is not called has logged nothing.
#[test]
fn what_is_not_called_has_never_been() {
    let server = in_memory();
    let client = server.client();
    let traps = || server.log().matches("unreachable").count();
    let settled = |before: usize, each: usize| crate::eventually("the log", || traps() == before + each);
    let call = |path: &str, number: usize, called: &str| {
        ask(&client, path, &format!("body {number}\npause 20\ninvoke u {called}")).split_off(2)
    };
    assert_eq!(call("/plain", 0, "set a 1;trap"), ["error 12"]);
    server.wait_for_log("unreachable");
    let each = traps();
    for number in 1..=5 {
        let before = traps();
        assert_eq!(call("/t", number, "set a 1;trap"), ["error 12"]);
        settled(before, each);
    }
    let [adopted, dropped] = ["adopted", "dropped"].map(|result| runs(&server, result));
    assert!(adopted >= 2, "{adopted}");
    // Its caller calls something else this time.
    let before = traps();
    assert_eq!(call("/t", 9, "get a;set b 2"), ["error 44;set;"]);
    assert_eq!(ask(&client, "/t", "body 10\npause 300"), ["body", "paused"]);
    assert!(runs(&server, "dropped") > dropped, "nothing was begun in vain");
    assert_eq!((traps(), ask(&client, "/plain", "get a\nget b")), (before, vec!["error 44".to_owned(), "stored 2".to_owned()]));
    assert_eq!((ended(&server, "u", "trap"), ended(&server, "u", "ok"), ended(&server, "u", "cancelled")), (6, 1, 0));
    server.stop();
}

/// A callee that has read what its caller writes before it calls runs again when it is called.
#[test]
fn a_callee_sees_what_its_caller_has_written() {
    on_every_store(|kv| {
        let server = serve(kv);
        let client = server.client();
        ask(&client, "/plain", "set n 0");
        for round in 1..=12 {
            let told = ask(&client, "/t", "next n 20\ninvoke u get n;list n;add n 10");
            let before = (round - 1) * 11 + 1;
            assert_eq!(told, [format!("next {before}"), format!("own {before};keys n;add;")], "{kv}, round {round}");
        }
        assert_eq!(ask(&client, "/plain", "get n"), ["stored 132"]);
        let [adopted, squashed] = ["adopted", "squashed"].map(|result| runs(&server, result));
        assert!(adopted == 0 && squashed >= 4, "{adopted} {squashed}");
        server.stop();
    });
}

/// Money is moved by callees of callers at the same time: it never gets more or less, also between two callees.
#[test]
fn callers_at_the_same_time_are_one_after_the_other() {
    on_every_store(|kv| {
        let server = serve(kv);
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
                        let lines = format!("invoke u total 4 1\ninvoke u move a{from} a{to} 1 1\ninvoke u total 4 0");
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
    let config = config.replace("127.0.0.1:8080", "127.0.0.1:0").replace(
        "[[functions]]\nname = \"ts-",
        "[[functions]]\nisolation = \"serializable\"\nspeculation = \"calls\"\nname = \"ts-",
    );
    // A setup writes more than a transaction may.
    let config =
        config.replace("isolation = \"serializable\"\nspeculation = \"calls\"\nname = \"ts-setup\"", "name = \"ts-setup\"");
    let redis = Redis::start();
    for kv in ["memory", redis.url().as_str()] {
        let path = folder.path().join("sledge.toml");
        let admin = folder.path().join("admin.sock");
        fs::write(&path, format!("admin = {admin:?}\n{}", config.replace("\"memory\"", &format!("{kv:?}"))))
            .expect("a configuration");
        assert_railway(&path, &sledge_tests::admin::Admin::new(admin), kv != "memory");
    }
}

fn assert_railway(config: &Path, admin: &sledge_tests::admin::Admin, is_far: bool) {
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
    let metrics = admin.get("/metrics").text();
    let name = "sledge_speculative_runs_total{tenant=\"default\",result=\"adopted\"} ";
    let adopted: u64 = metrics.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap_or(0);
    // On a store in the process functions may take too little time for that to be worth it.
    assert!(!is_far || adopted > 50, "{adopted}");
    server.stop();
}
