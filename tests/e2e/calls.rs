//! Functions that call functions, and what they say about themselves.

use crate::stores;
use crate::{LISTENERS, assert_failure, entry, entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::time::{Duration, Instant};

fn lines(server: &Server, path: &str, lines: &str) -> Vec<String> {
    let reply = server.client().post(path, lines);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text().lines().map(str::to_owned).collect()
}

#[test]
fn a_call_has_a_reply_or_says_why_not() {
    for listeners in LISTENERS {
        let functions = json!([
            entry("caller", "caller.c"),
            entry("echo", "echo.wat"),
            entry("traps", "traps.wat"),
            entry("exit", "exit.c"),
            entry_with("seven", "exit.c", &json!({ "args": ["7"] })),
            entry_with("stranger", "echo.wat", &json!({ "tenant": "another" })),
            entry_with("late", "wait.wat", &json!({ "deadline_ms": 2_000 })),
        ]);
        let server = Server::start(json!({ "listeners": listeners, "workers": 1, "functions": functions }));
        let ask = |text: &str| lines(&server, "/caller", text);
        assert_eq!(ask("invoke echo hello\ninvoke exit hello\ninvoke echo "), ["5 hello", "5 HELLO", "0 "], "{listeners}");
        assert_eq!(
            ask("invoke missing x\ninvoke stranger x\ninvoke seven x\ninvoke echo on"),
            ["error 44", "error 44", "error 12", "2 on"]
        );
        let pieces = ask("pieces echo abcdefgh\npieces echo abc\ninvoke echo abc\npieces echo ");
        assert_eq!(pieces, ["8 abc 5 def 2 gh 0", "3 abc 0", "3 abc", "0"]);
        assert_eq!(ask("invoke traps u\ninvoke echo on"), ["error 12", "2 on"]);
        assert_eq!(ask("binary late -1\nbinary late 0"), ["error 73", "8 "]);
        assert_eq!(ask("large echo 100000\nlarge echo 4194305\nfault echo"), ["100000 ", "error 1", "error 21", "error 21"]);
        server.stop();
    }
}

#[test]
fn calls_that_are_started_wait_together() {
    let functions = json!([entry("caller", "caller.c"), entry("wait", "wait.wat")]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let start = Instant::now();
    let text = format!("{}wait 4\nwait 0\nwait 1\nwait 2\nwait 3\nwait 3\nwait 99", "start wait 1500000000\n".repeat(5));
    let expected = ["call 0", "call 1", "call 2", "call 3", "call 4", "8 ", "8 ", "8 ", "8 ", "8 ", "error 8", "error 8"];
    let got: Vec<String> = lines(&server, "/caller", &text).iter().map(|line| line.trim_end_matches('\0').to_owned()).collect();
    assert_eq!(got, expected);
    let took = start.elapsed();
    // One after the other they would take 7.5 s.
    assert!(took >= Duration::from_millis(1_500) && took < Duration::from_secs(7), "{took:?}");
    let full = lines(&server, "/caller", &"start wait -1\n".repeat(65));
    assert_eq!(full[63..], ["call 63", "call -33"]);
    server.stop();
}

#[test]
fn run_knows_no_other_function() {
    let caller = programs::function("caller.c");
    let done = process::run(sledge_command(&["run"]).arg(&caller), b"invoke echo x\nsend echo x\nlog 2 here", TIME_MAX);
    assert_eq!((done.code(), String::from_utf8_lossy(&done.stdout).into_owned()), (0, "error 44\nsent 0\nlogged 0\n".to_owned()));
    assert!(done.stderr.contains("here"), "{}", done.stderr);
}

#[test]
fn chains_of_calls_end() {
    let functions = json!([entry("a", "caller.c"), entry("b", "caller.c")]);
    let server = Server::start(json!({ "workers": 2, "functions": functions }));
    for _ in 0..10 {
        assert_eq!(lines(&server, "/a", "deep a a"), ["4 refused 32"]);
        assert_eq!(lines(&server, "/a", "deep b a"), ["8 refused 32"]);
    }
    server.stop();
}

/// A callee has no more time than its caller, and ends with it.
#[test]
fn a_callee_ends_with_its_caller() {
    let functions = json!([
        entry_with("caller", "caller.c", &json!({ "deadline_ms": 300 })),
        entry_with("wait", "wait.wat", &json!({ "deadline_ms": 600_000, "concurrency_max": 1, "queue_max": 0 })),
        entry_with("patient", "caller.c", &json!({ "deadline_ms": 20_000 })),
    ]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let start = Instant::now();
    assert_failure(&server.client().post("/caller", "binary wait -1"), 504, "deadline", "deadline_exceeded", Some("caller"));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    // Its place is free again, soon.
    let end = Instant::now() + TIME_MAX;
    while lines(&server, "/patient", "binary wait 0") != ["8 "] {
        assert!(Instant::now() < end, "the callee runs on");
    }
    // One that is started and left has its place no longer either; while there is none, another is refused.
    assert_eq!(
        lines(&server, "/patient", "start wait -1\nstart wait 0\nwait 1\nbinary wait 0"),
        ["call 0", "call 1", "error 6", "error 6"]
    );
    while lines(&server, "/patient", "binary wait 0") != ["8 "] {
        assert!(Instant::now() < end, "the callee runs on");
    }
    server.stop();
}

/// However much its function has: it is ended for its own deadline, not because the reply was given up.
#[test]
fn a_callee_has_its_callers_deadline() {
    for listeners in LISTENERS {
        let functions = json!([
            entry_with("caller", "caller.c", &json!({ "deadline_ms": 2_000 })),
            entry_with("between", "caller.c", &json!({ "deadline_ms": 600_000 })),
            entry_with("wait", "wait.wat", &json!({ "deadline_ms": 600_000 })),
        ]);
        let server = Server::start(json!({ "listeners": listeners, "workers": 1, "functions": functions }));
        let ended = |function: &str, outcome: &str| {
            let sample = format!("sledge_requests_total{{function=\"{function}\",tenant=\"default\",outcome=\"{outcome}\"}} 1\n");
            server.admin().get("/metrics").text().contains(&sample)
        };
        assert_failure(&server.client().post("/caller", "binary wait -1"), 504, "deadline", "deadline_exceeded", Some("caller"));
        eventually("the callee ends", || ended("wait", "deadline") || ended("wait", "cancelled"));
        assert!(ended("wait", "deadline") && !ended("wait", "cancelled"), "{listeners}");
        // Also what is called in between.
        let text = "start wait 0\ninvoke between binary wait -1";
        assert_failure(&server.client().post("/caller", text), 504, "deadline", "deadline_exceeded", Some("caller"));
        eventually("it ends, too", || ended("between", "deadline"));
        server.stop();
    }
}

/// It runs within its caller's turn, and no longer than a turn.
#[test]
fn a_callee_that_computes_is_preempted_and_ended_as_any() {
    let functions = json!([
        entry_with("caller", "caller.c", &json!({ "deadline_ms": 60_000 })),
        entry_with("spin", "spin.wat", &json!({ "deadline_ms": 8_000 })),
        entry("echo", "echo.wat"),
    ]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let mut raw = Raw::connect(server.address);
    let text = "invoke echo a\ninvoke spin x\ninvoke echo b";
    raw.send(format!("POST /caller HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n{text}", text.len()));
    let begin = Instant::now();
    for _ in 0..20 {
        assert_eq!(server.client().post("/echo", "quick").text(), "quick");
    }
    assert!(begin.elapsed() < Duration::from_secs(7), "{:?}", begin.elapsed());
    let reply = raw.reply().expect("a reply");
    assert_eq!((reply.status, reply.text().as_str()), (200, "1 a\nerror 73\n1 b\n"));
    assert!(begin.elapsed() >= Duration::from_secs(4), "the callee has its time: {:?}", begin.elapsed());
    server.stop();
}

#[test]
fn what_is_only_sent_outlives_its_sender() {
    let functions = json!([entry("caller", "caller.c"), entry("kv", "kv.c")]);
    let server = Server::start(json!({ "workers": 1, "kv": "memory", "functions": functions }));
    assert_eq!(lines(&server, "/caller", &"send kv add n 1\n".repeat(20)), vec!["sent 0"; 20]);
    let end = Instant::now() + TIME_MAX;
    while !lines(&server, "/kv", "get n")[0].ends_with(" 20") {
        assert!(Instant::now() < end, "not all were done");
    }
    server.stop();
}

#[test]
fn messages_are_logged_and_times_are_known() {
    let functions = json!([entry("caller", "caller.c"), entry("wait", "wait.wat")]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    assert_eq!(lines(&server, "/caller", "log 3 take \u{1b}care\nlog 9 x"), ["logged 0", "logged -28"]);
    server.wait_for_log("take \\u{1b}care");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("take")).expect("the message");
    assert!(line.contains("WARN") && line.contains("caller"), "{line}");
    // Two seconds blocked, next to none on the processor.
    let reply =
        server.client().try_post("/wait", &2_000_000_000_i64.to_le_bytes(), &[("server-timing-request", "1")]).expect("a reply");
    let timing = reply.header("server-timing").expect("times").to_owned();
    let time = |name: &str| -> f64 {
        let (_, rest) = timing.split_once(&format!("{name};dur=")).unwrap_or_else(|| panic!("{name}: {timing}"));
        rest.split(',').next().expect("a number").parse().expect("a number")
    };
    assert!(time("blocked") >= 1_999.0 && time("cpu") < 1_000.0, "{timing}");
    assert!((time("ready") + time("cpu") + time("blocked") - time("queue") - time("run")).abs() < 1.0, "{timing}");
    server.stop();
}

/// What functions are called with counts as the server's, wherever it waits.
#[test]
fn inputs_of_calls_that_wait_are_bounded() {
    const TOTAL: u64 = 64 << 20;
    let functions = json!([
        entry("caller", "caller.c"),
        entry("echo", "echo.wat"),
        entry_with("busy", "spin.wat", &json!({ "concurrency_max": 1, "deadline_ms": 600_000 })),
    ]);
    let server = Server::start(json!({ "workers": 1, "memory_total_bytes_max": TOTAL, "functions": functions }));
    assert_eq!(lines(&server, "/caller", "large echo 1000000"), ["1000000 "]);
    let before = server.resident_bytes();
    // One runs for ever, all others wait for it: ten times what there is.
    let mut taken = 0;
    for _ in 0..64 {
        let reply = server.client().post("/caller", "push busy 1000000\n".repeat(10));
        assert!(matches!(reply.status, 200 | 503), "{reply:?}");
        taken += usize::from(reply.status == 200);
    }
    assert!(taken > 2, "{taken}");
    let grown = server.resident_bytes().saturating_sub(before);
    assert!((20 << 20..TOTAL).contains(&grown), "{grown}");
}

/// A request whose body is to follow: it is admitted when this returns.
fn admitted(server: &Server, path: &str, bytes: usize) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {bytes}\r\nexpect: 100-continue\r\n\r\n"));
    assert_eq!(raw.reply().expect("an interim reply").status, 100);
    raw
}

/// What waits at a gate until its deadline has passed is answered so, whether a client or a function asked, and never begun; then its place is another's. The only
/// place to run is held by a request of an earlier version, whose deadline is far.
#[test]
fn calls_that_wait_at_a_gate_beyond_their_deadline_time_out() {
    /// Long enough for one request to make all of its calls.
    const GATED: Duration = Duration::from_secs(1);
    let web = json!({ "name": "web", "path": stores::artifact(), "deadline_ms": 60_000 });
    for listeners in LISTENERS {
        let functions = |deadline_ms: u64| {
            let limits = json!({ "deadline_ms": deadline_ms, "concurrency_max": 1, "queue_max": 2 });
            json!([
                entry_with("caller", "caller.c", &json!({ "deadline_ms": 60_000 })),
                web,
                entry("stream", "stream.c"),
                entry_with("gated", "stream.c", &limits),
            ])
        };
        let config = json!({ "listeners": listeners, "workers": 1, "kv": "memory", "functions": functions(600_000) });
        let server = Server::start(config.clone());
        let reload = |deadline_ms: u64, times: usize| {
            let mut config: Value = config.clone();
            let file = server.folder().join("sledge.json");
            let written: Value = serde_json::from_slice(&std::fs::read(&file).expect("the configuration")).expect("JSON");
            (config["functions"], config["listen"], config["admin"]) =
                (functions(deadline_ms), written["listen"].clone(), written["admin"].clone());
            std::fs::write(&file, config.to_string()).expect("write the configuration");
            server.signal(Signal::HUP);
            eventually("there is a new version", || server.log().matches("replaced gated").count() == times);
        };
        let client = server.client();
        let is_marked = |name: &str| client.post("/stream", format!("marked {name}")).text() == "yes\n";
        let mut holder = Raw::connect(server.address);
        holder.send(post_bytes("/gated", b"mark begun\nawait go", ""));
        eventually("it runs", || is_marked("begun"));
        reload(GATED.as_millis() as u64, 1);
        for _ in 0..3 {
            let start = Instant::now();
            // Two may wait. Where nothing came of others but a timeout, there is room again.
            let text = "start gated 0\nstart gated 0\nstart gated 0\nwait 2\nwait 0\nwait 1";
            assert_eq!(
                lines(&server, "/caller", text),
                ["call 0", "call 1", "call 2", "error 6", "error 73", "error 73"],
                "{listeners}"
            );
            assert!(start.elapsed() >= GATED, "{listeners}: {:?}", start.elapsed());
            assert_eq!(lines(&server, "/caller", "invoke gated mark late"), ["error 73"], "{listeners}");
            assert_eq!(client.post("/web", "call invoke gated late").text(), "Err(Error::Timeout)\n", "{listeners}");
            assert_failure(&client.post("/gated", "mark late"), 504, "deadline", "deadline_exceeded", Some("gated"));
        }
        assert!(!holder.answers_within(Duration::from_millis(20)), "{listeners}: it is not concerned");
        assert_eq!(client.post("/stream", "mark go").status, 200);
        assert_eq!(holder.reply().expect("a reply").status, 200, "{listeners}");
        // All that is left is gone, and there are as many places as before: one runs, two wait, a fourth is refused.
        eventually("nothing waits", || server.admin().get("/status").json()["requests"] == 0);
        reload(60_000, 2);
        let texts = ["mark second\nawait on", "mark third", "mark fourth"];
        let mut taken = texts.map(|text| admitted(&server, "/gated", text.len()));
        assert_failure(&client.post("/gated", "mark late"), 429, "too_many_requests", "queue_max", Some("gated"));
        taken[0].send(texts[0]);
        eventually("the first runs", || is_marked("second"));
        taken.iter_mut().zip(texts).skip(1).for_each(|(raw, text)| raw.send(text));
        assert!(!taken[1].answers_within(Duration::from_millis(50)), "{listeners}: one at a time");
        assert!(!is_marked("third") && !is_marked("fourth"), "{listeners}");
        assert_eq!(client.post("/stream", "mark on").status, 200);
        assert!(taken.iter_mut().all(|raw| raw.reply().expect("a reply").status == 200), "{listeners}");
        assert!(is_marked("third") && is_marked("fourth") && !is_marked("late"), "{listeners}");
        server.stop();
    }
}
