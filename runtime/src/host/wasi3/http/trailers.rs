//! Trailers of a body that the component gets.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::HeaderValue;

use super::fields::HttpFields;
use crate::component_trap::ComponentTrap;
use crate::host::canonical::{Own, Subject};
use crate::host::wasi2::http::ErrorCode;
use crate::host::wasi2::http::fields::visible;
use crate::host::wasi2::http::incoming::FutureTrailers;
use crate::host::wasi2::http::outgoing::trailing;
use crate::host::wasi3::ends::{ADDRESS, End, FaultCode, Moved, Outcome, Transfer};
use crate::host::{Call, Flat, HeadField, Input, Stop};

/// The host's end of the future of the trailers of a body that the component gets. They are known when the body was read, or its stream was dropped.
#[derive(Debug)]
pub(super) struct TrailersToCome {
    /// The representation of 0.2's resource that waits for them.
    pub(super) trailers: u32,
    pub(super) body: Arc<Outcome>,
}

impl TrailersToCome {
    /// Goes on with them when they are there.
    pub(super) fn then(
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

    /// Their names, where they are there before the body was read: of a request that came as a whole.
    pub(super) fn names(&self, call: &mut Call<'_>) -> Result<Option<HeaderValue>, Stop> {
        if !call.context.ports.resource::<FutureTrailers>(self.trailers)?.is_of_request() {
            return Ok(None);
        }
        let Input::Body(body) = &call.context.ports.streams_mut()?.input else { return Ok(None) };
        Ok(body.trailers().flatten().and_then(|map| trailing(&visible(map)).names()))
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
