//! The sandbox through its public doors, with artifacts made by hand: no compiler is involved.

mod calls;
mod fibers;
mod guest;
mod images;
mod loader;
mod pooling;
mod preemption;
mod shared;
mod stores;
#[cfg(target_arch = "x86_64")] // counts by a handler in its assembly
mod syscalls;
mod traps;
#[cfg(target_arch = "x86_64")]
mod warm;
