//! `fields`: headers and trailers. Other than in WASI 0.2, too many or too large ones are an error.

use awsm_abi::types::ValType::I32;

use super::TYPES;
use crate::host::Effect::Safe;
use crate::host::canonical::{canonical, errors, number};
use crate::host::wasi2::http::fields::{
    Fields, Refusal, Version, append, clone, constructor, delete, entries, from_list, get, get_and_delete, has, set,
};
use crate::host::{HostFunction, Stop};

/// WASI 0.3.
#[derive(Debug)]
pub(in crate::host) struct Wasi3;

/// A `fields`.
pub(super) type HttpFields = Fields<Wasi3>;

/// A `header-error`, as far as the host says any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum HeaderError {
    InvalidSyntax,
    Forbidden,
    Immutable,
    SizeExceeded,
}

errors! { HeaderError }

impl Version for Wasi3 {
    const FIELDS: u32 = number(TYPES, "fields");
    type HeaderError = HeaderError;

    fn error(refusal: Refusal) -> Result<HeaderError, Stop> {
        Ok(match refusal {
            Refusal::Syntax => HeaderError::InvalidSyntax,
            Refusal::Forbidden => HeaderError::Forbidden,
            Refusal::Immutable => HeaderError::Immutable,
            Refusal::LongName | Refusal::TooLarge => HeaderError::SizeExceeded,
        })
    }
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]fields", &[I32], &[I32], Safe, constructor::<Wasi3>),
    canonical(TYPES, "[static]fields.from-list", &[I32, I32, I32, I32], &[I32], Safe, from_list::<Wasi3>),
    canonical(TYPES, "[method]fields.get", &[I32, I32, I32, I32, I32], &[I32], Safe, get::<Wasi3>),
    canonical(TYPES, "[method]fields.has", &[I32, I32, I32, I32], &[I32], Safe, has::<Wasi3>),
    canonical(TYPES, "[method]fields.set", &[I32, I32, I32, I32, I32, I32, I32], &[I32], Safe, set::<Wasi3>),
    canonical(TYPES, "[method]fields.delete", &[I32, I32, I32, I32, I32], &[I32], Safe, delete::<Wasi3>),
    canonical(TYPES, "[method]fields.get-and-delete", &[I32, I32, I32, I32, I32], &[I32], Safe, get_and_delete::<Wasi3>),
    canonical(TYPES, "[method]fields.append", &[I32, I32, I32, I32, I32, I32, I32], &[I32], Safe, append::<Wasi3>),
    canonical(TYPES, "[method]fields.copy-all", &[I32, I32, I32], &[I32], Safe, entries::<Wasi3>),
    canonical(TYPES, "[method]fields.clone", &[I32, I32], &[I32], Safe, clone::<Wasi3>),
];
