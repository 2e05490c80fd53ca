//! Calls: direct, of imports, indirect, and of the host's builtins.

use awsm_abi::calls::{SLOT_BYTES, builtin};
use awsm_abi::trap::TrapCode;
use awsm_abi::vmctx::{self, funcref};
use inkwell::IntPredicate::{EQ, NE};
use inkwell::types::FunctionType;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, IntValue, PointerValue};
use wasmparser::Operator;

use super::entries::{host_call_type, results, widen};
use super::function::FunctionTranslator;
use super::unit::Signature;
use crate::error::CompileError;
use crate::llvm::{AliasClass, CallConv, Ir};
use crate::module::{FuncIdx, TypeIdx};

/// What follows a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// The next operator.
    Continue,
    /// The end of the function: a tail call.
    Return,
}

/// A callee, as far as its caller has to know it.
#[derive(Clone, Copy)]
struct Callee {
    ty: TypeIdx,
    signature: Signature,
    /// Whether it may throw.
    throws: bool,
    /// Whether it may come back from another instance.
    leaves: bool,
}

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn call(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match *op {
            Operator::Call { function_index } => self.call_direct(FuncIdx(function_index), Then::Continue)?,
            Operator::CallIndirect { type_index, table_index } => {
                self.call_indirect(TypeIdx(type_index), table_index, Then::Continue)?;
            }
            Operator::ReturnCall { function_index } => self.call_direct(FuncIdx(function_index), Then::Return)?,
            Operator::ReturnCallIndirect { type_index, table_index } => {
                self.call_indirect(TypeIdx(type_index), table_index, Then::Return)?;
            }
            Operator::CallRef { type_index } => self.call_ref(TypeIdx(type_index), Then::Continue)?,
            Operator::ReturnCallRef { type_index } => self.call_ref(TypeIdx(type_index), Then::Return)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn call_direct(&mut self, function: FuncIdx, then: Then) -> Result<(), CompileError> {
        let ty = self.unit.module.functions[function.0 as usize];
        match self.unit.function(function) {
            Some(callee) => {
                let throws = self.unit.module.throws[function.0 as usize];
                let leaves = self.unit.module.tail_calls[function.0 as usize];
                let target = Callee { ty, signature: self.unit.signature(function), throws, leaves };
                let arguments = self.pop_arguments(self.vmctx, target, then)?;
                let call = self.builder.build_call(callee, &arguments, "")?;
                self.finish_call(call, target, then)
            }
            None => self.call_import(function, ty, then),
        }
    }

    fn call_import(&mut self, function: FuncIdx, ty: TypeIdx, then: Then) -> Result<(), CompileError> {
        let entry = self.unit.layout.imported_function(function.0);
        let Some((target, code)) = self.unit.linked(function) else {
            let code = self.context_pointer(entry + vmctx::function::CODE)?;
            let callee = self.context_pointer(entry + vmctx::function::VMCTX)?;
            return self.call_pointer(code, callee, ty, then);
        };
        let callee = match target.behind {
            None => self.context_pointer(entry + vmctx::function::VMCTX)?,
            Some(behind) => {
                // Instances of a plan have places one after the other.
                let own = self.context_i32(vmctx::INSTANCE_INDEX)?;
                let behind = self.const_i32(behind.cast_unsigned());
                let index = self.builder.build_int_add(own, behind, "")?;
                self.instance(index)?
            }
        };
        self.segment_of(callee)?;
        let target = self.foreign_callee(ty);
        let arguments = self.pop_arguments(callee, target, then)?;
        let call = self.builder.build_call(code, &arguments, "")?;
        self.finish_call(call, target, then)
    }

    /// A callee of which only its type is known.
    fn foreign_callee(&self, ty: TypeIdx) -> Callee {
        Callee { ty, signature: self.unit.shared_signature(), throws: self.unit.module.exceptions, leaves: true }
    }

    fn call_indirect(&mut self, ty: TypeIdx, table: u32, then: Then) -> Result<(), CompileError> {
        let element = self.checked_element(table, TrapCode::UndefinedElement)?;
        let code = self.load(self.types.ptr.into(), self.at(element, funcref::CODE), AliasClass::TableElement)?;
        let code = code.into_pointer_value();
        let null = self.builder.build_is_null(code, "")?;
        self.trap_if(null, TrapCode::UninitializedElement)?;

        let found = self.load(self.types.i32.into(), self.at(element, funcref::TYPE_ID), AliasClass::TableElement)?;
        let wanted = self.context_i32(self.unit.layout.type_id(ty.0))?;
        let found = found.into_int_value();
        let mismatch = self.builder.build_int_compare(NE, found, wanted, "")?;
        match self.unit.module.declared[ty.0 as usize].is_final {
            true => self.trap_if(mismatch, TrapCode::IndirectCallTypeMismatch)?,
            false => self.trap_unless_subtype(mismatch, found, ty)?,
        }

        let instance = self.load(self.types.i32.into(), self.at(element, funcref::INSTANCE), AliasClass::TableElement)?;
        let callee = self.instance(instance.into_int_value())?;
        self.call_pointer(code, callee, ty, then)
    }

    /// Traps when `mismatch` holds and a function of the type with id `found` is not of a subtype of `wanted` either.
    fn trap_unless_subtype(
        &mut self,
        mismatch: IntValue<'ctx>,
        found: IntValue<'ctx>,
        wanted: TypeIdx,
    ) -> Result<(), CompileError> {
        let (other, same) = (self.new_block(), self.new_block());
        self.builder.build_conditional_branch(mismatch, other, same)?;
        self.builder.position_at_end(other);
        let arguments = [found.into(), self.const_i64(u64::from(wanted.0)).into()];
        let matches = self.builtin(builtin::TYPE_MATCHES, &arguments)?;
        let mismatch = self.builder.build_int_compare(EQ, matches, self.types.i64.const_zero(), "")?;
        self.trap_if(mismatch, TrapCode::IndirectCallTypeMismatch)?;
        self.builder.build_unconditional_branch(same)?;
        self.builder.position_at_end(same);
        Ok(())
    }

    /// Calls what a reference refers to, which validation knows to be of that type.
    fn call_ref(&mut self, ty: TypeIdx, then: Then) -> Result<(), CompileError> {
        let reference = self.pop_int();
        let null = self.is_null(reference)?;
        self.trap_if(null, TrapCode::NullReference)?;
        let code = self.builder.build_int_truncate(reference, self.types.i64, "")?;
        let code = self.builder.build_int_to_ptr(code, self.types.ptr, "")?;
        let shift = self.types.i128.const_int(u64::from(funcref::INSTANCE) * 8, false);
        let instance = self.builder.build_right_shift(reference, shift, false, "")?;
        let instance = self.builder.build_int_truncate(instance, self.types.i32, "")?;
        let callee = self.instance(instance)?;
        self.call_pointer(code, callee, ty, then)
    }

    /// The vmctx of the instance with that index.
    fn instance(&mut self, index: IntValue<'ctx>) -> Result<PointerValue<'ctx>, CompileError> {
        let instances = self.context_pointer(vmctx::INSTANCES)?;
        let index = self.zext64(index)?;
        let offset = self.builder.build_left_shift(index, self.const_i64(3), "")?;
        let place = crate::llvm::offset_pointer(&self.builder, self.types.i8, instances, offset);
        Ok(self.invariant_load(self.types.ptr.into(), place)?.into_pointer_value())
    }

    fn call_pointer(
        &mut self,
        code: PointerValue<'ctx>,
        callee: PointerValue<'ctx>,
        ty: TypeIdx,
        then: Then,
    ) -> Result<(), CompileError> {
        self.segment_of(callee)?;
        let target = self.foreign_callee(ty);
        let arguments = self.pop_arguments(callee, target, then)?;
        let call = self.builder.build_indirect_call(self.unit.llvm_type(ty), code, &arguments, "")?;
        self.finish_call(call, target, then)
    }

    /// The callee's vmctx, where its results go if they go to memory, and the operands for which there are registers. Writes the others.
    fn pop_arguments(
        &mut self,
        vmctx: PointerValue<'ctx>,
        Callee { ty, signature, .. }: Callee,
        then: Then,
    ) -> Result<Vec<BasicMetadataValueEnum<'ctx>>, CompileError> {
        let ty = &self.unit.module.types[ty.0 as usize];
        let operands = self.pop_many(ty.params.len());
        let mut arguments: Vec<BasicMetadataValueEnum<'ctx>> = vec![vmctx.into()];
        if signature.results_in_memory(ty) {
            // The results of a tail call are this function's, and of the same types.
            let own = self.results.filter(|_| then == Then::Return);
            arguments.push(own.map_or_else(|| self.call_results(ty.results.len()), Ok)?.into());
        }
        let mut written = 0;
        for (operand, in_memory) in operands.into_iter().zip(signature.params_in_memory(ty)) {
            if in_memory {
                let place = self.at(vmctx, vmctx::ARGUMENTS + written * SLOT_BYTES);
                self.store(place, operand, AliasClass::Arguments)?;
                written += 1;
            } else {
                arguments.push(operand.into());
            }
        }
        Ok(arguments)
    }

    fn finish_call(
        &mut self,
        call: CallSiteValue<'ctx>,
        Callee { ty, signature, throws, leaves }: Callee,
        then: Then,
    ) -> Result<(), CompileError> {
        self.place_call(call);
        if then == Then::Return {
            return self.finish_tail_call(call);
        }
        self.ir.call(call, signature.convention);
        if leaves {
            self.own_segment()?;
        }
        let ty = &self.unit.module.types[ty.0 as usize];
        let in_memory = signature.results_in_memory(ty);
        let count = if in_memory { 0 } else { ty.results.len() };
        let mut results = results(&self.builder, call, count + usize::from(signature.exception))?;
        let exception = results.pop_if(|_| signature.exception);
        if let Some(exception) = exception.filter(|_| throws) {
            self.throw_if(exception.into_int_value())?;
        }
        self.stack.extend(results);
        if in_memory {
            let slots = self.call_results(ty.results.len())?;
            for (index, &ty) in ty.results.iter().enumerate() {
                let slot = self.at(slots, index as u32 * SLOT_BYTES);
                let result = self.load(self.types.value(ty), slot, AliasClass::Results)?;
                self.push(result);
            }
        }
        Ok(())
    }

    /// Returns what the callee returns, from the callee.
    fn finish_tail_call(&mut self, call: CallSiteValue<'ctx>) -> Result<(), CompileError> {
        self.ir.tail_call(call);
        match call.try_as_basic_value().basic() {
            Some(result) => self.builder.build_return(Some(&result))?,
            None => self.builder.build_return(None)?,
        };
        self.reachable = false;
        Ok(())
    }

    fn place_call(&self, call: CallSiteValue<'ctx>) {
        if let Some(instruction) = Ir::instruction(call) {
            self.place(instruction, None);
        }
    }

    /// A value as a slot holds it: zeros above.
    pub(super) fn to_slot(&self, value: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>, CompileError> {
        widen(&self.builder, self.types, value)
    }

    /// Asks the host for one of [`awsm_abi::calls::builtin`] and returns the first result slot, an `i64`.
    pub(super) fn builtin(&mut self, number: u32, arguments: &[BasicValueEnum<'ctx>]) -> Result<IntValue<'ctx>, CompileError> {
        let slots = self.slots()?;
        for (index, &argument) in arguments.iter().enumerate() {
            let slot = self.to_slot(argument)?;
            self.builder.build_store(self.at(slots, index as u32 * SLOT_BYTES), slot)?;
        }
        let host_call = self.context_pointer(vmctx::HOST_CALL)?;
        let ty: FunctionType<'ctx> = host_call_type(self.types);
        let arguments = [self.vmctx.into(), self.const_i32(number).into(), slots.into()];
        let call = self.builder.build_indirect_call(ty, host_call, &arguments, "")?;
        self.ir.call(call, CallConv::C);
        self.place_call(call);
        Ok(self.builder.build_load(self.types.i64, slots, "")?.into_int_value())
    }

    /// As [`builtin`](Self::builtin), for those that return nothing.
    pub(super) fn builtin_void(&mut self, number: u32, arguments: &[IntValue<'ctx>]) -> Result<(), CompileError> {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.into()).collect();
        self.builtin(number, &arguments).map(drop)
    }
}
