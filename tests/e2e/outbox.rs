//! `effects = "outbox"`: requests to other servers are recorded in a transaction's commit, and sent after it: once in the good case, at least once in any.

use crate::encoded::{self, WASI2};
use crate::fetch::sending;
use crate::kv::{ask, server};
use crate::transactions::{function, on_every_store};
use crate::{entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Client, TIME_MAX};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use wit_component::StringEncoding;

/// For how long functions wait while the test does something.
const PAUSE: Duration = Duration::from_secs(1);

/// The key of a request, and its body.
type Came = (String, Vec<u8>);

/// A server that is asked, and answers with a status that can be changed.
pub(crate) struct Asked {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    /// What has come.
    came: Arc<Mutex<Vec<Came>>>,
}

impl Asked {
    pub(crate) fn start(status: u16) -> Asked {
        Asked::looking(status, |_| ())
    }

    /// One that looks at each body when it comes, before it answers.
    pub(crate) fn looking(status: u16, look: impl Fn(&[u8]) + Send + 'static) -> Asked {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Asked { address, status: Arc::new(AtomicU16::new(status)), came: Arc::default() };
        let (status, came) = (Arc::clone(&asked.status), Arc::clone(&asked.came));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(one) = read(&stream) else { continue };
                look(&one.1);
                came.lock().expect("no test has failed").push(one);
                let status = status.load(Ordering::Relaxed);
                let _ = write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        asked
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no test has failed").clone()
    }

    /// Waits until so many requests have come, and a little longer for more of them.
    #[track_caller]
    fn exactly(&self, count: usize) -> Vec<Came> {
        eventually("requests come", || self.came().len() >= count);
        thread::sleep(Duration::from_millis(100));
        let came = self.came();
        assert_eq!(came.len(), count, "{came:?}");
        came
    }

    /// Waits until it has taken all that has come so far: requests are taken one after the other.
    fn settle(&self) {
        let mut last = TcpStream::connect(self.address).expect("a connection");
        last.shutdown(Shutdown::Write).expect("nothing is asked");
        let _ = last.read_to_end(&mut Vec::new());
    }

    pub(crate) fn hosts(&self) -> Value {
        json!({ "http_hosts": [self.address.to_string()], "effects": "outbox" })
    }
}

fn read(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        match line.trim_end().split_once(": ") {
            None if line == "\r\n" => break,
            Some(("idempotency-key", value)) => value.clone_into(&mut key),
            Some(("content-length", value)) => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((key, body))
}

#[test]
fn a_request_is_sent_once_when_its_transaction_is_committed_and_not_before() {
    on_every_store(|kv| {
        let asked = Asked::start(200);
        let to = asked.hosts();
        let mut callee = entry_with("callee", "transaction.c", &json!({}));
        callee["http_hosts"] = to["http_hosts"].clone();
        let server = server(kv, &[function("t", to), callee, entry_with("plain", "transaction.c", &json!({}))]);
        let (client, address) = (server.client(), server.address);
        let post = |body: &str| format!("post http://{}/ {body}", asked.address);
        thread::scope(|scope| {
            let lines = format!("set a 1\n{}\npause {}", post("one"), PAUSE.as_millis());
            let began = Instant::now();
            let runs = scope.spawn(move || ask(&Client::new(address, TIME_MAX), "/t", &lines));
            thread::sleep(PAUSE / 2);
            // It is not committed earlier than so long after it was asked for.
            let came = asked.came();
            assert!(came.is_empty() || began.elapsed() >= PAUSE, "{kv}: not before the commit: {came:?}");
            assert_eq!(runs.join().expect("it is answered"), ["set", "posted 202 recorded 0", "paused"], "{kv}");
        });
        let came = asked.exactly(1);
        assert!(came[0].0.len() == 32 && came[0].1 == b"one", "{kv}: {came:?}");
        // What fails has sent nothing, nor has what it called.
        for lines in
            [format!("{}\nexit 1", post("no")), format!("{}\ntrap", post("no")), format!("invoke callee {}\nexit 1", post("no"))]
        {
            assert_eq!(client.post("/t", lines).status, 500, "{kv}");
        }
        // A function that runs again sends once, not for each run.
        thread::scope(|scope| {
            let lines = format!("get k\n{}\npause {}\nset k mine", post("again"), 2 * PAUSE.as_millis());
            let runs = scope.spawn(move || ask(&Client::new(address, TIME_MAX), "/t", &lines));
            thread::sleep(PAUSE / 2);
            ask(&client, "/plain", "set k theirs");
            assert_eq!(runs.join().expect("it is answered")[0], "stored theirs", "{kv}: it has run again");
        });
        assert_eq!(asked.exactly(2)[1].1, b"again", "{kv}");
        assert_eq!(ask(&client, "/t", &format!("invoke callee {}", post("called"))), ["posted 202 recorded 0;"], "{kv}");
        assert_eq!(asked.exactly(3)[2].1, b"called", "{kv}");
        // Other servers are refused at once.
        assert_eq!(ask(&client, "/t", "post http://127.0.0.1:9/ x\nset b 1"), ["error 2", "set"], "{kv}");
        assert_eq!(asked.came().len(), 3, "{kv}");
        server.stop();
    });
}

/// The commit is made and the server dies before, or while, it sends: it sends when it is there again, under the same key.
#[test]
fn what_was_committed_is_sent_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let kv = json!({ "kv": folder.path().join("kv.redb"), "workers": 2 });
    let asked = Asked::start(503);
    let first = server(&kv, &[function("t", asked.hosts())]);
    assert_eq!(ask(&first.client(), "/t", &format!("post http://{}/ body", asked.address)), ["posted 202 recorded 0"]);
    first.signal(Signal::KILL);
    drop(first);
    let second = server(&kv, &[function("t", asked.hosts())]);
    eventually("it is sent", || !asked.came().is_empty());
    second.signal(Signal::KILL);
    drop(second);
    asked.settle();
    asked.status.store(200, Ordering::Relaxed);
    let before = asked.came().len();
    let third = server(&kv, &[function("t", asked.hosts())]);
    eventually("it is sent again", || asked.came().len() > before);
    let came = asked.exactly(before + 1);
    assert!(came.iter().all(|(key, body)| *key == came[0].0 && body == b"body"), "{came:?}");
    third.stop();
}

/// Of components, by `wasi:http`: also where the body is written when the request is on its way already.
#[test]
fn requests_of_components_are_recorded_too() {
    let asked = Asked::start(200);
    let world = "import wasi:http/types@V; import wasi:http/outgoing-handler@V; export wasi:cli/run@V;";
    let entry = |name: &str, pieces| {
        let path = encoded::component(name, WASI2, world, &sending(asked.address, pieces, 202), StringEncoding::UTF8);
        let mut entry = json!({ "name": name, "path": path, "opt_level": 0, "isolation": "serializable" });
        for (key, value) in asked.hosts().as_object().expect("an object") {
            entry[key] = value.clone();
        }
        entry
    };
    let server = server(&json!({ "kv": "memory" }), &[entry("fits", 40), entry("too-large", 100)]);
    assert_eq!(server.client().post("/fits", "").status, 200);
    assert_eq!(asked.exactly(1)[0].1.len(), 40 * 4_096);
    assert_eq!(server.client().post("/too-large", "").status, 500);
    assert_eq!(asked.came().len(), 1);
    server.stop();
}
