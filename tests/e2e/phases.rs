//! Phases: what functions declare, what they say, and how long each took.

use crate::{assert_failure, entry_with, eventually};
use serde_json::{Value, json};
use sledge_tests::http::Reply;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use sledge_tests::{http::TIME_MAX, process};
use std::time::{Duration, Instant};

const NAMES: [&str; 4] = ["begin", "read", "work", "write"];

fn declared() -> Value {
    json!([
        { "id": 3, "name": "write", "cpu_us": 1_000, "cpu_percent": 5 },
        { "id": 1, "name": "read", "cpu_us": 500, "cpu_percent": 20 },
        { "id": 2, "name": "work", "cpu_us": 40_000 },
    ])
}

fn post(server: &Server, path: &str, text: &str) -> Reply {
    server.client().try_post(path, text.as_bytes(), &[("server-timing-request", "1")]).expect("a reply")
}

/// Milliseconds by name.
fn times(reply: &Reply) -> Vec<(String, f64)> {
    let timing = reply.header("server-timing").expect("times");
    let time = |part: &str| {
        let (name, time) = part.split_once(";dur=").unwrap_or_else(|| panic!("{timing}"));
        (name.to_owned(), time.parse().expect("a number"))
    };
    timing.split(", ").map(time).collect()
}

fn sample(server: &Server, sample: &str) -> Option<f64> {
    let text = server.admin().get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ').map(str::to_owned));
    line.map(|value| value.parse().expect("a number"))
}

#[test]
fn a_request_knows_how_long_it_ran_in_each_phase() {
    let functions = json!([entry_with("phases", "phases.c", &json!({ "phases": declared(), "tenant": "us" }))]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let text = "spin 20\nphase 1\nsleep 100\nphase 2\nspin 60\nphase 1\nspin 20\nphase 3\nphase 9\nphase 2";
    let reply = post(&server, "/phases", text);
    assert_eq!((reply.status, reply.text().as_str()), (200, "0\n0\n0\n0\n-28\n0\n"));
    let times = times(&reply);
    let time = |name: &str| times.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}: {times:?}")).1;
    // Spinning goes by the clock, which goes on while the function is ready and does not run; what the machine does besides is not known.
    let ready = time("ready");
    for (name, least) in [("begin", 19.0), ("read", 19.0), ("work", 59.0), ("write", 0.0)] {
        assert!(time(&format!("phase-{name}")) >= least - ready, "{name}: {times:?}");
    }
    // Waiting belongs to none, and all of them together are what it ran.
    let sum: f64 = NAMES.iter().map(|name| time(&format!("phase-{name}"))).sum();
    assert!((sum - time("cpu")).abs() < 0.01, "{times:?}");
    assert!(time("blocked") >= 99.0, "{times:?}");

    // One that ends early has them, too; what it was not in is not counted.
    assert_eq!(post(&server, "/phases", "phase 3\nfail").status, 500);
    let of = |name: &str, phase: &str| {
        sample(&server, &format!("sledge_{name}{{function=\"phases\",tenant=\"us\",phase=\"{phase}\"}}"))
    };
    eventually("both are counted", || of("phase_cpu_seconds_count", "write") == Some(2.0));
    for (phase, count) in [("begin", 2.0), ("read", 1.0), ("work", 1.0), ("write", 2.0)] {
        assert_eq!(of("phase_cpu_seconds_count", phase), Some(count), "{phase}");
        let infinite =
            format!("sledge_phase_cpu_seconds_bucket{{le=\"+Inf\",function=\"phases\",tenant=\"us\",phase=\"{phase}\"}}");
        assert_eq!(sample(&server, &infinite), Some(count), "{phase}");
    }
    assert!(of("phase_cpu_seconds_sum", "work").expect("a sum") >= (59.0 - ready) / 1000.0);
    let expected = NAMES.map(|phase| of("phase_expected_cpu_seconds", phase));
    assert_eq!(expected, [None, Some(0.0005), Some(0.04), Some(0.001)]);
    assert_eq!(NAMES.map(|phase| of("phase_expected_core_ratios", phase)), [Some(1.0), Some(0.2), Some(1.0), Some(0.05)]);
    server.stop();
}

/// With classes an invocation waits for its turn where it begins a phase. It says and gets what it did without, whatever runs beside it, and each of its microtasks is counted once.
#[test]
fn a_phase_begins_with_a_turn_where_microtasks_have_classes() {
    const REQUESTS: u32 = 16;
    for classes in ["inferred", "declared"] {
        let functions = json!([entry_with("phases", "phases.c", &json!({ "phases": declared() }))]);
        let server = Server::start(json!({ "workers": 1, "classes": classes, "functions": functions }));
        // The phase that is not declared is none, and no turn.
        let text = "phase 1\nsleep 5\nphase 2\nspin 20\nphase 9\nphase 3\nsleep 5\nphase 1";
        std::thread::scope(|scope| {
            for _ in 0..REQUESTS {
                scope.spawn(|| assert_eq!(post(&server, "/phases", text).text(), "0\n0\n-28\n0\n0\n", "{classes}"));
            }
        });
        let of_classes = || {
            let sample = |class| sample(&server, &format!("sledge_microtasks_total{{class=\"{class}\"}}"));
            [0, 1, 2, 3].map(|class| sample(class).unwrap_or(0.0))
        };
        // Four phases, two waits and the end. The worker counts them after its turn.
        let (all, start) = (f64::from(7 * REQUESTS), Instant::now());
        while of_classes().iter().sum::<f64>() < all && start.elapsed() < TIME_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
        let counted = of_classes();
        assert_eq!(counted.iter().sum::<f64>(), all, "{classes}: {counted:?}");
        assert!(counted[0] > 0.0 && counted[1..].iter().sum::<f64>() >= f64::from(REQUESTS), "{classes}: {counted:?}");
        for name in ["ready", "running"] {
            let seconds = sample(&server, &format!("sledge_{name}_seconds_total{{function=\"phases\",tenant=\"default\"}}"));
            assert!(seconds > Some(0.0), "{name}: {seconds:?}");
        }
        server.stop();
    }
}

#[test]
fn records_are_logged_with_the_phases() {
    let function = entry_with("phases", "phases.c", &json!({ "phases": declared() }));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sledge.json");
    std::fs::write(&file, json!({ "listen": "127.0.0.1:0", "admin": "none", "functions": [function] }).to_string())
        .expect("written");
    let mut command = sledge_command(&["serve", "--config"]);
    let server = Server::start_with(command.arg(&file).env("SLEDGE_LOG", "sledge::request=debug,sledge=info"));
    assert_eq!(post(&server, "/phases", "phase 2").status, 200);
    server.wait_for_log("phase: 2");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("phase: 2")).expect("the record");
    assert!(line.contains("\"begin\": ") && line.contains("\"work\": ") && !line.contains("\"read\""), "{line}");
    server.stop();
}

/// As it was before phases were declared: any id is taken, and none is timed.
#[test]
fn a_function_that_declares_no_phases_may_name_any() {
    let functions = json!([entry_with("phases", "phases.c", &json!({}))]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let reply = post(&server, "/phases", "phase 1\nphase 4000000000");
    assert_eq!(reply.text(), "0\n0\n");
    assert!(times(&reply).iter().all(|(name, _)| !name.starts_with("phase-")), "{reply:?}");
    assert!(!server.admin().get("/metrics").text().contains("sledge_phase_cpu_seconds_count"));
    server.stop();
}

#[test]
fn a_deployment_declares_them_anew() {
    let server = Server::start(json!({ "workers": 1, "functions": [] }));
    let (admin, artifact) = (server.admin(), programs::tests_folder().join("e2e/functions/echo.wat"));
    let echo = wat::parse_file(artifact).expect("WAT");
    let first = json!({ "phases": [{ "id": 0, "name": "copy", "cpu_us": 7 }] });
    assert_eq!(admin.deploy("echo", &first, &echo).status, 200);
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    let described = admin.function("echo").expect("it is served");
    assert_eq!(described["phases"], json!([{ "id": 0, "name": "copy", "cpu_us": 7, "cpu_percent": 100 }]));
    let listed = process::run(sledge_command(&["list", "--json", "--admin"]).arg(admin.path()), b"", TIME_MAX);
    assert!(listed.text().contains(r#""name":"copy""#), "{}", listed.text());

    let second = json!({ "phases": [{ "id": 1, "name": "other", "cpu_us": 9 }] });
    assert_eq!(admin.deploy("echo", &second, &echo).status, 200);
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    let of = |name: &str, phase: &str| {
        sample(&server, &format!("sledge_{name}{{function=\"echo\",tenant=\"default\",phase=\"{phase}\"}}"))
    };
    eventually("both are counted", || of("phase_cpu_seconds_count", "begin") == Some(1.0));
    // What was counted stays; what is expected is that of the version that is served.
    assert_eq!((of("phase_cpu_seconds_count", "copy"), of("phase_cpu_seconds_count", "begin")), (Some(1.0), Some(1.0)));
    assert_eq!((of("phase_expected_cpu_seconds", "copy"), of("phase_expected_cpu_seconds", "other")), (None, Some(9e-6)));

    let reply = admin.deploy("echo", &json!({ "phases": [{ "id": 1, "name": "begin", "cpu_us": 0 }] }), &echo);
    let message = reply.json()["error"].as_str().expect("an error").to_owned();
    assert_eq!(reply.status, 400, "{message}");
    for words in ["settings.phases[0].name: `begin` is the name of phase 0", "settings.phases[0].cpu_us: 0 is out of range"] {
        assert!(message.contains(words), "{message}");
    }
    let reply = admin.deploy("echo", &json!({ "phases": [{ "id": 1, "name": "x", "cpu_ms": 5 }] }), &echo);
    assert!(reply.json()["error"].as_str().expect("an error").contains("unknown key `cpu_ms`"), "{reply:?}");
    server.stop();
}

/// A trap in a phase is a trap as ever.
#[test]
fn phases_change_nothing_about_failures() {
    let functions = json!([entry_with("phases", "phases.c", &json!({ "phases": declared(), "deadline_ms": 1_000 }))]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    assert_failure(&post(&server, "/phases", "phase 1\nfail"), 500, "trap", "unreachable", Some("phases"));
    let late = post(&server, "/phases", "phase 2\nspin 10000");
    assert_failure(&late, 504, "deadline", "deadline_exceeded", Some("phases"));
    let times = times(&late);
    let work = times.iter().find(|(name, _)| name == "phase-work").expect("it was in that");
    assert!(work.1 > 50.0, "{times:?}");
    server.stop();
}
