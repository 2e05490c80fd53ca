//! Integer arithmetic by lane.

use inkwell::IntPredicate::EQ;
use inkwell::builder::{Builder, BuilderError};
use inkwell::values::VectorValue;
use wasmparser::Operator;

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{I8x16, I16x8, I32x4, I64x2};

type Built<'ctx> = Result<VectorValue<'ctx>, BuilderError>;

fn add<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_int_add(left, right, name)
}

fn sub<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_int_sub(left, right, name)
}

fn mul<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_int_mul(left, right, name)
}

fn shl<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_left_shift(left, right, name)
}

fn shr_s<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_right_shift(left, right, true, name)
}

fn shr_u<'ctx>(b: &Builder<'ctx>, left: VectorValue<'ctx>, right: VectorValue<'ctx>, name: &str) -> Built<'ctx> {
    b.build_right_shift(left, right, false, name)
}

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_integer(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::I8x16Abs => self.abs_lanes(I8x16)?,
            Operator::I16x8Abs => self.abs_lanes(I16x8)?,
            Operator::I32x4Abs => self.abs_lanes(I32x4)?,
            Operator::I64x2Abs => self.abs_lanes(I64x2)?,
            Operator::I8x16Neg => self.neg_lanes(I8x16)?,
            Operator::I16x8Neg => self.neg_lanes(I16x8)?,
            Operator::I32x4Neg => self.neg_lanes(I32x4)?,
            Operator::I64x2Neg => self.neg_lanes(I64x2)?,
            Operator::I8x16Popcnt => self.lanes_intrinsic1(I8x16, "llvm.ctpop")?,
            Operator::I8x16Shl => self.shift_lanes(I8x16, shl)?,
            Operator::I8x16ShrS => self.shift_lanes(I8x16, shr_s)?,
            Operator::I8x16ShrU => self.shift_lanes(I8x16, shr_u)?,
            Operator::I16x8Shl => self.shift_lanes(I16x8, shl)?,
            Operator::I16x8ShrS => self.shift_lanes(I16x8, shr_s)?,
            Operator::I16x8ShrU => self.shift_lanes(I16x8, shr_u)?,
            Operator::I32x4Shl => self.shift_lanes(I32x4, shl)?,
            Operator::I32x4ShrS => self.shift_lanes(I32x4, shr_s)?,
            Operator::I32x4ShrU => self.shift_lanes(I32x4, shr_u)?,
            Operator::I64x2Shl => self.shift_lanes(I64x2, shl)?,
            Operator::I64x2ShrS => self.shift_lanes(I64x2, shr_s)?,
            Operator::I64x2ShrU => self.shift_lanes(I64x2, shr_u)?,
            Operator::I8x16Add => self.lanes_build(I8x16, add)?,
            Operator::I16x8Add => self.lanes_build(I16x8, add)?,
            Operator::I32x4Add => self.lanes_build(I32x4, add)?,
            Operator::I64x2Add => self.lanes_build(I64x2, add)?,
            Operator::I8x16Sub => self.lanes_build(I8x16, sub)?,
            Operator::I16x8Sub => self.lanes_build(I16x8, sub)?,
            Operator::I32x4Sub => self.lanes_build(I32x4, sub)?,
            Operator::I64x2Sub => self.lanes_build(I64x2, sub)?,
            Operator::I16x8Mul => self.lanes_build(I16x8, mul)?,
            Operator::I32x4Mul => self.lanes_build(I32x4, mul)?,
            Operator::I64x2Mul => self.lanes_build(I64x2, mul)?,
            Operator::I8x16AddSatS => self.lanes_intrinsic2(I8x16, "llvm.sadd.sat")?,
            Operator::I8x16AddSatU => self.lanes_intrinsic2(I8x16, "llvm.uadd.sat")?,
            Operator::I8x16SubSatS => self.lanes_intrinsic2(I8x16, "llvm.ssub.sat")?,
            Operator::I8x16SubSatU => self.lanes_intrinsic2(I8x16, "llvm.usub.sat")?,
            Operator::I16x8AddSatS => self.lanes_intrinsic2(I16x8, "llvm.sadd.sat")?,
            Operator::I16x8AddSatU => self.lanes_intrinsic2(I16x8, "llvm.uadd.sat")?,
            Operator::I16x8SubSatS => self.lanes_intrinsic2(I16x8, "llvm.ssub.sat")?,
            Operator::I16x8SubSatU => self.lanes_intrinsic2(I16x8, "llvm.usub.sat")?,
            Operator::I8x16MinS => self.lanes_intrinsic2(I8x16, "llvm.smin")?,
            Operator::I8x16MinU => self.lanes_intrinsic2(I8x16, "llvm.umin")?,
            Operator::I8x16MaxS => self.lanes_intrinsic2(I8x16, "llvm.smax")?,
            Operator::I8x16MaxU => self.lanes_intrinsic2(I8x16, "llvm.umax")?,
            Operator::I16x8MinS => self.lanes_intrinsic2(I16x8, "llvm.smin")?,
            Operator::I16x8MinU => self.lanes_intrinsic2(I16x8, "llvm.umin")?,
            Operator::I16x8MaxS => self.lanes_intrinsic2(I16x8, "llvm.smax")?,
            Operator::I16x8MaxU => self.lanes_intrinsic2(I16x8, "llvm.umax")?,
            Operator::I32x4MinS => self.lanes_intrinsic2(I32x4, "llvm.smin")?,
            Operator::I32x4MinU => self.lanes_intrinsic2(I32x4, "llvm.umin")?,
            Operator::I32x4MaxS => self.lanes_intrinsic2(I32x4, "llvm.smax")?,
            Operator::I32x4MaxU => self.lanes_intrinsic2(I32x4, "llvm.umax")?,
            Operator::I8x16AvgrU => self.average(I8x16)?,
            Operator::I16x8AvgrU => self.average(I16x8)?,
            Operator::I16x8Q15MulrSatS => self.lanes_binary(I16x8, Self::q15mulr_sat)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The least number is its own absolute value.
    fn abs_lanes(&mut self, shape: Shape) -> Result<(), CompileError> {
        self.lanes_unary(shape, |t, value| {
            let least_is_poison = t.ir.context.bool_type().const_zero();
            t.vector_intrinsic("llvm.abs", &[value.get_type().into()], &[value.into(), least_is_poison.into()])
        })
    }

    fn neg_lanes(&mut self, shape: Shape) -> Result<(), CompileError> {
        self.lanes_unary(shape, |t, value| Ok(t.builder.build_int_neg(value, "")?))
    }

    /// Shift counts are taken modulo the lane's width.
    fn shift_lanes(&mut self, shape: Shape, build: super::Build<'ctx>) -> Result<(), CompileError> {
        let count = self.pop_int();
        let count = self.builder.build_and(count, self.const_i32(shape.lane_bits() - 1), "")?;
        let lane = shape.lane(self.types).into_int_type();
        let count = self.builder.build_int_cast_sign_flag(count, lane, false, "")?;
        let count = self.splat_value(shape, count.into())?;
        self.lanes_unary(shape, |t, value| Ok(build(&t.builder, value, count, "")?))
    }

    /// The mean of two unsigned lanes, rounded up.
    fn average(&mut self, shape: Shape) -> Result<(), CompileError> {
        self.lanes_binary(shape, |t, left, right| {
            let wide = shape.wide().of(t.types, shape.lanes());
            let b = &t.builder;
            let sum = b.build_int_add(b.build_int_z_extend(left, wide, "")?, b.build_int_z_extend(right, wide, "")?, "")?;
            let one = t.const_wide(shape, 1);
            let mean = b.build_right_shift(b.build_int_add(sum, one, "")?, one, false, "")?;
            Ok(b.build_int_truncate(mean, left.get_type(), "")?)
        })
    }

    /// The integer `value` in each of as many lanes as `shape` has, of twice the size.
    fn const_wide(&self, shape: Shape, value: u64) -> VectorValue<'ctx> {
        let lane = shape.wide().lane(self.types).into_int_type().const_int(value, false);
        inkwell::types::VectorType::const_vector(&vec![lane; shape.lanes() as usize])
    }

    /// Products of numbers with 15 bits behind the point, rounded. Only -1 * -1 saturates.
    pub(super) fn q15mulr_sat(
        &self,
        left: VectorValue<'ctx>,
        right: VectorValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        let b = &self.builder;
        let ty = left.get_type();
        if self.ir.has("ssse3") {
            let product = self.vector_intrinsic("llvm.x86.ssse3.pmul.hr.sw.128", &[], &[left.into(), right.into()])?;
            let overflowed = b.build_int_compare(EQ, product, self.const_lanes(I16x8, 0x8000), "")?;
            return Ok(b.build_xor(product, b.build_int_s_extend(overflowed, ty, "")?, "")?);
        }
        let wide = I32x4.of(self.types, 8);
        let product = b.build_int_mul(b.build_int_s_extend(left, wide, "")?, b.build_int_s_extend(right, wide, "")?, "")?;
        let rounded = b.build_int_add(product, self.const_wide(I16x8, 0x4000), "")?;
        let scaled = b.build_right_shift(rounded, self.const_wide(I16x8, 15), true, "")?;
        let most = self.const_wide(I16x8, 0x7fff);
        let result = self.vector_intrinsic("llvm.smin", &[wide.into()], &[scaled.into(), most.into()])?;
        Ok(b.build_int_truncate(result, ty, "")?)
    }
}
