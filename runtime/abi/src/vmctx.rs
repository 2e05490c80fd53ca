//! The memory that generated code reads through `vmctx`, the first argument of every guest function: one per instance.
//!
//! ```text
//!   0  host_call        code the guest calls to reach the host (crate::calls)
//!   8  sandbox          the runtime's own record; generated code never reads it
//!  16  instances        -> array of the vmctx of every instance in the sandbox
//!  24  instance_index   u32: this instance's place in that array; u32 of padding
//!  32  segment          -> the sandbox's cell for what %gs begins with (crate::types::Bounds::Segment)
//!  40  segment_base     what it has to begin with while this instance's code runs; null where that is all the same
//!  48  arguments        slots for parameters that find no register (crate::calls): as many as any type of the module needs
//!      memories         per memory  { base: address, record: -> MemoryRecord }              imported first, then defined
//!      tables           per table   -> TableRecord                                          imported first, then defined
//!      functions        per imported function { code: address, vmctx: -> callee's vmctx, type id: u32, u32 of padding }
//!      imported globals per imported global -> its 16-byte cell
//!      exceptions       where there are tags: -> the sandbox's record of its exceptions (crate::exceptions)
//!      type ids         per function type u32: its canonical id in this process
//!      tags             per tag u32: its number in the sandbox                              imported first, then defined
//!      globals          per defined global a 16-byte cell, aligned to 16
//! ```
//!
//! Everything but the arguments and the cells of globals is written before the first instruction runs and never changes while the instance lives, so that
//! loads of it may be marked invariant. What can change (a memory's length, a table's elements and length) is behind a pointer, in a
//! record. Cells hold values as [slots](crate::calls) do.

/// Offset of `host_call`.
pub const HOST_CALL: u32 = 0;
/// Offset of `sandbox`.
pub const SANDBOX: u32 = 8;
/// Offset of `instances`.
pub const INSTANCES: u32 = 16;
/// Offset of `instance_index`.
pub const INSTANCE_INDEX: u32 = 24;
/// Offset of the pointer to the cell that says where %gs leads: to a memory's first byte. The runtime alone changes it, when code asks for that
/// ([`crate::calls::builtin::SEGMENT`]).
pub const SEGMENT: u32 = 32;
/// Offset of what that cell has to hold while code of this instance runs; null where it has no memory that is reached so.
pub const SEGMENT_BASE: u32 = 40;
/// Size of the part that every instance has.
pub const FIXED_BYTES: u32 = 48;
/// Offset of the arguments, the same in every vmctx: callers of other modules write there.
pub const ARGUMENTS: u32 = FIXED_BYTES;

/// A memory's entry: `{ base, record }`.
pub mod memory {
    /// Size of an entry.
    pub const BYTES: u32 = 16;
    /// Offset of the address of the memory's first byte, which never changes.
    pub const BASE: u32 = 0;
    /// Offset of the pointer to the memory's record.
    pub const RECORD: u32 = 8;
    /// Within the record: the memory's length in bytes, u64. Grows only.
    pub const RECORD_LENGTH: u32 = 0;
}

/// A table's record, behind the pointer in its entry.
pub mod table {
    /// Size of an entry: the pointer to the record.
    pub const BYTES: u32 = 8;
    /// Within the record: address of the first element.
    pub const RECORD_ELEMENTS: u32 = 0;
    /// Within the record: number of elements, u64.
    pub const RECORD_LENGTH: u32 = 8;
    /// Size of an element: a slot holding the reference.
    pub const ELEMENT_BYTES: u32 = 16;
}

/// An imported function's entry: `{ code, vmctx }`.
pub mod function {
    /// Size of an entry.
    pub const BYTES: u32 = 24;
    /// Offset of the address of the callee's code.
    pub const CODE: u32 = 0;
    /// Offset of the callee's vmctx.
    pub const VMCTX: u32 = 8;
    /// Offset of the canonical id of the callee's type, u32: a subtype of the import's.
    pub const TYPE_ID: u32 = 16;
}

/// A reference to a function, as table elements, globals, slots and generated code hold it: 16 bytes. All zero is null. It names an
/// instance by index, not by address, so that a table's image is valid in every sandbox of the same artifact.
pub mod funcref {
    /// Offset of the address of the code, 8 bytes; zero means null.
    pub const CODE: u32 = 0;
    /// Offset of the canonical id of the function's type, u32.
    pub const TYPE_ID: u32 = 8;
    /// Offset of the index of the function's instance, u32: its vmctx is `instances[index]`.
    pub const INSTANCE: u32 = 12;
}

/// How many of each thing an instance has; the rest of its vmctx's layout follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The most parameters that any of its types passes in memory.
    pub arguments: u32,
    /// Memories, imported and defined.
    pub memories: u32,
    /// Tables, imported and defined.
    pub tables: u32,
    /// Imported functions.
    pub imported_functions: u32,
    /// Imported globals.
    pub imported_globals: u32,
    /// Function types.
    pub types: u32,
    /// Tags, imported and defined.
    pub tags: u32,
    /// Defined globals.
    pub globals: u32,
}

/// Offsets into one instance's vmctx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    counts: Counts,
    memories: u32,
    tables: u32,
    functions: u32,
    imported_globals: u32,
    exceptions: u32,
    type_ids: u32,
    tags: u32,
    globals: u32,
    size: u32,
}

impl Layout {
    /// Lays out the vmctx of an instance with `counts`; none when it would be larger than [`crate::limits::VMCTX_BYTES_MAX`].
    #[must_use]
    pub fn new(counts: Counts) -> Option<Layout> {
        let after = |at: u32, count: u32, bytes: u32| at.checked_add(count.checked_mul(bytes)?);
        let memories = after(ARGUMENTS, counts.arguments, crate::calls::SLOT_BYTES)?;
        let tables = after(memories, counts.memories, memory::BYTES)?;
        let functions = after(tables, counts.tables, table::BYTES)?;
        let imported_globals = after(functions, counts.imported_functions, function::BYTES)?;
        let exceptions = after(imported_globals, counts.imported_globals, 8)?;
        let type_ids = after(exceptions, u32::from(counts.tags > 0), 8)?;
        let tags = after(type_ids, counts.types, 4)?;
        let globals = after(tags, counts.tags, 4)?.checked_next_multiple_of(16)?;
        let size = after(globals, counts.globals, 16)?;
        (size <= crate::limits::VMCTX_BYTES_MAX).then_some(Layout {
            counts,
            memories,
            tables,
            functions,
            imported_globals,
            exceptions,
            type_ids,
            tags,
            globals,
            size,
        })
    }

    /// What it was laid out for.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Size of the vmctx in bytes, a multiple of 16; it must be aligned to 16.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Offset of a memory's entry. `index` counts imported memories first.
    #[must_use]
    pub const fn memory(&self, index: u32) -> u32 {
        debug_assert!(index < self.counts.memories);
        self.memories + index * memory::BYTES
    }

    /// Offset of a table's entry. `index` counts imported tables first.
    #[must_use]
    pub const fn table(&self, index: u32) -> u32 {
        debug_assert!(index < self.counts.tables);
        self.tables + index * table::BYTES
    }

    /// Offset of an imported function's entry.
    #[must_use]
    pub const fn imported_function(&self, index: u32) -> u32 {
        debug_assert!(index < self.counts.imported_functions);
        self.functions + index * function::BYTES
    }

    /// Offset of the pointer to an imported global's cell.
    #[must_use]
    pub const fn imported_global(&self, index: u32) -> u32 {
        debug_assert!(index < self.counts.imported_globals);
        self.imported_globals + index * 8
    }

    /// Offset of a function type's canonical id.
    #[must_use]
    pub const fn type_id(&self, index: u32) -> u32 {
        debug_assert!(index < self.counts.types);
        self.type_ids + index * 4
    }

    /// Offset of the pointer to the sandbox's record of its exceptions.
    #[must_use]
    pub const fn exceptions(&self) -> u32 {
        debug_assert!(self.counts.tags > 0);
        self.exceptions
    }

    /// Offset of a tag's number. `index` counts imported tags first.
    #[must_use]
    pub const fn tag(&self, index: u32) -> u32 {
        debug_assert!(index < self.counts.tags);
        self.tags + index * 4
    }

    /// Offset of a defined global's cell. `index` counts defined globals only.
    #[must_use]
    pub const fn global(&self, index: u32) -> u32 {
        debug_assert!(index < self.counts.globals);
        self.globals + index * 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_and_cells_are_aligned() {
        let counts = Counts {
            memories: 2,
            tables: 1,
            imported_functions: 3,
            imported_globals: 1,
            types: 3,
            globals: 2,
            ..Counts::default()
        };
        let more = Layout::new(Counts { arguments: 3, ..counts }).unwrap();
        assert_eq!((more.memory(0), more.global(0), more.size()), (48 + 48, 192 + 48, 224 + 48));
        let layout = Layout::new(counts).unwrap();
        assert_eq!(layout.memory(0), 48);
        assert_eq!(layout.table(0), 80);
        assert_eq!(layout.imported_function(0), 88);
        assert_eq!(layout.imported_global(0), 160);
        assert_eq!(layout.type_id(2), 176);
        assert_eq!(layout.global(0), 192);
        assert_eq!(layout.size(), 224);
        let tags = Layout::new(Counts { tags: 2, ..counts }).unwrap();
        assert_eq!((tags.exceptions(), tags.type_id(0), tags.tag(1), tags.global(0)), (168, 176, 192, 208));
    }

    #[test]
    fn absurd_counts_have_no_layout() {
        assert_eq!(Layout::new(Counts { globals: u32::MAX, ..Counts::default() }), None);
        assert_eq!(Layout::new(Counts { types: 1 << 30, ..Counts::default() }), None);
    }
}
