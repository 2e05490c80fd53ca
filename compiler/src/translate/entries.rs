//! Entries, through which the host calls the guest, and thunks, through which the guest calls imports that the host provides; see
//! [`awsm_abi::calls`].

use std::collections::HashMap;

use awsm_abi::calls::SLOT_BYTES;
use awsm_abi::trap::TrapCode;
use awsm_abi::types::FuncType;
use awsm_abi::vmctx;
use inkwell::IntPredicate::NE;
use inkwell::builder::Builder;
use inkwell::types::FunctionType;
use inkwell::values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, IntValue, PointerValue};

use super::unit::{Unit, entry_symbol, thunk_symbol};
use crate::error::CompileError;
use crate::llvm::{CallConv, Ir, Types, Visibility, offset_pointer};
use crate::module::{FuncIdx, ImportType, Module, TypeIdx};

/// For each type the one that stands for it in an artifact's entries: the first that is equal in structure. None where no function of
/// the type can be called from outside.
pub(crate) fn entry_types(module: &Module<'_>) -> Vec<Option<TypeIdx>> {
    let mut first: HashMap<&FuncType, TypeIdx> = HashMap::new();
    let canonical: Vec<_> =
        module.types.iter().enumerate().map(|(i, ty)| *first.entry(ty).or_insert(TypeIdx(i as u32))).collect();
    let mut wanted = vec![false; module.types.len()];
    for (ty, escapes) in module.functions.iter().zip(&module.escapes) {
        wanted[canonical[ty.0 as usize].0 as usize] |= escapes;
    }
    canonical.into_iter().map(|ty| wanted[ty.0 as usize].then_some(ty)).collect()
}

/// Builds all entries and thunks, through which the host and the module's functions reach each other.
pub(crate) fn build(unit: &Unit<'_, '_>) -> Result<(), CompileError> {
    for (index, entry) in entry_types(unit.module).into_iter().enumerate() {
        let ty = TypeIdx(index as u32);
        if entry == Some(ty) {
            build_entry(unit, ty)?;
        }
    }
    let functions = unit.module.imports.iter().filter(|import| matches!(import.ty, ImportType::Function(_)));
    for (index, import) in functions.enumerate() {
        let function = FuncIdx(index as u32);
        build_thunk(unit, function, &thunk_symbol(unit.module, function, import))?;
    }
    Ok(())
}

fn build_entry(unit: &Unit<'_, '_>, ty: TypeIdx) -> Result<(), CompileError> {
    let (ir, types) = (unit.ir, unit.ir.types);
    let pointer = types.ptr.into();
    let signature = types.void.fn_type(&[pointer, pointer, pointer], false);
    let entry = ir.function(&entry_symbol(unit.module, ty), signature, CallConv::C, Visibility::Artifact, unit.layout.size());
    let builder = ir.context.create_builder();
    builder.position_at_end(ir.context.append_basic_block(entry, "entry"));
    let params = entry.get_params();
    let slots = Slots { builder: &builder, types, at: params[2].into_pointer_value() };
    let func_type = &unit.module.types[ty.0 as usize];

    let mut arguments: Vec<BasicMetadataValueEnum<'_>> = vec![params[0].into()];
    let signature = unit.shared_signature();
    let in_memory = signature.results_in_memory(func_type);
    if in_memory {
        // The callee writes them when all parameters are loaded.
        arguments.push(params[2].into());
    }
    let memory = Slots::arguments(&builder, types, params[0].into_pointer_value());
    let mut written = 0;
    for ((index, &param), in_memory) in func_type.params.iter().enumerate().zip(signature.params_in_memory(func_type)) {
        let argument = slots.load(index, types.value(param))?;
        if in_memory {
            builder.build_store(memory.slot(written), argument)?;
            written += 1;
        } else {
            arguments.push(argument.into());
        }
    }
    let call = builder.build_indirect_call(unit.llvm_type(ty), params[1].into_pointer_value(), &arguments, "")?;
    ir.call(call, CallConv::Guest);
    let count = if in_memory { 0 } else { func_type.results.len() };
    let mut results = results(&builder, call, count + usize::from(signature.exception))?;
    if let Some(exception) = results.pop_if(|_| signature.exception) {
        let (caught, done) = (ir.context.append_basic_block(entry, ""), ir.context.append_basic_block(entry, ""));
        let thrown = builder.build_int_compare(NE, exception.into_int_value(), types.i64.const_zero(), "")?;
        ir.unlikely(builder.build_conditional_branch(thrown, caught, done)?)?;
        builder.position_at_end(caught);
        // For the host, which says where it was thrown.
        slots.store(0, exception)?;
        let number = types.i8.const_int(u64::from(TrapCode::UncaughtException.number()), false);
        builder.build_call(ir.intrinsic("llvm.ubsantrap", &[])?, &[number.into()], "")?;
        builder.build_unreachable()?;
        builder.position_at_end(done);
    }
    for (index, result) in results.into_iter().enumerate() {
        slots.store(index, result)?;
    }
    builder.build_return(None)?;
    Ok(())
}

fn build_thunk(unit: &Unit<'_, '_>, function: FuncIdx, symbol: &str) -> Result<(), CompileError> {
    let (ir, types) = (unit.ir, unit.ir.types);
    let ty = unit.module.functions[function.0 as usize];
    let thunk = ir.function(symbol, unit.llvm_type(ty), CallConv::Guest, Visibility::Artifact, unit.layout.size());
    ir.no_inline(thunk);
    let builder = ir.context.create_builder();
    builder.position_at_end(ir.context.append_basic_block(thunk, "entry"));
    let params = thunk.get_params();
    let vmctx = params[0].into_pointer_value();
    let func_type = unit.module.function_type(function);
    let at = builder.build_alloca(types.i128.array_type(func_type.slots() as u32), "slots")?;
    let slots = Slots { builder: &builder, types, at };
    let signature = unit.shared_signature();
    let in_memory = signature.results_in_memory(func_type);
    let memory = Slots::arguments(&builder, types, vmctx);
    let (mut registers, mut read) = (params[1 + usize::from(in_memory)..].iter().copied(), 0);
    for ((index, &param), in_memory) in func_type.params.iter().enumerate().zip(signature.params_in_memory(func_type)) {
        let argument = if in_memory {
            read += 1;
            Some(memory.load(read - 1, types.value(param))?)
        } else {
            registers.next()
        };
        argument.map_or(Ok(()), |argument| slots.store(index, argument))?;
    }
    let offset = types.i64.const_int(u64::from(vmctx::HOST_CALL), false);
    let host_call = builder.build_load(types.ptr, offset_pointer(&builder, types.i8, vmctx, offset), "")?;
    let number = types.i32.const_int(u64::from(function.0), false);
    let arguments = [vmctx.into(), number.into(), at.into()];
    let call = builder.build_indirect_call(host_call_type(types), host_call.into_pointer_value(), &arguments, "")?;
    ir.call(call, CallConv::C);
    let mut results: Vec<_> =
        func_type.results.iter().enumerate().map(|(index, &ty)| slots.load(index, types.value(ty))).collect::<Result<_, _>>()?;
    if in_memory {
        let slots = Slots { builder: &builder, types, at: params[1].into_pointer_value() };
        results.drain(..).enumerate().try_for_each(|(index, result)| slots.store(index, result))?;
    }
    // The host throws nothing.
    results.extend(signature.exception.then(|| BasicValueEnum::from(types.i64.const_zero())));
    build_return(&builder, &results)
}

/// Returns these values.
pub(super) fn build_return<'ctx>(builder: &Builder<'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<(), CompileError> {
    match values {
        [] => builder.build_return(None)?,
        [value] => builder.build_return(Some(value as &dyn BasicValue<'ctx>))?,
        values => builder.build_aggregate_return(values)?,
    };
    Ok(())
}

/// The type of `host_call`.
pub(super) fn host_call_type(types: Types<'_>) -> FunctionType<'_> {
    types.void.fn_type(&[types.ptr.into(), types.i32.into(), types.ptr.into()], false)
}

/// A value as a slot holds it: zeros above.
pub(super) fn widen<'ctx>(
    builder: &Builder<'ctx>,
    types: Types<'ctx>,
    value: BasicValueEnum<'ctx>,
) -> Result<IntValue<'ctx>, CompileError> {
    let bits = match value {
        BasicValueEnum::FloatValue(value) if value.get_type() == types.f32 => builder.build_bit_cast(value, types.i32, "")?,
        BasicValueEnum::FloatValue(value) => builder.build_bit_cast(value, types.i64, "")?,
        BasicValueEnum::VectorValue(value) => builder.build_bit_cast(value, types.i128, "")?,
        other => other,
    };
    Ok(builder.build_int_z_extend_or_bit_cast(bits.into_int_value(), types.i128, "")?)
}

/// What a call returned.
pub(super) fn results<'ctx>(
    builder: &Builder<'ctx>,
    call: CallSiteValue<'ctx>,
    count: usize,
) -> Result<Vec<BasicValueEnum<'ctx>>, CompileError> {
    match count {
        0 => Ok(Vec::new()),
        1 => Ok(vec![Ir::result(call)?]),
        _ => {
            let results = Ir::result(call)?.into_struct_value();
            Ok((0..count).map(|i| builder.build_extract_value(results, i as u32, "")).collect::<Result<_, _>>()?)
        }
    }
}

/// Slots that a host call or an entry uses.
struct Slots<'a, 'ctx> {
    builder: &'a Builder<'ctx>,
    types: Types<'ctx>,
    at: PointerValue<'ctx>,
}

impl<'a, 'ctx> Slots<'a, 'ctx> {
    /// Those of the callee's vmctx, for arguments.
    fn arguments(builder: &'a Builder<'ctx>, types: Types<'ctx>, vmctx: PointerValue<'ctx>) -> Slots<'a, 'ctx> {
        let offset = types.i64.const_int(u64::from(vmctx::ARGUMENTS), false);
        Slots { builder, types, at: offset_pointer(builder, types.i8, vmctx, offset) }
    }

    fn slot(&self, index: usize) -> PointerValue<'ctx> {
        let bytes = self.types.i64.const_int(index as u64 * u64::from(SLOT_BYTES), false);
        offset_pointer(self.builder, self.types.i8, self.at, bytes)
    }

    fn load(&self, index: usize, ty: inkwell::types::BasicTypeEnum<'ctx>) -> Result<BasicValueEnum<'ctx>, CompileError> {
        Ok(self.builder.build_load(ty, self.slot(index), "")?)
    }

    fn store(&self, index: usize, value: BasicValueEnum<'ctx>) -> Result<(), CompileError> {
        self.builder.build_store(self.slot(index), widen(self.builder, self.types, value)?)?;
        Ok(())
    }
}
