//! Sockets of WASI 0.3: a command made by its Rust bindings, to and from real sockets of this machine, and refused where they are not granted.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread;

use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::server::{Server, free_address};

use crate::components::built;
use crate::sockets::{ask, echo, said, server_of, shouting};

/// The artifact of the component in `functions/components/network`.
fn artifact() -> PathBuf {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| built("network"));
    MADE.clone()
}

/// A server with the component under the name `sockets`, and under the name `none` without any grant.
fn server_with(hosts: &[String], listen: &[&str], more: &Value) -> Server {
    server_of(artifact(), hosts, listen, more)
}

/// Asks for something that goes on while the test does something else; the answer.
fn asking(server: &Server, line: String) -> thread::JoinHandle<String> {
    let client = server.client();
    thread::spawn(move || client.post("/sockets", line).text().trim_end().to_owned())
}

#[test]
fn a_command_connects_where_it_may() {
    let (open, closed) = (echo(), echo());
    let server = server_with(&[open.to_string()], &[], &json!({}));
    assert_eq!(ask(&server, "sockets", &format!("echo {open} hello")), format!("{open} hello"));
    assert_eq!(ask(&server, "sockets", &format!("large {open} 3000000")), "3000000 true");
    assert_eq!(ask(&server, "sockets", &format!("echo {closed} hello")), "ErrorCode::AccessDenied");
    server.wait_for_log(&format!("wasi:sockets: {closed} is not in the function's `socket_hosts`"));
    assert_eq!(ask(&server, "none", &format!("echo {open} hello")), "ErrorCode::AccessDenied");
    assert_eq!(ask(&server, "sockets", &format!("options {open}")), "9 Err(ErrorCode::InvalidArgument) true 5000000000");
    // Many in one invocation, one after the other: each is closed with its handle and its streams.
    let lines: String = (0..300).map(|number| format!("echo {open} {number}\n")).collect();
    let expected: Vec<String> = (0..300).map(|number| format!("{open} {number}")).collect();
    assert_eq!(ask(&server, "sockets", &lines), expected.join("\n"));
    server.stop();
}

#[test]
fn a_connection_that_is_refused_says_so() {
    let address = free_address();
    let server = server_with(&[address.to_string()], &[], &json!({}));
    assert_eq!(ask(&server, "sockets", &format!("echo {address} hello")), "ErrorCode::ConnectionRefused");
    server.stop();
}

#[test]
fn a_command_that_waits_keeps_no_worker_and_is_closed_with_its_deadline() {
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
    assert_eq!(ask(&server, "none", "echo 127.0.0.1:1 hello"), "ErrorCode::AccessDenied");
    assert_eq!(peer.read(&mut [0; 1]).expect("its end"), 0);
    assert_eq!(waiting.join().expect("an answer"), 504);
    server.stop();
}

#[test]
fn a_command_serves_its_clients_at_once() {
    let server = server_with(&[], &["127.0.0.1:0"], &json!({}));
    let listening = asking(&server, "listen 127.0.0.1:0 3".to_owned());
    let address = said(&server, "listens at ");
    let mut clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    // The last is the first to say something.
    for (number, client) in clients.iter_mut().enumerate().rev() {
        client.set_read_timeout(Some(TIME_MAX)).expect("a time");
        write!(client, "client{number}").expect("it takes that");
        client.shutdown(Shutdown::Write).expect("it is open");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert_eq!(answer, format!("CLIENT{number}"));
    }
    assert_eq!(listening.join().expect("an answer"), "client0 client1 client2");
    assert!(TcpStream::connect(address).is_err(), "it is closed");
    server.stop();
}

#[test]
fn a_command_listens_nowhere_else() {
    let server = server_with(&[], &["127.0.0.1:0"], &json!({}));
    for elsewhere in ["127.0.0.2:0", "0.0.0.0:0", "127.0.0.1:9999"] {
        for function in ["sockets", "none"] {
            assert_eq!(ask(&server, function, &format!("listen {elsewhere} 1")), "ErrorCode::AccessDenied", "{elsewhere}");
        }
    }
    assert_eq!(ask(&server, "sockets", "anywhere"), "ErrorCode::AccessDenied");
    server.wait_for_log("wasi:sockets: 0.0.0.0:0 is not in the function's `socket_listen`");
    server.stop();
    let server = server_with(&[], &["0.0.0.0:0"], &json!({}));
    assert_eq!(ask(&server, "sockets", "anywhere"), "true");
    server.stop();
}

#[test]
fn what_is_received_goes_back_by_itself() {
    let server = server_with(&[], &["127.0.0.1:0"], &json!({}));
    let passing = asking(&server, "pass 127.0.0.1:0".to_owned());
    let mut client = TcpStream::connect(said(&server, "listens at ")).expect("a connection");
    client.set_read_timeout(Some(TIME_MAX)).expect("a time");
    let all: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let writing = thread::spawn({
        let (mut client, all) = (client.try_clone().expect("another handle"), all.clone());
        move || {
            client.write_all(&all).expect("it takes that");
            client.shutdown(Shutdown::Write).expect("it is open");
        }
    });
    let mut came = Vec::new();
    client.read_to_end(&mut came).expect("all of it");
    writing.join().expect("it was written");
    assert!(came == all, "{} bytes", came.len());
    assert_eq!(passing.join().expect("an answer"), "passed");
    server.stop();
}

#[test]
fn datagrams_go_and_come_where_they_may() {
    let (open, closed) = (shouting(), shouting());
    let server = server_with(&[open.to_string()], &["127.0.0.1:0"], &json!({}));
    let told = "Err(ErrorCode::InvalidArgument)";
    for own in ["127.0.0.1:0", "0.0.0.0:0"] {
        assert_eq!(ask(&server, "sockets", &format!("send {own} {open} hello")), format!("{open} HELLO HELLO {told}"));
    }
    assert_eq!(ask(&server, "sockets", &format!("shout {open} hello")), "Some(ErrorCode::InvalidState) HELLO true");
    for refused in [format!("send 127.0.0.1:0 {closed} hello"), format!("shout {closed} hello")] {
        assert_eq!(ask(&server, "sockets", &refused), "ErrorCode::AccessDenied", "{refused}");
    }
    assert_eq!(ask(&server, "none", &format!("send 127.0.0.1:0 {open} hello")), "ErrorCode::AccessDenied");
    let receiving = asking(&server, "receive 127.0.0.1:0".to_owned());
    let address = said(&server, "receives at ");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    sender.send_to(b"from anywhere", address).expect("it goes");
    assert_eq!(receiving.join().expect("an answer"), "from anywhere");
    server.stop();
}

#[test]
fn what_is_waited_for_can_be_given_up() {
    let server = server_with(&["127.0.0.1:1-65535".to_owned()], &["127.0.0.1:0"], &json!({}));
    assert_eq!(ask(&server, "sockets", "late 127.0.0.1:0 hello"), "true true hello");
    server.stop();
}

#[test]
fn listed_names_are_looked_up_and_open_no_private_address() {
    let address = echo();
    let server = server_with(&[format!("localhost:{}", address.port())], &[], &json!({}));
    let found = ask(&server, "sockets", "lookup localhost");
    assert!(found.contains("127.0.0.1") || found.contains("::1"), "{found}");
    assert_eq!(ask(&server, "sockets", "lookup 192.0.2.7"), "192.0.2.7");
    assert_eq!(ask(&server, "sockets", "lookup example.org"), "ErrorCode::AccessDenied");
    server.wait_for_log("wasi:sockets: example.org is not in the function's `socket_hosts`");
    assert_eq!(ask(&server, "sockets", "lookup a..b"), "ErrorCode::InvalidArgument");
    assert_eq!(
        ask(&server, "sockets", &format!("lookup localhost\necho {address} hello")).lines().last(),
        Some("ErrorCode::AccessDenied")
    );
    server.stop();
}
