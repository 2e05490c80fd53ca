//! Requests that commits of functions leave behind: each is sent, by one execution, whenever the server dies; and as often as it takes, until it is too old.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use hyper::Request;

use super::*;
use crate::config::{Isolation, OutsideEffects};
use crate::kv::outbox as left;
use crate::kv::redis::tests::played::OwnServer;
use crate::upstream::posted;
use crate::workflow::durable::journal::Listing;

/// A request that has come: its key, its path and its body.
type Came = (String, String, Vec<u8>);

/// A server that is asked.
struct Receiver {
    address: SocketAddr,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Receiver {
    /// It answers with that status, by how many requests with the same key have come before.
    fn start(status: impl Fn(usize) -> u16 + Send + 'static) -> Receiver {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, came) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::<Came>::new())));
        let all = Arc::clone(&came);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(one) = read(&stream) else { continue };
                let mut all = all.lock().unwrap();
                let before = all.iter().filter(|(key, ..)| *key == one.0).count();
                all.push(one);
                drop(all);
                let reply = format!("HTTP/1.1 {} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", status(before));
                let _ = stream.write_all(reply.as_bytes());
            }
        });
        Receiver { address, came }
    }

    fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }

    /// How often each key has come.
    fn counts(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        self.came().into_iter().for_each(|(key, ..)| *counts.entry(key).or_default() += 1);
        counts
    }
}

fn read(stream: &TcpStream) -> Option<Came> {
    let mut reader = BufReader::new(stream);
    let (mut path, mut key, mut bytes) = (String::new(), String::new(), 0);
    for index in 0.. {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let line = line.trim_end();
        match line.split_once(": ") {
            None if line.is_empty() => break,
            None if index == 0 => path = line.split(' ').nth(1)?.to_owned(),
            Some(("content-length", length)) => bytes = length.parse().ok()?,
            Some(("idempotency-key", name)) => name.clone_into(&mut key),
            _ => {}
        }
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body).ok()?;
    Some((key, path, body))
}

/// A function that may ask these hosts, and whose requests are sent for so long.
fn function(executions: &Executions, hosts: &[String], age_s: Option<u64>) -> Arc<Function> {
    let config = FunctionConfig {
        http_hosts: hosts.to_vec(),
        isolation: Isolation::Serializable,
        effects: OutsideEffects::Outbox,
        outbox_age_max_s: age_s,
        ..FunctionConfig::new("f", "f.wasm")
    };
    let home = Home { outbox: Some(executions.outbox(TENANT)), ..Home::alone() };
    Arc::new(Function::new(by_hand::loaded(&config), home))
}

fn serve(store: Store, hosts: &[String], age_s: Option<u64>) -> Served {
    let executions = Executions::leased(&store, Duration::from_millis(600));
    let function = function(&executions, hosts, age_s);
    Served::of((store, executions), &[], &json!({}), (&[function], None))
}

fn on(disk: &Disk) -> Store {
    Store::Embedded(open_folding(disk, &Arc::default()))
}

/// A commit as that of a transaction that has made a request.
fn leaves(address: SocketAddr, id: &str) -> Commit {
    let mut request = Request::post(format!("http://{address}/{id}?a=b")).body(Bytes::from(format!("body of {id}"))).unwrap();
    request.headers_mut().insert("idempotency-key", id.parse().unwrap());
    let json = posted::write("f", &request).to_string();
    Commit::new(Vec::new(), vec![(left::key(id).unwrap(), Change::Put(json.into())), (key("n"), Change::Add(1))])
}

/// On a thread of its own, as connections to Redis need it.
fn commit(space: &Space, commit: Commit) {
    thread::scope(|scope| scope.spawn(|| wait(space.clone().commit(commit)).unwrap()).join().unwrap());
}

impl Served {
    fn leave(&self, address: SocketAddr, id: &str) {
        commit(&self.store.space(TENANT), leaves(address, id));
        self.executions.outbox(TENANT).ring();
    }

    fn sent(&self, id: &str) -> Option<Summary> {
        let place = Place { tenant: TENANT.into(), workflow: "outbox:f".into(), name: id.into() };
        self.executions.0.journal.summary(&place).unwrap()
    }

    /// What an execution that sends a request is when it has ended.
    #[track_caller]
    fn end_of_sending(&self, id: &str) -> Summary {
        until(&format!("{id} is sent"), || self.sent(id).filter(|summary| !summary.is_open()))
    }

    fn left(&self, id: &str) -> bool {
        let key = left::key(id).unwrap();
        let read = |space: Space| thread::scope(|scope| scope.spawn(|| wait(space.read(&left::bucket(), key))).join().unwrap());
        read(self.store.space(TENANT)).unwrap().is_some()
    }
}

#[track_caller]
fn until<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + TIME_MAX;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: it takes too long");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_a_commit_leaves_behind_is_sent_once_and_removed() {
    let receiver = Receiver::start(|_| 200);
    let (disk, redis) = (Disk::default(), OwnServer::start());
    for (what, store) in [("file", on(&disk)), ("redis", Store::Redis(redis.client()))] {
        let served = serve(store, &[receiver.address.to_string()], None);
        let ids: Vec<String> = (0..100).map(|number| format!("{what}-{number}")).collect();
        ids.iter().for_each(|id| served.leave(receiver.address, id));
        for id in &ids {
            let ended = served.end_of_sending(id);
            assert_eq!((ended.status, ended.output.as_deref()), (Status::Succeeded, Some(&json!({ "StatusCode": 200 }))), "{id}");
            until("it is removed", || (!served.left(id)).then_some(()));
        }
        let counts = receiver.counts();
        assert!(ids.iter().all(|id| counts.get(id) == Some(&1)), "{what}: once each: {counts:?}");
        let path_and_body = |id: &String| (id.clone(), format!("/{id}?a=b"), format!("body of {id}").into_bytes());
        assert!(receiver.came().contains(&path_and_body(&ids[42])), "as it was made");
        served.stop();
    }
}

/// Kills at random moments: between the commit and the execution, and between that and the removal.
#[test]
fn whenever_the_server_is_killed_all_is_sent_under_its_key_by_one_execution() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let receiver = Receiver::start(|_| 200);
    let hosts = [receiver.address.to_string()];
    for round in 0..8 {
        let mut disk = Disk::default();
        let ids: Vec<String> = (0..10).map(|number| format!("r{round}-{number}")).collect();
        for (index, id) in ids.iter().enumerate() {
            let served = serve(on(&disk), &hosts, None);
            served.leave(receiver.address, id);
            if index % 2 == 0 {
                thread::sleep(Duration::from_micros(random.u64(..15_000)));
            }
            served.kill();
            disk = disk.crashed(&mut random.u64(..));
        }
        let served = serve(on(&disk), &hosts, None);
        for id in &ids {
            assert_eq!(served.end_of_sending(id).status, Status::Succeeded, "round {round}: {id}");
            until("it is removed", || (!served.left(id)).then_some(()));
        }
        let listing = Listing { tenant: TENANT.into(), workflow: "outbox:f".into(), status: None, after: None, max: 100 };
        assert_eq!(served.executions.0.journal.list(&listing).unwrap().0.len(), ids.len(), "one execution each");
        let counts = receiver.counts();
        assert!(ids.iter().all(|id| counts.contains_key(id)), "round {round}: {counts:?}");
        served.stop();
    }
    assert!(receiver.counts().keys().all(|key| key.starts_with('r')), "under no other key");
}

/// One that is there still although its execution has begun, as after a crash in between, does not begin another.
#[test]
fn what_is_found_again_is_the_same_execution() {
    let receiver = Receiver::start(|_| 200);
    let served = serve(on(&Disk::default()), &[receiver.address.to_string()], None);
    for _ in 0..3 {
        served.leave(receiver.address, "again");
        served.end_of_sending("again");
        until("it is removed", || (!served.left("again")).then_some(()));
    }
    assert_eq!(receiver.counts(), HashMap::from([("again".to_owned(), 1)]));
    served.stop();
}

#[test]
fn a_server_that_cannot_answer_is_asked_again_and_one_that_refuses_is_not() {
    let receiver = Receiver::start(|before| [503, 429, 200][before.min(2)]);
    let refuses = Receiver::start(|_| 404);
    let hosts = [receiver.address.to_string(), refuses.address.to_string(), "127.0.0.1:9".to_owned()];
    let served = serve(on(&Disk::default()), &hosts, None);
    served.leave(receiver.address, "flaky");
    served.leave(refuses.address, "refused");
    served.leave((Ipv4Addr::LOCALHOST, 8).into(), "not-allowed");
    let error = |id: &str| served.end_of_sending(id).error.map(|error| error.to_string());
    assert_eq!(error("refused").as_deref(), Some("Outbox.Refused"));
    assert_eq!(error("not-allowed").as_deref(), Some("Outbox.NotAllowed"));
    assert_eq!(served.end_of_sending("flaky").status, Status::Succeeded);
    assert_eq!((receiver.counts()["flaky"], refuses.counts()["refused"]), (3, 1));
    served.stop();
    // Nothing listens there.
    let served = serve(on(&Disk::default()), &hosts, Some(2));
    served.leave((Ipv4Addr::LOCALHOST, 9).into(), "old");
    assert_eq!(served.end_of_sending("old").status, Status::TimedOut);
    served.stop();
}

/// A function that is gone for a while has its requests sent when it is there again; those of others are not held up.
#[test]
fn requests_of_a_function_that_is_not_served_wait_for_it() {
    let receiver = Receiver::start(|_| 200);
    let hosts = [receiver.address.to_string()];
    let disk = Disk::default();
    let store = on(&disk);
    let executions = Executions::of(&store);
    let own = function(&executions, &hosts, None);
    let served = Served::of((store, executions), &[], &json!({}), (&[], None));
    served.leave(receiver.address, "waits");
    thread::sleep(Duration::from_millis(300));
    assert!(served.left("waits") && served.sent("waits").is_none());
    served.replace(&own);
    let (busy, is_over) = (served.executions.outbox("busy"), AtomicBool::new(false));
    thread::scope(|scope| {
        // Another tenant's commits do not hold it up.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                busy.ring();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| served.end_of_sending("waits").status));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(ended.expect("it is sent"), Status::Succeeded);
    });
    served.stop();
}

/// The server that has made the commit dies before it starts anything: another one that shares the store does.
#[test]
fn another_server_sends_what_one_has_left_behind_in_redis() {
    let receiver = Receiver::start(|_| 200);
    let redis = OwnServer::start();
    let hosts = [receiver.address.to_string()];
    let servers = [serve(Store::Redis(redis.client()), &hosts, None), serve(Store::Redis(redis.client()), &hosts, None)];
    // One of both owns the executions, the other one asks it.
    for (number, served) in servers.iter().cycle().take(10).enumerate() {
        served.leave(receiver.address, &format!("both-{number}"));
    }
    for number in 0..10 {
        assert_eq!(servers[0].end_of_sending(&format!("both-{number}")).status, Status::Succeeded);
    }
    let [first, second] = servers;
    first.kill();
    second.kill();
    let client = redis.client();
    commit(&Store::Redis(client).space(TENANT), leaves(receiver.address, "left"));
    let third = serve(Store::Redis(redis.client()), &hosts, None);
    assert_eq!(third.end_of_sending("left").status, Status::Succeeded);
    assert!(receiver.counts().values().all(|count| *count == 1) && receiver.counts().len() == 11, "{:?}", receiver.counts());
    third.stop();
}
