//! An `fsync` of the store's log that fails, at each group of executions that go ahead of themselves: each ends well or with the error that documents name, what it leaves is that of its first steps, nothing is asked of
//! another server before the commit, and the server goes on when the disk is good again.
//!
//! No file system here can be told to fail, so a library of our own stands between the server and its C library (`fsync.c`). What was written is on the disk then as a whole, not at all, or in part.

use crate::ahead_over_kills::step;
use crate::durable::machine;
use crate::entry_with;
use crate::eventually;
use crate::kv::ask;
use crate::outbox::Asked;
use crate::transactions::function;
use serde_json::{Value, json};
use sledge_tests::admin::Admin;
use sledge_tests::http::{Client, Reply};
use sledge_tests::machine::is_emulated;
use sledge_tests::programs::{folder, sledge_command, tests_folder};
use sledge_tests::server::Server;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::thread;
use tempfile::TempDir;

/// What is on the disk after a failed fsync, as the library numbers it: all that was written, nothing, or the first bytes of each record.
const WAYS: [u64; 3] = [ALL, 1, 2];
const ALL: u64 = 0;
/// The numbers that the library shares with a test, in their order: how many syncs there were, the first that fails, the next one that does not, the way, and how many have failed.
const NUMBERS: [&str; 5] = ["syncs", "from", "to", "way", "failed"];
/// Marks that the steps of an execution leave.
const MARKS: [&str; 3] = ["p", "q", "r"];
/// Executions that nothing disturbs, of which the tables learn.
const CALM: usize = 6;
const CLIENTS: usize = 4;

/// The library.
fn library() -> &'static Path {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        let library = folder().join("fsync.so");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(tests_folder().join("e2e/fsync.c"));
        assert!(cc.status().expect("cc").success(), "{cc:?}");
        library
    });
    &MADE
}

/// A server whose disk can fail, with a workflow that goes ahead of itself. It asks the peer for something at its end.
struct Failing {
    server: Server,
    admin: Admin,
    /// The client with which the peer looks into the store.
    looks: Arc<OnceLock<Client>>,
    peer: Asked,
    /// What the peer was asked for before it was in the store.
    early: Arc<Mutex<Vec<String>>>,
    numbers: File,
    _folder: TempDir,
}

impl Failing {
    fn start(kind: &str) -> Failing {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let (looks, early) = (Arc::<OnceLock<Client>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (look, told) = (Arc::clone(&looks), Arc::clone(&early));
        let peer = Asked::looking(200, move |body| {
            let number = String::from_utf8_lossy(body).into_owned();
            let there = look.get().expect("a server").post("/plain", format!("get r{number}")).text();
            if there != "stored 1\n" {
                told.lock().expect("no test has failed").push(format!("{number}: {there}"));
            }
        });
        let last = json!({ "S0": step(0, Some("S1")), "S1": step(1, Some("S2")), "S2": step(2, None) });
        fs::write(at("workflow.asl.json"), machine("S0", &last).to_string()).expect("write a definition");
        let workflow = json!({ "name": "ahead", "path": at("workflow.asl.json"), "type": kind, "speculation": "outputs" });
        let functions = [function("t", peer.hosts()), entry_with("plain", "transaction.c", &json!({}))];
        let config = json!({ "listen": "127.0.0.1:0", "admin": at("admin.sock"), "kv": at("kv.redb"), "workers": 2, "functions": functions, "workflows": [workflow] });
        fs::write(at("sledge.json"), config.to_string()).expect("write the configuration");
        fs::write(at("syncs"), vec![0; 8 * NUMBERS.len()]).expect("write the numbers");
        let numbers = File::options().read(true).write(true).open(at("syncs")).expect("the numbers");
        let mut command = sledge_command(&["serve", "--config"]);
        command.arg(at("sledge.json")).env("LD_PRELOAD", library()).env("SYNCS", at("syncs"));
        let (server, admin) = (Server::start_with(&mut command), Admin::new(at("admin.sock")));
        assert!(looks.set(server.client()).is_ok());
        Failing { server, admin, looks, peer, early, numbers, _folder: folder }
    }

    fn number(&self, name: &str) -> u64 {
        let (at, mut bytes) = (NUMBERS.iter().position(|known| *known == name).expect("a number"), [0; 8]);
        self.numbers.read_exact_at(&mut bytes, at as u64 * 8).expect("the number");
        u64::from_ne_bytes(bytes)
    }

    fn set(&self, name: &str, number: u64) {
        let at = NUMBERS.iter().position(|known| *known == name).expect("a number");
        self.numbers.write_all_at(&number.to_ne_bytes(), at as u64 * 8).expect("the number");
    }

    /// Has so many syncs fail after so many good ones.
    fn fail(&self, way: u64, after: u64, count: u64) {
        let from = self.number("syncs") + after;
        // In this order: what is half told makes none fail.
        self.set("to", 0);
        self.set("way", way);
        self.set("from", from);
        self.set("to", from + count);
    }

    /// Waits until more have failed than those; others commit, too.
    fn wait_for_failure(&self, failed: u64) {
        let client = self.looks.get().expect("a client");
        eventually("an fsync fails", || {
            assert_eq!(client.post("/plain", "add beside 1").status, 200, "an error is a line of its answer");
            self.number("failed") > failed
        });
    }

    /// The disk is good again, and the server notices that by itself.
    fn mend(&self) {
        self.set("to", 0);
        eventually("the store is used again", || self.admin.get("/readyz").text() == "ready\n");
    }

    /// Each step leaves a mark of its own, and the last one asks the peer. The second one takes a while in every other execution, so that the first one is committed alone.
    fn lines(&self, number: usize) -> Value {
        let post = format!("get q{number}\nset r{number} 1\nadd n 1\npost http://{}/ {number}", self.peer.address());
        let first = format!("get shared\nset p{number} 1\nadd n 1");
        let pause = if number.is_multiple_of(2) { "pause 40\n" } else { "" };
        json!({ "lines": [first, format!("{pause}get p{number}\nset q{number} 1\nadd n 1"), post] })
    }

    /// Waits until nothing goes on any more, so that the next sync is one of the next execution: executions have ended, `own` and those that have asked the peer.
    fn be_quiet(&self, own: usize) {
        let ended = || self.metric("sledge_executions_total{status=\"SUCCEEDED\"}");
        eventually("all executions end", || ended() >= own + self.marked("r").len());
    }

    fn metric(&self, name: &str) -> usize {
        let metrics = self.admin.get("/metrics").text();
        metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()).unwrap_or(0)
    }

    fn marked(&self, mark: &str) -> BTreeSet<usize> {
        let keys = ask(self.looks.get().expect("a client"), "/plain", &format!("list {mark}"));
        keys[0].split(' ').filter_map(|key| key.strip_prefix(mark)?.parse().ok()).collect()
    }

    /// Those that have ended well have done all steps, any other some of the first ones, and each counts once. The peer was asked by those whose last step is there, each under one key, and by no other.
    fn end(self, ended: &BTreeSet<usize>, what: &str) {
        let [p, q, r] = MARKS.map(|mark| self.marked(mark));
        assert!(ended.is_subset(&r) && r.is_subset(&q) && q.is_subset(&p), "{what}: {ended:?} have ended; {p:?} {q:?} {r:?}");
        let counted = ask(self.looks.get().expect("a client"), "/plain", "get n");
        assert_eq!(counted, [format!("stored {}", p.len() + q.len() + r.len())], "{what}");
        let asked = || {
            let mut keys: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
            for (key, body) in self.peer.came() {
                keys.entry(String::from_utf8_lossy(&body).parse().expect("a number")).or_default().insert(key);
            }
            keys
        };
        eventually("the peer is asked", || asked().len() >= r.len());
        let asked = asked();
        assert!(asked.keys().copied().eq(r.iter().copied()), "{what}: {asked:?} have asked, and not {r:?}");
        assert!(asked.values().all(|keys| keys.len() == 1), "{what}: {asked:?}");
        assert!(
            self.metric("sledge_speculative_runs_total{tenant=\"default\",result=\"adopted\"}") > 0,
            "{what}: nothing goes ahead"
        );
        assert_eq!(*self.early.lock().expect("no test has failed"), Vec::<String>::new(), "{what}: before it is in the store");
        self.server.stop();
    }
}

/// Its steps have seen what the steps before them have done.
#[track_caller]
fn assert_right(output: &Value, what: &str) {
    for step in 1..=2 {
        let text = output[format!("step{step}")]["text"].as_str().unwrap_or_default().replace("own ", "stored ");
        assert!(text.contains("stored 1\n"), "{what}: {output}");
    }
}

/// Whether an express execution has ended well. Where it has not, it says why, as documented.
#[track_caller]
fn has_ended(reply: &Reply, what: &str) -> bool {
    if reply.status == 200 {
        assert_right(&reply.json(), what);
        return true;
    }
    let text = reply.text();
    let says_why = text.contains("Lambda.ServiceException") && text.contains("fails (EIO): see the kernel's log");
    assert!(reply.status == 500 && says_why, "{what}: {} {text}", reply.status);
    false
}

#[test]
fn an_fsync_that_fails_at_any_group_of_an_express_execution_fails_that_alone() {
    if is_emulated() {
        return;
    }
    for way in WAYS {
        let failing = Failing::start("express");
        let client = failing.server.client();
        let run = |number: usize| client.post("/ahead", failing.lines(number).to_string());
        ask(&client, "/plain", "set shared 1");
        let mut ended: BTreeSet<usize> = (0..CALM).filter(|number| has_ended(&run(*number), "calm")).collect();
        assert_eq!(ended.len(), CALM);
        failing.be_quiet(0);
        let before = failing.number("syncs");
        ended.extend([CALM].into_iter().filter(|number| has_ended(&run(*number), "calm")));
        failing.be_quiet(0);
        // With those of what it asks for. Others may have one more.
        let groups = failing.number("syncs") - before + 1;
        let mut lost = 0;
        // Each of them for one of both kinds of executions.
        for (number, after) in (CALM + 1..).zip((0..2 * groups).map(|at| at / 2)) {
            let (what, failed) = (format!("way {way}, sync {after}"), failing.number("failed"));
            failing.be_quiet(0);
            // It cannot be opened again at once, either, now and then.
            failing.fail(way, after, 1 + number as u64 % 3);
            if has_ended(&run(number), &what) {
                ended.insert(number);
            } else {
                lost += 1;
            }
            failing.wait_for_failure(failed);
            failing.mend();
        }
        assert!(failing.number("failed") >= 2 * groups && (lost > 0 || way == ALL), "way {way}: {lost} of {groups} are lost");
        failing.end(&ended, &format!("way {way}"));
    }
}

/// Several clients at the same time: commits of several executions are one record, and others come while the store has no file.
#[test]
fn an_fsync_that_fails_for_several_executions_at_once_is_told_to_each() {
    if is_emulated() {
        return;
    }
    for way in WAYS {
        let failing = Failing::start("express");
        ask(&failing.server.client(), "/plain", "set shared 1");
        let ended: BTreeSet<usize> = thread::scope(|scope| {
            let run = |of: usize| {
                let client = failing.server.client();
                let ran = (0..60).map(|round| round * CLIENTS + of);
                let ended = ran.filter(|number| {
                    if of == 0 && number % 20 == 12 {
                        failing.fail(way, *number as u64 % 3, 1 + *number as u64 % 2);
                    }
                    has_ended(&client.post("/ahead", failing.lines(*number).to_string()), &format!("way {way}, {number}"))
                });
                ended.collect::<Vec<_>>()
            };
            let clients: Vec<_> = (0..CLIENTS).map(|of| scope.spawn(move || run(of))).collect();
            clients.into_iter().flat_map(|client| client.join().expect("no client fails")).collect()
        });
        assert!(failing.number("failed") > 5, "way {way}: {} have failed", failing.number("failed"));
        failing.mend();
        failing.end(&ended, &format!("way {way}"));
    }
}

/// A durable execution goes on when the disk is good again, and has done each step once.
#[test]
fn an_fsync_that_fails_at_any_step_of_a_durable_execution_fails_nothing() {
    if is_emulated() {
        return;
    }
    for way in WAYS {
        let failing = Failing::start("standard");
        let client = failing.server.client();
        let run = |number: usize| {
            let (what, body) = (format!("way {way}, {number}"), failing.lines(number).to_string());
            // Nothing new is accepted while the disk fails. The name makes it safe to ask again: of what was written nevertheless it is said then that it is there.
            eventually(&what, || {
                let reply = client.post(&format!("/ahead?name=e{number}"), body.clone());
                assert!(matches!(reply.status, 202 | 409 | 503), "{what}: {} {}", reply.status, reply.text());
                reply.status != 503
            });
            let output = RefCell::new(Value::Null);
            eventually(&what, || {
                // Where the store has no file, the answer says that, and has neither.
                let mut told = failing.admin.get(&format!("/workflows/ahead/executions/e{number}")).json();
                assert!(told["status"] != "FAILED" && told["status"] != "TIMED_OUT", "{what}: {told}");
                *output.borrow_mut() = told["output"].take();
                told["status"] == "SUCCEEDED"
            });
            assert_right(&output.into_inner(), &what);
        };
        ask(&client, "/plain", "set shared 1");
        (0..CALM).for_each(run);
        failing.be_quiet(CALM);
        let before = failing.number("syncs");
        run(CALM);
        failing.be_quiet(CALM + 1);
        let groups = failing.number("syncs") - before + 1;
        let mut all = CALM + 1;
        for after in (0..2 * groups).map(|at| at / 2) {
            failing.be_quiet(all);
            let failed = failing.number("failed");
            failing.fail(way, after, 1 + all as u64 % 3);
            run(all);
            all += 1;
            failing.wait_for_failure(failed);
            failing.mend();
        }
        assert!(failing.number("failed") >= 2 * groups);
        failing.end(&(0..all).collect(), &format!("way {way}"));
    }
}
