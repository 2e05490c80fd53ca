//! Table operators (core specification, section 2.4.7). Access to single elements is checked and done here; the rest asks the host.

use awsm_abi::calls::builtin;
use awsm_abi::trap::TrapCode;
use awsm_abi::vmctx::table;
use inkwell::IntPredicate::UGE;
use inkwell::values::{IntValue, PointerValue};
use wasmparser::Operator;

use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::{AliasClass, offset_pointer};

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn table(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        let number = |value: u32| self.const_i64(u64::from(value));
        match *op {
            Operator::TableGet { table } => {
                let element = self.checked_element(table, TrapCode::TableOutOfBounds)?;
                let ty = self.types.value(self.unit.module.tables[table as usize].element);
                let value = self.load(ty, element, AliasClass::TableElement)?;
                self.push(value);
            }
            Operator::TableSet { table } => {
                let value = self.pop();
                let element = self.checked_element(table, TrapCode::TableOutOfBounds)?;
                let slot = self.to_slot(value)?;
                self.store(element, slot.into(), AliasClass::TableElement)?;
            }
            Operator::TableSize { table } => {
                let length = self.table_length(table)?;
                self.push_index(length, self.unit.module.tables[table as usize].table64)?;
            }
            Operator::TableGrow { table } => {
                let wide = self.unit.module.tables[table as usize].table64;
                let table = number(table);
                let elements = self.pop_int();
                let elements = self.zext64(elements)?;
                let value = self.pop();
                let previous = self.builtin(builtin::TABLE_GROW, &[table.into(), elements.into(), value])?;
                self.push_index(previous, wide)?;
            }
            Operator::TableFill { table } => {
                let table = number(table);
                let length = self.pop_int();
                let value = self.pop();
                let start = self.pop_int();
                let (start, length) = (self.zext64(start)?, self.zext64(length)?);
                self.builtin(builtin::TABLE_FILL, &[table.into(), start.into(), value, length.into()])?;
            }
            Operator::TableCopy { dst_table, src_table } => {
                let (destination_table, source_table) = (number(dst_table), number(src_table));
                let [destination, source, length] = self.pop_indices()?;
                let slots = [destination_table, source_table, destination, source, length];
                self.builtin_void(builtin::TABLE_COPY, &slots)?;
            }
            Operator::TableInit { elem_index, table } => {
                let (table, segment) = (number(table), number(elem_index));
                let [destination, source, length] = self.pop_indices()?;
                self.builtin_void(builtin::TABLE_INIT, &[table, segment, destination, source, length])?;
            }
            Operator::ElemDrop { elem_index } => {
                let segment = number(elem_index);
                self.builtin_void(builtin::ELEM_DROP, &[segment])?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Pops an index and makes the address of that element; traps when there is none.
    pub(super) fn checked_element(&mut self, index: u32, code: TrapCode) -> Result<PointerValue<'ctx>, CompileError> {
        let element = self.pop_int();
        let element = self.zext64(element)?;
        let length = self.table_length(index)?;
        let outside = self.builder.build_int_compare(UGE, element, length, "")?;
        self.trap_if(outside, code)?;
        let record = self.context_pointer(self.unit.layout.table(index))?;
        let elements = self.at(record, table::RECORD_ELEMENTS);
        let elements = self.load(self.types.ptr.into(), elements, AliasClass::TableRecord)?.into_pointer_value();
        let bytes = self.const_i64(u64::from(table::ELEMENT_BYTES));
        let offset = self.builder.build_int_nuw_mul(element, bytes, "")?;
        Ok(offset_pointer(&self.builder, self.types.i8, elements, offset))
    }

    fn table_length(&mut self, index: u32) -> Result<IntValue<'ctx>, CompileError> {
        let record = self.context_pointer(self.unit.layout.table(index))?;
        let length = self.at(record, table::RECORD_LENGTH);
        Ok(self.load(self.types.i64.into(), length, AliasClass::TableRecord)?.into_int_value())
    }
}
