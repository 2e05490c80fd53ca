//! The translator of one function: its stacks, its locals, and the small operations that all groups of operators share.

use awsm_abi::calls::SLOT_BYTES;
use awsm_abi::trap::TrapCode;
use awsm_abi::types::ValType;
use awsm_abi::vmctx;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, FloatValue, FunctionValue, InstructionValue, IntValue, PointerValue,
};
use wasmparser::Operator;

use super::frame::{Frame, Handler};
use super::unit::Unit;
use crate::error::CompileError;
use crate::llvm::{Access, AliasClass, Ir, Scope, Types, offset_pointer};
use crate::module::{FuncIdx, val_type};

/// Translates a function's body.
pub(super) fn translate(unit: &Unit<'_, '_>, function: FuncIdx) -> Result<(), CompileError> {
    let (Some(value), Some(index)) = (unit.function(function), unit.module.defined(function)) else {
        return Ok(());
    };
    let body = &unit.module.bodies[index];
    let mut translator = FunctionTranslator::new(unit, function, value, body.range().start as u32)?;
    let mut locals = body.get_locals_reader()?;
    for _ in 0..locals.get_count() {
        let (count, ty) = locals.read()?;
        let ty = val_type(ty).ok_or_else(|| CompileError::llvm("building IR", "local of a refused type"))?;
        (0..count).try_for_each(|_| translator.declare_local(ty, None))?;
    }
    for item in body.get_operators_reader()?.into_iter_with_offsets() {
        let (op, offset) = item?;
        translator.offset = offset as u32;
        translator.operator(&op)?;
    }
    translator.finish()
}

/// A function in translation.
pub(super) struct FunctionTranslator<'a, 'ctx> {
    pub(super) unit: &'a Unit<'a, 'ctx>,
    pub(super) ir: &'a Ir<'ctx>,
    pub(super) types: Types<'ctx>,
    /// Stands at the end of the current block.
    pub(super) builder: Builder<'ctx>,
    /// Stands at the end of the entry block, which dominates all others: for slots on the stack and for loads of what never changes.
    entry_builder: Builder<'ctx>,
    entry: BasicBlock<'ctx>,
    first: BasicBlock<'ctx>,
    pub(super) function: FunctionValue<'ctx>,
    pub(super) vmctx: PointerValue<'ctx>,
    scope: Scope<'ctx>,
    /// Where the current operator stands in the module.
    offset: u32,
    pub(super) stack: Vec<BasicValueEnum<'ctx>>,
    pub(super) frames: Vec<Frame<'ctx>>,
    /// Whether control reaches the current operator.
    pub(super) reachable: bool,
    /// Frames opened since it does not.
    pub(super) dead_frames: u32,
    pub(super) locals: Vec<(PointerValue<'ctx>, ValType)>,
    /// Loads of the vmctx that were made in the entry block, by offset.
    context_loads: std::collections::HashMap<u32, BasicValueEnum<'ctx>>,
    /// Slots for builtin host calls.
    slots: Option<PointerValue<'ctx>>,
    /// Where this function's results go, if it returns them in memory.
    pub(super) results: Option<PointerValue<'ctx>>,
    /// Slots for results that calls return in memory, by their number.
    call_results: std::collections::HashMap<usize, PointerValue<'ctx>>,
    pub(super) result_types: &'a [ValType],
    /// Whether the function returns exceptions.
    pub(super) returns_exception: bool,
    /// Where exceptions go that nothing in the function catches.
    pub(super) uncaught: Option<Handler<'ctx>>,
}

impl<'a, 'ctx> FunctionTranslator<'a, 'ctx> {
    fn new(
        unit: &'a Unit<'a, 'ctx>,
        index: FuncIdx,
        function: FunctionValue<'ctx>,
        offset: u32,
    ) -> Result<FunctionTranslator<'a, 'ctx>, CompileError> {
        let ir = unit.ir;
        let name = unit.module.function_names[index.0 as usize].as_deref().unwrap_or("");
        let scope = ir.scope(function, name, unit.line(offset));
        let entry = ir.context.append_basic_block(function, "entry");
        let first = ir.context.append_basic_block(function, "");
        let (builder, entry_builder) = (ir.context.create_builder(), ir.context.create_builder());
        builder.position_at_end(first);
        entry_builder.position_at_end(entry);
        let params = function.get_params();
        let ty = unit.module.function_type(index);
        let signature = unit.signature(index);
        let in_memory = signature.results_in_memory(ty);
        let mut translator = FunctionTranslator {
            unit,
            ir,
            types: ir.types,
            builder,
            entry_builder,
            entry,
            first,
            function,
            vmctx: params[0].into_pointer_value(),
            scope,
            offset,
            stack: Vec::new(),
            frames: vec![Frame::body(&ty.results)],
            reachable: true,
            dead_frames: 0,
            locals: Vec::new(),
            context_loads: std::collections::HashMap::new(),
            slots: None,
            results: in_memory.then(|| params[1].into_pointer_value()),
            call_results: std::collections::HashMap::new(),
            result_types: &ty.results,
            returns_exception: signature.exception,
            uncaught: None,
        };
        let mut registers = params[1 + usize::from(in_memory)..].iter().copied();
        let mut arguments = 0;
        for (&ty, in_memory) in ty.params.iter().zip(signature.params_in_memory(ty)) {
            let value = if in_memory {
                arguments += 1;
                Some(translator.argument(arguments - 1, ty)?)
            } else {
                registers.next()
            };
            translator.declare_local(ty, value)?;
        }
        Ok(translator)
    }

    /// Reads an argument that is passed in memory; in the entry block, so before anything else.
    fn argument(&self, index: u32, ty: ValType) -> Result<BasicValueEnum<'ctx>, CompileError> {
        let offset = self.const_i64(u64::from(vmctx::ARGUMENTS + index * SLOT_BYTES));
        let slot = offset_pointer(&self.entry_builder, self.types.i8, self.vmctx, offset);
        let value = self.entry_builder.build_load(self.types.value(ty), slot, "")?;
        if let Some(load) = inkwell::values::BasicValue::as_instruction_value(&value) {
            self.ir.touches(load, AliasClass::Arguments)?;
        }
        Ok(value)
    }

    fn declare_local(&mut self, ty: ValType, value: Option<BasicValueEnum<'ctx>>) -> Result<(), CompileError> {
        let llvm = self.types.value(ty);
        let cell = self.entry_builder.build_alloca(llvm, "")?;
        self.entry_builder.build_store(cell, value.unwrap_or_else(|| llvm.const_zero()))?;
        self.locals.push((cell, ty));
        Ok(())
    }

    /// Translates an operator.
    fn operator(&mut self, op: &Operator<'_>) -> Result<(), CompileError> {
        // Control comes first: it alone sees operators that are not reachable.
        let known = self.control(op)?
            || !self.reachable
            || self.variable(op)?
            || self.numeric(op)?
            || self.memory(op)?
            || self.float(op)?
            || self.convert(op)?
            || self.call(op)?
            || self.reference(op)?
            || self.table(op)?
            || self.bulk(op)?
            || self.exception(op)?
            || self.simd(op)?
            || self.atomic(op)?;
        if known { Ok(()) } else { Err(CompileError::Unsupported { feature: format!("{op:?}"), offset: u64::from(self.offset) }) }
    }

    fn finish(mut self) -> Result<(), CompileError> {
        self.return_uncaught()?;
        debug_assert!(self.frames.is_empty() && self.entry_builder.get_insert_block() == Some(self.entry));
        self.entry_builder.build_unconditional_branch(self.first)?;
        Ok(())
    }

    // Values.

    pub(super) fn push(&mut self, value: impl Into<BasicValueEnum<'ctx>>) {
        self.stack.push(value.into());
    }

    /// Pops a value.
    ///
    /// # Panics
    /// When there is none, which validation excludes.
    pub(super) fn pop(&mut self) -> BasicValueEnum<'ctx> {
        self.stack.pop().expect("validated: the operand stack holds the operands")
    }

    pub(super) fn pop_int(&mut self) -> IntValue<'ctx> {
        self.pop().into_int_value()
    }

    /// The integer on top of the stack, which stays there.
    pub(super) fn top_int(&self) -> IntValue<'ctx> {
        self.stack.last().expect("validated: the operand stack holds the operands").into_int_value()
    }

    pub(super) fn pop_float(&mut self) -> FloatValue<'ctx> {
        self.pop().into_float_value()
    }

    /// Pops values, the first pushed first.
    pub(super) fn pop_many(&mut self, count: usize) -> Vec<BasicValueEnum<'ctx>> {
        self.stack.split_off(self.stack.len() - count)
    }

    pub(super) fn const_i32(&self, value: u32) -> IntValue<'ctx> {
        self.types.i32.const_int(u64::from(value), false)
    }

    pub(super) fn const_i64(&self, value: u64) -> IntValue<'ctx> {
        self.types.i64.const_int(value, false)
    }

    /// Widens an index; one of 64 bits stays as it is.
    pub(super) fn zext64(&self, value: IntValue<'ctx>) -> Result<IntValue<'ctx>, CompileError> {
        Ok(self.builder.build_int_z_extend_or_bit_cast(value, self.types.i64, "")?)
    }

    /// Pushes a condition as an `i32`.
    pub(super) fn push_condition(&mut self, condition: IntValue<'ctx>) -> Result<(), CompileError> {
        let value = self.builder.build_int_z_extend(condition, self.types.i32, "")?;
        self.push(value);
        Ok(())
    }

    /// Pops an `i32` as a condition.
    pub(super) fn pop_condition(&mut self) -> Result<IntValue<'ctx>, CompileError> {
        let value = self.pop_int();
        Ok(self.builder.build_int_compare(inkwell::IntPredicate::NE, value, self.types.i32.const_zero(), "")?)
    }

    /// Calls an intrinsic overloaded by `types` that returns a value.
    pub(super) fn intrinsic(
        &self,
        name: &'static str,
        types: &[inkwell::types::BasicTypeEnum<'ctx>],
        arguments: &[BasicMetadataValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>, CompileError> {
        Ir::result(self.builder.build_call(self.ir.intrinsic(name, types)?, arguments, "")?)
    }

    // Places and blocks.

    pub(super) fn offset(&self) -> u32 {
        self.offset
    }

    /// Says that an instruction comes from the current operator, and with what it may trap.
    pub(super) fn place(&self, instruction: InstructionValue<'ctx>, trap: Option<TrapCode>) {
        self.ir.place(instruction, self.scope, self.unit.line(self.offset), trap);
    }

    pub(super) fn new_block(&self) -> BasicBlock<'ctx> {
        self.ir.context.append_basic_block(self.function, "")
    }

    /// The block in which code is being built.
    pub(super) fn block(&self) -> BasicBlock<'ctx> {
        self.builder.get_insert_block().expect("the builder always stands in a block")
    }

    /// Traps.
    pub(super) fn trap(&self, code: TrapCode) -> Result<(), CompileError> {
        let number = self.types.i8.const_int(u64::from(code.number()), false);
        let call = self.builder.build_call(self.ir.intrinsic("llvm.ubsantrap", &[])?, &[number.into()], "")?;
        self.ir.no_merge(call);
        if let Some(instruction) = Ir::instruction(call) {
            self.place(instruction, Some(code));
        }
        self.builder.build_unreachable()?;
        Ok(())
    }

    /// Traps when `condition` holds, and continues in a new block otherwise.
    pub(super) fn trap_if(&self, condition: IntValue<'ctx>, code: TrapCode) -> Result<(), CompileError> {
        let (failed, passed) = (self.new_block(), self.new_block());
        let branch = self.builder.build_conditional_branch(condition, failed, passed)?;
        self.ir.unlikely(branch)?;
        self.builder.position_at_end(failed);
        self.trap(code)?;
        self.builder.position_at_end(passed);
        Ok(())
    }

    // The vmctx and what hangs on it.

    pub(super) fn at(&self, pointer: PointerValue<'ctx>, bytes: u32) -> PointerValue<'ctx> {
        offset_pointer(&self.builder, self.types.i8, pointer, self.const_i64(u64::from(bytes)))
    }

    /// Loads what never changes from the vmctx, once per function.
    pub(super) fn context_pointer(&mut self, offset: u32) -> Result<PointerValue<'ctx>, CompileError> {
        self.context_load(offset, self.types.ptr.into()).map(BasicValueEnum::into_pointer_value)
    }

    /// As [`context_pointer`](Self::context_pointer), a 32-bit number.
    pub(super) fn context_i32(&mut self, offset: u32) -> Result<IntValue<'ctx>, CompileError> {
        self.context_load(offset, self.types.i32.into()).map(BasicValueEnum::into_int_value)
    }

    fn context_load(
        &mut self,
        offset: u32,
        ty: inkwell::types::BasicTypeEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, CompileError> {
        if let Some(&value) = self.context_loads.get(&offset) {
            return Ok(value);
        }
        let pointer = offset_pointer(&self.entry_builder, self.types.i8, self.vmctx, self.const_i64(u64::from(offset)));
        let value = self.entry_builder.build_load(ty, pointer, "")?;
        self.mark_invariant(value)?;
        self.context_loads.insert(offset, value);
        Ok(value)
    }

    /// Loads what never changes, here.
    pub(super) fn invariant_load(
        &self,
        ty: inkwell::types::BasicTypeEnum<'ctx>,
        pointer: PointerValue<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, CompileError> {
        let value = self.builder.build_load(ty, pointer, "")?;
        self.mark_invariant(value)?;
        Ok(value)
    }

    fn mark_invariant(&self, value: BasicValueEnum<'ctx>) -> Result<(), CompileError> {
        if let Some(load) = inkwell::values::BasicValue::as_instruction_value(&value) {
            self.ir.invariant(load)?;
            self.ir.touches(load, AliasClass::Context)?;
        }
        Ok(())
    }

    /// Loads from a place that belongs to `access`.
    pub(super) fn load(
        &self,
        ty: inkwell::types::BasicTypeEnum<'ctx>,
        pointer: PointerValue<'ctx>,
        access: impl Into<Access>,
    ) -> Result<BasicValueEnum<'ctx>, CompileError> {
        let value = self.builder.build_load(ty, pointer, "")?;
        if let Some(load) = inkwell::values::BasicValue::as_instruction_value(&value) {
            self.ir.touches(load, access)?;
        }
        Ok(value)
    }

    /// Stores to a place that belongs to `access`.
    pub(super) fn store(
        &self,
        pointer: PointerValue<'ctx>,
        value: BasicValueEnum<'ctx>,
        access: impl Into<Access>,
    ) -> Result<(), CompileError> {
        let store = self.builder.build_store(pointer, value)?;
        self.ir.touches(store, access)
    }

    /// A cell on the stack.
    pub(super) fn stack_cell(&self, ty: inkwell::types::IntType<'ctx>) -> Result<PointerValue<'ctx>, CompileError> {
        Ok(self.entry_builder.build_alloca(ty, "")?)
    }

    /// Slots for a builtin host call, on the stack.
    pub(super) fn slots(&mut self) -> Result<PointerValue<'ctx>, CompileError> {
        if let Some(slots) = self.slots {
            return Ok(slots);
        }
        let ty = self.types.i128.array_type(awsm_abi::calls::builtin::SLOTS_MAX as u32);
        let slots = self.entry_builder.build_alloca(ty, "slots")?;
        self.slots = Some(slots);
        Ok(slots)
    }

    /// Slots for the results of a call, on the stack. They are read before the next call.
    pub(super) fn call_results(&mut self, count: usize) -> Result<PointerValue<'ctx>, CompileError> {
        if let Some(&slots) = self.call_results.get(&count) {
            return Ok(slots);
        }
        let slots = self.entry_builder.build_alloca(self.types.i128.array_type(count as u32), "results")?;
        self.call_results.insert(count, slots);
        Ok(slots)
    }
}
