//! Arithmetic that LLVM would drop although it quiets signalling NaNs.
//!
//! LLVM takes the default floating-point environment to mean that nobody can tell a quiet NaN from a signalling one, and folds `x * 1`, `x / 1`,
//! `x - 0`, `x + -0`, `-0 - x`, `x * -1`, `x / -1` and narrowing after widening to an operand or its sign bit. WebAssembly can tell: the result
//! of arithmetic is never a signalling NaN. An `arithmetic.fence` around the constant (or the widened value) hides it; it costs no instruction.
//! Constants that reach such an operation only by inlining are not hidden.

use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FloatValue, InstructionOpcode, InstructionValue};

use crate::error::CompileError;

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
    let float = |index| match instruction.get_operand(index).and_then(|operand| operand.value()) {
        Some(BasicValueEnum::FloatValue(value)) => Some(value),
        _ => None,
    };
    match instruction.get_opcode() {
        FAdd | FSub | FMul | FDiv => (0..2).filter(|&index| float(index).is_some_and(is_neutral)).collect(),
        FPTrunc => {
            let source = float(0).and_then(|value| value.as_instruction());
            if source.is_some_and(|source| source.get_opcode() == FPExt) { vec![0] } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

fn is_neutral(value: FloatValue<'_>) -> bool {
    value.get_constant().is_some_and(|(constant, _)| matches!(constant.abs(), 0.0 | 1.0))
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
