//! Line tables as carriers of the trap table: a line is a byte offset in the WebAssembly module (in artifacts counted from the start of its code, so that
//! code can be kept for modules that differ before it), a column is the number of the trap code with
//! which the instruction may trap, or 0 for a call. LLVM moves, copies and merges them with the instructions; `artifact::trap_table` reads them
//! from the object file, and the linker drops them.

use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope, DICompileUnit, DIFile, DIFlags, DIFlagsConstants, DISubprogram, DISubroutineType, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::{FunctionValue, InstructionValue};

/// Writes a module's line table.
pub(super) struct DebugInfo<'ctx> {
    context: &'ctx Context,
    builder: DebugInfoBuilder<'ctx>,
    unit: DICompileUnit<'ctx>,
    file: DIFile<'ctx>,
    signature: DISubroutineType<'ctx>,
}

/// A function in the line table.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'ctx>(DISubprogram<'ctx>);

impl<'ctx> DebugInfo<'ctx> {
    pub(super) fn new(context: &'ctx Context, module: &Module<'ctx>) -> DebugInfo<'ctx> {
        let number = |value: u32| context.i32_type().const_int(u64::from(value), false);
        module.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, number(3));
        // Version 4 keeps all of the line program in one section.
        module.add_basic_value_flag("Dwarf Version", FlagBehavior::Warning, number(4));
        let (builder, unit) = module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::C,
            "module.wasm",
            "",
            "awsm",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        let file = unit.get_file();
        let signature = builder.create_subroutine_type(file, None, &[], DIFlags::ZERO);
        DebugInfo { context, builder, unit, file, signature }
    }

    /// Enters a function whose body begins at `line`.
    pub(super) fn scope(&self, function: FunctionValue<'ctx>, name: &str, line: u32) -> Scope<'ctx> {
        let scope = self.unit.as_debug_info_scope();
        let subprogram = self.builder.create_function(
            scope,
            name,
            None,
            self.file,
            line,
            self.signature,
            false,
            true,
            line,
            DIFlags::ZERO,
            true,
        );
        function.set_subprogram(subprogram);
        Scope(subprogram)
    }

    /// Gives an instruction its place.
    pub(super) fn place(&self, instruction: InstructionValue<'ctx>, scope: Scope<'ctx>, line: u32, column: u32) {
        let scope = scope.0.as_debug_info_scope();
        let location = self.builder.create_debug_location(self.context, line, column, scope, None);
        instruction.set_debug_location(Some(location));
    }

    /// To be called when the module is complete.
    pub(super) fn finish(&self) {
        self.builder.finalize();
    }
}
