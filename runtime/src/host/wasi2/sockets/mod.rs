//! `wasi:sockets`: TCP, UDP and the lookup of names, to where the function's configuration lets its sockets go, and nowhere else. WASI 0.3 shares most of it ([`Form`]).
//!
//! ```text
//!   tcp, udp --Reach (policy, what lookups gave)--> Socket --first use--> Watched (the runtime) <-- Look, of a guest that waits
//!   tcp: Connection -> streams        udp: Association -> datagrams        lookup: a task -> addresses -> Reach
//! ```
//!
//! All sockets are non-blocking, and the host keeps no bytes of theirs: what is not in the kernel is the guest's. A socket belongs to its invocation and is
//! closed with it. The runtime watches a socket from its first use on, which therefore is a wait: only there is the runtime at hand.

pub(in crate::host) mod address;
mod connection;
pub(in crate::host) mod datagrams;
mod error_code;
pub(in crate::host) mod listen;
pub(in crate::host) mod lookup;
pub(super) mod network;
pub(in crate::host) mod options;
mod reach;
pub(in crate::host) mod socket;
pub(in crate::host) mod tcp;
#[cfg(test)]
pub(in crate::host) mod tests;
pub(in crate::host) mod udp;
mod watched;

use std::fmt;

pub(in crate::host) use connection::{Connection, PERMIT_BYTES_MAX, send_some_then, send_then};
pub(in crate::host) use error_code::ErrorCode;
pub(in crate::host) use reach::{Door, Reach};
pub(in crate::host) use watched::{Waiting, Watched};

use crate::host::canonical::Lower;
use crate::host::{Call, Flat, Stop};

const NETWORK: &str = "wasi:sockets/network@0.2";
const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.2";
const TCP: &str = "wasi:sockets/tcp@0.2";
const UDP: &str = "wasi:sockets/udp@0.2";

/// A version's form of the interfaces. Most functions have one body for all of them.
pub(in crate::host) trait Form: fmt::Debug + Sized + 'static {
    /// Module name of what has `tcp-socket`.
    const TCP: &'static str;
    /// Module name of what has `udp-socket`.
    const UDP: &'static str;
    /// An `error-code`.
    type ErrorCode: Lower + From<ErrorCode> + 'static;
}

/// The form of WASI 0.2.
#[derive(Debug)]
pub(in crate::host) enum Wasi2 {}

impl Form for Wasi2 {
    const TCP: &'static str = TCP;
    const UDP: &'static str = UDP;
    type ErrorCode = ErrorCode;
}

/// Gives what came of it to the component, at the address that is argument `index`.
///
/// # Errors
/// As for [`Call::lower`].
pub(in crate::host) fn answer<F: Form, T: Lower>(
    call: &mut Call<'_>,
    index: usize,
    result: Result<T, ErrorCode>,
) -> Result<Flat, Stop> {
    call.lower(index, result.map_err(F::ErrorCode::from))
}
