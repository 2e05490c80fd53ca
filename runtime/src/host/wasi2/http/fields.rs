//! `fields`: headers and trailers, of WASI 0.2 and, as far as they are alike, of 0.3.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use awsm_abi::types::ValType::I32;
use bytes::Bytes;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TRANSFER_ENCODING, UPGRADE,
};

use super::TYPES;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::Safe;
use crate::host::canonical::{Lower, Resource, Typed, canonical, enums, number};
use crate::host::{Call, Flat, HostFunction, Stop};

/// Fields of one resource.
const FIELDS_MAX: usize = 1_024;
/// Their names and values together.
const FIELDS_BYTES_MAX: usize = 128 << 10;
/// What a component of WASI 0.2 hears beyond these.
pub(super) const TOO_LARGE: ComponentTrap = ComponentTrap::FieldsTooLarge { fields_max: FIELDS_MAX, bytes_max: FIELDS_BYTES_MAX };
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

/// A version of the interface. Its `fields` are a resource of their own.
pub(in crate::host) trait Version: fmt::Debug + Send + 'static {
    /// The number of its `fields`: [`number`].
    const FIELDS: u32;
    /// Its `header-error`.
    type HeaderError: Lower;

    /// What it answers where that is refused.
    ///
    /// # Errors
    /// A trap, where its `header-error` does not say that.
    fn error(refusal: Refusal) -> Result<Self::HeaderError, Stop>;
}

/// Why fields are not what a component wants them to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Refusal {
    /// A name or a value is none.
    Syntax,
    /// A name is longer than names are.
    LongName,
    /// A name is one that components do not set.
    Forbidden,
    /// They belong to a message that is there already.
    Immutable,
    /// They would be too many, or too large.
    TooLarge,
}

/// A `fields` of that version.
#[derive(Debug)]
pub(in crate::host) struct Fields<V> {
    map: Arc<HeaderMap>,
    /// Whether it belongs to a message that is there already.
    is_immutable: bool,
    version: PhantomData<V>,
}

/// WASI 0.2.
#[derive(Debug)]
pub(in crate::host) struct Wasi2;

/// A `fields` of WASI 0.2.
pub(super) type HttpFields = Fields<Wasi2>;

/// A `header-error` of WASI 0.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum HeaderError {
    InvalidSyntax,
    Forbidden,
    Immutable,
}

enums! { HeaderError }

impl Version for Wasi2 {
    const FIELDS: u32 = number(TYPES, "fields");
    type HeaderError = HeaderError;

    fn error(refusal: Refusal) -> Result<HeaderError, Stop> {
        Ok(match refusal {
            Refusal::Syntax | Refusal::LongName => HeaderError::InvalidSyntax,
            Refusal::Forbidden => HeaderError::Forbidden,
            Refusal::Immutable => HeaderError::Immutable,
            Refusal::TooLarge => return Err(TOO_LARGE.into()),
        })
    }
}

/// How many fields those are, and bytes of their names and values.
fn extent<'m>(fields: impl Iterator<Item = (&'m HeaderName, &'m HeaderValue)>) -> (usize, usize) {
    fields.fold((0, 0), |(count, bytes), (name, value)| (count + 1, bytes + name.as_str().len() + value.len()))
}

/// Bytes of names and values with what they take beside: a map has more places than fields, and further ones for fields of one name.
pub(in crate::host) fn memory_bytes(map: &HeaderMap) -> usize {
    extent(map.iter()).1 + (map.capacity() + map.len() - map.keys_len()) * FIELD_BYTES
}

/// What components may see.
pub(in crate::host) fn visible(map: &HeaderMap) -> HeaderMap {
    map.iter().filter(|(name, _)| !FORBIDDEN.contains(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl<V> Fields<V> {
    /// Those of a message.
    pub(in crate::host) const fn of_message(map: Arc<HeaderMap>) -> Fields<V> {
        Fields { map, is_immutable: true, version: PhantomData }
    }

    /// All of them, for a message.
    pub(in crate::host) fn into_map(self) -> Arc<HeaderMap> {
        self.map
    }
}

impl<V> From<Arc<HeaderMap>> for Fields<V> {
    fn from(map: Arc<HeaderMap>) -> Fields<V> {
        Fields { map, is_immutable: false, version: PhantomData }
    }
}

impl<V> From<HeaderMap> for Fields<V> {
    fn from(map: HeaderMap) -> Fields<V> {
        Fields::from(Arc::new(map))
    }
}

impl<V: Version> Resource for Fields<V> {
    fn memory_bytes(&self) -> usize {
        memory_bytes(&self.map)
    }
}

impl<V: Version> Typed for Fields<V> {
    const NUMBER: u32 = V::FIELDS;
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]fields", &[I32], &[I32], Safe, constructor::<Wasi2>),
    canonical(TYPES, "[static]fields.from-list", &[I32, I32, I32, I32], &[], Safe, from_list::<Wasi2>),
    canonical(TYPES, "[method]fields.get", &[I32, I32, I32, I32, I32], &[I32], Safe, get::<Wasi2>),
    canonical(TYPES, "[method]fields.has", &[I32, I32, I32, I32], &[I32], Safe, has::<Wasi2>),
    canonical(TYPES, "[method]fields.set", &[I32, I32, I32, I32, I32, I32, I32], &[], Safe, set::<Wasi2>),
    canonical(TYPES, "[method]fields.delete", &[I32, I32, I32, I32, I32], &[], Safe, delete::<Wasi2>),
    canonical(TYPES, "[method]fields.append", &[I32, I32, I32, I32, I32, I32, I32], &[], Safe, append::<Wasi2>),
    canonical(TYPES, "[method]fields.entries", &[I32, I32, I32], &[I32], Safe, entries::<Wasi2>),
    canonical(TYPES, "[method]fields.clone", &[I32, I32], &[I32], Safe, clone::<Wasi2>),
];

/// The text whose address and length are arguments 2 and 3, unless it is longer than a name.
fn text<'c>(call: &'c Call<'_>) -> Result<Result<Cow<'c, str>, Refusal>, Stop> {
    Ok(call.text_within(2, NAME_BYTES_MAX)?.ok_or(Refusal::LongName))
}

/// The name there. What is no name names none.
fn name(call: &Call<'_>) -> Result<Option<HeaderName>, Stop> {
    Ok(text(call)?.ok().and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()))
}

/// The same as the name of a field that a component may set.
fn named(call: &Call<'_>) -> Result<Result<HeaderName, Refusal>, Stop> {
    Ok(text(call)?.and_then(|name| settable(&name)))
}

/// A field's name that a component may set.
fn settable(name: &str) -> Result<HeaderName, Refusal> {
    if name.len() as u64 > NAME_BYTES_MAX {
        return Err(Refusal::LongName);
    }
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Refusal::Syntax)?;
    if FORBIDDEN.contains(&name) { Err(Refusal::Forbidden) } else { Ok(name) }
}

fn value(bytes: &[u8]) -> Result<HeaderValue, Refusal> {
    if bytes.len() > FIELDS_BYTES_MAX {
        return Err(Refusal::TooLarge);
    }
    HeaderValue::from_bytes(bytes).map_err(|_| Refusal::Syntax)
}

/// Whether so many may be in one resource.
const fn check_count(count: usize) -> Result<(), Refusal> {
    if count > FIELDS_MAX { Err(Refusal::TooLarge) } else { Ok(()) }
}

/// Whether these may be in one resource.
fn check<'m>(fields: impl Iterator<Item = (&'m HeaderName, &'m HeaderValue)>) -> Result<(), Refusal> {
    let (count, bytes) = extent(fields);
    check_count(count)?;
    if bytes > FIELDS_BYTES_MAX { Err(Refusal::TooLarge) } else { Ok(()) }
}

/// Gives a result to the component, at the address that is argument `index`.
fn answer<V: Version, T: Lower>(call: &mut Call<'_>, index: usize, result: Result<T, Refusal>) -> Result<Flat, Stop> {
    let result = match result {
        Ok(value) => Ok(value),
        Err(refusal) => Err(V::error(refusal)?),
    };
    call.lower(index, result)
}

/// Changes the fields of argument 1, where they may be changed; what comes of it goes to the address that is argument `index`. What refuses leaves the map as it was.
fn change<V: Version, T: Lower>(
    call: &mut Call<'_>,
    index: usize,
    change: impl FnOnce(&mut HeaderMap) -> Result<T, Refusal>,
) -> Result<Flat, Stop> {
    let representation = call.representation::<Fields<V>>(1)?;
    let fields = call.context.ports.resource::<Fields<V>>(representation)?;
    if fields.is_immutable {
        return answer::<V, T>(call, index, Err(Refusal::Immutable));
    }
    let result = change(Arc::make_mut(&mut fields.map));
    call.context.ports.resources_mut().count(representation)?;
    answer::<V, T>(call, index, result)
}

/// Copies of a name's values.
fn values(map: &HeaderMap, name: &HeaderName) -> Vec<Bytes> {
    map.get_all(name).iter().map(|value| Bytes::copy_from_slice(value.as_bytes())).collect()
}

/// `constructor() -> fields`
pub(in crate::host) fn constructor<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(Fields::<V>::from(HeaderMap::new())).map(|own| Flat::from(own.0))
}

/// The fields that the list of argument 1 names.
///
/// # Errors
/// A trap, where any of the list is none, also behind what is refused.
fn listed(call: &Call<'_>) -> Result<Result<HeaderMap, Refusal>, Stop> {
    let (count, entries) = call.named_bytes(1)?;
    let mut listed = check_count(count).map(|()| HeaderMap::new());
    for entry in entries {
        let (name, bytes) = entry?;
        if let Ok(map) = &mut listed
            && let Err(refusal) = append_to(map, &name, bytes)
        {
            listed = Err(refusal);
        }
    }
    Ok(listed.and_then(|map| check(map.iter()).map(|()| map)))
}

fn append_to(map: &mut HeaderMap, name: &str, bytes: &[u8]) -> Result<(), Refusal> {
    map.append(settable(name)?, value(bytes)?);
    Ok(())
}

/// `from-list(entries: list<tuple<field-name, field-value>>) -> result<fields, header-error>`
pub(in crate::host) fn from_list<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let result = match listed(call)? {
        Ok(map) => Ok(call.give(Fields::<V>::from(map))?),
        Err(refusal) => Err(refusal),
    };
    answer::<V, _>(call, 3, result)
}

/// `get(self, name: field-name) -> list<field-value>`
pub(in crate::host) fn get<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = name(call)?;
    let fields = call.borrowed::<Fields<V>>(1)?;
    let values = name.map_or_else(Vec::new, |name| values(&fields.map, &name));
    call.lower(4, values)
}

/// `has(self, name: field-name) -> bool`
pub(in crate::host) fn has<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = name(call)?;
    let fields = call.borrowed::<Fields<V>>(1)?;
    Ok(Flat::from(name.is_some_and(|name| fields.map.contains_key(name))))
}

/// `set(self, name: field-name, value: list<field-value>) -> result<_, header-error>`
pub(in crate::host) fn set<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (name, bytes) = (named(call)?, call.list::<Bytes>(4)?);
    change::<V, _>(call, 6, |map| {
        let name = name?;
        check_count(bytes.len())?;
        let values = bytes.iter().map(|bytes| value(bytes)).collect::<Result<Vec<_>, _>>()?;
        let others = map.iter().filter(|(other, _)| **other != name);
        check(others.chain(values.iter().map(|value| (&name, value))))?;
        map.remove(&name);
        for value in values {
            map.append(name.clone(), value);
        }
        Ok(())
    })
}

/// `delete(self, name: field-name) -> result<_, header-error>`
pub(in crate::host) fn delete<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = named(call)?;
    change::<V, _>(call, 4, |map| {
        map.remove(name?);
        Ok(())
    })
}

/// `get-and-delete(self, name: field-name) -> result<list<field-value>, header-error>`
pub(in crate::host) fn get_and_delete<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = named(call)?;
    change::<V, _>(call, 4, |map| {
        let name = name?;
        let values = values(map, &name);
        map.remove(name);
        Ok(values)
    })
}

/// `append(self, name: field-name, value: field-value) -> result<_, header-error>`
pub(in crate::host) fn append<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (name, value) = (named(call)?, value(call.bytes(4)?));
    change::<V, _>(call, 6, |map| {
        let (name, value) = (name?, value?);
        check(map.iter().chain([(&name, &value)]))?;
        map.append(name, value);
        Ok(())
    })
}

/// `entries(self) -> list<tuple<field-name, field-value>>`, which is `copy-all` in WASI 0.3.
pub(in crate::host) fn entries<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let fields = call.borrowed::<Fields<V>>(1)?;
    let entry = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), Bytes::copy_from_slice(value.as_bytes()));
    let entries: Vec<_> = fields.map.iter().map(entry).collect();
    call.lower(2, entries)
}

/// `clone(self) -> fields`
pub(in crate::host) fn clone<V: Version>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let map = Arc::clone(&call.borrowed::<Fields<V>>(1)?.map);
    call.give(Fields::<V>::from(map)).map(|own| Flat::from(own.0))
}
