//! Constants, splats, single lanes, shuffles and swizzles.

use awsm_abi::cpu::Arch;
use inkwell::IntPredicate::ULT;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};
use wasmparser::Operator;

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{F32x4, F64x2, I8x16, I16x8, I32x4, I64x2};

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_lanes(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match *op {
            Operator::V128Const { value } => {
                let constant = self.const_v128(*value.bytes());
                self.push(constant);
            }
            Operator::I8x16Shuffle { lanes } => {
                self.lanes_binary(I8x16, |t, left, right| t.shuffle(left, right, lanes.into_iter().map(u32::from)))?
            }
            Operator::I8x16Swizzle => self.lanes_binary(I8x16, Self::swizzle)?,
            Operator::I8x16ExtractLaneS { lane } => self.extract_narrow(I8x16, lane, true)?,
            Operator::I8x16ExtractLaneU { lane } => self.extract_narrow(I8x16, lane, false)?,
            Operator::I16x8ExtractLaneS { lane } => self.extract_narrow(I16x8, lane, true)?,
            Operator::I16x8ExtractLaneU { lane } => self.extract_narrow(I16x8, lane, false)?,
            Operator::I32x4ExtractLane { lane } => self.extract(I32x4, lane)?,
            Operator::I64x2ExtractLane { lane } => self.extract(I64x2, lane)?,
            Operator::F32x4ExtractLane { lane } => self.extract(F32x4, lane)?,
            Operator::F64x2ExtractLane { lane } => self.extract(F64x2, lane)?,
            Operator::I8x16ReplaceLane { lane } => self.replace(I8x16, lane)?,
            Operator::I16x8ReplaceLane { lane } => self.replace(I16x8, lane)?,
            Operator::I32x4ReplaceLane { lane } => self.replace(I32x4, lane)?,
            Operator::I64x2ReplaceLane { lane } => self.replace(I64x2, lane)?,
            Operator::F32x4ReplaceLane { lane } => self.replace(F32x4, lane)?,
            Operator::F64x2ReplaceLane { lane } => self.replace(F64x2, lane)?,
            Operator::I8x16Splat => self.pop_splat(I8x16)?,
            Operator::I16x8Splat => self.pop_splat(I16x8)?,
            Operator::I32x4Splat => self.pop_splat(I32x4)?,
            Operator::I64x2Splat => self.pop_splat(I64x2)?,
            Operator::F32x4Splat => self.pop_splat(F32x4)?,
            Operator::F64x2Splat => self.pop_splat(F64x2)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A constant, by its bytes.
    pub(in crate::translate) fn const_v128(&self, bytes: [u8; 16]) -> VectorValue<'ctx> {
        VectorType::const_vector(&bytes.map(|byte| self.types.i8.const_int(u64::from(byte), false)))
    }

    fn extract(&mut self, shape: Shape, lane: u8) -> Result<(), CompileError> {
        let value = self.pop_lanes(shape)?;
        let value = self.builder.build_extract_element(value, self.const_i32(u32::from(lane)), "")?;
        self.push(value);
        Ok(())
    }

    fn extract_narrow(&mut self, shape: Shape, lane: u8, signed: bool) -> Result<(), CompileError> {
        self.extract(shape, lane)?;
        let value = self.pop_int();
        let value = if signed {
            self.builder.build_int_s_extend(value, self.types.i32, "")?
        } else {
            self.builder.build_int_z_extend(value, self.types.i32, "")?
        };
        self.push(value);
        Ok(())
    }

    /// Pops a value that becomes a lane: an `i32` gives its low bits to a narrow one.
    fn pop_lane(&mut self, shape: Shape) -> Result<BasicValueEnum<'ctx>, CompileError> {
        let value = self.pop();
        match shape {
            I8x16 => Ok(self.builder.build_int_truncate(value.into_int_value(), self.types.i8, "")?.into()),
            I16x8 => Ok(self.builder.build_int_truncate(value.into_int_value(), self.types.i16, "")?.into()),
            _ => Ok(value),
        }
    }

    fn replace(&mut self, shape: Shape, lane: u8) -> Result<(), CompileError> {
        let value = self.pop_lane(shape)?;
        let others = self.pop_lanes(shape)?;
        let result = self.builder.build_insert_element(others, value, self.const_i32(u32::from(lane)), "")?;
        self.push_lanes(result)
    }

    fn pop_splat(&mut self, shape: Shape) -> Result<(), CompileError> {
        let value = self.pop_lane(shape)?;
        self.splat(shape, value)
    }

    /// Pushes `value` in all lanes.
    pub(super) fn splat(&mut self, shape: Shape, value: BasicValueEnum<'ctx>) -> Result<(), CompileError> {
        let result = self.splat_value(shape, value)?;
        self.push_lanes(result)
    }

    pub(super) fn splat_value(&self, shape: Shape, value: BasicValueEnum<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        let poison = shape.ty(self.types).get_poison();
        let first = self.builder.build_insert_element(poison, value, self.const_i32(0), "")?;
        self.pick(first, std::iter::repeat_n(0, shape.lanes() as usize))
    }

    /// The bytes of `bytes` that `indices` name; zero where there is none.
    pub(super) fn swizzle(
        &self,
        bytes: VectorValue<'ctx>,
        indices: VectorValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        let ty = bytes.get_type();
        if self.ir.has("ssse3") {
            // Gives zero where the index's highest bit is set; saturation sets it in all above 15.
            let high = self.const_lanes(I8x16, 0x70);
            let indices = self.vector_intrinsic("llvm.uadd.sat", &[ty.into()], &[indices.into(), high.into()])?;
            return self.vector_intrinsic("llvm.x86.ssse3.pshuf.b.128", &[], &[bytes.into(), indices.into()]);
        }
        if self.ir.arch() == Arch::Aarch64 {
            return self.vector_intrinsic("llvm.aarch64.neon.tbl1", &[ty.into()], &[bytes.into(), indices.into()]);
        }
        let within = self.builder.build_int_compare(ULT, indices, self.const_lanes(I8x16, 16), "")?;
        let low = self.builder.build_and(indices, self.const_lanes(I8x16, 15), "")?;
        let mut result = ty.get_poison();
        for lane in 0..16 {
            let lane: IntValue<'ctx> = self.const_i32(lane);
            let index = self.builder.build_extract_element(low, lane, "")?.into_int_value();
            let byte = self.builder.build_extract_element(bytes, index, "")?;
            result = self.builder.build_insert_element(result, byte, lane, "")?;
        }
        self.choose(within, result, ty.const_zero())
    }
}
