//! Clocks.

use rustix::time::{ClockId, Timespec, clock_getres};

use super::Errno;
use crate::host::{Call, Stop};

/// The clock with that number in WASI. The clocks of processor time are not offered: it would be the worker's, not the guest's.
pub(super) fn clock(id: u32) -> Result<ClockId, Errno> {
    match id {
        0 => Ok(ClockId::Realtime),
        1 => Ok(ClockId::Monotonic),
        _ => Err(Errno::INVAL),
    }
}

/// A time in nanoseconds, as far as they can be counted.
pub(in crate::host) fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// `clock_res_get(id, resolution: *timestamp)`
pub(super) fn clock_res_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (clock, at) = (clock(call.args.u32(0))?, call.args.address(1));
    call.memory_mut()?.write_u64(at, nanoseconds(clock_getres(clock)))?;
    Ok(())
}

/// `clock_time_get(id, precision: timestamp, time: *timestamp)`
pub(super) fn clock_time_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (clock, at) = (clock(call.args.u32(0))?, call.args.address(2));
    let (memory, context) = call.split()?;
    memory.write_u64(at, nanoseconds(context.ports.entropy()?.now(clock)))?;
    Ok(())
}
