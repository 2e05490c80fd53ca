//! Components as operators have them: too many requests, a server that is killed while they are deployed, hundreds at once.

use crate::deploy::command;
use crate::encoded::answering;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply, TIME_MAX, post_bytes};
use sledge_tests::programs;
use sledge_tests::random::Random;
use sledge_tests::server::Server;
use std::fs;
use std::io::{BufRead as _, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Requests that a server takes at the same time.
const REQUESTS_MAX: usize = 16;
/// Clients that do not wait for each other.
const CLIENTS: usize = 48;

fn send(raw: &mut Raw, path: &str) -> Reply {
    raw.send(post_bytes(path, b"", ""));
    raw.reply().expect("a reply")
}

/// Requests that were answered with 200 while one client asked for so long, for each second of the server's processor time.
fn capacity(server: &Server, path: &str, time: Duration) -> f64 {
    let (begin, before) = (Instant::now(), server.cpu_time());
    let mut raw = Raw::connect(server.address);
    let mut answered = 0;
    while begin.elapsed() < time {
        assert_eq!(send(&mut raw, path).status, 200);
        answered += 1;
    }
    f64::from(answered) / (server.cpu_time() - before).as_secs_f64()
}

/// Clients together ask four times as often as the server can answer. It answers as many as before, refuses the others at once, and breaks no connection.
#[test]
fn a_component_under_more_load_than_it_can_bear_answers_as_many_as_before() {
    const TIME: Duration = Duration::from_secs(3);
    let file = programs::compiled(&answering("overload", "done", 400_000), &[]);
    let web = json!({ "name": "web", "path": file, "deadline_ms": 60_000 });
    let server = Server::start(json!({ "workers": 1, "requests_max": REQUESTS_MAX, "functions": [web] }));
    let alone = capacity(&server, "/web?9", Duration::from_secs(1));
    let each = Duration::from_secs_f64(CLIENTS as f64 / (4.0 * alone));
    let (answered, refused) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let (begin, before) = (Instant::now(), server.cpu_time());
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (answered, refused, address) = (&answered, &refused, server.address);
            scope.spawn(move || {
                let mut raw = Raw::connect(address);
                let mut next = begin + each.mul_f64(client as f64 / CLIENTS as f64);
                while next < begin + TIME {
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                    next += each;
                    let asked = Instant::now();
                    let reply = send(&mut raw, "/web?9");
                    match reply.status {
                        200 => {
                            assert_eq!(reply.text(), "done");
                            answered.lock().expect("no panic").push(asked.elapsed());
                        }
                        503 => {
                            assert_eq!(reply.json()["reason"], "requests_max");
                            refused.lock().expect("no panic").push(asked.elapsed());
                        }
                        other => panic!("{other}: {reply:?}"),
                    }
                }
            });
        }
    });
    let used = (server.cpu_time() - before).as_secs_f64();
    let [answered, refused] = [answered, refused].map(|times| times.into_inner().expect("no panic"));
    assert!(refused.len() > answered.len(), "it is not too much");
    // The worker had no rest but what other processes have taken, and each answer cost what it costs alone.
    assert!(used > 0.1 * TIME.as_secs_f64(), "{used} s of processor time in {TIME:?}");
    let under_load = answered.len() as f64 / used;
    assert!(under_load > 0.5 * alone, "{under_load} answers for a second of processor time instead of {alone}");
    // A request that is refused does not wait for those that are not: those take as long as all that are there at once.
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let [answered, refused] = [answered, refused].map(median);
    assert!(refused < answered, "{refused:?} until a request is refused, {answered:?} until one is answered");
    server.stop();
}

fn stateful(folder: &Path) -> Value {
    json!({ "workers": 1, "state_dir": folder.join("state"), "cache_dir": folder.join("cache"), "functions": [] })
}

/// Deploys the next version of `web`; the status, if there was an answer.
fn deployed_to(door: &Path, module: &[u8]) -> Option<u16> {
    let mut stream = UnixStream::connect(door).ok()?;
    let head = format!("PUT /functions/web HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", module.len());
    stream.write_all(&[head.as_bytes(), module].concat()).ok()?;
    // The server may be killed while it answers.
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    line.strip_suffix('\n')?.split(' ').nth(1)?.parse().ok()
}

fn killed(mut server: Server) {
    server.signal(Signal::KILL);
    server.wait(TIME_MAX);
}

/// Whenever the server is killed, a component is afterwards what the last deployment made that was answered, or the one behind it.
#[test]
fn a_server_that_is_killed_while_components_are_deployed_has_one_of_them_afterwards() {
    const TEXTS: [&str; 3] = ["one", "two", "three"];
    let folder = tempfile::tempdir().expect("a folder");
    let files = TEXTS.map(|text| answering(&format!("killed-{text}"), text, 1));
    let modules = files.clone().map(|file| fs::read(file).expect("a component"));
    let server = Server::start(stateful(folder.path()));
    let file = files[0].to_str().expect("a path");
    let set = ["--name", "web", "--set", "opt_level=0", "--set", "route=/a/web"];
    let deployed = command(&server, &[&["deploy", file], &set[..]].concat());
    assert_eq!((deployed.code(), deployed.text().lines().next()), (0, Some("added web")), "{}", deployed.stderr);
    // All are in the cache from here on, so that a deployment is what is killed, not a compiler.
    for module in &modules[1..] {
        assert_eq!(server.admin().deploy("web", &json!({ "opt_level": 0 }), module).status, 200);
    }
    killed(server);
    let mut random = Random::new(16, "times of kills");
    // Which of them is there, and how many deployments were answered in all rounds.
    let (mut there, mut answered) = (2, 0);
    let mut may_be = vec![there];
    let end = Instant::now() + TIME_MAX;
    // As many rounds as it takes until a deployment is answered before the kill.
    let mut round = 0;
    while round <= 12 || answered == 0 {
        assert!(Instant::now() < end, "no deployment was ever answered");
        let server = Server::start(stateful(folder.path()));
        let answer = server.client().get("/a/web").text();
        there = *may_be
            .iter()
            .find(|at| TEXTS[**at] == answer)
            .unwrap_or_else(|| panic!("round {round}: {answer:?}, not of {may_be:?}"));
        assert_eq!(server.admin().get("/readyz").text(), "ready\n", "round {round}");
        assert_eq!(server.admin().function("web").expect("it is there")["settings"]["opt_level"], 0);
        let door = server.admin().path().to_owned();
        let count = thread::scope(|scope| {
            // Until there is no answer any more.
            let deploying = scope.spawn(|| {
                let statuses = modules.iter().cycle().skip(there + 1).map_while(|module| deployed_to(&door, module));
                statuses.inspect(|status| assert_eq!(*status, 200, "round {round}")).count()
            });
            thread::sleep(Duration::from_micros(random.below(60_000 * (1 + round / 13))));
            killed(server);
            deploying.join().expect("deployments")
        });
        answered += count;
        may_be = vec![(there + count) % 3, (there + count + 1) % 3];
        round += 1;
    }
}

/// Each further one costs little memory, also with the sandbox that it keeps.
#[test]
fn hundreds_of_components_are_served_at_once() {
    const KIBIBYTES_MAX: u64 = 250;
    let file = programs::compiled(&answering("many", "here", 1), &[]);
    let resident = |count: usize| {
        let functions: Vec<Value> = (0..count).map(|number| json!({ "name": format!("f{number}"), "path": file })).collect();
        let server = Server::start(json!({ "workers": 1, "idle_memory_ms": 0, "functions": functions }));
        let mut raw = Raw::connect(server.address);
        for _ in 0..2 {
            for number in 0..count {
                let reply = send(&mut raw, &format!("/f{number}"));
                assert_eq!((reply.status, reply.text().as_str()), (200, "here"), "function {number}");
            }
        }
        let bytes = server.resident_bytes();
        server.stop();
        bytes
    };
    let (few, many) = (resident(20), resident(320));
    let each = many.saturating_sub(few) / 300 / 1024;
    assert!(each < KIBIBYTES_MAX, "{each} KiB for each component");
}
