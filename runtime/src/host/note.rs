//! `sledge:note`: what a function says about itself: lines for the log, and where it is in its work. sdk/wit/note.wit.

use awsm_abi::types::ValType::I32;

use tracing::Level;

use super::Effect::Log;
use super::log::level;
use super::wasi::Errno;
use super::{Call, Context, HostFunction, Output, Stop, own};

/// Module name of the imports.
const MODULE: &str = "sledge:note";

/// The interface.
pub(super) const FUNCTIONS: &[HostFunction] =
    &[own(MODULE, "log", &[I32, I32, I32], Log, log), own(MODULE, "phase", &[I32], Log, phase)];

/// `log(level, message, message_bytes) -> 0`: 0 trace, 1 debug, 2 info, 3 warning, 4 error.
fn log(call: &mut Call<'_>) -> Result<i32, Stop> {
    let level = level(call.args.u32(0)).ok_or(Errno::INVAL)?;
    let (at, bytes) = (call.args.address(1), call.args.u32(2));
    write(call, level, at, bytes)?;
    Ok(0)
}

/// Logs the message that stands there in the guest's memory.
pub(super) fn write(call: &mut Call<'_>, level: Level, at: u64, bytes: u32) -> Result<(), Stop> {
    let (memory, context) = call.split()?;
    say(context, level, memory.slice(at, bytes.into())?)
}

/// Logs a message.
pub(super) fn say(context: &mut Context, level: Level, message: &[u8]) -> Result<(), Stop> {
    match context.ports.log()? {
        Output::Log(lines) => lines.message(level, message),
        // On a terminal, where levels say nothing.
        other => {
            other.write(message)?;
            other.write(b"\n")?;
        }
    }
    Ok(())
}

/// `phase(id) -> 0`: from here on the function is in that part of its work. One that declares its phases may not name another.
fn phase(call: &mut Call<'_>) -> Result<i32, Stop> {
    let id = call.args.u32(0);
    if enter(call, id)? { Ok(0) } else { Err(Errno::INVAL.into()) }
}

/// Enters a phase; whether the function may. [`Stop::Again`] where the invocation is to wait for its turn first.
pub(super) fn enter(call: &mut Call<'_>, id: u32) -> Result<bool, Stop> {
    // Made again, it is in the phase already.
    if !call.context.is_turn_due() && !change(call, id) {
        return Ok(false);
    }
    if call.context.begin_turn() { Err(Stop::Again) } else { Ok(true) }
}

fn change(call: &mut Call<'_>, id: u32) -> bool {
    if call.context.phases.as_mut().is_some_and(|phases| !phases.enter(id)) {
        return false;
    }
    call.context.phase = id;
    true
}
