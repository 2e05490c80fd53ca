//! Comparisons: all ones where they hold, zeros elsewhere.

use inkwell::FloatPredicate::{self, OEQ, OGE, OGT, OLE, OLT, UNE};
use inkwell::IntPredicate::{self, EQ, NE, SGE, SGT, SLE, SLT, UGE, UGT, ULE, ULT};
use wasmparser::Operator;

use super::{FunctionTranslator, Shape};
use crate::error::CompileError;
use Shape::{F32x4, F64x2, I8x16, I16x8, I32x4, I64x2};

impl FunctionTranslator<'_, '_> {
    pub(super) fn simd_compare(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::I8x16Eq => self.compare_lanes(I8x16, EQ)?,
            Operator::I8x16Ne => self.compare_lanes(I8x16, NE)?,
            Operator::I8x16LtS => self.compare_lanes(I8x16, SLT)?,
            Operator::I8x16LtU => self.compare_lanes(I8x16, ULT)?,
            Operator::I8x16GtS => self.compare_lanes(I8x16, SGT)?,
            Operator::I8x16GtU => self.compare_lanes(I8x16, UGT)?,
            Operator::I8x16LeS => self.compare_lanes(I8x16, SLE)?,
            Operator::I8x16LeU => self.compare_lanes(I8x16, ULE)?,
            Operator::I8x16GeS => self.compare_lanes(I8x16, SGE)?,
            Operator::I8x16GeU => self.compare_lanes(I8x16, UGE)?,
            Operator::I16x8Eq => self.compare_lanes(I16x8, EQ)?,
            Operator::I16x8Ne => self.compare_lanes(I16x8, NE)?,
            Operator::I16x8LtS => self.compare_lanes(I16x8, SLT)?,
            Operator::I16x8LtU => self.compare_lanes(I16x8, ULT)?,
            Operator::I16x8GtS => self.compare_lanes(I16x8, SGT)?,
            Operator::I16x8GtU => self.compare_lanes(I16x8, UGT)?,
            Operator::I16x8LeS => self.compare_lanes(I16x8, SLE)?,
            Operator::I16x8LeU => self.compare_lanes(I16x8, ULE)?,
            Operator::I16x8GeS => self.compare_lanes(I16x8, SGE)?,
            Operator::I16x8GeU => self.compare_lanes(I16x8, UGE)?,
            Operator::I32x4Eq => self.compare_lanes(I32x4, EQ)?,
            Operator::I32x4Ne => self.compare_lanes(I32x4, NE)?,
            Operator::I32x4LtS => self.compare_lanes(I32x4, SLT)?,
            Operator::I32x4LtU => self.compare_lanes(I32x4, ULT)?,
            Operator::I32x4GtS => self.compare_lanes(I32x4, SGT)?,
            Operator::I32x4GtU => self.compare_lanes(I32x4, UGT)?,
            Operator::I32x4LeS => self.compare_lanes(I32x4, SLE)?,
            Operator::I32x4LeU => self.compare_lanes(I32x4, ULE)?,
            Operator::I32x4GeS => self.compare_lanes(I32x4, SGE)?,
            Operator::I32x4GeU => self.compare_lanes(I32x4, UGE)?,
            Operator::I64x2Eq => self.compare_lanes(I64x2, EQ)?,
            Operator::I64x2Ne => self.compare_lanes(I64x2, NE)?,
            Operator::I64x2LtS => self.compare_lanes(I64x2, SLT)?,
            Operator::I64x2GtS => self.compare_lanes(I64x2, SGT)?,
            Operator::I64x2LeS => self.compare_lanes(I64x2, SLE)?,
            Operator::I64x2GeS => self.compare_lanes(I64x2, SGE)?,
            Operator::F32x4Eq => self.compare_float_lanes(F32x4, OEQ)?,
            Operator::F32x4Ne => self.compare_float_lanes(F32x4, UNE)?,
            Operator::F32x4Lt => self.compare_float_lanes(F32x4, OLT)?,
            Operator::F32x4Gt => self.compare_float_lanes(F32x4, OGT)?,
            Operator::F32x4Le => self.compare_float_lanes(F32x4, OLE)?,
            Operator::F32x4Ge => self.compare_float_lanes(F32x4, OGE)?,
            Operator::F64x2Eq => self.compare_float_lanes(F64x2, OEQ)?,
            Operator::F64x2Ne => self.compare_float_lanes(F64x2, UNE)?,
            Operator::F64x2Lt => self.compare_float_lanes(F64x2, OLT)?,
            Operator::F64x2Gt => self.compare_float_lanes(F64x2, OGT)?,
            Operator::F64x2Le => self.compare_float_lanes(F64x2, OLE)?,
            Operator::F64x2Ge => self.compare_float_lanes(F64x2, OGE)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn compare_lanes(&mut self, shape: Shape, predicate: IntPredicate) -> Result<(), CompileError> {
        self.lanes_binary(shape, |t, left, right| {
            let holds = t.builder.build_int_compare(predicate, left, right, "")?;
            Ok(t.builder.build_int_s_extend(holds, shape.ty(t.types), "")?)
        })
    }

    fn compare_float_lanes(&mut self, shape: Shape, predicate: FloatPredicate) -> Result<(), CompileError> {
        self.lanes_binary(shape, |t, left, right| {
            let holds = t.builder.build_float_compare(predicate, left, right, "")?;
            Ok(t.builder.build_int_s_extend(holds, shape.bits().ty(t.types), "")?)
        })
    }
}
