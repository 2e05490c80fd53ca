//! Modules written as text.

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};

use super::machine::Machine;
use super::passes;
use crate::error::CompileError;

/// Parses a module.
///
/// # Errors
/// When it is malformed: a bug.
pub(crate) fn parse_text<'ctx>(context: &'ctx Context, text: &str) -> Result<Module<'ctx>, CompileError> {
    let text = format!("{text}\0");
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "helpers");
    let module = context.create_module_from_ir(buffer);
    module.map_err(|error| CompileError::llvm("reading the helpers", error.to_string()))
}

/// Drops the functions of a module that `wanted` does not name and none of these uses, simplifies the others, and defines `start` at the
/// beginning of its code.
pub(crate) fn retain(module: &Module<'_>, machine: &Machine, wanted: &[String], start: &str) -> Result<(), CompileError> {
    for function in module.get_functions() {
        let named = function.get_name().to_str().is_ok_and(|name| wanted.iter().any(|wanted| wanted == name));
        if !named && function.count_basic_blocks() > 0 {
            function.set_linkage(Linkage::Internal);
        }
    }
    module.set_inline_assembly(&super::ir::start_symbol(start));
    passes::run(module, machine, "always-inline,globaldce,function(simplifycfg,early-cse)")
}
