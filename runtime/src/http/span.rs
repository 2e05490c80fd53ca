//! The span of a request, as OpenTelemetry's semantic conventions for HTTP servers want it. The query is left out, as it is of the log: secrets stand
//! in it.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{HOST, USER_AGENT};
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode, Version};

use super::router::Place;
use crate::grpc::STATUSES;
use crate::outcome::Failure;
use crate::telemetry::span::{name, short};
use crate::telemetry::{Kind, Span, Trace, Tracer};

/// A request that is under way. Where it is dropped, its client has gone.
#[derive(Debug)]
pub(super) struct ServerSpan {
    trace: Arc<Trace>,
    begin: Instant,
    place: OnceCell<Place>,
    /// None where spans are not wanted, or it was handed in.
    seen: Option<Box<Seen>>,
}

/// What is known of it when it comes.
#[derive(Debug)]
struct Seen {
    method: Method,
    path: String,
    scheme: &'static str,
    version: &'static str,
    authority: Option<Authority>,
    user_agent: Option<String>,
}

impl ServerSpan {
    pub(super) fn begin(tracer: &Arc<Tracer>, request: &Request<Incoming>, is_tls: bool, begin: Instant) -> ServerSpan {
        let trace = Trace::begin(tracer, request.headers());
        let seen = trace.is_wanted().then(|| Box::new(Seen::of(request, is_tls)));
        ServerSpan { trace, begin, place: OnceCell::new(), seen }
    }

    pub(super) const fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// What it is for.
    pub(super) fn routed(&self, place: Place) {
        // A request is routed once.
        let _ = self.place.set(place);
    }

    /// It is answered; `grpc`: with which number of gRPC's, if it came by that.
    pub(super) fn end(mut self, status: StatusCode, failure: Option<&Failure>, grpc: Option<usize>) {
        self.hand_in(Some(status), failure, grpc);
    }

    fn hand_in(&mut self, status: Option<StatusCode>, failure: Option<&Failure>, grpc: Option<usize>) {
        let Some(seen) = self.seen.take() else { return };
        let place = self.place.get();
        let name = name(&seen.method, place.map(Place::pattern));
        self.trace.end(name, Kind::Server, [self.begin, Instant::now()], |span| {
            if let Some(grpc) = grpc {
                put_call(span, &seen.path, grpc, failure);
            }
            seen.put(span);
            if let Some(place) = place {
                span.set("http.route", place.pattern().to_owned());
                span.set("faas.trigger", "http");
                span.set("faas.name", place.labels().function.clone());
                span.set("sledge.tenant", place.labels().tenant.clone());
            }
            if let Some(status) = status {
                span.set("http.response.status_code", status.as_u16());
            }
            match (status, failure) {
                _ if grpc.is_some() => {}
                // Mistakes of the client are none of ours.
                (Some(_), Some(failure)) if failure.status().is_client_error() => {}
                (Some(status), None) if !status.is_server_error() => {}
                (_, Some(failure)) => span.fail(failure.code(), failure.to_string()),
                (Some(status), None) => span.fail(status.as_u16().to_string(), ""),
                (None, None) => {}
            }
        });
    }
}

impl Drop for ServerSpan {
    fn drop(&mut self) {
        self.hand_in(None, Some(&Failure::Cancelled), None);
    }
}

/// What the conventions for gRPC servers want beside those for HTTP (1.45). The status tells whether it is an error, and 200 nothing.
fn put_call(span: &mut Span, path: &str, grpc: usize, failure: Option<&Failure>) {
    const ERRORS: [&str; 6] = ["UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"];
    let Some(name) = STATUSES.get(grpc).copied() else { return };
    span.set("rpc.system.name", "grpc");
    span.set("rpc.method", path.trim_start_matches('/').to_owned());
    span.set("rpc.status_code", name);
    if ERRORS.contains(&name) {
        span.fail(name, failure.map(Failure::to_string).unwrap_or_default());
    }
}

impl Seen {
    fn of(request: &Request<Incoming>, is_tls: bool) -> Seen {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let host = || text(&HOST).and_then(|host| host.parse().ok());
        Seen {
            method: request.method().clone(),
            path: short(request.uri().path()),
            scheme: if is_tls { "https" } else { "http" },
            version: match request.version() {
                Version::HTTP_10 => "1.0",
                Version::HTTP_2 => "2",
                _ => "1.1",
            },
            authority: request.uri().authority().cloned().or_else(host),
            user_agent: text(&USER_AGENT).map(short),
        }
    }

    fn put(self, span: &mut Span) {
        let Seen { path, scheme, version, authority, user_agent, .. } = self;
        span.set_method(&self.method);
        span.set("url.path", path);
        span.set("url.scheme", scheme);
        span.set("network.protocol.version", version);
        if let Some(authority) = authority {
            span.set_server(authority.host(), authority.port_u16());
        }
        if let Some(user_agent) = user_agent {
            span.set("user_agent.original", user_agent);
        }
    }
}
