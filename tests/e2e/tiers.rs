//! Two tiers: what a client deploys is served by unoptimised code first, and by optimised code when that is there.

use crate::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sledge_tests::admin::Admin;
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Functions of a module of which the optimised code takes seconds, and of one of which it takes so long that a test comes in between.
const SECONDS: usize = 100;
const LONG: usize = 1_500;

/// A module that replies with `text`, and has so many functions with loops, which it exports.
fn saying(text: &str, functions: usize) -> Vec<u8> {
    let body = format!(
        r#"(i32.store (i32.const 0) (i32.const 64))
           (i32.store (i32.const 4) (i32.const {}))
           (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))"#,
        text.len()
    );
    module(&format!(r#"(data (i32.const 64) "{text}")"#), &body, functions)
}

/// A module with that body of `sledge_handle`, and so many more functions.
fn module(more: &str, body: &str, functions: usize) -> Vec<u8> {
    let step = |k: usize| {
        format!(
            "(i32.store (i32.add (local.get 1) (i32.const {})) (i32.xor (i32.mul (i32.load (i32.add (local.get 1) (i32.const {}))) (i32.const {})) \
             (i32.rotl (local.get 0) (i32.const {}))))",
            1024 + 8 * k,
            1028 + 8 * k,
            2 * k + 3,
            k % 31
        )
    };
    let function = |index: usize| {
        let steps: String = (0..24).map(|k| step((index + k) % 97)).collect();
        format!(
            r#"(func (export "work{index}") (param i32) (result i32) (local i32) (loop $again {steps}
                (local.set 0 (i32.add (local.get 0) (i32.load (local.get 1))))
                (br_if $again (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 4))) (i32.const 4000)))) (local.get 0))"#
        )
    };
    let functions: String = (0..functions).map(function).collect();
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
            (memory (export "memory") 1)
            {more} {functions}
            (func (export "sledge_handle") (result i32) {body}))"#
    );
    wat::parse_str(text).expect("WAT")
}

/// A folder with what a server has, and where its compilers work.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn admin(&self) -> Admin {
        Admin::new(self.path("admin.sock"))
    }

    /// A server with a cache and a state of its own, and these keys besides.
    fn server(&self, more: &Value) -> Server {
        let mut config = json!({
            "listen": "127.0.0.1:0", "admin": self.path("admin.sock"), "cache_dir": self.path("cache"), "state_dir": self.path("state"),
        });
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        fs::write(self.path("sledge.json"), config.to_string()).expect("write the configuration");
        Server::start_with(sledge_command(&["serve", "--config"]).arg(self.path("sledge.json")).env("TMPDIR", self.0.path()))
    }

    /// What a command says that asks the server.
    fn command(&self, arguments: &[&str]) -> Finished {
        process::run(sledge_command(arguments).arg("--admin").arg(self.path("admin.sock")), b"", TIME_MAX)
    }

    /// Artifacts that are kept.
    fn artifacts(&self) -> usize {
        let files = fs::read_dir(self.path("cache")).expect("the cache").flatten();
        files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "artifact")).count()
    }

    /// Compilers that make optimised code for this server.
    fn compilers(&self) -> Vec<i32> {
        let folder = self.0.path().canonicalize().expect("the folder");
        let is_one = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let works = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            works.starts_with(&folder) && words.windows(2).any(|two| two == [b"--jobs", b"1".as_slice()])
        };
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_one).collect()
    }

    /// Waits for such a compiler.
    fn compiler(&self) -> i32 {
        let found = Cell::new(None);
        eventually("a compiler of optimised code", || {
            found.set(self.compilers().first().copied());
            found.get().is_some()
        });
        found.get().expect("one was found")
    }
}

/// Waits for optimised code. Its compiler has what all other programs of the machine leave, so that takes long beside other tests.
fn wait_for_optimised(admin: &Admin, name: &str) {
    let deadline = Instant::now() + 5 * TIME_MAX;
    while tier(admin, name).as_deref() != Some("optimised") {
        assert!(Instant::now() < deadline, "no optimised code of {name}: {:?}", admin.function(name));
        thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for_log(server: &Server, words: &str) {
    let deadline = Instant::now() + 5 * TIME_MAX;
    while !server.log().contains(words) {
        assert!(Instant::now() < deadline, "{words:?} is not in the log:\n{}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
}

fn tier(admin: &Admin, name: &str) -> Option<String> {
    Some(admin.function(name)?["tier"].as_str()?.to_owned())
}

#[test]
fn a_deployed_module_answers_before_it_is_optimised_and_keeps_its_version() {
    let place = Place::new();
    let server = place.server(&json!({}));
    let (admin, file) = (place.admin(), place.path("f.wasm"));
    fs::write(&file, saying("hello", SECONDS)).expect("write the module");
    let done = place.command(&["deploy", file.to_str().expect("UTF-8")]);
    let printed = done.text();
    assert!(printed.starts_with("added f\n") && printed.contains("optimised code follows"), "{printed}{}", done.stderr);
    assert_eq!(server.client().get("/f").text(), "hello");
    let first = admin.function("f").expect("it is there");
    assert_eq!((first["tier"].as_str(), place.artifacts()), (Some("first"), 1), "{first}");
    assert!(["waiting", "compiling"].contains(&first["optimised"].as_str().unwrap_or_default()), "{first}");
    let list = place.command(&["list"]);
    assert!(list.text().contains("served, first tier"), "{}", list.text());

    wait_for_optimised(&admin, "f");
    assert_eq!((server.client().get("/f").text().as_str(), place.artifacts()), ("hello", 2));
    let second = admin.function("f").expect("it is there");
    for key in ["version", "digest", "settings", "route"] {
        assert_eq!(first[key], second[key], "{key}");
    }
    assert!(second.get("optimised").is_none(), "{second}");
    let versions = admin.get("/functions/f/versions").json();
    assert_eq!(versions.as_array().map(Vec::len), Some(1), "{versions}");
    eventually("the first tier is unloaded", || admin.function("f").expect("it is there")["retired"] == 0);
    server.stop();

    // What is kept is used at once.
    let server = place.server(&json!({}));
    assert_eq!((tier(&admin, "f").as_deref(), server.client().get("/f").text().as_str()), (Some("optimised"), "hello"));
    let log = server.stop_for_log();
    assert!(log.contains("cached=true") && !log.contains("compiled"), "{log}");
    assert_eq!(place.artifacts(), 2);
}

#[test]
fn a_module_of_the_configuration_has_tiers_and_is_not_compiled_again_by_a_reload() {
    let place = Place::new();
    let file = place.path("f.wasm");
    fs::write(&file, saying("hello", SECONDS)).expect("write the module");
    let server = place.server(&json!({ "functions": [{ "name": "f", "path": file }] }));
    let admin = place.admin();
    assert_eq!((tier(&admin, "f").as_deref(), server.client().get("/f").text().as_str()), (Some("first"), "hello"));
    let version = admin.function("f").expect("it is there")["version"].clone();
    server.signal(Signal::HUP);
    server.wait_for_log("configuration read anew");
    wait_for_optimised(&admin, "f");
    assert_eq!((admin.function("f").expect("it is there")["version"].clone(), place.artifacts()), (version, 2));
    let log = server.stop_for_log();
    assert_eq!(log.matches("compiled optimised code").count(), 1, "{log}");
    assert!(log.contains("nothing has changed"), "{log}");
}

#[test]
fn no_request_is_lost_or_answered_wrongly_where_code_is_exchanged() {
    let place = Place::new();
    let server = place.server(&json!({}));
    let admin = place.admin();
    assert_eq!(admin.deploy("f", &json!({ "concurrency_max": 2 }), &saying("hello", SECONDS)).json()["tier"], "first");
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let client = Client::new(server.address, TIME_MAX);
                while !is_over.load(Ordering::Relaxed) {
                    let reply = client.get("/f");
                    assert_eq!((reply.status, reply.text().as_str()), (200, "hello"));
                    answered.fetch_add(1, Ordering::Relaxed);
                    // The compiler needs time, too.
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        eventually("requests", || answered.load(Ordering::Relaxed) > 10);
        let exchanged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for_optimised(&admin, "f");
        }));
        let before = answered.load(Ordering::Relaxed);
        let more = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("more requests", || answered.load(Ordering::Relaxed) > before + 10);
        }));
        // Whatever came of it: the threads are waited for.
        is_over.store(true, Ordering::Relaxed);
        assert!(exchanged.is_ok() && more.is_ok(), "{}", server.log());
    });
    eventually("the first tier is unloaded", || admin.function("f").expect("it is there")["retired"] == 0);
    server.stop();
}

#[test]
fn a_newer_deployment_ends_the_compilation_of_the_older() {
    let place = Place::new();
    let server = place.server(&json!({}));
    let admin = place.admin();
    assert_eq!(admin.deploy("f", &json!({}), &saying("old", LONG)).json()["tier"], "first");
    let old = place.compiler();
    assert_eq!(admin.deploy("f", &json!({}), &saying("new", SECONDS)).json()["tier"], "first");
    eventually("the older compiler has ended", || !place.compilers().contains(&old));
    wait_for_optimised(&admin, "f");
    assert_eq!(server.client().get("/f").text(), "new");
    assert_eq!(place.artifacts(), 3, "two first tiers, and optimised code of the newer module");
    // Of what is removed nothing is made either.
    assert_eq!(admin.deploy("g", &json!({}), &saying("gone", LONG + 1)).json()["tier"], "first");
    place.compiler();
    assert_eq!(admin.ask("DELETE", "/functions/g", "", b"").status, 200);
    eventually("no compiler", || place.compilers().is_empty());
    let log = server.stop_for_log();
    assert!(!log.contains("no optimised code"), "nothing is wrong: {log}");
}

#[test]
fn where_the_compiler_is_killed_the_first_tier_stays_and_the_log_says_so_once() {
    let place = Place::new();
    let server = place.server(&json!({}));
    let admin = place.admin();
    assert_eq!(admin.deploy("f", &json!({}), &saying("hello", LONG)).json()["tier"], "first");
    let pid = place.compiler();
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("kill");
    server.wait_for_log("no optimised code");
    let info = admin.function("f").expect("it is there");
    assert!(info["tier"] == "first" && info["optimised"].as_str().is_some_and(|why| why.contains("signal 9")), "{info}");
    assert_eq!((server.client().get("/f").text().as_str(), place.compilers()), ("hello", vec![]));
    // Others have their turn.
    assert_eq!(admin.deploy("g", &json!({}), &saying("other", SECONDS)).json()["tier"], "first");
    wait_for_optimised(&admin, "g");
    assert_eq!(tier(&admin, "f").as_deref(), Some("first"));
    let log = server.stop_for_log();
    assert_eq!(log.matches("no optimised code").count(), 1, "{log}");
    assert!(log.contains("the first tier stays in service"), "{log}");
}

#[test]
fn a_server_that_stops_ends_its_compilers() {
    let place = Place::new();
    let server = place.server(&json!({}));
    assert_eq!(place.admin().deploy("f", &json!({}), &saying("hello", LONG)).json()["tier"], "first");
    place.compiler();
    server.stop();
    eventually("no compiler", || place.compilers().is_empty());
}

#[test]
fn only_what_can_be_exchanged_has_tiers() {
    let place = Place::new();
    let server = place.server(&json!({}));
    let admin = place.admin();
    let module = saying("hello", SECONDS);
    for settings in [json!({ "opt_level": 1 }), json!({ "instance": "application" })] {
        let change = admin.deploy("f", &settings, &module).json();
        assert!(change.get("tier").is_none() && tier(&admin, "f").is_none(), "{settings}: {change}");
        assert_eq!(admin.ask("DELETE", "/functions/f", "", b"").status, 200);
    }
    // A small one is there soon.
    let change = admin.deploy("f", &json!({}), &saying("hello", 1)).json();
    assert!(change.get("tier").is_none(), "{change}");
    server.stop();
    let server = place.server(&json!({ "tiers": "off" }));
    let change = admin.deploy("f", &json!({}), &saying("bye", SECONDS)).json();
    assert!(change.get("tier").is_none() && tier(&admin, "f").is_none(), "{change}");
    assert_eq!(server.client().get("/f").text(), "bye");
    server.stop();
}

/// With `shared-seed` all requests have the random numbers and the time of the initialisation: also those that are answered by optimised code.
#[test]
fn what_an_initialisation_has_drawn_stays_where_code_is_exchanged() {
    let place = Place::new();
    let server = place.server(&json!({}));
    let admin = place.admin();
    // 40 bytes in hexadecimal would be long: they are made letters.
    let letters = (0..24)
        .map(|at| {
            format!(
                "(i32.store8 (i32.const {0}) (i32.add (i32.const 97) (i32.and (i32.load8_u (i32.const {0})) (i32.const 15))))",
                64 + at
            )
        })
        .collect::<String>();
    let more = format!(
        r#"(func (export "_initialize")
            (drop (call $random_get (i32.const 64) (i32.const 16)))
            (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 80))) {letters})"#
    );
    let body = r"(i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 24))
        (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))";
    let module = module(&more, body, SECONDS);
    let change = admin.deploy("f", &json!({ "snapshot": "shared-seed" }), &module);
    assert_eq!(change.json()["tier"], "first", "{}", change.text());
    let before = server.client().get("/f").text();
    wait_for_optimised(&admin, "f");
    assert_eq!((server.client().get("/f").text(), before.len()), (before, 24));
    server.stop();
}

/// What is deployed gradually is optimised, too, and stays the version that it is.
#[test]
fn a_gradual_deployment_goes_on_where_its_code_is_exchanged() {
    let place = Place::new();
    let server = place.server(&json!({}));
    let admin = place.admin();
    assert_eq!(admin.deploy("f", &json!({}), &saying("one", 1)).status, 200);
    let file = place.path("two.wasm");
    fs::write(&file, saying("two", SECONDS)).expect("write the module");
    let done = place.command(&["deploy", file.to_str().expect("UTF-8"), "--name", "f", "--percent", "99"]);
    assert!(done.text().contains("optimised code follows"), "{}{}", done.text(), done.stderr);
    let canary = || admin.function("f").expect("it is there")["canary"].clone();
    let before = canary();
    wait_for_log(&server, "optimised code is served");
    assert_eq!((&canary()["version"], &canary()["digest"]), (&before["version"], &before["digest"]));
    eventually("it answers", || server.client().get("/f").text() == "two");
    let promoted = admin.ask("POST", "/functions/f/promote", "", b"");
    assert_eq!(promoted.status, 200, "{}", promoted.text());
    assert_eq!((server.client().get("/f").text().as_str(), tier(&admin, "f").as_deref()), ("two", Some("optimised")));
    server.stop();
}
