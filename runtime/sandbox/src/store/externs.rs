//! What a sandbox's instances export, and what its host makes for them to import.

use std::cell::UnsafeCell;

use awsm_abi::descriptor::ExternKind;
use awsm_abi::types::{FuncType, GlobalType, MemoryType, TableType, ValType};

use crate::error::InstantiateError;
use crate::store::memory::Reservation;
use crate::store::{GlobalCell, Store};
use crate::types;
use crate::value::{Extern, FunctionHandle, GlobalHandle, InstanceId, MemoryHandle, TableHandle, TagHandle, Value};

impl Store {
    /// A linear memory that no instance defines, to be given for an import.
    ///
    /// # Errors
    /// When a limit is reached or the system has no memory.
    pub(crate) fn new_memory(&mut self, ty: MemoryType) -> Result<MemoryHandle, InstantiateError> {
        Ok(MemoryHandle { sandbox: self.id(), index: self.add_memory(ty, Reservation::Guard)? })
    }

    /// A table that no instance defines, with `init` in every element, to be given for an import.
    ///
    /// # Errors
    /// When `init` is not of the element's type, a limit is reached or the system has no memory.
    pub(crate) fn new_table(&mut self, ty: TableType, init: Value) -> Result<TableHandle, InstantiateError> {
        self.check_value(ty.element, &init)?;
        let index = self.add_table(ty)?;
        self.tables[index as usize].elements_mut().fill(init.to_slot());
        Ok(TableHandle { sandbox: self.id(), index })
    }

    /// A global that no instance defines, to be given for an import.
    ///
    /// # Errors
    /// When `value` is not of the global's type.
    pub(crate) fn new_global(&mut self, ty: GlobalType, value: Value) -> Result<GlobalHandle, InstantiateError> {
        self.check_value(ty.value, &value)?;
        let cell = Box::new(UnsafeCell::new(value.to_slot()));
        self.globals.push(GlobalCell { cell: cell.get(), ty });
        self.host_cells.push(cell);
        Ok(GlobalHandle { sandbox: self.id(), index: self.globals.len() as u32 - 1 })
    }

    fn check_value(&self, ty: ValType, value: &Value) -> Result<(), InstantiateError> {
        if !value.matches(ty) || value.is_foreign(self.id()) {
            return Err(InstantiateError::Misuse("a value of another type, or of another sandbox"));
        }
        Ok(())
    }

    /// What an instance exports under a name.
    pub(crate) fn export(&self, instance: InstanceId, name: &str) -> Option<Extern> {
        let instance = self.instances.get(instance.index())?;
        let export = instance.module().export(instance.descriptor(), name)?;
        let (sandbox, index) = (self.id(), export.index as usize);
        Some(match export.kind {
            ExternKind::Function => Extern::Function(instance.function(sandbox, export.index)),
            ExternKind::Table => Extern::Table(TableHandle { sandbox, index: instance.tables[index] }),
            ExternKind::Memory => Extern::Memory(MemoryHandle { sandbox, index: instance.memories[index] }),
            ExternKind::Global => Extern::Global(GlobalHandle { sandbox, index: instance.globals[index] }),
            ExternKind::Tag => Extern::Tag(TagHandle { sandbox, index: instance.tags[index] }),
        })
    }

    /// The start function of an instance, to be called once before anything else of it.
    pub(crate) fn start_function(&self, instance: InstanceId) -> Option<FunctionHandle> {
        let instance = self.instances.get(instance.index())?;
        Some(instance.function(self.id(), instance.descriptor().start?))
    }

    /// The type of a function. Types that it names are given by their canonical ids.
    ///
    /// # Panics
    /// Never: a handle's type is known as long as the process lives.
    pub(crate) fn function_type(&self, function: FunctionHandle) -> FuncType {
        FuncType::clone(&types::by_id(function.type_id).expect("types are never forgotten"))
    }

    /// The value of a global.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    pub(crate) fn global_get(&self, global: GlobalHandle) -> Value {
        assert_eq!(global.sandbox, self.id(), "a handle of this sandbox");
        let GlobalCell { cell, ty } = self.globals[global.index as usize];
        // SAFETY: Cells live as long as the sandbox: in a vmctx or in `host_cells`. The guest does not run.
        self.value(ty.value, unsafe { cell.read() })
    }

    /// An element of a table; none when the table is shorter.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    pub(crate) fn table_get(&self, table: TableHandle, index: u64) -> Option<Value> {
        assert_eq!(table.sandbox, self.id(), "a handle of this sandbox");
        let table = &self.tables[table.index as usize];
        let slot = *table.elements().get(usize::try_from(index).ok()?)?;
        Some(self.value(table.ty().element, slot))
    }

    /// Number of elements of a table.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    pub(crate) fn table_len(&self, table: TableHandle) -> u64 {
        assert_eq!(table.sandbox, self.id(), "a handle of this sandbox");
        self.tables[table.index as usize].length()
    }
}
