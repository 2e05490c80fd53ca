//! An LLVM module under construction.

use std::cell::RefCell;

use awsm_abi::cpu::Arch;
use awsm_abi::trap::TrapCode;
use awsm_abi::types::{RefKind, ValType};
use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicTypeEnum, FloatType, FunctionType, IntType, PointerType, VoidType};
use inkwell::values::{
    BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, GlobalValue, InstructionValue, LLVMTailCallKind, MetadataValue,
    ValueKind,
};
use inkwell::{DLLStorageClass, GlobalVisibility};

use super::alias::{Access, AliasTags};
use super::attributes::Attributes;
use super::cpu::TargetCpu;
use super::debug::{DebugInfo, Scope};
use super::machine::Machine;
use crate::error::CompileError;

/// A module and what is needed to fill it.
pub(crate) struct Ir<'ctx> {
    debug: DebugInfo<'ctx>, // before the module, so that it is dropped first
    pub(crate) context: &'ctx Context,
    pub(crate) module: Module<'ctx>,
    pub(crate) types: Types<'ctx>,
    cpu: TargetCpu,
    attributes: Attributes,
    alias: AliasTags<'ctx>,
    invariant: MetadataValue<'ctx>,
    unlikely: MetadataValue<'ctx>,
    not_zero: MetadataValue<'ctx>,
    kinds: Kinds,
    intrinsics: RefCell<Vec<Intrinsics<'ctx>>>,
}

/// An intrinsic that was asked for, with the one type that tells it from its overloads.
struct Intrinsics<'ctx> {
    name: &'static str,
    overload: Option<BasicTypeEnum<'ctx>>,
    function: FunctionValue<'ctx>,
}

/// LLVM's numbers of the metadata kinds in use.
struct Kinds {
    alias: u32,
    invariant: u32,
    profile: u32,
    range: u32,
}

/// The types in use.
#[derive(Clone, Copy)]
pub(crate) struct Types<'ctx> {
    pub(crate) void: VoidType<'ctx>,
    pub(crate) i8: IntType<'ctx>,
    pub(crate) i16: IntType<'ctx>,
    pub(crate) i32: IntType<'ctx>,
    pub(crate) i64: IntType<'ctx>,
    pub(crate) i128: IntType<'ctx>,
    pub(crate) f32: FloatType<'ctx>,
    pub(crate) f64: FloatType<'ctx>,
    pub(crate) ptr: PointerType<'ctx>,
}

impl<'ctx> Types<'ctx> {
    pub(crate) fn new(context: &'ctx Context) -> Types<'ctx> {
        Types {
            void: context.void_type(),
            i8: context.i8_type(),
            i16: context.i16_type(),
            i32: context.i32_type(),
            i64: context.i64_type(),
            i128: context.i128_type(),
            f32: context.f32_type(),
            f64: context.f64_type(),
            ptr: context.ptr_type(AddressSpace::default()),
        }
    }

    /// How generated code holds values of that type.
    pub(crate) fn value(&self, ty: ValType) -> BasicTypeEnum<'ctx> {
        match ty {
            ValType::I32 => self.i32.into(),
            ValType::I64 => self.i64.into(),
            ValType::F32 => self.f32.into(),
            ValType::F64 => self.f64.into(),
            ValType::V128 => self.i8.vec_type(16).into(),
            ValType::Ref(ty) => match ty.heap.kind() {
                RefKind::Func => self.i128.into(),
                RefKind::Extern | RefKind::Exn => self.i64.into(),
            },
        }
    }
}

/// Calling conventions, by LLVM's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum CallConv {
    /// The host's.
    C = 0,
    /// Of guest functions that only direct calls of their own module reach: LLVM's `fastcc`.
    Direct = 8,
    /// Of all other guest functions, which may be called from anywhere and tail-called: LLVM's `tailcc`.
    Guest = 18,
}

/// From where a function can be seen. None is visible outside the artifact.
///
/// Linkage is one of the `odr` kinds throughout, or one that is like them: LLVM must then not deduce from a body that its callers may drop a call (the body could be
/// replaced by one that does the same but was optimised less), while it still may inline it. An access that traps is an effect that LLVM
/// does not know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Only calls from this module.
    Module,
    /// The descriptor too, or other parts of the module.
    Artifact,
    /// From nowhere: a copy of a function of another part, to be inlined.
    Copy,
    /// Defined in another part.
    Elsewhere,
}

impl<'ctx> Ir<'ctx> {
    pub(crate) fn new(context: &'ctx Context, machine: &Machine) -> Ir<'ctx> {
        let module = context.create_module("wasm");
        machine.adopt(&module);
        module.set_source_file_name("module.wasm");
        let weight = |weight: u64| context.i32_type().const_int(weight, false).into();
        Ir {
            debug: DebugInfo::new(context, &module),
            types: Types::new(context),
            cpu: machine.cpu.clone(),
            attributes: Attributes::new(context, &machine.cpu),
            alias: AliasTags::new(context),
            invariant: context.metadata_node(&[]),
            unlikely: context.metadata_node(&[context.metadata_string("branch_weights").into(), weight(1), weight(1 << 20)]),
            // From one, around to zero.
            not_zero: context.metadata_node(&[1, 0].map(|end| context.i64_type().const_int(end, false).into())),
            kinds: Kinds {
                alias: context.get_kind_id("tbaa"),
                invariant: context.get_kind_id("invariant.load"),
                profile: context.get_kind_id("prof"),
                range: context.get_kind_id("range"),
            },
            intrinsics: RefCell::default(),
            context,
            module,
        }
    }

    /// The instruction set of the code.
    pub(crate) fn arch(&self) -> Arch {
        self.cpu.arch
    }

    /// Whether the code may use a processor feature, by LLVM's name.
    pub(crate) fn has(&self, feature: &str) -> bool {
        self.cpu.features.iter().any(|known| known == feature)
    }

    /// Defines a symbol at the start of the module's code.
    pub(crate) fn define_at_start(&self, symbol: &str) {
        self.module.set_inline_assembly(&start_symbol(symbol));
    }

    /// Declares a function that will get a body, unless it is one of another part. It may have been declared before, by a module that calls it.
    pub(crate) fn function(
        &self,
        name: &str,
        ty: FunctionType<'ctx>,
        convention: CallConv,
        visibility: Visibility,
        vmctx_bytes: u32,
    ) -> FunctionValue<'ctx> {
        let linkage = match visibility {
            Visibility::Module => Linkage::LinkOnceODR,
            Visibility::Artifact => Linkage::WeakODR,
            Visibility::Copy => Linkage::AvailableExternally,
            Visibility::Elsewhere => Linkage::External,
        };
        let function = self.declared(name, ty, convention);
        function.set_linkage(linkage);
        self.attributes.of_vmctx(self.context, function, vmctx_bytes);
        function
    }

    /// A function of another module of the program: nothing is said of its vmctx.
    pub(crate) fn foreign_function(&self, name: &str, ty: FunctionType<'ctx>) -> FunctionValue<'ctx> {
        self.declared(name, ty, CallConv::Guest)
    }

    fn declared(&self, name: &str, ty: FunctionType<'ctx>, convention: CallConv) -> FunctionValue<'ctx> {
        if let Some(known) = self.module.get_function(name) {
            return known;
        }
        let function = self.module.add_function(name, ty, Some(Linkage::External));
        function.set_call_conventions(convention as u32);
        hide(function.as_global_value());
        self.attributes.of_function(function);
        function
    }

    /// An intrinsic, overloaded by `types` if there are several of that name.
    pub(crate) fn intrinsic(
        &self,
        name: &'static str,
        types: &[BasicTypeEnum<'ctx>],
    ) -> Result<FunctionValue<'ctx>, CompileError> {
        let overload = types.first().copied();
        if let Some(known) = self.intrinsics.borrow().iter().find(|known| known.name == name && known.overload == overload)
            && types.len() < 2
        {
            return Ok(known.function);
        }
        let function = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(&self.module, types))
            .ok_or_else(|| CompileError::llvm("building IR", format!("no intrinsic {name}")))?;
        if types.len() < 2 {
            self.intrinsics.borrow_mut().push(Intrinsics { name, overload, function });
        }
        Ok(function)
    }

    /// Says what a load, store or memory intrinsic touches.
    pub(crate) fn touches(&self, instruction: InstructionValue<'ctx>, access: impl Into<Access>) -> Result<(), CompileError> {
        self.attach(instruction, self.alias.tag(access.into()), self.kinds.alias)
    }

    /// Says that what a load reads is never written while code runs.
    pub(crate) fn invariant(&self, load: InstructionValue<'ctx>) -> Result<(), CompileError> {
        self.attach(load, self.invariant, self.kinds.invariant)
    }

    /// Says that what a load of 64 bits reads is not zero.
    pub(crate) fn not_zero(&self, load: InstructionValue<'ctx>) -> Result<(), CompileError> {
        self.attach(load, self.not_zero, self.kinds.range)
    }

    /// Says that a conditional branch almost never goes to its first target.
    pub(crate) fn unlikely(&self, branch: InstructionValue<'ctx>) -> Result<(), CompileError> {
        self.attach(branch, self.unlikely, self.kinds.profile)
    }

    fn attach(&self, instruction: InstructionValue<'ctx>, metadata: MetadataValue<'ctx>, kind: u32) -> Result<(), CompileError> {
        instruction.set_metadata(metadata, kind).map_err(|error| CompileError::llvm("building IR", format!("{error:?}")))
    }

    /// Enters a function into the line table.
    pub(crate) fn scope(&self, function: FunctionValue<'ctx>, name: &str, offset: u32) -> Scope<'ctx> {
        self.debug.scope(function, name, offset)
    }

    /// Says where in the WebAssembly module an instruction comes from, and with what it may trap.
    pub(crate) fn place(&self, instruction: InstructionValue<'ctx>, scope: Scope<'ctx>, offset: u32, trap: Option<TrapCode>) {
        self.debug.place(instruction, scope, offset, trap.map_or(0, |trap| u32::from(trap.number())));
    }

    /// Marks a call of guest or host code: it keeps its frame, so that endless recursion exhausts the stack.
    pub(crate) fn call(&self, call: CallSiteValue<'ctx>, convention: CallConv) {
        call.set_call_convention(convention as u32);
        call.set_tail_call_kind(LLVMTailCallKind::LLVMTailCallKindNoTail);
    }

    /// Marks a call of guest code that gives up its caller's frame; a return of its result must follow.
    pub(crate) fn tail_call(&self, call: CallSiteValue<'ctx>) {
        call.set_call_convention(CallConv::Guest as u32);
        call.set_tail_call_kind(LLVMTailCallKind::LLVMTailCallKindMustTail);
    }

    /// A call as an instruction.
    pub(crate) fn instruction(call: CallSiteValue<'ctx>) -> Option<InstructionValue<'ctx>> {
        match call.try_as_basic_value() {
            ValueKind::Instruction(instruction) => Some(instruction),
            ValueKind::Basic(value) => value.as_instruction_value(),
        }
    }

    /// A call's result.
    ///
    /// # Errors
    /// When it has none: a bug.
    pub(crate) fn result(call: CallSiteValue<'ctx>) -> Result<BasicValueEnum<'ctx>, CompileError> {
        call.try_as_basic_value().basic().ok_or_else(|| CompileError::llvm("building IR", "a call has no result"))
    }

    /// Keeps a call apart from others like it.
    pub(crate) fn no_merge(&self, call: CallSiteValue<'ctx>) {
        self.attributes.no_merge(call);
    }

    /// Keeps a function out of its callers.
    pub(crate) fn no_inline(&self, function: FunctionValue<'ctx>) {
        self.attributes.no_inline(function);
    }

    /// Ends construction.
    ///
    /// # Errors
    /// When LLVM finds the module malformed: a bug.
    pub(crate) fn finish(self) -> Result<Module<'ctx>, CompileError> {
        self.debug.finish();
        self.module.verify().map_err(|error| CompileError::llvm("verifying IR", error.to_string()))?;
        Ok(self.module)
    }
}

fn hide(value: GlobalValue<'_>) {
    value.set_visibility(GlobalVisibility::Hidden);
    value.set_dll_storage_class(DLLStorageClass::Default);
}

/// Assembly that defines `symbol` at the start of the code of the module that it opens.
pub(super) fn start_symbol(symbol: &str) -> String {
    format!(".text\n.globl {symbol}\n.hidden {symbol}\n{symbol}:\n")
}
