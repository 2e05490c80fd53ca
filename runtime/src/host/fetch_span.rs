//! The span of a request to another server, as OpenTelemetry's semantic conventions for HTTP clients want it, and the header that makes what happens
//! there a part of it. The query is left out of what is told: secrets stand in it.

use std::sync::Arc;
use std::time::Instant;

use hyper::{Method, Request, Uri};

use super::fetch::Answered;
use crate::telemetry::span::{name, short};
use crate::telemetry::{SpanContext, SpanId, Trace};
use crate::upstream::{Failure, host_and_port};

/// A request that is under way. Where it is dropped, its function does not wait for it any more.
pub(super) struct ClientSpan {
    trace: Arc<Trace>,
    own: SpanContext,
    parent: SpanId,
    begin: Instant,
    /// None where spans are not wanted, or it was handed in.
    asked: Option<Box<(Method, Uri)>>,
}

impl ClientSpan {
    /// Begins it, and says so to the other server. A function that makes spans of its own in this trace has said which of them this belongs to.
    pub(super) fn begin<B>(trace: &Arc<Trace>, request: &mut Request<B>) -> ClientSpan {
        let of_function = SpanContext::of(request.headers()).filter(|context| context.trace == trace.context().trace);
        let own = trace.beside();
        own.inject(request.headers_mut());
        let asked = trace.is_wanted().then(|| Box::new((request.method().clone(), request.uri().clone())));
        let parent = of_function.map_or(trace.context().span, |context| context.span);
        ClientSpan { trace: Arc::clone(trace), own, parent, begin: Instant::now(), asked }
    }

    /// There is the head of a response, or there will be none.
    pub(super) fn end(mut self, answered: &Answered) {
        self.hand_in(Some(answered));
    }

    fn hand_in(&mut self, answered: Option<&Answered>) {
        let Some(asked) = self.asked.take() else { return };
        let (method, uri) = *asked;
        self.trace.asked(&self.own, self.parent, name(&method, None), [self.begin, Instant::now()], |span| {
            span.set_method(&method);
            let whole = uri.to_string();
            span.set("url.full", short(whole.split('?').next().unwrap_or_default()));
            if let Some((host, port)) = host_and_port(&uri) {
                span.set_server(host, Some(port));
            }
            match answered {
                Some(Ok(response)) => {
                    let status = response.status();
                    span.set("http.response.status_code", status.as_u16());
                    if status.is_client_error() || status.is_server_error() {
                        span.fail(status.as_u16().to_string(), "");
                    }
                }
                Some(Err(failure)) => span.fail(kind(failure), short(&failure.to_string())),
                None => span.fail("cancelled", "the caller has gone"),
            }
        });
    }
}

impl Drop for ClientSpan {
    fn drop(&mut self) {
        self.hand_in(None);
    }
}

/// What a failure is called, in one word.
const fn kind(failure: &Failure) -> &'static str {
    match failure {
        Failure::NotAllowed { .. } | Failure::AddressNotAllowed { .. } => "not_allowed",
        Failure::Unreachable { .. } => "unreachable",
        Failure::Timeout(_) | Failure::ConnectTimeout => "timeout",
        Failure::Reset(_) => "reset",
        Failure::NotRecorded { .. } => "not_recorded",
        Failure::Broken(_) => "broken",
    }
}
