//! The end of a process, and its processor.

use super::Errno;
use crate::host::{Call, Stop};

/// Added to a signal, the status of what it ended, as shells show it.
const SIGNALLED: u32 = 128;

/// `proc_exit(status)`
pub(super) fn proc_exit(call: &mut Call<'_>) -> Result<(), Stop> {
    Err(Stop::Exit(call.args.u32(0)))
}

/// `sched_yield()`: guests are preempted anyway, so there is nothing to give up.
pub(super) fn sched_yield(_: &mut Call<'_>) -> Result<(), Stop> {
    Ok(())
}

/// `proc_raise(signal)`: what it does to a process that has not asked for anything else.
pub(super) fn proc_raise(call: &mut Call<'_>) -> Result<(), Stop> {
    const CHLD: u32 = 16;
    const CONT: u32 = 17;
    const STOP: u32 = 18;
    const TTOU: u32 = 21;
    const URG: u32 = 22;
    const WINCH: u32 = 27;
    const SYS: u32 = 30;
    match call.args.u32(0) {
        0 | CHLD | CONT | URG | WINCH => Ok(()),
        // Nothing could continue it.
        STOP..=TTOU => Err(Errno::NOTSUP.into()),
        signal @ 1..=SYS => Err(Stop::Exit(SIGNALLED + signal)),
        _ => Err(Errno::INVAL.into()),
    }
}
