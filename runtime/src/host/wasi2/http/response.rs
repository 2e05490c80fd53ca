//! `outgoing-response` and `response-outparam`: the response to the request that is served.

use std::sync::Arc;

use awsm_abi::types::ValType::{I32, I64};
use hyper::header::{CONTENT_LENGTH, HeaderMap, TE};
use hyper::{Method, StatusCode};
use tracing::Level;

use super::TYPES;
use super::error::{CASES, ErrorCode, INTERNAL_ERROR, check_payload, is_of_upstream, name};
use super::fields::{HttpFields, memory_bytes};
use super::outgoing::{Begun, Outgoing, OutgoingBody, content_length};
use crate::host::Effect::{Reply, Safe};
use crate::host::canonical::{Resource, Typed, canonical, number};
use crate::host::wasi::Errno;
use crate::host::{Call, Flat, HostFunction, Output, Stop};
use crate::reply::{Fields, ReplyBytes, ReplyHead, Unfinished, Writer};

/// Bytes of what a component says in words about an error of its own.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// A `response-outparam`.
#[derive(Debug)]
pub(in crate::host) struct ResponseOutparam;

impl Resource for ResponseOutparam {}

impl Typed for ResponseOutparam {
    const NUMBER: u32 = number(TYPES, "response-outparam");
}

/// An `outgoing-response`.
#[derive(Debug)]
pub(in crate::host) struct OutgoingResponse {
    pub(in crate::host) status: StatusCode,
    pub(in crate::host) headers: Arc<HeaderMap>,
    pub(in crate::host) body: Option<Arc<Outgoing>>,
}

impl Resource for OutgoingResponse {
    fn memory_bytes(&self) -> usize {
        memory_bytes(&self.headers) + self.body.as_ref().map_or(0, |body| body.memory_bytes())
    }

    fn dropped(&mut self) {
        if let Some(body) = &self.body {
            body.abandon();
        }
    }
}

impl Typed for OutgoingResponse {
    const NUMBER: u32 = number(TYPES, "outgoing-response");
}

/// The interface. What was sent to the client cannot be taken back.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]outgoing-response", &[I32, I32], &[I32], Safe, constructor),
    canonical(TYPES, "[method]outgoing-response.status-code", &[I32, I32], &[I32], Safe, status_code),
    canonical(TYPES, "[method]outgoing-response.set-status-code", &[I32, I32, I32], &[I32], Safe, set_status_code),
    canonical(TYPES, "[method]outgoing-response.headers", &[I32, I32], &[I32], Safe, headers),
    canonical(TYPES, "[method]outgoing-response.body", &[I32, I32, I32], &[], Safe, body),
    canonical(
        TYPES,
        "[method]response-outparam.send-informational",
        &[I32, I32, I32, I32, I32],
        &[I32],
        Reply,
        send_informational,
    ),
    canonical(TYPES, "[static]response-outparam.set", &[I32, I32, I32, I32, I32, I64, I32, I32, I32, I32], &[], Reply, set),
];

/// `constructor(headers: headers) -> outgoing-response`
fn constructor(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let headers = call.owned::<HttpFields>(1)?.into_map();
    let response = OutgoingResponse { status: StatusCode::OK, headers, body: None };
    call.give(response).map(|own| Flat::from(own.0))
}

/// `status-code(self) -> status-code`
fn status_code(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::from(u32::from(call.borrowed::<OutgoingResponse>(1)?.status.as_u16())))
}

/// The `status-code` that is argument 2, if it is one of three digits and not above `code_max`.
pub(in crate::host) fn status_argument(call: &Call<'_>, code_max: u16) -> Option<StatusCode> {
    let code = call.args.u16(2);
    StatusCode::from_u16(code).ok().filter(|_| code <= code_max)
}

/// `set-status-code(self, status-code: status-code) -> result`
fn set_status_code(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let status = status_argument(call, 999);
    let response = call.borrowed::<OutgoingResponse>(1)?;
    if let Some(status) = status {
        response.status = status;
    }
    Ok(Flat::from(status.is_none()))
}

/// `headers(self) -> headers`
fn headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingResponse>(1)?;
    let map = Arc::clone(&call.borrowed::<OutgoingResponse>(1)?.headers);
    call.give_child(HttpFields::of_message(map), Some(representation)).map(|own| Flat::from(own.0))
}

/// `body(self) -> result<outgoing-body>`: once, and not where the headers say no length that is one.
fn body(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingResponse>(1)?;
    let response = call.borrowed::<OutgoingResponse>(1)?;
    let result = match OutgoingBody::of(&mut response.body, &response.headers, false, representation) {
        Some(body) => Ok(call.give(body)?),
        None => Err(()),
    };
    call.lower(2, result)
}

/// `send-informational(self, status: u16, headers: headers) -> result<_, error-code>`: nothing is sent. The server's HTTP sends no such responses, for which
/// the interface has an answer.
fn send_informational(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<ResponseOutparam>(1)?;
    call.owned::<HttpFields>(3)?;
    let code = match call.args.u16(2) {
        100..=199 => ErrorCode::Said(INTERNAL_ERROR as u8),
        _ => ErrorCode::HttpProtocolError,
    };
    call.lower(4, Err::<(), _>(code))
}

/// `set(param: response-outparam, response: result<outgoing-response, error-code>)`
fn set(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.owned::<ResponseOutparam>(1)?;
    call.context.ports.streams_mut()?.is_answered = true;
    if call.case(2, 2)? == 0 {
        let response = *call.owned::<OutgoingResponse>(3)?;
        answer(call, response, true)?;
    } else {
        fail(call, 3)?;
    }
    Ok(Flat::NONE)
}

/// Whether a response of that status never has a body (RFC 9110, 6.4.1).
const fn is_empty(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Whether a response has no body, whatever is written. A function that called sees no head.
fn is_bodiless(call: &Call<'_>, status: StatusCode) -> Result<bool, Stop> {
    let wants_no_body = call.context.ports.head()?.map(|request| request.method == Method::HEAD);
    Ok(wants_no_body.is_some_and(|wants_no_body| is_empty(status) || wants_no_body))
}

/// Writes all of it to where standard output goes, which may take less at a time.
fn write_all(output: &mut Output, mut bytes: &[u8]) -> Result<(), Stop> {
    while !bytes.is_empty() {
        match output.write(bytes)? {
            0 => return Err(Errno::IO.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

/// Begins the reply. One that is complete goes out when the invocation ends, if it `may_wait` for that; otherwise at once.
///
/// # Errors
/// When the reply is too large, or cannot be written.
pub(in crate::host) fn answer(call: &mut Call<'_>, response: OutgoingResponse, may_wait: bool) -> Result<(), Stop> {
    let OutgoingResponse { status, headers, body } = response;
    if status.is_informational() {
        if let Some(body) = body {
            body.abandon();
        }
        return refuse_status(call, status);
    }
    let is_bodiless = is_bodiless(call, status)?;
    // The length is known where the body is; what is no length says nothing.
    let length = content_length(&headers).unwrap_or_default();
    let fields = headers.iter().filter(|(name, _)| ![CONTENT_LENGTH, TE].contains(name));
    let fields: Fields = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    let streams = call.context.ports.streams_mut()?;
    streams.reply_head = Some(Box::new(ReplyHead { status, headers: fields, says_type: true }));
    // On a terminal, bodies go where standard output does.
    let Output::Reply { bytes, bytes_max } = &mut streams.output else {
        let bytes = match body.and_then(|body| body.begin()) {
            Some(Begun::Whole(bytes, _)) => bytes,
            Some(Begun::Writer(writer)) => writer.pipe().take().0,
            None => return Ok(()),
        };
        return bytes.pieces().try_for_each(|piece| write_all(&mut streams.output, piece));
    };
    let bytes_max = *bytes_max;
    let begun = body.and_then(|body| if may_wait { body.begin() } else { body.begin_stream() });
    let mut writer = match begun {
        Some(Begun::Writer(writer)) => {
            if !is_bodiless && writer.written() > bytes_max as u64 {
                return Err(Stop::ReplyTooLarge);
            }
            writer
        }
        _ if is_bodiless => {
            // There is nothing to say but how long it would be.
            let written = if let Some(Begun::Whole(whole, _)) = &begun { Some(whole.len() as u64) } else { None };
            Writer::new(ReplyBytes::default(), bytes_max, length.or(written), is_bodiless, false)
        }
        Some(Begun::Whole(whole, trailers)) => {
            if whole.len() > bytes_max {
                return Err(Stop::ReplyTooLarge);
            }
            (*bytes, streams.trailers) = (whole, trailers);
            return Ok(());
        }
        None if length.is_none_or(|length| length == 0) => return Ok(()),
        None => {
            let writer = Writer::new(ReplyBytes::default(), bytes_max, length, is_bodiless, false);
            writer.pipe().finish(Err(Unfinished::Length));
            writer
        }
    };
    writer.share_buffers(bytes);
    writer.answer(bytes_max, is_bodiless);
    if is_bodiless && is_empty(status) {
        writer.without_length();
    }
    streams.stream(writer);
    Ok(())
}

/// Answers that there is no response, because its status is one that something has to follow.
fn refuse_status(call: &mut Call<'_>, status: StatusCode) -> Result<(), Stop> {
    call.say(
        Level::WARN,
        &format!("wasi:http: the component's response has status {}: a response ends with 200 to 999", status.as_u16()),
    )?;
    let head = ReplyHead { status: StatusCode::INTERNAL_SERVER_ERROR, headers: Fields::default(), says_type: true };
    call.context.ports.streams_mut()?.reply_head = Some(Box::new(head));
    Ok(())
}

/// Answers that there is no response, and says why in the log: the `error-code` that begins at argument `index`.
///
/// # Errors
/// A trap, when that is none.
pub(in crate::host) fn fail(call: &mut Call<'_>, index: usize) -> Result<(), Stop> {
    let case = call.case(index, CASES)?;
    check_payload(call, index, case)?;
    let mut text = format!("wasi:http: the component answered with {}", name(case));
    if case == INTERNAL_ERROR && call.is_some(index + 1)? {
        let message = call.text_begin(index + 2, MESSAGE_BYTES_MAX)?;
        text.push_str(": ");
        text.push_str(&message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)]);
    }
    call.say(Level::WARN, &text)?;
    let status = if is_of_upstream(case) { StatusCode::BAD_GATEWAY } else { StatusCode::INTERNAL_SERVER_ERROR };
    call.context.ports.streams_mut()?.reply_head =
        Some(Box::new(ReplyHead { status, headers: Fields::default(), says_type: true }));
    Ok(())
}
