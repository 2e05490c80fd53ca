//! `sledge phases`: what phases need is measured while requests run, and what is printed can be pasted into the configuration.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{entry_with, eventually};
use serde_json::{Value, json};
use sledge_tests::admin::Admin;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use tempfile::TempDir;

const TIME_MAX: Duration = Duration::from_secs(120);

fn phases(server: &Server, arguments: &[&str]) -> Finished {
    process::run(sledge_command(&["phases", "--admin"]).arg(server.admin().path()).args(arguments), b"", TIME_MAX)
}

/// Measures a function while it carries out these lines again and again.
fn measure(server: &Server, lines: &str, arguments: &[&str]) -> Finished {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = server.client();
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(client.post("/f", lines).status, 200);
            }
        });
        let done = phases(server, &[&["f", "--profile", "--seconds", "2"], arguments].concat());
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// A configuration with these lines below its function.
struct Pasted {
    folder: TempDir,
}

impl Pasted {
    fn new(phases: &str) -> Pasted {
        let folder = tempfile::tempdir().expect("a folder");
        let (admin, path) = (folder.path().join("admin"), programs::function("phases.c"));
        let server = format!("listen = \"127.0.0.1:0\"\nadmin = {admin:?}\nworkers = 1\nclasses = \"declared\"\n");
        let function = format!("[[functions]]\nname = \"f\"\npath = {path:?}\n\n{phases}");
        std::fs::write(folder.path().join("sledge.toml"), server + &function).expect("written");
        Pasted { folder }
    }

    /// The phases as the configuration is read.
    fn read(&self) -> Value {
        let config = sledge::config::read(&self.folder.path().join("sledge.toml")).expect("a configuration");
        serde_json::to_value(&config.functions[0].phases).expect("values")
    }

    /// The phases that the function of a server with it has.
    fn served(&self) -> Value {
        let file = self.folder.path().join("sledge.toml");
        let server = Server::start_with(sledge_command(&["serve", "--config"]).arg(&file));
        assert_eq!(server.client().post("/f", "phase 3\nspin 1").text(), "0\n");
        let described = Admin::new(self.folder.path().join("admin")).function("f").expect("it is served");
        server.stop();
        described["phases"].clone()
    }
}

fn names(phases: &Value) -> Vec<&str> {
    phases.as_array().expect("phases").iter().map(|phase| phase["name"].as_str().expect("a name")).collect()
}

/// Reads that mostly wait, 12 ms of computation, and what it does before. It declares nothing; what was measured it can declare.
#[test]
fn what_was_measured_can_be_pasted_into_the_configuration() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry_with("f", "phases.c", &json!({}))] }));
    let lines = "phase 7\nsleep 10\nsleep 10\nsleep 10\nphase 3\nspin 12";
    let done = measure(&server, lines, &[]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let text = done.text();
    let pasted = Pasted::new(&text);
    let read = pasted.read();
    let of = |id: u64, key: &str| {
        let phase = read.as_array().expect("phases").iter().find(|phase| phase["id"] == id);
        phase.unwrap_or_else(|| panic!("{id}: {text}"))[key].as_u64().unwrap_or_else(|| panic!("{key}: {text}"))
    };
    assert_eq!(names(&read), ["begin", "phase-3", "phase-7"]);
    // It spins by the clock, and what other processes take of the core counts as its own; of 30 ms of waiting it computes little even on a busy machine.
    assert!((3_000..=1_000_000).contains(&of(3, "cpu_us")) && of(3, "cpu_percent") == 100, "{text}");
    assert!(of(7, "cpu_us") < 25_000 && of(7, "cpu_percent") < 80, "{text}");
    assert!(text.contains(" requests; of each 4.0 microtasks of "), "begins, and goes on three times: {text}");
    assert_eq!(pasted.served(), read);

    // It declares nothing still, and costs nothing any more: its requests say nothing of phases.
    let done = phases(&server, &["f"]);
    let words = "sledge: `f` declares no phases; measure them with `sledge phases f --profile`\n";
    assert_eq!((done.code(), done.stderr.as_str()), (1, words));
    server.stop();
}

/// Of a function that declares phases, measured ones have its names; and it is shown what it declares.
#[test]
fn declared_phases_keep_their_names() {
    let declared =
        json!([{ "id": 7, "name": "read", "cpu_us": 5, "cpu_percent": 20 }, { "id": 9, "name": "never", "cpu_us": 1 }]);
    let function = entry_with("f", "phases.c", &json!({ "phases": declared }));
    let server = Server::start(json!({ "workers": 1, "classes": "inferred", "functions": [function] }));
    let done = phases(&server, &["f"]);
    assert_eq!((done.code(), names(&Pasted::new(&done.text()).read())), (0, vec!["read", "never"]));
    let done = measure(&server, "phase 7\nsleep 5", &["--json"]);
    let measured: Value = serde_json::from_str(&done.text()).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
    assert_eq!(names(&measured), ["begin", "read"]);
    assert!(measured[1]["cpu_percent"].as_u64() < Some(80) && measured[1]["microtasks"] == 2.0, "{measured}");
    server.stop();
}

#[test]
fn what_cannot_be_measured_is_said() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry_with("f", "phases.c", &json!({}))] }));
    let fails = |arguments: &[&str], words: &[&str]| {
        let done = phases(&server, arguments);
        assert_eq!(done.code(), 1, "{arguments:?}: {}{}", done.text(), done.stderr);
        words.iter().for_each(|word| assert!(done.stderr.contains(word), "{word:?} is missing in: {}", done.stderr));
    };
    fails(&["other", "--profile"], &["there is no function `other`"]);
    fails(&["other"], &["there is no function `other`"]);
    fails(&["f", "--profile", "--seconds", "1"], &["nothing was measured", "`f`", "within 1 s", "--seconds"]);
    let done = phases(&server, &["f", "--profile", "--seconds", "51"]);
    assert!(done.code() == 2 && done.stderr.contains("1..=50"), "{}", done.stderr);
    let done = phases(&server, &["f", "--seconds", "5"]);
    assert!(done.code() == 2 && done.stderr.contains("--profile"), "{}", done.stderr);
    let refused = server.admin().get("/functions/f/phases?seconds=0");
    assert!(refused.status == 400 && refused.text().contains("from 1 to 50"), "{refused:?}");
    // One client at a time; one that has gone ends it.
    let first = server.admin().connect();
    std::io::Write::write_all(&mut &first, b"GET /functions/f/phases?seconds=50 HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    let second = || server.admin().get("/functions/f/phases?seconds=1");
    eventually("the first is measured", || {
        let refused = second();
        refused.status == 409 && refused.text().contains("for another client")
    });
    drop(first);
    eventually("it is over", || second().text().contains("nothing was measured"));
    // A request that fails is not measured.
    std::thread::scope(|scope| {
        let measuring = scope.spawn(second);
        for _ in 0..20 {
            assert_eq!(server.client().post("/f", "phase 2\nfail").status, 500);
            std::thread::sleep(Duration::from_millis(30));
        }
        assert_eq!(measuring.join().expect("no panic").status, 409);
    });
    server.stop();
    let nowhere = sledge_command(&["phases", "f", "--profile", "--admin", "/nonexistent/sledge.sock"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(nowhere.status.code() == Some(1) && text.contains("no admin API at /nonexistent/sledge.sock"), "{text}");
}
