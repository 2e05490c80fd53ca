//! Functions that ask other servers: whom they may ask, what they learn, and what becomes of it when something goes wrong.

use crate::encoded::{self, WASI2};
use crate::{LISTENERS, assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use wit_component::StringEncoding;

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
fn functions_of_the_command_line_ask_hosts_by_its_option() {
    let (address, _begun, _ended) = answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    let (file, allowed) = (programs::function("fetch.c"), address.to_string());
    let asked = format!("POST http://{address}/ x\n");
    let run = |options: &[&str]| {
        let done = process::run(sledge_command(&["run"]).args(options).arg(&file), asked.as_bytes(), TIME_MAX);
        assert_eq!(done.code(), 0, "{}", done.stderr);
        done.text().trim_end().to_owned()
    };
    assert_eq!(run(&[]), "error 2");
    assert_eq!(run(&["--http-host", "example.org", "--http-host", &allowed]), "200 2 hi");
    let wrong = process::run(sledge_command(&["run", "--http-host", "http://a"]).arg(&file), b"", TIME_MAX);
    assert!(wrong.code() == 2 && wrong.stderr.contains("is no host"), "{}", wrong.stderr);
    let many: Vec<&str> = ["--http-host", "a"].repeat(65);
    let many = process::run(sledge_command(&["run"]).args(many).arg(&file), b"", TIME_MAX);
    assert!(many.code() == 2 && many.stderr.contains("--http-host: 65 entries"), "{}", many.stderr);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--admin", "none", "--http-host", &allowed];
    let server = Server::start_with(sledge_command(&serve).arg(&file));
    let name = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    assert_eq!(server.client().post(&format!("/{name}"), &asked).text().trim_end(), "200 2 hi");
    server.stop();
}

/// A command that sends so many pieces of 4 KiB to that address, once the request is on its way, and fails unless it is answered with that status.
pub(crate) fn sending(address: SocketAddr, pieces: usize, status: u16) -> String {
    let authority = address.to_string();
    let length = authority.len();
    format!(
        r#"(module
          (import "wasi:http/types@V" "[constructor]fields" (func $fields (result i32)))
          (import "wasi:http/types@V" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
          (import "wasi:http/types@V" "[method]outgoing-request.set-method" (func $method (param i32 i32 i32 i32) (result i32)))
          (import "wasi:http/types@V" "[method]outgoing-request.set-authority" (func $to (param i32 i32 i32 i32) (result i32)))
          (import "wasi:http/types@V" "[method]outgoing-request.set-scheme" (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
          (import "wasi:http/types@V" "[method]outgoing-request.body" (func $body (param i32 i32)))
          (import "wasi:http/types@V" "[method]outgoing-body.write" (func $write (param i32 i32)))
          (import "wasi:http/types@V" "[static]outgoing-body.finish" (func $finish (param i32 i32 i32 i32)))
          (import "wasi:http/types@V" "[method]future-incoming-response.subscribe" (func $subscribe (param i32) (result i32)))
          (import "wasi:http/types@V" "[method]future-incoming-response.get" (func $get (param i32 i32)))
          (import "wasi:http/types@V" "[method]incoming-response.status" (func $status (param i32) (result i32)))
          (import "wasi:http/outgoing-handler@V" "handle" (func $handle (param i32 i32 i32 i32)))
          (import "wasi:io/streams@V" "[method]output-stream.blocking-write-and-flush" (func $put (param i32 i32 i32 i32)))
          (import "wasi:io/streams@V" "[resource-drop]output-stream" (func $drop (param i32)))
          (import "wasi:io/poll@V" "[method]pollable.block" (func $block (param i32)))
          (memory (export "memory") 1)
          (data (i32.const 1024) "{authority}")
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
          (func $succeed (param i32) (if (i32.load8_u (local.get 0)) (then unreachable)))
          (func (export "wasi:cli/run@V#run") (result i32)
            (local $request i32) (local $body i32) (local $stream i32) (local $future i32) (local $left i32)
            (local.set $request (call $request (call $fields)))
            (drop (call $method (local.get $request) (i32.const 2) (i32.const 0) (i32.const 0)))
            (drop (call $to (local.get $request) (i32.const 1) (i32.const 1024) (i32.const {length})))
            (drop (call $scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))
            (call $body (local.get $request) (i32.const 16))
            (local.set $body (i32.load (i32.const 20)))
            (call $write (local.get $body) (i32.const 16))
            (local.set $stream (i32.load (i32.const 20)))
            (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 64))
            (call $succeed (i32.const 64))
            (local.set $future (i32.load (i32.const 72)))
            (local.set $left (i32.const {pieces}))
            (loop $more
              (call $put (local.get $stream) (i32.const 4096) (i32.const 4096) (i32.const 16))
              (call $succeed (i32.const 16))
              (local.set $left (i32.sub (local.get $left) (i32.const 1)))
              (br_if $more (local.get $left)))
            (call $drop (local.get $stream))
            (call $finish (local.get $body) (i32.const 0) (i32.const 0) (i32.const 64))
            (call $succeed (i32.const 64))
            (call $block (call $subscribe (local.get $future)))
            (call $get (local.get $future) (i32.const 64))
            (call $succeed (i32.const 72))
            (call $succeed (i32.const 80))
            (i32.ne (call $status (i32.load (i32.const 88))) (i32.const {status}))))"#
    )
}

/// What a command sends goes out while it writes, also where there is no worker: more of it than is kept.
#[test]
fn what_a_command_sends_goes_out_while_it_writes() {
    const SENT: usize = 3 << 20;
    let (say, said) = mpsc::channel();
    let address = upstream(move |mut stream| {
        let (mut bytes, mut piece) = (Vec::new(), [0; 1 << 16]);
        while !bytes.ends_with(b"\r\n0\r\n\r\n") {
            let count = stream.read(&mut piece).expect("a piece");
            bytes.extend(&piece[..count]);
            if count == 0 {
                break;
            }
        }
        let _ = say.send(bytes.len());
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    let world = "import wasi:http/types@V; import wasi:http/outgoing-handler@V; export wasi:cli/run@V;";
    let component = encoded::component("sending", WASI2, world, &sending(address, SENT / 4_096, 200), StringEncoding::UTF8);
    let options = ["run", "-O", "0", "--timeout", "20", "--http-host", &address.to_string()];
    let done = process::run(sledge_command(&options).arg(component), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(said.recv().expect("what came") > SENT);
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
        let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": [address.to_string()], "deadline_ms": 3_000 }));
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
pub(crate) fn certificates(folder: &Path) -> [PathBuf; 3] {
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
    // It answers when all have asked, and the test says so.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let address = listener.local_addr().expect("an address");
    let ((all, wait_for_all), (go, wait_for_go)) = (mpsc::channel(), mpsc::channel::<()>());
    let slow = thread::spawn(move || {
        let streams: Vec<TcpStream> = listener.incoming().flatten().take(WAITING).collect();
        all.send(()).expect("the test waits");
        wait_for_go.recv_timeout(TIME_MAX).expect("it goes on");
        for mut stream in &streams {
            assert!(read_request(&mut BufReader::new(stream)), "a request");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("it takes an answer");
        }
    });
    let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": [address.to_string()], "deadline_ms": 300_000 }));
    let server = Server::start(json!({ "workers": 1, "functions": [fetch, entry("echo", "echo.wat")] }));
    let body = format!("wait http://{address}/wait 0");
    let mut waiting: Vec<Raw> = (0..WAITING).map(|_| Raw::connect(server.address)).collect();
    waiting.iter_mut().for_each(|raw| raw.send(post_bytes("/fetch", body.as_bytes(), "")));
    wait_for_all.recv_timeout(TIME_MAX).expect("all have asked");
    let client = server.client();
    let times = (0..100).map(|_| {
        let asked = Instant::now();
        assert_eq!(client.post("/echo", "quick").text(), "quick");
        asked.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    go.send(()).expect("it waits");
    for raw in &mut waiting {
        let reply = raw.reply().expect("a reply");
        assert_eq!((reply.status, reply.text().as_str()), (200, "200\n"), "{reply:?}");
    }
    times.sort();
    let median = times[times.len() / 2];
    // Others share this machine: the row `fetch-1000-ping-p99-ratio` in benches/promises.toml is the one that measures.
    assert!(median < Duration::from_millis(250), "{median:?} of {} in the middle", times.len());
    slow.join().expect("it has answered");
    server.stop();
}
