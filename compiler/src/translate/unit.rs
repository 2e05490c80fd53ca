//! What the translation of every function of a module shares.

use std::cell::RefCell;

use awsm_abi::calls::{params_in_memory, results_in_memory};
use awsm_abi::descriptor::{Export, ExternKind};
use awsm_abi::types::{Bounds, FuncType};
use awsm_abi::vmctx::Layout;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType};
use inkwell::values::FunctionValue;

use crate::linked::{Linked, Target};
use crate::llvm::{
    Access, AliasClass, CallConv, FUNCTION_SYMBOL_INDEX_END, FUNCTION_SYMBOL_START, Ir, SYMBOL_MODULE_END, Visibility,
};
use crate::module::{FuncIdx, Import, Module, ModuleIdx, TypeIdx};
use crate::partition::Part;

/// The program of which a module is one.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'m> {
    pub(crate) modules: &'m [Module<'m>],
    pub(crate) linked: &'m Linked,
    /// Whether a callee finds its own memory behind the segment register.
    pub(crate) segment: bool,
}

/// A part of a module in translation.
pub(crate) struct Unit<'m, 'ctx> {
    pub(crate) whole: Whole<'m>,
    pub(crate) module: &'m Module<'m>,
    pub(crate) ir: &'m Ir<'ctx>,
    pub(crate) layout: Layout,
    /// How accesses to each memory are checked.
    pub(crate) bounds: Vec<Bounds>,
    /// Whether a callee finds its own memory behind the segment register.
    pub(crate) segment: bool,
    /// LLVM's types of the module's function types, in the convention that all modules share.
    types: Vec<FunctionType<'ctx>>,
    /// From where each defined function can be seen.
    visibilities: Vec<Visibility>,
    /// The line behind which the module's lines begin, and the place in the program for which it stands.
    lines_from: (u32, u32),
    /// The defined functions, declared when they are first asked for.
    functions: RefCell<Vec<Option<FunctionValue<'ctx>>>>,
}

impl<'m, 'ctx> Unit<'m, 'ctx> {
    /// Declares the functions of a part of the module.
    pub(crate) fn new(
        whole: Whole<'m>,
        module: &'m Module<'m>,
        ir: &'m Ir<'ctx>,
        layout: Layout,
        bounds: Vec<Bounds>,
        part: &Part,
        shared: &[bool],
    ) -> Unit<'m, 'ctx> {
        let shared_signature = Signature { convention: CallConv::Guest, exception: module.exceptions };
        let types: Vec<_> = module.types.iter().map(|ty| llvm_type(ir, ty, shared_signature)).collect();
        let mut visibilities = vec![Visibility::Elsewhere; module.bodies.len()];
        for &function in &part.functions {
            let Some(index) = module.defined(function) else { continue };
            let is_seen = module.escapes[function.0 as usize] || shared[index];
            visibilities[index] = if is_seen { Visibility::Artifact } else { Visibility::Module };
        }
        part.copies.iter().filter_map(|&copy| module.defined(copy)).for_each(|index| visibilities[index] = Visibility::Copy);
        let functions = RefCell::new(vec![None; module.bodies.len()]);
        let segment = whole.segment;
        let unit = Unit { whole, module, ir, layout, bounds, segment, types, visibilities, lines_from: (0, 0), functions };
        // In the order of the module, since their code gets the order of their declarations.
        for &function in &part.functions {
            unit.function(function);
        }
        unit
    }

    /// The same, whose lines begin behind a line, which stands for a place in the program.
    pub(crate) fn with_lines_from(self, lines_from: (u32, u32)) -> Unit<'m, 'ctx> {
        Unit { lines_from, ..self }
    }

    fn declare(&self, function: FuncIdx, visibility: Visibility) -> FunctionValue<'ctx> {
        let symbol = function_symbol(self.module, function);
        let signature = self.signature(function);
        let ty = llvm_type(self.ir, self.module.function_type(function), signature);
        self.ir.function(&symbol, ty, signature.convention, visibility, self.layout.size())
    }

    /// What an imported function is, and its code, if that is known.
    pub(crate) fn linked(&self, function: FuncIdx) -> Option<(Target, FunctionValue<'ctx>)> {
        let target = self.whole.linked.function(self.module, function)?;
        let module = &self.whole.modules[target.function.module.0 as usize];
        let symbol = function_symbol(module, target.function.function);
        Some((target, self.ir.foreign_function(&symbol, self.llvm_type(self.module.functions[function.0 as usize]))))
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

    /// The line that stands for an offset in the module.
    pub(crate) fn line(&self, offset: u32) -> u32 {
        let (line, place) = self.lines_from;
        self.module.wasm_base + offset - place + line
    }

    /// How a function is called.
    pub(crate) fn signature(&self, function: FuncIdx) -> Signature {
        signature(self.module, function)
    }

    /// How functions that are reached by address are called.
    pub(crate) fn shared_signature(&self) -> Signature {
        Signature { convention: CallConv::Guest, exception: self.module.exceptions }
    }

    /// The alias class of a memory's contents.
    pub(crate) fn memory_access(&self, memory: u32) -> Access {
        let known = self.whole.linked.memory(self.module, memory);
        known.map_or_else(|| AliasClass::ImportedMemory.into(), Access::memory)
    }

    /// The alias class of a global that the module defines. Where another module may see it, it is the one of imported globals.
    pub(crate) fn global_access(&self, global: u32) -> AliasClass {
        let is_exported = |export: &Export| export.kind == ExternKind::Global && export.index == global;
        let is_shared = self.whole.modules.len() > 1 && self.module.exports.iter().any(is_exported);
        if is_shared { AliasClass::ImportedGlobal } else { AliasClass::Global }
    }
}

/// How functions are called, beside the values that they take and return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signature {
    pub(crate) convention: CallConv,
    /// Whether the last thing that they return is an exception or zero.
    pub(crate) exception: bool,
}

impl Signature {
    /// Whether functions of this type return their results in memory.
    pub(crate) fn results_in_memory(self, ty: &FuncType) -> bool {
        self.convention == CallConv::Guest && results_in_memory(ty, self.exception)
    }

    /// For each parameter of this type whether it is passed in memory.
    pub(crate) fn params_in_memory(self, ty: &FuncType) -> impl Iterator<Item = bool> + '_ {
        let is_shared = self.convention == CallConv::Guest;
        params_in_memory(ty, self.exception).map(move |in_memory| is_shared && in_memory)
    }
}

/// What code reaches by address, and what takes part in tail calls, has the convention that all modules share. For the rest, `fastcc` is a
/// little faster, and only those that may throw return exceptions.
fn signature(module: &Module<'_>, function: FuncIdx) -> Signature {
    let index = function.0 as usize;
    match module.defined(function).is_some() && !module.escapes[index] && !module.tail_calls[index] {
        true => Signature { convention: CallConv::Direct, exception: module.throws[index] },
        false => Signature { convention: CallConv::Guest, exception: module.exceptions },
    }
}

/// The type of guest functions: the callee's vmctx, then what [`awsm_abi::calls`] says for the convention that all modules share, or else all
/// parameters, in registers or not as LLVM likes. Several results, an exception among them, are a struct.
fn llvm_type<'ctx>(ir: &Ir<'ctx>, ty: &FuncType, signature: Signature) -> FunctionType<'ctx> {
    let mut params: Vec<BasicMetadataTypeEnum<'ctx>> = vec![ir.types.ptr.into()];
    let mut results: Vec<BasicTypeEnum<'ctx>> = Vec::new();
    if signature.results_in_memory(ty) {
        params.push(ir.types.ptr.into());
    } else {
        results.extend(ty.results.iter().map(|&ty| ir.types.value(ty)));
    }
    results.extend(signature.exception.then_some(BasicTypeEnum::from(ir.types.i64)));
    let in_registers = ty.params.iter().zip(signature.params_in_memory(ty)).filter(|(_, in_memory)| !in_memory);
    params.extend(in_registers.map(|(&ty, _)| BasicMetadataTypeEnum::from(ir.types.value(ty))));
    match results.as_slice() {
        [] => ir.types.void.fn_type(&params, false),
        [result] => result.fn_type(&params, false),
        results => ir.context.struct_type(results, false).fn_type(&params, false),
    }
}

/// The symbol of a defined function: unique by its index, readable by its name.
pub(crate) fn function_symbol(module: &Module<'_>, function: FuncIdx) -> String {
    let name = module.function_names[function.0 as usize].as_deref().unwrap_or("");
    format!("{FUNCTION_SYMBOL_START}{}{FUNCTION_SYMBOL_INDEX_END}{}", place(module, function.0), printable(name))
}

/// The symbol of the thunk for an imported function.
pub(crate) fn thunk_symbol(module: &Module<'_>, function: FuncIdx, import: &Import) -> String {
    format!("thunk[{}]::{}.{}", place(module, function.0), printable(&import.module), printable(&import.name))
}

/// The symbol of a type's entry.
pub(crate) fn entry_symbol(module: &Module<'_>, ty: TypeIdx) -> String {
    format!("entry[{}]", place(module, ty.0))
}

/// What makes a symbol one of its module alone. The first is not named: most programs have no other.
fn place(module: &Module<'_>, index: u32) -> String {
    match module.index {
        ModuleIdx(0) => index.to_string(),
        ModuleIdx(module) => format!("{module}{SYMBOL_MODULE_END}{index}"),
    }
}

/// Names may hold anything; symbols should be fit to print, and not endless. After an `@` linkers see a version.
fn printable(name: &str) -> String {
    name.chars().take(200).map(|c| if c.is_control() || c == '@' { '?' } else { c }).collect()
}
