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

use std::sync::Arc;

use hyper::HeaderMap;

use super::trailers::TrailersToCome;
use super::written::Written;
use crate::component_trap::ComponentTrap;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::http::ErrorCode;
use crate::host::wasi2::http::incoming::{Arriving, FutureTrailers, Of};
use crate::host::wasi2::streams::InputStream;
use crate::host::wasi3::ends::{FaultCode, Outcome, Source, Told};
use crate::host::{Call, Input, Stop};

impl FaultCode for ErrorCode {
    fn of(fault: Fault) -> ErrorCode {
        if let Fault::Http(code) = fault { code } else { ErrorCode::ConnectionTerminated }
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
