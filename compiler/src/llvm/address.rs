//! Address arithmetic.

use inkwell::builder::Builder;
use inkwell::llvm_sys::core::LLVMBuildGEPWithNoWrapFlags;
use inkwell::llvm_sys::{LLVMGEPFlagInBounds, LLVMGEPFlagNUSW, LLVMGEPFlagNUW};
use inkwell::types::{AsTypeRef, IntType};
use inkwell::values::{AsValueRef, IntValue, PointerValue};

/// `pointer + bytes`, where `bytes` is an unsigned 64-bit number and the sum neither leaves the reserved range of addresses in which `pointer`
/// lies nor wraps. For a guarded memory that range is the whole reservation, so that this holds for every index; for a checked one it holds
/// wherever the result is used.
pub(crate) fn offset_pointer<'ctx>(
    builder: &Builder<'ctx>,
    byte: IntType<'ctx>,
    pointer: PointerValue<'ctx>,
    bytes: IntValue<'ctx>,
) -> PointerValue<'ctx> {
    debug_assert!(builder.get_insert_block().is_some());
    let mut indices = [bytes.as_value_ref()];
    let flags = LLVMGEPFlagInBounds | LLVMGEPFlagNUSW | LLVMGEPFlagNUW;
    // SAFETY: builder, types and values belong to one live context ('ctx); the builder is positioned; one index is given and counted; a GEP
    // over bytes with one integer index is well-formed for any pointer. The result is a pointer value of the same context.
    unsafe {
        PointerValue::new(LLVMBuildGEPWithNoWrapFlags(
            builder.as_mut_ptr(),
            byte.as_type_ref(),
            pointer.as_value_ref(),
            indices.as_mut_ptr(),
            1,
            c"".as_ptr(),
            flags,
        ))
    }
}
