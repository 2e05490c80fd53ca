//! What becomes of a load's value, as far as it decides whether code generation keeps the load as it is; see [`super::keep`].

use std::collections::{HashMap, HashSet};

use inkwell::context::ContextRef;
use inkwell::llvm_sys::core::{LLVMGetFirstUse, LLVMGetNextUse, LLVMGetNumSuccessors, LLVMGetUser};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{AsValueRef, BasicMetadataValueEnum, BasicValueEnum, InstructionOpcode, InstructionValue, MetadataValue};

use super::alias::class_named;
use super::shared::AliasClass;

/// Instructions looked at for one load before the answer is the careful one.
pub(super) const STEPS_MAX: usize = 64;

/// The instructions that use a value.
pub(super) fn users<'ctx>(value: LLVMValueRef) -> Vec<InstructionValue<'ctx>> {
    let mut users = Vec::new();
    // SAFETY: `value` comes from a live instruction or function of a module that is not changed during the walk. All users of such a value
    // are instructions: no constant expression refers to a load, and the holders' addresses are not taken.
    unsafe {
        let mut next = LLVMGetFirstUse(value);
        while !next.is_null() {
            users.push(InstructionValue::new(LLVMGetUser(next)));
            next = LLVMGetNextUse(next);
        }
    }
    users
}

/// A load's value.
pub(super) fn value_of(load: InstructionValue<'_>) -> BasicValueEnum<'_> {
    // SAFETY: a load is a live instruction whose value is of a first-class type.
    unsafe { BasicValueEnum::new(load.as_value_ref()) }
}

/// Tells loads of linear memories from others, by their alias class.
pub(super) struct Classes {
    kind: u32,
    known: HashMap<LLVMValueRef, bool>,
}

impl Classes {
    pub(super) fn new(context: ContextRef<'_>) -> Classes {
        Classes { kind: context.get_kind_id("tbaa"), known: HashMap::new() }
    }

    /// Whether a load may be one of a linear memory. Loads whose class was lost when they were merged may be.
    pub(super) fn is_guest_memory(&mut self, load: InstructionValue<'_>) -> bool {
        let Some(tag) = load.get_metadata(self.kind) else { return true };
        *self
            .known
            .entry(tag.as_value_ref())
            .or_insert_with(|| class_name(tag).is_none_or(|name| class_named(&name).is_some_and(AliasClass::is_memory)))
    }
}

fn first(node: MetadataValue<'_>) -> Option<BasicMetadataValueEnum<'_>> {
    node.get_node_values()?.first().copied()
}

fn class_name(tag: MetadataValue<'_>) -> Option<String> {
    let BasicMetadataValueEnum::MetadataValue(class) = first(tag)? else { return None };
    let BasicMetadataValueEnum::MetadataValue(name) = first(class)? else { return None };
    Some(String::from_utf8_lossy(name.get_string_value()?).into_owned())
}

/// Whether a load's value is stored back where it came from: LLVM drops such a store, and then perhaps the load.
pub(super) fn stored_back(load: InstructionValue<'_>) -> bool {
    let operand = |instruction: InstructionValue<'_>, index| {
        instruction.get_operand(index).and_then(|operand| operand.value()).map(|value| value.as_value_ref())
    };
    let (value, pointer) = (Some(load.as_value_ref()), operand(load, 0));
    let mut stores = users(load.as_value_ref()).into_iter().filter(|user| user.get_opcode() == InstructionOpcode::Store);
    stores.any(|store| operand(store, 0) == value && operand(store, 1) == pointer)
}

/// Number of blocks to which the load's block may branch.
fn branches(load: InstructionValue<'_>) -> u32 {
    let terminator = load.get_parent().and_then(|block| block.get_terminator());
    // SAFETY: the terminator is a live instruction that ends a block.
    terminator.map_or(0, |terminator| unsafe { LLVMGetNumSuccessors(terminator.as_value_ref()) })
}

/// Whether the value is only brought to another block, on one of several ways: LLVM would load it there, if all others that go there bring
/// loaded values, too.
pub(super) fn carried_away(load: InstructionValue<'_>) -> bool {
    let elsewhere =
        |user: &InstructionValue<'_>| user.get_opcode() == InstructionOpcode::Phi && user.get_parent() != load.get_parent();
    matches!(users(load.as_value_ref()).as_slice(), [user] if elsewhere(user)) && branches(load) > 1
}

/// Whether something in the load's own block needs its value that cannot itself be moved behind the block's branch.
pub(super) fn anchored(load: InstructionValue<'_>) -> bool {
    let block = load.get_parent();
    let branches = branches(load);
    let mut seen = HashSet::new();
    let mut pending = vec![load];
    while let Some(instruction) = pending.pop() {
        for user in users(instruction.as_value_ref()) {
            let here = user.get_parent() == block;
            match user.get_opcode() {
                // A value for the next block is computed here, or on the way there if there are several.
                InstructionOpcode::Phi if here || branches == 1 => return true,
                InstructionOpcode::Phi => {}
                _ if !here => {}
                InstructionOpcode::Store => return true,
                InstructionOpcode::Call if !matches!(user.get_type(), AnyTypeEnum::VoidType(_)) && is_intrinsic(user) => {
                    pending.extend(seen.insert(user.as_value_ref()).then_some(user));
                }
                InstructionOpcode::Call => return true,
                InstructionOpcode::Load if user.get_volatile() == Ok(true) => return true,
                _ if user.is_terminator() => return true,
                _ => pending.extend(seen.insert(user.as_value_ref()).then_some(user)),
            }
        }
        if seen.len() > STEPS_MAX {
            return false;
        }
    }
    false
}

fn is_intrinsic(call: InstructionValue<'_>) -> bool {
    intrinsic_name(call).is_some()
}

/// The name of the intrinsic that is called; none when it is no intrinsic.
pub(super) fn intrinsic_name(call: InstructionValue<'_>) -> Option<String> {
    let callee = call.get_operands().last().flatten().and_then(|operand| operand.value());
    match callee {
        Some(BasicValueEnum::PointerValue(pointer)) => {
            pointer.get_name().to_str().ok().filter(|name| name.starts_with("llvm.")).map(str::to_owned)
        }
        _ => None,
    }
}

/// Whether all that is made of a load's value ends in a select: instruction selection may then load only what is chosen, be it by a branch
/// or by an instruction with a mask, which does not fault in lanes that it masks.
pub(super) fn chosen(load: InstructionValue<'_>) -> bool {
    let mut value = load;
    for _ in 0..STEPS_MAX {
        match users(value.as_value_ref()).as_slice() {
            [user] if user.get_opcode() == InstructionOpcode::Select => return true,
            [user] if !matches!(user.get_type(), AnyTypeEnum::VoidType(_)) => value = *user,
            _ => return false,
        }
    }
    true
}

/// Whether instruction selection may load fewer bytes, because only some bits are needed: a chain of single uses that ends in dropping bits.
pub(super) fn narrowable(load: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    if matches!(load.get_type(), AnyTypeEnum::IntType(ty) if ty.get_bit_width() <= 8) {
        return false;
    }
    let mut value = load;
    for _ in 0..STEPS_MAX {
        let users = users(value.as_value_ref());
        let [user] = users.as_slice() else { return false };
        match user.get_opcode() {
            Op::Trunc | Op::Shl | Op::LShr | Op::AShr | Op::ExtractElement => return true,
            Op::And if has_constant(*user) => return true,
            // Bytes may be swapped or bits counted.
            Op::Call => return is_intrinsic(*user) && matches!(user.get_type(), AnyTypeEnum::IntType(_)),
            Op::And | Op::Or | Op::Xor | Op::Add | Op::Sub | Op::Mul | Op::BitCast | Op::ZExt | Op::SExt | Op::Freeze => {
                value = *user;
            }
            _ => return false,
        }
    }
    true
}

fn has_constant(instruction: InstructionValue<'_>) -> bool {
    let mut operands = instruction.get_operands().flatten().filter_map(|operand| operand.value());
    operands.any(|operand| operand.is_int_value() && operand.into_int_value().is_const())
}
