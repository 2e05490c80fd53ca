//! What operators see: metrics, health, logs.

use crate::{entry, entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A server's metrics, as a program that reads them sees them.
struct Metrics(String);

impl Metrics {
    fn of(server: &Server) -> Metrics {
        let reply = server.admin().get("/metrics");
        assert_eq!(reply.status, 200);
        assert!(reply.header("content-type").expect("a type").starts_with("application/openmetrics-text"), "{reply:?}");
        let text = reply.text();
        assert!(text.ends_with("# EOF\n"), "{text}");
        Metrics(text)
    }

    /// The value of a sample, by its name and its labels in the order in which they are written; zero where there is none.
    fn get(&self, sample: &str) -> f64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap_or_else(|error| panic!("{sample} {value}: {error}")))
    }

    /// The sum of a sample over all threads.
    fn sum(&self, name: &str) -> f64 {
        let lines = self.0.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        lines.map(|line| line.rsplit_once(' ').expect("a value").1.parse::<f64>().expect("a number")).sum()
    }
}

#[test]
fn requests_are_counted_by_function_tenant_and_outcome() {
    for listeners in crate::LISTENERS {
        let functions = json!([
            entry_with("echo", "echo.wat", &json!({ "methods": ["POST"] })),
            entry_with("traps", "traps.wat", &json!({ "tenant": "say \"hi\"" })),
            entry_with("spin", "spin.wat", &json!({ "deadline_ms": 1_000 })),
        ]);
        let server = Server::start(
            json!({ "listeners": listeners, "workers": 2, "quantum_us": 500, "body_bytes_max": 1_000, "functions": functions }),
        );
        let client = server.client();
        for _ in 0..30 {
            assert_eq!(client.post("/echo", "x").status, 200);
        }
        assert_eq!(client.post("/echo", [0; 1_001]).status, 413);
        assert_eq!(client.get("/echo").status, 405);
        assert_eq!(client.post("/traps", "u").status, 500);
        assert_eq!(client.post("/spin", "").status, 504);
        assert_eq!(client.post("/nowhere", "").status, 404);

        let last = "sledge_requests_total{function=\"spin\",tenant=\"default\",outcome=\"deadline\"}";
        eventually("all are counted", || {
            let metrics = Metrics::of(&server);
            metrics.sum("sledge_unrouted_requests_total") == 1.0
                && metrics.get(last) == 1.0
                && metrics.sum("sledge_requests_total") == 34.0
        });
        let metrics = Metrics::of(&server);
        let requests = |function: &str, tenant: &str, outcome: &str| {
            metrics.get(&format!("sledge_requests_total{{function=\"{function}\",tenant=\"{tenant}\",outcome=\"{outcome}\"}}"))
        };
        let counted = ["ok", "body_too_large", "method_not_allowed", "trap"].map(|outcome| requests("echo", "default", outcome));
        assert_eq!(counted, [30.0, 1.0, 1.0, 0.0], "{listeners}: {}", metrics.0);
        assert_eq!(requests("traps", "say \\\"hi\\\"", "trap"), 1.0, "{}", metrics.0);
        assert_eq!(requests("spin", "default", "deadline"), 1.0, "{}", metrics.0);
        assert_eq!(metrics.sum("sledge_unrouted_requests_total"), 1.0, "{}", metrics.0);
        for phase in ["queue", "instantiate", "run", "reset"] {
            let sample = |suffix: &str, more: &str| {
                metrics.get(&format!("sledge_{phase}_seconds_{suffix}{{{more}function=\"echo\",tenant=\"default\"}}"))
            };
            // The sandbox of the last one may not be reset yet.
            let count = sample("count", "");
            assert!(count == 30.0 || (phase == "reset" && count == 29.0), "{phase}: {count}\n{}", metrics.0);
            assert_eq!(sample("bucket", "le=\"+Inf\","), count, "{phase}");
            // A request that finds an idle worker does not wait at all.
            assert!((sample("sum", "") > 0.0 || phase == "queue") && sample("sum", "") < 60.0, "{phase}");
            let buckets: Vec<f64> = metrics
                .0
                .lines()
                .filter(|line| line.starts_with(&format!("sledge_{phase}_seconds_bucket{{")) && line.contains("\"echo\""))
                .map(|line| line.rsplit_once(' ').expect("a value").1.parse().expect("a number"))
                .collect();
            assert!(buckets.is_sorted() && buckets.len() > 20, "{phase}: {buckets:?}");
        }
        // A second is many quanta, also where the processor is taken away for a part of it.
        let preemptions = metrics.get("sledge_preemptions_total{function=\"spin\",tenant=\"default\"}");
        assert!(preemptions >= 10.0, "{preemptions}\n{}", metrics.0);
        assert!(metrics.get("sledge_idle_sandboxes") >= 1.0, "{}", metrics.0);
        server.stop();
    }
}

#[test]
fn connections_memory_and_the_process_are_seen() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry("echo", "echo.wat")] }));
    let before = Metrics::of(&server);
    let mut raw: Vec<Raw> = (0..7).map(|_| Raw::connect(server.address)).collect();
    for raw in &mut raw {
        raw.send(post_bytes("/echo", b"x", ""));
        assert_eq!(raw.reply().expect("a reply").status, 200);
    }
    let now = Metrics::of(&server);
    assert_eq!(now.sum("sledge_open_connections"), 7.0, "{}", now.0);
    assert_eq!(now.sum("sledge_connections_total"), 7.0);
    assert!(now.get("sledge_process_open_fds") >= before.get("sledge_process_open_fds") + 7.0);
    assert!(
        now.get("sledge_memory_used_bytes") > 0.0 && now.get("sledge_memory_max_bytes") > now.get("sledge_memory_used_bytes")
    );
    assert!(now.get("sledge_process_resident_bytes") > 1e6);
    assert_eq!(now.get("sledge_functions"), 1.0);
    drop(raw);
    let deadline = Instant::now() + TIME_MAX;
    while Metrics::of(&server).sum("sledge_open_connections") > 0.0 {
        assert!(Instant::now() < deadline, "connections that have ended are still counted");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(Metrics::of(&server).sum("sledge_connections_total"), 7.0);
    server.stop();
}

#[test]
fn compilations_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "cache_dir": folder.path().join("cache"), "functions": [] }));
    let module = wat::parse_file(programs::tests_folder().join("e2e/functions/echo.wat")).expect("WAT");
    let admin = server.admin();
    for _ in 0..3 {
        assert_eq!(admin.deploy("f", &json!({}), &module).status, 200);
    }
    assert_eq!(admin.deploy("f", &json!({}), b"\0asm nonsense").status, 422);
    let metrics = Metrics::of(&server);
    let results =
        ["compiled", "cached", "failed"].map(|result| metrics.get(&format!("sledge_compilations_total{{result=\"{result}\"}}")));
    assert_eq!(results, [1.0, 2.0, 1.0], "{}", metrics.0);
    assert_eq!(metrics.get("sledge_compile_seconds_count"), 1.0);
    server.stop();
}

/// What a balancer asks. Not ready while it drains, healthy until the end.
#[test]
fn health_and_readiness_are_told_apart() {
    let mut server = Server::start(json!({ "drain_timeout_ms": 30_000, "functions": [entry("echo", "echo.wat")] }));
    let admin = server.admin();
    let both = || (admin.get("/healthz").status, admin.get("/readyz").status);
    assert_eq!(both(), (200, 200));
    let mut raw = Raw::connect(server.address);
    raw.send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(raw.reply().expect("an interim reply").status, 100);
    server.signal(Signal::TERM);
    server.wait_for_log("stopping");
    let deadline = Instant::now() + TIME_MAX;
    while both() != (200, 503) {
        assert!(Instant::now() < deadline, "{:?}", both());
    }
    assert_eq!(admin.deploy("f", &json!({}), b"\0asm\x01\0\0\0").status, 422, "no entry");
    assert_eq!(admin.get("/status").json()["phase"], "draining");
    raw.send("x");
    assert_eq!(raw.reply().expect("a reply").text(), "x");
    assert!(server.wait(TIME_MAX).success());
}

#[test]
fn requests_are_counted_by_function_only_where_configured() {
    let server = Server::start(json!({ "metrics": false, "functions": [entry("echo", "echo.wat")] }));
    assert_eq!(server.client().post("/echo", "x").status, 200);
    let metrics = Metrics::of(&server);
    assert!(!metrics.0.contains("function=\"echo\",tenant"), "{}", metrics.0);
    assert_eq!(metrics.sum("sledge_connections_total"), 1.0, "{}", metrics.0);
    server.stop();
}

/// A function that writes `count` lines to its standard error.
fn chatty(count: usize) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "a line\n")
            (func (export "sledge_handle") (result i32) (local $i i32)
                (i32.store (i32.const 0) (i32.const 64))
                (i32.store (i32.const 4) (i32.const 7))
                (loop $again
                    (drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $again (i32.lt_u (local.get $i) (i32.const {count}))))
                (i32.const 0)))"#
    );
    wat::parse_str(text).expect("WAT")
}

#[test]
fn standard_error_is_kept_for_each_function_and_limited() {
    let server = Server::start(json!({ "functions": [entry("traps", "traps.wat")] }));
    let (admin, client) = (server.admin(), server.client());
    assert_eq!(admin.deploy("quiet", &json!({}), &chatty(1)).status, 200);
    assert_eq!(admin.deploy("loud", &json!({ "log_lines_per_s_max": 5 }), &chatty(50)).status, 200);
    let start = Instant::now();
    assert_eq!((client.post("/loud", "").status, client.post("/quiet", "").status), (200, 200));
    let lines = admin.get("/functions/loud/logs").text().lines().count();
    // Five for each second that began meanwhile.
    let most = 5 * (2 + start.elapsed().as_secs() as usize);
    assert!((5..=most).contains(&lines), "{lines} lines");
    let quiet = admin.get("/functions/quiet/logs").text();
    assert!(quiet.ends_with(" a line\n") && quiet.lines().count() == 1, "{quiet}");
    let dropped = Metrics::of(&server).get("sledge_log_lines_dropped_total{function=\"loud\"}");
    assert!(dropped >= 30.0, "{dropped}");
    // What was dropped is said as soon as there is room again.
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(client.post("/loud", "").status, 200);
    server.wait_for_log("logged too fast");
    assert!(admin.get("/functions/loud/logs").text().contains("lines were dropped"));
    assert_eq!(admin.get("/functions/loud/logs?lines=2").text().lines().count(), 2);
    assert_eq!(admin.get("/functions/missing/logs").status, 404);

    // A trap is reported there, too, with its backtrace.
    assert_eq!(client.post("/traps", "u").status, 500);
    let report = || admin.get("/functions/traps/logs").text();
    eventually("it is reported", || report().contains("unreachable") && report().contains("offset"));
    server.stop();
}

#[test]
fn logs_follow_what_a_function_writes_also_its_next_version() {
    let server = Server::start(json!({ "functions": [] }));
    let (admin, client) = (server.admin(), server.client());
    assert_eq!(admin.deploy("f", &json!({}), &chatty(2)).status, 200);
    assert_eq!(client.post("/f", "").status, 200);
    let mut command = sledge_command(&["logs", "f", "--follow", "-n", "1", "--admin"]);
    let command = command.arg(admin.path()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().expect("sledge logs");
    let (sender, lines) = std::sync::mpsc::channel();
    let stdout = child.stdout.take().expect("its output");
    std::thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let next = || lines.recv_timeout(TIME_MAX).expect("a line");
    let version = |name: &str| admin.function(name).expect("it is there")["version"].clone();
    let is_line = |line: String, version: &Value| line.ends_with(" a line") && line.contains(&format!(" INFO v{version} #"));
    let first = version("f");
    assert!(is_line(next(), &first));
    assert_eq!(client.post("/f", "").status, 200);
    assert!(is_line(next(), &first) && is_line(next(), &first));
    assert_eq!(admin.deploy("f", &json!({}), &chatty(1)).status, 200);
    assert_eq!(client.post("/f", "").status, 200);
    assert_ne!(version("f"), first);
    assert!(is_line(next(), &version("f")));
    process::kill(&mut child);
    server.stop();
}

/// Of a line, of a trap, in the server's own log; for people and for machines.
#[test]
fn lines_say_when_they_were_written_by_which_version_for_which_request() {
    let server = Server::start(json!({ "request_ids": true, "functions": [entry("traps", "traps.wat")] }));
    let (admin, client) = (server.admin(), server.client());
    assert_eq!(admin.deploy("f", &json!({}), &chatty(1)).status, 200);
    let asked = client.try_post("/f", b"", &[("x-request-id", "abc-123")]).expect("a reply");
    assert_eq!(asked.status, 200);
    let text = admin.get("/functions/f/logs").text();
    let (time, rest) = text.split_once(' ').expect("a time");
    assert!(time.len() == "2026-01-01T00:00:00.000Z".len() && time.ends_with('Z'), "{text}");
    let version = admin.function("f").expect("it is there")["version"].clone();
    assert_eq!(rest, format!(" INFO v{version} abc-123 a line\n"));
    server.wait_for_log("request_id=\"abc-123\"");

    let json: Value = serde_json::from_str(&admin.get("/functions/f/logs?format=json").text()).expect("a line of JSON");
    assert_eq!(
        (&json["time"], &json["level"], &json["version"], &json["request_id"], &json["message"]),
        (&json!(time), &json!("INFO"), &version, &json!("abc-123"), &json!("a line"))
    );
    assert!(json["request"].is_u64(), "{json}");
    let mut command = sledge_command(&["logs", "f", "--json", "--admin"]);
    let done = process::run(command.arg(admin.path()), b"", TIME_MAX);
    assert_eq!(serde_json::from_str::<Value>(&done.text()).expect("a line of JSON"), json, "{}", done.stderr);
    assert_eq!(admin.get("/functions/f/logs?format=xml").status, 400);

    assert_eq!(client.try_post("/traps", b"u", &[("x-request-id", "of-a-trap")]).expect("a reply").status, 500);
    let report = || admin.get("/functions/traps/logs").text();
    eventually("it is reported", || report().contains(" WARN v") && report().contains(" of-a-trap trap: "));
    server.stop();
}

#[test]
fn requests_are_logged_with_their_ids_where_that_is_wanted() {
    let config = json!({ "access_log": true, "request_ids": true, "functions": [entry("echo", "echo.wat")] });
    let folder = tempfile::tempdir().expect("a folder");
    let mut config_with_address = config.clone();
    config_with_address["listen"] = "127.0.0.1:0".into();
    config_with_address["admin"] = "none".into();
    let file = folder.path().join("sledge.json");
    std::fs::write(&file, config_with_address.to_string()).expect("write the configuration");
    let server = Server::start_with(sledge_command(&["serve", "--log-format", "json", "--config"]).arg(&file));
    let client = server.client();
    let given = client.try_post("/echo?secret=1", b"four", &[("x-request-id", "abc-123")]).expect("a reply");
    assert_eq!(given.header("x-request-id"), Some("abc-123"));
    let new = client.try_post("/nowhere", b"", &[("x-request-id", "has a space")]).expect("a reply");
    let id = new.header("x-request-id").expect("an id").to_string();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    server.wait_for_log("abc-123");
    server.wait_for_log(&id);
    let lines: Vec<Value> = server.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let line = |id: &str| lines.iter().find(|line| line["id"] == id).unwrap_or_else(|| panic!("{id}: {lines:#?}"));
    let first = line("abc-123");
    assert_eq!(
        (&first["method"], &first["path"], &first["status"], &first["bytes"]),
        (&json!("POST"), &json!("/echo"), &json!(200), &json!(4))
    );
    assert_eq!(first["function"], "echo");
    assert!(first["took_us"].as_u64().is_some_and(|took| took > 0), "{first}");
    let second = line(&id);
    assert!(second["status"] == 404 && second.get("function").is_none_or(Value::is_null), "{second}");
    server.stop();
    // By default there is neither.
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    assert_eq!(server.client().post("/echo", "x").header("x-request-id"), None);
    let log = server.stop_for_log();
    assert!(!log.contains("/echo?"), "{log}");
}
