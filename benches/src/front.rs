//! HTTP/1.1 over hyper on one thread: what servers that `sledge` is measured against have in front.

use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};

/// Answers requests with `answer`, a body or else a status: [`serve_responses`].
///
/// # Errors
///
/// If it cannot listen.
pub fn serve(answer: impl AsyncFn(Request<Incoming>) -> Result<Bytes, StatusCode> + 'static) -> Result<()> {
    serve_responses(async move |request| response(answer(request).await))
}

/// Answers requests on a port of this machine that the system chooses.
///
/// Prints `listening on http://ADDRESS`, as `sledge serve` does; the process ends with its standard input. The process that starts it pins it to a
/// core.
///
/// # Errors
///
/// If it cannot listen.
pub fn serve_responses<B>(answer: impl AsyncFn(Request<Incoming>) -> Response<B> + 'static) -> Result<()>
where
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    // Standard input ends when the process that started this one has gone.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let answer = Rc::new(answer);
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        println!("listening on http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            let answer = Rc::clone(&answer);
            tokio::task::spawn_local(async move {
                let _ = stream.set_nodelay(true);
                let service = service_fn(async |request| Ok::<_, Infallible>(answer(request).await));
                // A connection that ends early is the client's affair.
                let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// The whole body; what has come of it if the client has gone.
pub async fn body(request: Request<Incoming>) -> Bytes {
    request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default()
}

fn response(answer: Result<Bytes, StatusCode>) -> Response<Full<Bytes>> {
    match answer {
        Ok(body) => {
            let mut response = Response::new(Full::new(body));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            response
        }
        Err(status) => {
            let mut response = Response::new(Full::default());
            *response.status_mut() = status;
            response
        }
    }
}
