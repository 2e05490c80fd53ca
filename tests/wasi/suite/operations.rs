//! Programs that are described by operations: started, written to, connected to, asked over HTTP, waited for.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use sledge_tests::http::Client;
use sledge_tests::process::{self, Timed};
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;

use crate::TIME_MAX;
use crate::endpoints::{self, ServerSpec};

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Operation {
    Run {
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
        root: Option<String>,
    },
    Wait {
        #[serde(default)]
        exit_code: i32,
    },
    Read {
        #[serde(default = "stdout")]
        id: String,
        #[serde(default)]
        payload: String,
    },
    Write {
        #[serde(default)]
        payload: String,
    },
    Connect {
        #[serde(default = "server")]
        id: String,
    },
    Send {
        id: String,
        #[serde(default)]
        payload: String,
    },
    Recv {
        id: String,
        #[serde(default)]
        payload: String,
    },
    Request {
        method: String,
        path: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        #[serde(default)]
        body: String,
        response: Response,
    },
    Kill {},
}

fn stdout() -> String {
    "stdout".to_owned()
}

fn server() -> String {
    "server".to_owned()
}

/// What a request has to be answered with.
#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
}

/// Everything that a socket may need in these programs: they use this machine only.
const SOCKET_HOSTS: [&str; 4] = ["127.0.0.0/8:1-65535", "[::1]:1-65535", "0.0.0.0/0:1-65535", "localhost:1-65535"];
const SOCKET_LISTEN: [&str; 4] = ["127.0.0.0/8:0-65535", "[::1]:0-65535", "0.0.0.0:0-65535", "[::]:0-65535"];

/// A command that runs.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<Timed<ChildStdout>>,
    stderr: BufReader<Timed<ChildStderr>>,
    connections: BTreeMap<String, TcpStream>,
}

impl Drop for Running {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

/// Carries out the operations of a command; `root` makes a folder that it is granted.
pub(crate) fn command(artifact: &Path, operations: &[Operation], root: impl Fn(&str) -> String) -> Result<(), String> {
    let mut running = None;
    for operation in operations {
        if let Operation::Run { args, env, root: folder } = operation {
            running = Some(start(artifact, args, env, folder.as_deref().map(&root)));
            continue;
        }
        running.as_mut().ok_or("nothing runs")?.perform(operation)?;
    }
    Ok(())
}

fn start(artifact: &Path, args: &[String], env: &BTreeMap<String, String>, folder: Option<String>) -> Running {
    let mut command = sledge_command(&["run"]);
    command.args(SOCKET_HOSTS.map(|entry| format!("--socket-host={entry}")));
    command.args(SOCKET_LISTEN.map(|entry| format!("--socket-listen={entry}")));
    for (name, value) in env {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    if let Some(folder) = folder {
        command.arg("--dir").arg(folder);
    }
    command.arg(artifact).arg("--").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let stdout = BufReader::new(Timed(child.stdout.take().expect("it is piped"), TIME_MAX));
    let stderr = BufReader::new(Timed(child.stderr.take().expect("it is piped"), TIME_MAX));
    Running { stdin: child.stdin.take(), child, stdout, stderr, connections: BTreeMap::new() }
}

impl Running {
    fn perform(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Wait { exit_code } => {
                drop(self.stdin.take());
                let status = process::wait(&mut self.child, TIME_MAX).ok_or("it does not end")?;
                let mut told = String::new();
                // What is no text says nothing.
                let _ = self.stdout.read_to_string(&mut told);
                let _ = self.stderr.read_to_string(&mut told);
                is(status.code(), Some(*exit_code)).map_err(|why| format!("{why}\n{told}"))
            }
            Operation::Read { id, payload } if id == "stderr" => read(&mut self.stderr, payload),
            Operation::Read { payload, .. } => read(&mut self.stdout, payload),
            Operation::Write { payload } => {
                let stdin = self.stdin.as_mut().ok_or("its input is closed")?;
                stdin.write_all(payload.as_bytes()).and_then(|()| stdin.flush()).map_err(|error| error.to_string())
            }
            Operation::Connect { id } => {
                let mut address = String::new();
                self.stdout.read_line(&mut address).map_err(|error| error.to_string())?;
                let stream = TcpStream::connect(address.trim()).map_err(|error| format!("{address}: {error}"))?;
                stream.set_read_timeout(Some(TIME_MAX)).expect("a time");
                self.connections.insert(id.clone(), stream);
                Ok(())
            }
            Operation::Send { id, payload } => {
                let stream = self.connections.get_mut(id).ok_or("no connection")?;
                stream.write_all(payload.as_bytes()).map_err(|error| error.to_string())
            }
            Operation::Recv { id, payload } => read(self.connections.get_mut(id).ok_or("no connection")?, payload),
            Operation::Run { .. } | Operation::Request { .. } | Operation::Kill {} => Err(format!("{operation:?} of a command")),
        }
    }
}

fn read(stream: &mut impl Read, payload: &str) -> Result<(), String> {
    let mut bytes = vec![0; payload.len()];
    stream.read_exact(&mut bytes).map_err(|error| format!("{payload:?} does not come: {error}"))?;
    is(String::from_utf8_lossy(&bytes).as_ref(), payload)
}

fn is<T: PartialEq + std::fmt::Debug>(got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{got:?}, not {expected:?}")) }
}

/// Carries out the operations of a service, which may ask these servers.
pub(crate) fn service(artifact: &Path, operations: &[Operation], servers: &[ServerSpec]) -> Result<(), String> {
    let (mut env, mut hosts) = (serde_json::Map::new(), vec!["nonexistent.invalid".to_owned()]);
    for spec in servers {
        let address = endpoints::start(spec).to_string();
        env.insert(format!("HTTP_SERVER_{}", spec.name.to_uppercase()), Value::from(address.clone()));
        hosts.push(address);
    }
    let methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
    let function = json!({
        "name": "service", "path": artifact, "route": "/*", "methods": methods, "env": env, "http_hosts": hosts, "deadline_ms": 20_000,
    });
    let server = Server::start(json!({ "workers": 1, "functions": [function] }));
    let mut requests = 0;
    for operation in operations {
        let Operation::Request { method, path, headers, body, response } = operation else { continue };
        requests += 1;
        let told = |why: String| format!("{method} {path}: {why}\n{}", server.log());
        let client = Client::new(server.address, Duration::from_secs(20));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let reply = client.try_request(method, path, body.as_bytes(), &headers).map_err(|error| told(error.to_string()))?;
        is(reply.status, response.status).map_err(told)?;
        is(reply.text().as_str(), response.body.as_str()).map_err(told)?;
        for (name, value) in &response.headers {
            is(reply.header(name), Some(value.as_str())).map_err(told)?;
        }
    }
    if requests == 0 { Err("there is no request among its operations".to_owned()) } else { Ok(()) }
}
