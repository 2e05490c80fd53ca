//! `fields`: headers and trailers.

use std::sync::Arc;

use awsm_abi::types::ValType::I32;
use bytes::Bytes;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TRANSFER_ENCODING, UPGRADE,
};

use super::TYPES;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::Safe;
use crate::host::canonical::{Resource, Typed, canonical, enums, number};
use crate::host::{Call, Flat, HostFunction, Stop};

/// Fields of one resource.
const FIELDS_MAX: usize = 1_024;
/// Their names and values together.
const FIELDS_BYTES_MAX: usize = 128 << 10;
/// What a place for a field takes beside its name and value.
const FIELD_BYTES: usize = 128;
/// The longest name that a field can have.
const NAME_BYTES_MAX: u64 = (1 << 16) - 1;
/// What is a connection's, or the host's to say: components neither see nor set them.
const FORBIDDEN: [HeaderName; 9] = [
    CONNECTION,
    HOST,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// A `fields`.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpFields {
    map: Arc<HeaderMap>,
    /// Whether it belongs to a message that is there already.
    is_immutable: bool,
}

/// A `header-error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    InvalidSyntax,
    Forbidden,
    Immutable,
}

enums! { HeaderError }

/// Bytes of names and values.
fn content_bytes(map: &HeaderMap) -> usize {
    map.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// The same with what they take beside: a map has more places than fields, and further ones for fields of one name.
pub(super) fn memory_bytes(map: &HeaderMap) -> usize {
    content_bytes(map) + (map.capacity() + map.len() - map.keys_len()) * FIELD_BYTES
}

/// What components may see.
pub(super) fn visible(map: &HeaderMap) -> HeaderMap {
    map.iter().filter(|(name, _)| !FORBIDDEN.contains(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl HttpFields {
    /// Those of a message.
    pub(super) const fn of_message(map: Arc<HeaderMap>) -> HttpFields {
        HttpFields { map, is_immutable: true }
    }

    /// All of them, for a message.
    pub(super) fn into_map(self) -> Arc<HeaderMap> {
        self.map
    }
}

impl From<HeaderMap> for HttpFields {
    fn from(map: HeaderMap) -> HttpFields {
        HttpFields { map: Arc::new(map), is_immutable: false }
    }
}

impl Resource for HttpFields {
    fn memory_bytes(&self) -> usize {
        memory_bytes(&self.map)
    }
}

impl Typed for HttpFields {
    const NUMBER: u32 = number(TYPES, "fields");
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]fields", &[I32], &[I32], Safe, constructor),
    canonical(TYPES, "[static]fields.from-list", &[I32, I32, I32, I32], &[], Safe, from_list),
    canonical(TYPES, "[method]fields.get", &[I32, I32, I32, I32, I32], &[I32], Safe, get),
    canonical(TYPES, "[method]fields.has", &[I32, I32, I32, I32], &[I32], Safe, has),
    canonical(TYPES, "[method]fields.set", &[I32, I32, I32, I32, I32, I32, I32], &[], Safe, set),
    canonical(TYPES, "[method]fields.delete", &[I32, I32, I32, I32, I32], &[], Safe, delete),
    canonical(TYPES, "[method]fields.append", &[I32, I32, I32, I32, I32, I32, I32], &[], Safe, append),
    canonical(TYPES, "[method]fields.entries", &[I32, I32, I32], &[I32], Safe, entries),
    canonical(TYPES, "[method]fields.clone", &[I32, I32], &[I32], Safe, clone),
];

/// The name whose address and length are arguments 2 and 3; an empty one, which is none, where it is too long.
fn name<'c>(call: &'c Call<'_>) -> Result<&'c str, Stop> {
    Ok(call.text_within(2, NAME_BYTES_MAX)?.unwrap_or_default())
}

/// A field's name that a component may set.
fn settable(name: &str) -> Result<HeaderName, HeaderError> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderError::InvalidSyntax)?;
    if FORBIDDEN.contains(&name) { Err(HeaderError::Forbidden) } else { Ok(name) }
}

fn value(bytes: &[u8]) -> Result<HeaderValue, HeaderError> {
    HeaderValue::from_bytes(bytes).map_err(|_| HeaderError::InvalidSyntax)
}

/// Whether so many more may be in it.
fn check_count(map: &HeaderMap, more: usize) -> Result<(), Stop> {
    if map.len() + more > FIELDS_MAX { Err(ComponentTrap::FieldsTooLarge.into()) } else { Ok(()) }
}

fn check_bytes(map: &HeaderMap) -> Result<(), Stop> {
    if content_bytes(map) > FIELDS_BYTES_MAX { Err(ComponentTrap::FieldsTooLarge.into()) } else { Ok(()) }
}

/// Changes the fields of argument 1, where they may be changed; so many may come to be in them.
fn change(
    call: &mut Call<'_>,
    more: usize,
    change: impl FnOnce(&mut HeaderMap) -> Result<(), HeaderError>,
) -> Result<Result<(), HeaderError>, Stop> {
    let representation = call.representation::<HttpFields>(1)?;
    let fields = call.context.ports.resource::<HttpFields>(representation)?;
    if fields.is_immutable {
        return Ok(Err(HeaderError::Immutable));
    }
    check_count(&fields.map, more)?;
    let result = change(Arc::make_mut(&mut fields.map));
    check_bytes(&fields.map)?;
    call.context.ports.resources_mut().count(representation)?;
    Ok(result)
}

/// `constructor() -> fields`
fn constructor(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(HttpFields::default()).map(|own| Flat::from(own.0))
}

/// `from-list(entries: list<tuple<field-name, field-value>>) -> result<fields, header-error>`
fn from_list(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let entries = call.list::<(String, Bytes)>(1)?;
    let mut map = HeaderMap::new();
    check_count(&map, entries.len())?;
    let all = entries.iter().try_for_each(|(name, bytes)| {
        map.append(settable(name)?, value(bytes)?);
        Ok(())
    });
    check_bytes(&map)?;
    let result = match all {
        Ok(()) => Ok(call.give(HttpFields { map: Arc::new(map), is_immutable: false })?),
        Err(error) => Err::<_, HeaderError>(error),
    };
    call.lower(3, result)
}

/// `get(self, name: field-name) -> list<field-value>`
fn get(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = HeaderName::from_bytes(name(call)?.as_bytes());
    let fields = call.borrowed::<HttpFields>(1)?;
    // What is no name names none.
    let all = name.iter().flat_map(|name| fields.map.get_all(name));
    let values: Vec<_> = all.map(|value| Bytes::copy_from_slice(value.as_bytes())).collect();
    call.lower(4, values)
}

/// `has(self, name: field-name) -> bool`
fn has(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = HeaderName::from_bytes(name(call)?.as_bytes());
    let fields = call.borrowed::<HttpFields>(1)?;
    Ok(Flat::from(name.is_ok_and(|name| fields.map.contains_key(name))))
}

/// `set(self, name: field-name, value: list<field-value>) -> result<_, header-error>`
fn set(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (name, bytes) = (settable(name(call)?), call.list::<Bytes>(4)?);
    let result = change(call, bytes.len(), |map| {
        let (name, values) = (name?, bytes.iter().map(|bytes| value(bytes)).collect::<Result<Vec<_>, _>>()?);
        map.remove(&name);
        for value in values {
            map.append(name.clone(), value);
        }
        Ok(())
    })?;
    call.lower(6, result)
}

/// `delete(self, name: field-name) -> result<_, header-error>`
fn delete(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = settable(name(call)?);
    let result = change(call, 0, |map| {
        map.remove(name?);
        Ok(())
    })?;
    call.lower(4, result)
}

/// `append(self, name: field-name, value: field-value) -> result<_, header-error>`
fn append(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let bytes = call.bytes(4)?;
    if bytes.len() > FIELDS_BYTES_MAX {
        return Err(ComponentTrap::FieldsTooLarge.into());
    }
    let (name, bytes) = (settable(name(call)?), value(bytes));
    let result = change(call, 1, |map| {
        map.append(name?, bytes?);
        Ok(())
    })?;
    call.lower(6, result)
}

/// `entries(self) -> list<tuple<field-name, field-value>>`
fn entries(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let fields = call.borrowed::<HttpFields>(1)?;
    let copy = Bytes::copy_from_slice;
    let entries: Vec<_> =
        fields.map.iter().map(|(name, value)| (copy(name.as_str().as_bytes()), copy(value.as_bytes()))).collect();
    call.lower(2, entries)
}

/// `clone(self) -> fields`
fn clone(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let map = Arc::clone(&call.borrowed::<HttpFields>(1)?.map);
    call.give(HttpFields { map, is_immutable: false }).map(|own| Flat::from(own.0))
}
