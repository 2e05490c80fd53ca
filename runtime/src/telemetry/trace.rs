//! A request's place in its trace: what its parts, and what it asks of others, have as their parent.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hyper::header::HeaderMap;

use super::context::{SpanContext, SpanId};
use super::span::{Kind, Span};
use super::tracer::{self, Tracer};

/// A request, or a call of a function by another.
#[derive(Debug)]
pub struct Trace {
    tracer: Arc<Tracer>,
    /// Its own span.
    own: SpanContext,
    parent: Option<SpanId>,
    /// None where its spans are not wanted.
    clock: Option<Clock>,
}

/// One moment on both clocks. What belongs to one request has the same, so that a step of the system's clock disorders none of it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    at: Instant,
    unix_ns: u64,
}

impl Clock {
    fn now() -> Clock {
        #[expect(clippy::disallowed_methods, reason = "others read it on their clocks; durations are those of `Instant`")]
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { at: Instant::now(), unix_ns: since.as_nanos() as u64 }
    }

    fn unix_ns(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.at).as_nanos() as u64;
        let before = self.at.saturating_duration_since(at).as_nanos() as u64;
        self.unix_ns.saturating_add(after).saturating_sub(before)
    }
}

impl Trace {
    /// A request that came with these headers: a part of its client's trace, if they say so, or else the begin of a trace.
    #[must_use]
    pub fn begin(tracer: &Arc<Tracer>, headers: &HeaderMap) -> Arc<Trace> {
        let sender = SpanContext::of(headers);
        let parent = sender.as_ref().map(|sender| sender.span);
        let own = match sender {
            // The client that began the trace has decided.
            Some(sender) => SpanContext { span: tracer::span_id(), ..sender },
            None => {
                let trace = tracer::trace_id();
                SpanContext { trace, span: tracer::span_id(), sampled: tracer.samples(trace), state: None }
            }
        };
        let clock = own.sampled.then(Clock::now);
        Arc::new(Trace { tracer: Arc::clone(tracer), own, parent, clock })
    }

    /// Something that this one asks of another function.
    #[must_use]
    pub fn call(&self) -> Arc<Trace> {
        Arc::new(Trace { tracer: Arc::clone(&self.tracer), own: self.beside(), parent: Some(self.own.span), clock: self.clock })
    }

    /// Its span, for others.
    #[must_use]
    pub const fn context(&self) -> &SpanContext {
        &self.own
    }

    /// A new span of the same trace, for others.
    #[must_use]
    pub fn beside(&self) -> SpanContext {
        SpanContext { span: tracer::span_id(), ..self.own.clone() }
    }

    /// Whether its spans are wanted.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.clock.is_some()
    }

    /// Hands in its own span. `more` adds what is known of it; nothing happens where spans are not wanted.
    pub fn end(&self, name: Cow<'static, str>, kind: Kind, times: [Instant; 2], more: impl FnOnce(&mut Span)) {
        self.submit(&self.own, self.parent, name, kind, times, more);
    }

    /// Hands in a part of it.
    pub fn part(&self, name: impl Into<Cow<'static, str>>, times: [Instant; 2], more: impl FnOnce(&mut Span)) {
        if self.is_wanted() {
            self.submit(&self.beside(), Some(self.own.span), name.into(), Kind::Internal, times, more);
        }
    }

    /// Hands in the span `context`, with `parent`, of something that it asked of another server.
    pub fn asked(
        &self,
        context: &SpanContext,
        parent: SpanId,
        name: Cow<'static, str>,
        times: [Instant; 2],
        more: impl FnOnce(&mut Span),
    ) {
        self.submit(context, Some(parent), name, Kind::Client, times, more);
    }

    fn submit(
        &self,
        context: &SpanContext,
        parent: Option<SpanId>,
        name: Cow<'static, str>,
        kind: Kind,
        [begin, end]: [Instant; 2],
        more: impl FnOnce(&mut Span),
    ) {
        let Some(clock) = &self.clock else { return };
        let (begin_unix_ns, end_unix_ns) = (clock.unix_ns(begin), clock.unix_ns(end.max(begin)));
        let (trace, id, state) = (context.trace, context.span, context.state.clone());
        let attributes = Vec::with_capacity(12);
        let mut span = Span { trace, id, parent, state, name, kind, begin_unix_ns, end_unix_ns, attributes, error: None };
        more(&mut span);
        self.tracer.submit(span);
    }
}
