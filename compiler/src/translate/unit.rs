//! What the translation of every function of a module shares.

use std::cell::RefCell;

use awsm_abi::calls::{params_in_memory, results_in_memory};
use awsm_abi::types::{Bounds, FuncType};
use awsm_abi::vmctx::Layout;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType};
use inkwell::values::FunctionValue;

use crate::llvm::{Access, CallConv, Ir, Visibility};
use crate::module::{FuncIdx, Module, TypeIdx};
use crate::partition::Part;

/// A part of a module in translation.
pub(crate) struct Unit<'m, 'ctx> {
    pub(crate) module: &'m Module<'m>,
    pub(crate) ir: Ir<'ctx>,
    pub(crate) layout: Layout,
    /// How accesses to each memory are checked.
    pub(crate) bounds: Vec<Bounds>,
    /// LLVM's types of the module's function types, in the convention that all modules share.
    types: Vec<FunctionType<'ctx>>,
    /// Who can see each defined function.
    visibilities: Vec<Visibility>,
    /// The defined functions, declared when they are first asked for.
    functions: RefCell<Vec<Option<FunctionValue<'ctx>>>>,
}

impl<'m, 'ctx> Unit<'m, 'ctx> {
    /// Declares the functions of a part of the module.
    pub(crate) fn new(
        module: &'m Module<'m>,
        ir: Ir<'ctx>,
        layout: Layout,
        bounds: Vec<Bounds>,
        part: &Part,
        shared: &[bool],
    ) -> Unit<'m, 'ctx> {
        let types: Vec<_> = module.types.iter().map(|ty| llvm_type(&ir, ty, CallConv::Guest)).collect();
        let mut visibilities = vec![Visibility::Elsewhere; module.bodies.len()];
        for &function in &part.functions {
            let Some(index) = module.defined(function) else { continue };
            let is_seen = module.escapes[function.0 as usize] || shared[index];
            visibilities[index] = if is_seen { Visibility::Artifact } else { Visibility::Module };
        }
        part.copies.iter().filter_map(|&copy| module.defined(copy)).for_each(|index| visibilities[index] = Visibility::Copy);
        let functions = RefCell::new(vec![None; module.bodies.len()]);
        let unit = Unit { module, ir, layout, bounds, types, visibilities, functions };
        // In the order of the module, since their code gets the order of their declarations.
        for &function in &part.functions {
            unit.function(function);
        }
        unit
    }

    fn declare(&self, function: FuncIdx, visibility: Visibility) -> FunctionValue<'ctx> {
        let symbol = function_symbol(function, self.module.function_names[function.0 as usize].as_deref());
        let convention = self.convention(function);
        let ty = llvm_type(&self.ir, self.module.function_type(function), convention);
        self.ir.function(&symbol, ty, convention, visibility)
    }

    /// LLVM's type of functions of a type that are reached by address.
    pub(crate) fn llvm_type(&self, ty: TypeIdx) -> FunctionType<'ctx> {
        self.types[ty.0 as usize]
    }

    /// A function, if it is defined in this module.
    pub(crate) fn function(&self, function: FuncIdx) -> Option<FunctionValue<'ctx>> {
        let index = self.module.defined(function)?;
        let known = self.functions.borrow()[index];
        let value = known.unwrap_or_else(|| self.declare(function, self.visibilities[index]));
        self.functions.borrow_mut()[index] = Some(value);
        Some(value)
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
