//! Bodies and trailers, both ways.
//!
//! ```text
//!   request.new, response.new   contents: stream<u8> --> Contents --> Outgoing     what the component writes (Written)
//!                               trailers: future<..> --> TrailersSaid --^
//!   consume-body                Arriving, the request's body --> Source --> stream<u8>
//!                               trailers                 --> TrailersToCome --> future<..>
//! ```
//!
//! A body that is written is complete when its stream is closed and its trailers are known. Where the component passes on a body that it got, the host does that
//! by itself.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::HeaderMap;

use super::fields::HttpFields;
use crate::component_trap::ComponentTrap;
use crate::host::canonical::{Own, Resource, Subject};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::http::error::CASES;
use crate::host::wasi2::http::incoming::{Arriving, FutureTrailers, Of};
use crate::host::wasi2::http::outgoing::{content_length, trailing};
use crate::host::wasi2::http::{ErrorCode, Outgoing};
use crate::host::wasi2::streams::{InputStream, OutputStream};
use crate::host::wasi3::ends::{ADDRESS, End, FaultCode, Moved, Outcome, Source, Told, Transfer, write};
use crate::host::wasi3::pump::{self, Taken};
use crate::host::{Call, Effect, Flat, HeadField, Input, Stop};
use crate::reply::Unfinished;

impl FaultCode for ErrorCode {
    fn of(fault: Fault) -> ErrorCode {
        if let Fault::Http(code) = fault { code } else { ErrorCode::ConnectionTerminated }
    }
}

/// What comes behind a body.
type Trailers = Result<Option<Arc<HeaderMap>>, ErrorCode>;

/// A body that is written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) outgoing: Arc<Outgoing>,
    /// What became of it.
    pub(super) outcome: Arc<Outcome>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The representation of what counts the bytes that are kept of it.
    kept: u32,
    /// Whether more may be written.
    is_open: bool,
    trailers: Option<Trailers>,
    /// Whether its message is on its way, which counts it from then on.
    is_begun: bool,
    /// What became of it.
    ended: Option<Result<(), Fault>>,
    /// Whether that is told: of a request's body when there is a response.
    is_settled: bool,
}

/// What is kept of a body until its message is on its way.
#[derive(Debug)]
struct Kept(Arc<Outgoing>);

impl Resource for Kept {
    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

impl Written {
    /// The body of a message with these headers.
    pub(super) fn new(call: &mut Call<'_>, headers: &HeaderMap, is_request: bool) -> Result<Arc<Written>, Stop> {
        // What is no length says nothing.
        let outgoing = Outgoing::new(is_request, content_length(headers).unwrap_or_default(), 0);
        let kept = call.context.ports.resources_mut().insert(Box::new(Kept(Arc::clone(&outgoing))), None)?;
        outgoing.belong_to(kept);
        let state =
            Mutex::new(State { kept, is_open: true, trailers: None, is_begun: false, ended: None, is_settled: !is_request });
        Ok(Arc::new(Written { outgoing, outcome: Arc::default(), state }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its contents are the stream of that number.
    pub(super) fn take_contents(self: &Arc<Self>, call: &mut Call<'_>, number: u32) -> Result<(), Stop> {
        match call.taken(number).map(Taken::of) {
            Some(Taken::Source(source)) => self.pass_on(call, source),
            Some(Taken::Other) => self.close(call, Ok(())),
            None => {
                let stream = self.stream(call)?;
                call.share(number, Arc::new(Contents { stream, written: Arc::clone(self) }))
            }
        }
    }

    /// Its contents are what comes from there.
    pub(super) fn pass_on(self: &Arc<Self>, call: &mut Call<'_>, source: Arc<Source>) -> Result<(), Stop> {
        let (stream, written) = (self.stream(call)?, Arc::clone(self));
        pump::begin(call, source, stream, false, move |call, result| {
            call.context.ports.drop_resource(stream)?;
            written.close(call, result)
        })
    }

    /// An output stream that leads there.
    fn stream(&self, call: &mut Call<'_>) -> Result<u32, Stop> {
        call.context.ports.resources_mut().insert(Box::new(OutputStream::Body(Arc::clone(&self.outgoing))), None)
    }

    /// Its trailers are the future of that number.
    pub(super) fn take_trailers(self: &Arc<Self>, call: &mut Call<'_>, number: u32) -> Result<(), Stop> {
        match call.taken(number) {
            None => call.share(number, Arc::new(TrailersSaid(Arc::clone(self)))),
            Some(end) => {
                let any: Arc<dyn Any + Send + Sync> = end;
                match any.downcast::<TrailersToCome>() {
                    Ok(to_come) => self.pass_trailers_on(call, to_come),
                    Err(_) => self.trail(call, Ok(None)),
                }
            }
        }
    }

    /// Its trailers are what comes there.
    pub(super) fn pass_trailers_on(self: &Arc<Self>, call: &mut Call<'_>, to_come: Arc<TrailersToCome>) -> Result<(), Stop> {
        let written = Arc::clone(self);
        call.go_on_alone(Effect::Head, false, move |call| {
            to_come.then(call, move |call, to_come, came| {
                to_come.close(call)?;
                written.trail(call, came.map(|map| (!map.is_empty()).then(|| Arc::new(map))))?;
                Ok(Flat::NONE)
            })
        })
    }

    /// No more is written.
    pub(super) fn close(&self, call: &mut Call<'_>, result: Result<(), Fault>) -> Result<(), Stop> {
        if let Err(fault) = result {
            return self.fail(call, fault);
        }
        self.state().is_open = false;
        self.finish(call)
    }

    /// This comes behind it.
    fn trail(&self, call: &mut Call<'_>, trailers: Trailers) -> Result<(), Stop> {
        self.state().trailers = Some(trailers);
        self.finish(call)
    }

    /// Ends it, if it is complete.
    fn finish(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        let trailers = {
            let mut state = self.state();
            if state.is_open {
                return Ok(());
            }
            state.trailers.take()
        };
        match trailers {
            None => Ok(()),
            Some(Err(code)) => self.fail(call, Fault::Http(code)),
            Some(Ok(trailers)) => {
                let ended = self.outgoing.end(Ok(trailers.as_deref().map(trailing)));
                self.end(call, ended.map_err(Fault::Http))
            }
        }
    }

    /// What is there of it is of no use.
    fn fail(&self, call: &mut Call<'_>, fault: Fault) -> Result<(), Stop> {
        // It is told what went wrong.
        let _ = self.outgoing.end(Err(Unfinished));
        self.end(call, Err(fault))
    }

    /// It has ended so.
    fn end(&self, call: &mut Call<'_>, result: Result<(), Fault>) -> Result<(), Stop> {
        let (is_begun, is_settled) = {
            let mut state = self.state();
            state.ended = Some(result);
            (state.is_begun, state.is_settled)
        };
        if is_settled || result.is_err() {
            self.outcome.end(result);
        }
        if is_begun { self.forget(call) } else { Ok(()) }
    }

    /// Its message is on its way.
    pub(super) fn begun(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        let has_ended = {
            let mut state = self.state();
            state.is_begun = true;
            state.ended.is_some()
        };
        if has_ended { self.forget(call) } else { Ok(()) }
    }

    /// The request that it belongs to has a response: what became of it can be told, now or when it ends.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        state.is_settled = true;
        if let Some(result) = state.ended {
            self.outcome.end(result);
        }
    }

    /// Its message goes nowhere.
    pub(super) fn abandon(&self, result: Result<(), Fault>) {
        self.outgoing.abandon();
        self.outcome.end(result);
    }

    /// It is not counted any more.
    pub(super) fn forget(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        let kept = std::mem::take(&mut self.state().kept);
        if kept == 0 { Ok(()) } else { call.context.ports.drop_resource(kept) }
    }
}

/// The host's end of the stream of a body that the component writes.
#[derive(Debug)]
struct Contents {
    /// The representation of the output stream.
    stream: u32,
    written: Arc<Written>,
}

impl End for Contents {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let stream = self.stream;
        // What cannot be written, as it is beyond the length that was said or the reader is gone, is the end of the body: its message does not wait for more.
        write(call, stream, transfer, move |call, fault| self.written.fail(call, fault))
    }

    fn close(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        call.context.ports.drop_resource(self.stream)?;
        self.written.close(call, Ok(()))
    }
}

/// The host's end of the future of the trailers that the component writes.
#[derive(Debug)]
struct TrailersSaid(Arc<Written>);

impl End for TrailersSaid {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let trailers = match verdict(call, transfer)? {
            // Behind the case of the result: its alignment is that of an `error-code`.
            Ok(payload) => match byte(call, payload)? {
                0 => Ok(None),
                1 => {
                    let handle = word(call, payload + 4)?;
                    Ok(Some(call.owned_of::<HttpFields>(handle)?.into_map()))
                }
                _ => return Err(ComponentTrap::Case.into()),
            },
            Err(code) => Err(code),
        };
        self.0.trail(call, trailers)?;
        Ok(Moved::Values(1).into())
    }
}

/// The host's end of the future in which a component says what it thinks of a body that it got: nothing depends on it.
#[derive(Debug)]
pub(super) struct Verdict;

impl End for Verdict {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let _said = verdict(call, transfer)?;
        Ok(Moved::Values(1).into())
    }
}

/// Reads a `result<_, error-code>` that the component writes: where what its first case holds begins, or the code.
fn verdict(call: &Call<'_>, transfer: Transfer) -> Result<Result<u64, ErrorCode>, Stop> {
    let Transfer { address, writes: true, .. } = transfer else {
        return Err(ComponentTrap::NothingToResume.into());
    };
    let payload = address + 8;
    match byte(call, address)? {
        0 => Ok(Ok(payload)),
        1 => {
            let case = byte(call, payload)?;
            if u32::from(case) < CASES { Ok(Err(ErrorCode::Said(case))) } else { Err(ComponentTrap::Case.into()) }
        }
        _ => Err(ComponentTrap::Case.into()),
    }
}

fn byte(call: &Call<'_>, address: u64) -> Result<u8, Stop> {
    let memory = call.memory.as_ref().ok_or(ComponentTrap::OutOfBounds)?;
    memory.read_u8(address).map_err(|_| ComponentTrap::OutOfBounds.into())
}

fn word(call: &Call<'_>, address: u64) -> Result<u32, Stop> {
    let memory = call.memory.as_ref().ok_or(ComponentTrap::OutOfBounds)?;
    memory.read_u32(address).map_err(|_| ComponentTrap::OutOfBounds.into())
}

/// The host's end of the future of the trailers of a body that the component gets. They are known when the body was read, or its stream was dropped.
#[derive(Debug)]
pub(super) struct TrailersToCome {
    /// The representation of 0.2's resource that waits for them.
    trailers: u32,
    body: Arc<Outcome>,
}

impl TrailersToCome {
    /// Goes on with them when they are there.
    fn then(
        self: Arc<Self>,
        call: &mut Call<'_>,
        then: impl FnOnce(&mut Call<'_>, &Self, Result<HeaderMap, ErrorCode>) -> Result<Flat, Stop> + Send + 'static,
    ) -> Result<Flat, Stop> {
        let body = Arc::clone(&self.body);
        body.then(call, move |call, result| match result {
            Ok(()) => self.come(call, then),
            Err(fault) => then(call, &self, Err(ErrorCode::of(fault))),
        })
    }

    fn come(
        self: Arc<Self>,
        call: &mut Call<'_>,
        then: impl FnOnce(&mut Call<'_>, &Self, Result<HeaderMap, ErrorCode>) -> Result<Flat, Stop> + Send + 'static,
    ) -> Result<Flat, Stop> {
        let subject = Subject::Of(self.trailers);
        if call.ready(&[subject])?.is_empty() {
            return Err(call.until_ready(&[subject], move |call| self.come(call, then)));
        }
        if let Some(trace) = call.context.trace_effects() {
            trace.head.insert(HeadField::Headers);
        }
        let came = call.context.ports.resource::<FutureTrailers>(self.trailers)?.take();
        call.context.ports.resources_mut().count(self.trailers)?;
        then(call, &self, came.unwrap_or_else(|| Ok(HeaderMap::new())))
    }
}

impl End for TrailersToCome {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        if transfer.writes {
            return Err(ComponentTrap::NothingToResume.into());
        }
        self.then(call, |call, _, came| {
            let given: Result<Option<Own>, ErrorCode> = match came {
                Ok(map) if map.is_empty() => Ok(None),
                Ok(map) => Ok(Some(call.give(HttpFields::from(map))?)),
                Err(code) => Err(code),
            };
            call.lower(ADDRESS, given)?;
            Ok(Moved::Values(1).into())
        })
    }

    fn close(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        call.context.ports.drop_resource(self.trailers)
    }
}

/// The body of a message.
#[derive(Debug)]
pub(super) enum Body {
    /// It comes from elsewhere.
    Of(Of),
    /// The component writes it.
    Written(Arc<Written>),
}

impl Body {
    /// What is read of it, and what comes behind it.
    pub(super) fn read(self, call: &mut Call<'_>) -> Result<(Arc<Source>, Arc<TrailersToCome>), Stop> {
        let of = match self {
            Body::Of(of) => of,
            Body::Written(written) => {
                let arriving = Arriving::of_component(&written.outgoing).ok_or(ComponentTrap::NothingToResume)?;
                written.begun(call)?;
                written.settle();
                Of::Response(Arc::new(arriving))
            }
        };
        let stream = match &of {
            Of::Request => InputStream::Request,
            Of::Response(arriving) => InputStream::Response(Arc::clone(arriving)),
        };
        let resources = call.context.ports.resources_mut();
        let stream = resources.insert(Box::new(stream), None)?;
        let trailers = resources.insert(Box::new(FutureTrailers::new(of)), None)?;
        let outcome = Arc::<Outcome>::default();
        let source = Source { stream, outcome: Arc::clone(&outcome) };
        Ok((Arc::new(source), Arc::new(TrailersToCome { trailers, body: outcome })))
    }

    /// The body as one that is written, of a message with these headers: what comes from elsewhere is passed on.
    pub(super) fn into_written(self, call: &mut Call<'_>, headers: &HeaderMap, is_request: bool) -> Result<Arc<Written>, Stop> {
        if let Body::Written(written) = self {
            return Ok(written);
        }
        let is_empty = matches!(self, Body::Of(Of::Request)) && is_empty(call)?;
        let written = Written::new(call, headers, is_request)?;
        if is_empty {
            written.close(call, Ok(()))?;
            written.trail(call, Ok(None))?;
        } else {
            let (source, to_come) = self.read(call)?;
            written.pass_on(call, source)?;
            written.pass_trailers_on(call, to_come)?;
        }
        Ok(written)
    }

    /// Its message is no more.
    pub(super) fn abandon(&self) {
        if let Body::Written(written) = self {
            written.abandon(Ok(()));
        }
    }
}

/// Whether the request that is served has no body, which is known already.
fn is_empty(call: &mut Call<'_>) -> Result<bool, Stop> {
    let Input::Body(body) = &mut call.context.ports.streams_mut()?.input else { return Ok(false) };
    Ok(body.is_ready() && body.left() == 0 && body.trailers().is_some_and(|trailers| trailers.is_none_or(HeaderMap::is_empty)))
}

/// Begins a message with these headers: arguments say what its body is.
///
/// # Errors
/// A trap, when something of it cannot be.
pub(super) fn write_message(
    call: &mut Call<'_>,
    headers: &HeaderMap,
    is_request: bool,
    (contents, trailers, outcome): (Option<u32>, u32, u32),
) -> Result<Arc<Written>, Stop> {
    let written = Written::new(call, headers, is_request)?;
    match contents {
        Some(number) => written.take_contents(call, number)?,
        None => written.close(call, Ok(()))?,
    }
    written.take_trailers(call, trailers)?;
    call.share(outcome, Told::<ErrorCode>::new(Arc::clone(&written.outcome)))?;
    Ok(written)
}
