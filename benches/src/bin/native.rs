//! What `sledge` is measured against: the same HTTP server with handlers in Rust, compiled in, and no sandbox.
//!
//! What it is given as NAME=PROGRAM is a program of its own, which it starts anew for each request to /NAME: what runtimes without sandboxes
//! do. At /examples/NAME are handlers that do what the function of that name in `examples/` does.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use sledge_benches::front;

/// Programs by their paths.
type Programs = HashMap<String, PathBuf>;

fn main() -> Result<()> {
    let mut programs = Programs::new();
    for argument in std::env::args().skip(1) {
        let (name, program) = argument.split_once('=').with_context(|| format!("expected is NAME=PROGRAM, not {argument}"))?;
        programs.insert(format!("/{name}"), PathBuf::from(program));
    }
    front::serve(async move |request| answer(request, &programs).await)
}

async fn answer(request: Request<Incoming>, programs: &Programs) -> Result<Bytes, StatusCode> {
    if let Some(program) = programs.get(request.uri().path()).cloned() {
        let body = front::body(request).await;
        // A thread for each process: they wait for its pipes.
        return match tokio::task::spawn_blocking(move || run(&program, &body)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => {
                eprintln!("{error:#}");
                Err(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
        };
    }
    match request.uri().path() {
        "/ping" => Ok(Bytes::from_static(b"p")),
        "/examples/ping" => Ok(Bytes::from_static(b"pong\n")),
        "/echo" | "/examples/echo" => Ok(front::body(request).await),
        "/examples/fibonacci" => {
            let body = front::body(request).await;
            let index = std::str::from_utf8(&body).ok().and_then(|text| text.trim_end().parse().ok());
            let index = index.filter(|index| *index <= FIBONACCI_MAX).ok_or(StatusCode::BAD_REQUEST)?;
            Ok(Bytes::from(format!("{}\n", fibonacci(index))))
        }
        _ => Err(StatusCode::NOT_FOUND),
    }
}

/// As in `examples/fibonacci`.
const FIBONACCI_MAX: u32 = 50;

/// In the slowest way, as there.
fn fibonacci(index: u32) -> u64 {
    if index < 2 { u64::from(index) } else { fibonacci(index - 1) + fibonacci(index - 2) }
}

/// Starts a process, gives it the body and takes its reply.
fn run(program: &Path, body: &[u8]) -> Result<Bytes> {
    let name = program.display();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name} does not start"))?;
    // All programs that read do so before they write. One that answers without reading has closed the pipe.
    match child.stdin.take().context("its input is piped")?.write_all(body) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(error).with_context(|| format!("{name} reads no input"));
        }
        _ => {}
    }
    let output = child.wait_with_output().with_context(|| format!("{name} cannot be waited for"))?;
    ensure!(output.status.success(), "{name} failed ({})", output.status);
    Ok(Bytes::from(output.stdout))
}
