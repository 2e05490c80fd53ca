//! Reads of a key that many requests share, where a Redis server is this server's alone (`kv_exclusive`), and writes that are sent together (`kv_merge_us`); over a way to Redis that takes 40 ms.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::server::Server;

use crate::entry;
use crate::kv::{Redis, ask, server};

/// How long bytes take to Redis and back, together: as long as many clients take to ask, on a busy machine too.
const DELAY: Duration = Duration::from_millis(40);
const CLIENTS: usize = 100;
const READS: usize = 20;

/// The port of a way to that one on which requests are delayed, however many are under way.
fn delayed(redis: u16) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, redis)) else { continue };
            let (to, from) = (server.try_clone().expect("a socket"), stream.try_clone().expect("a socket"));
            thread::spawn(move || carry(from, to, DELAY));
            thread::spawn(move || carry(server, stream, Duration::ZERO));
        }
    });
    port
}

/// Carries bytes over, each so long after they have come, until one side ends.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let ended = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    let (send, receive) = mpsc::channel::<(Instant, Vec<u8>)>();
    let writer = thread::spawn(move || {
        for (at, bytes) in receive {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    let mut bytes = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if send.send((Instant::now() + delay, bytes[..count].to_vec())).is_err() {
            break;
        }
    }
    drop(send);
    writer.join().expect("it does not panic");
    let _ = (ended.0.shutdown(Shutdown::Both), ended.1.shutdown(Shutdown::Both));
}

/// How often Redis was sent a command.
pub(crate) fn sent(redis: &Redis, command: &str) -> u64 {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, redis.port())).expect("Redis");
    stream.write_all(b"INFO commandstats\r\nQUIT\r\n").expect("it takes it");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |rest| rest.split(',').next().and_then(|calls| calls.parse().ok()).expect("a number"))
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.admin().get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().expect("a number"))
}

/// The number that a reply has as value.
fn value(client: &Client) -> u64 {
    let answer = ask(client, "/kv", "get hot");
    answer[0].split(' ').nth(1).and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

/// Many clients that read one key: how many commands a read costs.
fn commands_for_a_read(redis: &Redis, server: &Server) -> f64 {
    assert!(ask(&server.client(), "/kv", "set hot 0")[0].starts_with("set 0 "));
    let (before, address) = (sent(redis, "hget"), server.address);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(move || {
                let client = Client::new(address, TIME_MAX);
                (0..READS).for_each(|_| assert_eq!(value(&client), 0));
            });
        }
    });
    (sent(redis, "hget") - before) as f64 / (CLIENTS * READS) as f64
}

#[test]
fn clients_of_one_hot_key_share_reads_of_an_exclusive_store() {
    let redis = Redis::start();
    let kv = format!("redis://127.0.0.1:{}", delayed(redis.port()));
    let server = server(&json!({ "kv": kv, "kv_exclusive": true, "workers": 2 }), &[entry("kv", "kv.c")]);
    let commands = commands_for_a_read(&redis, &server);
    assert!(commands <= 0.2, "{commands} commands for a read");
    let [sent, joined] = ["sent", "joined"].map(|way| metric(&server, &format!("sledge_kv_reads_total{{way=\"{way}\"}}")));
    assert_eq!(sent + joined, (CLIENTS * READS) as u64);
    assert_eq!(metric(&server, "sledge_kv_slots_closed"), 0);
    server.stop();
}

#[test]
fn without_that_each_read_is_sent() {
    let redis = Redis::start();
    let kv = format!("redis://127.0.0.1:{}", delayed(redis.port()));
    let server = server(&json!({ "kv": kv, "workers": 2 }), &[entry("kv", "kv.c")]);
    assert_eq!(commands_for_a_read(&redis, &server), 1.0);
    assert!(!server.admin().get("/metrics").text().contains("sledge_kv_reads"));
    server.stop();
}

/// A reader that begins when a write was acknowledged sees it, or a later one, though reads of before are still under way.
#[test]
fn a_shared_read_is_never_older_than_a_write_that_was_acknowledged() {
    const WRITES: u64 = 100;

    let redis = Redis::start();
    let kv = format!("redis://127.0.0.1:{}", delayed(redis.port()));
    let server = server(&json!({ "kv": kv, "kv_exclusive": true, "workers": 2 }), &[entry("kv", "kv.c")]);
    assert_eq!(ask(&server.client(), "/kv", "add hot 1"), ["sum 1"]);
    let (seen, is_over, address) = (AtomicU64::new(1), AtomicBool::new(false), server.address);
    thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| {
                let client = Client::new(address, TIME_MAX);
                while !is_over.load(Ordering::SeqCst) {
                    let least = seen.load(Ordering::SeqCst);
                    let value = value(&client);
                    assert!(value >= least, "{value} was read after {least}");
                    seen.fetch_max(value, Ordering::SeqCst);
                }
            });
        }
        let client = Client::new(address, TIME_MAX);
        for write in 2..=WRITES {
            assert_eq!(ask(&client, "/kv", "add hot 1"), [format!("sum {write}")]);
            seen.fetch_max(write, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(write % 12));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let [joined, alone] = ["joined", "alone"].map(|way| metric(&server, &format!("sledge_kv_reads_total{{way=\"{way}\"}}")));
    assert!(joined > WRITES && alone > 0, "{joined} joined, {alone} beside writes");
    assert_eq!(metric(&server, "sledge_kv_slots_closed"), 0);
    server.stop();
}

#[test]
fn writes_under_load_are_sent_together_where_they_wait_for_that() {
    const WRITERS: usize = 30;
    const WRITES: usize = 10;

    let redis = Redis::start();
    let kv = format!("redis://127.0.0.1:{}", delayed(redis.port()));
    let server = server(&json!({ "kv": kv, "kv_merge_us": 20_000, "workers": 2 }), &[entry("kv", "kv.c")]);
    assert!(ask(&server.client(), "/kv", "set hot 0")[0].starts_with("set 0 "));
    let (before, address) = (sent(&redis, "evalsha"), server.address);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let client = Client::new(address, TIME_MAX);
                for number in 0..WRITES {
                    let answer = ask(&client, "/kv", &format!("set of{writer} {number}"));
                    assert!(answer[0].starts_with("set 0 "), "{answer:?}");
                    assert_eq!(ask(&client, "/kv", "add all 1")[0].split(' ').next(), Some("sum"));
                }
            });
        }
    });
    let (all, scripts) = (2 * WRITERS * WRITES, (sent(&redis, "evalsha") - before) as usize);
    assert!(scripts < all / 2, "{scripts} scripts for {all} writes");
    let merged = metric(&server, "sledge_kv_commits_merged_total") as usize;
    assert!((all / 2..=all).contains(&merged), "{merged} of {all} were sent together");
    let client = server.client();
    for writer in 0..WRITERS {
        let answer = ask(&client, "/kv", &format!("get of{writer}"));
        assert_eq!(answer[0].split(' ').nth(1), Some(&*(WRITES - 1).to_string()), "{answer:?}");
    }
    assert_eq!(ask(&client, "/kv", "add all 0"), [format!("sum {}", WRITERS * WRITES)]);
    server.stop();
}
