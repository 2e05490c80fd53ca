//! Relaxed operators. Where the specification leaves a choice, this is ours, documented in CAVEATS.md: the same on every processor, except that
//! `relaxed_madd` and `relaxed_nmadd` round once where the artifact's processor can, and twice where it cannot.

use awsm_abi::cpu::Arch;
use inkwell::FloatPredicate::{OGT, OLT};
use inkwell::values::VectorValue;
use wasmparser::Operator;

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{F32x4, F64x2, I8x16, I16x8, I32x4};

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_relaxed(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::I8x16RelaxedSwizzle => self.lanes_binary(I8x16, Self::swizzle)?,
            Operator::I32x4RelaxedTruncF32x4S => self.lanes_unary(F32x4, Self::truncate_f32_signed)?,
            Operator::I32x4RelaxedTruncF32x4U => self.lanes_unary(F32x4, Self::truncate_f32_unsigned)?,
            Operator::I32x4RelaxedTruncF64x2SZero => self.lanes_unary(F64x2, Self::truncate_f64_signed)?,
            Operator::I32x4RelaxedTruncF64x2UZero => self.lanes_unary(F64x2, Self::truncate_f64_unsigned)?,
            Operator::F32x4RelaxedMadd => self.multiply_add(F32x4, false)?,
            Operator::F32x4RelaxedNmadd => self.multiply_add(F32x4, true)?,
            Operator::F64x2RelaxedMadd => self.multiply_add(F64x2, false)?,
            Operator::F64x2RelaxedNmadd => self.multiply_add(F64x2, true)?,
            Operator::I8x16RelaxedLaneselect
            | Operator::I16x8RelaxedLaneselect
            | Operator::I32x4RelaxedLaneselect
            | Operator::I64x2RelaxedLaneselect => self.bitselect()?,
            Operator::F32x4RelaxedMin => self.lanes_binary(F32x4, |t, left, right| t.first_if(OLT, left, right))?,
            Operator::F32x4RelaxedMax => self.lanes_binary(F32x4, |t, left, right| t.first_if(OGT, left, right))?,
            Operator::F64x2RelaxedMin => self.lanes_binary(F64x2, |t, left, right| t.first_if(OLT, left, right))?,
            Operator::F64x2RelaxedMax => self.lanes_binary(F64x2, |t, left, right| t.first_if(OGT, left, right))?,
            Operator::I16x8RelaxedQ15mulrS => self.lanes_binary(I16x8, Self::q15mulr_sat)?,
            Operator::I16x8RelaxedDotI8x16I7x16S => self.lanes_binary(I8x16, Self::dot_bytes)?,
            Operator::I32x4RelaxedDotI8x16I7x16AddS => {
                let addend = self.pop_lanes(I32x4)?;
                self.lanes_binary(I8x16, |t, left, right| {
                    let sums = t.add_pairs(I16x8, t.dot_bytes(left, right)?, true)?;
                    Ok(t.builder.build_int_add(sums, addend, "")?)
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn multiply_add(&mut self, shape: Shape, negated: bool) -> Result<(), CompileError> {
        let (addend, right, left) = (self.pop_lanes(shape)?, self.pop_lanes(shape)?, self.pop_lanes(shape)?);
        let left = if negated { self.builder.build_float_neg(left, "")? } else { left };
        let result = if self.ir.has("fma") || self.ir.arch() == Arch::Aarch64 {
            self.vector_intrinsic("llvm.fma", &[left.get_type().into()], &[left.into(), right.into(), addend.into()])?
        } else {
            self.builder.build_float_add(self.builder.build_float_mul(left, right, "")?, addend, "")?
        };
        self.push_lanes(result)
    }

    /// Sums of neighbouring products of signed with unsigned bytes, saturating.
    fn dot_bytes(&self, signed: VectorValue<'ctx>, unsigned: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        if self.ir.has("ssse3") {
            return self.vector_intrinsic("llvm.x86.ssse3.pmadd.ub.sw.128", &[], &[unsigned.into(), signed.into()]);
        }
        let (left, right) = (self.extend_lanes(signed, I32x4, true)?, self.extend_lanes(unsigned, I32x4, false)?);
        let products = self.builder.build_int_mul(left, right, "")?;
        self.saturate_lanes(self.add_neighbours(products)?, I16x8, true)
    }
}
