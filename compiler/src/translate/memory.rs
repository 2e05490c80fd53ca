//! Loads and stores of linear memory, its size and growth (core specification, section 2.4.6).
//!
//! An effective address is the zero-extended index plus the constant offset, in 64 bits: it folds into the addressing mode and never wraps.
//! With 64-bit indices it could; there every access is checked explicitly, in a way that does not need the sum.

use awsm_abi::calls::builtin;
use awsm_abi::trap::TrapCode;
use awsm_abi::types::Bounds;
use awsm_abi::vmctx::memory;
use inkwell::IntPredicate::{UGE, UGT};
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{BasicValue, BasicValueEnum, InstructionValue, IntValue, PointerValue};
use wasmparser::{MemArg, MemArgTarget, Operator};

use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::{AliasClass, offset_pointer, segment_pointer};

/// How a loaded integer fills its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Signed,
    Unsigned,
}
use Fill::{Signed, Unsigned};

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn memory(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        let t = self.types;
        match op {
            Operator::I32Load { memarg } => self.load_plain(memarg, t.i32.into())?,
            Operator::I64Load { memarg } => self.load_plain(memarg, t.i64.into())?,
            Operator::F32Load { memarg } => self.load_plain(memarg, t.f32.into())?,
            Operator::F64Load { memarg } => self.load_plain(memarg, t.f64.into())?,
            Operator::I32Load8S { memarg } => self.load_narrow(memarg, t.i8, t.i32, Signed)?,
            Operator::I32Load8U { memarg } => self.load_narrow(memarg, t.i8, t.i32, Unsigned)?,
            Operator::I32Load16S { memarg } => self.load_narrow(memarg, t.i16, t.i32, Signed)?,
            Operator::I32Load16U { memarg } => self.load_narrow(memarg, t.i16, t.i32, Unsigned)?,
            Operator::I64Load8S { memarg } => self.load_narrow(memarg, t.i8, t.i64, Signed)?,
            Operator::I64Load8U { memarg } => self.load_narrow(memarg, t.i8, t.i64, Unsigned)?,
            Operator::I64Load16S { memarg } => self.load_narrow(memarg, t.i16, t.i64, Signed)?,
            Operator::I64Load16U { memarg } => self.load_narrow(memarg, t.i16, t.i64, Unsigned)?,
            Operator::I64Load32S { memarg } => self.load_narrow(memarg, t.i32, t.i64, Signed)?,
            Operator::I64Load32U { memarg } => self.load_narrow(memarg, t.i32, t.i64, Unsigned)?,
            Operator::I32Store { memarg }
            | Operator::I64Store { memarg }
            | Operator::F32Store { memarg }
            | Operator::F64Store { memarg } => {
                let value = self.pop();
                self.store_plain(memarg, value)?;
            }
            Operator::I32Store8 { memarg } | Operator::I64Store8 { memarg } => self.store_narrow(memarg, t.i8)?,
            Operator::I32Store16 { memarg } | Operator::I64Store16 { memarg } => self.store_narrow(memarg, t.i16)?,
            Operator::I64Store32 { memarg } => self.store_narrow(memarg, t.i32)?,
            Operator::MemorySize { mem } => {
                let length = self.memory_length(*mem)?;
                let pages = self.builder.build_right_shift(length, self.const_i64(16), false, "")?;
                self.push_index(pages, self.unit.module.memories[*mem as usize].memory64)?;
            }
            Operator::MemoryGrow { mem } => {
                let pages = self.pop_int();
                let pages = self.zext64(pages)?;
                let memory = self.const_i64(u64::from(*mem));
                let previous = self.builtin(builtin::MEMORY_GROW, &[memory.into(), pages.into()])?;
                self.push_index(previous, self.unit.module.memories[*mem as usize].memory64)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn load_plain(&mut self, memarg: &MemArg, ty: BasicTypeEnum<'ctx>) -> Result<(), CompileError> {
        let value = self.load_memory(memarg, ty)?;
        self.push(value);
        Ok(())
    }

    fn load_narrow(&mut self, memarg: &MemArg, from: IntType<'ctx>, to: IntType<'ctx>, fill: Fill) -> Result<(), CompileError> {
        let value = self.load_memory(memarg, from.into())?.into_int_value();
        let value = match fill {
            Signed => self.builder.build_int_s_extend(value, to, "")?,
            Unsigned => self.builder.build_int_z_extend(value, to, "")?,
        };
        self.push(value);
        Ok(())
    }

    pub(super) fn load_memory(&mut self, memarg: &MemArg, ty: BasicTypeEnum<'ctx>) -> Result<BasicValueEnum<'ctx>, CompileError> {
        let memory = memory_index(memarg);
        let pointer = self.address(memarg, bytes_of(ty))?;
        let value = self.builder.build_load(ty, pointer, "")?;
        if let Some(load) = value.as_instruction_value() {
            self.finish_access(load, memory)?;
            // Dead accesses must trap, too: `llvm::keep` takes it from here.
            let faults = matches!(self.unit.bounds[memory as usize], Bounds::Guard | Bounds::Segment);
            load.set_volatile(faults).map_err(access_error)?;
        }
        Ok(value)
    }

    fn store_narrow(&mut self, memarg: &MemArg, to: IntType<'ctx>) -> Result<(), CompileError> {
        let value = self.pop_int();
        let value = self.builder.build_int_truncate(value, to, "")?;
        self.store_plain(memarg, value.into())
    }

    pub(super) fn store_plain(&mut self, memarg: &MemArg, value: BasicValueEnum<'ctx>) -> Result<(), CompileError> {
        let pointer = self.address(memarg, bytes_of(value.get_type()))?;
        let store = self.builder.build_store(pointer, value)?;
        self.finish_access(store, memory_index(memarg))
    }

    /// What loads and stores have in common. The alignment that a memory operator states is a hint that may be wrong.
    fn finish_access(&self, access: InstructionValue<'ctx>, memory: u32) -> Result<(), CompileError> {
        access.set_alignment(1).map_err(access_error)?;
        self.ir.touches(access, self.unit.memory_access(memory))?;
        self.place(access, Some(TrapCode::MemoryOutOfBounds));
        Ok(())
    }

    /// Pops an index and makes the address of `bytes` bytes at it, checked as the memory's bounds mode wants.
    fn address(&mut self, memarg: &MemArg, bytes: u64) -> Result<PointerValue<'ctx>, CompileError> {
        let memory = memory_index(memarg);
        let index = self.pop_int();
        let index = self.zext64(index)?;
        if self.unit.module.memories[memory as usize].memory64 {
            self.trap_unless_room(memory, index, memarg.offset, bytes)?;
        } else if self.unit.bounds[memory as usize] == Bounds::Software {
            // Below 2^33: no sum wraps.
            let end = self.builder.build_int_nuw_add(index, self.const_i64(memarg.offset + bytes), "")?;
            self.trap_unless_within(memory, end)?;
        }
        if self.unit.bounds[memory as usize] == Bounds::Segment {
            // Below 2^33, as above.
            let address = self.builder.build_int_nuw_add(index, self.const_i64(memarg.offset), "")?;
            return Ok(segment_pointer(&self.builder, self.ir.context, address));
        }
        let pointer = self.memory_pointer(memory, index)?;
        if memarg.offset == 0 {
            return Ok(pointer);
        }
        Ok(offset_pointer(&self.builder, self.types.i8, pointer, self.const_i64(memarg.offset)))
    }

    /// The address of the byte at `index`, unchecked.
    pub(super) fn memory_pointer(&mut self, memory: u32, index: IntValue<'ctx>) -> Result<PointerValue<'ctx>, CompileError> {
        let base = self.context_pointer(self.unit.layout.memory(memory) + memory::BASE)?;
        Ok(offset_pointer(&self.builder, self.types.i8, base, index))
    }

    /// Traps when a range of a memory that ends before `end` is not inside.
    pub(super) fn trap_unless_within(&mut self, memory: u32, end: IntValue<'ctx>) -> Result<(), CompileError> {
        let length = self.memory_length(memory)?;
        let outside = self.builder.build_int_compare(UGT, end, length, "")?;
        self.trap_if(outside, TrapCode::MemoryOutOfBounds)
    }

    /// Traps when not all of the bytes of an access at a 64-bit index plus an offset are inside: when `index + offset + bytes > length`, none of
    /// which sums need fit into 64 bits. In other words, when `index >= length - (offset + bytes - 1)`, a difference that changes only with
    /// the length and saturates at zero.
    fn trap_unless_room(&mut self, memory: u32, index: IntValue<'ctx>, offset: u64, bytes: u64) -> Result<(), CompileError> {
        // No memory is long enough for an offset at which this saturates.
        let last = self.const_i64(offset.saturating_add(bytes - 1));
        let length = self.memory_length(memory)?;
        let ends = self.intrinsic("llvm.usub.sat", &[self.types.i64.into()], &[length.into(), last.into()])?;
        let outside = self.builder.build_int_compare(UGE, index, ends.into_int_value(), "")?;
        self.trap_if(outside, TrapCode::MemoryOutOfBounds)
    }

    /// The end of a range that begins at a 64-bit index; one that has no such end ends behind every memory.
    pub(super) fn range_end(&mut self, start: IntValue<'ctx>, length: IntValue<'ctx>) -> Result<IntValue<'ctx>, CompileError> {
        let end = self.intrinsic("llvm.uadd.sat", &[self.types.i64.into()], &[start.into(), length.into()])?;
        Ok(end.into_int_value())
    }

    /// Pushes a number of pages or elements as the type of indices, `i64` if `wide`.
    pub(super) fn push_index(&mut self, value: IntValue<'ctx>, wide: bool) -> Result<(), CompileError> {
        let ty = if wide { self.types.i64 } else { self.types.i32 };
        let value = self.builder.build_int_truncate_or_bit_cast(value, ty, "")?;
        self.push(value);
        Ok(())
    }

    fn memory_length(&mut self, memory: u32) -> Result<IntValue<'ctx>, CompileError> {
        let record = self.context_pointer(self.unit.layout.memory(memory) + memory::RECORD)?;
        let length = self.at(record, memory::RECORD_LENGTH);
        Ok(self.load(self.types.i64.into(), length, AliasClass::MemoryRecord)?.into_int_value())
    }
}

pub(super) fn memory_index(memarg: &MemArg) -> u32 {
    match memarg.target {
        MemArgTarget::Memory(memory) => memory,
        // Validation knows no arrays.
        MemArgTarget::Array(_) => 0,
    }
}

fn bytes_of(ty: BasicTypeEnum<'_>) -> u64 {
    match ty {
        BasicTypeEnum::IntType(ty) => u64::from(ty.get_bit_width() / 8),
        BasicTypeEnum::FloatType(ty) => u64::from(ty.get_bit_width() / 8),
        BasicTypeEnum::VectorType(_) => 16,
        _ => awsm_abi::limits::ACCESS_BYTES_MAX,
    }
}

fn access_error(error: inkwell::values::InstructionValueError) -> CompileError {
    CompileError::llvm("building IR", format!("{error:?}"))
}
