//! Our own interfaces for components, as sdk/wit says them. Bodies are those of the flat form; what differs is how arguments come and results go.

mod call;
mod http;
mod keyvalue;
mod note;

use super::HostFunction;

pub use http::EXCHANGE;

/// All interfaces.
pub(super) const FUNCTIONS: &[&[HostFunction]] = &[keyvalue::FUNCTIONS, call::FUNCTIONS, note::FUNCTIONS, http::FUNCTIONS];
