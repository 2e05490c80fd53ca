//! From wasmparser's types and constant expressions to the contract's.

use awsm_abi::descriptor::{ConstExpr, ConstOp};
use awsm_abi::limits::CONST_EXPR_OPERATORS_MAX;
use awsm_abi::types::{FuncType, GlobalType, MemoryType, TableType, ValType};
use wasmparser::{Operator, RefType};

use super::limits;
use super::parse::Failure;
use crate::error::CompileError;

/// A value's type; none when it is not among those accepted.
pub(crate) fn val_type(ty: wasmparser::ValType) -> Option<ValType> {
    match ty {
        wasmparser::ValType::I32 => Some(ValType::I32),
        wasmparser::ValType::I64 => Some(ValType::I64),
        wasmparser::ValType::F32 => Some(ValType::F32),
        wasmparser::ValType::F64 => Some(ValType::F64),
        wasmparser::ValType::V128 => Some(ValType::V128),
        wasmparser::ValType::Ref(ty) => ref_type(ty),
    }
}

fn ref_type(ty: RefType) -> Option<ValType> {
    match ty {
        RefType::FUNCREF => Some(ValType::FuncRef),
        RefType::EXTERNREF => Some(ValType::ExternRef),
        _ => None,
    }
}

pub(super) fn accepted(ty: wasmparser::ValType, offset: u64) -> Result<ValType, CompileError> {
    val_type(ty).ok_or_else(|| CompileError::Unsupported { feature: format!("values of type {ty}"), offset })
}

pub(super) fn func_type(ty: &wasmparser::FuncType, offset: u64) -> Result<FuncType, CompileError> {
    let list = |types: &[wasmparser::ValType]| {
        limits::check("parameters or results", types.len() as u64, awsm_abi::limits::PARAMS_MAX as u64, offset)?;
        types.iter().map(|&ty| accepted(ty, offset)).collect::<Result<Vec<_>, _>>()
    };
    Ok(FuncType { params: list(ty.params())?, results: list(ty.results())? })
}

pub(super) fn table_type(ty: &wasmparser::TableType, offset: u64) -> Result<TableType, CompileError> {
    limits::check("table elements", ty.initial, awsm_abi::limits::TABLE_ELEMENTS_MAX, offset)?;
    let element = accepted(wasmparser::ValType::Ref(ty.element_type), offset)?;
    Ok(TableType { element, elements_min: ty.initial, elements_max: ty.maximum, table64: ty.table64 })
}

pub(super) fn memory_type(ty: &wasmparser::MemoryType) -> MemoryType {
    MemoryType { pages_min: ty.initial, pages_max: ty.maximum, memory64: ty.memory64, shared: ty.shared }
}

pub(super) fn global_type(ty: &wasmparser::GlobalType, offset: u64) -> Result<GlobalType, CompileError> {
    Ok(GlobalType { value: accepted(ty.content_type, offset)?, mutable: ty.mutable })
}

pub(super) fn const_expr(expression: &wasmparser::ConstExpr<'_>) -> Result<ConstExpr, Failure> {
    let mut ops = Vec::new();
    for item in expression.get_operators_reader().into_iter_with_offsets() {
        let (op, offset) = item?;
        limits::check("operators in a constant expression", ops.len() as u64, CONST_EXPR_OPERATORS_MAX as u64, offset)?;
        ops.push(match op {
            Operator::I32Const { value } => ConstOp::I32Const(value),
            Operator::I64Const { value } => ConstOp::I64Const(value),
            Operator::F32Const { value } => ConstOp::F32Const(value.bits()),
            Operator::F64Const { value } => ConstOp::F64Const(value.bits()),
            Operator::V128Const { value } => ConstOp::V128Const(u128::from_le_bytes(*value.bytes())),
            Operator::GlobalGet { global_index } => ConstOp::GlobalGet(global_index),
            Operator::RefNull { hty } => ConstOp::RefNull(null_type(hty, offset)?),
            Operator::RefFunc { function_index } => ConstOp::RefFunc(function_index),
            Operator::I32Add => ConstOp::I32Add,
            Operator::I32Sub => ConstOp::I32Sub,
            Operator::I32Mul => ConstOp::I32Mul,
            Operator::I64Add => ConstOp::I64Add,
            Operator::I64Sub => ConstOp::I64Sub,
            Operator::I64Mul => ConstOp::I64Mul,
            Operator::End => break,
            other => {
                return Err(CompileError::Unsupported { feature: format!("{other:?} in a constant expression"), offset }.into());
            }
        });
    }
    Ok(ops)
}

/// The type of `ref.null`'s result.
pub(crate) fn null_type(heap: wasmparser::HeapType, offset: u64) -> Result<ValType, CompileError> {
    RefType::new(true, heap)
        .and_then(ref_type)
        .ok_or_else(|| CompileError::Unsupported { feature: format!("references of type {heap:?}"), offset })
}
