//! `sledge:http/exchange`: a request's head, and that of the reply, for components that are commands. What serves `wasi:http` has a response there: it can read here,
//! and is refused what changes the reply.

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};

use crate::host::Effect::{Head, Reply, Stream};
use crate::host::canonical::{canonical, enums};
use crate::host::http::{self, NAME_BYTES_MAX};
use crate::host::wasi::Errno;
use crate::host::{Call, Flat, HeadField, HostFunction, Stop};

/// Module name of the imports.
pub const EXCHANGE: &str = "sledge:http/exchange@0.1";

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(EXCHANGE, "method", &[I32, I32], &[I32], Head, method),
    canonical(EXCHANGE, "target", &[I32, I32], &[I32], Head, target),
    canonical(EXCHANGE, "header", &[I32, I32, I32, I32], &[I32], Head, header),
    canonical(EXCHANGE, "headers", &[I32, I32], &[I32], Head, headers),
    canonical(EXCHANGE, "trailer", &[I32, I32, I32, I32], &[I32], Head, trailer),
    canonical(EXCHANGE, "status", &[I32, I32, I32], &[], Stream, status),
    canonical(EXCHANGE, "set-header", &[I32, I32, I32, I32, I32, I32], &[], Stream, |call| put_header(call, false)),
    canonical(EXCHANGE, "add-header", &[I32, I32, I32, I32, I32, I32], &[], Stream, |call| put_header(call, true)),
    canonical(EXCHANGE, "set-trailer", &[I32, I32, I32, I32, I32, I32], &[], Stream, |call| put_trailer(call, false)),
    canonical(EXCHANGE, "add-trailer", &[I32, I32, I32, I32, I32, I32], &[], Stream, |call| put_trailer(call, true)),
    canonical(EXCHANGE, "stream", &[I32, I32, I64, I32], &[], Reply, stream),
];

/// An `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Error {
    Invalid,
    Reserved,
    TooLarge,
    Already,
    Again,
}

enums! { Error }

/// What a function of the interface answers where the flat one has an error number. Others end the invocation.
fn answered<T>(result: Result<T, Stop>) -> Result<Result<T, Error>, Stop> {
    let error = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(Stop::Errno(Errno::INVAL)) => Error::Invalid,
        Err(Stop::Errno(Errno::NOTSUP)) => Error::Reserved,
        Err(Stop::Errno(Errno::TOOBIG | Errno::FBIG)) => Error::TooLarge,
        Err(Stop::Errno(Errno::ALREADY)) => Error::Already,
        Err(Stop::Errno(Errno::AGAIN)) => Error::Again,
        Err(stop) => return Err(stop),
    };
    Ok(Err(error))
}

/// The same where the only error is that there is nothing.
fn found<T>(result: Result<T, Stop>) -> Result<Option<T>, Stop> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Stop::Errno(Errno::NOTSUP | Errno::NOENT)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// The field's name whose address and length are arguments 1 and 2; none for what is no name.
fn name(call: &Call<'_>) -> Result<Option<HeaderName>, Stop> {
    let name = call.text_within(1, NAME_BYTES_MAX.into())?;
    Ok(name.and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()))
}

/// `method() -> option<string>`
fn method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let method = found(http::request(call, || HeadField::Method).map(|request| request.method.to_string()))?;
    call.lower(1, method)
}

/// `target() -> option<string>`
fn target(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = found(http::request(call, || HeadField::Target).map(|request| http::target_of(request).to_owned()))?;
    call.lower(1, target)
}

/// `header(name: string) -> option<list<u8>>`
fn header(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = match name(call)? {
        Some(name) => {
            let request = http::request(call, || HeadField::Header(name.to_string()));
            found(request.and_then(|request| http::joined(&request.headers, &name)))?
        }
        None => None,
    };
    call.lower(3, value.map(Bytes::from))
}

/// `headers() -> list<tuple<string, list<u8>>>`
fn headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let field = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), Bytes::copy_from_slice(value.as_bytes()));
    let request = http::request(call, || HeadField::Headers);
    let fields = found(request.map(|request| request.headers.iter().map(field).collect::<Vec<_>>()))?;
    call.lower(1, fields.unwrap_or_default())
}

/// `trailer(name: string) -> result<option<list<u8>>, error>`
fn trailer(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = match name(call)? {
        Some(name) => answered(found(http::trailer_of(call, &name)).map(|value| value.map(Bytes::from)))?,
        None => Err(Error::Invalid),
    };
    call.lower(3, value)
}

/// `status(code: u16) -> result<_, error>`
fn status(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let code = call.args.u16(1);
    let result = answered(http::set_status(call, code.into()))?;
    call.lower(2, result)
}

/// The field of the reply whose name and value are arguments 1 to 4.
fn field(call: &Call<'_>) -> Result<(HeaderName, HeaderValue), Stop> {
    let name = name(call)?.ok_or(Errno::INVAL)?;
    http::checked_field(name, call.bytes(3)?)
}

/// `set-header(name: string, value: list<u8>) -> result<_, error>`, and `add-header`
fn put_header(call: &mut Call<'_>, more: bool) -> Result<Flat, Stop> {
    let put = field(call).and_then(|(name, value)| http::add_header(call, name, value, more));
    let result = answered(put)?;
    call.lower(5, result)
}

/// `set-trailer(name: string, value: list<u8>) -> result<_, error>`, and `add-trailer`
fn put_trailer(call: &mut Call<'_>, more: bool) -> Result<Flat, Stop> {
    let result = if call.context.ports.streams()?.is_http {
        Err(Error::Already)
    } else {
        answered(field(call).and_then(|(name, value)| http::add_trailer(call, name, value, more)))?
    };
    call.lower(5, result)
}

/// `stream(length: option<u64>) -> result<_, error>`
fn stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let length = call.is_some(1)?.then(|| call.args.u64(2));
    let result = answered(http::begin_stream(call, length))?;
    call.lower(3, result)
}
