//! Keeping the traps of accesses that fault, through optimisation.
//!
//! In guard mode an access out of bounds traps because its address is not mapped. LLVM does not count that as an effect: it deletes loads whose
//! value is not needed, moves them behind branches, and narrows them. WebAssembly does: whether the access traps must not change. A blanket
//! `volatile` would keep all traps and all loops from vectorising. Instead, loads are protected in three ways, one after the other:
//!
//! 1. The translator makes every load of linear memory volatile. So they stay while functions are simplified and inlined into each other.
//! 2. [`hold`] then makes them plain loads whose value goes to a call of `awsm.keep`, a function that LLVM knows nothing of but that it touches no
//!    memory. Loads can be merged with equal ones, forwarded from stores and hoisted, but are needed where they are.
//! 3. [`release`] deletes these calls. What then is not needed becomes volatile again, as do vectors of which only some lanes may be
//!    needed ([`super::lanes`]); all others are free to be vectorised.
//!
//! Before code generation, which deletes, sinks and narrows once more, [`pin`] makes volatile what would lose its trap there, and fences off
//! what would become the operand of an instruction with a mask, which does not fault in lanes that are masked. No pass that sinks loads out
//! of loops runs after [`release`], and options in [`super::host`] turn off the sinking that can be turned off.
//!
//! Stores need none of this: LLVM deletes one only if it stores what was just loaded from there or is overwritten before anything reads it, and
//! then the load (which is kept) or the later store traps instead.
//!
//! What remains: a load that loses its last use only through what the passes after [`release`] find out (values that are equal only after
//! vectorising or unrolling, say) is deleted; so is a lane of a vector load that instruction selection finds unused. Of two stores to one
//! place with an explicit trap on a way out between them, the first may go, and that way out then traps with its own code instead of that of the
//! access. None of this lets code touch anything outside its memory.

use std::collections::HashMap;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicMetadataTypeEnum, BasicTypeEnum};
use inkwell::values::{AsValueRef, BasicValue, FunctionValue, InstructionOpcode, InstructionValue};

use super::lanes::{divisible, taken_apart};
use super::uses::{Classes, anchored, carried_away, chosen, narrowable, stored_back, users, value_of};
use crate::error::CompileError;

/// Begins the names of the functions that hold values.
const HOLD: &str = "awsm.keep.";

fn failed(error: impl std::fmt::Debug) -> CompileError {
    CompileError::llvm("keeping accesses", format!("{error:?}"))
}

/// Makes volatile loads plain, and holds their values.
pub(super) fn hold(module: &Module<'_>) -> Result<(), CompileError> {
    let builder = module.get_context().create_builder();
    let mut holders = HashMap::new();
    for load in loads(module, |load| load.get_volatile() == Ok(true)) {
        load.set_volatile(false).map_err(failed)?;
        let next = load.get_next_instruction().ok_or_else(|| failed("a load ends a block"))?;
        let holder = *holders.entry(load.get_type().to_string()).or_insert_with(|| holder(module, load.get_type()));
        builder.position_before(&next);
        builder.build_call(holder, &[value_of(load).into()], "")?;
    }
    Ok(())
}

/// Declares the function that holds values of a type. It touches nothing that the module can see, and returns.
fn holder<'ctx>(module: &Module<'ctx>, ty: AnyTypeEnum<'ctx>) -> FunctionValue<'ctx> {
    let context = module.get_context();
    let param: Vec<BasicMetadataTypeEnum<'ctx>> = BasicMetadataTypeEnum::try_from(ty).into_iter().collect();
    let name = format!("{HOLD}{}", ty.to_string().trim_matches('"'));
    let function = module.add_function(&name, context.void_type().fn_type(&param, false), None);
    let inaccessible_memory = 3 << 2;
    for (name, value) in
        [("memory", inaccessible_memory), ("nounwind", 0), ("willreturn", 0), ("nocallback", 0), ("nofree", 0), ("nosync", 0)]
    {
        let attribute = context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value);
        function.add_attribute(AttributeLoc::Function, attribute);
    }
    function
}

/// Lets values go, and makes volatile what nothing else needs, or not as a whole.
pub(super) fn release(module: &Module<'_>) -> Result<(), CompileError> {
    for function in module.get_functions().collect::<Vec<_>>() {
        if function.get_name().to_bytes().starts_with(HOLD.as_bytes()) {
            let calls = users(function.as_global_value().as_value_ref());
            for call in calls {
                let held = operands(call);
                call.erase_from_basic_block();
                erase_unneeded(held);
            }
        }
    }
    let mut classes = Classes::new(module.get_context());
    let vectors = has_vectors(module);
    for load in loads(module, |_| true) {
        let unneeded =
            users(load.as_value_ref()).is_empty() || stored_back(load) || carried_away(load) || (vectors && divisible(load));
        if unneeded && classes.is_guest_memory(load) {
            load.set_volatile(true).map_err(failed)?;
        }
    }
    Ok(())
}

/// Erases what is not needed any more, such as the part of a value that was taken out of another load's to save a load, and what only that needed,
/// but no loads: those that are not needed are to be found afterwards.
fn erase_unneeded(mut pending: Vec<InstructionValue<'_>>) {
    use InstructionOpcode as Op;
    while let Some(instruction) = pending.pop() {
        let may_go = matches!(
            instruction.get_opcode(),
            Op::BitCast
                | Op::Trunc
                | Op::ZExt
                | Op::SExt
                | Op::LShr
                | Op::Shl
                | Op::And
                | Op::Freeze
                | Op::Phi
                | Op::Select
                | Op::ExtractElement
                | Op::InsertElement
                | Op::ShuffleVector
        );
        if !may_go || !users(instruction.as_value_ref()).is_empty() {
            continue;
        }
        // Each is in there once at most: it is gone after its turn.
        for operand in operands(instruction) {
            if !pending.contains(&operand) {
                pending.push(operand);
            }
        }
        instruction.erase_from_basic_block();
    }
}

/// The instructions that an instruction uses, each once.
fn operands(instruction: InstructionValue<'_>) -> Vec<InstructionValue<'_>> {
    let values = instruction.get_operands().flatten().filter_map(|operand| operand.value());
    let mut operands = Vec::new();
    for operand in values.filter_map(|value| value.as_instruction_value()) {
        if operand != instruction && !operands.contains(&operand) {
            operands.push(operand);
        }
    }
    operands
}

/// Makes volatile what code generation would delete, move behind a branch, or narrow.
pub(super) fn pin(module: &Module<'_>) -> Result<(), CompileError> {
    let builder = module.get_context().create_builder();
    let mut classes = Classes::new(module.get_context());
    for load in loads(module, |_| true) {
        if !classes.is_guest_memory(load) {
            continue;
        }
        if chosen(load) || (load.get_volatile() == Ok(true) && taken_apart(load)) {
            separate(module, &builder, load)?;
            load.set_volatile(true).map_err(failed)?;
        } else if !anchored(load) || stored_back(load) || narrowable(load) {
            load.set_volatile(true).map_err(failed)?;
        }
    }
    Ok(())
}

/// Puts a fence between a load of a float or vector and its use, so that it does not become the operand of an instruction with a mask;
/// x86-64's instruction selection does that to volatile loads, too.
fn separate<'ctx>(module: &Module<'ctx>, builder: &Builder<'ctx>, load: InstructionValue<'ctx>) -> Result<(), CompileError> {
    let value = value_of(load);
    let Some(ty) = fence_type(module, value.get_type()) else { return Ok(()) };
    let next = load.get_next_instruction().ok_or_else(|| failed("a load ends a block"))?;
    let fence = Intrinsic::find("llvm.arithmetic.fence").and_then(|fence| fence.get_declaration(module, &[ty]));
    builder.position_before(&next);
    let bits = if value.get_type() == ty { value } else { builder.build_bit_cast(value, ty, "")? };
    let call = builder.build_call(fence.ok_or_else(|| failed("no fence"))?, &[bits.into()], "")?;
    let fenced = call.try_as_basic_value().basic().ok_or_else(|| failed("a fence without result"))?;
    let result = if value.get_type() == ty { fenced } else { builder.build_bit_cast(fenced, value.get_type(), "")? };
    let (Some(first), Some(last)) = (load.get_next_instruction(), result.as_instruction_value()) else {
        return Err(failed("a fence that folded"));
    };
    load.replace_all_uses_with(&last);
    first.set_operand(0, value);
    Ok(())
}

/// A floating-point type with the bits of `ty`: fences are for floats. None for scalar integers, which no instruction masks, and for vectors
/// that have no such type.
fn fence_type<'ctx>(module: &Module<'ctx>, ty: BasicTypeEnum<'ctx>) -> Option<BasicTypeEnum<'ctx>> {
    let context = module.get_context();
    let BasicTypeEnum::VectorType(vector) = ty else { return ty.is_float_type().then_some(ty) };
    let element_bits = match vector.get_element_type() {
        BasicTypeEnum::IntType(element) => element.get_bit_width(),
        BasicTypeEnum::FloatType(_) => return Some(ty),
        _ => return None,
    };
    match vector.get_size() * element_bits {
        32 => Some(context.f32_type().into()),
        64 => Some(context.f64_type().into()),
        bits if bits % 64 == 0 => Some(context.f64_type().vec_type(bits / 64).into()),
        _ => None,
    }
}

/// Whether anything in the module is a vector.
fn has_vectors(module: &Module<'_>) -> bool {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    blocks.flat_map(|block| block.get_instructions()).any(|i| matches!(i.get_type(), AnyTypeEnum::VectorType(_)))
}

/// All loads of the module that `wanted` accepts.
fn loads<'ctx>(module: &Module<'ctx>, wanted: impl Fn(InstructionValue<'ctx>) -> bool) -> Vec<InstructionValue<'ctx>> {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    let instructions = blocks.flat_map(|block| block.get_instructions());
    instructions.filter(|&i| i.get_opcode() == InstructionOpcode::Load && wanted(i)).collect()
}
