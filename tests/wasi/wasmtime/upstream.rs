//! Servers that the programs ask.

use std::convert::Infallible;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};

use hyper::body::Incoming;
use hyper::header::CONTENT_LENGTH;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

/// One that answers each request with its body, its method and its target, as that of wasmtime's tests does.
pub(crate) fn mirror() -> SocketAddr {
    serving(|stream| async move {
        let server = hyper::server::conn::http1::Builder::new();
        // The client may go away.
        let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
    })
}

/// The same over HTTP/2.
pub(crate) fn mirror2() -> SocketAddr {
    serving(|stream| async move {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Incoming>, Infallible> {
    let mut response = Response::builder()
        .header("x-wasmtime-test-method", request.method().as_str())
        .header("x-wasmtime-test-uri", request.uri().to_string());
    if let Some(length) = request.headers().get(CONTENT_LENGTH) {
        response = response.header(CONTENT_LENGTH, length);
    }
    Ok(response.body(request.into_body()).expect("a response"))
}

/// Serves connections on a thread of its own, until the process ends.
fn serving<F: Future<Output = ()> + Send + 'static>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    listener.set_nonblocking(true).expect("a listener");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
    });
    address
}
