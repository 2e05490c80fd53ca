//! What the translation of every function of a module shares.

use awsm_abi::calls::{params_in_memory, results_in_memory};
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
    /// LLVM's types of the module's function types, in the convention that all modules share.
    types: Vec<FunctionType<'ctx>>,
    /// The defined functions.
    functions: Vec<FunctionValue<'ctx>>,
}

impl<'m, 'ctx> Unit<'m, 'ctx> {
    /// Declares the module's functions.
    pub(crate) fn new(module: &'m Module<'m>, ir: Ir<'ctx>, layout: Layout, bounds: Vec<Bounds>) -> Unit<'m, 'ctx> {
        let types: Vec<_> = module.types.iter().map(|ty| llvm_type(&ir, ty, CallConv::Guest)).collect();
        let declare = |function: FuncIdx| {
            let index = function.0 as usize;
            let visibility = if module.escapes[index] { Visibility::Artifact } else { Visibility::Module };
            let symbol = function_symbol(function, module.function_names[index].as_deref());
            let convention = convention(module, function);
            ir.function(&symbol, llvm_type(&ir, module.function_type(function), convention), convention, visibility)
        };
        let functions = module.defined_functions().map(declare).collect();
        Unit { module, ir, layout, bounds, types, functions }
    }

    /// LLVM's type of functions of a type that are reached by address.
    pub(crate) fn llvm_type(&self, ty: TypeIdx) -> FunctionType<'ctx> {
        self.types[ty.0 as usize]
    }

    /// A function, if it is defined here.
    pub(crate) fn function(&self, function: FuncIdx) -> Option<FunctionValue<'ctx>> {
        self.module.defined(function).map(|index| self.functions[index])
    }

    /// The convention of a function.
    pub(crate) fn convention(&self, function: FuncIdx) -> CallConv {
        convention(self.module, function)
    }

    /// The alias class of a memory's contents.
    pub(crate) fn memory_access(&self, memory: u32) -> Access {
        if memory < self.module.imported_memories { Access::ImportedMemory } else { Access::Memory(memory) }
    }
}

/// What code reaches by address, and what takes part in tail calls, has the convention that all modules share. For the rest, `fastcc` is a
/// little faster.
fn convention(module: &Module<'_>, function: FuncIdx) -> CallConv {
    let index = function.0 as usize;
    let is_direct = module.defined(function).is_some() && !module.escapes[index] && !module.tail_calls[index];
    if is_direct { CallConv::Direct } else { CallConv::Guest }
}

/// The type of guest functions: the callee's vmctx, then what [`awsm_abi::calls`] says for the convention that all modules share, or else all
/// parameters, in registers or not as LLVM likes. Several results are a struct.
fn llvm_type<'ctx>(ir: &Ir<'ctx>, ty: &FuncType, convention: CallConv) -> FunctionType<'ctx> {
    let mut params: Vec<BasicMetadataTypeEnum<'ctx>> = vec![ir.types.ptr.into()];
    let is_shared = convention == CallConv::Guest;
    let results_in_memory = is_shared && results_in_memory(ty);
    if results_in_memory {
        params.push(ir.types.ptr.into());
    }
    let in_registers = ty.params.iter().zip(params_in_memory(ty)).filter(|(_, in_memory)| !(is_shared && *in_memory));
    params.extend(in_registers.map(|(&ty, _)| BasicMetadataTypeEnum::from(ir.types.value(ty))));
    let results: Vec<BasicTypeEnum<'ctx>> = ty.results.iter().map(|&ty| ir.types.value(ty)).collect();
    match results.as_slice() {
        _ if results_in_memory => ir.types.void.fn_type(&params, false),
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
