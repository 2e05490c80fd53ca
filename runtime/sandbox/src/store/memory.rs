//! Linear memories: reserved address space of which the beginning is accessible.
//!
//! ```text
//!   base                 base + length            base + reservation
//!   | accessible         | inaccessible: growth, then guard          |
//!     kept resident ...    every access here is an out-of-bounds trap
//! ```
//!
//! What of the accessible part can be written to, and what a reset therefore has to look at, is in `writable.rs`. The base never moves. A memory
//! that guarded code may use has a reservation of [`GUARD_RESERVATION_BYTES`]: whatever address such code forms lies within.
//!
//! What isolation rests on, here:
//!
//! * **All of the reservation is this memory's**, from the first page of the mapping to its end. An unchecked access is base + 32-bit index + 32-bit
//!   offset + width: below [`GUARD_RESERVATION_BYTES`]. One page less, and a guest reaches what the system mapped next to it.
//! * **Behind the length nothing is accessible** with [`Reservation::Guard`]. The length in the record is for checked code and for the host; the pages are
//!   for unchecked code. `set_length` changes the pages first when it grows and says so after, and makes them inaccessible when it shrinks.
//! * **A shrunk and grown memory is zero.** `restore` empties what it makes inaccessible or writes the image over it: what was behind a shorter length is
//!   another request's.
//! * **The record and the state of protection are boxed**, since generated code and the handler of faults know them by address, and memories are moved.
//! * **Code outside of this file never writes without [`Memory::slice_mut`]**: pages outside the spans are read-only, and a fault in host code is no guest's, so that it
//!   would end the process.

use std::cell::UnsafeCell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use awsm_abi::limits::{GUARD_RESERVATION_BYTES, MEMORY32_PAGES_MAX, MEMORY64_BYTES_MAX, PAGE_BYTES};
use awsm_abi::types::{Bounds, MemoryType};

use crate::budget::Share;
use crate::limits::KEEP_RESIDENT_BYTES;
use crate::store::memory_image::MemoryImage;
use crate::store::spans::{Span, Spans};
use crate::store::writable::{AddressRange, Writable};
use crate::sys::page::{Access, Pages, page_bytes};

/// How much address space a memory has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// What code without checks needs.
    Guard,
    /// What checked code needs: the memory's largest size and a guard page.
    Checked,
}

impl Reservation {
    /// What code with these bounds checks needs.
    pub(crate) fn for_bounds(bounds: Bounds) -> Reservation {
        match bounds {
            Bounds::Software => Reservation::Checked,
            Bounds::Guard | Bounds::Segment | Bounds::None => Reservation::Guard,
        }
    }

    /// For the message that there is none.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Reservation::Guard => {
                "a memory that code does not check, which takes 8 GiB of address space (compiled with `--bounds software`, what the memory may grow to)"
            }
            Reservation::Checked => "a memory",
        }
    }
}

/// Pages that are zero, for the next memory of which an image is taken: many functions are mostly loaded one after the other, and new pages cost 7 us.
static SCRATCH: Mutex<Option<Pages>> = Mutex::new(None);
/// The size of those.
const SCRATCH_BYTES: usize = 2 << 20;

fn scratch() -> MutexGuard<'static, Option<Pages>> {
    SCRATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How large a memory may become, and the address space for that.
#[derive(Clone, Copy, Debug)]
struct Size {
    reservation: Reservation,
    bytes_max: u64,
    reserved: usize,
}

impl Size {
    fn of(ty: MemoryType, reservation: Reservation, limit: u64) -> io::Result<Size> {
        // No guard is wide enough for 64-bit addresses: code that uses such a memory checks them.
        let (reservation, most) =
            if ty.memory64 { (Reservation::Checked, MEMORY64_BYTES_MAX / PAGE_BYTES) } else { (reservation, MEMORY32_PAGES_MAX) };
        let pages_max = ty.pages_max.unwrap_or(u64::MAX).min(most);
        let bytes_max = pages_max.saturating_mul(PAGE_BYTES).min(limit / PAGE_BYTES * PAGE_BYTES);
        let reserved = match reservation {
            Reservation::Guard => GUARD_RESERVATION_BYTES,
            Reservation::Checked => bytes_max.checked_add(PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?,
        };
        let reserved = usize::try_from(reserved).ok().and_then(|reserved| reserved.checked_next_multiple_of(page_bytes()));
        Ok(Size { reservation, bytes_max, reserved: reserved.ok_or(io::ErrorKind::OutOfMemory)? })
    }
}

/// A linear memory.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(super) pages: Pages,
    ty: MemoryType,
    reservation: Reservation,
    /// Bytes of address space that code needs which uses it.
    reserved: usize,
    /// Most bytes it may ever have: by its type and by its address space.
    bytes_max: u64,
    /// What generated code reads: the length in bytes ([`awsm_abi::vmctx::memory`]). At a fixed address.
    record: Box<AtomicU64>,
    /// At a fixed address; while the guest runs, the handler of faults changes it.
    pub(super) writable: Box<UnsafeCell<Writable>>,
    /// Resets since it was made.
    resets: u32,
    /// The reset at which the spans are learned anew if they are large, and how many resets after that the next time.
    pub(super) learn_at: u32,
    pub(super) learn_every: u32,
    /// How many [additions](Writable::added) to the spans there were when the image that is shared was told of them, for new sandboxes.
    pub(super) told: u32,
}

impl Memory {
    /// A memory of `ty.pages_min` pages of zero, that will never have more than `limit` bytes; in pages of `spare`, inaccessible ones, if there are some of the
    /// size that it needs.
    pub(crate) fn of(ty: MemoryType, reservation: Reservation, limit: u64, spare: &mut Vec<Pages>) -> io::Result<Memory> {
        let size = Size::of(ty, reservation, limit)?;
        let pages = match spare.iter().position(|pages| pages.bytes() == size.reserved) {
            Some(at) => spare.swap_remove(at),
            None => {
                let pages = Pages::reserve(size.reserved, Access::None)?;
                pages.refuse_huge_pages();
                pages
            }
        };
        Memory::in_pages(ty, size, pages, 0)
    }

    /// The same of which no code is ever to run: it has address space for its first pages alone, and is not to grow.
    pub(crate) fn for_image(ty: MemoryType, reservation: Reservation, limit: u64) -> io::Result<Memory> {
        let size = Size::of(ty, reservation, limit)?;
        let bytes = ty.pages_min.checked_mul(PAGE_BYTES).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
        let spare = if bytes <= SCRATCH_BYTES { scratch().take() } else { None };
        let pages = spare.map_or_else(|| Pages::reserve(bytes.max(SCRATCH_BYTES), Access::ReadWrite), Ok)?;
        pages.refuse_huge_pages();
        Memory::in_pages(ty, size, pages, bytes)
    }

    /// Ends one that was made [for an image](Self::for_image), and keeps its pages for the next.
    pub(crate) fn keep_scratch(self) {
        let pages = self.pages;
        // SAFETY: There is no reference into a memory that is being taken apart.
        if pages.bytes() == SCRATCH_BYTES && unsafe { pages.discard(0..SCRATCH_BYTES) }.is_ok() {
            scratch().get_or_insert(pages);
        }
    }

    /// In pages of which the first `accessible` bytes can be written to.
    fn in_pages(ty: MemoryType, size: Size, pages: Pages, accessible: usize) -> io::Result<Memory> {
        let Size { reservation, bytes_max, reserved } = size;
        let base = pages.base().as_ptr() as usize;
        let mut memory = Memory {
            pages,
            ty,
            reservation,
            reserved,
            bytes_max,
            record: Box::new(AtomicU64::new(0)),
            writable: Box::new(UnsafeCell::new(Writable::new(base, accessible))),
            resets: 0,
            learn_at: 0,
            learn_every: LEARN_EVERY_MIN,
            told: NOT_TOLD,
        };
        let bytes = ty.pages_min.checked_mul(PAGE_BYTES).filter(|&bytes| bytes <= bytes_max);
        memory.set_length(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        Ok(memory)
    }

    /// Its address space, emptied and inaccessible; none when the system refuses.
    pub(crate) fn into_pages(mut self) -> Option<Pages> {
        let &mut Writable { accessible, shared, .. } = self.writable.get_mut();
        if shared.end > 0 {
            // Discarded, the pages of the file would be there again: one template's in the memory of another. Nothing of the file may stay.
            // SAFETY: There is no reference into a memory that is being taken apart.
            let emptied = unsafe { self.pages.reset(0..accessible) };
            self.pages.refuse_huge_pages();
            return emptied.is_ok().then_some(self.pages);
        }
        // SAFETY: As above.
        let emptied = unsafe { self.pages.discard(0..accessible).and_then(|()| self.pages.protect(0..accessible, Access::None)) };
        emptied.is_ok().then_some(self.pages)
    }

    /// What it is, for the message that there is none.
    pub(crate) fn what(&self) -> &'static str {
        self.reservation.what()
    }

    /// What it takes of the process's room, once code is to run.
    pub(crate) fn room(&self) -> [usize; 2] {
        [self.reserved, Pages::MAPPINGS]
    }

    /// Its type as declared.
    pub(crate) fn ty(&self) -> &MemoryType {
        &self.ty
    }

    /// Whether code with these bounds checks may use it.
    pub(crate) fn suits(&self, bounds: Bounds) -> bool {
        self.reservation == Reservation::Guard || Reservation::for_bounds(bounds) == Reservation::Checked
    }

    /// Whether the next reset knows what it has to look at: not before the first, nor where the process has no mappings left.
    pub(crate) fn is_protected(&mut self) -> bool {
        self.writable.get_mut().protected
    }

    /// Whether a write was refused since the last reset, because the budget had nothing left for a copy of a shared page.
    pub(crate) fn was_refused(&self) -> bool {
        self.protection().refused
    }

    /// What is reserved for copies of shared pages.
    pub(crate) fn private_bytes(&self) -> u64 {
        self.protection().reserved_bytes()
    }

    fn protection(&self) -> &Writable {
        // SAFETY: Beside `&mut self`, only the handler of faults changes it, while the guest runs: not while the sandbox is borrowed.
        unsafe { &*self.writable.get() }
    }

    /// Length in bytes.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        // Relaxed: the guest runs on the thread that owns the sandbox.
        self.record.load(Ordering::Relaxed)
    }

    /// Address of the first byte.
    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        self.pages.base().as_ptr()
    }

    /// Address of the record.
    pub(crate) fn record(&self) -> *const AtomicU64 {
        &raw const *self.record
    }

    /// Where the state of its protection lies.
    pub(crate) fn writable_address(&self) -> usize {
        self.writable.get().addr()
    }

    /// Address of the first byte that a run is known to write to, or else of the first of all.
    pub(crate) fn first_written(&mut self) -> usize {
        let first = self.writable.get_mut().spans.as_slice().first().map_or(0, |span| span.start);
        self.base().addr() + first
    }

    /// Everything that belongs to it, accessible or not, and how its pages are protected.
    pub(crate) fn addresses(&self) -> AddressRange {
        let addresses = self.pages.addresses();
        AddressRange { start: addresses.start, end: addresses.end, writable: self.writable.get() }
    }

    /// Makes the first `bytes` accessible; they are a multiple of the system's page size, at most `bytes_max`. What lies behind is inaccessible
    /// unless code checks the length itself.
    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        let writable = self.writable.get_mut();
        let (accessible, after) = (writable.accessible, bytes as usize);
        // SAFETY: References into the memory exist only while a GuestMemory borrows the sandbox, which `&mut self` excludes.
        unsafe {
            if after > accessible {
                // Noted first: the budget may refuse what that joins.
                let noted = writable.note_grown(Span { start: accessible, end: after });
                let grown = if noted {
                    self.pages.protect(accessible..after, Access::ReadWrite)
                } else {
                    Err(io::ErrorKind::OutOfMemory.into())
                };
                if grown.is_err() {
                    // In case a part of it has become accessible. Nothing was written there.
                    let _ = self.pages.protect(accessible..after, Access::None);
                    writable.note_shrunk(accessible);
                    return grown;
                }
            } else if after < accessible && self.reservation == Reservation::Guard {
                self.pages.protect(after..accessible, Access::None)?;
                writable.note_shrunk(after);
            }
        }
        self.record.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Whether its type and its address space allow so many pages more.
    pub(crate) fn fits(&self, pages: u64) -> bool {
        let after = pages.checked_mul(PAGE_BYTES).and_then(|bytes| bytes.checked_add(self.length()));
        after.is_some_and(|after| after <= self.bytes_max)
    }

    /// `memory.grow`: the previous number of pages, or none when it cannot grow that much.
    pub(crate) fn grow(&mut self, pages: u64) -> Option<u64> {
        let before = self.length();
        let after = pages.checked_mul(PAGE_BYTES)?.checked_add(before)?;
        if after > self.bytes_max {
            return None;
        }
        self.set_length(after).ok()?;
        Some(before / PAGE_BYTES)
    }

    /// All its bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The first `length` bytes are readable, and the guest does not run while the sandbox is borrowed.
        unsafe { std::slice::from_raw_parts(self.base(), self.length() as usize) }
    }

    /// Some of its bytes, to be changed; none when they are not all its own, or the system has no room to make them writable.
    #[inline]
    pub(crate) fn slice_mut(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        if range.start > range.end || range.end as u64 > self.length() {
            return None;
        }
        let open = self.writable.get_mut().open(Span { start: range.start, end: range.end });
        // SAFETY: Within the length, so readable, and writable as was just made sure; `&mut self` makes this the only reference.
        open.then(|| unsafe { std::slice::from_raw_parts_mut(self.base().add(range.start), range.len()) })
    }

    /// Copies within; both ranges are its own, and the target is writable.
    pub(crate) fn copy_within(&mut self, from: Range<usize>, to: usize) {
        assert!(from.start <= from.end && from.end as u64 <= self.length() && (to + from.len()) as u64 <= self.length());
        let base = self.base();
        // SAFETY: Both lie within the length; `copy` allows overlap; `&mut self` excludes references.
        unsafe { std::ptr::copy(base.add(from.start), base.add(to), from.len()) };
    }

    /// What it holds now, to begin other memories with.
    pub(crate) fn image(&self) -> MemoryImage {
        let bytes = self.bytes();
        let (mut start, mut end) = (usize::MAX, 0);
        let mut look = |run: Range<usize>| {
            let page = page_bytes();
            for at in run.step_by(page) {
                if bytes[at..bytes.len().min(at + page)].iter().any(|&byte| byte != 0) {
                    start = start.min(at);
                    end = bytes.len().min(at + page);
                }
            }
        };
        // What was never touched is zero, and reading it would commit it. In an image that is shared it is what the file has.
        let shared = self.protection().shared;
        self.pages.for_each_touched(0..shared.start, &mut look);
        look(shared.start..shared.end);
        self.pages.for_each_touched(shared.end..bytes.len(), &mut look);
        let start = start.min(end);
        MemoryImage::new(bytes.len() as u64, start..end, &bytes[start..end])
    }

    /// Makes a memory that nothing was ever written to what `image` says. Of an image that is shared, `private` is reserved for copies of its pages, if that
    /// is counted.
    pub(crate) fn begin(&mut self, image: &MemoryImage, private: Option<Share>) -> io::Result<()> {
        if self.length() != image.length {
            self.set_length(image.length)?;
        }
        match image.shared() {
            Some(shared) => self.begin_shared(image, shared, private),
            None => {
                image.copy_to_zero(self.accessible_mut(0..image.end()));
                Ok(())
            }
        }
    }

    /// Bytes that are known to be accessible and writable.
    fn accessible_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(range.start <= range.end && range.end <= self.writable.get_mut().accessible);
        // SAFETY: By the caller; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.base().add(range.start), range.len()) }
    }

    /// Makes a memory that once began with `image` the same again.
    pub(crate) fn restore(&mut self, image: &MemoryImage) -> io::Result<()> {
        self.resets = self.resets.wrapping_add(1);
        let writable = self.writable.get_mut();
        if writable.broken {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if !writable.protected {
            let learned = self.learn(image, None)?;
            // Shorter before the pages are protected: what becomes inaccessible needs no protection.
            self.shorten(image)?;
            return self.protect(image, learned);
        }
        if writable.spans.bytes() > LEARN_BYTES_MIN && self.resets.wrapping_sub(self.learn_at).cast_signed() >= 0 {
            let (added, spans) = (writable.added, writable.spans.clone());
            let before = spans.bytes();
            let learned = self.learn(image, Some(spans))?;
            // Where the last time was soon regretted, or this time gains little, wait longer.
            if added > 0 || learned.bytes() > before / 2 {
                self.learn_every = self.learn_every.saturating_mul(2).min(LEARN_EVERY_MAX);
            }
            self.shorten(image)?;
            return self.protect(image, learned);
        }
        let mut room = KEEP_RESIDENT_BYTES;
        let grown_copy_bytes_max =
            if self.reservation == Reservation::Guard { GROWN_COPY_BYTES_MAX } else { LEARNED_COPY_BYTES_MAX };
        // One after the other by index: copying the list costs a small memory as much as its reset.
        let mut next = 0;
        while let Some(&span) = self.writable.get_mut().spans.as_slice().get(next) {
            next += 1;
            let border = (image.length as usize).clamp(span.start, span.end);
            self.restore_span(image, Span { start: span.start, end: border }, LEARNED_COPY_BYTES_MAX, &mut room)?;
            self.restore_span(image, Span { start: border, end: span.end }, grown_copy_bytes_max, &mut room)?;
        }
        self.shorten(image)?;
        if let Some(shared) = image.shared() {
            self.tell(shared);
        }
        Ok(())
    }

    /// Makes it as long as its image.
    fn shorten(&mut self, image: &MemoryImage) -> io::Result<()> {
        if self.length() == image.length { Ok(()) } else { self.set_length(image.length) }
    }

    /// Protects everything but the spans. Where that cannot be, everything is writable, and the next reset looks at everything again.
    fn protect(&mut self, image: &MemoryImage, mut spans: Spans) -> io::Result<()> {
        self.learn_at = self.resets.wrapping_add(self.learn_every);
        spans.truncate(self.writable.get_mut().accessible);
        if let Some(shared) = image.shared() {
            self.share_again(image, shared, &spans)?;
        }
        if !self.writable.get_mut().protect(spans) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if let Some(shared) = image.shared() {
            self.told = NOT_TOLD;
            self.tell(shared);
        }
        Ok(())
    }

    /// Restores a span of which nothing is known but that it may have been written to.
    /// Up to `copy_bytes_max` it is restored as a whole.
    fn restore_span(&mut self, image: &MemoryImage, span: Span, copy_bytes_max: usize, room: &mut usize) -> io::Result<()> {
        if span.len() <= copy_bytes_max.min(*room) || (image.start() <= span.start && span.end <= image.end()) {
            image.write(span.start, self.accessible_mut(span.start..span.end));
            // What the image has is resident anyway.
            *room -= span.end.saturating_sub(span.start.max(image.end())).min(*room);
            return Ok(());
        }
        let base = self.base();
        let mut full = span.end;
        // What of the image lies here was touched when the memory began.
        self.pages.for_each_touched(span.start..span.end, |run| {
            let end = if full < span.end { run.start } else { run.end.min(run.start.saturating_add(*room)) };
            let end = end.max(run.end.min(image.end()));
            // SAFETY: Within the span, which is accessible and writable; `&mut self` makes this the only reference.
            image.write(run.start, unsafe { std::slice::from_raw_parts_mut(base.add(run.start), end - run.start) });
            *room -= (end - run.start).min(*room);
            if end < run.end {
                full = full.min(end);
            }
        });
        // SAFETY: `&mut self` excludes references; everything from there on is zero in the image, or was written just now.
        unsafe { self.pages.discard(full.max(image.end()).min(span.end)..span.end) }
    }

    /// Restores what differs from the image in `within`, by default everywhere, and finds the spans of that.
    fn learn(&mut self, image: &MemoryImage, within: Option<Spans>) -> io::Result<Spans> {
        let accessible = self.writable.get_mut().accessible;
        let all = [Span { start: 0, end: accessible }];
        let looked = within.as_ref().map_or(&all[..], Spans::as_slice);
        let (page, base) = (page_bytes(), self.base());
        let mut learned = Spans::default();
        let mut last: Option<Span> = None;
        let mut room = KEEP_RESIDENT_BYTES;
        for span in looked {
            let mut full = span.end;
            self.pages.for_each_touched(span.start..span.end, |run| {
                for at in run.step_by(page) {
                    let end = (at + page).min(span.end);
                    let outside = at >= image.end();
                    if outside && room < page {
                        full = full.min(at);
                        continue;
                    }
                    room -= if outside { page } else { 0 };
                    // SAFETY: Accessible and, since in a span or not protected, writable; `&mut self` makes this the only reference.
                    let bytes = unsafe { std::slice::from_raw_parts_mut(base.add(at), end - at) };
                    if image.differs(at, bytes) {
                        image.write(at, bytes);
                        last = Some(match last {
                            Some(last) if at - last.end <= JOIN_BYTES => Span { start: last.start, end },
                            before => {
                                before.map(|before| learned.add(before));
                                Span { start: at, end }
                            }
                        });
                    }
                }
            });
            let full = full.max(image.end()).min(span.end);
            if full < span.end {
                // SAFETY: `&mut self` excludes references; the image is zero there.
                unsafe { self.pages.discard(full..span.end)? };
                learned.add(Span { start: full, end: span.end });
            }
        }
        last.map(|last| learned.add(last));
        Ok(learned)
    }
}

/// What [`Memory::told`] is when nothing was told.
const NOT_TOLD: u32 = u32::MAX;
/// Spans up to this size are restored as a whole: what was learned is mostly written to by every run.
const LEARNED_COPY_BYTES_MAX: usize = 1 << 20;
/// The same for growth that becomes inaccessible at each reset, so that what is written to there is never learned. Asking which pages were
/// touched costs as much as restoring this.
const GROWN_COPY_BYTES_MAX: usize = 128 << 10;
/// Changed pages with less than this between them are one span.
const JOIN_BYTES: usize = 8 << 10;
/// Spans of fewer bytes altogether are not worth being learned anew.
const LEARN_BYTES_MIN: usize = 64 << 10;
/// Resets until large spans are learned anew, at first and at most.
const LEARN_EVERY_MIN: u32 = 64;
const LEARN_EVERY_MAX: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::guest_memory::{GuestMemory, OutOfBounds};

    const TYPE: MemoryType = MemoryType { pages_min: 40, pages_max: Some(60), memory64: false, shared: false };

    fn memory() -> Memory {
        Memory::of(TYPE, Reservation::Guard, u64::MAX, &mut Vec::new()).unwrap()
    }

    #[test]
    fn what_was_written_anywhere_is_gone_after_a_restore_and_the_image_is_there() {
        for (at, text) in [(5usize, &b"low"[..]), (KEEP_RESIDENT_BYTES - 2, b"across"), (39 * 65536 + 60_000, b"high"), (0, b"")]
        {
            let mut first = memory();
            first.slice_mut(at..at + text.len()).unwrap().copy_from_slice(text);
            let image = first.image();
            let mut memory = memory();
            memory.begin(&image, None).unwrap();
            for round in 0..3 {
                assert_eq!(memory.bytes(), first.bytes(), "round {round}");
                assert_eq!(memory.grow(10), Some(40));
                for page in 0..50 {
                    memory.slice_mut(page * 65536 + 65535..page * 65536 + 65536).unwrap()[0] = 0xa5;
                }
                memory.slice_mut(at..at + 1).unwrap()[0] = 0x5a;
                memory.restore(&image).unwrap();
            }
        }
    }

    #[test]
    fn sizes_are_limited_by_type_limit_and_address_space() {
        let mut memory = memory();
        assert_eq!(memory.grow(0), Some(40));
        assert_eq!(memory.grow(21), None);
        assert_eq!(memory.grow(u64::MAX), None);
        assert_eq!(memory.grow(20), Some(40));
        assert_eq!(memory.grow(1), None);
        let mut limited = Memory::of(TYPE, Reservation::Checked, 41 * PAGE_BYTES + 1, &mut Vec::new()).unwrap();
        assert_eq!(limited.grow(2), None);
        assert_eq!(limited.grow(1), Some(40));
        assert!(Memory::of(TYPE, Reservation::Guard, 39 * PAGE_BYTES, &mut Vec::new()).is_err());
        assert!(!limited.suits(Bounds::Guard) && limited.suits(Bounds::Software) && memory.suits(Bounds::Guard));
    }

    #[test]
    fn a_memory_of_no_page_has_nothing_to_read() {
        let mut empty = Memory::of(MemoryType { pages_min: 0, ..TYPE }, Reservation::Guard, u64::MAX, &mut Vec::new()).unwrap();
        let image = empty.image();
        empty.restore(&image).unwrap();
        let mut view = GuestMemory::new(&mut empty);
        assert!(view.is_empty());
        assert_eq!(view.slice(0, 0), Ok(&[][..]));
        assert_eq!(view.read_u8(0), Err(OutOfBounds));
        assert_eq!(view.write(u64::MAX, &[1]), Err(OutOfBounds));
        assert_eq!(view.slice(1, 0), Err(OutOfBounds));
    }
}
