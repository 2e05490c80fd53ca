//! What `sledge` is measured against: the same HTTP server with handlers in Rust, compiled in, and no sandbox.
//!
//! One thread; the process is pinned by whoever starts it. Prints `listening on http://ADDRESS`, as `sledge serve` does, and ends with
//! its standard input.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::Result;
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

fn main() -> Result<()> {
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
            tokio::task::spawn_local(serve(stream));
        }
    })
}

async fn serve(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    // A connection that ends early is the client's affair.
    let _ = builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.uri().path() {
        "/ping" => Bytes::from_static(b"p"),
        "/echo" => request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default(),
        _ => {
            let mut response = Response::new(Full::default());
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        }
    };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok(response)
}
