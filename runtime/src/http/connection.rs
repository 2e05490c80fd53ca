//! One connection's life: HTTP/1.1 with keep-alive, until either side closes it or the server stops.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::linger::Lingering;
use super::{Open, request};
use crate::scheduler::Phase;

/// How long a client may take to send a request's head, or to begin the next one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a connection is kept for one more request when the server stops: a client that is about to send one, or has sent it already, is
/// answered and told to close, instead of finding the connection closed.
const LAST_REQUEST: Duration = Duration::from_millis(100);

/// Serves a connection until it is closed. When `stop` changes, it is closed after the request that is being answered, or that comes soon.
pub async fn serve(open: Open, stream: TcpStream, mut stop: watch::Receiver<bool>) {
    let door = Rc::clone(open.door());
    // Replies are written at once; delaying small ones gains nothing.
    let _ = stream.set_nodelay(true);
    let linger = Rc::new(Cell::new(false));
    let service = service_fn(|request: Request<Incoming>| {
        let (door, linger) = (Rc::clone(&door), Rc::clone(&linger));
        async move {
            let has_body = !request.body().is_end_stream();
            let mut response = request::answer(&door, request).await;
            if door.crew.phase() != Phase::Serving {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // Perhaps the body was not read: then hyper closes the connection while the client still sends.
            if has_body && response.status() != StatusCode::OK {
                linger.set(true);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let io = TokioIo::new(Lingering::new(stream, Rc::clone(&linger)));
    let builder = http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).serve_connection(io, service);
    let mut connection = pin!(builder);
    let stopping = async {
        let _ = stop.wait_for(|stop| *stop).await;
        tokio::time::sleep(LAST_REQUEST).await;
    };
    let result = tokio::select! {
        biased;
        result = connection.as_mut() => result,
        () = stopping => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
