//! Operators on all 128 bits, and tests of all lanes.

use std::num::NonZeroU32;

use inkwell::IntPredicate::{EQ, NE, SLT};
use inkwell::values::{IntValue, VectorValue};
use wasmparser::Operator;

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{I8x16, I16x8, I32x4, I64x2};

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_bitwise(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::V128Not => self.lanes_unary(I64x2, |t, value| Ok(t.builder.build_not(value, "")?))?,
            Operator::V128And => self.lanes_build(I64x2, |b, l, r, n| b.build_and(l, r, n))?,
            Operator::V128AndNot => self.lanes_build(I64x2, |b, l, r, n| b.build_and(l, b.build_not(r, n)?, n))?,
            Operator::V128Or => self.lanes_build(I64x2, |b, l, r, n| b.build_or(l, r, n))?,
            Operator::V128Xor => self.lanes_build(I64x2, |b, l, r, n| b.build_xor(l, r, n))?,
            Operator::V128Bitselect => self.bitselect()?,
            Operator::V128AnyTrue => {
                let value = self.pop();
                let bits = self.builder.build_bit_cast(value, self.types.i128, "")?.into_int_value();
                let any = self.builder.build_int_compare(NE, bits, self.types.i128.const_zero(), "")?;
                self.push_condition(any)?;
            }
            Operator::I8x16AllTrue => self.all_true(I8x16)?,
            Operator::I16x8AllTrue => self.all_true(I16x8)?,
            Operator::I32x4AllTrue => self.all_true(I32x4)?,
            Operator::I64x2AllTrue => self.all_true(I64x2)?,
            Operator::I8x16Bitmask => self.bitmask(I8x16)?,
            Operator::I16x8Bitmask => self.bitmask(I16x8)?,
            Operator::I32x4Bitmask => self.bitmask(I32x4)?,
            Operator::I64x2Bitmask => self.bitmask(I64x2)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The first operand's bits where the third has ones, the second's elsewhere.
    pub(super) fn bitselect(&mut self) -> Result<(), CompileError> {
        let (mask, otherwise, then) = (self.pop_lanes(I64x2)?, self.pop_lanes(I64x2)?, self.pop_lanes(I64x2)?);
        let then = self.builder.build_and(then, mask, "")?;
        let otherwise = self.builder.build_and(otherwise, self.builder.build_not(mask, "")?, "")?;
        let result = self.builder.build_or(then, otherwise, "")?;
        self.push_lanes(result)
    }

    fn all_true(&mut self, shape: Shape) -> Result<(), CompileError> {
        let value = self.pop_lanes(shape)?;
        let zeros = self.builder.build_int_compare(EQ, value, value.get_type().const_zero(), "")?;
        let zeros = self.one_bit_each(zeros)?;
        let none = self.builder.build_int_compare(EQ, zeros, zeros.get_type().const_zero(), "")?;
        self.push_condition(none)
    }

    fn bitmask(&mut self, shape: Shape) -> Result<(), CompileError> {
        let value = self.pop_lanes(shape)?;
        let negative = self.builder.build_int_compare(SLT, value, value.get_type().const_zero(), "")?;
        let bits = self.one_bit_each(negative)?;
        self.push_condition(bits)
    }

    /// An integer of as many bits as there are conditions.
    fn one_bit_each(&self, conditions: VectorValue<'ctx>) -> Result<IntValue<'ctx>, CompileError> {
        let bits = NonZeroU32::new(conditions.get_type().get_size()).unwrap_or(NonZeroU32::MIN);
        let ty = self.ir.context.custom_width_int_type(bits);
        let ty = ty.map_err(|error| CompileError::llvm("building IR", error))?;
        Ok(self.builder.build_bit_cast(conditions, ty, "")?.into_int_value())
    }
}
