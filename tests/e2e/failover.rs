//! Durable executions in Redis when the primary dies and its replica takes its place, without the commits that it had not received.

use crate::durable::{chain, config, execution, number, start};
use crate::eventually;
use crate::kv::Redis;
use serde_json::{Value, json};
use sledge_tests::server::Server;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Executions that the replica knows, and those that began after it had been cut off.
const KNOWN: usize = 12;
const LATER: usize = 8;
const TAKEN: &str = "it holds their lease";
const LOST: &str = "has lost the lease";

/// An address behind which one server or another is, as behind that of a service.
struct Address {
    port: u16,
    target: Arc<AtomicU16>,
    /// What goes through it now.
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Address {
    fn of(port: u16) -> Address {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let (target, open) = (Arc::new(AtomicU16::new(port)), Arc::new(Mutex::new(Vec::<TcpStream>::new())));
        let (to, all) = (Arc::clone(&target), Arc::clone(&open));
        // It lives as long as the process: nothing but this test knows the port.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to.load(Ordering::SeqCst))) else { continue };
                let copy = |end: &TcpStream| end.try_clone().expect("a copy");
                all.lock().expect("the list").extend([copy(&client), copy(&server)]);
                for (from, into) in [(copy(&client), copy(&server)), (server, client)] {
                    thread::spawn(move || carry(from, into));
                }
            }
        });
        Address { port: own, target, open }
    }

    /// From now on that server is behind it.
    fn leads_to(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
        for end in self.open.lock().expect("the list").drain(..) {
            // It may be closed already.
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for end in [&from, &to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

/// Functions that cannot reach the store fail, and are called again.
fn patient() -> Value {
    let retry = json!([{ "ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "BackoffRate": 1.0, "MaxAttempts": 60 }]);
    let mut definition = chain();
    for state in ["A", "B", "E"] {
        definition["States"][state]["Retry"] = retry.clone();
    }
    for (branch, state) in [(0, "C1"), (1, "C2")] {
        definition["States"]["C"]["Branches"][branch]["States"][state]["Retry"] = retry.clone();
    }
    definition["States"]["D"]["Seconds"] = json!(3);
    definition
}

/// Starts an execution at a server, again where the store is not there or the executions go over to another server.
#[track_caller]
fn begin(server: &Server, number: usize) {
    eventually(&format!("e{number}"), || {
        let reply = start(server, &format!("/chain?name=e{number}"), &json!({ "n": number }));
        match reply.status {
            202 | 409 => true,
            503 => false,
            _ => panic!("e{number}: {}: {}", reply.status, reply.text()),
        }
    });
}

/// What the store holds under a key, and one more: reading adds. A worker whose connection has just broken makes another one for the next request.
fn read(server: &Server, key: &str) -> usize {
    let mut count = None;
    for _ in 0..100 {
        count = number(server, key).parse().ok();
        if count.is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    count.expect("the store answers")
}

#[test]
fn a_replica_that_takes_the_place_of_the_primary_loses_what_it_had_not_received_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut primary, replica) = (Redis::start(), Redis::start());
    replica.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    eventually("the replica follows", || replica.ask("INFO replication").contains("master_link_status:up"));
    let address = Address::of(primary.port());
    let serve = || Server::start(config(folder.path(), &[("chain", patient())], &json!({ "kv": address.url() })));
    let first = serve();
    first.wait_for_log(TAKEN);
    let second = serve();
    for number in 0..KNOWN {
        begin([&first, &second][number % 2], number);
        // They stand at different states when the replica is cut off.
        thread::sleep(Duration::from_millis(100));
    }
    // It has all that was acknowledged until now, and nothing that comes.
    eventually("the replica has received all", || primary.ask("WAIT 1 1000").starts_with(":1"));
    replica.ask("REPLICAOF NO ONE");
    for number in KNOWN..KNOWN + LATER {
        begin([&first, &second][number % 2], number);
    }
    let ended = |server: &Server, number: usize| execution(server, "chain", &format!("e{number}"))["status"] == "SUCCEEDED";
    // Some have ended of which the replica says that they have not.
    eventually("the first one has ended", || ended(&first, 0));
    primary.stop();
    address.leads_to(replica.port());
    // The owner finds out that Redis knows less than it does.
    first.wait_for_log(LOST);
    for server in [&first, &second] {
        for number in 0..KNOWN {
            eventually(&format!("e{number} has ended"), || ended(server, number));
        }
        for number in KNOWN..KNOWN + LATER {
            let status = server.admin().get(&format!("/workflows/chain/executions/e{number}")).status;
            assert_eq!(status, 404, "e{number} is lost, although its client was told 202");
        }
    }
    let count = |count: usize| [1, 1, 2, 1].map(|each| each * count);
    // Reading adds one each time.
    let counted = |reads: usize| ["a", "b", "c", "e"].map(|key| read(&first, key) - reads);
    assert_eq!(counted(1), count(KNOWN), "each effect of those that are there is there once, and none of the others");
    // Their names are free, and their clients can start them again.
    for number in KNOWN..KNOWN + LATER {
        begin([&second, &first][number % 2], number);
    }
    for number in KNOWN..KNOWN + LATER {
        eventually(&format!("e{number} has ended"), || ended(&second, number));
    }
    assert_eq!(counted(2), count(KNOWN + LATER));
    first.stop();
    second.stop();
}

/// Nothing else happens: no commit tells the owner that what it knows is not so any more.
#[test]
fn an_execution_that_is_set_back_goes_on_though_the_owner_thinks_that_it_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut primary, replica) = (Redis::start(), Redis::start());
    replica.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    eventually("the replica follows", || replica.ask("INFO replication").contains("master_link_status:up"));
    let address = Address::of(primary.port());
    // It waits until the replica is cut off.
    let mut definition = patient();
    definition["States"]["D"]["Seconds"] = json!(10);
    let server = Server::start(config(folder.path(), &[("chain", definition)], &json!({ "kv": address.url() })));
    server.wait_for_log(TAKEN);
    begin(&server, 0);
    let events = || server.admin().get("/workflows/chain/executions/e0/history").text();
    eventually("it waits", || events().contains("WaitStateEntered"));
    eventually("the replica has received all", || primary.ask("WAIT 1 1000").starts_with(":1"));
    replica.ask("REPLICAOF NO ONE");
    let status = || execution(&server, "chain", "e0")["status"].clone();
    eventually("it has ended", || status() == "SUCCEEDED");
    primary.stop();
    // What the last state counts, the replica has never heard of.
    let has_gone_on = || replica.ask("HKEYS {sledge:default}:values").lines().any(|key| key.ends_with("\0e"));
    assert!(!has_gone_on(), "the replica was cut off too late");
    address.leads_to(replica.port());
    let begun = Instant::now();
    eventually("it goes on", has_gone_on);
    eventually("it has ended again", || status() == "SUCCEEDED");
    assert!(begun.elapsed() < Duration::from_secs(60), "within a few renewals of the lease");
    assert_eq!(["a", "b", "c", "e"].map(|key| read(&server, key)), [2, 2, 3, 2], "once each, and the one that asks");
    server.stop();
}
