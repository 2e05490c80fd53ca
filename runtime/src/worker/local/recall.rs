//! Answers without a sandbox, from the table of a function, and what runs leave there.

use std::time::{Duration, Instant};

use super::Worker;
use crate::host::EffectTrace;
use crate::invoke::Invocation;
use crate::invoke::driver::{Driver, Remains};
use crate::invoke::function::Function;
use crate::kv::Space;
use crate::memo::rule::Ended;
use crate::memo::{Asked, Look};
use crate::reply::{Content, Reply};
use crate::worker::spans::Over;

/// What a run was asked and did, for the table.
pub(super) struct Ran {
    asked: Box<Asked>,
    trace: EffectTrace,
    has_trailers: bool,
    was_refused_memory: bool,
}

impl Ran {
    /// That of one which is over; none where it was not watched.
    pub(super) fn of(asked: Box<Asked>, driver: &mut Driver, has_trailers: bool) -> Option<Ran> {
        let trace = driver.take_trace()?;
        Some(Ran { asked, trace, has_trailers, was_refused_memory: driver.sandbox().refusal().is_some() })
    }
}

impl Worker {
    /// Answers an invocation from its function's table, if it can. Else gives it back, with what its run is remembered under.
    pub(super) fn recall(
        &mut self,
        mut invocation: Box<Invocation>,
        now: Instant,
    ) -> Option<(Box<Invocation>, Option<Box<Asked>>)> {
        // What is a part of another transaction reads what that has written.
        let memo = invocation.function.memo.as_ref().filter(|_| invocation.joins.is_none());
        let Some(memo) = memo else { return Some((invocation, None)) };
        let (function, input) = (&invocation.function, &invocation.input);
        let look = memo.look(&input.body, input.head.as_deref(), function.kv.as_ref(), |event| {
            self.shard.note(function, |row| row.remembered(event));
        });
        let entry = match look {
            Look::Hit(entry) => entry,
            Look::Run(asked) => return Some((invocation, Some(asked))),
            Look::Bypass => return Some((invocation, None)),
        };
        tracing::debug!(target: "sledge::request", function = function.name(), "answered from the table");
        if let Some(trace) = invocation.trace.take() {
            Over::of(&invocation, now, None).tell_queued(&trace);
        }
        invocation.times.taken = now;
        let counts = invocation.reply.end(&Ok(()), &mut None) || invocation.identity.is_call();
        let queued = invocation.times.queued();
        self.shard.note(&invocation.function, |row| {
            row.queue.observe(queued);
            if counts {
                row.ended(None);
            }
        });
        let record = invocation.record();
        let (result, head) = (Ok(Content::Whole(entry.body.clone())), Some(Box::new(entry.head.clone())));
        let reply = Reply { result, head, trailers: None, queued, ran: Duration::ZERO, record };
        self.answer_with(invocation.reply.send(reply));
        None
    }

    /// Leaves what a run was asked, did and wrote in its function's table.
    pub(super) fn remember(&self, function: &Function, ran: &Ran, remains: &Remains<Content>, ended_well: bool) {
        let Some(memo) = &function.memo else { return };
        let ended = Ended {
            content: Some(&remains.reply).filter(|_| ended_well),
            head: remains.head.as_deref(),
            has_trailers: ran.has_trailers,
            was_refused_memory: ran.was_refused_memory,
            is_remote: matches!(function.kv, Some(Space::Redis(_))),
        };
        memo.learn(&ran.asked, &ran.trace, &ended, |event| self.shard.note(function, |row| row.remembered(event)));
    }
}
