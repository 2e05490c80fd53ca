//! One HTTP/1.1 connection that is kept alive, over hyper, used from ordinary (blocking) code.
//!
//! The runtime lives in the client and has one thread, the caller's: a request is timed from the call to
//! the reply's last byte, and nothing else runs in between.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// Longest that connecting or one request may take.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Largest reply that is read, in bytes.
pub const REPLY_BYTES_MAX: usize = 64 << 20;

/// A reply, whatever its status.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its whole body.
    pub body: Bytes,
    /// From the call to the body's last byte.
    pub elapsed: Duration,
}

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
}

impl Client {
    /// Connects to `address`.
    ///
    /// # Errors
    ///
    /// If nothing answers there within [`TIMEOUT`].
    pub fn connect(address: SocketAddr) -> Result<Client> {
        let runtime = Builder::new_current_thread().enable_all().build().context("cannot start the client's runtime")?;
        let sender = runtime
            .block_on(async { tokio::time::timeout(TIMEOUT, open(address)).await })
            .with_context(|| format!("no connection to {address} within {TIMEOUT:?}"))?
            .with_context(|| format!("cannot connect to {address}"))?;
        Ok(Client { runtime, sender, address })
    }

    /// Sends `body` to `route` by POST, with `headers` beside the usual ones, and reads the whole reply.
    ///
    /// # Errors
    ///
    /// If the connection breaks or the reply does not arrive within [`TIMEOUT`].
    pub fn post(&mut self, route: &str, body: &Bytes, headers: &[(&'static str, &'static str)]) -> Result<Reply> {
        let mut request = Request::post(route).header(HOST, self.address.to_string());
        request = request.header(CONTENT_TYPE, "application/octet-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.clone())).context("cannot form the request")?;
        let sender = &mut self.sender;
        let start = Instant::now();
        let reply = self
            .runtime
            .block_on(async { tokio::time::timeout(TIMEOUT, exchange(sender, request)).await })
            .with_context(|| format!("POST {route}: no reply within {TIMEOUT:?}"))?
            .with_context(|| format!("POST {route}"))?;
        Ok(Reply { elapsed: start.elapsed(), ..reply })
    }
}

async fn open(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its errors reach the requests; it ends with the runtime.
    tokio::spawn(connection);
    Ok(sender)
}

async fn exchange(sender: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> Result<Reply> {
    sender.ready().await.context("the server closed the connection")?;
    let (head, body) = sender.send_request(request).await.context("the request was not answered")?.into_parts();
    let body = Limited::new(body, REPLY_BYTES_MAX)
        .collect()
        .await
        .map_err(|error| anyhow::anyhow!("the reply broke off: {error}"))?
        .to_bytes();
    Ok(Reply { status: head.status, headers: head.headers, body, elapsed: Duration::ZERO })
}
