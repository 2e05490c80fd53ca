//! `request` and `response`.

use std::sync::Arc;

use awsm_abi::types::ValType::I32;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, StatusCode};

use super::TYPES;
use super::body::{Body, write_message};
use super::fields::HttpFields;
use super::options::HttpOptions;
use super::verdict::Verdict;
use crate::host::Effect::{Head, Safe, Stream};
use crate::host::canonical::{Resource, Typed, canonical, number};
use crate::host::wasi2::http::RequestOptions;
use crate::host::wasi2::http::fields::memory_bytes;
use crate::host::wasi2::http::incoming::Of;
use crate::host::wasi2::http::outgoing_request::{
    OutgoingRequest, authority_argument, method_argument, scheme_argument, target_argument,
};
use crate::host::wasi2::http::request::{
    HttpMethod, HttpScheme, served_authority, served_headers, served_method, served_scheme, served_target,
};
use crate::host::wasi2::http::response::status_argument;
use crate::host::{Call, Flat, HostFunction, Stop};

/// A `request`.
#[derive(Debug)]
pub(super) struct Request {
    /// None as long as it is that of the request which is served.
    pub(super) head: Option<Box<OutgoingRequest>>,
    pub(super) options: Option<RequestOptions>,
    pub(super) body: Body,
}

impl Request {
    /// The request that is served. What it says is the invocation's.
    pub(super) const fn served() -> Request {
        Request { head: None, options: None, body: Body::Of(Of::Request) }
    }
}

impl Resource for Request {
    fn memory_bytes(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.head_bytes())
    }

    fn dropped(&mut self) {
        self.body.abandon();
    }
}

impl Typed for Request {
    const NUMBER: u32 = number(TYPES, "request");
}

/// A `response`.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: Arc<HeaderMap>,
    pub(super) body: Body,
}

impl Resource for Response {
    fn memory_bytes(&self) -> usize {
        memory_bytes(&self.headers)
    }

    fn dropped(&mut self) {
        self.body.abandon();
    }
}

impl Typed for Response {
    const NUMBER: u32 = number(TYPES, "response");
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[static]request.new", &[I32, I32, I32, I32, I32, I32, I32, I32, I32], &[], Stream, new_request),
    canonical(TYPES, "[method]request.get-method", &[I32, I32, I32], &[I32], Head, method),
    canonical(TYPES, "[method]request.set-method", &[I32, I32, I32, I32, I32], &[I32], Head, set_method),
    canonical(TYPES, "[method]request.get-path-with-query", &[I32, I32, I32], &[I32], Head, target),
    canonical(TYPES, "[method]request.set-path-with-query", &[I32, I32, I32, I32, I32], &[I32], Head, set_target),
    canonical(TYPES, "[method]request.get-scheme", &[I32, I32, I32], &[I32], Head, scheme),
    canonical(TYPES, "[method]request.set-scheme", &[I32, I32, I32, I32, I32, I32], &[I32], Head, set_scheme),
    canonical(TYPES, "[method]request.get-authority", &[I32, I32, I32], &[I32], Head, authority),
    canonical(TYPES, "[method]request.set-authority", &[I32, I32, I32, I32, I32], &[I32], Head, set_authority),
    canonical(TYPES, "[method]request.get-options", &[I32, I32, I32], &[], Safe, options),
    canonical(TYPES, "[method]request.get-headers", &[I32, I32], &[I32], Head, headers),
    canonical(TYPES, "[static]request.consume-body", &[I32, I32, I32, I32, I32], &[], Stream, consume_request),
    canonical(TYPES, "[static]response.new", &[I32, I32, I32, I32, I32, I32, I32], &[], Stream, new_response),
    canonical(TYPES, "[method]response.get-status-code", &[I32, I32], &[I32], Safe, status),
    canonical(TYPES, "[method]response.set-status-code", &[I32, I32, I32], &[I32], Safe, set_status),
    canonical(TYPES, "[method]response.get-headers", &[I32, I32], &[I32], Safe, response_headers),
    canonical(TYPES, "[static]response.consume-body", &[I32, I32, I32, I32, I32], &[], Stream, consume_response),
];

/// The number of the stream at argument 3, if argument 2 says that there is one.
fn contents(call: &Call<'_>) -> Result<Option<u32>, Stop> {
    Ok(call.is_some(2)?.then(|| call.args.u32(3)))
}

/// `new(headers, contents: option<stream<u8>>, trailers: future<..>, options: option<request-options>) -> tuple<request, future<..>>`
fn new_request(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let headers = call.owned::<HttpFields>(1)?.into_map();
    let ends = (contents(call)?, call.args.u32(4), call.args.u32(8));
    let options = if call.is_some(5)? { Some(call.owned::<HttpOptions>(6)?.times) } else { None };
    let written = write_message(call, &headers, true, ends)?;
    let head = Some(Box::new(OutgoingRequest::new(headers)));
    let request = call.give(Request { head, options, body: Body::Written(written) })?;
    call.lower(7, request)
}

/// `new(headers, contents: option<stream<u8>>, trailers: future<..>) -> tuple<response, future<..>>`
fn new_response(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let headers = call.owned::<HttpFields>(1)?.into_map();
    let ends = (contents(call)?, call.args.u32(4), call.args.u32(6));
    let written = write_message(call, &headers, false, ends)?;
    let response = call.give(Response { status: StatusCode::OK, headers, body: Body::Written(written) })?;
    call.lower(5, response)
}

/// What the request of argument 1 says, or the request that is served does.
fn said<T>(
    call: &mut Call<'_>,
    own: impl FnOnce(&OutgoingRequest) -> T,
    served: impl FnOnce(&mut Call<'_>) -> Result<T, Stop>,
) -> Result<T, Stop> {
    match &call.borrowed::<Request>(1)?.head {
        Some(head) => Ok(own(head)),
        None => served(call),
    }
}

/// The head of the request that is served, as one that can be changed.
///
/// # Errors
/// When it cannot be read.
pub(super) fn served_head(call: &mut Call<'_>) -> Result<Box<OutgoingRequest>, Stop> {
    let mut head = OutgoingRequest::new(Arc::new(served_headers(call)?));
    head.method = served_method(call)?;
    head.scheme = Some(served_scheme(call)?);
    head.authority = served_authority(call)?.and_then(|authority| Authority::try_from(authority).ok());
    head.target = Some(served_target(call)?);
    Ok(Box::new(head))
}

/// What is set in the request of argument 1, for the component: whether that failed.
fn set<T>(call: &mut Call<'_>, value: Option<T>, set: impl FnOnce(&mut OutgoingRequest, T)) -> Result<Flat, Stop> {
    let representation = call.representation::<Request>(1)?;
    let Some(value) = value else { return Ok(Flat::from(true)) };
    if call.borrowed::<Request>(1)?.head.is_none() {
        let head = served_head(call)?;
        call.borrowed::<Request>(1)?.head = Some(head);
    }
    if let Some(head) = &mut call.borrowed::<Request>(1)?.head {
        set(head, value);
    }
    call.context.ports.resources_mut().count(representation)?;
    Ok(Flat::from(false))
}

/// `get-method(self) -> method`
fn method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let method = said(call, |head| head.method.clone(), served_method)?;
    call.lower(2, HttpMethod(method))
}

/// `set-method(self, method: method) -> result`
fn set_method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let method = method_argument(call)?;
    set(call, method, |head, method| head.method = method)
}

/// `get-path-with-query(self) -> option<string>`
fn target(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = said(call, |head| head.target.clone(), |call| served_target(call).map(Some))?;
    call.lower(2, target.as_ref().map(|target| target.as_str()))
}

/// `set-path-with-query(self, path-with-query: option<string>) -> result`
fn set_target(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = target_argument(call)?;
    set(call, target, |head, target| head.target = target)
}

/// `get-scheme(self) -> option<scheme>`
fn scheme(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let scheme = said(call, |head| head.scheme.clone(), |call| served_scheme(call).map(Some))?;
    call.lower(2, scheme.map(HttpScheme))
}

/// `set-scheme(self, scheme: option<scheme>) -> result`
fn set_scheme(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let scheme = scheme_argument(call)?;
    set(call, scheme, |head, scheme| head.scheme = scheme)
}

/// `get-authority(self) -> option<string>`
fn authority(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let own = |head: &OutgoingRequest| head.authority.as_ref().map(|authority| authority.as_str().to_owned());
    let authority = said(call, own, served_authority)?;
    call.lower(2, authority)
}

/// `set-authority(self, authority: option<string>) -> result`
fn set_authority(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let authority = authority_argument(call)?;
    set(call, authority, |head, authority| head.authority = authority)
}

/// `get-options(self) -> option<request-options>`
fn options(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let options = call.borrowed::<Request>(1)?.options;
    let given = options.map(|times| call.give(HttpOptions { times, is_immutable: true })).transpose()?;
    call.lower(2, given)
}

/// `get-headers(self) -> headers`
fn headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let map = said(call, |head| Arc::clone(&head.headers), |call| served_headers(call).map(Arc::new))?;
    call.give(HttpFields::of_message(map)).map(|own| Flat::from(own.0))
}

/// `consume-body(this: request, res: future<..>) -> tuple<stream<u8>, future<..>>`
fn consume_request(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let body = call.owned::<Request>(1)?.body;
    consume(call, body)
}

/// `consume-body(this: response, res: future<..>) -> tuple<stream<u8>, future<..>>`
fn consume_response(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let body = call.owned::<Response>(1)?.body;
    consume(call, body)
}

fn consume(call: &mut Call<'_>, body: Body) -> Result<Flat, Stop> {
    let verdict = call.args.u32(2);
    if call.taken(verdict).is_none() {
        call.share(verdict, Arc::new(Verdict))?;
    }
    let (source, trailers) = body.read(call)?;
    call.share(call.args.u32(3), source)?;
    call.share(call.args.u32(4), trailers)?;
    Ok(Flat::NONE)
}

/// `get-status-code(self) -> status-code`
fn status(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::from(u32::from(call.borrowed::<Response>(1)?.status.as_u16())))
}

/// `set-status-code(self, status-code: status-code) -> result`
fn set_status(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let status = status_argument(call, 599);
    let response = call.borrowed::<Response>(1)?;
    if let Some(status) = status {
        response.status = status;
    }
    Ok(Flat::from(status.is_none()))
}

/// `get-headers(self) -> headers`
fn response_headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let map = Arc::clone(&call.borrowed::<Response>(1)?.headers);
    call.give(HttpFields::of_message(map)).map(|own| Flat::from(own.0))
}
