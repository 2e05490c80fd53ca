//! What differs between processors: the switch of stacks, and registers in signal frames. And between systems: pages, address space.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

pub(crate) mod descriptor;
pub(crate) mod heap;
pub(crate) mod page;
pub(crate) mod program;
pub(crate) mod room;
pub(crate) mod sealed;
pub(crate) mod segment;
pub(crate) mod space;
pub(crate) mod switch;
