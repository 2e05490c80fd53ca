//! What clients of applications get that speak gRPC, besides the functions: reflection, health, gRPC-Web, Connect.
//!
//! The application is not built from sources: its artifacts and its descriptors are put where `sledge build` writes them.

mod connect;
mod health;
mod reflection;
mod web;

use bytes::{Buf as _, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;
use http_body_util::channel::{Channel, Sender};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use sledge_tests::programs::{self, run_awsm, sledge_command};
use sledge_tests::server::{Server, free_address};
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::net::TcpStream;

/// The folder of a configuration with an application.
struct Application {
    folder: tempfile::TempDir,
}

impl Application {
    /// The application `shop`: its function `echo`, which clients can call, and `ledger`, which they cannot.
    fn new(config: &Value) -> Application {
        let application = Application { folder: tempfile::tempdir().expect("a folder") };
        for function in ["echo", "ledger"] {
            application.build(function);
        }
        let protos = programs::tests_folder().join("e2e/protos");
        describe(
            &protos,
            &["front", "more", "apart"].map(|name| format!("shop/{name}.proto")),
            &application.built("protos.binpb"),
        );
        application.configure(config);
        application
    }

    fn built(&self, file: &str) -> PathBuf {
        let folder = self.folder.path().join(".sledge/shop");
        fs::create_dir_all(&folder).expect("a folder");
        folder.join(file)
    }

    fn build(&self, function: &str) {
        let artifact = service();
        let part = self.built("part");
        fs::copy(artifact, &part).expect("an artifact");
        fs::rename(part, self.built(&format!("{function}.so"))).expect("an artifact");
    }

    fn configure(&self, config: &Value) {
        fs::write(self.folder.path().join("sledge.json"), config.to_string()).expect("write the configuration");
    }

    fn start(&self) -> Server {
        let mut serve = sledge_command(&["serve", "--config", "sledge.json"]);
        Server::start_with(serve.current_dir(self.folder.path()))
    }
}

/// The artifact of the function of both.
fn service() -> PathBuf {
    programs::function_with("service.c", &["--", "-mexec-model=reactor"])
}

/// The same as a function that has a path of the server's own services.
fn own(route: &str) -> Value {
    json!({ "name": "own", "path": service(), "route": route })
}

/// Whether it is what answers there.
async fn is_own(connection: &Connection, path: &str) -> bool {
    let mut call = Call::begin_with_message(connection, path, b"").await;
    call.status().await.0 == "12" && call.trailers.get("x-behind").is_some_and(|behind| behind == "7")
}

/// Writes the descriptors of .proto files that lie in a folder.
fn describe(protos: &Path, files: &[String], to: &Path) {
    let folder = protos.to_str().expect("a path of text");
    let files: Vec<String> = files.iter().map(|file| format!("{folder}/{file}")).collect();
    let to = to.to_str().expect("a path of text");
    let arguments: Vec<&str> =
        [&["proto"][..], &files.iter().map(String::as_str).collect::<Vec<_>>(), &["--descriptors", "-I", folder, "-o", to]]
            .concat();
    let done = run_awsm(&arguments);
    assert_eq!(done.code(), 0, "{}", done.text());
}

/// The application as a configuration has it, and more keys of it.
fn shop(more: &Value) -> Value {
    let mut shop = json!({ "name": "shop", "protos": ["protos"], "functions": [
        { "name": "echo", "source": "echo", "services": ["shop.Echo"] },
        { "name": "ledger", "source": "ledger", "services": ["shop.Ledger"], "expose": false },
    ] });
    more.as_object().expect("an object").iter().for_each(|(key, value)| shop[key] = value.clone());
    shop
}

/// A configuration with applications.
fn config(applications: &[Value]) -> Value {
    json!({ "listen": "127.0.0.1:0", "admin": "none", "workers": 1, "applications": applications })
}

type Connection = SendRequest<Channel<Bytes>>;

async fn connect(address: SocketAddr) -> Connection {
    let stream = TcpStream::connect(address).await.expect("connect");
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

/// A call that is under way.
struct Call {
    requests: Option<Sender<Bytes>>,
    replies: Incoming,
    came: BytesMut,
    head: HeaderMap,
    trailers: HeaderMap,
}

impl Call {
    /// Begins one, and waits for the head of its reply.
    async fn begin(connection: &Connection, path: &str) -> Call {
        Call::begin_with(connection, path, &[]).await
    }

    async fn begin_with(connection: &Connection, path: &str, headers: &[(&str, &str)]) -> Call {
        let (requests, body) = Channel::new(16);
        let request =
            Request::post(format!("http://test{path}")).header("content-type", "application/grpc").header("te", "trailers");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = connection.clone().send_request(request.body(body).expect("a request")).await.expect("a head");
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let (head, replies) = response.into_parts();
        Call { requests: Some(requests), replies, came: BytesMut::new(), head: head.headers, trailers: HeaderMap::new() }
    }

    async fn send(&mut self, bytes: impl Into<Bytes>) {
        self.requests.as_mut().expect("it has not ended").send_data(bytes.into()).await.expect("sent");
    }

    async fn say(&mut self, message: &[u8]) {
        self.send(framed(0, message)).await;
    }

    /// Says that nothing more is sent.
    fn end(&mut self) {
        self.requests = None;
    }

    /// The next message; none at the end.
    async fn hear(&mut self) -> Option<Bytes> {
        loop {
            if self.came.len() >= 5 {
                let length = u32::from_be_bytes(self.came[1..5].try_into().expect("four bytes")) as usize;
                if self.came.len() >= 5 + length {
                    self.came.advance(5);
                    return Some(self.came.split_to(length).freeze());
                }
            }
            match self.replies.frame().await?.expect("more").into_data() {
                Ok(data) => self.came.extend_from_slice(&data),
                Err(frame) => self.trailers = frame.into_trailers().expect("trailers"),
            }
        }
    }

    /// How it ended, without another message: a number and a text.
    async fn status(&mut self) -> (String, String) {
        assert_eq!(self.hear().await, None);
        let get = |name| self.trailers.get(name).or(self.head.get(name)).map(|value| value.to_str().expect("text").to_owned());
        (get("grpc-status").expect("a status"), get("grpc-message").unwrap_or_default())
    }
}

fn framed(flags: u8, message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("a length").to_be_bytes();
    Bytes::from([&[flags][..], &length, message].concat())
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).expect("memory");
    packer.finish().expect("memory")
}

/// A call of one message: its reply, or how it ended.
async fn unary(connection: &Connection, path: &str, message: &[u8]) -> Result<Bytes, (String, String)> {
    let mut call = Call::begin_with_message(connection, path, message).await;
    let reply = call.hear().await;
    let status = call.status().await;
    match reply {
        Some(reply) if status.0 == "0" => Ok(reply),
        _ => Err(status),
    }
}

impl Call {
    /// Begins one that sends a message and no more, so that servers can answer it as a whole.
    async fn begin_with_message(connection: &Connection, path: &str, message: &[u8]) -> Call {
        let (mut requests, body) = Channel::new(16);
        requests.send_data(framed(0, message)).await.expect("sent");
        drop(requests);
        let request =
            Request::post(format!("http://test{path}")).header("content-type", "application/grpc").header("te", "trailers");
        let response = connection.clone().send_request(request.body(body).expect("a request")).await.expect("a head");
        let (head, replies) = response.into_parts();
        Call { requests: None, replies, came: BytesMut::new(), head: head.headers, trailers: HeaderMap::new() }
    }
}

/// A field of a message: a text.
fn text(tag: u8, value: &str) -> Vec<u8> {
    let length = u8::try_from(value.len()).expect("a short text");
    assert!(length < 128);
    [&[tag << 3 | 2, length], value.as_bytes()].concat()
}
