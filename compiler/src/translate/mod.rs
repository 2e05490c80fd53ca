//! From WebAssembly operators to LLVM IR.
//!
//! [`translate()`] translates a part of the module: bodies one by one: a single pass over the operators of each, with an
//! explicit stack of values and one of control frames, never recursive. The files divide the operators as the specification does. What the
//! module promised at validation is relied upon; nothing is validated again.

mod atomic;
mod bulk;
mod calls;
mod control;
mod convert;
mod entries;
mod exceptions;
mod float;
mod frame;
mod function;
mod memory;
mod numeric;
mod reference;
mod segment;
mod simd;
mod table;
mod unit;
mod variable;

pub(crate) use entries::{build as entries, entry_types};
pub(crate) use unit::{Unit, Whole, entry_symbol, function_symbol, thunk_symbol};

use crate::error::CompileError;
use crate::partition::Part;

/// Translates functions.
pub(crate) fn translate(unit: &Unit<'_, '_>, part: &Part) -> Result<(), CompileError> {
    part.functions.iter().chain(&part.copies).try_for_each(|&function| function::translate(unit, function))
}
