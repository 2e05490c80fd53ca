//! Functions that are begun ahead take only time that nothing else needs, until the execution comes to them.

use crate::ahead::step;
use crate::durable::machine;
use crate::entry_with;
use crate::transactions::function;
use serde_json::json;
use sledge_tests::http::{Reply, TIME_MAX};
use sledge_tests::server::Server;
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, iter};

/// For how long the function before the one that is begun ahead waits.
const PAUSE: Duration = Duration::from_secs(4);
/// Requests that come meanwhile.
const REQUESTS: usize = 8;

/// One worker: a workflow of two steps, where the second one does not depend on what the first one answers, and a function that requests call.
fn serve(folder: &Path) -> Server {
    let path = folder.join("workflow.asl.json");
    let states = json!({ "S0": step(0, "S1"), "S1": step(1, "Out"), "Out": { "Type": "Succeed" } });
    fs::write(&path, machine("S0", &states).to_string()).expect("write a definition");
    let workflow = json!({ "name": "ahead", "path": path, "type": "express", "speculation": "paths", "deadline_ms": 60_000 });
    let functions = [function("t", json!({})), entry_with("o", "transaction.c", &json!({ "deadline_ms": 60_000 }))];
    Server::start(json!({ "kv": "memory", "workers": 1, "functions": functions, "workflows": [workflow] }))
}

fn execute(server: &Server, pause: Duration, spin: u64) -> Reply {
    let lines = [format!("pause {}", pause.as_millis()), format!("spin {spin}")];
    server.client().post("/ahead", json!({ "lines": lines }).to_string())
}

/// Has the server see that it has time: nothing goes ahead where it was busy since it last looked.
fn settle(server: &Server) {
    assert_eq!(execute(server, Duration::from_millis(300), 1).status, 200);
}

fn request(server: &Server, spin: u64) {
    assert_eq!(server.client().post("/o", format!("spin {spin}")).status, 200);
}

/// What a request computes that takes a few hundredths of a second.
fn some_work(server: &Server) -> u64 {
    let runs_for = || metric(server, "sledge_running_seconds_total", "\"o\"");
    let takes = |spin: u64| {
        let before = runs_for();
        request(server, spin);
        // It is counted when the worker has done with it.
        crate::eventually("it is counted", || runs_for() > before);
        runs_for() - before
    };
    // Of several, the one that nothing else on the machine has delayed.
    let takes = |spin: &u64| (0..3).map(|_| takes(*spin)).fold(f64::INFINITY, f64::min);
    let sizes = iter::successors(Some(500), |spin| Some(2 * spin));
    sizes.into_iter().find(|spin| takes(spin) > 0.03).expect("some take longer")
}

/// After a few executions it is known that the second step pays.
fn serve_and_learn(folder: &Path) -> (Server, u64) {
    let server = serve(folder);
    let work = some_work(&server);
    // Where the machine is busy nothing goes ahead for a while.
    crate::eventually("the second step begins ahead", || {
        let reply = execute(&server, Duration::from_millis(200), work);
        assert_eq!(reply.status, 200, "{}", reply.text());
        adopted(&server) > 0
    });
    (server, work)
}

fn metric(server: &Server, name: &str, label: &str) -> f64 {
    let text = server.admin().get("/metrics").text();
    let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

fn adopted(server: &Server) -> u64 {
    metric(server, "sledge_speculative_runs_total", "adopted") as u64
}

/// Waits until something has computed for a while.
fn wait_for_work(server: &Server) {
    let (before, began) = (server.cpu_time(), Instant::now());
    while server.cpu_time() - before < Duration::from_millis(50) && began.elapsed() < PAUSE {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn requests_do_not_wait_for_what_is_begun_ahead() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, work) = serve_and_learn(folder.path());
    let times = || ["ready", "running"].map(|what| metric(&server, &format!("sledge_{what}_seconds_total"), "\"o\""));
    // Where the machine is slow, the first step is over before they are, and where it is busy, they wait for other processes: one execution that pauses for long enough, and in which they do not
    // wait, tells. Where the second step had turns beside them, they would wait for as long as they run, each time.
    let seen = RefCell::new(Vec::new());
    let end = Instant::now() + 2 * TIME_MAX;
    let do_not_wait = || {
        settle(&server);
        thread::scope(|scope| {
            let began = Instant::now();
            let execution = scope.spawn(|| execute(&server, PAUSE, 10 * REQUESTS as u64 * work));
            wait_for_work(&server);
            let before = times();
            (0..REQUESTS).for_each(|_| request(&server, work));
            let after = times();
            let is_in_time = began.elapsed() < PAUSE && !execution.is_finished();
            let reply = execution.join().expect("an execution");
            assert_eq!(reply.status, 200, "{}", reply.text());
            let [ready, running] = [0, 1].map(|what| after[what] - before[what]);
            seen.borrow_mut().push((is_in_time, ready, running));
            is_in_time && running > 0.1 && ready < running / 3.0
        })
    };
    while !do_not_wait() {
        assert!(Instant::now() < end, "in time, seconds that they wait, and that they run: {:?}", seen.borrow());
    }
    server.stop();
}

#[test]
fn an_execution_goes_on_beside_requests_that_leave_no_time() {
    // Each with a server of its own: one that has learned that it does not pay would not try again soon.
    let is_ahead = || {
        let folder = tempfile::tempdir().expect("a folder");
        let (server, work) = serve_and_learn(folder.path());
        settle(&server);
        let (is_over, before) = (AtomicBool::new(false), adopted(&server));
        beside_requests(&server, work, &is_over);
        let is_ahead = adopted(&server) > before;
        if !is_ahead {
            let metrics = server.admin().get("/metrics").text();
            let runs: Vec<&str> = metrics.lines().filter(|line| line.starts_with("sledge_speculative")).collect();
            println!("it was not begun ahead, with {work} for its work: {runs:#?}");
        }
        server.stop();
        is_ahead
    };
    let end = Instant::now() + 2 * TIME_MAX;
    while !is_ahead() {
        assert!(Instant::now() < end, "the second step was not begun ahead");
    }
}

/// An execution beside requests that leave no time from when its second step runs on.
fn beside_requests(server: &Server, work: u64, is_over: &AtomicBool) {
    thread::scope(|scope| {
        let execution = scope.spawn(|| {
            let reply = execute(server, Duration::from_secs(1), 20 * work);
            is_over.store(true, Ordering::Relaxed);
            reply
        });
        wait_for_work(server);
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    request(server, work);
                }
            });
        }
        let reply = execution.join().expect("an execution");
        assert_eq!(reply.status, 200, "{}", reply.text());
    });
}
