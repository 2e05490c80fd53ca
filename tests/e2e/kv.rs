//! The key-value store, as functions see it: every operation, its errors, tenants and limits, what a server that is killed leaves.

use crate::fetch::certificates;
use crate::{entry, entry_with, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sledge_tests::http::Client;
use sledge_tests::server::{Server, free_address};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A Redis server of one's own that keeps what was written, gone with the test.
pub(crate) struct Redis {
    folder: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Redis {
    pub(crate) fn start() -> Redis {
        let folder = tempfile::tempdir().expect("a folder");
        // One that the system gives to no other socket until it is used.
        let port = free_address().port();
        let child = Redis::spawn(folder.path(), port);
        Redis { folder, port, child }
    }

    /// One that speaks TLS alone, with that certificate and key.
    fn start_over_tls(certificate: &Path, key: &Path) -> Redis {
        let mut redis = Redis::start();
        redis.stop();
        let mut command = Redis::command(redis.folder.path());
        command.args(["--port", "0", "--tls-auth-clients", "no", "--tls-port", &redis.port.to_string()]);
        command.arg("--tls-cert-file").arg(certificate).arg("--tls-key-file").arg(key);
        redis.child = Redis::run(&mut command, redis.port);
        redis
    }

    fn spawn(folder: &Path, port: u16) -> Child {
        Redis::run(Redis::command(folder).args(["--port", &port.to_string()]), port)
    }

    fn command(folder: &Path) -> Command {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--appendonly", "yes", "--appendfsync", "always", "--dir"]);
        command.arg(folder).stdout(Stdio::null()).stdin(Stdio::null());
        command
    }

    /// Waits until it listens.
    fn run(command: &mut Command, port: u16) -> Child {
        let mut child = command.spawn().expect("redis-server, which scripts/setup installs");
        let end = Instant::now() + sledge_tests::http::TIME_MAX;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(child.try_wait().expect("its state").is_none(), "redis-server has ended");
            assert!(Instant::now() < end, "redis-server does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        child
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What it answers to a command without blanks in its words.
    pub(crate) fn ask(&self, command: &str) -> String {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("a connection");
        connection.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).expect("it takes a command");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        assert!(!answer.starts_with('-'), "{command}: {answer}");
        answer
    }

    pub(crate) fn stop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it ends");
    }

    /// Has it answer nothing until it goes on.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    pub(crate) fn restart(&mut self) {
        self.child = Redis::spawn(self.folder.path(), self.port);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

pub(crate) fn server(kv: &Value, functions: &[Value]) -> Server {
    let mut config = json!({ "workers": 1, "functions": functions });
    for (key, value) in kv.as_object().expect("an object") {
        config[key] = value.clone();
    }
    Server::start(config)
}

#[track_caller]
pub(crate) fn ask(client: &Client, path: &str, lines: &str) -> Vec<String> {
    let reply = client.post(path, lines);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text().lines().map(str::to_owned).collect()
}

#[test]
fn every_operation_does_what_it_says() {
    every_operation(&json!({ "kv": "memory" }));
}

#[test]
fn every_operation_does_the_same_in_redis() {
    let redis = Redis::start();
    every_operation(&json!({ "kv": redis.url() }));
}

#[test]
fn every_operation_does_the_same_in_redis_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let [root, leaf, key] = certificates(folder.path());
    let redis = Redis::start_over_tls(&leaf, &key);
    let url = format!("rediss://localhost:{}", redis.port);
    every_operation(&json!({ "kv": url, "http_ca_file": root }));
    // Its certificate leads to no authority that the server knows, or is for another name.
    let by_address = format!("rediss://127.0.0.1:{}", redis.port);
    for (kv, why) in [
        (json!({ "kv": url }), "UnknownIssuer"),
        (json!({ "kv": by_address, "http_ca_file": root }), "not valid for name"),
        (json!({ "kv": format!("redis://localhost:{}", redis.port) }), "the key-value store"),
    ] {
        let server = server(&kv, &[entry_with("kv", "kv.c", &json!({ "deadline_ms": 20_000 }))]);
        assert_eq!(ask(&server.client(), "/kv", "get a"), ["error 29"], "{kv}");
        server.wait_for_log(why);
        server.stop();
    }
    // It is not to be asked whether it is the right one.
    let config =
        json!({ "listen": "127.0.0.1:0", "admin": "none", "kv": format!("{url}/#insecure"), "functions": [entry("kv", "kv.c")] });
    let file = folder.path().join("sledge.json");
    fs::write(&file, config.to_string()).expect("write the configuration");
    let mut command = sledge_tests::programs::sledge_command(&["serve", "--config"]);
    let done = sledge_tests::process::run(command.arg(&file), b"", sledge_tests::http::TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("certificates are always checked") && done.stderr.contains("http_ca_file"), "{}", done.stderr);
}

/// Redis gives versions from this on, and rising ones.
const OF_REDIS_MIN: u64 = 1 << 40;

/// The store's versions by those that a store which counts from 1 would have given.
#[derive(Default)]
pub(crate) struct Versions(BTreeMap<u64, u64>);

impl Versions {
    /// The same line with the store's versions in place of the others: behind `?`, behind `=` of a commit, and the word behind the key of `swap`.
    pub(crate) fn asked(&self, line: &str) -> String {
        let of_store = |version: &str| {
            version.parse().ok().and_then(|version| self.0.get(&version)).map_or(version.to_owned(), u64::to_string)
        };
        let swap = line.split(' ').position(|word| word == "swap");
        let word = |(index, word): (usize, &str)| match word.split_once(if line.starts_with("commit") { '=' } else { '?' }) {
            Some((key, version)) => format!("{key}{}{}", &word[key.len()..=key.len()], of_store(version)),
            None if swap.is_some_and(|swap| index == swap + 2) => of_store(word),
            None => word.to_owned(),
        };
        line.split(' ').enumerate().map(word).collect::<Vec<_>>().join(" ")
    }

    /// Takes note of versions in a reply's line, where others would be; the line with these.
    #[track_caller]
    pub(crate) fn answered(&mut self, line: &str, expected: &str) -> String {
        let numbers = |text: &str| -> Vec<u64> {
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
        };
        let (given, others) = (numbers(line), numbers(expected));
        let mut line = line.to_owned();
        for (version, other) in given.into_iter().zip(others).filter(|(version, _)| (OF_REDIS_MIN..1 << 63).contains(version)) {
            assert_eq!(*self.0.entry(other).or_insert(version), version, "{line:?} and {expected:?}");
            assert!(self.0.values().is_sorted_by(|before, after| before < after), "{:?}", self.0);
            line = line.replacen(&version.to_string(), &other.to_string(), 1);
        }
        line
    }
}

fn every_operation(kv: &Value) {
    let server = server(kv, &[entry("kv", "kv.c")]);
    let versions = RefCell::new(Versions::default());
    // Line by line: some name versions that the store has given to those before.
    let check = |lines: &str, expected: &[&str]| {
        assert_eq!(lines.lines().count(), expected.len());
        for (line, expected) in lines.lines().zip(expected) {
            let asked = versions.borrow().asked(line);
            let answers = ask(&server.client(), "/kv", &asked);
            let [answer] = &answers[..] else { panic!("{asked}: {answers:?}") };
            assert_eq!(versions.borrow_mut().answered(answer, expected), *expected, "{asked}");
        }
    };
    check("get a\nexists a\nset a one\nget a\nexists a", &["error 44", "exists 0 0", "set 0 1", "1 one", "exists 1 0"]);
    // Another request, in another sandbox.
    check(
        "get a\nset a two\nget a\ndelete a\nget a\ndelete a",
        &["1 one", "set 0 2", "2 two", "delete 0 0", "error 44", "delete 0 0"],
    );
    check(
        "add n 5\nadd n -7\nget n\nset t x\nadd t 1\nadd n -9223372036854775807",
        &["sum 5", "sum -2", "6 -2", "set 0 7", "error 28", "error 61"],
    );
    let swaps = "swap s 0 a\nswap s 0 b\nget s\nswap s 8 c\nswap s 8 d\nget s\nswap gone 3 x";
    check(swaps, &["swap 1 8", "swap 0 8", "8 a", "swap 1 9", "swap 0 9", "9 c", "swap 0 0"]);
    let commits =
        "commit a=0 s=9 a:1 b:2 s!\nvalues a b s\ncommit a=10 b=9 a:x\nvalues a b\ncommit a=10 b=10 b!\nvalues a b nothing";
    check(commits, &["commit 1 10", "values 2 1 2 -", "commit 0 10", "values 2 1 2", "commit 1 11", "values 1 1 - -"]);
    check(
        "commit k1:a k2:b k30:c l:d\nlist k 14\nlist k 1000\nlist none 100\nlist k 5",
        &["commit 1 12", "keys | k1 k2 | k30", "keys | k1 k2 k30", "keys", "keys error"],
    );
    assert_eq!(ask(&server.client(), "/kv", "fault"), ["error 21", "error 21", "error 21", "error 21", "error 8", "error 1"]);
    check("fill big 1048576\nfill big 1048577", &["fill 0 13", "error 1"]);
    // Numbers are as a sum writes them.
    check("set t +5\nadd t 1\nset t 05\nadd t 1", &["set 0 14", "error 28", "set 0 15", "error 28"]);
    server.stop();
}

/// What is in Redis is there again when the connection is, and until then a function learns that it is not.
#[test]
fn a_broken_connection_to_redis_is_made_anew() {
    let mut redis = Redis::start();
    let kv = |name: &str, tenant: &str| entry_with(name, "kv.c", &json!({ "tenant": tenant, "deadline_ms": 20_000 }));
    let server = server(&json!({ "kv": redis.url(), "kv_tenant_bytes_max": 65_536 }), &[kv("kv", "a"), kv("other", "b")]);
    let client = server.client();
    let answers = ask(&client, "/kv", "set k 1\nadd n 4\nfill x 65000\nfill x 66000");
    assert_eq!(answers[1..], ["sum 4".to_owned(), answers[2].clone(), "error 19".to_owned()]);
    let stored = answers[0].strip_prefix("set 0 ").expect("it is set").to_owned() + " 1";
    assert_eq!(ask(&client, "/other", "get k"), ["error 44"]);
    assert!(ask(&client, "/other", "set k 2")[0].starts_with("set 0 "));
    redis.stop();
    assert_eq!(ask(&client, "/kv", "get k\nset k 3"), ["error 29", "error 29"]);
    redis.restart();
    let end = Instant::now() + sledge_tests::http::TIME_MAX;
    while ask(&client, "/kv", "get k") != [stored.as_str()] {
        assert!(Instant::now() < end, "it is not connected again");
    }
    assert_eq!(ask(&client, "/kv", "add n 3\ndelete x\nlist k 100"), ["sum 7", "delete 0 0", "keys | k"]);
    server.stop();
}

#[test]
fn tenants_and_buckets_have_keys_and_limits_of_their_own() {
    let with = |name: &str, tenant: &str, bucket: &str| entry_with(name, "kv.c", &json!({ "tenant": tenant, "args": [bucket] }));
    let functions =
        [with("a1", "a", "one"), with("a2", "a", "two"), with("aa", "a", "one"), with("b1", "b", "one"), entry("c", "kv.c")];
    let server = server(&json!({ "kv": "memory", "kv_tenant_bytes_max": 200_000, "kv_bytes_max": 300_000 }), &functions);
    let client = server.client();
    assert_eq!(ask(&client, "/a1", "set k 1"), ["set 0 1"]);
    for (path, found) in [("/aa", "1 1"), ("/a2", "error 44"), ("/b1", "error 44")] {
        assert_eq!(ask(&client, path, "get k"), [found], "{path}");
    }
    assert_eq!(ask(&client, "/a1", "fill x 150000\nfill y 60000"), ["fill 0 2", "error 19"]);
    // What one tenant has used up is not another's; what all have is.
    assert_eq!(ask(&client, "/b1", "fill x 100000\nfill y 90000\nget k"), ["fill 0 1", "error 19", "error 44"]);
    assert_eq!(ask(&client, "/a2", "list x 100"), ["keys"]);
    assert_eq!(ask(&client, "/aa", "delete x\nlist x 100"), ["delete 0 0", "keys"]);
    assert_eq!(ask(&client, "/b1", "fill y 90000"), ["fill 0 2"]);
    server.stop();
}

#[test]
fn without_a_store_there_is_none() {
    let server = server(&json!({}), &[entry("kv", "kv.c")]);
    assert_eq!(ask(&server.client(), "/kv", "get a"), ["error 58"]);
    server.stop();
}

/// What an increment that was acknowledged came to is there when the server was killed with SIGKILL at any moment, and nothing is there twice.
#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kv.redb");
    let start = |file: &Path| server(&json!({ "kv": file }), &[entry("kv", "kv.c")]);
    let mut total = 0;
    for round in 0..4 {
        let server = start(&file);
        let before: u64 = if round == 0 {
            0
        } else {
            ask(&server.client(), "/kv", "get n")[0].split_once(' ').expect("a value").1.parse().expect("a number")
        };
        assert!(before >= total, "{before} after {total} were acknowledged");
        let (address, over, seen) = (server.address, AtomicBool::new(false), AtomicBool::new(false));
        let (acknowledged, asked) = thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    let (over, seen) = (&over, &seen);
                    scope.spawn(move || {
                        let client = Client::new(address, sledge_tests::http::TIME_MAX);
                        let (mut largest, mut asked) = (0, 0);
                        while !over.load(Ordering::Relaxed) {
                            asked += 1;
                            let Ok(reply) = client.try_post("/kv", b"add n 1", &[]) else { break };
                            let sum = reply.text().trim().strip_prefix("sum ").expect("a sum").parse().expect("a number");
                            largest = std::cmp::max(largest, sum);
                            seen.store(true, Ordering::Relaxed);
                        }
                        (largest, asked)
                    })
                })
                .collect();
            eventually("something is acknowledged", || seen.load(Ordering::Relaxed));
            thread::sleep(std::time::Duration::from_millis(200 + 50 * round));
            server.signal(Signal::KILL);
            over.store(true, Ordering::Relaxed);
            let sums: Vec<(u64, u64)> = clients.into_iter().map(|client| client.join().expect("a client")).collect();
            (sums.iter().map(|(largest, _)| *largest).max().unwrap_or(0), sums.iter().map(|(_, asked)| asked).sum::<u64>())
        });
        assert!(acknowledged > before, "round {round}: nothing was acknowledged");
        assert!(acknowledged <= before + asked, "round {round}: {acknowledged} after {before} and {asked} requests");
        total = acknowledged;
    }
    let server = start(&file);
    let after: u64 = ask(&server.client(), "/kv", "get n")[0].split_once(' ').expect("a value").1.parse().expect("a number");
    // Of what was not answered, one for each client may have been done.
    assert!((total..=total + 4).contains(&after), "{after}, and {total} were acknowledged");
    server.stop();
}
