//! The end of a process, and its processor.

use crate::host::{Call, Stop};

/// `proc_exit(status)`
pub(super) fn proc_exit(call: &mut Call<'_>) -> Result<(), Stop> {
    Err(Stop::Exit(call.args.u32(0)))
}

/// `sched_yield()`: guests are preempted anyway, so there is nothing to give up.
pub(super) fn sched_yield(_: &mut Call<'_>) -> Result<(), Stop> {
    Ok(())
}
