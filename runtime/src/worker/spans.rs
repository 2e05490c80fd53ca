//! What a collector learns of a request on its way through a worker: where its time went, as parts of its span; and the spans of calls.
//!
//! The parts are those that are counted and timed in numbers (`metrics`): waiting for a worker, getting a sandbox, running.

use std::sync::Arc;
use std::time::Instant;

use crate::host::CallFailure;
use crate::invoke::function::Function;
use crate::invoke::{Invocation, Times};
use crate::memo::How;
use crate::outcome::Failure;
use crate::reply::Record;
use crate::telemetry::{Kind, Span, Trace};
use crate::txn::held::Held;

/// A request that is over.
pub(super) struct Over<'a> {
    function: &'a Function,
    /// Whether another function called it; where a client did, the request's span is made where that is answered.
    is_call: bool,
    arrived: Instant,
    end: Instant,
    failure: Option<&'a Failure>,
}

impl<'a> Over<'a> {
    pub(super) fn of(invocation: &'a Invocation, end: Instant, failure: Option<&'a Failure>) -> Over<'a> {
        let (function, is_call, arrived) = (&*invocation.function, invocation.identity.is_call(), invocation.times.arrived);
        Over { function, is_call, arrived, end, failure }
    }

    /// Hands in what is known of one that has not begun.
    pub(super) fn tell_queued(&self, trace: &Trace) {
        if trace.is_wanted() {
            trace.part("queue", [self.arrived, self.end], |span| self.fail(span));
            self.tell_call(trace);
        }
    }

    /// The same of one that has.
    pub(super) fn tell(&self, trace: &Trace, times: &Times, record: &Record) {
        if !trace.is_wanted() {
            return;
        }
        let Times { taken, ready, instantiated, .. } = *times;
        trace.part("queue", [self.arrived, taken], |_| {});
        trace.part("instantiate", [ready.checked_sub(instantiated).unwrap_or(taken), ready], |_| {});
        trace.part("run", [ready, self.end], |span| {
            span.set("faas.name", self.function.name().to_owned());
            span.set("faas.invocation_id", record.sequence.to_string());
            span.set("sledge.host_calls", u64::from(record.host_calls));
            span.set("sledge.phase", u64::from(record.phase));
            for (name, time) in
                [("sledge.ready_us", record.ready), ("sledge.running_us", record.running), ("sledge.blocked_us", record.blocked)]
            {
                span.set(name, time.as_micros() as u64);
            }
            self.fail(span);
        });
        self.tell_call(trace);
    }

    /// The same of one that was answered without a run, after a worker had taken it.
    pub(super) fn tell_answered(&self, trace: &Trace, taken: Instant, how: How) {
        if trace.is_wanted() {
            trace.part("queue", [self.arrived, taken], |_| {});
            if how == How::Collapsed {
                trace.part("collapsed", [taken, self.end], |_| {});
            }
            self.tell_call(trace);
        }
    }

    /// Hands in for how long, since it was taken, a worker waited for the store to confirm an answer.
    pub(super) fn tell_checked(&self, trace: &Trace, taken: Instant) {
        if trace.is_wanted() {
            trace.part("check", [taken, self.end], |_| {});
        }
    }

    fn tell_call(&self, trace: &Trace) {
        if self.is_call {
            call(trace, self.function.name(), [self.arrived, self.end], |span| {
                span.set("sledge.tenant", self.function.labels.tenant.clone());
                self.fail(span);
            });
        }
    }

    fn fail(&self, span: &mut Span) {
        if let Some(failure) = self.failure {
            span.fail(failure.code(), failure.to_string());
        }
    }
}

/// Hands in what is known of a call that was begun before it was made, when it is adopted.
pub(super) fn tell_later(
    held: &Held,
    (invocation, end, failure): (&Invocation, Instant, Option<&Failure>),
    trace: &Arc<Trace>,
    record: Record,
) {
    if !trace.is_wanted() {
        return;
    }
    let (function, arrived, times) = (Arc::clone(&invocation.function), invocation.times.arrived, invocation.times);
    let (failure, trace) = (failure.cloned(), Arc::clone(trace));
    held.put(Box::new(move || {
        Over { function: &function, is_call: true, arrived, end, failure: failure.as_ref() }.tell(&trace, &times, &record);
    }));
}

/// Hands in a call that was not even admitted.
pub(super) fn tell_refused(trace: &Trace, callee: &str, failure: &CallFailure) {
    let now = Instant::now();
    call(trace, callee, [now, now], |span| match failure {
        CallFailure::TooDeep => span.fail("too_deep", "too many functions wait for each other"),
        CallFailure::Failed(failure) => span.fail(failure.code(), failure.to_string()),
    });
}

fn call(trace: &Trace, callee: &str, times: [Instant; 2], more: impl FnOnce(&mut Span)) {
    if trace.is_wanted() {
        trace.end(format!("call {callee}").into(), Kind::Internal, times, |span| {
            span.set("faas.trigger", "other");
            span.set("faas.name", callee.to_owned());
            more(span);
        });
    }
}
