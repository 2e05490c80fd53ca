//! `wasi:http` 0.3: requests and responses are the same whichever way they go.
//!
//! What they do is what those of [WASI 0.2](crate::host::wasi2::http) do; here are their resources, and the streams and futures of their bodies.

mod body;
pub(super) mod fields;
pub(super) mod message;
pub(super) mod options;
pub(super) mod service;
#[cfg(test)]
mod tests;
mod trailers;
mod verdict;
mod written;

/// Module name of the types' imports.
pub(super) const TYPES: &str = "wasi:http/types@0.3";
