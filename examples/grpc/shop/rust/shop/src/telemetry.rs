//! A line in the log for each request, and what is passed on from call to call: the request's number and its deadline.
//!
//! [`Layer`] is around a server. It keeps both where [`pass_on`], around each client, finds them, and answers with the number, so that a customer can say it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Request, Response};
use tonic::body::Body;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::Status;
use tracing::Level;

/// The metadata that has a request's number.
pub const REQUEST_ID: &str = "x-request-id";

tokio::task_local! {
    static CURRENT: Current;
}

/// What is known of the request that a task answers.
#[derive(Clone)]
struct Current {
    id: HeaderValue,
    deadline: Option<Instant>,
}

impl Current {
    fn of(headers: &HeaderMap) -> Current {
        let new =
            || HeaderValue::from_str(&format!("{:016x}", rand::random::<u64>())).unwrap_or(HeaderValue::from_static("none"));
        let id = headers.get(REQUEST_ID).cloned().unwrap_or_else(new);
        let timeout = headers.get("grpc-timeout").and_then(|value| timeout(value.to_str().ok()?));
        Current { id, deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)) }
    }
}

/// A timeout as gRPC writes it: at most eight digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: u64 = if digits.len() <= 8 { digits.parse().ok()? } else { return None };
    Some(match unit {
        "H" => Duration::from_secs(count * 3_600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Writes lines of this level and above: `LOG`, one of error, warn, info (the default), debug and trace.
pub fn begin() {
    let level = crate::variable("LOG", "info").parse().unwrap_or(Level::INFO);
    tracing_subscriber::fmt().with_max_level(level).with_target(false).with_ansi(false).with_writer(std::io::stderr).init();
}

/// A client's side: what is called learns the number and how much time is left.
pub fn pass_on(mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
    let Ok(current) = CURRENT.try_with(Clone::clone) else { return Ok(request) };
    if let Ok(id) = current.id.as_bytes().try_into() {
        request.metadata_mut().insert(REQUEST_ID, id);
    }
    if let Some(deadline) = current.deadline {
        match deadline.checked_duration_since(Instant::now()) {
            Some(left) => request.set_timeout(left),
            None => return Err(Status::deadline_exceeded("no time is left for the call")),
        }
    }
    Ok(request)
}

/// The type of a client's connection with [`pass_on`].
pub type Traced = InterceptedService<Channel, fn(tonic::Request<()>) -> Result<tonic::Request<()>, Status>>;

/// A connection with [`pass_on`].
pub fn traced(channel: Channel) -> Traced {
    InterceptedService::new(channel, pass_on)
}

/// A server's side.
#[derive(Clone, Copy, Debug)]
pub struct Layer;

impl<S> tower::Layer<S> for Layer {
    type Service = Logged<S>;

    fn layer(&self, inner: S) -> Logged<S> {
        Logged { inner }
    }
}

/// A service that is logged.
#[derive(Clone, Debug)]
pub struct Logged<S> {
    inner: S,
}

impl<S> tower::Service<Request<Body>> for Logged<S>
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // What is ready is used now, its copy later.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let start = Instant::now();
        let current = Current::of(request.headers());
        let id = current.id.clone();
        let path = request.uri().path().to_owned();
        Box::pin(CURRENT.scope(current, async move {
            let mut reply = inner.call(request).await?;
            // A reply that is an error has no body, and its status in the head.
            let status = reply.headers().get("grpc-status").and_then(|status| status.to_str().ok()).unwrap_or("0");
            let id_text = id.to_str().unwrap_or_default();
            tracing::info!(
                method = path,
                status,
                duration_us = start.elapsed().as_micros() as u64,
                request = id_text,
                "answered"
            );
            reply.headers_mut().insert(REQUEST_ID, id);
            Ok(reply)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_units() {
        assert_eq!(timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(timeout("1n"), Some(Duration::from_nanos(1)));
        for text in ["", "m", "5", "123456789m", "-1m", "1é"] {
            assert_eq!(timeout(text), None, "{text}");
        }
    }
}
