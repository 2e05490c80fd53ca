//! Clients that mean no good: others are served all the while, and memory stays bounded.

use crate::http::{certificate, connect, run};
use crate::{entry, eventually};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use sledge_tests::http::{Client, Raw, TIME_MAX, post_bytes};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::random::Random;
use sledge_tests::server::Server;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_rustls::rustls::pki_types::ServerName;

/// For one exchange of a good client while others do their worst.
const GOOD_TIME_MAX: Duration = Duration::from_secs(20);

/// Lets this process have as many sockets as it may; how many.
fn raise_files_max() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.unwrap_or(1 << 20);
    setrlimit(Resource::Nofile, Rlimit { current: Some(maximum), ..limit }).expect("setrlimit");
    maximum
}

/// A good client, with a connection for each request and with one for all: every request is answered.
fn assert_served(address: SocketAddr) {
    let kept = Client::new(address, GOOD_TIME_MAX);
    for i in 0..20 {
        for client in [&kept, &Client::new(address, GOOD_TIME_MAX)] {
            let reply = client.try_post("/echo", format!("good {i}").as_bytes(), &[]).expect("a reply");
            assert_eq!((reply.status, reply.text()), (200, format!("good {i}")));
        }
    }
}

fn connections(address: SocketAddr, count: usize, first: &[u8]) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect_timeout(&address, GOOD_TIME_MAX).expect("connect");
        stream.write_all(first).expect("send");
        stream
    };
    (0..count).map(connect).collect()
}

#[test]
fn twenty_thousand_idle_connections_cost_little_and_hinder_no_client() {
    // As many as the system lets this process have files, but for those of the tests beside this one.
    let count = 20_000.min(raise_files_max().saturating_sub(3_000) as usize);
    let server = Server::start(json!({ "workers": 2, "connections_max": 30_000, "head_timeout_ms": 600_000,
        "functions": [entry("echo", "echo.wat")] }));
    assert_served(server.address);
    let before = server.private_bytes();
    let idle = connections(server.address, count, b"");
    // All of them, and none was closed for another.
    eventually("all are accepted", || open_connections(&server) >= count as u64);
    assert_served(server.address);
    let open = open_connections(&server);
    assert!(open >= count as u64, "{open} of {count}");
    let each = server.private_bytes().saturating_sub(before) / count as u64;
    assert!(each < 16 << 10, "{each} bytes for each of {count} idle connections");
    drop(idle);
    eventually("all are gone", || open_connections(&server) < 100);
    assert_served(server.address);
    server.stop();
}

/// Connections that are open, as the server counts them.
fn open_connections(server: &Server) -> u64 {
    let text = server.admin().get("/metrics").text();
    let counts = text.lines().filter(|line| line.starts_with("sledge_open_connections{"));
    counts.map(|line| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a number")).sum()
}

/// Whatever comes on a port that speaks TLS: it is answered with an alert or not at all, and is gone after its time.
#[test]
fn junk_on_a_tls_port_hinders_no_other_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, connector, _) = certificate(folder.path());
    let mut config = json!({ "workers": 2, "head_timeout_ms": 8_000, "functions": [entry("echo", "echo.wat")] });
    files.as_object().expect("an object").iter().for_each(|(key, value)| config[key] = value.clone());
    let server = Server::start(config);
    let good = || {
        run(async {
            let name = ServerName::try_from("localhost").expect("a name");
            let stream = connector.connect(name, connect(&server).await).await.expect("TLS");
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
            tokio::spawn(connection);
            let request = Request::post("/echo").header("host", "localhost").body(Full::new(Bytes::from("good")));
            let response = sender.send_request(request.expect("a request")).await.expect("a reply");
            assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "good");
        });
    };
    good();
    let before = server.private_bytes();
    let mut random = Random::new(1, "junk");
    // The beginning of a handshake, which some of the junk goes on from: a record, a ClientHello in it, its version.
    let hello = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let mut junk = Vec::new();
    for round in 0..400 {
        let mut bytes = match round % 8 {
            0 => b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
            1 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            2 => hello.to_vec(),
            3 => hello[..round / 8 % hello.len()].to_vec(),
            // A record that is as large as can be said, an alert, data before any handshake.
            4 => vec![22, 3, 3, 0xff, 0xff],
            5 => vec![21, 3, 3, 0, 2, 2, 40],
            6 => vec![23, 3, 3, 0x40, 0],
            _ => Vec::new(),
        };
        let more = if round % 3 == 0 { 0 } else { random.below(40_000) as usize };
        bytes.extend(random.bytes(more));
        let mut raw = Raw::connect(server.address);
        raw.send(bytes);
        junk.push(raw);
        if round % 100 == 0 {
            good();
        }
    }
    good();
    assert!(server.private_bytes() < before + (64 << 20));
    for raw in &mut junk {
        assert!(!raw.everything().windows(5).any(|bytes| bytes == b"HTTP/"), "something is said in the clear");
    }
    eventually("all are gone", || open_connections(&server) == 0);
    good();
    server.stop();
}

#[test]
fn slow_heads_hinder_no_other_client_and_do_not_pile_up() {
    let server = Server::start(json!({ "workers": 1, "head_timeout_ms": 3_000, "functions": [entry("echo", "echo.wat")] }));
    let before = server.private_bytes();
    let mut slow = connections(server.address, 1_000, b"POST /echo HTTP/1.1\r\nhost: test\r\n");
    for round in 0..5 {
        for stream in &mut slow {
            // Those whose time is over are closed.
            let _ = stream.write_all(b"x-slow: y\r\n");
        }
        assert_served(server.address);
        assert!(server.private_bytes() < before + (64 << 20), "round {round}");
    }
    // All are gone after their time, whatever they send.
    let deadline = Instant::now() + TIME_MAX;
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        let mut rest = [0; 512];
        loop {
            assert!(Instant::now() < deadline, "a slow client is still served");
            let _ = stream.write_all(b"x-slow: y\r\n");
            match stream.read(&mut rest) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
    }
    server.stop();
}

/// More connections than the process may have files: idle ones make room.
#[test]
fn a_server_without_file_descriptors_goes_on_serving() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sledge.json");
    // More connections than files: the limit is met where a connection is accepted.
    for connections_max in [json!(null), json!(100_000)] {
        let config = json!({ "listen": "127.0.0.1:0", "admin": folder.path().join("admin.sock"), "workers": 2,
            "connections_max": connections_max, "functions": [entry("echo", "echo.wat")] });
        std::fs::write(&file, config.to_string()).expect("write the configuration");
        let serve = sledge_command(&["serve", "--config"]);
        let mut command = Command::new("/bin/sh");
        let script = format!("ulimit -n 400; exec {} serve --config {}", programs::sledge().display(), file.display());
        command.args(["-c", &script]);
        for (name, value) in serve.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let server = Server::start_with(&mut command);
        let hoarder = connections(server.address, 600, b"");
        assert_served(server.address);
        // Those that were idle for longest are gone, and deploying still finds the files that it needs.
        let door = sledge_tests::admin::Admin::new(folder.path().join("admin.sock"));
        let module = wat::parse_file(programs::tests_folder().join("e2e/functions/echo.wat")).expect("WAT");
        assert_eq!(door.deploy("more", &json!({}), &module).status, 200);
        assert_served(server.address);
        drop(hoarder);
        server.stop();
    }
}

/// Connections that are broken off with a reset at every stage of a request.
#[test]
fn floods_of_resets_hinder_no_other_client() {
    let server = Server::start(json!({ "workers": 2, "functions": [entry("echo", "echo.wat"), entry("spin", "spin.wat")] }));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for attacker in 0..4 {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || {
                let whole = post_bytes("/spin", b"some body", "");
                for round in attacker.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let Ok(mut stream) = TcpStream::connect_timeout(&server.address, GOOD_TIME_MAX) else { continue };
                    let _ = stream.write_all(&whole[..round * 7 % (whole.len() + 1)]);
                    // With no time to linger, closing is a reset.
                    let socket = socket2::SockRef::from(&stream);
                    socket.set_linger(Some(Duration::ZERO)).expect("linger");
                }
            });
        }
        for _ in 0..5 {
            assert_served(server.address);
        }
        stop.store(true, Ordering::Relaxed);
    });
    // Nothing of them goes on running.
    let deadline = Instant::now() + GOOD_TIME_MAX;
    while server.admin().get("/status").json()["requests"] != 0 {
        assert!(Instant::now() < deadline, "{}", server.admin().get("/status").text());
        std::thread::sleep(Duration::from_millis(10));
    }
    server.stop();
}

/// HTTP/2 frames: a stream is opened and reset at once, again and again (CVE-2023-44487).
#[test]
fn rapid_resets_of_http2_end_that_connection_only() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry("echo", "echo.wat"), entry("spin", "spin.wat")] }));
    let mut attacker = Raw::connect(server.address);
    attacker.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    // :method POST, :scheme http, :path /spin, :authority t.
    let head = b"\x83\x86\x44\x05/spin\x41\x01t";
    let mut frames = Vec::new();
    for stream in (1..40_000_u32).step_by(2) {
        let id = stream.to_be_bytes();
        frames.extend([0, 0, head.len() as u8, 1, 4]);
        frames.extend(id);
        frames.extend(head);
        // RST_STREAM with CANCEL.
        frames.extend([0, 0, 4, 3, 0]);
        frames.extend(id);
        frames.extend([0, 0, 0, 8]);
    }
    attacker.send(&frames);
    assert_served(server.address);
    assert!(attacker.is_ended(), "it would go on for ever");
    assert!(server.private_bytes() < 200 << 20);
    server.stop();
}

/// An endless head in pieces (CVE-2024-27316): CONTINUATION frames without an end.
#[test]
fn floods_of_continuations_end_that_connection_only() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry("echo", "echo.wat")] }));
    let before = server.private_bytes();
    let mut attacker = Raw::connect(server.address);
    attacker.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    // HEADERS without END_HEADERS.
    attacker.send(b"\0\0\x01\x01\0\0\0\0\x01\x83");
    // A literal header field of 1,000 bytes in each.
    let field = [&b"\0\x01x\x7f\xe9\x06"[..], &[b'y'; 1_000]].concat();
    let mut frame = vec![0, (field.len() >> 8) as u8, field.len() as u8, 9, 0, 0, 0, 0, 1];
    frame.extend(&field);
    for _ in 0..20_000 {
        attacker.send(&frame);
    }
    assert_served(server.address);
    assert!(attacker.is_ended(), "it would go on for ever");
    assert!(server.private_bytes() < before + (32 << 20));
    server.stop();
}

/// Frames of HTTP/2 that carry nothing, as many as can be sent (CVE-2019-9512, -9513, -9515, -9518): the connection is told and left, and has cost next to nothing.
#[test]
fn floods_of_frames_that_carry_nothing_end_that_connection_only() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry("echo", "echo.wat")] }));
    let open = b"\0\0\x0c\x01\x04\0\0\0\x01\x83\x86\x44\x05/echo\x41\x01t".to_vec();
    let cases: [(&str, &[u8], &[u8]); 6] = [
        ("PING", b"", b"\0\0\x08\x06\0\0\0\0\0abcdefgh"),
        ("SETTINGS", b"", b"\0\0\0\x04\0\0\0\0\0"),
        ("PRIORITY", b"", b"\0\0\x05\x02\0\0\0\0\x03\0\0\0\x01\x08"),
        ("WINDOW_UPDATE", b"", b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01"),
        ("an unknown frame", b"", b"\0\0\0\x4d\0\0\0\0\0"),
        ("empty DATA", &open, b"\0\0\0\0\0\0\0\0\x01"),
    ];
    for (what, begin, frame) in cases {
        let before = server.cpu_time();
        let (frames, told) = flood(server.address, begin, frame, GOOD_TIME_MAX);
        let spent = server.cpu_time() - before;
        assert!(spent < Duration::from_secs(1), "{what}: {spent:?} for {frames} frames");
        // GOAWAY, ENHANCE_YOUR_CALM; with words where the library counts for itself.
        let is_told = told.windows(17).any(|frame| frame[3] == 7 && frame[13..] == [0, 0, 0, 11]);
        assert!(is_told, "{what}: after {frames} frames: {told:?}");
        assert_served(server.address);
    }
    server.stop();
}

/// Sends a preface, what begins, and then one frame again and again until the server has gone or the time is over; how many, and the last bytes that came.
fn flood(address: SocketAddr, begin: &[u8], frame: &[u8], time: Duration) -> (usize, Vec<u8>) {
    let mut stream = TcpStream::connect_timeout(&address, GOOD_TIME_MAX).expect("connect");
    stream.set_write_timeout(Some(GOOD_TIME_MAX)).expect("a timeout");
    let mut reader = stream.try_clone().expect("another handle");
    let read = std::thread::spawn(move || {
        let (mut last, mut buffer) = (Vec::new(), [0; 64 << 10]);
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            last.extend_from_slice(&buffer[..count]);
            last.drain(..last.len().saturating_sub(64));
        }
        last
    });
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("a preface");
    stream.write_all(begin).expect("what begins");
    let (block, start, mut frames) = (frame.repeat(1_000), Instant::now(), 0);
    while start.elapsed() < time && stream.write_all(&block).is_ok() {
        frames += 1_000;
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
    (frames, read.join().expect("a reader"))
}
