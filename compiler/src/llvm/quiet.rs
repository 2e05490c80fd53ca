//! Arithmetic that LLVM would drop although it quiets signalling NaNs.
//!
//! LLVM takes the default floating-point environment to mean that no code can tell a quiet NaN from a signalling one, and folds `x * 1`, `x / 1`,
//! `x - 0`, `x + -0`, `-0 - x`, `x * -1`, `x / -1` and narrowing after widening to an operand or its sign bit. WebAssembly can tell: the result
//! of arithmetic is never a signalling NaN. An `arithmetic.fence` around the constant (or the widened value) hides it; it costs no instruction.
//! Constants that reach such an operation only by inlining are not hidden. Vectors are treated likewise; what is promoted and demoted again
//! by lane is fenced where it is translated.

use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::LLVMIsAConstantFP;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{AsValueRef, BasicValueEnum, FloatValue, InstructionOpcode, InstructionValue, VectorValue};

use crate::error::CompileError;

/// Instructions looked through for a constant.
const STEPS_MAX: usize = 16;

/// Puts the fences. To be run after locals have become values and before anything is folded.
pub(super) fn fence(module: &Module<'_>) -> Result<(), CompileError> {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            for instruction in block.get_instructions() {
                for operand in operands_to_fence(instruction) {
                    fence_operand(module, &builder, instruction, operand)?;
                }
            }
        }
    }
    Ok(())
}

fn operands_to_fence(instruction: InstructionValue<'_>) -> Vec<u32> {
    use InstructionOpcode::{FAdd, FDiv, FMul, FPExt, FPTrunc, FSub};
    let operand = |index| instruction.get_operand(index).and_then(|operand| operand.value());
    match instruction.get_opcode() {
        FAdd | FSub | FMul | FDiv => (0..2).filter(|&index| operand(index).is_some_and(has_neutral)).collect(),
        FPTrunc => match operand(0) {
            Some(BasicValueEnum::FloatValue(value))
                if value.as_instruction().is_some_and(|source| source.get_opcode() == FPExt) =>
            {
                vec![0]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whether a value is a neutral constant, or a vector that has or may have such lanes and will be a constant once it is simplified.
fn has_neutral(value: BasicValueEnum<'_>) -> bool {
    let mut value = value;
    for _ in 0..STEPS_MAX {
        match value {
            BasicValueEnum::FloatValue(value) => return is_neutral(value),
            // Of bytes that are yet to be cast, any lane may be neutral.
            BasicValueEnum::IntValue(value) => return value.is_const(),
            BasicValueEnum::VectorValue(vector) if vector.is_const() => return vector_has_neutral(vector),
            BasicValueEnum::VectorValue(vector) => {
                let Some(made) = vector.as_instruction() else { return false };
                let from = match made.get_opcode() {
                    InstructionOpcode::BitCast | InstructionOpcode::ShuffleVector => 0,
                    InstructionOpcode::InsertElement => 1,
                    _ => return false,
                };
                let Some(operand) = made.get_operand(from).and_then(|operand| operand.value()) else { return false };
                value = operand;
            }
            _ => return false,
        }
    }
    true
}

fn vector_has_neutral(vector: VectorValue<'_>) -> bool {
    let lanes = vector.get_type().get_size();
    let index = |lane: u32| vector.get_type().get_context().i32_type().const_int(u64::from(lane), false);
    (0..lanes).any(|lane| match vector.const_extract_element(index(lane)) {
        BasicValueEnum::FloatValue(value) if is_number(value) => is_neutral(value),
        _ => true,
    })
}

fn is_neutral(value: FloatValue<'_>) -> bool {
    is_number(value) && value.get_constant().is_some_and(|(constant, _)| matches!(constant.abs(), 0.0 | 1.0))
}

/// Whether a value is a plain constant, not an expression of such.
fn is_number(value: FloatValue<'_>) -> bool {
    // SAFETY: `value` belongs to a live module.
    unsafe { !LLVMIsAConstantFP(value.as_value_ref()).is_null() }
}

fn fence_operand<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    instruction: InstructionValue<'ctx>,
    index: u32,
) -> Result<(), CompileError> {
    let missing = || CompileError::llvm("fencing constants", "operand or intrinsic is missing");
    let operand = instruction.get_operand(index).and_then(|operand| operand.value()).ok_or_else(missing)?;
    let ty: BasicTypeEnum<'ctx> = operand.get_type();
    let fence = Intrinsic::find("llvm.arithmetic.fence").and_then(|fence| fence.get_declaration(module, &[ty]));
    builder.position_before(&instruction);
    let fenced = builder.build_call(fence.ok_or_else(missing)?, &[operand.into()], "")?;
    instruction.set_operand(index, fenced.try_as_basic_value().basic().ok_or_else(missing)?);
    Ok(())
}
