//! WASI 0.3, as components import it. What is as in WASI 0.2 has its body [there](super::wasi2); this is what came new: streams and futures of which the host has one end.

mod cli;
mod ends;
mod filesystem;

pub(in crate::host) use ends::Ends;
pub(in crate::host) use filesystem::Wasi3;

use super::HostFunction;

/// All interfaces.
pub(in crate::host) const FUNCTIONS: &[&[HostFunction]] =
    &[cli::FUNCTIONS, ends::FUNCTIONS, filesystem::FUNCTIONS, filesystem::SHARED];

/// Whether that function makes a stream or future with the host.
#[must_use]
pub fn makes_ends(module: &str, name: &str) -> bool {
    module.ends_with("@0.3") && (name.ends_with("-via-stream") || name.ends_with(".read-directory"))
}
