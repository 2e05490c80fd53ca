//! WASI 0.3, as components import it. What is as in WASI 0.2 has its body [there](super::wasi2); this is what came new: streams and futures of which the host has one end.

mod cli;
mod ends;
mod filesystem;
mod http;
mod pump;
mod sockets;

pub(in crate::host) use ends::{ADDRESS, End, Ends, FaultCode, Moved, Outcome, Told, Transfer};
pub(in crate::host) use filesystem::Wasi3;

use awsm_abi::component;

use super::HostFunction;

/// All interfaces.
pub(in crate::host) const FUNCTIONS: &[&[HostFunction]] = &[
    cli::FUNCTIONS,
    ends::FUNCTIONS,
    filesystem::FUNCTIONS,
    filesystem::SHARED,
    http::fields::FUNCTIONS,
    http::options::FUNCTIONS,
    http::message::FUNCTIONS,
    http::service::FUNCTIONS,
    sockets::TCP,
    sockets::UDP,
    sockets::lookup::FUNCTIONS,
];

/// Module name of what serves and makes requests.
pub const HTTP: &str = http::TYPES;

/// Whether that function of an interface makes streams or futures with the host.
#[must_use]
pub fn makes_ends(interface: &str, name: &str) -> bool {
    component::function(interface, name).is_some_and(|function| !function.ends.is_empty())
}
