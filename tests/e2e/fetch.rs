//! Functions that ask other servers: whom they may ask, what they learn, and what becomes of it when something goes wrong.

use crate::{LISTENERS, assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// A server with the function `fetch`, which may ask those hosts.
fn server(hosts: &[String], more: serde_json::Value) -> Server {
    let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": hosts, "deadline_ms": 20_000 }));
    let mut config = json!({ "workers": 1, "functions": [fetch, entry("echo", "echo.wat")] });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    Server::start(config)
}

fn lines(server: &Server, input: &str) -> Vec<String> {
    let reply = server.client().post("/fetch", input);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// An upstream of one's own: each connection is given to `serve`, which has read the heads and bodies that it wants.
fn upstream(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let address = listener.local_addr().expect("an address");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads the head of a request and its body, which says its length; false when there is none.
fn read_request(stream: &mut BufReader<&TcpStream>) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).is_ok()
}

/// An upstream that answers every request with these bytes, and says when a connection ends.
fn answering(answer: &'static str) -> (SocketAddr, Receiver<()>, Receiver<()>) {
    let ((began, begun), (end, ended)) = (mpsc::channel(), mpsc::channel());
    let address = upstream(move |stream| {
        let _ = began.send(());
        let mut reader = BufReader::new(&stream);
        while read_request(&mut reader) {
            let _ = (&stream).write_all(answer.as_bytes());
        }
        let _ = end.send(());
    });
    (address, begun, ended)
}

#[test]
fn only_listed_hosts_are_asked() {
    let other = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let (address, port) = (other.address, other.address.port());
    let url = format!("http://{address}/echo");
    let this = server(&[address.to_string()], json!({}));
    assert_eq!(lines(&this, &format!("POST {url} hello\nboth {url} again")), ["200 5 hello", "200 5 again", "200 5 again"]);
    let refused = format!(
        "POST http://127.0.0.1:1/ x\nPOST http://localhost:{port}/echo x\nPOST http://2130706433:{port}/echo x\nPOST http://[::1]:{port}/ x\n\
         POST ftp://{address}/ x\nPOST http://me@{address}/ x\nPOST /echo x\nCONNECT {url} x\nP%ST {url} x\nPOST http://{address}:x/ x\nfault {url}"
    );
    let expected = [
        "error 2",
        "error 2",
        "error 2",
        "error 2",
        "error 28",
        "error 28",
        "error 28",
        "error 58",
        "200 1 x",
        "error 28",
        "-21 -21 -8 -8",
    ];
    let got = lines(&this, &refused);
    // `%` may stand in a method (RFC 9110, 5.6.2); the other server does not know it.
    assert_eq!((&got[..8], &got[9..]), (&expected.map(str::to_owned)[..8], &expected.map(str::to_owned)[9..]), "{got:?}");
    assert!(got[8].starts_with("405 "), "{got:?}");
    for header in ["host evil", "content-length 3", "connection close", "transfer-encoding chunked"] {
        assert_eq!(lines(&this, &format!("header {header}\nPOST {url} x")), ["error 58"], "{header}");
    }
    assert_eq!(lines(&this, &format!("many {url} x")), ["64 -33"]);
    this.stop();

    // A name that is listed opens no address that is not.
    let this = server(&[format!("localhost:{port}")], json!({}));
    assert_eq!(lines(&this, &format!("POST http://localhost:{port}/echo x")), ["error 2"]);
    this.wait_for_log("which is no public address and not in the function's `http_hosts`");
    this.stop();
    let this = server(&[format!("localhost:{port}"), format!("127.0.0.0/8:{port}")], json!({}));
    assert_eq!(lines(&this, &format!("POST http://LOCALHOST:{port}/echo x")), ["200 1 x"]);
    this.stop();
    let none = server(&[], json!({}));
    assert_eq!(lines(&none, &format!("POST {url} x")), ["error 2"]);
    none.stop();
    other.stop();
}

#[test]
fn what_comes_is_what_was_sent() {
    let answer = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\nx-a: 1\r\nx-a: 2\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n";
    let (address, begun, _ended) = answering(answer);
    let this = server(&[address.to_string()], json!({}));
    let url = format!("http://{address}/");
    // A redirection is an answer like any other.
    assert_eq!(lines(&this, &format!("POST {url} x")), ["302 7 abcdefg"]);
    let headers = lines(&this, &format!("headers {url}"));
    assert!(headers[0].starts_with("location=http://127.0.0.1:1/ x-a=1 x-a=2"), "{headers:?}");
    assert_eq!(lines(&this, &format!("pieces {url} x")), ["abc,d,efg,0 0"]);
    for _ in 0..5 {
        assert_eq!(lines(&this, &format!("POST {url} x")), ["302 7 abcdefg"]);
    }
    // All over the connection of the first, but for the one that did not read to the end.
    let connections = begun.try_iter().count();
    assert!(connections <= 2, "{connections} connections");
    this.stop();
}

#[test]
fn an_upstream_that_fails_is_an_error_and_no_more() {
    let cases = [
        ("", "within", "error 73"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "within", "200 -73 abc"),
        ("nonsense\r\n\r\n", "POST", "error 29"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nabc", "POST", "error 29"),
    ];
    for (answer, word, expected) in cases {
        let (address, _begun, _ended) = answering(answer);
        let this = server(&[address.to_string()], json!({}));
        assert_eq!(lines(&this, &format!("{word} http://{address}/ x")), [expected], "{answer:?}");
        this.wait_for_log("sledge:fetch: ");
        this.stop();
    }
    // It goes in the middle.
    let address = upstream(|mut stream| {
        read_request(&mut BufReader::new(&stream));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
    });
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr()).expect("an address");
    let this = server(&[address.to_string(), closed.to_string()], json!({}));
    assert_eq!(lines(&this, &format!("POST http://{address}/ x\nPOST http://{closed}/ x")), ["200 -29 abc", "error 29"]);
    this.wait_for_log("cannot be reached");
    this.stop();
}

/// Whatever ends the function ends its requests.
#[test]
fn requests_end_with_the_function_that_made_them() {
    for listeners in LISTENERS {
        let (address, begun, ended) = answering("");
        let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": [address.to_string()], "deadline_ms": 500 }));
        let server = Server::start(json!({ "listeners": listeners, "workers": 1, "functions": [fetch] }));
        let reply = server.client().post("/fetch", format!("POST http://{address}/ x"));
        assert_failure(&reply, 504, "deadline", "deadline_exceeded", Some("fetch"));
        begun.recv_timeout(TIME_MAX).expect("it was begun");
        ended.recv_timeout(TIME_MAX).expect("it was given up after the deadline");
        server.stop();

        let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": [address.to_string()], "deadline_ms": 600_000 }));
        let server = Server::start(json!({ "listeners": listeners, "workers": 1, "functions": [fetch] }));
        let mut raw = Raw::connect(server.address);
        raw.send(post_bytes("/fetch", format!("POST http://{address}/ x").as_bytes(), ""));
        begun.recv_timeout(TIME_MAX).expect("it was begun");
        drop(raw);
        ended.recv_timeout(TIME_MAX).expect("it was given up when the client had gone");
        server.stop();
    }
}

/// Certificates of an unknown authority, for `localhost`: its own, and the server's with the key.
fn certificates(folder: &Path) -> [PathBuf; 3] {
    let authority_key = rcgen::KeyPair::generate().expect("a key");
    let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).expect("a certificate").pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().expect("a key");
    let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let leaf = leaf.signed_by(&key, &issuer).expect("a certificate").pem();
    let files = ["root.pem", "leaf.pem", "key.pem"].map(|name| folder.join(name));
    for (file, text) in files.iter().zip([root, leaf, key.serialize_pem()]) {
        std::fs::write(file, text).expect("write");
        std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("permissions");
    }
    files
}

#[test]
fn servers_have_to_prove_their_identity() {
    let folder = tempfile::tempdir().expect("a folder");
    let [root, leaf, key] = certificates(folder.path());
    let tls = json!({ "tls_certificate_file": leaf, "tls_key": { "file": key }, "functions": [entry("echo", "echo.wat")] });
    let other = Server::start(tls);
    let port = other.address.port();
    let hosts = [format!("localhost:{port}"), format!("127.0.0.1:{port}")];
    let this = server(&hosts, json!({ "http_ca_file": root }));
    let name = format!("POST https://localhost:{port}/echo hello");
    assert_eq!(lines(&this, &name), ["200 5 hello"]);
    // The certificate is for another name.
    assert_eq!(lines(&this, &format!("POST https://127.0.0.1:{port}/echo hello")), ["error 29"]);
    this.wait_for_log("not valid for name");
    // Without TLS it does not answer in HTTP.
    assert_eq!(lines(&this, &format!("POST http://127.0.0.1:{port}/echo hello")), ["error 29"]);
    this.stop();
    let stranger = server(&hosts, json!({}));
    assert_eq!(lines(&stranger, &name), ["error 29"]);
    stranger.wait_for_log("UnknownIssuer");
    stranger.stop();
    other.stop();
}

/// A thousand sandboxes on one worker, each waiting for an upstream that takes its time, and others meanwhile.
#[test]
fn a_thousand_that_wait_for_an_upstream_hold_up_no_other() {
    const WAITING: usize = 1_000;
    let wait = entry_with("wait", "wait.wat", &json!({ "deadline_ms": 60_000 }));
    let slow = Server::start(json!({ "workers": 1, "functions": [wait] }));
    let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": [slow.address.to_string()], "deadline_ms": 60_000 }));
    let server = Server::start(json!({ "workers": 1, "functions": [fetch, entry("echo", "echo.wat")] }));
    let body = format!("wait http://{}/wait 3000000000", slow.address);
    let start = Instant::now();
    let mut waiting: Vec<Raw> = (0..WAITING).map(|_| Raw::connect(server.address)).collect();
    waiting.iter_mut().for_each(|raw| raw.send(post_bytes("/fetch", body.as_bytes(), "")));
    let (client, mut times) = (server.client(), Vec::new());
    while start.elapsed() < Duration::from_millis(2_500) || times.len() < 100 {
        let asked = Instant::now();
        assert_eq!(client.post("/echo", "quick").text(), "quick");
        times.push(asked.elapsed());
    }
    for raw in &mut waiting {
        let reply = raw.reply().expect("a reply");
        assert_eq!((reply.status, reply.text().as_str()), (200, "200\n"), "{reply:?}");
    }
    times.sort();
    let median = times[times.len() / 2];
    // Others share this machine: the row `fetch-1000-ping-p99-ratio` in benches/promises.toml is the one that measures.
    assert!(median < Duration::from_millis(100), "{median:?} of {} in the middle", times.len());
    server.stop();
    slow.stop();
}
