//! `isolation = "serializable"`: each request is one transaction of the key-value store, on every store, also where others, failures, broken connections and kills are in its way.

use crate::encoded::{self, WASI2};
use crate::kv::{Redis, ask, server};
use crate::{assert_failure, entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::random::Random;
use sledge_tests::server::Server;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wit_component::StringEncoding;

const ACCOUNTS: usize = 8;
const START: i64 = 1_000;
/// For how long functions wait while others do something: they have begun after a part of it, on a busy machine too.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) fn function(name: &str, more: Value) -> Value {
    let mut entry = entry_with(name, "transaction.c", &json!({ "isolation": "serializable", "deadline_ms": 60_000 }));
    for (key, value) in more.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    entry
}

/// The same function with and without transactions, on one store.
fn functions() -> [Value; 2] {
    [function("t", json!({})), entry_with("plain", "transaction.c", &json!({}))]
}

pub(crate) fn on_every_store(test: impl Fn(&Value)) {
    let folder = tempfile::tempdir().expect("a folder");
    let redis = Redis::start();
    for kv in [json!("memory"), json!(folder.path().join("kv.redb")), json!(redis.url())] {
        test(&json!({ "kv": kv, "workers": 2 }));
    }
}

#[test]
fn a_request_sees_what_it_has_written_and_others_see_it_when_it_is_over() {
    on_every_store(|kv| {
        let server = server(kv, &functions());
        let client = server.client();
        let t = |lines: &str| ask(&client, "/t", lines);
        assert_eq!(
            t("get a\nset a one\nget a\ndelete a\nget a\nset a two"),
            ["error 44", "set", "own one", "delete", "error 44", "set"]
        );
        assert_eq!(t("get a\nadd n 2\nadd n 3\nget n\nsum n 10"), ["stored two", "add", "add", "own 5", "sum", "15"]);
        assert_eq!(t("sum a 1\nset x 1\nget x"), ["error 28", "0", "set", "own 1"], "{kv}: what is no number");
        assert_eq!(t("swap a three\nget a\nswap new 1"), ["swap 1 0", "own three", "swap 1 0"]);
        // Keys of the transaction and of the store, in order.
        assert_eq!(
            t("set ab 1\nset aa 1\ndelete x\nlist a\nlist a a\nlist x"),
            ["set", "set", "delete", "keys a aa ab", "keys aa ab", "keys"]
        );
        assert_eq!(t("values a n"), ["values three 15"]);
        assert_eq!(ask(&client, "/plain", "list \nget new"), ["keys a aa ab n new", "stored 1"]);
        // What is under way is not seen.
        let address = server.address;
        thread::scope(|scope| {
            let lines = format!("set hidden 1\npause {}\nset hidden 2", PAUSE.as_millis());
            let began = Instant::now();
            let writes = scope.spawn(move || ask(&Client::new(address, TIME_MAX), "/t", &lines));
            // It is not committed earlier than so long after it was asked for.
            while began.elapsed() < PAUSE / 2 {
                let seen = ask(&client, "/plain", "get hidden");
                assert!(seen == ["error 44"] || began.elapsed() >= PAUSE, "{kv}: {seen:?}");
                thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(writes.join().expect("it is answered"), ["set", "paused", "set"]);
        });
        assert_eq!(ask(&client, "/plain", "get hidden"), ["stored 2"]);
        server.stop();
    });
}

#[test]
fn what_fails_has_changed_nothing() {
    on_every_store(|kv| {
        let server = server(&json!({ "kv": kv["kv"], "kv_tenant_bytes_max": 200_000 }), &functions());
        let client = server.client();
        assert_eq!(ask(&client, "/t", "set a 1"), ["set"]);
        for (lines, status) in [("set a 2\nset b 2\nexit 3", 500), ("set a 2\ntrap", 500), ("add a 5\ndelete a\nexit 1", 500)] {
            assert_eq!(client.post("/t", lines).status, status, "{kv}: {lines}");
        }
        assert_eq!(ask(&client, "/plain", "get a\nget b"), ["stored 1", "error 44"], "{kv}");
        // Where there is no room, that is known when all of it is written.
        assert_failure(
            &client.post("/t", "set a 3\nfill x 150000\nfill y 150000"),
            507,
            "not_committed",
            "kv_tenant_bytes_max",
            Some("t"),
        );
        assert_eq!(ask(&client, "/plain", "get a"), ["stored 1"], "{kv}");
        // What is added to without a look is found to be no number at the end.
        assert_eq!(ask(&client, "/plain", "set word x"), ["set"]);
        assert_failure(&client.post("/t", "set a 4\nadd word 1"), 500, "not_committed", "not_a_number", Some("t"));
        assert_eq!(ask(&client, "/plain", "get a"), ["stored 1"], "{kv}");
        server.stop();
    });
}

/// Clients move numbers between accounts, others add all of them up: the sum is the same at each moment, and in the end nothing is lost.
fn move_and_add_up(server: &Server, rounds: usize, path: &str) {
    let address = server.address;
    let total = START * ACCOUNTS as i64;
    thread::scope(|scope| {
        for mover in 0..4_usize {
            scope.spawn(move || {
                let client = Client::new(address, TIME_MAX);
                let mut random = Random::new(mover as u64, "transactions");
                for _ in 0..rounds {
                    let (from, to) = (random.below(ACCOUNTS as u64), random.below(ACCOUNTS as u64));
                    let (count, pause) = (1 + random.below(99), random.below(4));
                    if from != to {
                        assert_eq!(ask(&client, path, &format!("move a{from} a{to} {count} {pause}")), ["moved"]);
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                let client = Client::new(address, TIME_MAX);
                for _ in 0..rounds {
                    assert_eq!(ask(&client, path, &format!("total {ACCOUNTS} 1")), [format!("total {total}")]);
                }
            });
        }
    });
    assert_eq!(ask(&server.client(), path, &format!("total {ACCOUNTS} 0")), [format!("total {total}")]);
}

fn accounts() -> String {
    (0..ACCOUNTS).map(|account| format!("set a{account} {START}\n")).collect()
}

#[test]
fn requests_at_the_same_time_are_as_one_after_the_other() {
    on_every_store(|kv| {
        let server = server(kv, &functions());
        ask(&server.client(), "/t", &accounts());
        eventually("some conflict", || {
            move_and_add_up(&server, 40, "/t");
            let metrics = server.admin().get("/metrics").text();
            let reruns = metrics.lines().find(|line| line.starts_with("sledge_reruns_total{function=\"t\""));
            !reruns.expect("they are counted").ends_with(" 0")
        });
        server.stop();
    });
}

/// A key that all want is taken by one after the other, and all are done long before their deadline.
#[test]
fn a_key_that_all_want_is_taken_in_turns() {
    on_every_store(|kv| {
        let server = server(kv, &functions());
        let address = server.address;
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(move || {
                    let client = Client::new(address, TIME_MAX);
                    (0..10).for_each(|_| assert!(ask(&client, "/t", "next counter 3")[0].starts_with("next ")));
                });
            }
        });
        assert_eq!(ask(&server.client(), "/plain", "get counter"), ["stored 160"], "{kv}");
        let metrics = server.admin().get("/metrics").text();
        let reruns =
            metrics.lines().find_map(|line| line.strip_prefix("sledge_reruns_total{function=\"t\",tenant=\"default\"} "));
        let reruns: u64 = reruns.expect("they are counted").parse().expect("a number");
        // Without turns nearly all of 16 run again each time.
        assert!(reruns < 320, "{kv}: 160 requests have run again {reruns} times");
        server.stop();
    });
}

/// It may have seen what never was there at the same time, and so it is not believed before that is known.
#[test]
fn a_failure_that_comes_of_what_never_was_is_no_failure() {
    on_every_store(|kv| {
        let server = server(kv, &functions());
        let (address, over) = (server.address, AtomicBool::new(false));
        ask(&server.client(), "/t", "set one 0\nset other 0");
        thread::scope(|scope| {
            let over = &over;
            scope.spawn(move || {
                let client = Client::new(address, TIME_MAX);
                let mut number = 0;
                while !over.load(Ordering::Relaxed) {
                    number += 1;
                    ask(&client, "/t", &format!("set one {number}\nset other {number}"));
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let client = Client::new(address, TIME_MAX);
            for _ in 0..60 {
                assert_eq!(ask(&client, "/t", "unequal one other"), ["equal"], "{kv}");
            }
            over.store(true, Ordering::Relaxed);
        });
        server.stop();
    });
}

/// The head and what was written of the reply leave when it is certain what it says.
#[test]
fn a_reply_that_is_a_stream_is_held_until_the_commit() {
    let server = server(&json!({ "kv": "memory", "workers": 2, "reply_bytes_max": 4 << 20 }), &functions());
    let (address, client) = (server.address, server.client());
    let lines = format!("get k\nstream\npause {}\nset k mine", PAUSE.as_millis());
    thread::scope(|scope| {
        let streams = scope.spawn(move || ask(&Client::new(address, TIME_MAX), "/t", &lines));
        thread::sleep(PAUSE / 4);
        ask(&client, "/plain", "set k theirs");
        assert_eq!(
            streams.join().expect("it is answered"),
            ["stored theirs", "stream 0", "paused", "set"],
            "nothing of the first run is seen"
        );
    });
    // Much more than is under way of a stream.
    let reply = client.post("/t", "stream\nflood 3000000");
    assert_eq!((reply.status, reply.body.len()), (200, 3_000_000 + "stream 0\n".len()));
    assert_failure(&client.post("/t", "stream\nflood 5000000"), 500, "reply_too_large", "reply_bytes_max", Some("t"));
    server.stop();
}

#[test]
fn what_it_calls_is_a_part_of_it() {
    on_every_store(|kv| {
        // What is called need not be a transaction where nothing with one calls it.
        let callee = entry_with("callee", "transaction.c", &json!({ "deadline_ms": 60_000 }));
        let server = server(kv, &[function("t", json!({})), callee, entry_with("plain", "transaction.c", &json!({}))]);
        let client = server.client();
        let t = |lines: &str| ask(&client, "/t", lines);
        assert_eq!(
            t("set a 1\ninvoke callee get a;set b 2\nget b\ninvoke callee list "),
            ["set", "own 1;set;", "own 2", "keys a b;"],
            "{kv}"
        );
        // One that fails has changed nothing; its caller goes on.
        assert_eq!(t("invoke callee set c 3;set a 9;exit 1\nget c\nget a"), ["error 12", "error 44", "stored 1"], "{kv}");
        assert_eq!(ask(&client, "/plain", "list "), ["keys a b"]);
        // Nothing of what was called stays where its caller fails.
        assert_eq!(client.post("/t", "invoke callee set d 4\nexit 1").status, 500);
        assert_eq!(ask(&client, "/plain", "get d"), ["error 44"]);
        // Two at the same time do not overwrite each other.
        let both = t("set n 0\nboth callee next n 20\nget n");
        assert_eq!(both[3], "own 2", "{kv}: {both:?}");
        // Calls whose reply is not wanted begin when all of it has happened, and only then.
        assert_eq!(
            t("set seen no\nsend callee get marker;set seen yes\npause 100\nset marker 1"),
            ["set", "sent", "paused", "set"]
        );
        eventually("it was sent", || ask(&client, "/plain", "get seen") == ["stored yes"]);
        assert_eq!(client.post("/t", "send callee set never 1\nexit 1").status, 500);
        assert_eq!(t("invoke callee send callee set later 1\nget later"), ["sent;", "error 44"]);
        eventually("it was sent by what was called", || ask(&client, "/plain", "get later") == ["stored 1"]);
        assert_eq!(ask(&client, "/plain", "get never"), ["error 44"]);
        server.stop();
    });
}

#[test]
fn what_cannot_be_taken_back_is_refused_unless_it_may_be_split() {
    let to = json!({ "http_hosts": ["127.0.0.1:9"] });
    let mut split = to.clone();
    split["effects"] = "split".into();
    let server = server(&json!({ "kv": "memory" }), &[function("t", to), function("split", split)]);
    let client = server.client();
    let lines = "set a 1\nfetch http://127.0.0.1:9/";
    assert_failure(&client.post("/t", lines), 500, "effect_refused", "send", Some("t"));
    server.wait_for_log("sledge:fetch.send cannot be taken back");
    assert_eq!(ask(&client, "/split", "get a"), ["error 44"]);
    assert_eq!(ask(&client, "/split", lines), ["set", "fetch 1"]);
    server.stop();
}

#[test]
fn a_body_that_is_too_large_to_be_kept_runs_once() {
    let server = server(&json!({ "kv": "memory", "workers": 2, "body_bytes_max": 16 << 20 }), &functions());
    let (address, client) = (server.address, server.client());
    let body = |lines: &str, bytes: usize| format!("{lines}\nbody {}", "x".repeat(bytes));
    let begin = |bytes| {
        let lines = body(&format!("get k\npause {}\nset k mine", 2 * PAUSE.as_millis()), bytes);
        thread::scope(|scope| {
            let runs = scope.spawn(move || Client::new(address, TIME_MAX).post("/t", lines));
            thread::sleep(PAUSE / 2);
            ask(&client, "/plain", "set k theirs");
            runs.join().expect("it is answered")
        })
    };
    let reply = begin(1 << 10);
    assert_eq!((reply.status, &*reply.text()), (200, "stored theirs\npaused\nset\nbody\n"));
    assert_failure(&begin(5 << 20), 503, "conflict", "conflicts", Some("t"));
    assert_eq!(ask(&client, "/plain", "get k"), ["stored theirs"]);
    server.stop();
}

/// A server between this one and Redis that breaks some connections when Redis has answered: what has become of a commit has to be found out.
struct Breaking {
    port: u16,
    /// How many it broke.
    broken: Arc<AtomicU64>,
    /// It breaks each so many answers; never while that is zero.
    each: Arc<AtomicU64>,
}

impl Breaking {
    fn start(redis: u16) -> Breaking {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (broken, each) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let breaking = Breaking { port, broken: Arc::clone(&broken), each: Arc::clone(&each) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, redis)) else { continue };
                let (to, from) = (server.try_clone().expect("a socket"), stream.try_clone().expect("a socket"));
                thread::spawn(move || carry(from, to, || false));
                let (broken, each) = (Arc::clone(&broken), Arc::clone(&each));
                let answers = AtomicU64::new(0);
                let breaks = move || {
                    let each = each.load(Ordering::Relaxed);
                    let breaks = each > 0 && answers.fetch_add(1, Ordering::Relaxed) % each == each - 1;
                    broken.fetch_add(breaks.into(), Ordering::Relaxed);
                    breaks
                };
                thread::spawn(move || carry(server, stream, breaks));
            }
        });
        breaking
    }
}

/// Carries bytes over until one side ends or it `breaks`, and ends both.
fn carry(mut from: TcpStream, mut to: TcpStream, breaks: impl Fn() -> bool) {
    let mut bytes = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if breaks() || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Each request is answered once it is known what became of it: what is acknowledged was done once, and what was not was not done.
#[test]
fn a_commit_whose_answer_is_lost_is_made_once() {
    let redis = Redis::start();
    let breaking = Breaking::start(redis.port());
    let kv = json!({ "kv": format!("redis://127.0.0.1:{}", breaking.port), "workers": 2 });
    let server = server(&kv, &functions());
    assert_eq!(ask(&server.client(), "/t", "add n 0"), ["add"]);
    breaking.each.store(7, Ordering::Relaxed);
    let address = server.address;
    let counts = thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || {
                    let client = Client::new(address, TIME_MAX);
                    let statuses = (0..60).map(|_| {
                        let reply = client.post("/t", "add n 1");
                        assert!(reply.status == 200 || reply.json()["code"] == "outcome_unknown", "{reply:?}");
                        u64::from(reply.status == 200)
                    });
                    statuses.sum::<u64>()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("it is done")).sum::<u64>()
    });
    breaking.each.store(0, Ordering::Relaxed);
    assert!(breaking.broken.load(Ordering::Relaxed) > 10, "connections were broken");
    eventually("the store is there", || server.client().post("/plain", "get n").text().starts_with("stored "));
    let stored = &ask(&server.client(), "/plain", "get n")[0];
    let stored: u64 = stored.strip_prefix("stored ").expect("a value").parse().expect("a number");
    let unknown = 240 - counts;
    assert!((counts..=counts + unknown).contains(&stored), "{counts} were acknowledged, {unknown} unknown, {stored} are stored");
    assert!(unknown < 24, "it is found out nearly always: {unknown} unknown");
    server.stop();
}

/// Redis is gone for good while a commit is on its way: the client is told that nothing is known, and the function does not run again.
#[test]
fn an_outcome_that_cannot_be_found_out_is_said_to_be_unknown() {
    let mut redis = Redis::start();
    let breaking = Breaking::start(redis.port());
    let kv = json!({ "kv": format!("redis://127.0.0.1:{}", breaking.port) });
    let server = server(&kv, &functions());
    assert_eq!(ask(&server.client(), "/t", "set a 1"), ["set"]);
    breaking.each.store(1, Ordering::Relaxed);
    assert_failure(&server.client().post("/t", "set a 2"), 500, "outcome_unknown", "commit", Some("t"));
    redis.stop();
    breaking.each.store(0, Ordering::Relaxed);
    // What was never sent has not been done.
    let reply = server.client().post("/t", "set a 3");
    assert!(reply.status == 503 || reply.json()["code"] == "outcome_unknown", "{reply:?}");
    redis.restart();
    eventually("the store is there", || server.client().post("/plain", "get a").text() == "stored 2\n");
    server.stop();
}

/// Whenever the server is killed, all of a transaction is there or nothing.
#[test]
fn a_kill_leaves_whole_transactions() {
    let folder = tempfile::tempdir().expect("a folder");
    let kv = json!({ "kv": folder.path().join("kv.redb"), "workers": 2 });
    let first = server(&kv, &functions());
    ask(&first.client(), "/t", &accounts());
    first.stop();
    for round in 0..3_u64 {
        let server = server(&kv, &functions());
        let (address, over) = (server.address, AtomicBool::new(false));
        thread::scope(|scope| {
            for mover in 0..4_usize {
                let over = &over;
                scope.spawn(move || {
                    let client = Client::new(address, TIME_MAX);
                    let mut random = Random::new(round * 10 + mover as u64, "kills");
                    while !over.load(Ordering::Relaxed) {
                        let (from, to) = (random.below(ACCOUNTS as u64), random.below(ACCOUNTS as u64));
                        if from != to && client.try_post("/t", format!("move a{from} a{to} 7 0").as_bytes(), &[]).is_err() {
                            break;
                        }
                    }
                });
            }
            thread::sleep(Duration::from_millis(150 + 70 * round));
            server.signal(Signal::KILL);
            over.store(true, Ordering::Relaxed);
        });
    }
    let server = server(&kv, &functions());
    let total = START * ACCOUNTS as i64;
    assert_eq!(ask(&server.client(), "/t", &format!("total {ACCOUNTS} 0")), [format!("total {total}")]);
    server.stop();
}

/// A component that says what its response is, writes a part of the body, and fails if the path ends with `1`; otherwise it writes as many pieces of 4 KiB as the last digit says.
const HELD: &str = r#"(module
    (import "wasi:http/types@V" "[method]incoming-request.path-with-query" (func $path (param i32 i32)))
    (import "wasi:http/types@V" "[constructor]fields" (func $fields (result i32)))
    (import "wasi:http/types@V" "[constructor]outgoing-response" (func $response (param i32) (result i32)))
    (import "wasi:http/types@V" "[method]outgoing-response.body" (func $body (param i32 i32)))
    (import "wasi:http/types@V" "[method]outgoing-body.write" (func $write (param i32 i32)))
    (import "wasi:http/types@V" "[static]outgoing-body.finish" (func $finish (param i32 i32 i32 i32)))
    (import "wasi:http/types@V" "[static]response-outparam.set" (func $set (param i32 i32 i32 i32 i64 i32 i32 i32 i32)))
    (import "wasi:io/streams@V" "[method]output-stream.blocking-write-and-flush" (func $put (param i32 i32 i32 i32)))
    (import "wasi:io/streams@V" "[resource-drop]output-stream" (func $drop (param i32)))
    (memory (export "memory") 2)
    (data (i32.const 1024) "first")
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 8192))
    (func (export "wasi:http/incoming-handler@V#handle") (param $request i32) (param $out i32)
        (local $response i32) (local $body i32) (local $stream i32) (local $digit i32)
        (call $path (local.get $request) (i32.const 16))
        (local.set $digit
            (i32.and (i32.load8_u (i32.sub (i32.add (i32.load (i32.const 20)) (i32.load (i32.const 24))) (i32.const 1))) (i32.const 15)))
        (local.set $response (call $response (call $fields)))
        (call $body (local.get $response) (i32.const 32))
        (local.set $body (i32.load (i32.const 36)))
        (call $write (local.get $body) (i32.const 32))
        (local.set $stream (i32.load (i32.const 36)))
        (call $set (local.get $out) (i32.const 0) (local.get $response) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0)
            (i32.const 0) (i32.const 0))
        (call $put (local.get $stream) (i32.const 1024) (i32.const 5) (i32.const 48))
        (if (i32.eq (local.get $digit) (i32.const 1)) (then unreachable))
        (loop $more
            (if (local.get $digit) (then
                (call $put (local.get $stream) (i32.const 8192) (i32.const 4096) (i32.const 48))
                (local.set $digit (i32.sub (local.get $digit) (i32.const 1)))
                (br $more))))
        (call $drop (local.get $stream))
        (call $finish (local.get $body) (i32.const 0) (i32.const 0) (i32.const 64))))"#;

/// The response of `wasi:http` is held, whenever the component has said what it is.
#[test]
fn a_reply_of_a_component_is_held_until_the_commit() {
    let world = "import wasi:http/types@V; export wasi:http/incoming-handler@V;";
    let component = encoded::component("held", WASI2, world, HELD, StringEncoding::UTF8);
    let entry = |name: &str, more: Value| {
        let mut entry =
            json!({ "name": name, "path": component, "route": format!("/{name}/*"), "opt_level": 0, "methods": ["GET"] });
        for (key, value) in more.as_object().expect("an object") {
            entry[key] = value.clone();
        }
        entry
    };
    let functions = [entry("held", json!({ "isolation": "serializable" })), entry("plain", json!({}))];
    let server = server(&json!({ "kv": "memory", "reply_bytes_max": 20_000 }), &functions);
    let client = server.client();
    let whole = client.get("/held/3");
    assert_eq!((whole.status, whole.body.len()), (200, 5 + 3 * 4_096));
    // Of one that is not, the head and a part have left when it fails; of this one nothing has.
    assert_failure(&client.get("/held/1"), 500, "trap", "unreachable", Some("held"));
    assert_failure(&client.get("/held/9"), 500, "reply_too_large", "reply_bytes_max", Some("held"));
    assert_eq!(client.get("/plain/3").body.len(), 5 + 3 * 4_096);
    server.stop();
}

/// A function that reads a byte, and writes it back larger by one.
const COUNTS: &str = r#"(module
    (import "sledge:kv" "open" (func $open (param i32 i32) (result i32)))
    (import "sledge:kv" "get" (func $get (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "sledge:kv" "set" (func $set (param i32 i32 i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "bn")
    (func (export "sledge_handle") (result i32)
        (local $bucket i32)
        (local.set $bucket (call $open (i32.const 0) (i32.const 1)))
        (drop (call $get (local.get $bucket) (i32.const 1) (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 0)))
        (i32.store8 (i32.const 16) (i32.add (i32.load8_u (i32.const 16)) (i32.const 1)))
        (i32.lt_s
            (call $set (local.get $bucket) (i32.const 1) (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 0))
            (i32.const 0))))"#;

/// Deployed through the admin API, functions have transactions as those of the configuration do. Versions of them, too.
#[test]
fn deployed_functions_have_transactions() {
    let redis = Redis::start();
    let server = server(&json!({ "kv": redis.url(), "workers": 2 }), &[entry_with("plain", "transaction.c", &json!({}))]);
    let wasm = wat::parse_str(COUNTS).expect("WAT");
    for (round, settings) in [json!({ "isolation": "serializable" }), json!({})].iter().enumerate() {
        let reply = server.admin().deploy("counts", settings, &wasm);
        assert_eq!(reply.status, 200, "{reply:?}");
        let address = server.address;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    let client = Client::new(address, TIME_MAX);
                    (0..12).for_each(|_| assert_eq!(client.post("/counts", "").status, 200));
                });
            }
        });
        // 48 is `0`, 96 is a grave accent.
        let count = ["stored 0", "stored `"][round];
        assert_eq!(ask(&server.client(), "/plain", "get n"), [count], "the settings stay, and none is lost");
    }
    server.stop();
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let check = |more: Value, kv: Option<&str>| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = json!({ "functions": [entry_with("a", "echo.wat", &more)] });
        if let Some(kv) = kv {
            config["kv"] = kv.into();
        }
        let file = folder.path().join("sledge.json");
        std::fs::write(&file, config.to_string()).expect("write the configuration");
        let done = process::run(sledge_command(&["config", "check"]).arg(&file), b"", TIME_MAX);
        (done.code(), done.stderr)
    };
    assert_eq!(check(json!({ "isolation": "serializable", "effects": "split" }), Some("memory")).0, 0);
    let outbox = json!({ "isolation": "serializable", "effects": "outbox", "outbox_age_max_s": 60 });
    assert_eq!(check(outbox, Some("memory")).0, 0);
    for (more, kv, words) in [
        (json!({ "isolation": "serializable" }), None, "functions[0].isolation: there is no key-value store"),
        (json!({ "isolation": "serializable", "body": "stream" }), Some("memory"), "leave `body = \"stream\"` out"),
        (json!({ "isolation": "serializable", "instance": "application" }), Some("memory"), "leave `instance` out"),
        (json!({ "effects": "split" }), Some("memory"), "functions[0].effects: nothing is split"),
        (json!({ "effects": "outbox" }), Some("memory"), "functions[0].effects: there is no commit to record requests in"),
        (
            json!({ "isolation": "serializable", "outbox_age_max_s": 5 }),
            Some("memory"),
            "functions[0].outbox_age_max_s: there is no outbox",
        ),
        (
            json!({ "isolation": "serializable", "effects": "outbox", "outbox_age_max_s": 0 }),
            Some("memory"),
            "functions[0].outbox_age_max_s",
        ),
        (json!({ "isolation": "snapshot" }), Some("memory"), "expected `none` or `serializable`"),
    ] {
        let (code, stderr) = check(more.clone(), kv);
        assert!(code == 1 && stderr.contains(words), "{more}: {stderr}");
    }
}
