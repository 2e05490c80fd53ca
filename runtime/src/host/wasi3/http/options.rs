//! `request-options`: how long a request to another server may take.

use awsm_abi::types::ValType::{I32, I64};

use super::TYPES;
use crate::host::Effect::Safe;
use crate::host::canonical::{Resource, Typed, canonical, errors, number};
use crate::host::wasi2::http::RequestOptions;
use crate::host::{Call, Flat, HostFunction, Stop};

/// A `request-options`.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::host) struct HttpOptions {
    /// What it says.
    pub(super) times: RequestOptions,
    /// Whether it belongs to a request that is there already.
    pub(super) is_immutable: bool,
}

impl Resource for HttpOptions {}

impl Typed for HttpOptions {
    const NUMBER: u32 = number(TYPES, "request-options");
}

/// A `request-options-error`, as far as the host says any.
#[derive(Clone, Copy, Debug)]
enum OptionsError {
    Immutable = 1,
}

errors! { OptionsError }

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]request-options", &[I32], &[I32], Safe, constructor),
    canonical(TYPES, "[method]request-options.get-connect-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |times| &mut times.connect)
    }),
    canonical(TYPES, "[method]request-options.set-connect-timeout", &[I32, I32, I32, I64, I32], &[I32], Safe, |call| {
        set_time(call, |times| &mut times.connect)
    }),
    canonical(TYPES, "[method]request-options.get-first-byte-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |times| &mut times.first_byte)
    }),
    canonical(TYPES, "[method]request-options.set-first-byte-timeout", &[I32, I32, I32, I64, I32], &[I32], Safe, |call| {
        set_time(call, |times| &mut times.first_byte)
    }),
    canonical(TYPES, "[method]request-options.get-between-bytes-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |times| &mut times.between_bytes)
    }),
    canonical(TYPES, "[method]request-options.set-between-bytes-timeout", &[I32, I32, I32, I64, I32], &[I32], Safe, |call| {
        set_time(call, |times| &mut times.between_bytes)
    }),
    canonical(TYPES, "[method]request-options.clone", &[I32, I32], &[I32], Safe, clone),
];

/// `constructor() -> request-options`
fn constructor(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(HttpOptions::default()).map(|own| Flat::from(own.0))
}

/// `get-connect-timeout(self) -> option<duration>`, and the others.
fn time(call: &mut Call<'_>, of: impl FnOnce(&mut RequestOptions) -> &mut Option<u64>) -> Result<Flat, Stop> {
    let time = *of(&mut call.borrowed::<HttpOptions>(1)?.times);
    call.lower(2, time)
}

/// `set-connect-timeout(self, duration: option<duration>) -> result<_, request-options-error>`, and the others.
fn set_time(call: &mut Call<'_>, of: impl FnOnce(&mut RequestOptions) -> &mut Option<u64>) -> Result<Flat, Stop> {
    let time = if call.is_some(2)? { Some(call.args.u64(3)) } else { None };
    let options = call.borrowed::<HttpOptions>(1)?;
    let result = if options.is_immutable {
        Err(OptionsError::Immutable)
    } else {
        *of(&mut options.times) = time;
        Ok(())
    };
    call.lower(4, result)
}

/// `clone(self) -> request-options`
fn clone(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let times = call.borrowed::<HttpOptions>(1)?.times;
    call.give(HttpOptions { times, is_immutable: false }).map(|own| Flat::from(own.0))
}
