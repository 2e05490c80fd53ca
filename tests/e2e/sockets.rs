//! Sockets of components: the standard library's in an unmodified program, to and from real sockets of this machine, and refused where they are not granted.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread;

use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::{Server, free_address};

use crate::components;

/// The artifact of the component in `functions/components/sockets`.
fn artifact() -> PathBuf {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| components::built("sockets"));
    MADE.clone()
}

fn server_with(hosts: &[String], listen: &[&str], more: &Value) -> Server {
    server_of(artifact(), hosts, listen, more)
}

/// A server with an artifact under the name `sockets`, and under the name `none` without any grant.
pub(crate) fn server_of(artifact: PathBuf, hosts: &[String], listen: &[&str], more: &Value) -> Server {
    let none = json!({ "name": "none", "path": artifact, "deadline_ms": 20_000 });
    let mut sockets = none.clone();
    (sockets["name"], sockets["socket_hosts"], sockets["socket_listen"]) = (json!("sockets"), json!(hosts), json!(listen));
    for (key, value) in more.as_object().expect("an object") {
        sockets[key] = value.clone();
    }
    Server::start(json!({ "workers": 1, "functions": [none, sockets] }))
}

pub(crate) fn ask(server: &Server, function: &str, line: &str) -> String {
    let reply = server.client().post(&format!("/{function}"), line);
    assert_eq!(reply.status, 200, "{line}: {reply:?}");
    reply.text().trim_end().to_owned()
}

/// A server that says again what each client has said, once it has said all.
pub(crate) fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all);
                let _ = stream.write_all(&all);
                let _ = stream.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

/// A socket that answers each datagram with its text in capitals.
pub(crate) fn shouting() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    let address = socket.local_addr().expect("an address");
    thread::spawn(move || {
        let mut bytes = [0; 100];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            bytes[..count].make_ascii_uppercase();
            let _ = socket.send_to(&bytes[..count], from);
        }
    });
    address
}

/// The address behind these words in the server's log.
pub(crate) fn said(server: &Server, words: &str) -> SocketAddr {
    server.wait_for_log(words);
    let log = server.log();
    let rest = log.split_once(words).expect("the words").1;
    let end = rest.find(|character: char| !character.is_ascii_digit() && !".:".contains(character)).unwrap_or(rest.len());
    rest[..end].parse::<SocketAddr>().unwrap_or_else(|error| panic!("{error}: {log}"))
}

#[test]
fn a_program_connects_where_it_may() {
    let (open, closed) = (echo(), echo());
    let server = server_with(&[open.to_string()], &[], &json!({}));
    assert_eq!(ask(&server, "sockets", &format!("echo {open} hello")), format!("{open} hello"));
    assert_eq!(ask(&server, "sockets", &format!("large {open} 3000000")), "3000000 true");
    assert_eq!(ask(&server, "sockets", &format!("echo {closed} hello")), "PermissionDenied");
    server.wait_for_log(&format!("wasi:sockets: {closed} is not in the function's `socket_hosts`"));
    assert_eq!(ask(&server, "none", &format!("echo {open} hello")), "PermissionDenied");
    // Many in one invocation, one after the other: each is closed with its handle.
    let lines: String = (0..300).map(|number| format!("echo {open} {number}\n")).collect();
    let expected: Vec<String> = (0..300).map(|number| format!("{open} {number}")).collect();
    assert_eq!(ask(&server, "sockets", &lines), expected.join("\n"));
    server.stop();
}

#[test]
fn a_connection_that_is_refused_says_so() {
    let address = free_address();
    let server = server_with(&[address.to_string()], &[], &json!({}));
    assert_eq!(ask(&server, "sockets", &format!("echo {address} hello")), "ConnectionRefused");
    server.stop();
}

#[test]
fn options_reach_the_system() {
    let address = echo();
    let server = server_with(&[address.to_string()], &[], &json!({}));
    assert_eq!(ask(&server, "sockets", &format!("options {address}")), "9 Err(WouldBlock)");
    server.stop();
}

#[test]
fn a_program_that_waits_keeps_no_worker_and_is_closed_with_its_deadline() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    let address = listener.local_addr().expect("an address");
    let server = server_with(&[address.to_string()], &[], &json!({ "deadline_ms": 5_000 }));
    let waiting = thread::spawn({
        let client = server.client();
        move || client.post("/sockets", format!("wait {address}")).status
    });
    let (mut peer, _) = listener.accept().expect("a connection");
    peer.set_read_timeout(Some(TIME_MAX)).expect("a time");
    // There is one worker.
    assert_eq!(ask(&server, "none", "echo 127.0.0.1:1 hello"), "PermissionDenied");
    assert_eq!(peer.read(&mut [0; 1]).expect("its end"), 0);
    assert_eq!(waiting.join().expect("an answer"), 504);
    server.stop();
}

#[test]
fn a_program_listens_where_it_may() {
    let server = server_with(&[], &["127.0.0.1:0"], &json!({}));
    let listening = thread::spawn({
        let client = server.client();
        move || client.post("/sockets", "listen 127.0.0.1:0").text()
    });
    let address = said(&server, "listens at ");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(TIME_MAX)).expect("a time");
    stream.write_all(b"hello\n").expect("it takes that");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!((answer.as_str(), listening.join().expect("an answer").trim_end()), ("HELLO\n", "hello"));
    for elsewhere in ["127.0.0.2:0", "0.0.0.0:0", "127.0.0.1:9999"] {
        assert_eq!(ask(&server, "sockets", &format!("listen {elsewhere}")), "PermissionDenied", "{elsewhere}");
        assert_eq!(ask(&server, "none", &format!("listen {elsewhere}")), "PermissionDenied", "{elsewhere}");
    }
    server.stop();
}

#[test]
fn datagrams_go_and_come_where_they_may() {
    let (open, closed) = (shouting(), shouting());
    let server = server_with(&[open.to_string()], &["127.0.0.1:0"], &json!({}));
    assert_eq!(ask(&server, "sockets", &format!("send 127.0.0.1:0 {open} hello")), format!("{open} HELLO HELLO"));
    assert_eq!(ask(&server, "sockets", &format!("send 0.0.0.0:0 {open} hello")), format!("{open} HELLO HELLO"));
    assert_eq!(ask(&server, "sockets", &format!("send 127.0.0.1:0 {closed} hello")), "PermissionDenied");
    assert_eq!(ask(&server, "none", &format!("send 127.0.0.1:0 {open} hello")), "PermissionDenied");
    let receiving = thread::spawn({
        let client = server.client();
        move || client.post("/sockets", "receive 127.0.0.1:0").text()
    });
    let address = said(&server, "receives at ");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    sender.send_to(b"from anybody", address).expect("it goes");
    assert_eq!(receiving.join().expect("an answer").trim_end(), "from anybody");
    server.stop();
}

#[test]
fn listed_names_are_looked_up_and_open_no_private_address() {
    let address = echo();
    let port = address.port();
    let server = server_with(&[format!("localhost:{port}")], &[], &json!({}));
    let found = ask(&server, "sockets", &format!("lookup localhost:{port}"));
    assert!(found.contains(&address.to_string()) || found.contains(&format!("[::1]:{port}")), "{found}");
    assert_eq!(ask(&server, "sockets", &format!("echo localhost:{port} hello")), "PermissionDenied");
    let refused = ask(&server, "sockets", "lookup example.org:80");
    assert!(!refused.contains(":80"), "{refused}");
    server.wait_for_log("wasi:sockets: example.org is not in the function's `socket_hosts`");
    server.stop();
    // Where the address is listed, too, the name leads there.
    let server = server_with(&[format!("localhost:{port}"), format!("127.0.0.0/8:{port}")], &[], &json!({}));
    assert_eq!(ask(&server, "sockets", &format!("echo localhost:{port} hello")), format!("{address} hello"));
    server.stop();
}

#[test]
fn run_grants_sockets_by_its_options() {
    let address = echo();
    let run = |options: &[&str]| {
        let mut command = sledge_command(&["run"]);
        command.args(options).arg(artifact()).args(["--", &format!("echo {address} hello")]);
        let done = process::run(&mut command, b"", TIME_MAX);
        assert_eq!(done.code(), 0, "{}", done.stderr);
        done.text().trim_end().to_owned()
    };
    assert_eq!(run(&[]), "PermissionDenied");
    assert_eq!(run(&["--socket-host", &address.to_string()]), format!("{address} hello"));
    let wrong = process::run(sledge_command(&["run", "--socket-host", "localhost"]).arg(artifact()), b"", TIME_MAX);
    assert!(wrong.code() == 2 && wrong.stderr.contains("it has no port"), "{}", wrong.stderr);
}

#[test]
fn sockets_of_deployed_functions_have_to_be_granted_to_their_tenant() {
    let server = server_with(&[], &[], &json!({}));
    let wasm =
        wat::parse_str("(module (memory (export \"memory\") 1) (func (export \"sledge_handle\") (result i32) (i32.const 0)))");
    let wasm = wasm.expect("WAT");
    for key in ["socket_hosts", "socket_listen"] {
        let reply = server.admin().deploy("f", &json!({ key: ["127.0.0.1:80"] }), &wasm);
        assert!(reply.status == 403 && reply.text().contains(&format!("settings.{key}: ")), "{reply:?}");
    }
    server.stop();
}
