//! `sledge:note/notes`.

use std::borrow::Cow;

use awsm_abi::types::ValType::I32;

use crate::component_trap::ComponentTrap;
use crate::host::Effect::Log;
use crate::host::canonical::canonical;
use crate::host::log::{INVOCATION_BYTES_MAX, level};
use crate::host::note;
use crate::host::{Call, Flat, HostFunction, Stop};

const NOTES: &str = "sledge:note/notes@0.1";

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] =
    &[canonical(NOTES, "log", &[I32, I32, I32, I32], &[], Log, log), canonical(NOTES, "phase", &[I32, I32], &[], Log, phase)];

/// `log(level, message: string)`: of a message that is longer than all of an invocation's may be, what fits.
fn log(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let level = level(call.args.u32(1)).ok_or(ComponentTrap::Case)?;
    let bytes_max = INVOCATION_BYTES_MAX;
    let decoded = match call.text_within(2, bytes_max as u64)? {
        // It is written from where it stands.
        Some(Cow::Borrowed(_)) => None,
        Some(Cow::Owned(message)) => Some(message),
        None => Some(call.text_begin(2, bytes_max)?.into_owned()),
    };
    match decoded {
        None => note::write(call, level, call.args.address(2), call.args.u32(3))?,
        Some(message) => note::say(call.context, level, message.as_bytes())?,
    }
    Ok(Flat::NONE)
}

/// `phase(id: u32)`: an id that the function does not declare changes nothing.
fn phase(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let id = call.args.u32(1);
    note::enter(call, id)?;
    Ok(Flat::NONE)
}
