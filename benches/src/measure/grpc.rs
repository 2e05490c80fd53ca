//! The group `grpc`: the producer and the consumer of `examples/grpc/prodcon`, the same sources as functions of one application and as servers of their own over
//! loopback, with one connection between them that stays open. One client asks, one request at a time.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, TE};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::Bench;
use super::components::run;
use crate::checkout;
use crate::child::Listener;
use crate::server::Server;

/// Bytes of a message from the producer to the consumer.
const MESSAGE_BYTES: u32 = 1_024;
/// Messages of a request that has many.
const MANY: u32 = 20;
const REQUESTS: usize = 400;
const WARM_UP: usize = 100;
const TURNS: usize = 5;

/// Medians of one way to serve.
#[derive(Clone, Copy, Debug)]
struct Times {
    one: Duration,
    many: Duration,
}

impl Times {
    /// What one more message of a request costs.
    fn message(self) -> Duration {
        self.many.saturating_sub(self.one) / (MANY - 1)
    }
}

/// Both ways, by language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    servers: Times,
    application: Times,
}

/// What the programs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Go,
    Rust,
}

/// A call between the functions, to one between the servers.
pub(super) fn go_message_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, Language::Go, Times::message)
}

/// A request with many messages.
pub(super) fn go_many_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, Language::Go, |times| times.many)
}

/// A request with one message.
pub(super) fn go_one_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, Language::Go, |times| times.one)
}

/// The first of them in Rust.
pub(super) fn rust_message_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, Language::Rust, Times::message)
}

/// The second.
pub(super) fn rust_many_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, Language::Rust, |times| times.many)
}

/// The third.
pub(super) fn rust_one_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, Language::Rust, |times| times.one)
}

fn ratio(bench: &mut Bench, language: Language, time: fn(Times) -> Duration) -> Result<f64> {
    let folder = bench.folder.path();
    let place = &mut bench.grpc[language as usize];
    let Costs { servers, application } = match *place {
        Some(costs) => costs,
        None => *place.insert(measured(folder, language)?),
    };
    Ok(time(servers).as_secs_f64() / time(application).as_secs_f64())
}

fn measured(folder: &Path, language: Language) -> Result<Costs> {
    let folder = folder.join(format!("grpc-{language:?}"));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let application = application(&folder, language)?;
    let servers = servers(&folder, language)?;
    // Nothing is pinned: two servers and a client have the cores that there are, as has the application.
    let application = application.start(&folder)?;
    let (_consumer, producer) = servers.start(&folder)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut clients = [producer.address(), application.address()].map(|address| Client::connect(&runtime, address));
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let mut times = clients.iter_mut().map(|client| {
            let client = client.as_mut().map_err(|error| anyhow::anyhow!("{error:#}"))?;
            Ok::<_, anyhow::Error>(Times { one: client.median(&runtime, 1)?, many: client.median(&runtime, MANY)? })
        });
        let (servers, application) = times.next().zip(times.next()).context("two clients")?;
        let turn = Costs { servers: servers?, application: application? };
        eprintln!("{language:?}: servers {:?}, application {:?}", turn.servers, turn.application);
        turns.push(turn);
    }
    let median = |time: fn(&Costs) -> Duration| {
        let mut times: Vec<_> = turns.iter().map(time).collect();
        times.sort_unstable();
        times[TURNS / 2]
    };
    Ok(Costs {
        servers: Times { one: median(|turn| turn.servers.one), many: median(|turn| turn.servers.many) },
        application: Times { one: median(|turn| turn.application.one), many: median(|turn| turn.application.many) },
    })
}

/// The folder of a program.
fn source(name: &str, language: Language) -> PathBuf {
    let ending = if language == Language::Rust { "-rs" } else { "" };
    checkout::root().join(format!("examples/grpc/prodcon/{name}{ending}"))
}

/// An application that is built.
struct Application {
    config: String,
}

/// Builds the functions.
fn application(folder: &Path, language: Language) -> Result<Application> {
    let source = |name: &str| toml::Value::String(self::source(name, language).display().to_string());
    let config = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\n\n[[applications]]\nname = \"prodcon\"\n\n\
         [[applications.functions]]\nname = \"producer\"\nsource = {}\nservices = [\"prodcon.Producer\"]\n\
         calls = {{ \"prodcon.Consumer\" = \"local\" }}\n\n\
         [[applications.functions]]\nname = \"consumer\"\nsource = {}\nservices = [\"prodcon.Consumer\"]\n",
        source("producer"),
        source("consumer")
    );
    let file = folder.join("sledge.toml");
    fs::write(&file, &config).with_context(|| file.display().to_string())?;
    run(Command::new(checkout::program("sledge")?).args(["build", "prodcon", "--config"]).arg(&file))?;
    Ok(Application { config })
}

impl Application {
    fn start(&self, folder: &Path) -> Result<Server> {
        Server::start_config(folder, &self.config)
    }
}

/// The same programs, built as their authors would.
struct Servers {
    language: Language,
    producer: PathBuf,
    consumer: PathBuf,
}

fn servers(folder: &Path, language: Language) -> Result<Servers> {
    let build = |name: &str| {
        let source = source(name, language);
        match language {
            Language::Go => {
                let program = folder.join(name);
                run(Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(source))?;
                Ok::<_, anyhow::Error>(program)
            }
            Language::Rust => {
                let target = folder.join("native");
                run(Command::new("cargo")
                    .args(["build", "--quiet", "--release", "--locked", "--target-dir"])
                    .arg(&target)
                    .current_dir(source))?;
                Ok(target.join("release").join(name))
            }
        }
    };
    Ok(Servers { language, producer: build("producer")?, consumer: build("consumer")? })
}

impl Servers {
    fn start(&self, folder: &Path) -> Result<(Listener, Listener)> {
        let free = || Ok::<_, anyhow::Error>(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?);
        let (consumer_at, producer_at) = (free()?, free()?);
        let (mut consumer, mut producer) = (Command::new(&self.consumer), Command::new(&self.producer));
        match self.language {
            Language::Go => {
                consumer.arg("-listen").arg(consumer_at.to_string());
                producer.arg("-listen").arg(producer_at.to_string()).arg("-consumer").arg(consumer_at.to_string());
            }
            Language::Rust => {
                consumer.env("CONSUMER_LISTEN", consumer_at.to_string());
                producer.env("PRODUCER_LISTEN", producer_at.to_string()).env("CONSUMER", format!("http://{consumer_at}"));
            }
        }
        let consumer = Listener::polled(consumer, consumer_at, &folder.join("consumer.log"))?;
        let producer = Listener::polled(producer, producer_at, &folder.join("producer.log"))?;
        Ok((consumer, producer))
    }
}

/// A client with one connection.
struct Client {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
}

impl Client {
    fn connect(runtime: &Runtime, address: SocketAddr) -> Result<Client> {
        runtime.block_on(async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            Ok(Client { sender, address })
        })
    }

    /// The median time of requests with so many messages.
    fn median(&mut self, runtime: &Runtime, messages: u32) -> Result<Duration> {
        runtime.block_on(async {
            let mut times = Vec::with_capacity(REQUESTS);
            for request in 0..WARM_UP + REQUESTS {
                let start = Instant::now();
                self.produce(messages).await?;
                if request >= WARM_UP {
                    times.push(start.elapsed());
                }
            }
            times.sort_unstable();
            Ok(times[REQUESTS / 2])
        })
    }

    /// One request: `ProduceRequest { count: 1, size: 2 }` to `ProduceReply { count: 1, bytes: 2, sum: 3 }`.
    async fn produce(&mut self, messages: u32) -> Result<()> {
        let mut message = vec![0x08];
        varint(&mut message, messages);
        message.push(0x10);
        varint(&mut message, MESSAGE_BYTES);
        let mut framed = vec![0];
        framed.extend_from_slice(&u32::try_from(message.len())?.to_be_bytes());
        framed.extend_from_slice(&message);
        let request = Request::post(format!("http://{}/prodcon.Producer/Produce", self.address))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .body(Full::new(Bytes::from(framed)))?;
        self.sender.ready().await?;
        let reply = self.sender.send_request(request).await?;
        let head = reply.headers().clone();
        let body = reply.into_body().collect().await?;
        let said = body.trailers().unwrap_or(&head).get("grpc-status").cloned();
        if said.as_ref().is_none_or(|status| status != "0") {
            bail!("the call ended with {:?}", body.trailers().unwrap_or(&head));
        }
        let mut expected = vec![0x08];
        varint(&mut expected, messages);
        expected.push(0x10);
        varint(&mut expected, messages * MESSAGE_BYTES);
        ensure!(body.to_bytes().get(5..5 + expected.len()) == Some(&expected[..]), "the reply is another");
        Ok(())
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
