//! From WebAssembly operators to LLVM IR.
//!
//! [`translate`] declares every function of the module, then translates bodies one by one: a single pass over the operators of each, with an
//! explicit stack of values and one of control frames, never recursive. The files divide the operators as the specification does. What the
//! module promised at validation is relied upon; nothing is validated again.

mod atomic;
mod bulk;
mod calls;
mod control;
mod convert;
mod entries;
mod float;
mod frame;
mod function;
mod memory;
mod numeric;
mod reference;
mod simd;
mod table;
mod unit;
mod variable;

pub(crate) use entries::entry_types;
pub(crate) use unit::{Unit, entry_symbol, function_symbol, thunk_symbol};

use crate::error::CompileError;
use crate::progress::{Phase, Progress};

/// Translates a module's functions, and makes the entries and thunks through which the host and they reach each other.
pub(crate) fn translate(unit: &Unit<'_, '_>, progress: &dyn Progress) -> Result<(), CompileError> {
    progress.begin(Phase::Translate, unit.module.bodies.len());
    entries::build(unit)?;
    for (done, function) in unit.module.defined_functions().enumerate() {
        function::translate(unit, function)?;
        progress.advance(done + 1);
    }
    Ok(())
}
