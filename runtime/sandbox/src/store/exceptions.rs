//! A sandbox's exceptions: the memory in which generated code makes them ([`awsm_abi::exceptions`]), and finding room in it.
//!
//! ```text
//!   base                                next      end                  base + EXCEPTION_BYTES
//!   | exception | gap | exception | ... | free    | exception | gap ...  |
//! ```
//!
//! From `next` to `end` generated code takes what it needs. Everything else is exceptions and *gaps*, which begin with a header like that of an
//! exception, so that the whole can be walked. Exceptions are never freed. When the free part is too small, the next gap that is large enough
//! takes its place; when there is none, those exceptions are kept to which an address leads from the stack, from globals, from tables, or from
//! another that is kept, and all others become gaps. The stack is read as it is, as if each word could be an address: that keeps perhaps a few too
//! many, and needs nothing of generated code. That guests forge no addresses is what validation says: to a module they are opaque.

use std::io;
use std::ops::Range;

use awsm_abi::exceptions as object;

use crate::limits::EXCEPTION_BYTES;
use crate::sys::page::{Access, Pages};
use crate::value::Slot;

/// Size of a header, and of a slot.
const SLOT: usize = size_of::<Slot>();

/// Instead of a tag's number: this is a gap.
const GAP: u32 = u32::MAX;

const _: () = assert!(object::VALUES as usize == SLOT && object::TAG == 0 && object::SLOTS == 4 && object::OFFSET == 8);

/// The exceptions of a sandbox.
#[derive(Debug)]
pub(crate) struct Exceptions {
    pages: Pages,
    record: Box<Record>,
}

/// What generated code reads and writes. At a fixed address.
#[derive(Debug, Default)]
#[repr(C)]
struct Record {
    next: u64,
    end: u64,
}

const _: () = {
    assert!(std::mem::offset_of!(Record, next) == object::RECORD_NEXT as usize);
    assert!(std::mem::offset_of!(Record, end) == object::RECORD_END as usize);
};

/// Where an exception was thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thrown {
    pub(crate) instance: u32,
    /// In bytes from the start of its WebAssembly module.
    pub(crate) offset: u32,
}

/// An exception or a gap: which slots.
#[derive(Clone, Debug)]
struct Piece {
    slots: Range<usize>,
    is_kept: bool,
}

impl Exceptions {
    pub(crate) fn new() -> io::Result<Exceptions> {
        let mut exceptions = Exceptions { pages: Pages::reserve(EXCEPTION_BYTES, Access::ReadWrite)?, record: Box::default() };
        exceptions.clear();
        Ok(exceptions)
    }

    /// Forgets all exceptions.
    pub(crate) fn clear(&mut self) {
        (self.record.next, self.record.end) = (self.base(), self.base() + EXCEPTION_BYTES as u64);
    }

    /// Address of the record.
    pub(crate) fn record(&self) -> *const u8 {
        (&raw const *self.record).cast()
    }

    fn base(&self) -> u64 {
        self.pages.addresses().start as u64
    }

    fn slots(&self) -> &[Slot] {
        // SAFETY: That many bytes are readable and, zeroed or written, slots; the guest does not run while the sandbox is borrowed.
        unsafe { std::slice::from_raw_parts(self.pages.base().as_ptr().cast(), EXCEPTION_BYTES / SLOT) }
    }

    fn slots_mut(&mut self) -> &mut [Slot] {
        // SAFETY: As for `slots`, and writable; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.pages.base().as_ptr().cast(), EXCEPTION_BYTES / SLOT) }
    }

    /// The slot in which an address lies.
    fn slot_of(&self, address: u64) -> Option<usize> {
        let bytes = address.checked_sub(self.base()).filter(|&bytes| bytes < EXCEPTION_BYTES as u64)?;
        Some(bytes as usize / SLOT)
    }

    /// Where an exception was thrown.
    pub(crate) fn thrown(&self, exception: u64) -> Option<Thrown> {
        let header = self.slots()[self.slot_of(exception)?].bits();
        Some(Thrown { offset: (header >> (8 * object::OFFSET)) as u32, instance: (header >> (8 * object::INSTANCE)) as u32 })
    }

    /// Makes `next` to `end` at least `bytes` long. `roots` calls what it is given with all words that may be addresses. False when there is no room,
    /// even so.
    pub(crate) fn make_room(&mut self, bytes: u64, roots: impl FnOnce(&mut dyn FnMut(u64))) -> bool {
        let wanted = (bytes as usize).div_ceil(SLOT);
        let Some(free) = self.close() else { return false };
        if self.open_gap(free, wanted) {
            return true;
        }
        self.collect(roots).is_some() && self.open_gap(0, wanted)
    }

    /// Makes the free part a gap; the slot at which it ended.
    fn close(&mut self) -> Option<usize> {
        let bytes = self.record.next.checked_sub(self.base())?;
        let (next, end) = (bytes as usize / SLOT, self.record.end.checked_sub(self.base())? as usize / SLOT);
        if next < end {
            *self.slots_mut().get_mut(next)? = gap(end - next);
        }
        self.record.next = self.record.end;
        Some(end)
    }

    /// The piece that begins at a slot, and whether it is a gap; none at the end, and where there is no sense.
    fn piece(&self, at: usize) -> Option<(Range<usize>, bool)> {
        let header = self.slots().get(at)?.bits();
        let end = at.checked_add(1)?.checked_add((header >> (8 * object::SLOTS)) as u32 as usize)?;
        (end <= EXCEPTION_BYTES / SLOT).then_some((at..end, header as u32 == GAP))
    }

    /// Makes the first gap of `wanted` slots behind slot `at` the free part.
    fn open_gap(&mut self, mut at: usize, wanted: usize) -> bool {
        while let Some((slots, is_gap)) = self.piece(at) {
            if is_gap && slots.len() >= wanted {
                let address = |slot: usize| self.base() + (slot * SLOT) as u64;
                (self.record.next, self.record.end) = (address(slots.start), address(slots.end));
                return true;
            }
            at = slots.end;
        }
        false
    }

    /// Makes gaps of exceptions that nothing leads to. None when it does not find its way.
    fn collect(&mut self, roots: impl FnOnce(&mut dyn FnMut(u64))) -> Option<()> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < EXCEPTION_BYTES / SLOT {
            let (slots, is_gap) = self.piece(at)?;
            at = slots.end;
            if !is_gap {
                pieces.push(Piece { slots, is_kept: false });
            }
        }
        let mut pending = Vec::new();
        roots(&mut |word| self.keep(word, &mut pieces, &mut pending));
        while let Some(slots) = pending.pop() {
            for slot in slots.skip(1) {
                let bits = self.slots()[slot].bits();
                self.keep(bits as u64, &mut pieces, &mut pending);
                self.keep((bits >> 64) as u64, &mut pieces, &mut pending);
            }
        }
        let mut at = 0;
        let kept = pieces.into_iter().filter(|piece| piece.is_kept).map(|piece| piece.slots);
        for slots in kept.chain(std::iter::once(EXCEPTION_BYTES / SLOT..EXCEPTION_BYTES / SLOT)) {
            if at < slots.start {
                self.slots_mut()[at] = gap(slots.start - at);
            }
            at = slots.end;
        }
        Some(())
    }

    /// Keeps the exception in which an address lies.
    fn keep(&self, word: u64, pieces: &mut [Piece], pending: &mut Vec<Range<usize>>) {
        let Some(slot) = self.slot_of(word) else { return };
        let after = pieces.partition_point(|piece| piece.slots.start <= slot);
        let Some(piece) = after.checked_sub(1).and_then(|index| pieces.get_mut(index)) else { return };
        if piece.slots.contains(&slot) && !std::mem::replace(&mut piece.is_kept, true) {
            pending.push(piece.slots.clone());
        }
    }
}

/// The header of a gap of that many slots.
fn gap(slots: usize) -> Slot {
    Slot::from_bits(u128::from(GAP) | (slots as u128 - 1) << (8 * object::SLOTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As generated code does it.
    fn throw(exceptions: &mut Exceptions, values: &[u64], roots: &[u64]) -> Option<u64> {
        let bytes = u64::from(object::bytes(values.len() as u32));
        if exceptions.record.end - exceptions.record.next < bytes
            && !exceptions.make_room(bytes, |each| roots.iter().for_each(|&root| each(root)))
        {
            return None;
        }
        let address = exceptions.record.next;
        exceptions.record.next += bytes;
        let at = exceptions.slot_of(address).unwrap();
        exceptions.slots_mut()[at] = Slot::from_bits(7 | (values.len() as u128) << 32 | (address as u128) << 64);
        for (i, &value) in values.iter().enumerate() {
            exceptions.slots_mut()[at + 1 + i] = Slot::from_bits(u128::from(value));
        }
        Some(address)
    }

    #[test]
    fn what_is_reachable_stays_and_the_rest_is_used_again() {
        let mut exceptions = Exceptions::new().unwrap();
        let inner = throw(&mut exceptions, &[1, 2, 3], &[]).unwrap();
        let outer = throw(&mut exceptions, &[inner], &[]).unwrap();
        let kept = |exceptions: &Exceptions| {
            let (inner, outer) = (exceptions.slot_of(inner).unwrap(), exceptions.slot_of(outer).unwrap());
            exceptions.slots()[inner..inner + 4].iter().chain(&exceptions.slots()[outer..outer + 2]).copied().collect::<Vec<_>>()
        };
        let before = kept(&exceptions);
        let mut seen = std::collections::HashSet::new();
        for i in 0..100_000u64 {
            // An address into the middle of the outer one, which leads to the inner one.
            let values = vec![i; (i % 40) as usize];
            seen.insert(throw(&mut exceptions, &values, &[outer + 20, 5, u64::MAX]).unwrap());
        }
        assert!(!seen.contains(&inner) && !seen.contains(&outer));
        assert_eq!(kept(&exceptions), before);
        let end = exceptions.base() + EXCEPTION_BYTES as u64;
        assert!(seen.iter().all(|&address| (exceptions.base()..end).contains(&address)));
    }

    #[test]
    fn when_all_are_reachable_there_is_no_room_until_one_is_not() {
        let mut exceptions = Exceptions::new().unwrap();
        let mut alive = Vec::new();
        while let Some(address) = throw(&mut exceptions, &[0], &alive) {
            alive.push(address);
            assert!(alive.len() <= EXCEPTION_BYTES / 32);
        }
        assert_eq!(alive.len(), EXCEPTION_BYTES / 32);
        assert_eq!(throw(&mut exceptions, &[], &alive), None);
        let freed = alive.remove(1000);
        assert_eq!(throw(&mut exceptions, &[0, 0], &alive), None, "too large for the gap");
        assert_eq!(throw(&mut exceptions, &[0], &alive), Some(freed));
        exceptions.clear();
        assert_eq!(throw(&mut exceptions, &[0; 1000], &[]), Some(exceptions.base()));
    }
}
