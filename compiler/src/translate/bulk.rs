//! Bulk memory operators. Copying and filling within one memory is done here, after one check of the whole range; the rest asks the host.

use awsm_abi::calls::builtin;
use awsm_abi::trap::TrapCode;
use inkwell::values::{BasicMetadataValueEnum, IntValue};
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::Ir;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn bulk(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match *op {
            Operator::MemoryCopy { dst_mem, src_mem } if dst_mem == src_mem => self.copy(dst_mem)?,
            Operator::MemoryCopy { dst_mem, src_mem } => {
                let [destination, source, length] = self.pop_indices()?;
                let memories = [self.const_i64(u64::from(dst_mem)), self.const_i64(u64::from(src_mem))];
                self.builtin_void(builtin::MEMORY_COPY, &[memories[0], memories[1], destination, source, length])?;
            }
            Operator::MemoryFill { mem } => self.fill(mem)?,
            Operator::MemoryInit { data_index, mem } => {
                let [destination, source, length] = self.pop_indices()?;
                let (memory, segment) = (self.const_i64(u64::from(mem)), self.const_i64(u64::from(data_index)));
                self.builtin_void(builtin::MEMORY_INIT, &[memory, segment, destination, source, length])?;
            }
            Operator::DataDrop { data_index } => {
                self.builtin_void(builtin::DATA_DROP, &[self.const_i64(u64::from(data_index))])?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Pops three integers and widens them to 64 bits.
    pub(super) fn pop_indices(&mut self) -> Result<[IntValue<'ctx>; 3], CompileError> {
        let (third, second, first) = (self.pop_int(), self.pop_int(), self.pop_int());
        Ok([self.zext64(first)?, self.zext64(second)?, self.zext64(third)?])
    }

    fn copy(&mut self, memory: u32) -> Result<(), CompileError> {
        let [destination, source, length] = self.pop_indices()?;
        for start in [destination, source] {
            let end = self.range_end(start, length)?;
            self.trap_unless_within(memory, end)?;
        }
        let (destination, source) = (self.memory_pointer(memory, destination)?, self.memory_pointer(memory, source)?);
        let pointer = self.types.ptr.into();
        let arguments = [destination.into(), source.into(), length.into(), self.not_volatile()];
        self.memory_intrinsic("llvm.memmove", &[pointer, pointer, self.types.i64.into()], &arguments, memory)
    }

    fn fill(&mut self, memory: u32) -> Result<(), CompileError> {
        let [destination, value, length] = self.pop_indices()?;
        let end = self.range_end(destination, length)?;
        self.trap_unless_within(memory, end)?;
        let destination = self.memory_pointer(memory, destination)?;
        let byte = self.builder.build_int_truncate(value, self.types.i8, "")?;
        let arguments = [destination.into(), byte.into(), length.into(), self.not_volatile()];
        self.memory_intrinsic("llvm.memset", &[self.types.ptr.into(), self.types.i64.into()], &arguments, memory)
    }

    fn not_volatile(&self) -> BasicMetadataValueEnum<'ctx> {
        self.ir.context.bool_type().const_zero().into()
    }

    fn memory_intrinsic(
        &mut self,
        name: &'static str,
        types: &[inkwell::types::BasicTypeEnum<'ctx>],
        arguments: &[BasicMetadataValueEnum<'ctx>],
        memory: u32,
    ) -> Result<(), CompileError> {
        let call = self.builder.build_call(self.ir.intrinsic(name, types)?, arguments, "")?;
        if let Some(instruction) = Ir::instruction(call) {
            self.ir.touches(instruction, self.unit.memory_access(memory))?;
            self.place(instruction, Some(TrapCode::MemoryOutOfBounds));
        }
        Ok(())
    }
}
