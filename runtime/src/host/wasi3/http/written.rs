//! Bodies that the component writes, with the trailers behind them.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::HeaderMap;

use super::fields::HttpFields;
use super::trailers::TrailersToCome;
use super::verdict::{byte, verdict, word};
use crate::component_trap::ComponentTrap;
use crate::host::canonical::Resource;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::http::outgoing::{content_length, trailing};
use crate::host::wasi2::http::{ErrorCode, Outgoing};
use crate::host::wasi2::streams::OutputStream;
use crate::host::wasi3::ends::{End, Moved, Outcome, Source, Transfer, write};
use crate::host::wasi3::pump::{self, Taken};
use crate::host::{Call, Effect, Flat, Stop};
use crate::reply::Unfinished;

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
        // With HTTP/1.1, a client gets none that were not announced.
        if let Some(names) = to_come.names(call)? {
            self.outgoing.announce(names);
        }
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
    pub(super) fn trail(&self, call: &mut Call<'_>, trailers: Trailers) -> Result<(), Stop> {
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
        let _ = self.outgoing.end(Err(Unfinished::GivenUp));
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
