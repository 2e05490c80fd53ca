//! What the translation of every function of a module shares.

use awsm_abi::types::{Bounds, FuncType};
use awsm_abi::vmctx::Layout;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType};
use inkwell::values::FunctionValue;

use crate::llvm::{Access, CallConv, Ir, Visibility};
use crate::module::{FuncIdx, Module, TypeIdx};

/// A module in translation.
pub(crate) struct Unit<'m, 'ctx> {
    pub(crate) module: &'m Module<'m>,
    pub(crate) ir: Ir<'ctx>,
    pub(crate) layout: Layout,
    /// How accesses to each memory are checked.
    pub(crate) bounds: Vec<Bounds>,
    /// LLVM's types of the module's function types.
    types: Vec<FunctionType<'ctx>>,
    /// The defined functions.
    functions: Vec<FunctionValue<'ctx>>,
}

impl<'m, 'ctx> Unit<'m, 'ctx> {
    /// Declares the module's functions.
    pub(crate) fn new(module: &'m Module<'m>, ir: Ir<'ctx>, layout: Layout, bounds: Vec<Bounds>) -> Unit<'m, 'ctx> {
        let types: Vec<_> = module.types.iter().map(|ty| llvm_type(&ir, ty)).collect();
        let declare = |function: FuncIdx| {
            let index = function.0 as usize;
            let visibility = if module.escapes[index] { Visibility::Artifact } else { Visibility::Module };
            let symbol = function_symbol(function, module.function_names[index].as_deref());
            ir.function(&symbol, types[module.functions[index].0 as usize], CallConv::Guest, visibility)
        };
        let functions = module.defined_functions().map(declare).collect();
        Unit { module, ir, layout, bounds, types, functions }
    }

    /// LLVM's type of functions of a type.
    pub(crate) fn llvm_type(&self, ty: TypeIdx) -> FunctionType<'ctx> {
        self.types[ty.0 as usize]
    }

    /// A function, if it is defined here.
    pub(crate) fn function(&self, function: FuncIdx) -> Option<FunctionValue<'ctx>> {
        self.module.defined(function).map(|index| self.functions[index])
    }

    /// The alias class of a memory's contents.
    pub(crate) fn memory_access(&self, memory: u32) -> Access {
        if memory < self.module.imported_memories { Access::ImportedMemory } else { Access::Memory(memory) }
    }
}

/// The type of guest functions: the callee's vmctx, then the parameters; several results are a struct.
fn llvm_type<'ctx>(ir: &Ir<'ctx>, ty: &FuncType) -> FunctionType<'ctx> {
    let vmctx: BasicMetadataTypeEnum<'ctx> = ir.types.ptr.into();
    let params: Vec<_> = std::iter::once(vmctx).chain(ty.params.iter().map(|&ty| ir.types.value(ty).into())).collect();
    let results: Vec<BasicTypeEnum<'ctx>> = ty.results.iter().map(|&ty| ir.types.value(ty)).collect();
    match results.as_slice() {
        [] => ir.types.void.fn_type(&params, false),
        [result] => result.fn_type(&params, false),
        results => ir.context.struct_type(results, false).fn_type(&params, false),
    }
}

/// The symbol of a defined function: unique by its index, readable by its name.
pub(crate) fn function_symbol(function: FuncIdx, name: Option<&str>) -> String {
    format!("wasm[{}]::{}", function.0, printable(name.unwrap_or("")))
}

/// The symbol of the thunk for an imported function.
pub(crate) fn thunk_symbol(function: FuncIdx, module: &str, name: &str) -> String {
    format!("thunk[{}]::{}.{}", function.0, printable(module), printable(name))
}

/// The symbol of a type's entry.
pub(crate) fn entry_symbol(ty: TypeIdx) -> String {
    format!("entry[{}]", ty.0)
}

/// Names may hold anything; symbols should be fit to print, and not endless. After an `@` linkers see a version.
fn printable(name: &str) -> String {
    name.chars().take(200).map(|c| if c.is_control() || c == '@' { '?' } else { c }).collect()
}
