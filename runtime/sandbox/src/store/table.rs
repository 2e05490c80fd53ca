//! Tables: an array of 16-byte slots, and the record through which generated code finds it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use awsm_abi::limits::TABLE_ELEMENTS_MAX;
use awsm_abi::types::TableType;
use awsm_abi::vmctx;

use crate::limits::KEEP_RESIDENT_TABLE_BYTES;
use crate::sys::page::{Access, Pages, page_bytes};
use crate::value::Slot;

/// A table. Its elements never move, since address space for all that it may grow to is reserved.
#[derive(Debug)]
pub(crate) struct Table {
    pages: Pages,
    ty: TableType,
    elements_max: u64,
    record: Box<Record>,
}

/// What generated code reads ([`awsm_abi::vmctx::table`]). At a fixed address.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Record {
    elements: AtomicPtr<Slot>,
    length: AtomicU64,
}

const _: () = {
    assert!(std::mem::offset_of!(Record, elements) == vmctx::table::RECORD_ELEMENTS as usize);
    assert!(std::mem::offset_of!(Record, length) == vmctx::table::RECORD_LENGTH as usize);
    assert!(size_of::<Slot>() == vmctx::table::ELEMENT_BYTES as usize);
};

/// What a table begins as.
#[derive(Clone, Debug)]
pub(crate) struct TableImage(Arc<[Slot]>);

impl TableImage {
    /// Size of the table.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.0) as u64
    }
}

impl Table {
    /// A table of `ty.elements_min` null elements, that will never have more than `limit`.
    pub(crate) fn new(ty: TableType, limit: u64) -> io::Result<Table> {
        let elements_max = ty.elements_max.unwrap_or(u64::MAX).min(TABLE_ELEMENTS_MAX).min(limit);
        if ty.elements_min > elements_max {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let pages = Pages::reserve(elements_max as usize * size_of::<Slot>(), Access::ReadWrite)?;
        let record = Record { elements: AtomicPtr::new(pages.base().as_ptr().cast()), length: AtomicU64::new(ty.elements_min) };
        Ok(Table { pages, ty, elements_max, record: Box::new(record) })
    }

    /// What it takes of the process's room.
    pub(crate) fn room(&self) -> [usize; 2] {
        self.pages.room()
    }

    /// Its type as declared.
    pub(crate) fn ty(&self) -> &TableType {
        &self.ty
    }

    /// Number of elements.
    pub(crate) fn length(&self) -> u64 {
        // Relaxed: the guest runs on the thread that owns the sandbox.
        self.record.length.load(Ordering::Relaxed)
    }

    /// Address of the record.
    pub(crate) fn record(&self) -> *const Record {
        &raw const *self.record
    }

    /// Its elements.
    pub(crate) fn elements(&self) -> &[Slot] {
        // SAFETY: That many slots are reserved, readable and initialised (to zero); the guest does not run while the sandbox is borrowed.
        unsafe { std::slice::from_raw_parts(self.pages.base().as_ptr().cast(), self.length() as usize) }
    }

    /// Its elements, to be changed.
    pub(crate) fn elements_mut(&mut self) -> &mut [Slot] {
        // SAFETY: As for `elements`, and writable; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.pages.base().as_ptr().cast(), self.length() as usize) }
    }

    /// The elements of a checked range; none when it is out of bounds.
    pub(crate) fn range_mut(&mut self, start: u64, length: u64) -> Option<&mut [Slot]> {
        let end = start.checked_add(length)?;
        self.elements_mut().get_mut(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Whether it may have that many elements more.
    pub(crate) fn may_grow(&self, elements: u64) -> bool {
        self.length().checked_add(elements).is_some_and(|after| after <= self.elements_max)
    }

    /// `table.grow`: the previous number of elements, or none when it cannot grow that much.
    pub(crate) fn grow(&mut self, elements: u64, value: Slot) -> Option<u64> {
        let before = self.length();
        let after = before.checked_add(elements).filter(|&after| after <= self.elements_max)?;
        self.record.length.store(after, Ordering::Relaxed);
        if value != Slot::default() {
            self.elements_mut()[before as usize..].fill(value);
        }
        Some(before)
    }

    /// What it holds now.
    pub(crate) fn image(&self) -> TableImage {
        TableImage(self.elements().into())
    }

    /// Makes it what `image` says. Elements beyond the length are zero before and after.
    pub(crate) fn restore(&mut self, image: &TableImage) -> io::Result<()> {
        let (before, after) = (self.length() as usize, image.0.len());
        let kept = (KEEP_RESIDENT_TABLE_BYTES / size_of::<Slot>()).max(after).min(before);
        self.elements_mut()[after.min(kept)..kept].fill(Slot::default());
        if kept < before {
            let page = page_bytes();
            let border = (kept * size_of::<Slot>()).next_multiple_of(page);
            self.elements_mut()[kept..before.min(border / size_of::<Slot>())].fill(Slot::default());
            let end = (before * size_of::<Slot>()).next_multiple_of(page);
            // SAFETY: `&mut self` excludes references into the range.
            unsafe { self.pages.discard(border.min(end)..end)? };
        }
        self.record.length.store(after as u64, Ordering::Relaxed);
        self.elements_mut().copy_from_slice(&image.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use awsm_abi::types::ValType;

    #[test]
    fn restored_tables_are_as_their_image_and_null_beyond() {
        let ty = TableType { element: ValType::EXTERNREF, elements_min: 3, elements_max: None, table64: false };
        let mut table = Table::new(ty, 1_000_000).unwrap();
        table.elements_mut()[1] = Slot::from_bits(7);
        let image = table.image();
        for grown in [0, 1, 100, 20_000, 500_000] {
            assert_eq!(table.grow(grown, Slot::from_bits(9)), Some(3));
            table.elements_mut().fill(Slot::from_bits(5));
            table.restore(&image).unwrap();
            assert_eq!(table.elements(), [0, 7, 0].map(Slot::from_bits));
            assert_eq!(table.grow(500_000, Slot::default()), Some(3));
            assert!(table.elements()[3..].iter().all(|slot| slot.bits() == 0), "after growing by {grown}");
            table.restore(&image).unwrap();
        }
        assert_eq!(table.grow(1_000_000, Slot::default()), None);
        assert_eq!(table.grow(u64::MAX, Slot::default()), None);
    }
}
