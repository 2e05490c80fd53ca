//! Whole messages: a unary call, and what answers one, in one host call each. What has to wait, streams, or is larger than its room goes on as everything does, behind a descriptor
//! and with standard input and output.

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::{FLAG_ENDS, begin_with, open};
use crate::grpc::{GRPC_STATUS, GRPC_TYPE};
use crate::host::fetch::row;
use crate::host::http::{self, checked_field, request, target_of};
use crate::host::wasi::Errno;
use crate::host::{Call, HeadField, Input, Output, Stop};
use crate::reply::head;

/// The fields of a reply, as `sledge:http` limits them, and lengths beside them.
const FIELDS_BYTES_MAX: usize = 2 * head::FIELDS_BYTES_MAX;
/// Bytes of three lengths.
const SIZES_BYTES: u64 = 12;
/// The length of a body that is not whole.
const NOT_WHOLE: u32 = u32::MAX;

/// Adds fields as rows: of each its name's length (u32), its name, its value's length (u32), its value.
pub(super) fn push_rows<'a>(rows: &mut Vec<u8>, fields: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>) {
    for (name, value) in fields {
        for text in [name.as_str().as_bytes(), value.as_bytes()] {
            rows.extend_from_slice(&(text.len() as u32).to_le_bytes());
            rows.extend_from_slice(text);
        }
    }
}

/// Three lengths as they stand in memory.
fn sizes(lengths: [u32; 3]) -> [u8; SIZES_BYTES as usize] {
    let mut bytes = [0; SIZES_BYTES as usize];
    for (into, length) in bytes.chunks_exact_mut(4).zip(lengths) {
        into.copy_from_slice(&length.to_le_bytes());
    }
    bytes
}

/// `call(path, bytes, head, bytes, message, bytes, timeout_ns: i64, reply, reply_bytes, sizes) -> fd | 0`: as `begin` of a body that ends. 0: the reply is there, headers, body and
/// trailers behind each other, and their lengths.
pub(super) fn call(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (reply, room, to) = (call.args.address(7), call.args.u32(8), call.args.address(9));
    let memory = call.memory_mut()?;
    memory.slice(reply, room.into())?;
    memory.slice(to, SIZES_BYTES)?;
    let mut exchange = begin_with(call, FLAG_ENDS)?;
    let Some((head, body, trailers)) = exchange.take_whole(room as usize) else { return open(call, exchange) };
    let mut text = Vec::with_capacity(super::ROWS_BYTES);
    push_rows(&mut text, head.iter());
    let head_bytes = text.len();
    push_rows(&mut text, trailers.iter());
    if text.len() + body.len() > room as usize {
        exchange.give_back(head, body, trailers);
        return open(call, exchange);
    }
    let (head, trailers) = text.split_at(head_bytes);
    let lengths = sizes([head.len(), body.len(), trailers.len()].map(|length| length as u32));
    let memory = call.memory_mut()?;
    let mut at = reply;
    for part in [head, &body, trailers] {
        memory.write(at, part)?;
        at += part.len() as u64;
    }
    memory.write(to, &lengths)?;
    Ok(0)
}

/// `accept(room, bytes, sizes) -> bytes`: the request that is answered: path and query, headers as rows, and behind them the body where it is whole and there is room; and their
/// lengths. The answer is that of path and headers; where these do not fit, nothing is written.
pub(super) fn accept(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (to, room, lengths) = (call.args.address(0), call.args.u32(1), call.args.address(2));
    let memory = call.memory_mut()?;
    memory.slice(to, room.into())?;
    memory.slice(lengths, SIZES_BYTES)?;
    request(call, || HeadField::Target)?;
    let head = request(call, || HeadField::Headers)?;
    let target = target_of(head);
    let mut text = Vec::with_capacity(2 * super::ROWS_BYTES);
    text.extend_from_slice(target.as_bytes());
    let target_bytes = text.len();
    push_rows(&mut text, &head.headers);
    let bytes = i32::try_from(text.len()).map_err(|_| Errno::OVERFLOW)?;
    let Some(left) = (room as usize).checked_sub(text.len()) else { return Ok(bytes) };
    let (memory, context) = call.split()?;
    let mut body_bytes = NOT_WHOLE;
    if let Input::Body(body) = &mut context.ports.streams_mut()?.input
        && body.is_whole(left)
    {
        body_bytes = body.left() as u32;
        body.read(memory.slice_mut(to + text.len() as u64, body_bytes.into())?)?;
    }
    memory.write(to, &text)?;
    memory.write(lengths, &sizes([target_bytes as u32, (text.len() - target_bytes) as u32, body_bytes]))?;
    Ok(bytes)
}

/// `answer(headers, bytes, body, bytes, trailers, bytes) -> 0`: adds to headers, body and trailers of the reply, which is not on its way yet.
pub(super) fn answer(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (headers, trailers) = (fields(call, 0)?, fields(call, 4)?);
    let (at, bytes) = (call.args.address(2), call.args.u32(3));
    http::check_not_begun(call)?;
    let (memory, context) = call.split()?;
    let body = memory.slice(at, bytes.into())?;
    let streams = context.ports.streams_mut()?;
    // A file of this process, for `sledge run`, may take less: there it is written to as a file.
    if let Output::File(_) = streams.output {
        return Err(Errno::NOTSUP.into());
    }
    streams.output.write(body)?;
    for (name, value) in headers {
        http::add_header(call, name, value, true)?;
    }
    for (name, value) in trailers {
        http::add_trailer(call, name, value, true)?;
    }
    Ok(0)
}

/// The fields that stand as rows where arguments `index` and `index + 1` say.
fn fields(call: &Call<'_>, index: usize) -> Result<SmallVec<[(HeaderName, HeaderValue); 2]>, Stop> {
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let mut rows = memory.slice(call.args.address(index), call.args.u32(index + 1).into())?;
    if rows.len() > FIELDS_BYTES_MAX {
        return Err(Errno::TOOBIG.into());
    }
    let mut fields = SmallVec::new();
    while !rows.is_empty() {
        fields.push(match (row(&mut rows)?, row(&mut rows)?) {
            // What almost every reply says needs no memory of its own.
            (b"grpc-status", b"0") => (GRPC_STATUS, HeaderValue::from_static("0")),
            (b"content-type", b"application/grpc") => (CONTENT_TYPE, GRPC_TYPE),
            (name, value) => checked_field(HeaderName::from_bytes(name).map_err(|_| Errno::INVAL)?, value)?,
        });
    }
    Ok(fields)
}
