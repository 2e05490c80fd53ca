//! `wasi:sockets/network` and `instance-network`: a handle that every component can have. What it reaches is the function's configuration.

use awsm_abi::types::ValType::I32;

use super::NETWORK;
use crate::host::Effect::{Safe, Stream};
use crate::host::canonical::{Resource, Typed, canonical, number};
use crate::host::wasi2::error::IoError;
use crate::host::{Call, Flat, HostFunction, Stop};

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(NETWORK, "network-error-code", &[I32, I32, I32], &[], Safe, network_error_code),
    canonical("wasi:sockets/instance-network@0.2", "instance-network", &[I32], &[I32], Stream, instance_network),
];

/// A `network`.
#[derive(Debug)]
pub(in crate::host) struct Network;

impl Resource for Network {}

impl Typed for Network {
    const NUMBER: u32 = number(NETWORK, "network");
}

/// `network-error-code(err: borrow<error>) -> option<error-code>`
fn network_error_code(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let code = call.borrowed::<IoError>(1)?.network;
    call.lower(2, code)
}

/// `instance-network() -> network`
fn instance_network(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(Network).map(|own| Flat::from(own.0))
}
