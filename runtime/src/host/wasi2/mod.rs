//! WASI 0.2, as components import it: interfaces by their track (`wasi:io/streams@0.2`).
//!
//! Signatures and semantics follow the packages' WIT. What preview 1 has, too, has its body there ([`wasi`](super::wasi)).

pub(in crate::host) mod http;

use super::HostFunction;
use super::canonical::Resource;
use super::wasi::Grant;

/// The standard streams.
const STANDARD: u32 = 3;

/// How many resources every invocation of a function with these folders has: [`Resources::reserve`](super::canonical::Resources::reserve).
pub(in crate::host) const fn standing(grants: &[Grant]) -> u32 {
    // Far fewer.
    STANDARD + grants.len() as u32
}

/// One of them, by its representation.
pub(in crate::host) fn stand(_: &[Grant], _: u32) -> Option<Box<dyn Resource>> {
    None
}

/// All interfaces.
pub(in crate::host) const FUNCTIONS: &[&[HostFunction]] = &[];
