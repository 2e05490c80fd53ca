//! Reference operators (core specification, section 2.4.3).

use awsm_abi::trap::TrapCode;
use awsm_abi::vmctx::{self, funcref};
use inkwell::IntPredicate::EQ;
use inkwell::values::IntValue;
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::module::{FuncIdx, null_type};

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn reference(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match *op {
            Operator::RefNull { hty } => {
                let ty = null_type(hty, u64::from(self.offset()))?;
                self.push(self.types.value(ty).const_zero());
            }
            Operator::RefIsNull => {
                let reference = self.pop_int();
                let null = self.is_null(reference)?;
                self.push_condition(null)?;
            }
            Operator::RefAsNonNull => {
                let null = self.is_null(self.top_int())?;
                self.trap_if(null, TrapCode::NullReference)?;
            }
            Operator::RefFunc { function_index } => {
                let reference = self.function_reference(FuncIdx(function_index))?;
                self.push(reference);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether a reference is null. The low 64 bits decide for all kinds: a function's code, a host value's index + 1, an exception's address.
    pub(super) fn is_null(&self, reference: IntValue<'ctx>) -> Result<IntValue<'ctx>, CompileError> {
        let low = self.builder.build_int_truncate_or_bit_cast(reference, self.types.i64, "")?;
        Ok(self.builder.build_int_compare(EQ, low, self.types.i64.const_zero(), "")?)
    }

    /// Makes a reference to a function: its code, canonical type and instance.
    fn function_reference(&mut self, function: FuncIdx) -> Result<IntValue<'ctx>, CompileError> {
        let (layout, ty) = (self.unit.layout, self.unit.module.functions[function.0 as usize]);
        let (code, type_id, instance) = match self.unit.function(function) {
            Some(value) => {
                let code = self.builder.build_ptr_to_int(value.as_global_value().as_pointer_value(), self.types.i64, "")?;
                (code, self.context_i32(layout.type_id(ty.0))?, self.context_i32(vmctx::INSTANCE_INDEX)?)
            }
            None => {
                let entry = layout.imported_function(function.0);
                let code = self.context_pointer(entry + vmctx::function::CODE)?;
                let code = self.builder.build_ptr_to_int(code, self.types.i64, "")?;
                let callee = self.context_pointer(entry + vmctx::function::VMCTX)?;
                let instance = self.at(callee, vmctx::INSTANCE_INDEX);
                let instance = self.invariant_load(self.types.i32.into(), instance)?.into_int_value();
                (code, self.context_i32(entry + vmctx::function::TYPE_ID)?, instance)
            }
        };
        let mut reference = self.builder.build_int_z_extend(code, self.types.i128, "")?;
        for (part, offset) in [(type_id, funcref::TYPE_ID), (instance, funcref::INSTANCE)] {
            let part = self.builder.build_int_z_extend(part, self.types.i128, "")?;
            let shift = self.types.i128.const_int(u64::from(offset) * 8, false);
            let part = self.builder.build_left_shift(part, shift, "")?;
            reference = self.builder.build_or(reference, part, "")?;
        }
        Ok(reference)
    }
}
