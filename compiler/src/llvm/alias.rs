//! Which accesses may touch the same bytes: type-based alias metadata, one class for each kind of memory that generated code sees.
//!
//! Classes are siblings under one root, so that an access of one class never aliases one of another. What LLVM's own instructions (spills,
//! slots of host calls) touch carries no class and may alias anything.

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::context::Context;
use inkwell::values::{BasicMetadataValueEnum, MetadataValue};

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// The fixed part of a vmctx: never written while code runs.
    Context,
    /// A cell of a global that the instance defines.
    Global,
    /// A cell of an imported global.
    ImportedGlobal,
    /// A memory's record.
    MemoryRecord,
    /// The cell that says where the segment register leads.
    Segment,
    /// A table's record.
    TableRecord,
    /// A table's elements. Two imported tables may be one, so that all tables share the class.
    TableElement,
    /// Arguments of a call that are passed in memory.
    Arguments,
    /// Results of a call that are returned in memory.
    Results,
    /// The record of exceptions.
    ExceptionRecord,
    /// Exceptions.
    Exception,
    /// Contents of a linear memory that the instance defines.
    Memory(u32),
    /// Contents of an imported linear memory. Two imported ones may be one.
    ImportedMemory,
}

/// Whether a class of that name is one of linear memory's.
pub(super) fn is_memory_class(name: &str) -> bool {
    name == format!("{:?}", Access::ImportedMemory) || (name.starts_with("Memory(") && name.ends_with(')'))
}

/// Tags, made when first asked for.
pub(super) struct AliasTags<'ctx> {
    context: &'ctx Context,
    root: MetadataValue<'ctx>,
    tags: RefCell<HashMap<Access, MetadataValue<'ctx>>>,
}

impl<'ctx> AliasTags<'ctx> {
    pub(super) fn new(context: &'ctx Context) -> AliasTags<'ctx> {
        let root = context.metadata_node(&[context.metadata_string("awsm").into()]);
        AliasTags { context, root, tags: RefCell::default() }
    }

    pub(super) fn tag(&self, access: Access) -> MetadataValue<'ctx> {
        *self.tags.borrow_mut().entry(access).or_insert_with(|| {
            let offset: BasicMetadataValueEnum<'ctx> = self.context.i64_type().const_zero().into();
            let name = self.context.metadata_string(&format!("{access:?}"));
            let class = self.context.metadata_node(&[name.into(), self.root.into(), offset]);
            self.context.metadata_node(&[class.into(), class.into(), offset])
        })
    }
}
