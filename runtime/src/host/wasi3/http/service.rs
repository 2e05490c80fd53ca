//! What serves a request: the request goes in, and its response comes out. And the client, where that is the other way round.

use std::sync::Arc;

use awsm_abi::component::{CANONICAL, RESPOND, SERVED, UNFINISHED};
use awsm_abi::types::ValType::{I32, I64};
use tracing::Level;

use super::body::Body;
use super::message::{Request, Response, served_head};
use super::written::Written;
use crate::host::Effect::{External, Head, Reply, Stream};
use crate::host::canonical::{Own, canonical};
use crate::host::fetch::Exchanged;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::http::ErrorCode;
use crate::host::wasi2::http::client::{self, Sent};
use crate::host::wasi2::http::fields::visible;
use crate::host::wasi2::http::incoming::{Arriving, Of};
use crate::host::wasi2::http::response::{OutgoingResponse, answer, fail};
use crate::host::{Call, Flat, HostFunction, Stop};

/// What glue imports, and the interface of the client. What was sent to another cannot be taken back.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(CANONICAL, SERVED, &[I32], &[I32], Head, served),
    canonical(CANONICAL, RESPOND, &[I32, I32, I32, I32, I64, I32, I32, I32, I32], &[], Reply, respond),
    canonical(CANONICAL, UNFINISHED, &[], &[I32], Stream, unfinished),
    canonical("wasi:http/client@0.3", "send", &[I32, I32, I32], &[I32], External, send),
];

/// `served(table) -> handle`: the request that is being served.
fn served(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(Request::served()).map(|own| Flat::from(own.0))
}

/// `respond(table, response: result<response, error-code>)`: the response begins when nothing of the component can run. One that is complete when the task is over, too, is
/// sent as a whole.
fn respond(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.context.ports.streams_mut()?.is_answered = true;
    if call.case(1, 2)? == 1 {
        fail(call, 2)?;
        return Ok(Flat::NONE);
    }
    let Response { status, headers, body } = *call.owned::<Response>(2)?;
    let written = body.into_written(call, &headers, false)?;
    call.expect(Arc::clone(&written.outcome));
    call.go_on_alone(Reply, true, move |call| {
        let is_last = call.is_task_over();
        answer(call, OutgoingResponse { status, headers, body: Some(Arc::clone(&written.outgoing)) }, is_last)?;
        written.begun(call)?;
        Ok(Flat::NONE)
    })?;
    Ok(Flat::NONE)
}

/// `unfinished() -> is_unfinished`
fn unfinished(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.task_is_over();
    Ok(Flat::from(call.goes_on_alone() || call.is_expecting()))
}

/// `send(request: request) -> result<response, error-code>`
fn send(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let Request { head, options, body } = *call.owned::<Request>(1)?;
    let mut head = match head {
        Some(head) => head,
        None => served_head(call)?,
    };
    let written = body.into_written(call, &head.headers, true)?;
    head.body = Some(Arc::clone(&written.outgoing));
    match client::send(call, *head, options.unwrap_or_default())? {
        Err(code) => end(call, &written, Err(code)),
        Ok((exchange, sent)) => {
            written.begun(call)?;
            let taken = call.context.operations.as_ref().map(|operations| operations.take(sent.request_bytes));
            Err(call.wait(exchange, move |call, answered| {
                drop(taken);
                answered_by(call, &written, sent, answered)
            }))
        }
    }
}

/// Another server has answered, or has not.
fn answered_by(call: &mut Call<'_>, written: &Written, sent: Sent, answered: Exchanged) -> Result<Flat, Stop> {
    match answered {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let body = Body::Of(Of::Response(Arc::new(Arriving::new(body, sent.piece_time, sent.share))));
            let headers = Arc::new(visible(&head.headers));
            let response = call.give(Response { status: head.status, headers, body })?;
            end(call, written, Ok(response))
        }
        Err(failure) => {
            // Where the component's own body failed, that is why.
            let code = match written.outcome.known() {
                Some(Err(Fault::Http(code))) => code,
                _ => {
                    call.say(Level::WARN, &format!("wasi:http: {failure}"))?;
                    ErrorCode::from(&failure)
                }
            };
            end(call, written, Err(code))
        }
    }
}

/// Answers a call of `send`; a request that failed is not written any more.
fn end(call: &mut Call<'_>, written: &Written, result: Result<Own, ErrorCode>) -> Result<Flat, Stop> {
    match result {
        Ok(_) => written.settle(),
        Err(code) => {
            written.abandon(Err(Fault::Http(code)));
            written.forget(call)?;
        }
    }
    call.lower(2, result)
}
