//! Loads that take part in vectors, of which LLVM would load only the lanes that are needed; see [`super::keep`].
//!
//! Passes and instruction selection turn a vector load whose lanes are taken out one by one into loads of these lanes, and one whose lower half is
//! widened into a load of that half. None of this happens to a load whose value is needed as a whole, by a store, a call or another block.

use std::collections::HashSet;

use inkwell::llvm_sys::core::{LLVMGetMaskValue, LLVMGetNumMaskElements};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{AsValueRef, BasicValueEnum, InstructionOpcode as Op, InstructionValue};

use super::uses::{STEPS_MAX, intrinsic_name, users};

/// Intrinsics that need each bit of their vector operands.
const WHOLE: [&str; 24] = [
    "llvm.abs.",
    "llvm.ceil.",
    "llvm.ctpop.",
    "llvm.fabs.",
    "llvm.floor.",
    "llvm.fma.",
    "llvm.roundeven.",
    "llvm.sadd.sat.",
    "llvm.smax.",
    "llvm.smin.",
    "llvm.sqrt.",
    "llvm.ssub.sat.",
    "llvm.trunc.",
    "llvm.uadd.sat.",
    "llvm.umax.",
    "llvm.umin.",
    "llvm.usub.sat.",
    "llvm.x86.sse2.cvttps2dq",
    "llvm.x86.sse2.packssdw.128",
    "llvm.x86.sse2.packsswb.128",
    "llvm.x86.sse2.packuswb.128",
    "llvm.x86.sse2.pmadd.wd",
    "llvm.x86.ssse3.pmadd.ub.sw.128",
    "llvm.x86.ssse3.pmul.hr.sw.128",
];

/// What an instruction does with a value that it uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Needs all of it, here.
    Whole,
    /// Needs as much of it as is needed of the instruction's own value, lane by lane.
    Passes,
    /// Makes it a lane, or copies it to all lanes.
    Spreads,
    /// May need some lanes only.
    Takes,
}

fn operand(instruction: InstructionValue<'_>, index: u32) -> Option<BasicValueEnum<'_>> {
    instruction.get_operand(index).and_then(|operand| operand.value())
}

fn is_operand(instruction: InstructionValue<'_>, index: u32, value: InstructionValue<'_>) -> bool {
    operand(instruction, index).is_some_and(|operand| operand.as_value_ref() == value.as_value_ref())
}

fn is_constant(value: BasicValueEnum<'_>) -> bool {
    match value {
        BasicValueEnum::IntValue(value) => value.is_const(),
        BasicValueEnum::FloatValue(value) => value.is_const(),
        BasicValueEnum::VectorValue(value) => value.is_const(),
        _ => false,
    }
}

fn is_vector(instruction: InstructionValue<'_>) -> bool {
    matches!(instruction.get_type(), AnyTypeEnum::VectorType(_))
}

/// Whether a shuffle copies the first operand's first lane to all lanes.
fn is_splat(shuffle: InstructionValue<'_>) -> bool {
    let value = shuffle.as_value_ref();
    // SAFETY: `value` is a live `shufflevector`, and the index is below the number of its mask's elements.
    unsafe { (0..LLVMGetNumMaskElements(value)).all(|index| LLVMGetMaskValue(value, index) == 0) }
}

/// Whether it makes an address of its operand, or accesses one.
fn is_access(user: InstructionValue<'_>) -> bool {
    matches!(user.get_opcode(), Op::GetElementPtr | Op::Load | Op::Store)
}

fn usage(user: InstructionValue<'_>, value: InstructionValue<'_>) -> Use {
    let with_constant = || user.get_operands().flatten().filter_map(|operand| operand.value()).any(is_constant);
    match user.get_opcode() {
        Op::Store if is_operand(user, 0, value) => Use::Whole,
        Op::Return | Op::Br | Op::Switch => Use::Whole,
        Op::Phi | Op::BitCast | Op::Freeze | Op::SExt | Op::ZExt | Op::FPExt | Op::FPTrunc => Use::Passes,
        Op::SIToFP | Op::UIToFP | Op::FNeg | Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FCmp => Use::Passes,
        Op::Add | Op::Sub | Op::Xor | Op::ICmp => Use::Passes,
        // A constant may be zero in some lanes.
        Op::And | Op::Or | Op::Mul | Op::Shl | Op::LShr | Op::AShr | Op::Select if !with_constant() => Use::Passes,
        Op::InsertElement if is_operand(user, 1, value) => Use::Spreads,
        Op::ShuffleVector if value.get_opcode() == Op::InsertElement && is_operand(user, 0, value) && is_splat(user) => {
            Use::Spreads
        }
        Op::Call => match intrinsic_name(user) {
            None => Use::Whole,
            Some(name) if WHOLE.iter().any(|known| name.starts_with(known)) => Use::Passes,
            Some(_) => Use::Takes,
        },
        _ => Use::Takes,
    }
}

/// Something that is made of a load.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Made {
    value: LLVMValueRef,
    /// It and what lies between are numbers, no vectors.
    is_number: bool,
    /// Only a part of the load may be needed for it.
    in_part: bool,
}

/// Whether a load takes part in vectors and nothing that is made of it is needed as a whole.
pub(super) fn divisible(load: InstructionValue<'_>) -> bool {
    let mut vectors = is_vector(load);
    let mut seen = HashSet::new();
    let mut pending = vec![(load, Made { value: load.as_value_ref(), is_number: !vectors, in_part: false })];
    while let Some((value, made)) = pending.pop() {
        for user in users(value.as_value_ref()) {
            vectors |= is_vector(user);
            let is_number = made.is_number && !is_vector(user);
            let in_part = match usage(user, value) {
                Use::Whole if made.in_part => continue,
                Use::Whole => return false,
                // A number that becomes another may become a vector later on.
                Use::Takes if is_number && !is_access(user) => true,
                Use::Takes => continue,
                Use::Passes | Use::Spreads => made.in_part,
            };
            let next = Made { value: user.as_value_ref(), is_number, in_part };
            pending.extend(seen.insert(next).then_some((user, next)));
        }
        if seen.len() > STEPS_MAX {
            break;
        }
    }
    vectors
}

/// Whether something takes single lanes straight out of a vector load: instructions that do so read only these lanes from memory, and
/// instruction selection does not ask whether the load is volatile.
pub(super) fn taken_apart(load: InstructionValue<'_>) -> bool {
    if !is_vector(load) {
        return false;
    }
    let mut pending = vec![load];
    while let Some(value) = pending.pop() {
        for user in users(value.as_value_ref()) {
            match usage(user, value) {
                Use::Takes => return true,
                _ if user.get_opcode() == Op::BitCast => pending.push(user),
                _ => {}
            }
        }
    }
    false
}
