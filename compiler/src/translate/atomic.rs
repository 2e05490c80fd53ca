//! Atomic operators (threads proposal).
//!
//! A sandbox has one thread of execution, and its memories are no other sandbox's. So nothing can see an access half done, or two in another
//! order, and each operator is a check of the alignment and then the plain accesses: nothing is locked, and all that keeps the traps of
//! other accesses ([`crate::llvm`]) keeps theirs. Nothing can wake a guest that waits, either: `memory.atomic.wait` ends with its time, which is
//! the runtime's to measure, and `memory.atomic.notify` finds no waiter.

use awsm_abi::calls::builtin;
use awsm_abi::trap::TrapCode;
use inkwell::IntPredicate::{EQ, NE};
use inkwell::types::IntType;
use inkwell::values::IntValue;
use wasmparser::{MemArg, Operator};

use super::function::FunctionTranslator;
use super::memory::memory_index;
use crate::error::CompileError;

/// What a read-modify-write operator stores.
#[derive(Clone, Copy)]
enum Update {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Exchange,
}

/// What `memory.atomic.wait` says where the value is not the expected one.
const NOT_EQUAL: u32 = 1;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn atomic(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        use Operator as O;
        if let Some((memarg, update)) = update(op) {
            self.read_modify_write(memarg, update)?;
            return Ok(true);
        }
        let t = self.types;
        match op {
            O::I32AtomicLoad { memarg } | O::I32AtomicLoad8U { memarg } | O::I32AtomicLoad16U { memarg } => {
                self.atomic_load(memarg, t.i32)?;
            }
            O::I64AtomicLoad { memarg }
            | O::I64AtomicLoad8U { memarg }
            | O::I64AtomicLoad16U { memarg }
            | O::I64AtomicLoad32U { memarg } => self.atomic_load(memarg, t.i64)?,
            O::I32AtomicStore { memarg }
            | O::I32AtomicStore8 { memarg }
            | O::I32AtomicStore16 { memarg }
            | O::I64AtomicStore { memarg }
            | O::I64AtomicStore8 { memarg }
            | O::I64AtomicStore16 { memarg }
            | O::I64AtomicStore32 { memarg } => self.atomic_store(memarg)?,
            O::I32AtomicRmwCmpxchg { memarg }
            | O::I64AtomicRmwCmpxchg { memarg }
            | O::I32AtomicRmw8CmpxchgU { memarg }
            | O::I32AtomicRmw16CmpxchgU { memarg }
            | O::I64AtomicRmw8CmpxchgU { memarg }
            | O::I64AtomicRmw16CmpxchgU { memarg }
            | O::I64AtomicRmw32CmpxchgU { memarg } => self.compare_exchange(memarg)?,
            O::MemoryAtomicWait32 { memarg } | O::MemoryAtomicWait64 { memarg } => self.wait(memarg)?,
            O::MemoryAtomicNotify { memarg } => self.notify(memarg)?,
            // Orders what only other threads could see.
            O::AtomicFence { .. } => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The type of what is in memory: atomic operators state its size as their alignment, and may state no other.
    fn cell(&self, memarg: &MemArg) -> IntType<'ctx> {
        match memarg.align {
            0 => self.types.i8,
            1 => self.types.i16,
            2 => self.types.i32,
            _ => self.types.i64,
        }
    }

    /// Pops an index, and traps unless its sum with the offset is a multiple of the access's size.
    fn pop_aligned(&mut self, memarg: &MemArg) -> Result<IntValue<'ctx>, CompileError> {
        let index = self.pop_int();
        let mask = (1 << memarg.align) - 1;
        if mask != 0 {
            let ty = index.get_type();
            // The lower bits of the sum, whether that fits or not.
            let address = match memarg.offset & mask {
                0 => index,
                offset => self.builder.build_int_add(index, ty.const_int(offset, false), "")?,
            };
            let rest = self.builder.build_and(address, ty.const_int(mask, false), "")?;
            let unaligned = self.builder.build_int_compare(NE, rest, ty.const_zero(), "")?;
            self.trap_if(unaligned, TrapCode::UnalignedAtomic)?;
        }
        Ok(index)
    }

    /// What is in memory at an index.
    fn load_cell(&mut self, memarg: &MemArg, index: IntValue<'ctx>) -> Result<IntValue<'ctx>, CompileError> {
        self.push(index);
        let cell = self.cell(memarg);
        Ok(self.load_memory(memarg, cell.into())?.into_int_value())
    }

    fn store_cell(&mut self, memarg: &MemArg, index: IntValue<'ctx>, value: IntValue<'ctx>) -> Result<(), CompileError> {
        self.push(index);
        self.store_plain(memarg, value.into())
    }

    fn push_extended(&mut self, value: IntValue<'ctx>, ty: IntType<'ctx>) -> Result<(), CompileError> {
        let value = self.builder.build_int_z_extend_or_bit_cast(value, ty, "")?;
        self.push(value);
        Ok(())
    }

    /// Pops an operand as what is in memory.
    fn pop_cell(&mut self, memarg: &MemArg) -> Result<(IntValue<'ctx>, IntType<'ctx>), CompileError> {
        let operand = self.pop_int();
        let value = self.builder.build_int_truncate_or_bit_cast(operand, self.cell(memarg), "")?;
        Ok((value, operand.get_type()))
    }

    fn atomic_load(&mut self, memarg: &MemArg, ty: IntType<'ctx>) -> Result<(), CompileError> {
        let index = self.pop_aligned(memarg)?;
        let value = self.load_cell(memarg, index)?;
        self.push_extended(value, ty)
    }

    fn atomic_store(&mut self, memarg: &MemArg) -> Result<(), CompileError> {
        let (value, _) = self.pop_cell(memarg)?;
        let index = self.pop_aligned(memarg)?;
        self.store_cell(memarg, index, value)
    }

    fn read_modify_write(&mut self, memarg: &MemArg, update: Update) -> Result<(), CompileError> {
        let (operand, ty) = self.pop_cell(memarg)?;
        let index = self.pop_aligned(memarg)?;
        let old = self.load_cell(memarg, index)?;
        let new = match update {
            Update::Add => self.builder.build_int_add(old, operand, "")?,
            Update::Sub => self.builder.build_int_sub(old, operand, "")?,
            Update::And => self.builder.build_and(old, operand, "")?,
            Update::Or => self.builder.build_or(old, operand, "")?,
            Update::Xor => self.builder.build_xor(old, operand, "")?,
            Update::Exchange => operand,
        };
        self.store_cell(memarg, index, new)?;
        self.push_extended(old, ty)
    }

    fn compare_exchange(&mut self, memarg: &MemArg) -> Result<(), CompileError> {
        let (replacement, ty) = self.pop_cell(memarg)?;
        // Wrapped, too, before it is compared (WebAssembly/threads, issue 195).
        let (expected, _) = self.pop_cell(memarg)?;
        let index = self.pop_aligned(memarg)?;
        let old = self.load_cell(memarg, index)?;
        let equal = self.builder.build_int_compare(EQ, old, expected, "")?;
        // What is stored back where they differ is what is there: nothing can have changed it since.
        let new = self.builder.build_select(equal, replacement, old, "")?.into_int_value();
        self.store_cell(memarg, index, new)?;
        self.push_extended(old, ty)
    }

    fn notify(&mut self, memarg: &MemArg) -> Result<(), CompileError> {
        let _count = self.pop_int();
        let index = self.pop_aligned(memarg)?;
        // For its trap.
        self.load_cell(memarg, index)?;
        self.push(self.const_i32(0));
        Ok(())
    }

    fn wait(&mut self, memarg: &MemArg) -> Result<(), CompileError> {
        let (timeout, expected) = (self.pop_int(), self.pop_int());
        let index = self.pop_aligned(memarg)?;
        if !self.unit.module.memories[memory_index(memarg) as usize].shared {
            // What follows is translated all the same, and never reached.
            let always = self.ir.context.bool_type().const_all_ones();
            self.trap_if(always, TrapCode::ExpectedSharedMemory)?;
        }
        let value = self.load_cell(memarg, index)?;
        let equal = self.builder.build_int_compare(EQ, value, expected, "")?;
        let (waits, done) = (self.new_block(), self.new_block());
        let before = self.block();
        self.builder.build_conditional_branch(equal, waits, done)?;
        self.builder.position_at_end(waits);
        let result = self.builtin(builtin::MEMORY_WAIT, &[timeout.into()])?;
        let result = self.builder.build_int_truncate(result, self.types.i32, "")?;
        let after = self.block();
        self.builder.build_unconditional_branch(done)?;
        self.builder.position_at_end(done);
        let outcome = self.builder.build_phi(self.types.i32, "")?;
        outcome.add_incoming(&[(&self.const_i32(NOT_EQUAL), before), (&result, after)]);
        self.push(outcome.as_basic_value());
        Ok(())
    }
}

/// Read-modify-write operators but for those that compare.
fn update<'a>(op: &'a Operator<'_>) -> Option<(&'a MemArg, Update)> {
    use Operator as O;
    Some(match op {
        O::I32AtomicRmwAdd { memarg }
        | O::I64AtomicRmwAdd { memarg }
        | O::I32AtomicRmw8AddU { memarg }
        | O::I32AtomicRmw16AddU { memarg }
        | O::I64AtomicRmw8AddU { memarg }
        | O::I64AtomicRmw16AddU { memarg }
        | O::I64AtomicRmw32AddU { memarg } => (memarg, Update::Add),
        O::I32AtomicRmwSub { memarg }
        | O::I64AtomicRmwSub { memarg }
        | O::I32AtomicRmw8SubU { memarg }
        | O::I32AtomicRmw16SubU { memarg }
        | O::I64AtomicRmw8SubU { memarg }
        | O::I64AtomicRmw16SubU { memarg }
        | O::I64AtomicRmw32SubU { memarg } => (memarg, Update::Sub),
        O::I32AtomicRmwAnd { memarg }
        | O::I64AtomicRmwAnd { memarg }
        | O::I32AtomicRmw8AndU { memarg }
        | O::I32AtomicRmw16AndU { memarg }
        | O::I64AtomicRmw8AndU { memarg }
        | O::I64AtomicRmw16AndU { memarg }
        | O::I64AtomicRmw32AndU { memarg } => (memarg, Update::And),
        O::I32AtomicRmwOr { memarg }
        | O::I64AtomicRmwOr { memarg }
        | O::I32AtomicRmw8OrU { memarg }
        | O::I32AtomicRmw16OrU { memarg }
        | O::I64AtomicRmw8OrU { memarg }
        | O::I64AtomicRmw16OrU { memarg }
        | O::I64AtomicRmw32OrU { memarg } => (memarg, Update::Or),
        O::I32AtomicRmwXor { memarg }
        | O::I64AtomicRmwXor { memarg }
        | O::I32AtomicRmw8XorU { memarg }
        | O::I32AtomicRmw16XorU { memarg }
        | O::I64AtomicRmw8XorU { memarg }
        | O::I64AtomicRmw16XorU { memarg }
        | O::I64AtomicRmw32XorU { memarg } => (memarg, Update::Xor),
        O::I32AtomicRmwXchg { memarg }
        | O::I64AtomicRmwXchg { memarg }
        | O::I32AtomicRmw8XchgU { memarg }
        | O::I32AtomicRmw16XchgU { memarg }
        | O::I64AtomicRmw8XchgU { memarg }
        | O::I64AtomicRmw16XchgU { memarg }
        | O::I64AtomicRmw32XchgU { memarg } => (memarg, Update::Exchange),
        _ => return None,
    })
}
