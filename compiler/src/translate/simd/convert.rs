//! Conversions between lanes of integers and of floats.

use awsm_abi::cpu::Arch;
use inkwell::FloatPredicate::{OGE, OGT, OLT, ORD};
use inkwell::values::VectorValue;
use wasmparser::Operator;

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{F32x4, F64x2, I32x4};

/// 2 to the power of 52: the sum of this and a smaller whole number holds that number in its low bits.
const MAGIC: f64 = 4_503_599_627_370_496.0;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_convert(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::I32x4TruncSatF32x4S => self.lanes_unary(F32x4, Self::truncate_f32_signed)?,
            Operator::I32x4TruncSatF32x4U => self.lanes_unary(F32x4, Self::truncate_f32_unsigned)?,
            Operator::I32x4TruncSatF64x2SZero => self.lanes_unary(F64x2, Self::truncate_f64_signed)?,
            Operator::I32x4TruncSatF64x2UZero => self.lanes_unary(F64x2, Self::truncate_f64_unsigned)?,
            Operator::F32x4ConvertI32x4S => self.lanes_unary(I32x4, |t, value| t.to_floats(value, F32x4, true))?,
            Operator::F32x4ConvertI32x4U => self.lanes_unary(I32x4, |t, value| t.to_floats(value, F32x4, false))?,
            Operator::F64x2ConvertLowI32x4S => {
                self.lanes_unary(I32x4, |t, value| t.to_floats(t.half(value, false)?, F64x2, true))?;
            }
            Operator::F64x2ConvertLowI32x4U => {
                self.lanes_unary(I32x4, |t, value| t.to_floats(t.half(value, false)?, F64x2, false))?;
            }
            Operator::F32x4DemoteF64x2Zero => self.lanes_unary(F64x2, |t, value| {
                // What was just promoted would come back unquieted.
                let value = t.vector_intrinsic("llvm.arithmetic.fence", &[value.get_type().into()], &[value.into()])?;
                t.with_zeros_above(t.builder.build_float_trunc(value, F32x4.of(t.types, 2), "")?)
            })?,
            Operator::F64x2PromoteLowF32x4 => self
                .lanes_unary(F32x4, |t, value| Ok(t.builder.build_float_ext(t.half(value, false)?, F64x2.ty(t.types), "")?))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn to_floats(&self, value: VectorValue<'ctx>, to: Shape, signed: bool) -> Result<VectorValue<'ctx>, CompileError> {
        let ty = to.ty(self.types);
        if signed {
            Ok(self.builder.build_signed_int_to_float(value, ty, "")?)
        } else {
            Ok(self.builder.build_unsigned_int_to_float(value, ty, "")?)
        }
    }

    fn saturate_floats(&self, name: &'static str, value: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        let to = I32x4.of(self.types, value.get_type().get_size());
        self.vector_intrinsic(name, &[to.into(), value.get_type().into()], &[value.into()])
    }

    /// x86-64's instruction gives the least integer for all that does not fit: that is wrong above, where all its bits are inverted, and for NaN,
    /// which becomes zero first.
    pub(super) fn truncate_f32_signed(&self, value: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        if self.ir.arch() != Arch::X86_64 {
            return self.saturate_floats("llvm.fptosi.sat", value);
        }
        let b = &self.builder;
        let is_number = b.build_float_compare(ORD, value, value, "")?;
        let number = self.choose(is_number, value, value.get_type().const_zero())?;
        let truncated = self.vector_intrinsic("llvm.x86.sse2.cvttps2dq", &[], &[number.into()])?;
        let above = b.build_float_compare(OGE, value, self.const_floats(F32x4, 2_147_483_648.0), "")?;
        Ok(b.build_xor(truncated, b.build_int_s_extend(above, I32x4.ty(self.types), "")?, "")?)
    }

    pub(super) fn truncate_f32_unsigned(&self, value: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        if self.ir.arch() != Arch::X86_64 {
            return self.saturate_floats("llvm.fptoui.sat", value);
        }
        // What is above 2 to the power of 31 is added to it: the first conversion then gives just that.
        let b = &self.builder;
        let (half, ty) = (self.const_floats(F32x4, 2_147_483_648.0), I32x4.ty(self.types));
        let positive = self.first_if(OGT, value, value.get_type().const_zero())?;
        let below = self.vector_intrinsic("llvm.x86.sse2.cvttps2dq", &[], &[positive.into()])?;
        let rest = b.build_float_sub(positive, half, "")?;
        let above = self.vector_intrinsic("llvm.x86.sse2.cvttps2dq", &[], &[rest.into()])?;
        let too_large = b.build_int_s_extend(b.build_float_compare(OGE, rest, half, "")?, ty, "")?;
        let above = b.build_xor(above, too_large, "")?;
        let above = self.vector_intrinsic("llvm.smax", &[ty.into()], &[above.into(), ty.const_zero().into()])?;
        Ok(b.build_int_add(below, above, "")?)
    }

    pub(super) fn truncate_f64_signed(&self, value: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        if self.ir.arch() != Arch::X86_64 {
            return self.with_zeros_above(self.saturate_floats("llvm.fptosi.sat", value)?);
        }
        // The limit for NaN is zero, which then is the lesser of the two. Below the least integer, that is what the instruction gives.
        let is_number = self.builder.build_float_compare(ORD, value, value, "")?;
        let limit = self.choose(is_number, self.const_floats(F64x2, 2_147_483_647.0), value.get_type().const_zero())?;
        let limited = self.first_if(OLT, value, limit)?;
        self.vector_intrinsic("llvm.x86.sse2.cvttpd2dq", &[], &[limited.into()])
    }

    pub(super) fn truncate_f64_unsigned(&self, value: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        if !self.ir.has("sse4.1") {
            return self.with_zeros_above(self.saturate_floats("llvm.fptoui.sat", value)?);
        }
        let positive = self.first_if(OGT, value, value.get_type().const_zero())?;
        let limited = self.first_if(OLT, positive, self.const_floats(F64x2, 4_294_967_295.0))?;
        let whole = self.vector_intrinsic("llvm.trunc", &[limited.get_type().into()], &[limited.into()])?;
        let sum = self.builder.build_float_add(whole, self.const_floats(F64x2, MAGIC), "")?;
        let halves = self.as_lanes(sum, I32x4.ty(self.types))?;
        self.shuffle(halves, halves.get_type().const_zero(), [0, 2, 4, 5])
    }
}
