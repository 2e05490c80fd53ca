//! Floating-point arithmetic by lane, with the scalar operators' promises: no fast-math flag, nothing contracted, every NaN that arithmetic
//! gives is quiet.

use inkwell::FloatPredicate::{self, OGT, OLT, UNO};
use inkwell::builder::{Builder, BuilderError};
use inkwell::values::VectorValue;
use wasmparser::Operator;

use super::{Build, FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{F32x4, F64x2};

type Built<'ctx> = Result<VectorValue<'ctx>, BuilderError>;

fn add<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_float_add(left, right, name)
}

fn sub<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_float_sub(left, right, name)
}

fn mul<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_float_mul(left, right, name)
}

fn div<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_float_div(left, right, name)
}

fn or<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_or(left, right, name)
}

fn and<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_and(left, right, name)
}

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_float(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::F32x4Ceil => self.lanes_intrinsic1(F32x4, "llvm.ceil")?,
            Operator::F32x4Floor => self.lanes_intrinsic1(F32x4, "llvm.floor")?,
            Operator::F32x4Trunc => self.lanes_intrinsic1(F32x4, "llvm.trunc")?,
            Operator::F32x4Nearest => self.lanes_intrinsic1(F32x4, "llvm.roundeven")?,
            Operator::F32x4Abs => self.lanes_intrinsic1(F32x4, "llvm.fabs")?,
            Operator::F32x4Neg => self.lanes_unary(F32x4, |t, value| Ok(t.builder.build_float_neg(value, "")?))?,
            Operator::F32x4Sqrt => self.lanes_intrinsic1(F32x4, "llvm.sqrt")?,
            Operator::F32x4Add => self.lanes_build(F32x4, add)?,
            Operator::F32x4Sub => self.lanes_build(F32x4, sub)?,
            Operator::F32x4Mul => self.lanes_build(F32x4, mul)?,
            Operator::F32x4Div => self.lanes_build(F32x4, div)?,
            Operator::F32x4Min => self.float_extremum(F32x4, OLT, or)?,
            Operator::F32x4Max => self.float_extremum(F32x4, OGT, and)?,
            Operator::F32x4PMin => self.lanes_binary(F32x4, |t, left, right| t.first_if(OLT, right, left))?,
            Operator::F32x4PMax => self.lanes_binary(F32x4, |t, left, right| t.first_if(OGT, right, left))?,
            Operator::F64x2Ceil => self.lanes_intrinsic1(F64x2, "llvm.ceil")?,
            Operator::F64x2Floor => self.lanes_intrinsic1(F64x2, "llvm.floor")?,
            Operator::F64x2Trunc => self.lanes_intrinsic1(F64x2, "llvm.trunc")?,
            Operator::F64x2Nearest => self.lanes_intrinsic1(F64x2, "llvm.roundeven")?,
            Operator::F64x2Abs => self.lanes_intrinsic1(F64x2, "llvm.fabs")?,
            Operator::F64x2Neg => self.lanes_unary(F64x2, |t, value| Ok(t.builder.build_float_neg(value, "")?))?,
            Operator::F64x2Sqrt => self.lanes_intrinsic1(F64x2, "llvm.sqrt")?,
            Operator::F64x2Add => self.lanes_build(F64x2, add)?,
            Operator::F64x2Sub => self.lanes_build(F64x2, sub)?,
            Operator::F64x2Mul => self.lanes_build(F64x2, mul)?,
            Operator::F64x2Div => self.lanes_build(F64x2, div)?,
            Operator::F64x2Min => self.float_extremum(F64x2, OLT, or)?,
            Operator::F64x2Max => self.float_extremum(F64x2, OGT, and)?,
            Operator::F64x2PMin => self.lanes_binary(F64x2, |t, left, right| t.first_if(OLT, right, left))?,
            Operator::F64x2PMax => self.lanes_binary(F64x2, |t, left, right| t.first_if(OGT, right, left))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `first` in lanes where the comparison with `second` holds, `second` elsewhere: what x86-64's `minps` and `maxps` do.
    pub(super) fn first_if(
        &self,
        holds: FloatPredicate,
        first: VectorValue<'ctx>,
        second: VectorValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        let holds = self.builder.build_float_compare(holds, first, second, "")?;
        self.choose(holds, first, second)
    }

    /// `min` or `max`. Taken both ways round, numbers that differ give the same twice, and zeros of different signs one of each, which
    /// `combine` makes the right one. If either operand is NaN, so is the sum, and quiet.
    fn float_extremum(&mut self, shape: Shape, wins: FloatPredicate, combine: Build<'ctx>) -> Result<(), CompileError> {
        self.lanes_binary(shape, |t, left, right| {
            let bits = shape.bits().ty(t.types);
            let one = t.as_lanes(t.first_if(wins, left, right)?, bits)?;
            let other = t.as_lanes(t.first_if(wins, right, left)?, bits)?;
            let number = t.as_lanes(combine(&t.builder, one, other, "")?, shape.ty(t.types))?;
            let unordered = t.builder.build_float_compare(UNO, left, right, "")?;
            let nan = t.builder.build_float_add(left, right, "")?;
            t.choose(unordered, nan, number)
        })
    }
}
