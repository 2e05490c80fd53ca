//! The 128-bit vector operators (core specification, sections 2.4.3 and 4.3.6), split as the specification splits them.
//!
//! On the operand stack, in locals and globals and across calls a `v128` is sixteen bytes, [`Shape::I8x16`]. An operator takes its operands as
//! lanes of its own shape and pushes its result as bytes again; these casts cost nothing. Where LLVM's generic operations do not become the
//! processor's own instruction, it is named, for processors that have it.

mod bitwise;
mod compare;
mod convert;
mod float;
mod integer;
mod lanes;
mod memory;
mod relaxed;
mod widen;

use inkwell::builder::{Builder, BuilderError};
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, InstructionOpcode, IntValue, VectorValue};
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::Types;

/// How sixteen bytes are divided into lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    I8x16,
    I16x8,
    I32x4,
    I64x2,
    F32x4,
    F64x2,
}

impl Shape {
    fn lanes(self) -> u32 {
        match self {
            Shape::I8x16 => 16,
            Shape::I16x8 => 8,
            Shape::I32x4 | Shape::F32x4 => 4,
            Shape::I64x2 | Shape::F64x2 => 2,
        }
    }

    fn lane_bits(self) -> u32 {
        128 / self.lanes()
    }

    fn lane<'ctx>(self, types: Types<'ctx>) -> BasicTypeEnum<'ctx> {
        match self {
            Shape::I8x16 => types.i8.into(),
            Shape::I16x8 => types.i16.into(),
            Shape::I32x4 => types.i32.into(),
            Shape::I64x2 => types.i64.into(),
            Shape::F32x4 => types.f32.into(),
            Shape::F64x2 => types.f64.into(),
        }
    }

    /// `lanes` lanes like those of this shape.
    fn of<'ctx>(self, types: Types<'ctx>, lanes: u32) -> VectorType<'ctx> {
        match self.lane(types) {
            BasicTypeEnum::FloatType(ty) => ty.vec_type(lanes),
            other => other.into_int_type().vec_type(lanes),
        }
    }

    fn ty<'ctx>(self, types: Types<'ctx>) -> VectorType<'ctx> {
        self.of(types, self.lanes())
    }

    /// Integer lanes of the same size.
    fn bits(self) -> Shape {
        match self {
            Shape::F32x4 => Shape::I32x4,
            Shape::F64x2 => Shape::I64x2,
            other => other,
        }
    }

    /// Integer lanes of twice the size.
    fn wide(self) -> Shape {
        match self.bits() {
            Shape::I8x16 => Shape::I16x8,
            Shape::I16x8 => Shape::I32x4,
            _ => Shape::I64x2,
        }
    }
}

/// One of the builder's methods for two operands.
type Build<'ctx> = fn(&Builder<'ctx>, VectorValue<'ctx>, VectorValue<'ctx>, &str) -> Result<VectorValue<'ctx>, BuilderError>;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn simd(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        Ok(self.simd_memory(op)?
            || self.simd_lanes(op)?
            || self.simd_float(op)?
            || self.simd_integer(op)?
            || self.simd_bitwise(op)?
            || self.simd_compare(op)?
            || self.simd_widen(op)?
            || self.simd_convert(op)?
            || self.simd_relaxed(op)?)
    }

    fn as_lanes(&self, value: VectorValue<'ctx>, ty: VectorType<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        if value.get_type() == ty {
            return Ok(value);
        }
        // What was just cast to bytes is not cast back.
        if let Some(cast) = value.as_instruction()
            && cast.get_opcode() == InstructionOpcode::BitCast
            && let Some(BasicValueEnum::VectorValue(source)) = cast.get_operand(0).and_then(|operand| operand.value())
            && source.get_type() == ty
        {
            return Ok(source);
        }
        if let Some(bytes) = self.constant_bytes(value) {
            return self.const_lanes_of(bytes, ty);
        }
        Ok(self.builder.build_bit_cast(value, ty, "")?.into_vector_value())
    }

    /// A constant's bytes.
    fn constant_bytes(&self, value: VectorValue<'ctx>) -> Option<[u8; 16]> {
        if !value.is_const() || value.get_type() != Shape::I8x16.ty(self.types) {
            return None;
        }
        let mut bytes = [0; 16];
        for (lane, byte) in bytes.iter_mut().enumerate() {
            let element = value.const_extract_element(self.const_i32(lane as u32)).into_int_value();
            *byte = element.get_zero_extended_constant()? as u8;
        }
        Some(bytes)
    }

    /// The lanes that constant bytes hold. A cast of the vector would not be simplified until later passes.
    fn const_lanes_of(&self, bytes: [u8; 16], ty: VectorType<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        let mut lanes = Vec::new();
        for lane in bytes.chunks_exact(16 / ty.get_size() as usize) {
            let bits = lane.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            let element = ty.get_element_type();
            lanes.push(match element {
                BasicTypeEnum::IntType(element) => element.const_int(bits, false).into(),
                _ if lane.len() == 4 => self.builder.build_bit_cast(self.const_i32(bits as u32), element, "")?,
                _ => self.builder.build_bit_cast(self.const_i64(bits), element, "")?,
            });
        }
        Ok(VectorType::const_vector(&lanes))
    }

    fn pop_lanes(&mut self, shape: Shape) -> Result<VectorValue<'ctx>, CompileError> {
        let value = self.pop().into_vector_value();
        self.as_lanes(value, shape.ty(self.types))
    }

    fn push_lanes(&mut self, value: VectorValue<'ctx>) -> Result<(), CompileError> {
        let bytes = self.as_lanes(value, Shape::I8x16.ty(self.types))?;
        self.push(bytes);
        Ok(())
    }

    fn lanes_unary(
        &mut self,
        shape: Shape,
        build: impl FnOnce(&Self, VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError>,
    ) -> Result<(), CompileError> {
        let value = self.pop_lanes(shape)?;
        let result = build(self, value)?;
        self.push_lanes(result)
    }

    fn lanes_binary(
        &mut self,
        shape: Shape,
        build: impl FnOnce(&Self, VectorValue<'ctx>, VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError>,
    ) -> Result<(), CompileError> {
        let (right, left) = (self.pop_lanes(shape)?, self.pop_lanes(shape)?);
        let result = build(self, left, right)?;
        self.push_lanes(result)
    }

    fn lanes_build(&mut self, shape: Shape, build: Build<'ctx>) -> Result<(), CompileError> {
        self.lanes_binary(shape, |t, left, right| Ok(build(&t.builder, left, right, "")?))
    }

    /// An intrinsic that works on each lane of one operand.
    fn lanes_intrinsic1(&mut self, shape: Shape, name: &'static str) -> Result<(), CompileError> {
        self.lanes_unary(shape, |t, value| t.vector_intrinsic(name, &[value.get_type().into()], &[value.into()]))
    }

    /// An intrinsic that works on each lane of two operands.
    fn lanes_intrinsic2(&mut self, shape: Shape, name: &'static str) -> Result<(), CompileError> {
        self.lanes_binary(shape, |t, left, right| {
            t.vector_intrinsic(name, &[left.get_type().into()], &[left.into(), right.into()])
        })
    }

    fn vector_intrinsic(
        &self,
        name: &'static str,
        types: &[BasicTypeEnum<'ctx>],
        arguments: &[BasicMetadataValueEnum<'ctx>],
    ) -> Result<VectorValue<'ctx>, CompileError> {
        Ok(self.intrinsic(name, types, arguments)?.into_vector_value())
    }

    /// The integer `value` in each lane of a shape.
    fn const_lanes(&self, shape: Shape, value: u64) -> VectorValue<'ctx> {
        let lane = shape.bits().lane(self.types).into_int_type().const_int(value, false);
        VectorType::const_vector(&vec![lane; shape.lanes() as usize])
    }

    /// The number `value` in each lane of a shape of floats.
    fn const_floats(&self, shape: Shape, value: f64) -> VectorValue<'ctx> {
        let lane = shape.lane(self.types).into_float_type().const_float(value);
        VectorType::const_vector(&vec![lane; shape.lanes() as usize])
    }

    /// Lanes chosen from two vectors by constants.
    fn shuffle(
        &self,
        left: VectorValue<'ctx>,
        right: VectorValue<'ctx>,
        lanes: impl IntoIterator<Item = u32>,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        let lanes: Vec<IntValue<'ctx>> = lanes.into_iter().map(|lane| self.const_i32(lane)).collect();
        Ok(self.builder.build_shuffle_vector(left, right, VectorType::const_vector(&lanes), "")?)
    }

    /// Lanes chosen from one vector by constants.
    fn pick(&self, value: VectorValue<'ctx>, lanes: impl IntoIterator<Item = u32>) -> Result<VectorValue<'ctx>, CompileError> {
        self.shuffle(value, value.get_type().get_poison(), lanes)
    }

    /// The lower or upper half of a vector's lanes.
    fn half(&self, value: VectorValue<'ctx>, high: bool) -> Result<VectorValue<'ctx>, CompileError> {
        let half = value.get_type().get_size() / 2;
        self.pick(value, if high { half..2 * half } else { 0..half })
    }

    /// `value` below, zeros above.
    fn with_zeros_above(&self, value: VectorValue<'ctx>) -> Result<VectorValue<'ctx>, CompileError> {
        self.shuffle(value, value.get_type().const_zero(), 0..2 * value.get_type().get_size())
    }

    /// A select by lane.
    fn choose(
        &self,
        condition: VectorValue<'ctx>,
        then: VectorValue<'ctx>,
        otherwise: VectorValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, CompileError> {
        Ok(self.builder.build_select(condition, then, otherwise, "")?.into_vector_value())
    }
}
