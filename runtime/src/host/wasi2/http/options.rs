//! `request-options`: how long a request to another server may take.

use awsm_abi::types::ValType::{I32, I64};

use super::TYPES;
use crate::host::Effect::Safe;
use crate::host::canonical::{Resource, Typed, canonical, number};
use crate::host::{Call, Flat, HostFunction, Stop};

/// A `request-options`: times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::host) struct RequestOptions {
    /// Until there is a connection.
    pub(in crate::host) connect: Option<u64>,
    /// Until the response begins.
    pub(in crate::host) first_byte: Option<u64>,
    /// Until more of its body comes.
    pub(in crate::host) between_bytes: Option<u64>,
}

impl Resource for RequestOptions {}

impl Typed for RequestOptions {
    const NUMBER: u32 = number(TYPES, "request-options");
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]request-options", &[I32], &[I32], Safe, options),
    canonical(TYPES, "[method]request-options.connect-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |options| &mut options.connect)
    }),
    canonical(TYPES, "[method]request-options.set-connect-timeout", &[I32, I32, I32, I64], &[I32], Safe, |call| {
        set_time(call, |options| &mut options.connect)
    }),
    canonical(TYPES, "[method]request-options.first-byte-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |options| &mut options.first_byte)
    }),
    canonical(TYPES, "[method]request-options.set-first-byte-timeout", &[I32, I32, I32, I64], &[I32], Safe, |call| {
        set_time(call, |options| &mut options.first_byte)
    }),
    canonical(TYPES, "[method]request-options.between-bytes-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |options| &mut options.between_bytes)
    }),
    canonical(TYPES, "[method]request-options.set-between-bytes-timeout", &[I32, I32, I32, I64], &[I32], Safe, |call| {
        set_time(call, |options| &mut options.between_bytes)
    }),
];

/// `constructor() -> request-options`
fn options(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(RequestOptions::default()).map(|own| Flat::from(own.0))
}

/// `connect-timeout(self) -> option<duration>`, and the others.
fn time(call: &mut Call<'_>, of: impl FnOnce(&mut RequestOptions) -> &mut Option<u64>) -> Result<Flat, Stop> {
    let time = *of(call.borrowed::<RequestOptions>(1)?);
    call.lower(2, time)
}

/// `set-connect-timeout(self, duration: option<duration>) -> result`, and the others.
fn set_time(call: &mut Call<'_>, of: impl FnOnce(&mut RequestOptions) -> &mut Option<u64>) -> Result<Flat, Stop> {
    let time = if call.is_some(2)? { Some(call.args.u64(3)) } else { None };
    *of(call.borrowed::<RequestOptions>(1)?) = time;
    Ok(Flat::from(false))
}
