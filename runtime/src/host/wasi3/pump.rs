//! Bytes that the host passes on by itself, because the component gave a stream of the host to the host.

use std::any::Any;
use std::sync::Arc;

use super::ends::{End, Outcome, Sink, Source};
use crate::host::canonical::Subject;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::streams::{Content, read_then, room, write_then};
use crate::host::{Call, Effect, Flat, Stop};

/// What the component got from the host and has given back.
#[derive(Debug)]
pub(super) enum Taken {
    /// A stream of bytes.
    Source(Arc<Source>),
    /// Anything else.
    Other,
}

impl Taken {
    pub(super) fn of(end: Arc<dyn End>) -> Taken {
        let any: Arc<dyn Any + Send + Sync> = end;
        any.downcast().map_or(Taken::Other, Taken::Source)
    }
}

/// Passes on what comes from `source` to the output stream `to`, while the component does something else; `then` goes on when that has ended. Either may
/// fail. The invocation goes on until then, if it `is_awaited`.
///
/// # Errors
/// A trap, when the invocation has too many operations.
pub(super) fn begin(
    call: &mut Call<'_>,
    source: Arc<Source>,
    to: u32,
    is_awaited: bool,
    then: impl FnOnce(&mut Call<'_>, Result<(), Fault>) -> Result<(), Stop> + Send + 'static,
) -> Result<(), Stop> {
    call.go_on_alone(Effect::Stream, is_awaited, move |call| step(call, source, to, then))
}

/// What the component writes to the stream of that number goes to the output stream `to`, which is dropped with its end. What the host passes on by itself is awaited.
///
/// # Errors
/// A trap, when there are too many.
pub(super) fn take(call: &mut Call<'_>, number: u32, to: u32, outcome: Arc<Outcome>) -> Result<(), Stop> {
    match call.taken(number).map(Taken::of) {
        None => call.share(number, Arc::new(Sink { stream: to, outcome })),
        Some(Taken::Source(source)) => begin(call, source, to, true, move |call, result| {
            outcome.end(result);
            call.context.ports.drop_resource(to)
        }),
        // There is nothing to write.
        Some(Taken::Other) => {
            outcome.end(Ok(()));
            call.context.ports.drop_resource(to)
        }
    }
}

/// Passes on one piece.
fn step(
    call: &mut Call<'_>,
    source: Arc<Source>,
    to: u32,
    then: impl FnOnce(&mut Call<'_>, Result<(), Fault>) -> Result<(), Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let room = room(call, to)?;
    if room == 0 {
        return Err(call.until_ready(&[Subject::Of(to)], move |call| step(call, source, to, then)));
    }
    read_then(call, source.stream, room as u64, true, move |call, result| match result {
        Ok(bytes) => {
            let count = bytes.len();
            write_then(call, to, Content::Given(bytes), 0, count, move |call, result| match result {
                // Not from here: however much there is, the stack stays as it is.
                Ok(()) => Err(call.wait(std::future::ready(()), move |call, ()| step(call, source, to, then))),
                Err(fault) => end(call, &source, Err(fault), then),
            })
        }
        Err(Fault::Closed) => end(call, &source, Ok(()), then),
        Err(fault) => end(call, &source, Err(fault), then),
    })
}

fn end(
    call: &mut Call<'_>,
    source: &Source,
    result: Result<(), Fault>,
    then: impl FnOnce(&mut Call<'_>, Result<(), Fault>) -> Result<(), Stop>,
) -> Result<Flat, Stop> {
    source.outcome.end(result);
    source.close(call)?;
    then(call, result)?;
    Ok(Flat::NONE)
}
