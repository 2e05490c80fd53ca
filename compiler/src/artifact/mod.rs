//! From object code to an artifact: the trap table, the descriptor, linking, and the check that the result keeps the format's rules.
//!
//! Nothing here knows LLVM: what it needs to know of the code it reads from the object files, as any linker would.

mod assemble;
mod code;
mod describe;
mod dwarf;
mod inlined;
mod link;
mod trap_table;
mod verify;

pub(crate) use assemble::{ModuleParts, Parts, assemble, relocatable};
pub(crate) use code::{CodeObject, DefaultRow, missing};

/// The symbol that generated code defines at the start of its code range.
pub(crate) fn text_symbol(text: u32) -> String {
    format!("awsm_text_{text}")
}
