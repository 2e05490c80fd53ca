//! Integer operators (core specification, sections 2.4.1 and 4.3.2).

use awsm_abi::trap::TrapCode;
use inkwell::IntPredicate::{self, EQ, NE, SGE, SGT, SLE, SLT, UGE, UGT, ULE, ULT};
use inkwell::builder::{Builder, BuilderError};
use inkwell::types::IntType;
use inkwell::values::{BasicMetadataValueEnum, IntValue};
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;

type Binary<'ctx> = fn(&Builder<'ctx>, IntValue<'ctx>, IntValue<'ctx>, &str) -> Result<IntValue<'ctx>, BuilderError>;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn numeric(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match op {
            Operator::I32Eqz | Operator::I64Eqz => {
                let value = self.pop_int();
                let condition = self.builder.build_int_compare(EQ, value, value.get_type().const_zero(), "")?;
                self.push_condition(condition)?;
            }
            Operator::I32Eq | Operator::I64Eq => self.compare(EQ)?,
            Operator::I32Ne | Operator::I64Ne => self.compare(NE)?,
            Operator::I32LtS | Operator::I64LtS => self.compare(SLT)?,
            Operator::I32LtU | Operator::I64LtU => self.compare(ULT)?,
            Operator::I32GtS | Operator::I64GtS => self.compare(SGT)?,
            Operator::I32GtU | Operator::I64GtU => self.compare(UGT)?,
            Operator::I32LeS | Operator::I64LeS => self.compare(SLE)?,
            Operator::I32LeU | Operator::I64LeU => self.compare(ULE)?,
            Operator::I32GeS | Operator::I64GeS => self.compare(SGE)?,
            Operator::I32GeU | Operator::I64GeU => self.compare(UGE)?,
            Operator::I32Clz | Operator::I64Clz => self.count("llvm.ctlz")?,
            Operator::I32Ctz | Operator::I64Ctz => self.count("llvm.cttz")?,
            Operator::I32Popcnt | Operator::I64Popcnt => {
                let value = self.pop_int();
                let result = self.intrinsic("llvm.ctpop", &[value.get_type().into()], &[value.into()])?;
                self.push(result);
            }
            Operator::I32Add | Operator::I64Add => self.binary(|b, l, r, n| b.build_int_add(l, r, n))?,
            Operator::I32Sub | Operator::I64Sub => self.binary(|b, l, r, n| b.build_int_sub(l, r, n))?,
            Operator::I32Mul | Operator::I64Mul => self.binary(|b, l, r, n| b.build_int_mul(l, r, n))?,
            Operator::I32And | Operator::I64And => self.binary(|b, l, r, n| b.build_and(l, r, n))?,
            Operator::I32Or | Operator::I64Or => self.binary(|b, l, r, n| b.build_or(l, r, n))?,
            Operator::I32Xor | Operator::I64Xor => self.binary(|b, l, r, n| b.build_xor(l, r, n))?,
            Operator::I32Shl | Operator::I64Shl => self.shift(|b, l, r, n| b.build_left_shift(l, r, n))?,
            Operator::I32ShrS | Operator::I64ShrS => self.shift(|b, l, r, n| b.build_right_shift(l, r, true, n))?,
            Operator::I32ShrU | Operator::I64ShrU => self.shift(|b, l, r, n| b.build_right_shift(l, r, false, n))?,
            Operator::I32Rotl | Operator::I64Rotl => self.rotate("llvm.fshl")?,
            Operator::I32Rotr | Operator::I64Rotr => self.rotate("llvm.fshr")?,
            Operator::I32DivS | Operator::I64DivS => self.divide_signed()?,
            Operator::I32DivU | Operator::I64DivU => self.divide_unsigned(|b, l, r, n| b.build_int_unsigned_div(l, r, n))?,
            Operator::I32RemS | Operator::I64RemS => self.remainder_signed()?,
            Operator::I32RemU | Operator::I64RemU => self.divide_unsigned(|b, l, r, n| b.build_int_unsigned_rem(l, r, n))?,
            Operator::I32Extend8S | Operator::I64Extend8S => self.extend(self.types.i8)?,
            Operator::I32Extend16S | Operator::I64Extend16S => self.extend(self.types.i16)?,
            Operator::I64Extend32S => self.extend(self.types.i32)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn compare(&mut self, predicate: IntPredicate) -> Result<(), CompileError> {
        let (right, left) = (self.pop_int(), self.pop_int());
        let condition = self.builder.build_int_compare(predicate, left, right, "")?;
        self.push_condition(condition)
    }

    fn binary(&mut self, build: Binary<'ctx>) -> Result<(), CompileError> {
        let (right, left) = (self.pop_int(), self.pop_int());
        let result = build(&self.builder, left, right, "")?;
        self.push(result);
        Ok(())
    }

    /// Shift counts are taken modulo the width; LLVM's shifts by more are poison.
    fn shift(&mut self, build: Binary<'ctx>) -> Result<(), CompileError> {
        let (count, value) = (self.pop_int(), self.pop_int());
        let ty = value.get_type();
        let mask = ty.const_int(u64::from(ty.get_bit_width() - 1), false);
        let count = self.builder.build_and(count, mask, "")?;
        let result = build(&self.builder, value, count, "")?;
        self.push(result);
        Ok(())
    }

    /// A rotation is a funnel shift of a value with itself; these take their count modulo the width.
    fn rotate(&mut self, name: &'static str) -> Result<(), CompileError> {
        let (count, value) = (self.pop_int(), self.pop_int());
        let result = self.intrinsic(name, &[value.get_type().into()], &[value.into(), value.into(), count.into()])?;
        self.push(result);
        Ok(())
    }

    /// `clz` or `ctz`, which are defined for zero.
    fn count(&mut self, name: &'static str) -> Result<(), CompileError> {
        let value = self.pop_int();
        let zero_is_poison: BasicMetadataValueEnum<'ctx> = self.ir.context.bool_type().const_zero().into();
        let result = self.intrinsic(name, &[value.get_type().into()], &[value.into(), zero_is_poison])?;
        self.push(result);
        Ok(())
    }

    fn extend(&mut self, from: IntType<'ctx>) -> Result<(), CompileError> {
        let value = self.pop_int();
        let narrow = self.builder.build_int_truncate(value, from, "")?;
        let result = self.builder.build_int_s_extend(narrow, value.get_type(), "")?;
        self.push(result);
        Ok(())
    }

    fn trap_if_zero(&self, divisor: IntValue<'ctx>) -> Result<(), CompileError> {
        let zero = self.builder.build_int_compare(EQ, divisor, divisor.get_type().const_zero(), "")?;
        self.trap_if(zero, TrapCode::IntegerDivideByZero)
    }

    fn divide_unsigned(&mut self, build: Binary<'ctx>) -> Result<(), CompileError> {
        let (right, left) = (self.pop_int(), self.pop_int());
        self.trap_if_zero(right)?;
        let result = build(&self.builder, left, right, "")?;
        self.push(result);
        Ok(())
    }

    fn divide_signed(&mut self) -> Result<(), CompileError> {
        let (right, left) = (self.pop_int(), self.pop_int());
        self.trap_if_zero(right)?;
        let ty = left.get_type();
        let least = ty.const_int(1 << (ty.get_bit_width() - 1), false);
        let is_least = self.builder.build_int_compare(EQ, left, least, "")?;
        let is_minus_one = self.builder.build_int_compare(EQ, right, ty.const_all_ones(), "")?;
        let overflows = self.builder.build_and(is_least, is_minus_one, "")?;
        self.trap_if(overflows, TrapCode::IntegerOverflow)?;
        let result = self.builder.build_int_signed_div(left, right, "")?;
        self.push(result);
        Ok(())
    }

    /// The remainder by -1 is 0, as is that by 1, which does not overflow in the division.
    fn remainder_signed(&mut self) -> Result<(), CompileError> {
        let (right, left) = (self.pop_int(), self.pop_int());
        self.trap_if_zero(right)?;
        let ty = left.get_type();
        let is_minus_one = self.builder.build_int_compare(EQ, right, ty.const_all_ones(), "")?;
        let one = ty.const_int(1, false);
        let right = self.builder.build_select(is_minus_one, one, right, "")?.into_int_value();
        let result = self.builder.build_int_signed_rem(left, right, "")?;
        self.push(result);
        Ok(())
    }
}
