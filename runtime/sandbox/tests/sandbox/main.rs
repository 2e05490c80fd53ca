//! The sandbox through its public doors, with artifacts made by hand: no compiler is involved.
#![cfg(target_arch = "x86_64")]

mod calls;
mod guest;
mod loader;
mod pooling;
mod preemption;
mod stores;
mod syscalls;
mod traps;
mod warm;
