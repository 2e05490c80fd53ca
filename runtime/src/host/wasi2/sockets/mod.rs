//! `wasi:sockets`: TCP, UDP and the lookup of names, to where the function's configuration lets its sockets go, and nowhere else.
//!
//! ```text
//!   tcp, udp --Reach (policy, what lookups gave)--> Socket --first use--> Watched (the runtime) <-- Look, of a guest that waits
//!   tcp: Connection -> streams        udp: Association -> datagrams        lookup: a task -> addresses -> Reach
//! ```
//!
//! All sockets are non-blocking, and the host keeps no bytes of theirs: what is not in the kernel is the guest's. A socket belongs to its invocation and is
//! closed with it. The runtime watches a socket from its first use on, which therefore is a wait: only there is the runtime at hand.

mod address;
mod connection;
pub(super) mod datagrams;
mod error_code;
pub(super) mod listen;
pub(super) mod lookup;
pub(super) mod network;
pub(super) mod options;
mod reach;
mod socket;
pub(super) mod tcp;
#[cfg(test)]
mod tests;
pub(super) mod udp;
mod watched;

pub(in crate::host) use connection::{Connection, PERMIT_BYTES_MAX, send_then};
pub(in crate::host) use error_code::ErrorCode;
pub(in crate::host) use reach::Reach;

const NETWORK: &str = "wasi:sockets/network@0.2";
const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.2";
const TCP: &str = "wasi:sockets/tcp@0.2";
const UDP: &str = "wasi:sockets/udp@0.2";
