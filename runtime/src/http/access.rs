//! The access log: ids of requests, and a line in the log for each. Off unless the operator wants it: both cost something.

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};

use super::router::Place;
use crate::grpc::STATUSES;
use crate::telemetry::TraceId;

/// By what a request is known in the logs of all servers that it passes.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that a client may give.
const ID_BYTES_MAX: usize = 128;
/// What of a path is logged.
const PATH_BYTES_MAX: usize = 1_000;

/// What is known of a request when it comes.
#[derive(Debug)]
pub(super) struct Seen {
    id: HeaderValue,
    method: Method,
    path: String,
    version: Version,
}

impl Seen {
    pub(super) fn of(request: &Request<Incoming>) -> Seen {
        let given = request.headers().get(&REQUEST_ID).filter(|id| is_good(id.as_bytes()));
        let mut path = request.uri().path().to_owned();
        // Paths are ASCII here: hyper has checked them.
        path.truncate(path.floor_char_boundary(PATH_BYTES_MAX));
        let (method, version) = (request.method().clone(), request.version());
        Seen { id: given.cloned().unwrap_or_else(new_id), method, path, version }
    }

    /// By what the request is known.
    pub(super) fn id(&self) -> Arc<str> {
        self.id.to_str().unwrap_or_default().into()
    }

    pub(super) fn mark<B>(&self, response: &mut Response<B>) {
        response.headers_mut().insert(REQUEST_ID, self.id.clone());
    }
}

/// A line, but for what is known last.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) seen: Seen,
    pub(super) status: StatusCode,
    pub(super) begin: Instant,
    pub(super) trace: Option<TraceId>,
}

impl Line {
    /// Writes it. `grpc`: the number of gRPC's status, if the request came by that.
    pub(super) fn log(&self, place: Option<&Place>, bytes: u64, grpc: Option<usize>) {
        let Line { seen: Seen { id, method, path, version }, status, begin, trace } = self;
        let function = place.map(|place| place.labels().function.as_str());
        let took_us = begin.elapsed().as_micros() as u64;
        let (id, status) = (id.to_str().unwrap_or_default(), status.as_u16());
        let trace_id = trace.map(tracing::field::display);
        let grpc_status = grpc.and_then(|status| STATUSES.get(status));
        tracing::info!(
            target: "sledge::access", id, trace_id, %method, path, ?version, status, grpc_status, bytes, function, took_us
        );
    }
}

fn is_good(id: &[u8]) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// 128 random bits.
fn new_id() -> HeaderValue {
    let mut bytes = [0; 16];
    // Where the system has no random numbers, ids are zero: nothing depends on them.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    let text = format!("{:032x}", u128::from_ne_bytes(bytes));
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_break_a_line_are_not_taken() {
        assert!(is_good(b"abc-1/2"));
        for id in [&b""[..], b"a b", b"a\tb", b"\xff", &[b'x'; 129]] {
            assert!(!is_good(id), "{id:?}");
        }
        assert_ne!(new_id(), new_id());
    }
}
