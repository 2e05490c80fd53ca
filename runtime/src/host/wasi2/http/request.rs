//! `incoming-request`: the request that is served.

use std::sync::Arc;

use awsm_abi::types::ValType::I32;
use hyper::header::HOST;
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{HeaderMap, Method};

use super::TYPES;
use super::fields::{HttpFields, visible};
use super::incoming::IncomingBody;
use crate::host::Effect::{Head, Stream};
use crate::host::canonical::{Lower, Lowering, Place, Resource, Typed, canonical, number, variant};
use crate::host::{Call, Flat, HeadField, HostFunction, RequestHead, Stop};

/// An `incoming-request`. What it says is the invocation's.
#[derive(Debug, Default)]
pub(in crate::host) struct IncomingRequest {
    /// Whether its body was given away.
    is_consumed: bool,
}

impl Resource for IncomingRequest {}

impl Typed for IncomingRequest {
    const NUMBER: u32 = number(TYPES, "incoming-request");
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[method]incoming-request.method", &[I32, I32, I32], &[I32], Head, method),
    canonical(TYPES, "[method]incoming-request.path-with-query", &[I32, I32, I32], &[I32], Head, path_with_query),
    canonical(TYPES, "[method]incoming-request.scheme", &[I32, I32, I32], &[I32], Head, scheme),
    canonical(TYPES, "[method]incoming-request.authority", &[I32, I32, I32], &[I32], Head, authority),
    canonical(TYPES, "[method]incoming-request.headers", &[I32, I32], &[I32], Head, headers),
    canonical(TYPES, "[method]incoming-request.consume", &[I32, I32, I32], &[], Stream, consume),
];

/// A `method`.
#[derive(Debug)]
pub(in crate::host) struct HttpMethod(pub(in crate::host) Method);

/// The methods that are cases, in their order.
pub(super) const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::CONNECT,
    Method::OPTIONS,
    Method::TRACE,
    Method::PATCH,
];

/// A `scheme`.
#[derive(Debug)]
pub(in crate::host) struct HttpScheme(pub(in crate::host) Scheme);

/// Lowers one of so many cases, or behind them what it is called.
fn lower_or_other(to: &mut Lowering, place: Place, case: Option<usize>, cases: usize, text: &str) -> Result<(), Stop> {
    to.case(place, case.unwrap_or(cases) as u8);
    if case.is_none() { text.lower(to, place.plus(variant::payload(4))) } else { Ok(()) }
}

impl Lower for HttpMethod {
    const SIZE: u32 = variant::size(8, 4);
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let case = METHODS.iter().position(|method| *method == self.0);
        lower_or_other(to, place, case, METHODS.len(), self.0.as_str())
    }
}

impl Lower for HttpScheme {
    const SIZE: u32 = variant::size(8, 4);
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let case = [Scheme::HTTP, Scheme::HTTPS].iter().position(|scheme| *scheme == self.0);
        lower_or_other(to, place, case, 2, self.0.as_str())
    }
}

/// The head of the request that is served, of which that field is read; none of what another function has called, or runs on a terminal.
fn head<'a>(call: &'a mut Call<'_>, field: impl FnOnce() -> HeadField) -> Result<Option<&'a RequestHead>, Stop> {
    if let Some(trace) = call.context.trace_effects() {
        trace.head.insert(field());
    }
    call.context.ports.head()
}

/// The method of the request that is served: without a request it is what a body is sent by.
pub(in crate::host) fn served_method(call: &mut Call<'_>) -> Result<Method, Stop> {
    Ok(head(call, || HeadField::Method)?.map_or(Method::POST, |head| head.method.clone()))
}

/// The path and query of the request that is served.
pub(in crate::host) fn served_target(call: &mut Call<'_>) -> Result<PathAndQuery, Stop> {
    let target = head(call, || HeadField::Target)?.and_then(|head| head.target.path_and_query());
    Ok(target.cloned().unwrap_or_else(|| PathAndQuery::from_static("/")))
}

/// The scheme of the request that is served.
pub(in crate::host) fn served_scheme(call: &mut Call<'_>) -> Result<Scheme, Stop> {
    let is_secure = head(call, || HeadField::Target)?.is_some_and(|head| head.is_secure);
    Ok(if is_secure { Scheme::HTTPS } else { Scheme::HTTP })
}

/// The server that the request which is served names.
pub(in crate::host) fn served_authority(call: &mut Call<'_>) -> Result<Option<String>, Stop> {
    let head = head(call, || HeadField::Header(HOST.to_string()))?;
    Ok(head.and_then(|head| {
        let named = head.target.authority().map(|authority| authority.as_str());
        named.or_else(|| head.headers.get(HOST)?.to_str().ok()).map(str::to_owned)
    }))
}

/// The headers of the request that is served.
pub(in crate::host) fn served_headers(call: &mut Call<'_>) -> Result<HeaderMap, Stop> {
    Ok(head(call, || HeadField::Headers)?.map_or_else(HeaderMap::new, |head| visible(&head.headers)))
}

/// `method(self) -> method`
fn method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<IncomingRequest>(1)?;
    let method = served_method(call)?;
    call.lower(2, HttpMethod(method))
}

/// `path-with-query(self) -> option<string>`
fn path_with_query(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<IncomingRequest>(1)?;
    let target = served_target(call)?;
    call.lower(2, Some(target.as_str()))
}

/// `scheme(self) -> option<scheme>`
fn scheme(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<IncomingRequest>(1)?;
    let scheme = served_scheme(call)?;
    call.lower(2, Some(HttpScheme(scheme)))
}

/// `authority(self) -> option<string>`
fn authority(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<IncomingRequest>(1)?;
    let authority = served_authority(call)?;
    call.lower(2, authority)
}

/// `headers(self) -> headers`
fn headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let map = served_headers(call)?;
    let parent = call.representation::<IncomingRequest>(1)?;
    call.give_child(HttpFields::of_message(Arc::new(map)), Some(parent)).map(|own| Flat::from(own.0))
}

/// `consume(self) -> result<incoming-body>`: once.
fn consume(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let request = call.borrowed::<IncomingRequest>(1)?;
    let is_first = !std::mem::replace(&mut request.is_consumed, true);
    let result = if is_first { Ok(call.give(IncomingBody::of_request())?) } else { Err(()) };
    call.lower(2, result)
}
