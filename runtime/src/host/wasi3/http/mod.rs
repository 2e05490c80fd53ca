//! `wasi:http`: headers and trailers, and the times of requests to other servers. What is as in WASI 0.2 has its body [there](crate::host::wasi2::http).

pub(super) mod fields;
pub(super) mod options;
#[cfg(test)]
mod tests;

/// Module name of the types' imports.
const TYPES: &str = "wasi:http/types@0.3";
