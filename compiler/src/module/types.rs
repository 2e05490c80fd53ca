//! From wasmparser's types and constant expressions to the contract's.

use awsm_abi::descriptor::{ConstExpr, ConstOp};
use awsm_abi::limits::CONST_EXPR_OPERATORS_MAX;
use awsm_abi::types::{FuncType, GlobalType, HeapType, MemoryType, TableType, ValType};
use wasmparser::{AbstractHeapType, BlockType, CompositeInnerType, Operator, RefType, TryTable, UnpackedIndex};

use super::Declared;
use super::features::is_gc;
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
    Some(ValType::Ref(awsm_abi::types::RefType { nullable: ty.is_nullable(), heap: heap_type(ty.heap_type())? }))
}

fn heap_type(heap: wasmparser::HeapType) -> Option<HeapType> {
    match heap {
        wasmparser::HeapType::Abstract { shared: false, ty } => match ty {
            AbstractHeapType::Func => Some(HeapType::Func),
            AbstractHeapType::NoFunc => Some(HeapType::NoFunc),
            AbstractHeapType::Extern => Some(HeapType::Extern),
            AbstractHeapType::NoExtern => Some(HeapType::NoExtern),
            AbstractHeapType::Exn => Some(HeapType::Exn),
            AbstractHeapType::NoExn => Some(HeapType::NoExn),
            _ => None,
        },
        wasmparser::HeapType::Concrete(UnpackedIndex::Module(index)) => Some(HeapType::Concrete(index)),
        _ => None,
    }
}

pub(super) fn accepted(ty: wasmparser::ValType, offset: u64) -> Result<ValType, CompileError> {
    val_type(ty).ok_or_else(|| gc(format_args!("values of type {ty}"), offset))
}

/// What GC brings is refused.
pub(super) fn gc(what: impl std::fmt::Display, offset: u64) -> CompileError {
    CompileError::Unsupported { feature: format!("gc ({what})"), offset }
}

/// A type as it is declared.
pub(super) fn sub_type(ty: &wasmparser::SubType, offset: u64) -> Result<(FuncType, Declared), CompileError> {
    let CompositeInnerType::Func(func) = &ty.composite_type.inner else {
        return Err(gc("types of structs and arrays", offset));
    };
    let supertype = ty.supertype_idxs.first().and_then(|index| index.as_module_index());
    Ok((func_type(func, offset)?, Declared { supertype, is_final: ty.is_final }))
}

fn func_type(ty: &wasmparser::FuncType, offset: u64) -> Result<FuncType, CompileError> {
    let list = |types: &[wasmparser::ValType]| {
        limits::check("parameters or results", types.len() as u64, awsm_abi::limits::PARAMS_MAX as u64, offset)?;
        types.iter().map(|&ty| accepted(ty, offset)).collect::<Result<Vec<_>, _>>()
    };
    Ok(FuncType { params: list(ty.params())?, results: list(ty.results())? })
}

/// Refuses an operator of GC, or one that names a type of GC.
pub(super) fn check_operator(op: &Operator<'_>, offset: u64) -> Result<(), CompileError> {
    let ty = match op {
        Operator::Block { blockty }
        | Operator::Loop { blockty }
        | Operator::If { blockty }
        | Operator::Try { blockty }
        | Operator::TryTable { try_table: TryTable { ty: blockty, .. } } => match blockty {
            BlockType::Type(ty) => *ty,
            BlockType::Empty | BlockType::FuncType(_) => return Ok(()),
        },
        Operator::TypedSelect { ty } => *ty,
        Operator::RefNull { hty } => return null_type(*hty, offset).map(drop),
        op if is_gc(op) => {
            // Its fields, if it has any, say nothing to a user.
            let text = format!("{op:?}");
            return Err(gc(text.split([' ', '{']).next().unwrap_or_default(), offset));
        }
        _ => return Ok(()),
    };
    accepted(ty, offset).map(drop)
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
                check_operator(&other, offset)?;
                return Err(CompileError::Unsupported { feature: format!("{other:?} in a constant expression"), offset }.into());
            }
        });
    }
    Ok(ops)
}

/// The type of `ref.null`'s result.
pub(crate) fn null_type(heap: wasmparser::HeapType, offset: u64) -> Result<ValType, CompileError> {
    let ty = heap_type(heap).map(|heap| ValType::Ref(awsm_abi::types::RefType::nullable(heap)));
    ty.ok_or_else(|| gc(format_args!("references of type {heap:?}"), offset))
}
