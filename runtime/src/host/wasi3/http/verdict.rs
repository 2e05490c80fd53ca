//! What a component says of a body: a `result<_, error-code>` in a future.

use std::sync::Arc;

use crate::component_trap::ComponentTrap;
use crate::host::wasi2::http::ErrorCode;
use crate::host::wasi2::http::error::CASES;
use crate::host::wasi3::ends::{End, Moved, Transfer};
use crate::host::{Call, Flat, Stop};

/// The host's end of the future in which a component says what it thinks of a body that it got: nothing depends on it.
#[derive(Debug)]
pub(super) struct Verdict;

impl End for Verdict {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let _said = verdict(call, transfer)?;
        Ok(Moved::Values(1).into())
    }
}

/// Reads a `result<_, error-code>` that the component writes: where what its first case holds begins, or the code.
pub(super) fn verdict(call: &Call<'_>, transfer: Transfer) -> Result<Result<u64, ErrorCode>, Stop> {
    let Transfer { address, writes: true, .. } = transfer else {
        return Err(ComponentTrap::NothingToResume.into());
    };
    let payload = address + 8;
    match byte(call, address)? {
        0 => Ok(Ok(payload)),
        1 => {
            let case = byte(call, payload)?;
            if u32::from(case) < CASES { Ok(Err(ErrorCode::Said(case))) } else { Err(ComponentTrap::Case.into()) }
        }
        _ => Err(ComponentTrap::Case.into()),
    }
}

pub(super) fn byte(call: &Call<'_>, address: u64) -> Result<u8, Stop> {
    let memory = call.memory.as_ref().ok_or(ComponentTrap::OutOfBounds)?;
    memory.read_u8(address).map_err(|_| ComponentTrap::OutOfBounds.into())
}

pub(super) fn word(call: &Call<'_>, address: u64) -> Result<u32, Stop> {
    let memory = call.memory.as_ref().ok_or(ComponentTrap::OutOfBounds)?;
    memory.read_u32(address).map_err(|_| ComponentTrap::OutOfBounds.into())
}
