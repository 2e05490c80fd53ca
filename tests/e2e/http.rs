//! HTTP as it is spoken: version 2, TLS, routes that are prefixes, OPTIONS, limits, slow clients.

use crate::{assert_failure, entry, entry_with};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper::header::HeaderMap;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use sledge_tests::http::{Client, Raw, TIME_MAX, post_bytes};
use sledge_tests::server::{Server, free_address};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// A reply.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Runs a client; it has the usual time for all that it does.
pub(crate) fn run<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(TIME_MAX, client).await.expect("done in time") })
}

pub(crate) async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address).await.expect("connect")
}

pub(crate) async fn speak_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> http2::SendRequest<Full<Bytes>> {
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = handshake.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

pub(crate) async fn ask(sender: &http2::SendRequest<Full<Bytes>>, method: Method, path: &str, body: impl Into<Bytes>) -> Reply {
    let uri = format!("http://test{path}");
    let request = Request::builder().method(method).uri(uri).body(Full::new(body.into())).expect("a request");
    let response = sender.clone().send_request(request).await.expect("a reply");
    let (head, body) = response.into_parts();
    Reply { status: head.status, headers: head.headers, body: body.collect().await.expect("a body").to_bytes() }
}

#[test]
fn http2_is_spoken_on_the_same_port_with_clients_that_begin_so() {
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 100 }));
    for listeners in crate::LISTENERS {
        let functions = json!([entry("echo", "echo.wat"), spin, entry("traps", "traps.wat")]);
        let config = json!({ "listeners": listeners, "workers": 2, "body_bytes_max": 2_000_000, "functions": functions });
        let server = Server::start(config);
        run(async {
            let sender = speak_http2(connect(&server).await).await;
            // A hundred at the same time on one connection.
            let requests = (0..100).map(|i| {
                let sender = sender.clone();
                tokio::spawn(async move { ask(&sender, Method::POST, "/echo", format!("request {i}")).await })
            });
            for (i, request) in requests.collect::<Vec<_>>().into_iter().enumerate() {
                let reply = request.await.expect("the task");
                assert_eq!((reply.status, &reply.body[..]), (StatusCode::OK, format!("request {i}").as_bytes()));
            }
            // Larger than any window or frame.
            let large: Vec<u8> = (0..1_500_000_u32).map(|i| (i % 251) as u8).collect();
            assert!(ask(&sender, Method::POST, "/echo", large.clone()).await.body == large);
            for (method, path, body, status) in [
                (Method::POST, "/nowhere", 0, 404),
                (Method::PUT, "/echo", 0, 405),
                (Method::POST, "/echo", 2_000_001, 413),
                (Method::POST, "/spin", 0, 504),
            ] {
                let reply = ask(&sender, method, path, vec![0; body]).await;
                assert_eq!(reply.status, status, "{path}");
                assert_eq!(reply.headers["content-type"], "application/json");
            }
            assert_eq!(ask(&sender, Method::POST, "/traps", "u").await.status, 500);
            assert_eq!(ask(&sender, Method::POST, "/echo", "still here").await.body, "still here");
        });
        assert_eq!(server.client().post("/echo", "version 1").text(), "version 1");
        server.stop();
    }
}

#[test]
fn a_preface_that_comes_in_pieces_is_understood() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let mut raw = Raw::connect(server.address);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for piece in preface.chunks(5) {
        raw.send(piece);
        std::thread::sleep(Duration::from_millis(20));
    }
    // Empty SETTINGS; the server sends its own, whose fourth byte is the type 4.
    raw.send([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let begin = raw.bytes(9);
    assert_eq!((begin[3], &begin[5..]), (4, &[0_u8; 4][..]), "{begin:?}");
    // What only begins like it is HTTP/1.1.
    let mut raw = Raw::connect(server.address);
    raw.send("P");
    std::thread::sleep(Duration::from_millis(30));
    raw.send(&post_bytes("/echo", b"x", "")[1..]);
    assert_eq!(raw.reply().expect("a reply").text(), "x");
    server.stop();
}

/// What SIGTERM promises holds for version 2 as well.
#[test]
fn http2_requests_under_way_are_answered_after_sigterm() {
    let busy = entry_with("busy", "busy.wat", &json!({ "deadline_ms": 120_000 }));
    let mut server = Server::start(json!({ "workers": 1, "drain_timeout_ms": 120_000, "functions": [busy] }));
    run(async {
        let sender = speak_http2(connect(&server).await).await;
        // Seconds: it is under way still when that is seen.
        let body = [&2_000_000_000_u64.to_le_bytes()[..], b"done"].concat();
        let request = ask(&sender, Method::POST, "/busy", body.clone());
        let signal = async {
            while server.admin().get("/status").json()["requests"] == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            server.signal(rustix::process::Signal::TERM);
        };
        let (reply, ()) = tokio::join!(request, signal);
        assert!(reply.status == 200 && reply.body == body);
    });
    assert!(server.wait(TIME_MAX).success());
}

/// A certificate for `localhost` and its key, in two files, and a client that trusts it.
pub(crate) fn certificate(folder: &Path) -> (Value, TlsConnector, rcgen::CertifiedKey<rcgen::KeyPair>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).expect("a certificate");
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("write the certificate");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("write the key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let client = builder.with_root_certificates(roots).with_no_client_auth();
    (json!({ "tls_certificate_file": certificate, "tls_key": { "file": key } }), Arc::new(client).into(), made)
}

fn offering(connector: &TlsConnector, protocols: &[&[u8]]) -> TlsConnector {
    let mut config = (**connector.config()).clone();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config).into()
}

#[test]
fn tls_speaks_the_version_on_which_both_sides_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, connector, _) = certificate(folder.path());
    let mut config = json!({ "head_timeout_ms": 6_000, "functions": [entry("echo", "echo.wat")] });
    for (key, value) in files.as_object().expect("an object") {
        config[key] = value.clone();
    }
    let server = Server::start(config);
    let name = || ServerName::try_from("localhost").expect("a name");
    run(async {
        for protocols in [&[][..], &[&b"http/1.1"[..]]] {
            let stream = offering(&connector, protocols).connect(name(), connect(&server).await).await.expect("TLS");
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
            tokio::spawn(connection);
            for i in 0..3 {
                let request = Request::post("/echo").header("host", "localhost").body(Full::new(Bytes::from(format!("{i}"))));
                let response = sender.send_request(request.expect("a request")).await.expect("a reply");
                assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), format!("{i}"));
            }
        }
        let both = offering(&connector, &[b"h2", b"http/1.1"]);
        let stream = both.connect(name(), connect(&server).await).await.expect("TLS");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let sender = speak_http2(stream).await;
        let large = vec![7; 300_000];
        assert!(ask(&sender, Method::POST, "/echo", large.clone()).await.body == large);
    });
    // Nothing is said in the clear.
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/echo", b"x", ""));
    assert!(!raw.everything().windows(4).any(|bytes| bytes == b"HTTP"));
    // A handshake that does not go on is not waited for.
    let mut raw = Raw::connect(server.address);
    raw.send([22, 3, 1]);
    assert!(raw.is_closed());
    server.stop();
}

#[test]
fn certificates_that_are_none_are_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, ..) = certificate(folder.path());
    let other = tempfile::tempdir().expect("a folder");
    let (others, ..) = certificate(other.path());
    let refused = |keys: Value| {
        let mut config = json!({ "listen": "127.0.0.1:0", "admin": "none", "functions": [entry("echo", "echo.wat")] });
        for (key, value) in keys.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let file = folder.path().join("sledge.json");
        std::fs::write(&file, config.to_string()).expect("write the configuration");
        let mut command = sledge_tests::programs::sledge_command(&["serve", "--config"]);
        let done = sledge_tests::process::run(command.arg(&file), b"", TIME_MAX);
        assert_eq!(done.code(), 1, "{}", done.stderr);
        done.stderr
    };
    assert!(refused(json!({ "tls_key": files["tls_key"] })).contains("tls_certificate_file: is missing"));
    let swapped =
        json!({ "tls_certificate_file": files["tls_key"]["file"], "tls_key": { "file": files["tls_certificate_file"] } });
    assert!(refused(swapped).contains("tls_"));
    let mixed = json!({ "tls_certificate_file": files["tls_certificate_file"], "tls_key": others["tls_key"] });
    assert!(refused(mixed).contains("tls_key"));
    let missing = json!({ "tls_certificate_file": "/nonexistent.pem", "tls_key": files["tls_key"] });
    assert!(refused(missing).contains("/nonexistent.pem"));
    let unset = json!({ "tls_certificate_file": files["tls_certificate_file"], "tls_key": { "env": "SLEDGE_TEST_NO_KEY" } });
    assert!(refused(unset).contains("tls_key: environment variable SLEDGE_TEST_NO_KEY: is not set"));
    let key = folder.path().join("key.pem");
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o644)).expect("chmod");
    assert!(refused(files).contains("key.pem: others may read or write it (mode 644)"));
}

#[test]
fn a_route_can_be_a_prefix_and_exact_ones_come_first() {
    let server = Server::start(json!({ "functions": [
        entry_with("all", "echo.wat", &json!({ "route": "/api/*" })),
        entry_with("exact", "traps.wat", &json!({ "route": "/api/exact" })),
        entry_with("inner", "busy.wat", &json!({ "route": "/api/inner/*", "methods": ["PUT"] })),
    ] }));
    let client = server.client();
    for path in ["/api/", "/api/x", "/api/x/y?z=1", "/api/exact/", "/api/inner"] {
        assert_eq!(client.post(path, "x").text(), "x", "{path}");
    }
    assert_eq!(client.post("/api/exact", "-").text(), "ok");
    assert_failure(&client.post("/api/inner/x", "x"), 405, "method_not_allowed", "see_allow", Some("inner"));
    for path in ["/api", "/apix", "/"] {
        assert_eq!(client.post(path, "x").status, 404, "{path}");
    }
    server.stop();
}

/// As the paper has it: a port for each function, or for those of one tenant.
#[test]
fn a_function_may_have_an_address_of_its_own() {
    for listeners in crate::LISTENERS {
        let own = [(); 2].map(|()| free_address());
        let functions = json!([
            entry("echo", "echo.wat"),
            entry_with("own", "echo.wat", &json!({ "listen": own[0], "route": "/echo" })),
            entry_with("others", "traps.wat", &json!({ "listen": own[1], "route": "/*", "tenant": "t" })),
        ]);
        let server = Server::start(json!({ "listeners": listeners, "workers": 2, "functions": functions }));
        for i in 0..20 {
            let body = i.to_string();
            assert_eq!(Client::new(own[0], TIME_MAX).post("/echo", &body).text(), body);
            assert_eq!(server.client().post("/echo", &body).text(), body);
            assert_eq!(Client::new(own[1], TIME_MAX).post("/any/path", "u").status, 500);
        }
        for (address, path) in [(server.address, "/own"), (server.address, "/any/path"), (own[0], "/any/path")] {
            assert_eq!(Client::new(address, TIME_MAX).post(path, "u").status, 404, "{address}{path}");
        }
        let module = wat::parse_str("(module (func (export \"sledge_handle\") (result i32) (i32.const 0)))").expect("WAT");
        let deploy = |listen: &str| server.admin().deploy("later", &json!({ "listen": listen, "route": "/later" }), &module);
        assert_eq!(deploy(&own[0].to_string()).status, 200);
        assert_eq!(Client::new(own[0], TIME_MAX).post("/later", "").status, 200);
        // The same path at another address is another's: the configuration still goes with it.
        assert_eq!(server.admin().deploy("any", &json!({ "route": "/*" }), &module).status, 200);
        server.signal(rustix::process::Signal::HUP);
        server.wait_for_log("configuration read anew");
        let refused = deploy("127.0.0.1:1");
        assert!(refused.status != 200 && refused.text().contains("does not listen on 127.0.0.1:1"), "{}", refused.text());
        server.stop();
    }
}

#[test]
fn options_says_what_may_be_asked_for() {
    let own = entry_with("own", "echo.wat", &json!({ "methods": ["OPTIONS", "POST"] }));
    let server =
        Server::start(json!({ "functions": [entry_with("echo", "echo.wat", &json!({ "methods": ["GET", "POST"] })), own] }));
    let mut raw = Raw::connect(server.address);
    let mut options = |path: &str| {
        raw.send(format!("OPTIONS {path} HTTP/1.1\r\nhost: test\r\ncontent-length: 2\r\n\r\nhi"));
        raw.reply().expect("a reply")
    };
    let reply = options("/echo");
    assert_eq!((reply.status, reply.header("allow")), (204, Some("GET, HEAD, POST, OPTIONS")));
    // A function that wants to answer it does.
    let reply = options("/own");
    assert_eq!((reply.status, reply.text().as_str()), (200, "hi"));
    assert_eq!(options("*").status, 204);
    assert_eq!(options("/nowhere").status, 404);
    // A route that answers GET answers HEAD: with the length of what is not sent, so that the next reply is found.
    raw.send("HEAD /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 2\r\n\r\nhi");
    let reply = raw.head().expect("a reply");
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("2")));
    raw.send("HEAD /own HTTP/1.1\r\nhost: test\r\n\r\n");
    let reply = raw.head().expect("a reply");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("OPTIONS, POST")));
    server.stop();
}

#[test]
fn long_paths_and_heads_are_refused() {
    let server = Server::start(json!({ "functions": [entry_with("echo", "echo.wat", &json!({ "route": "/*" }))] }));
    let long = format!("/{}", "x".repeat(8 << 10));
    assert_failure(&server.client().post(&long, ""), 414, "path_too_long", "path_bytes_max", None);
    assert_eq!(server.client().post(&long[..8 << 10], "x").text(), "x");
    for head in [format!("x-long: {}\r\n", "y".repeat(300_000)), "x: y\r\n".repeat(150)] {
        let mut raw = Raw::connect(server.address);
        raw.send(post_bytes("/echo", b"x", &head));
        assert_eq!(raw.head().expect("a reply").status, 431);
        assert!(raw.everything().is_empty() || raw.is_closed());
    }
    run(async {
        let sender = speak_http2(connect(&server).await).await;
        let request = Request::post("http://test/echo").header("x-long", "y".repeat(100_000)).body(Full::default());
        let status = sender.clone().send_request(request.expect("a request")).await.map(|response| response.status());
        assert!(status.as_ref().map_or(true, |status| *status == 431), "{status:?}");
        assert_eq!(ask(&speak_http2(connect(&server).await).await, Method::POST, "/echo", "x").await.body, "x");
    });
    server.stop();
}

/// RFC 9112, 6.1: a request with both may be an attempt to hide another one in its body. It is refused, and the connection ends.
#[test]
fn conflicting_lengths_hide_no_request() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    for head in [
        "content-length: 60\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 3",
        "content-length: 12\r\ncontent-length: 12",
    ] {
        for is_in_pieces in [false, true] {
            let mut raw = Raw::connect(server.address);
            // The request before it has nothing of that.
            raw.send(post_bytes("/echo", b"before", ""));
            let bytes = format!("POST /echo HTTP/1.1\r\nhost: test\r\n{head}\r\n\r\n2\r\nab\r\n0\r\n\r\n");
            let (first, second) = bytes.split_at(if is_in_pieces { 50 } else { 0 });
            raw.send(first);
            assert_eq!(raw.reply().expect("a reply").text(), "before");
            raw.send(second);
            raw.send(post_bytes("/echo", b"hidden", ""));
            let reply = raw.reply().expect("a reply");
            assert_failure(&reply, 400, "bad_request", "length_ambiguous", None);
            assert!(raw.is_closed(), "{head}");
        }
    }
    for head in [
        "content-length: 2\r\ncontent-length: 3",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: gzip",
        "content-length: 2, 3",
        "content-length: +2",
    ] {
        let mut raw = Raw::connect(server.address);
        raw.send(format!("POST /echo HTTP/1.1\r\nhost: test\r\n{head}\r\n\r\nab"));
        assert_eq!(raw.head().expect("a reply").status, 400, "{head}");
        assert!(raw.everything().is_empty(), "{head}");
    }
    server.stop();
}

/// A client that asks first is told to go on only if its body is wanted.
#[test]
fn continue_is_said_only_to_bodies_that_are_taken() {
    let server = Server::start(json!({ "body_bytes_max": 10, "functions": [entry("echo", "echo.wat")] }));
    let ask = |path: &str, length: usize| {
        let mut raw = Raw::connect(server.address);
        raw.send(format!("POST {path} HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"));
        let status = raw.head().expect("a reply").status;
        (raw, status)
    };
    let (mut raw, status) = ask("/echo", 2);
    assert_eq!(status, 100);
    raw.send("ab");
    assert_eq!(raw.reply().expect("a reply").text(), "ab");
    assert_eq!(ask("/echo", 11).1, 413);
    assert_eq!(ask("/nowhere", 2).1, 404);
    server.stop();
}

#[test]
fn clients_that_are_too_slow_are_not_waited_for() {
    let config = json!({ "workers": 1, "head_timeout_ms": 3_000, "body_timeout_ms": 3_000, "reply_timeout_ms": 3_000,
        "body_bytes_max": 100_000_000, "reply_bytes_max": 100_000_000, "functions": [entry("echo", "echo.wat")] });
    let server = Server::start(config);
    // Since before the connection: a client that is delayed sees its end later, never earlier.
    let some = Duration::from_millis(2_500)..Duration::from_secs(60);
    // Nothing at all; the beginning of a preface; half a head; one line at a time for ever; nothing after a request.
    for begin in ["", "PRI * HT", "POST /echo HTTP/1.1\r\nhost: te"] {
        let start = Instant::now();
        let mut raw = Raw::connect(server.address);
        raw.send(begin);
        let rest = String::from_utf8_lossy(&raw.everything()).into_owned();
        assert!(some.contains(&start.elapsed()), "{begin:?}: {:?}", start.elapsed());
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{begin:?}: {rest}");
    }
    let start = Instant::now();
    let mut raw = Raw::connect(server.address);
    raw.send("POST /echo HTTP/1.1\r\n");
    while !raw.answers_within(Duration::from_millis(50)) && start.elapsed() < TIME_MAX {
        raw.send("x-more: y\r\n");
    }
    assert!(some.contains(&start.elapsed()), "{:?}", start.elapsed());
    let start = Instant::now();
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/echo", b"x", ""));
    assert_eq!(raw.reply().expect("a reply").text(), "x");
    assert!(raw.is_closed() && some.contains(&start.elapsed()), "{:?}", start.elapsed());

    // A body that drips.
    let start = Instant::now();
    let mut raw = Raw::connect(server.address);
    raw.send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 1000\r\n\r\n");
    while !raw.answers_within(Duration::from_millis(50)) && start.elapsed() < TIME_MAX {
        raw.send("x");
    }
    assert_failure(&raw.reply().expect("a reply"), 408, "request_timeout", "body_too_slow", Some("echo"));
    assert!(some.contains(&start.elapsed()), "{:?}", start.elapsed());

    // A reply that the client does not read, larger than what the kernel takes.
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/echo", &vec![7; 50_000_000], ""));
    let deadline = Instant::now() + TIME_MAX;
    let open = || {
        server
            .admin()
            .get("/metrics")
            .text()
            .lines()
            .any(|line| line.starts_with("sledge_open_connections{") && line.ends_with(" 1"))
    };
    while !open() {
        assert!(Instant::now() < deadline, "never open");
    }
    while open() {
        assert!(Instant::now() < deadline, "still open");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(raw);

    // A reply that is fetched slowly, but fetched, may take longer than any of those times.
    const REPLY_BYTES: usize = 50_000_000;
    const PIECES: usize = 10;
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/echo", &vec![7; REPLY_BYTES], ""));
    assert_eq!(raw.head().expect("a head").status, 200);
    for _ in 0..PIECES {
        assert_eq!(raw.bytes(REPLY_BYTES / PIECES).len(), REPLY_BYTES / PIECES);
        std::thread::sleep(Duration::from_millis(400));
    }

    // A connection with HTTP/2 and nothing to do.
    let start = Instant::now();
    run(async {
        let (mut sender, connection) =
            http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), TokioIo::new(connect(&server).await))
                .await
                .expect("HTTP/2");
        let request = Request::post("http://test/echo").body(Full::default()).expect("a request");
        let driver = tokio::spawn(connection);
        assert_eq!(sender.send_request(request).await.expect("a reply").status(), 200);
        driver.await.expect("the task").expect("a good end");
    });
    assert!(some.contains(&start.elapsed()), "{:?}", start.elapsed());
    server.stop();
}
