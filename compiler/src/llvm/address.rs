//! Address arithmetic.

use inkwell::AddressSpace;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::core::LLVMBuildGEPWithNoWrapFlags;
use inkwell::llvm_sys::{LLVMGEPFlagInBounds, LLVMGEPFlagNUSW, LLVMGEPFlagNUW, LLVMGEPNoWrapFlags};
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
    gep(builder, byte, pointer, bytes, LLVMGEPFlagInBounds | LLVMGEPFlagNUSW | LLVMGEPFlagNUW)
}

/// LLVM's address space of what lies relative to %gs on x86-64.
const SEGMENT: u16 = 256;

/// The address of the byte at `index`, an unsigned 64-bit number, relative to the segment register. Not an address in the sense of other
/// pointers: the same bytes have another one there.
pub(crate) fn segment_pointer<'ctx>(
    builder: &Builder<'ctx>,
    context: &'ctx Context,
    index: IntValue<'ctx>,
) -> PointerValue<'ctx> {
    let start = context.ptr_type(AddressSpace::from(SEGMENT)).const_null();
    gep(builder, context.i8_type(), start, index, LLVMGEPFlagNUSW | LLVMGEPFlagNUW)
}

fn gep<'ctx>(
    builder: &Builder<'ctx>,
    byte: IntType<'ctx>,
    pointer: PointerValue<'ctx>,
    bytes: IntValue<'ctx>,
    flags: LLVMGEPNoWrapFlags,
) -> PointerValue<'ctx> {
    debug_assert!(builder.get_insert_block().is_some());
    let mut indices = [bytes.as_value_ref()];
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
