//! Integer operators between lanes of different sizes: extension, narrowing, extending products and sums, the dot product.

use inkwell::types::VectorType;
use inkwell::values::VectorValue;
use wasmparser::Operator;

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{I8x16, I16x8, I32x4};
use awsm_abi::cpu::Arch;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_widen(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::I16x8ExtendLowI8x16S => self.extend_half(I8x16, false, true)?,
            Operator::I16x8ExtendLowI8x16U => self.extend_half(I8x16, false, false)?,
            Operator::I16x8ExtendHighI8x16S => self.extend_half(I8x16, true, true)?,
            Operator::I16x8ExtendHighI8x16U => self.extend_half(I8x16, true, false)?,
            Operator::I32x4ExtendLowI16x8S => self.extend_half(I16x8, false, true)?,
            Operator::I32x4ExtendLowI16x8U => self.extend_half(I16x8, false, false)?,
            Operator::I32x4ExtendHighI16x8S => self.extend_half(I16x8, true, true)?,
            Operator::I32x4ExtendHighI16x8U => self.extend_half(I16x8, true, false)?,
            Operator::I64x2ExtendLowI32x4S => self.extend_half(I32x4, false, true)?,
            Operator::I64x2ExtendLowI32x4U => self.extend_half(I32x4, false, false)?,
            Operator::I64x2ExtendHighI32x4S => self.extend_half(I32x4, true, true)?,
            Operator::I64x2ExtendHighI32x4U => self.extend_half(I32x4, true, false)?,
            Operator::I16x8ExtMulLowI8x16S => self.multiply_half(I8x16, false, true)?,
            Operator::I16x8ExtMulLowI8x16U => self.multiply_half(I8x16, false, false)?,
            Operator::I16x8ExtMulHighI8x16S => self.multiply_half(I8x16, true, true)?,
            Operator::I16x8ExtMulHighI8x16U => self.multiply_half(I8x16, true, false)?,
            Operator::I32x4ExtMulLowI16x8S => self.multiply_half(I16x8, false, true)?,
            Operator::I32x4ExtMulLowI16x8U => self.multiply_half(I16x8, false, false)?,
            Operator::I32x4ExtMulHighI16x8S => self.multiply_half(I16x8, true, true)?,
            Operator::I32x4ExtMulHighI16x8U => self.multiply_half(I16x8, true, false)?,
            Operator::I64x2ExtMulLowI32x4S => self.multiply_half(I32x4, false, true)?,
            Operator::I64x2ExtMulLowI32x4U => self.multiply_half(I32x4, false, false)?,
            Operator::I64x2ExtMulHighI32x4S => self.multiply_half(I32x4, true, true)?,
            Operator::I64x2ExtMulHighI32x4U => self.multiply_half(I32x4, true, false)?,
            Operator::I16x8ExtAddPairwiseI8x16S => self.lanes_unary(I8x16, |t, value| t.add_pairs(I8x16, value, true))?,
            Operator::I16x8ExtAddPairwiseI8x16U => self.lanes_unary(I8x16, |t, value| t.add_pairs(I8x16, value, false))?,
            Operator::I32x4ExtAddPairwiseI16x8S => self.lanes_unary(I16x8, |t, value| t.add_pairs(I16x8, value, true))?,
            Operator::I32x4ExtAddPairwiseI16x8U => self.lanes_unary(I16x8, |t, value| t.add_pairs(I16x8, value, false))?,
            Operator::I32x4DotI16x8S => self.lanes_binary(I16x8, Self::dot)?,
            Operator::I8x16NarrowI16x8S => self.narrow(I16x8, I8x16, true)?,
            Operator::I8x16NarrowI16x8U => self.narrow(I16x8, I8x16, false)?,
            Operator::I16x8NarrowI32x4S => self.narrow(I32x4, I16x8, true)?,
            Operator::I16x8NarrowI32x4U => self.narrow(I32x4, I16x8, false)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Widens each lane to one of `to`.
    pub(super) fn extend_lanes(
        &self,
        value: VectorValue<'ctx>,
        to: Shape,
        signed: bool,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        let ty = to.of(self.types, value.get_type().get_size());
        if signed {
            Ok(self.builder.build_int_s_extend(value, ty, "")?)
        } else {
            Ok(self.builder.build_int_z_extend(value, ty, "")?)
        }
    }

    fn extend_half(&mut self, from: Shape, high: bool, signed: bool) -> Result<(), CompileError> {
        self.lanes_unary(from, |t, value| t.extend_lanes(t.half(value, high)?, from.wide(), signed))
    }

    fn multiply_half(&mut self, from: Shape, high: bool, signed: bool) -> Result<(), CompileError> {
        self.lanes_binary(from, |t, left, right| {
            let left = t.extend_lanes(t.half(left, high)?, from.wide(), signed)?;
            let right = t.extend_lanes(t.half(right, high)?, from.wide(), signed)?;
            Ok(t.builder.build_int_mul(left, right, "")?)
        })
    }

    /// Sums of neighbouring lanes, which do not overflow lanes of twice the size.
    pub(super) fn add_pairs(
        &self,
        from: Shape,
        value: VectorValue<'ctx>,
        signed: bool,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        if from == I16x8 && signed {
            return self.dot(value, self.const_lanes(I16x8, 1));
        }
        let b = &self.builder;
        let pairs = self.as_lanes(value, from.wide().ty(self.types))?;
        let bits = self.const_lanes(from.wide(), u64::from(from.lane_bits()));
        let even = b.build_right_shift(b.build_left_shift(pairs, bits, "")?, bits, signed, "")?;
        let odd = b.build_right_shift(pairs, bits, signed, "")?;
        Ok(b.build_int_add(even, odd, "")?)
    }

    /// Sums of neighbouring products.
    pub(super) fn dot(&self, left: VectorValue<'ctx>, right: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        if self.ir.arch() == Arch::X86_64 {
            return self.vector_intrinsic("llvm.x86.sse2.pmadd.wd", &[], &[left.into(), right.into()]);
        }
        let (left, right) = (self.extend_lanes(left, I32x4, true)?, self.extend_lanes(right, I32x4, true)?);
        let products = self.builder.build_int_mul(left, right, "")?;
        self.add_neighbours(products)
    }

    /// Sums of lanes 0 and 1, 2 and 3, and so on.
    pub(super) fn add_neighbours(&self, value: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        let lanes = value.get_type().get_size();
        let (even, odd) = (self.pick(value, (0..lanes).step_by(2))?, self.pick(value, (1..lanes).step_by(2))?);
        Ok(self.builder.build_int_add(even, odd, "")?)
    }

    /// The signed lanes of two vectors, as the nearest that are lanes of half the size, signed or not.
    fn narrow(&mut self, from: Shape, to: Shape, signed: bool) -> Result<(), CompileError> {
        let instruction = match (from, signed) {
            _ if self.ir.arch() != Arch::X86_64 => None,
            (I16x8, true) => Some("llvm.x86.sse2.packsswb.128"),
            (I16x8, false) => Some("llvm.x86.sse2.packuswb.128"),
            (_, true) => Some("llvm.x86.sse2.packssdw.128"),
            (_, false) => self.ir.has("sse4.1").then_some("llvm.x86.sse41.packusdw"),
        };
        self.lanes_binary(from, |t, left, right| {
            if let Some(name) = instruction {
                return t.vector_intrinsic(name, &[], &[left.into(), right.into()]);
            }
            let both = t.shuffle(left, right, 0..2 * from.lanes())?;
            t.saturate_lanes(both, to, signed)
        })
    }

    /// Signed lanes as the nearest that are lanes of `to`.
    pub(super) fn saturate_lanes(
        &self,
        value: VectorValue<'ctx>,
        to: Shape,
        signed: bool,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        let ty = value.get_type();
        let bits = to.lane_bits();
        let (least, most) = if signed { (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
        let lane = to.wide().lane(self.types).into_int_type();
        let all = |limit: i64| VectorType::const_vector(&vec![lane.const_int(limit as u64, true); ty.get_size() as usize]);
        let value = self.vector_intrinsic("llvm.smax", &[ty.into()], &[value.into(), all(least).into()])?;
        let value = self.vector_intrinsic("llvm.smin", &[ty.into()], &[value.into(), all(most).into()])?;
        Ok(self.builder.build_int_truncate(value, to.of(self.types, ty.get_size()), "")?)
    }
}
