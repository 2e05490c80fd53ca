//! One connection's life: HTTP/1.1 with keep-alive, until either side closes it or the server stops.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::linger::Lingering;
use super::{Door, Open, request};

/// How long a client may take to send a request's head, or to begin the next one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves a connection until it is closed. When `stop` changes, it is closed as soon as no request is being answered.
pub async fn serve(door: Rc<Door>, stream: TcpStream, mut stop: watch::Receiver<bool>) {
    let _open = Open::new(Rc::clone(&door));
    // Replies are written at once; delaying small ones gains nothing.
    let _ = stream.set_nodelay(true);
    let linger = Rc::new(Cell::new(false));
    let service = service_fn(|request: Request<Incoming>| {
        let (door, linger) = (Rc::clone(&door), Rc::clone(&linger));
        async move {
            let has_body = !request.body().is_end_stream();
            let response = request::answer(&door, request).await;
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
    let result = tokio::select! {
        biased;
        result = connection.as_mut() => result,
        _ = stop.wait_for(|stop| *stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
