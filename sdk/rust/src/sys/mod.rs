//! The border to the runtime: the flat functions of sdk/wit/README.md, or, natively, what stands in for them. Errors are WASI's numbers.

#[cfg(not(target_family = "wasm"))]
mod fake;
#[cfg(target_family = "wasm")]
mod host;

#[cfg(not(target_family = "wasm"))]
pub(crate) use fake::*;
#[cfg(target_family = "wasm")]
pub(crate) use host::*;

pub(crate) const E2BIG: i32 = 1;
pub(crate) const EACCES: i32 = 2;
pub(crate) const EAGAIN: i32 = 6;
pub(crate) const ECHILD: i32 = 12;
pub(crate) const EDQUOT: i32 = 19;
#[cfg(target_family = "wasm")]
pub(crate) const EFBIG: i32 = 22;
pub(crate) const EINVAL: i32 = 28;
pub(crate) const EIO: i32 = 29;
pub(crate) const ELOOP: i32 = 32;
pub(crate) const EMFILE: i32 = 33;
pub(crate) const ENOENT: i32 = 44;
pub(crate) const ENOTRECOVERABLE: i32 = 56;
pub(crate) const ENOTSUP: i32 = 58;
pub(crate) const EOVERFLOW: i32 = 61;
pub(crate) const ETIMEDOUT: i32 = 73;

/// A version and a value.
pub(crate) type Found = (u64, Vec<u8>);
