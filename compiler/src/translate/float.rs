//! Floating-point operators (core specification, sections 2.4.1 and 4.3.3). No fast-math flag is ever set and nothing is contracted.
//!
//! Results that are NaN must be quiet; which quiet NaN is left open. Operations that only touch the sign bit keep all other bits.

use inkwell::FloatPredicate::{self, OEQ, OGE, OGT, OLE, OLT, UNE, UNO};
use inkwell::builder::{Builder, BuilderError};
use inkwell::types::IntType;
use inkwell::values::{FloatValue, IntValue};
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;

type Binary<'ctx> = fn(&Builder<'ctx>, FloatValue<'ctx>, FloatValue<'ctx>, &str) -> Result<FloatValue<'ctx>, BuilderError>;
type Bits<'ctx> = fn(&Builder<'ctx>, IntValue<'ctx>, IntValue<'ctx>, &str) -> Result<IntValue<'ctx>, BuilderError>;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn float(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::F32Eq | Operator::F64Eq => self.compare_floats(OEQ)?,
            Operator::F32Ne | Operator::F64Ne => self.compare_floats(UNE)?,
            Operator::F32Lt | Operator::F64Lt => self.compare_floats(OLT)?,
            Operator::F32Gt | Operator::F64Gt => self.compare_floats(OGT)?,
            Operator::F32Le | Operator::F64Le => self.compare_floats(OLE)?,
            Operator::F32Ge | Operator::F64Ge => self.compare_floats(OGE)?,
            Operator::F32Abs | Operator::F64Abs => self.unary_float("llvm.fabs")?,
            Operator::F32Neg | Operator::F64Neg => {
                let value = self.pop_float();
                let result = self.builder.build_float_neg(value, "")?;
                self.push(result);
            }
            Operator::F32Ceil | Operator::F64Ceil => self.unary_float("llvm.ceil")?,
            Operator::F32Floor | Operator::F64Floor => self.unary_float("llvm.floor")?,
            Operator::F32Trunc | Operator::F64Trunc => self.unary_float("llvm.trunc")?,
            Operator::F32Nearest | Operator::F64Nearest => self.unary_float("llvm.roundeven")?,
            Operator::F32Sqrt | Operator::F64Sqrt => self.unary_float("llvm.sqrt")?,
            Operator::F32Add | Operator::F64Add => self.binary_float(|b, l, r, n| b.build_float_add(l, r, n))?,
            Operator::F32Sub | Operator::F64Sub => self.binary_float(|b, l, r, n| b.build_float_sub(l, r, n))?,
            Operator::F32Mul | Operator::F64Mul => self.binary_float(|b, l, r, n| b.build_float_mul(l, r, n))?,
            Operator::F32Div | Operator::F64Div => self.binary_float(|b, l, r, n| b.build_float_div(l, r, n))?,
            // Of two zeros the minimum is negative if either is, the maximum if both are.
            Operator::F32Min => self.extremum(OLT, self.types.i32, |b, l, r, n| b.build_or(l, r, n))?,
            Operator::F64Min => self.extremum(OLT, self.types.i64, |b, l, r, n| b.build_or(l, r, n))?,
            Operator::F32Max => self.extremum(OGT, self.types.i32, |b, l, r, n| b.build_and(l, r, n))?,
            Operator::F64Max => self.extremum(OGT, self.types.i64, |b, l, r, n| b.build_and(l, r, n))?,
            Operator::F32Copysign | Operator::F64Copysign => {
                let (sign, value) = (self.pop_float(), self.pop_float());
                let result = self.intrinsic("llvm.copysign", &[value.get_type().into()], &[value.into(), sign.into()])?;
                self.push(result);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn compare_floats(&mut self, predicate: FloatPredicate) -> Result<(), CompileError> {
        let (right, left) = (self.pop_float(), self.pop_float());
        let condition = self.builder.build_float_compare(predicate, left, right, "")?;
        self.push_condition(condition)
    }

    fn unary_float(&mut self, name: &'static str) -> Result<(), CompileError> {
        let value = self.pop_float();
        let result = self.intrinsic(name, &[value.get_type().into()], &[value.into()])?;
        self.push(result);
        Ok(())
    }

    fn binary_float(&mut self, build: Binary<'ctx>) -> Result<(), CompileError> {
        let (right, left) = (self.pop_float(), self.pop_float());
        let result = build(&self.builder, left, right, "")?;
        self.push(result);
        Ok(())
    }

    /// `min` or `max`. If either operand is NaN, so is the sum, and quiet; equal operands differ only if they are zeros of either sign.
    /// All selects, so that loops vectorise.
    fn extremum(&mut self, first_wins: FloatPredicate, bits: IntType<'ctx>, combine: Bits<'ctx>) -> Result<(), CompileError> {
        let b = &self.builder;
        let (right, left) = (self.stack[self.stack.len() - 1], self.stack[self.stack.len() - 2]);
        let (right, left) = (right.into_float_value(), left.into_float_value());
        let as_bits = |value| b.build_bit_cast::<IntType<'ctx>, FloatValue<'ctx>>(value, bits, "");
        let either = combine(b, as_bits(left)?.into_int_value(), as_bits(right)?.into_int_value(), "")?;
        let either = b.build_bit_cast(either, left.get_type(), "")?;
        let wins = b.build_float_compare(first_wins, left, right, "")?;
        let winner = b.build_select(wins, left, right, "")?;
        let equal = b.build_float_compare(OEQ, left, right, "")?;
        let number = b.build_select(equal, either, winner, "")?;
        let unordered = b.build_float_compare(UNO, left, right, "")?;
        let nan = b.build_float_add(left, right, "")?;
        let result = b.build_select(unordered, nan.into(), number, "")?;
        self.pop_many(2);
        self.push(result);
        Ok(())
    }
}
