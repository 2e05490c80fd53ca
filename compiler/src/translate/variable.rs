//! Variable, parametric and constant operators (core specification, sections 2.4.1, 2.4.4 and 2.4.5).

use awsm_abi::descriptor::ConstOp;
use inkwell::values::{BasicValue, BasicValueEnum, PointerValue};
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::AliasClass;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn variable(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::Drop => drop(self.pop()),
            Operator::Select | Operator::TypedSelect { .. } => {
                let condition = self.pop_condition()?;
                let (otherwise, then) = (self.pop(), self.pop());
                let value = self.builder.build_select(condition, then, otherwise, "")?;
                self.push(value);
            }
            Operator::LocalGet { local_index } => {
                let (cell, ty) = self.locals[*local_index as usize];
                let value = self.builder.build_load(self.types.value(ty), cell, "")?;
                self.push(value);
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop();
                self.builder.build_store(self.locals[*local_index as usize].0, value)?;
            }
            Operator::LocalTee { local_index } => {
                let value = self.pop();
                self.builder.build_store(self.locals[*local_index as usize].0, value)?;
                self.push(value);
            }
            Operator::GlobalGet { global_index } => self.global_get(*global_index)?,
            Operator::GlobalSet { global_index } => {
                let value = self.pop();
                let (cell, access) = self.global_cell(*global_index)?;
                self.store(cell, value, access)?;
            }
            Operator::I32Const { value } => self.push(self.const_i32(*value as u32)),
            Operator::I64Const { value } => self.push(self.const_i64(*value as u64)),
            Operator::F32Const { value } => self.push_f32(value.bits())?,
            Operator::F64Const { value } => self.push_f64(value.bits())?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Constants are made from their bits: a number on the way could change a NaN.
    fn push_f32(&mut self, bits: u32) -> Result<(), CompileError> {
        let value = self.builder.build_bit_cast(self.const_i32(bits), self.types.f32, "")?;
        self.push(value);
        Ok(())
    }

    fn push_f64(&mut self, bits: u64) -> Result<(), CompileError> {
        let value = self.builder.build_bit_cast(self.const_i64(bits), self.types.f64, "")?;
        self.push(value);
        Ok(())
    }

    fn global_get(&mut self, index: u32) -> Result<(), CompileError> {
        match self.unit.module.constant_global(index) {
            Some(ConstOp::I32Const(value)) => self.push(self.const_i32(value as u32)),
            Some(ConstOp::I64Const(value)) => self.push(self.const_i64(value as u64)),
            Some(ConstOp::F32Const(bits)) => self.push_f32(bits)?,
            Some(ConstOp::F64Const(bits)) => self.push_f64(bits)?,
            Some(ConstOp::V128Const(bits)) => self.push(self.const_v128(bits.to_le_bytes())),
            _ => {
                let ty = self.unit.module.globals[index as usize];
                let (cell, access) = self.global_cell(index)?;
                let value: BasicValueEnum<'ctx> = self.load(self.types.value(ty.value), cell, access)?;
                if let Some(load) = value.as_instruction_value().filter(|_| !ty.mutable) {
                    self.ir.invariant(load)?;
                }
                self.push(value);
            }
        }
        Ok(())
    }

    fn global_cell(&mut self, index: u32) -> Result<(PointerValue<'ctx>, AliasClass), CompileError> {
        match index.checked_sub(self.unit.module.imported_globals) {
            Some(defined) => Ok((self.at(self.vmctx, self.unit.layout.global(defined)), self.unit.global_access(index))),
            None => Ok((self.context_pointer(self.unit.layout.imported_global(index))?, AliasClass::ImportedGlobal)),
        }
    }
}
