//! `outgoing-request`: a request to another server, until it is sent.

use std::borrow::Cow;
use std::sync::Arc;

use awsm_abi::types::ValType::I32;
use hyper::Method;
use hyper::header::HeaderMap;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};

use super::TYPES;
use super::fields::{HttpFields, memory_bytes};
use super::outgoing::{Outgoing, OutgoingBody};
use super::request::{HttpMethod, HttpScheme, METHODS};
use crate::host::Effect::Safe;
use crate::host::canonical::{Resource, Typed, canonical, number};
use crate::host::{Call, Flat, HostFunction, Stop};

/// The longest method, path or authority.
const TEXT_BYTES_MAX: u64 = 8 << 10;

/// An `outgoing-request`.
#[derive(Debug)]
pub(in crate::host) struct OutgoingRequest {
    pub(in crate::host) method: Method,
    pub(in crate::host) scheme: Option<Scheme>,
    pub(in crate::host) authority: Option<Authority>,
    pub(in crate::host) target: Option<PathAndQuery>,
    pub(in crate::host) headers: Arc<HeaderMap>,
    pub(in crate::host) body: Option<Arc<Outgoing>>,
}

impl OutgoingRequest {
    /// One with these headers, and nothing else that was said.
    pub(in crate::host) const fn new(headers: Arc<HeaderMap>) -> OutgoingRequest {
        OutgoingRequest { method: Method::GET, scheme: None, authority: None, target: None, headers, body: None }
    }

    /// Bytes of its head.
    pub(in crate::host) fn head_bytes(&self) -> usize {
        let authority = self.authority.as_ref().map_or(0, |authority| authority.as_str().len());
        let target = self.target.as_ref().map_or(0, |target| target.as_str().len());
        memory_bytes(&self.headers) + self.method.as_str().len() + authority + target
    }
}

impl Resource for OutgoingRequest {
    fn memory_bytes(&self) -> usize {
        self.head_bytes() + self.body.as_ref().map_or(0, |body| body.memory_bytes())
    }

    fn dropped(&mut self) {
        if let Some(body) = &self.body {
            body.abandon();
        }
    }
}

impl Typed for OutgoingRequest {
    const NUMBER: u32 = number(TYPES, "outgoing-request");
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]outgoing-request", &[I32, I32], &[I32], Safe, constructor),
    canonical(TYPES, "[method]outgoing-request.body", &[I32, I32, I32], &[], Safe, body),
    canonical(TYPES, "[method]outgoing-request.method", &[I32, I32, I32], &[I32], Safe, method),
    canonical(TYPES, "[method]outgoing-request.set-method", &[I32, I32, I32, I32, I32], &[I32], Safe, set_method),
    canonical(TYPES, "[method]outgoing-request.path-with-query", &[I32, I32, I32], &[I32], Safe, target),
    canonical(TYPES, "[method]outgoing-request.set-path-with-query", &[I32, I32, I32, I32, I32], &[I32], Safe, set_target),
    canonical(TYPES, "[method]outgoing-request.scheme", &[I32, I32, I32], &[I32], Safe, scheme),
    canonical(TYPES, "[method]outgoing-request.set-scheme", &[I32, I32, I32, I32, I32, I32], &[I32], Safe, set_scheme),
    canonical(TYPES, "[method]outgoing-request.authority", &[I32, I32, I32], &[I32], Safe, authority),
    canonical(TYPES, "[method]outgoing-request.set-authority", &[I32, I32, I32, I32, I32], &[I32], Safe, set_authority),
    canonical(TYPES, "[method]outgoing-request.headers", &[I32, I32], &[I32], Safe, headers),
];

/// `constructor(headers: headers) -> outgoing-request`
fn constructor(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let headers = call.owned::<HttpFields>(1)?.into_map();
    call.give(OutgoingRequest::new(headers)).map(|own| Flat::from(own.0))
}

/// `body(self) -> result<outgoing-body>`: once, and not where the headers say no length that is one.
fn body(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingRequest>(1)?;
    let request = call.borrowed::<OutgoingRequest>(1)?;
    let result = match OutgoingBody::of(&mut request.body, &request.headers, true, representation) {
        Some(body) => Ok(call.give(body)?),
        None => Err(()),
    };
    call.lower(2, result)
}

/// `method(self) -> method`
fn method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let method = call.borrowed::<OutgoingRequest>(1)?.method.clone();
    call.lower(2, HttpMethod(method))
}

/// The string at argument `index`, if it is not too long.
fn text<'c>(call: &'c Call<'_>, index: usize) -> Result<Option<Cow<'c, str>>, Stop> {
    call.text_within(index, TEXT_BYTES_MAX)
}

/// What is set, for the component: whether that failed.
fn set<T>(call: &mut Call<'_>, value: Option<T>, set: impl FnOnce(&mut OutgoingRequest, T)) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingRequest>(1)?;
    let request = call.context.ports.resource::<OutgoingRequest>(representation)?;
    let has_failed = value.is_none();
    if let Some(value) = value {
        set(request, value);
    }
    call.context.ports.resources_mut().count(representation)?;
    Ok(Flat::from(has_failed))
}

/// An optional string at argument `index` that is parsed; none where it is wrong.
fn parsed<T>(call: &Call<'_>, index: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<Option<T>>, Stop> {
    if !call.is_some(index)? {
        return Ok(Some(None));
    }
    Ok(text(call, index + 1)?.and_then(|text| parse(&text)).map(Some))
}

/// The `method` that begins at argument 2; none where it is wrong.
pub(in crate::host) fn method_argument(call: &Call<'_>) -> Result<Option<Method>, Stop> {
    let case = call.case(2, METHODS.len() as u32 + 1)? as usize;
    Ok(match METHODS.get(case) {
        Some(method) => Some(method.clone()),
        None => text(call, 3)?.and_then(|text| Method::from_bytes(text.as_bytes()).ok()),
    })
}

/// The `option<string>` that is a path with a query and begins at argument 2; none where it is wrong. An empty path is that of the root.
pub(in crate::host) fn target_argument(call: &Call<'_>) -> Result<Option<Option<PathAndQuery>>, Stop> {
    parsed(call, 2, |text| PathAndQuery::try_from(if text.is_empty() { "/" } else { text }).ok())
}

/// The `option<scheme>` that begins at argument 2; none where it is wrong.
pub(in crate::host) fn scheme_argument(call: &Call<'_>) -> Result<Option<Option<Scheme>>, Stop> {
    if !call.is_some(2)? {
        return Ok(Some(None));
    }
    Ok(match call.case(3, 3)? {
        0 => Some(Some(Scheme::HTTP)),
        1 => Some(Some(Scheme::HTTPS)),
        _ => text(call, 4)?.and_then(|text| Scheme::try_from(&*text).ok()).map(Some),
    })
}

/// The `option<string>` that is an authority and begins at argument 2; none where it is wrong.
pub(in crate::host) fn authority_argument(call: &Call<'_>) -> Result<Option<Option<Authority>>, Stop> {
    parsed(call, 2, |text| Authority::try_from(text).ok().filter(has_good_port))
}

/// Whether an authority has no port, or one that is a port.
pub(super) fn has_good_port(authority: &Authority) -> bool {
    let server = authority.as_str().rsplit('@').next().unwrap_or_default();
    server.len() == authority.host().len() || authority.port_u16().is_some()
}

/// `set-method(self, method: method) -> result`
fn set_method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let method = method_argument(call)?;
    set(call, method, |request, method| request.method = method)
}

/// `path-with-query(self) -> option<string>`
fn target(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = call.borrowed::<OutgoingRequest>(1)?.target.as_ref().map(|target| target.as_str().to_owned());
    call.lower(2, target)
}

/// `set-path-with-query(self, path-with-query: option<string>) -> result`
fn set_target(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = target_argument(call)?;
    set(call, target, |request, target| request.target = target)
}

/// `scheme(self) -> option<scheme>`
fn scheme(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let scheme = call.borrowed::<OutgoingRequest>(1)?.scheme.clone().map(HttpScheme);
    call.lower(2, scheme)
}

/// `set-scheme(self, scheme: option<scheme>) -> result`
fn set_scheme(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let scheme = scheme_argument(call)?;
    set(call, scheme, |request, scheme| request.scheme = scheme)
}

/// `authority(self) -> option<string>`
fn authority(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let authority = call.borrowed::<OutgoingRequest>(1)?.authority.as_ref().map(|authority| authority.as_str().to_owned());
    call.lower(2, authority)
}

/// `set-authority(self, authority: option<string>) -> result`
fn set_authority(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let authority = authority_argument(call)?;
    set(call, authority, |request, authority| request.authority = authority)
}

/// `headers(self) -> headers`
fn headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingRequest>(1)?;
    let map = Arc::clone(&call.borrowed::<OutgoingRequest>(1)?.headers);
    call.give_child(HttpFields::of_message(map), Some(representation)).map(|own| Flat::from(own.0))
}
