//! Constant expressions (core specification, section 3.4.14), evaluated for an instance. The loader checked their types and indices.

use awsm_abi::descriptor::{ConstOp, ElementItems};

use crate::store::instance::Instance;
use crate::value::{SandboxId, Slot, Value};

/// The value of an expression; globals that it uses have been initialised.
pub(crate) fn evaluate(instance: &Instance, sandbox: SandboxId, expression: &[ConstOp]) -> Slot {
    let mut stack: Vec<Slot> = Vec::with_capacity(2);
    for op in expression {
        let mut pop = || stack.pop().unwrap_or_default();
        let value = match *op {
            ConstOp::I32Const(value) => Value::I32(value).to_slot(),
            ConstOp::I64Const(value) => Value::I64(value).to_slot(),
            ConstOp::F32Const(bits) => Value::F32(bits).to_slot(),
            ConstOp::F64Const(bits) => Value::F64(bits).to_slot(),
            ConstOp::V128Const(bits) => Value::V128(bits).to_slot(),
            ConstOp::GlobalGet(index) => instance.global(index),
            ConstOp::RefNull(_) => Slot::default(),
            ConstOp::RefFunc(index) => instance.function(sandbox, index).to_slot(),
            ConstOp::I32Add => binary_i32(pop(), pop(), i32::wrapping_add),
            ConstOp::I32Sub => binary_i32(pop(), pop(), i32::wrapping_sub),
            ConstOp::I32Mul => binary_i32(pop(), pop(), i32::wrapping_mul),
            ConstOp::I64Add => binary_i64(pop(), pop(), i64::wrapping_add),
            ConstOp::I64Sub => binary_i64(pop(), pop(), i64::wrapping_sub),
            ConstOp::I64Mul => binary_i64(pop(), pop(), i64::wrapping_mul),
        };
        stack.push(value);
    }
    stack.pop().unwrap_or_default()
}

/// An element of an instance's element segment that was not dropped.
pub(crate) fn element(instance: &Instance, sandbox: SandboxId, segment: u32, index: usize) -> Slot {
    match &instance.descriptor().elements[segment as usize].items {
        ElementItems::Functions(functions) => instance.function(sandbox, functions[index]).to_slot(),
        ElementItems::Expressions(expressions) => evaluate(instance, sandbox, &expressions[index]),
    }
}

/// The right operand is on top of the stack.
fn binary_i32(right: Slot, left: Slot, op: fn(i32, i32) -> i32) -> Slot {
    Value::I32(op(left.i32(), right.i32())).to_slot()
}

fn binary_i64(right: Slot, left: Slot, op: fn(i64, i64) -> i64) -> Slot {
    Value::I64(op(left.i64(), right.i64())).to_slot()
}
