//! Conversions (core specification, section 4.3.4).

use awsm_abi::trap::TrapCode;
use inkwell::FloatPredicate::{OGE, OGT, OLT, UNO};
use inkwell::types::{FloatType, IntType};
use inkwell::values::{FloatValue, IntValue};
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn convert(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        let t = self.types;
        match op {
            Operator::I32WrapI64 => self.convert_int(|b, value| b.build_int_truncate(value, t.i32, ""))?,
            Operator::I64ExtendI32S => self.convert_int(|b, value| b.build_int_s_extend(value, t.i64, ""))?,
            Operator::I64ExtendI32U => self.convert_int(|b, value| b.build_int_z_extend(value, t.i64, ""))?,

            Operator::I32TruncF32S | Operator::I32TruncF64S => self.truncate(t.i32, true)?,
            Operator::I32TruncF32U | Operator::I32TruncF64U => self.truncate(t.i32, false)?,
            Operator::I64TruncF32S | Operator::I64TruncF64S => self.truncate(t.i64, true)?,
            Operator::I64TruncF32U | Operator::I64TruncF64U => self.truncate(t.i64, false)?,

            Operator::I32TruncSatF32S | Operator::I32TruncSatF64S => self.saturate("llvm.fptosi.sat", t.i32)?,
            Operator::I32TruncSatF32U | Operator::I32TruncSatF64U => self.saturate("llvm.fptoui.sat", t.i32)?,
            Operator::I64TruncSatF32S | Operator::I64TruncSatF64S => self.saturate("llvm.fptosi.sat", t.i64)?,
            Operator::I64TruncSatF32U | Operator::I64TruncSatF64U => self.saturate("llvm.fptoui.sat", t.i64)?,

            Operator::F32ConvertI32S | Operator::F32ConvertI64S => self.int_to_float(t.f32, true)?,
            Operator::F32ConvertI32U | Operator::F32ConvertI64U => self.int_to_float(t.f32, false)?,
            Operator::F64ConvertI32S | Operator::F64ConvertI64S => self.int_to_float(t.f64, true)?,
            Operator::F64ConvertI32U | Operator::F64ConvertI64U => self.int_to_float(t.f64, false)?,

            Operator::F32DemoteF64 => {
                let value = self.pop_float();
                let result = self.builder.build_float_trunc(value, t.f32, "")?;
                self.push(result);
            }
            Operator::F64PromoteF32 => {
                let value = self.pop_float();
                let result = self.builder.build_float_ext(value, t.f64, "")?;
                self.push(result);
            }
            Operator::I32ReinterpretF32 => self.reinterpret(t.i32.into())?,
            Operator::I64ReinterpretF64 => self.reinterpret(t.i64.into())?,
            Operator::F32ReinterpretI32 => self.reinterpret(t.f32.into())?,
            Operator::F64ReinterpretI64 => self.reinterpret(t.f64.into())?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn convert_int(
        &mut self,
        build: impl FnOnce(&inkwell::builder::Builder<'ctx>, IntValue<'ctx>) -> Result<IntValue<'ctx>, inkwell::builder::BuilderError>,
    ) -> Result<(), CompileError> {
        let value = self.pop_int();
        let result = build(&self.builder, value)?;
        self.push(result);
        Ok(())
    }

    fn reinterpret(&mut self, ty: inkwell::types::BasicTypeEnum<'ctx>) -> Result<(), CompileError> {
        let value = self.pop();
        let result = self.builder.build_bit_cast(value, ty, "")?;
        self.push(result);
        Ok(())
    }

    fn saturate(&mut self, name: &'static str, to: IntType<'ctx>) -> Result<(), CompileError> {
        let value = self.pop_float();
        let result = self.intrinsic(name, &[to.into(), value.get_type().into()], &[value.into()])?;
        self.push(result);
        Ok(())
    }

    fn int_to_float(&mut self, to: FloatType<'ctx>, signed: bool) -> Result<(), CompileError> {
        let value = self.pop_int();
        let result = if signed {
            self.builder.build_signed_int_to_float(value, to, "")?
        } else {
            self.builder.build_unsigned_int_to_float(value, to, "")?
        };
        self.push(result);
        Ok(())
    }

    /// Truncates towards zero; traps when the value is NaN or its integer part does not fit.
    fn truncate(&mut self, to: IntType<'ctx>, signed: bool) -> Result<(), CompileError> {
        let value = self.pop_float();
        let in_range = self.in_range(value, to.get_bit_width(), signed)?;
        let (failed, passed) = (self.new_block(), self.new_block());
        let out_of_range = self.builder.build_not(in_range, "")?;
        let branch = self.builder.build_conditional_branch(out_of_range, failed, passed)?;
        self.ir.unlikely(branch)?;
        self.builder.position_at_end(failed);
        let is_nan = self.builder.build_float_compare(UNO, value, value, "")?;
        self.trap_if(is_nan, TrapCode::InvalidConversionToInteger)?;
        self.trap(TrapCode::IntegerOverflow)?;
        self.builder.position_at_end(passed);
        let result = if signed {
            self.builder.build_float_to_signed_int(value, to, "")?
        } else {
            self.builder.build_float_to_unsigned_int(value, to, "")?
        };
        self.push(result);
        Ok(())
    }

    /// Whether the integer part of `value` fits; false for NaN. All bounds are exact in the type of `value`.
    fn in_range(&self, value: FloatValue<'ctx>, bits: u32, signed: bool) -> Result<IntValue<'ctx>, CompileError> {
        let ty = value.get_type();
        let wide = ty == self.types.f64;
        let limit = if signed { 2f64.powi(bits as i32 - 1) } else { 2f64.powi(bits as i32) };
        // The least number that fits, or, where there is one, the greatest below it that does not.
        let (predicate, least) = match (signed, wide && bits == 32) {
            (false, _) => (OGT, -1.0),
            (true, true) => (OGT, -limit - 1.0),
            (true, false) => (OGE, -limit),
        };
        let above = self.builder.build_float_compare(predicate, value, ty.const_float(least), "")?;
        let below = self.builder.build_float_compare(OLT, value, ty.const_float(limit), "")?;
        Ok(self.builder.build_and(above, below, "")?)
    }
}
