//! Vector loads and stores (core specification, section 2.4.6). Each is one access of just the bytes that the operator names, so that it traps
//! exactly when one of these is out of bounds; `llvm::keep` knows what becomes of vectors.

use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::BasicValueEnum;
use wasmparser::{MemArg, Operator};

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{I8x16, I16x8, I32x4, I64x2};

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd_memory(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::V128Load { memarg } => {
                let value = self.load_memory(memarg, I8x16.ty(self.types).into())?;
                self.push(value);
            }
            Operator::V128Load8x8S { memarg } => self.load_extended(memarg, I8x16, true)?,
            Operator::V128Load8x8U { memarg } => self.load_extended(memarg, I8x16, false)?,
            Operator::V128Load16x4S { memarg } => self.load_extended(memarg, I16x8, true)?,
            Operator::V128Load16x4U { memarg } => self.load_extended(memarg, I16x8, false)?,
            Operator::V128Load32x2S { memarg } => self.load_extended(memarg, I32x4, true)?,
            Operator::V128Load32x2U { memarg } => self.load_extended(memarg, I32x4, false)?,
            Operator::V128Load8Splat { memarg } => self.load_splat(memarg, I8x16)?,
            Operator::V128Load16Splat { memarg } => self.load_splat(memarg, I16x8)?,
            Operator::V128Load32Splat { memarg } => self.load_splat(memarg, I32x4)?,
            Operator::V128Load64Splat { memarg } => self.load_splat(memarg, I64x2)?,
            Operator::V128Load32Zero { memarg } => self.load_zero(memarg, I32x4)?,
            Operator::V128Load64Zero { memarg } => self.load_zero(memarg, I64x2)?,
            Operator::V128Store { memarg } => {
                let value = self.pop();
                self.store_plain(memarg, value)?;
            }
            Operator::V128Load8Lane { memarg, lane } => self.load_lane(memarg, I8x16, *lane)?,
            Operator::V128Load16Lane { memarg, lane } => self.load_lane(memarg, I16x8, *lane)?,
            Operator::V128Load32Lane { memarg, lane } => self.load_lane(memarg, I32x4, *lane)?,
            Operator::V128Load64Lane { memarg, lane } => self.load_lane(memarg, I64x2, *lane)?,
            Operator::V128Store8Lane { memarg, lane } => self.store_lane(memarg, I8x16, *lane)?,
            Operator::V128Store16Lane { memarg, lane } => self.store_lane(memarg, I16x8, *lane)?,
            Operator::V128Store32Lane { memarg, lane } => self.store_lane(memarg, I32x4, *lane)?,
            Operator::V128Store64Lane { memarg, lane } => self.store_lane(memarg, I64x2, *lane)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Loads eight bytes as half the lanes of `shape` and widens these.
    fn load_extended(&mut self, memarg: &MemArg, shape: Shape, signed: bool) -> Result<(), CompileError> {
        let bytes = self.load_memory(memarg, self.types.i64.into())?;
        let half = shape.of(self.types, shape.lanes() / 2);
        let lanes = self.builder.build_bit_cast(bytes, half, "")?.into_vector_value();
        let result = self.extend_lanes(lanes, shape.wide(), signed)?;
        self.push_lanes(result)
    }

    fn load_one(&mut self, memarg: &MemArg, shape: Shape) -> Result<BasicValueEnum<'ctx>, CompileError> {
        let lane: IntType<'ctx> = shape.lane(self.types).into_int_type();
        self.load_memory(memarg, BasicTypeEnum::IntType(lane))
    }

    fn load_splat(&mut self, memarg: &MemArg, shape: Shape) -> Result<(), CompileError> {
        let value = self.load_one(memarg, shape)?;
        self.splat(shape, value)
    }

    fn load_zero(&mut self, memarg: &MemArg, shape: Shape) -> Result<(), CompileError> {
        let value = self.load_one(memarg, shape)?;
        let zeros = shape.ty(self.types).const_zero();
        let result = self.builder.build_insert_element(zeros, value, self.const_i32(0), "")?;
        self.push_lanes(result)
    }

    fn load_lane(&mut self, memarg: &MemArg, shape: Shape, lane: u8) -> Result<(), CompileError> {
        let others = self.pop_lanes(shape)?;
        let value = self.load_one(memarg, shape)?;
        let result = self.builder.build_insert_element(others, value, self.const_i32(u32::from(lane)), "")?;
        self.push_lanes(result)
    }

    fn store_lane(&mut self, memarg: &MemArg, shape: Shape, lane: u8) -> Result<(), CompileError> {
        let value = self.pop_lanes(shape)?;
        let value = self.builder.build_extract_element(value, self.const_i32(u32::from(lane)), "")?;
        self.store_plain(memarg, value)
    }
}
