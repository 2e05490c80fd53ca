//! `sledge:http`: what a request says beside its body, and the head of its reply, as sdk/wit/http.wit says.
//!
//! A function that imports none of it costs nothing for it. What was called by another function, or runs on a terminal, has no request:
//! reading one is answered with [`Errno::NOTSUP`], and head and trailers of a reply go nowhere.

use awsm_abi::types::ValType::{I32, I64};
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, HOST,
    HeaderMap, HeaderName, HeaderValue, MAX_FORWARDS, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, StatusCode, Uri};

use super::Effect::{Head, Reply, Stream};
use super::wasi::Errno;
use super::{Call, HeadField, HostFunction, Input, Output, Stop, own};
use crate::reply::head::{FIELDS_BYTES_MAX, TooLarge};
use crate::reply::{Fields, Writer};

/// Module name of the imports.
pub(super) const MODULE: &str = "sledge:http";
/// The longest name of a header that is looked for.
pub(super) const NAME_BYTES_MAX: u32 = 256;
/// What a connection needs, or the server says itself.
const RESERVED: [HeaderName; 7] = [CONNECTION, CONTENT_LENGTH, DATE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
/// What besides cannot come behind a body, since it says what to do with it (RFC 9110, 6.5.1), or belongs to a connection.
const NO_TRAILERS: [HeaderName; 10] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    CONTENT_TYPE,
    HOST,
    MAX_FORWARDS,
    SET_COOKIE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// A request without its body.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// How.
    pub method: Method,
    /// What for.
    pub target: Uri,
    /// And all that was said besides.
    pub headers: HeaderMap,
    /// Whether it came over TLS.
    pub is_secure: bool,
}

/// The interface.
pub(super) const FUNCTIONS: &[HostFunction] = &[
    own(MODULE, "method", &[I32, I32], Head, method),
    own(MODULE, "target", &[I32, I32], Head, target),
    own(MODULE, "header", &[I32, I32, I32, I32], Head, header),
    own(MODULE, "headers", &[I32, I32], Head, headers),
    own(MODULE, "trailer", &[I32, I32, I32, I32], Head, trailer),
    own(MODULE, "status", &[I32], Stream, status),
    own(MODULE, "set-header", &[I32, I32, I32, I32], Stream, |call| put_header(call, false)),
    own(MODULE, "add-header", &[I32, I32, I32, I32], Stream, |call| put_header(call, true)),
    own(MODULE, "set-trailer", &[I32, I32, I32, I32], Stream, |call| put_trailer(call, false)),
    own(MODULE, "add-trailer", &[I32, I32, I32, I32], Stream, |call| put_trailer(call, true)),
    // What was sent to the client cannot be taken back, nor can what is written to the reply from then on.
    own(MODULE, "stream", &[I64], Reply, stream),
];

/// Whether a field of that name may come behind a body.
pub(super) fn may_trail(name: &HeaderName) -> bool {
    !RESERVED.contains(name) && !NO_TRAILERS.contains(name)
}

/// The request, of which that field is read.
///
/// # Errors
/// `ENOTSUP` when there is none.
pub(super) fn request<'a>(call: &'a mut Call<'_>, field: impl FnOnce() -> HeadField) -> Result<&'a RequestHead, Stop> {
    if let Some(trace) = call.context.trace_effects() {
        trace.head.insert(field());
    }
    call.context.ports.head()?.ok_or(Stop::Errno(Errno::NOTSUP))
}

/// Writes as much of `text` as fits to the address and length that are arguments `index` and `index + 1`; the answer is the length of all of it.
fn put(call: &mut Call<'_>, index: usize, text: &[u8]) -> Result<i32, Stop> {
    let (at, room) = (call.args.address(index), call.args.u32(index + 1));
    let memory = call.memory_mut()?;
    memory.slice(at, room.into())?;
    memory.write(at, &text[..text.len().min(room as usize)])?;
    i32::try_from(text.len()).map_err(|_| Errno::OVERFLOW.into())
}

/// `method(text, text_bytes) -> bytes`
fn method(call: &mut Call<'_>) -> Result<i32, Stop> {
    let method = request(call, || HeadField::Method)?.method.clone();
    put(call, 0, method.as_str().as_bytes())
}

/// Path and query of the request, as they were sent.
pub(super) fn target_of(request: &RequestHead) -> &str {
    request.target.path_and_query().map_or("/", |target| target.as_str())
}

/// `target(text, text_bytes) -> bytes`: path and query, as they were sent.
fn target(call: &mut Call<'_>) -> Result<i32, Stop> {
    let target = target_of(request(call, || HeadField::Target)?).to_owned();
    put(call, 0, target.as_bytes())
}

/// A header's name, whose address and length are arguments 0 and 1.
fn name(call: &Call<'_>) -> Result<HeaderName, Stop> {
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let bytes = memory.slice(call.args.address(0), call.args.u32(1).into())?;
    if call.args.u32(1) > NAME_BYTES_MAX {
        return Err(Errno::TOOBIG.into());
    }
    HeaderName::from_bytes(bytes).map_err(|_| Errno::INVAL.into())
}

/// `header(name, name_bytes, text, text_bytes) -> bytes`: several of one name are joined by commas (RFC 9110, 5.3).
fn header(call: &mut Call<'_>) -> Result<i32, Stop> {
    let name = name(call)?;
    let text = joined(&request(call, || HeadField::Header(name.to_string()))?.headers, &name)?;
    put(call, 2, &text)
}

/// All values of that name.
pub(super) fn joined(fields: &HeaderMap, name: &HeaderName) -> Result<Vec<u8>, Stop> {
    let values: Vec<&[u8]> = fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    if values.is_empty() { Err(Errno::NOENT.into()) } else { Ok(values.join(&b", "[..])) }
}

/// `trailer(name, name_bytes, text, text_bytes) -> bytes`: as `header`, of what came behind the body; not before the body's end has come.
fn trailer(call: &mut Call<'_>) -> Result<i32, Stop> {
    let name = name(call)?;
    let text = trailer_of(call, &name)?;
    put(call, 2, &text)
}

/// All values of that name that came behind the body.
///
/// # Errors
/// `EAGAIN` before the body's end has come, `ENOENT` when there is none, `ENOTSUP` when there is no request.
pub(super) fn trailer_of(call: &mut Call<'_>, name: &HeaderName) -> Result<Vec<u8>, Stop> {
    request(call, || HeadField::Trailer(name.to_string()))?;
    let Input::Body(body) = &call.context.ports.streams()?.input else { return Err(Errno::NOTSUP.into()) };
    joined(body.trailers().ok_or(Errno::AGAIN)?.ok_or(Errno::NOENT)?, name)
}

/// `headers(rows, rows_bytes) -> bytes`: of each its name's length (u32), its name, its value's length (u32), its value.
fn headers(call: &mut Call<'_>) -> Result<i32, Stop> {
    let mut rows = Vec::new();
    for (name, value) in &request(call, || HeadField::Headers)?.headers {
        for text in [name.as_str().as_bytes(), value.as_bytes()] {
            rows.extend_from_slice(&(text.len() as u32).to_le_bytes());
            rows.extend_from_slice(text);
        }
    }
    put(call, 0, &rows)
}

/// What is on its way cannot be changed.
pub(super) fn check_not_begun(call: &Call<'_>) -> Result<(), Stop> {
    let streams = call.context.ports.streams()?;
    // What serves `wasi:http` says there what its response is.
    if streams.is_http || matches!(streams.output, Output::Stream(_)) { Err(Errno::ALREADY.into()) } else { Ok(()) }
}

/// `stream(bytes) -> 0`: the head goes out, and from now on the body while it is written; it has so many bytes, or it is not known how many (-1).
fn stream(call: &mut Call<'_>) -> Result<i32, Stop> {
    let length = match call.args.u64(0).cast_signed() {
        -1 => None,
        length => Some(u64::try_from(length).map_err(|_| Errno::INVAL)?),
    };
    begin_stream(call, length).map(|()| 0)
}

/// Sends the head, and from now on the body, of that length, if it is known.
pub(super) fn begin_stream(call: &mut Call<'_>, length: Option<u64>) -> Result<(), Stop> {
    check_not_begun(call)?;
    // The function that called sees no head.
    let wants_no_body = call.context.ports.head()?.map(|request| request.method == Method::HEAD);
    let streams = call.context.ports.streams_mut()?;
    let Output::Reply { bytes, bytes_max } = &mut streams.output else { return Ok(()) };
    if length.is_some_and(|length| length > *bytes_max as u64 || length < bytes.len() as u64) {
        return Err(Errno::FBIG.into());
    }
    // Of these there is no body (RFC 9110, 6.4.1).
    let status = streams.reply_head.as_ref().map(|head| head.status);
    let is_empty = matches!(status, Some(StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED));
    let is_bodiless = wants_no_body.is_some_and(|wants_no_body| is_empty || wants_no_body);
    let length = length.filter(|_| !is_empty);
    let trails = streams.trailers.is_some();
    let writer = Writer::new(bytes.take(), *bytes_max, length, is_bodiless, trails);
    streams.stream(writer);
    Ok(())
}

/// `status(code) -> 0`: 200 to 599.
fn status(call: &mut Call<'_>) -> Result<i32, Stop> {
    let code = call.args.u32(0);
    set_status(call, code).map(|()| 0)
}

/// The reply has that status.
pub(super) fn set_status(call: &mut Call<'_>, code: u32) -> Result<(), Stop> {
    check_not_begun(call)?;
    let code = u16::try_from(code).ok().filter(|code| (200..600).contains(code)).ok_or(Errno::INVAL)?;
    let status = StatusCode::from_u16(code).map_err(|_| Errno::INVAL)?;
    call.context.ports.streams_mut()?.reply_head.get_or_insert_default().status = status;
    Ok(())
}

/// `set-header(name, name_bytes, value, value_bytes) -> 0`, and `add-header`, which leaves others of the name.
fn put_header(call: &mut Call<'_>, more: bool) -> Result<i32, Stop> {
    let (name, value) = field(call)?;
    add_header(call, name, value, more).map(|()| 0)
}

/// The reply has that header, besides others of the name or in their place.
pub(super) fn add_header(call: &mut Call<'_>, name: HeaderName, value: HeaderValue, more: bool) -> Result<(), Stop> {
    check_not_begun(call)?;
    put_field(&mut call.context.ports.streams_mut()?.reply_head.get_or_insert_default().headers, name, value, more)
}

/// `set-trailer(name, name_bytes, value, value_bytes) -> 0`, and `add-trailer`, which leaves others of the name. Until the invocation ends.
fn put_trailer(call: &mut Call<'_>, more: bool) -> Result<i32, Stop> {
    let (name, value) = field(call)?;
    add_trailer(call, name, value, more).map(|()| 0)
}

/// The reply has that trailer, besides others of the name or in their place.
pub(super) fn add_trailer(call: &mut Call<'_>, name: HeaderName, value: HeaderValue, more: bool) -> Result<(), Stop> {
    if NO_TRAILERS.contains(&name) {
        return Err(Errno::NOTSUP.into());
    }
    put_field(call.context.ports.streams_mut()?.trailers.get_or_insert_default(), name, value, more)
}

fn put_field(fields: &mut Fields, name: HeaderName, value: HeaderValue, more: bool) -> Result<(), Stop> {
    fields.put(name, value, more).map_err(|TooLarge| Errno::TOOBIG.into())
}

/// A field of a reply, of which arguments 0 to 3 are name and value.
fn field(call: &Call<'_>) -> Result<(HeaderName, HeaderValue), Stop> {
    let name = name(call)?;
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let value = memory.slice(call.args.address(2), call.args.u32(3).into())?;
    checked_field(name, value)
}

/// A field that a function may set.
pub(super) fn checked_field(name: HeaderName, value: &[u8]) -> Result<(HeaderName, HeaderValue), Stop> {
    if RESERVED.contains(&name) {
        return Err(Errno::NOTSUP.into());
    }
    if value.len() > FIELDS_BYTES_MAX {
        return Err(Errno::TOOBIG.into());
    }
    Ok((name, HeaderValue::from_bytes(value).map_err(|_| Errno::INVAL)?))
}
