//! What `sledge` is measured against: the same HTTP server with handlers in Rust, compiled in, and no sandbox.
//!
//! What it is given as NAME=PROGRAM is a program of its own, which it starts anew for each request to /NAME: what runtimes without sandboxes
//! do.
//!
//! One thread; the process is pinned by whoever starts it. Prints `listening on http://ADDRESS`, as `sledge serve` does, and ends with
//! its standard input.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

/// Programs by their paths.
type Programs = HashMap<String, PathBuf>;

fn main() -> Result<()> {
    let mut programs = Programs::new();
    for argument in std::env::args().skip(1) {
        let (name, program) = argument.split_once('=').with_context(|| format!("expected is NAME=PROGRAM, not {argument}"))?;
        programs.insert(format!("/{name}"), PathBuf::from(program));
    }
    let programs = Rc::new(programs);
    // Whoever started this is gone when standard input ends.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let runtime = Builder::new_current_thread().enable_all().build_local(tokio::runtime::LocalOptions::default())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        println!("listening on http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::task::spawn_local(serve(stream, Rc::clone(&programs)));
        }
    })
}

async fn serve(stream: TcpStream, programs: Rc<Programs>) {
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    // A connection that ends early is the client's affair.
    let _ = builder
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service_fn(|request| answer(request, &programs)))
        .await;
}

async fn answer(request: Request<Incoming>, programs: &Programs) -> Result<Response<Full<Bytes>>, Infallible> {
    let refused = |status| {
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        Ok(response)
    };
    let program = programs.get(request.uri().path()).cloned();
    let body = match request.uri().path() {
        "/ping" => Bytes::from_static(b"p"),
        "/echo" => request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default(),
        _ => match program {
            None => return refused(StatusCode::NOT_FOUND),
            Some(program) => {
                let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                // A thread for each process: they wait for its pipes.
                match tokio::task::spawn_blocking(move || run(&program, &body)).await {
                    Ok(Ok(reply)) => reply,
                    Ok(Err(error)) => {
                        eprintln!("{error:#}");
                        return refused(StatusCode::INTERNAL_SERVER_ERROR);
                    }
                    Err(_) => return refused(StatusCode::INTERNAL_SERVER_ERROR),
                }
            }
        },
    };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok(response)
}

/// Starts a process, gives it the body and takes its reply.
fn run(program: &Path, body: &[u8]) -> Result<Bytes> {
    let name = program.display();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name} does not start"))?;
    // All that read do so before they write. Who answers without reading has closed the pipe.
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
