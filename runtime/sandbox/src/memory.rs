//! Linear memories: reserved address space of which the beginning is accessible.
//!
//! ```text
//!   base                 base + length            base + reservation
//!   | accessible         | inaccessible: growth, then guard          |
//!     kept resident ...    every access here is an out-of-bounds trap
//! ```
//!
//! The base never moves. A memory that guarded code may use has a reservation of
//! [`GUARD_RESERVATION_BYTES`]: whatever address such code forms lies within.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use awsm_abi::limits::{GUARD_RESERVATION_BYTES, MEMORY32_PAGES_MAX, PAGE_BYTES};
use awsm_abi::types::{Bounds, MemoryType};

use crate::context::AddressRange;
use crate::limits::KEEP_RESIDENT_BYTES;
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
}

/// A linear memory.
#[derive(Debug)]
pub(crate) struct Memory {
    pages: Pages,
    ty: MemoryType,
    reservation: Reservation,
    /// Most bytes it may ever have: by its type and by its address space.
    bytes_max: u64,
    /// What generated code reads: the length in bytes ([`awsm_abi::vmctx::memory`]). At a fixed address.
    record: Box<AtomicU64>,
}

impl Memory {
    /// A memory of `ty.pages_min` pages of zero, that will never have more than `limit` bytes.
    pub(crate) fn new(ty: MemoryType, reservation: Reservation, limit: u64) -> io::Result<Memory> {
        let pages_max = ty.pages_max.unwrap_or(u64::MAX).min(if ty.memory64 { u64::MAX } else { MEMORY32_PAGES_MAX });
        let bytes_max = pages_max.saturating_mul(PAGE_BYTES).min(limit / PAGE_BYTES * PAGE_BYTES);
        let reserved = match reservation {
            Reservation::Guard => GUARD_RESERVATION_BYTES,
            Reservation::Checked => bytes_max.checked_add(PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?,
        };
        let reserved = usize::try_from(reserved).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let pages = Pages::reserve(reserved, Access::None)?;
        let mut memory = Memory { pages, ty, reservation, bytes_max, record: Box::new(AtomicU64::new(0)) };
        let bytes = ty.pages_min.checked_mul(PAGE_BYTES).filter(|&bytes| bytes <= bytes_max);
        memory.set_length(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        Ok(memory)
    }

    /// Its type as declared.
    pub(crate) fn ty(&self) -> &MemoryType {
        &self.ty
    }

    /// Whether code with these bounds checks may use it.
    pub(crate) fn suits(&self, bounds: Bounds) -> bool {
        self.reservation == Reservation::Guard || Reservation::for_bounds(bounds) == Reservation::Checked
    }

    /// Length in bytes.
    pub(crate) fn length(&self) -> u64 {
        // Relaxed: the guest runs on the thread that owns the sandbox.
        self.record.load(Ordering::Relaxed)
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.pages.base().as_ptr()
    }

    /// Address of the record.
    pub(crate) fn record(&self) -> *const AtomicU64 {
        &raw const *self.record
    }

    /// Everything that belongs to it, accessible or not.
    pub(crate) fn addresses(&self) -> AddressRange {
        let addresses = self.pages.addresses();
        AddressRange { start: addresses.start, end: addresses.end }
    }

    /// Makes the first `bytes` accessible and nothing else; they are a multiple of the system's page size, at most `bytes_max`.
    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        let (before, after) = (self.length() as usize, bytes as usize);
        // SAFETY: References into the memory exist only while a GuestMemory borrows the sandbox, which `&mut self` excludes.
        unsafe {
            if after > before {
                self.pages.protect(before..after, Access::ReadWrite)?;
            } else {
                self.pages.protect(after..before, Access::None)?;
            }
        }
        self.record.store(bytes, Ordering::Relaxed);
        Ok(())
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
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The first `length` bytes are readable, and the guest does not run while the sandbox is borrowed.
        unsafe { std::slice::from_raw_parts(self.base(), self.length() as usize) }
    }

    /// All its bytes, to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: As for `bytes`, and writable; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.base(), self.length() as usize) }
    }

    /// What it holds now, to begin other memories with.
    pub(crate) fn image(&self) -> MemoryImage {
        let bytes = self.bytes();
        let (mut start, mut end) = (usize::MAX, 0);
        // What was never touched is zero, and reading it would commit it.
        self.pages.for_each_touched(0..bytes.len(), |run| {
            let page = page_bytes();
            for at in run.step_by(page) {
                if bytes[at..bytes.len().min(at + page)].iter().any(|&byte| byte != 0) {
                    start = start.min(at);
                    end = bytes.len().min(at + page);
                }
            }
        });
        let start = start.min(end);
        MemoryImage { length: bytes.len() as u64, start, bytes: bytes[start..end].into() }
    }

    /// Makes a memory that nothing was ever written to what `image` says.
    pub(crate) fn begin(&mut self, image: &MemoryImage) -> io::Result<()> {
        if self.length() != image.length {
            self.set_length(image.length)?;
        }
        image.copy_from(0, self.bytes_mut());
        Ok(())
    }

    /// Makes a memory that once began with `image` the same again. Pages near its start stay resident; the others are given back.
    pub(crate) fn restore(&mut self, image: &MemoryImage) -> io::Result<()> {
        let before = self.length() as usize;
        let keep = before.min(KEEP_RESIDENT_BYTES);
        if keep <= SMALL_BYTES {
            image.write(0, &mut self.bytes_mut()[..keep]);
        } else {
            let base = self.base();
            // Pages with something of the image are among those that were touched, since `begin` wrote them.
            self.pages.for_each_touched(0..keep, |run| {
                // SAFETY: Accessible, since below the length; `&mut self` makes this the only reference.
                image.write(run.start, unsafe { std::slice::from_raw_parts_mut(base.add(run.start), run.len()) });
            });
        }
        // SAFETY: As in `set_length`.
        unsafe { self.pages.discard(keep..before)? };
        if self.length() != image.length {
            self.set_length(image.length)?;
        }
        image.copy_from(keep, self.bytes_mut());
        Ok(())
    }
}

/// Memories up to this size are restored as a whole: asking which of their pages were touched costs as much.
const SMALL_BYTES: usize = 128 << 10;

/// What a memory begins as.
#[derive(Debug)]
pub(crate) struct MemoryImage {
    length: u64,
    /// Where `bytes` begin, at a page's border; everything else is zero.
    start: usize,
    bytes: Box<[u8]>,
}

impl MemoryImage {
    /// Writes what the memory has from `at` on.
    fn write(&self, at: usize, to: &mut [u8]) {
        let end = at + to.len();
        let from = self.start.clamp(at, end);
        let until = (self.start + self.bytes.len()).clamp(from, end);
        zero(&mut to[..from - at]);
        if from < until {
            to[from - at..until - at].copy_from_slice(&self.bytes[from - self.start..until - self.start]);
        }
        zero(&mut to[until - at..]);
    }

    /// Copies what is not zero and lies at `from` or behind it.
    fn copy_from(&self, from: usize, memory: &mut [u8]) {
        let skip = from.saturating_sub(self.start).min(self.bytes.len());
        let start = self.start + skip;
        if skip < self.bytes.len() {
            memory[start..start + self.bytes.len() - skip].copy_from_slice(&self.bytes[skip..]);
        }
    }
}

/// Fills with zeros. Nothing is done for nothing: libc's memset writes no byte there with a masked store, which costs 150 ns when the address, a
/// memory's end, is inaccessible.
fn zero(bytes: &mut [u8]) {
    if !bytes.is_empty() {
        bytes.fill(0);
    }
}

/// Checked access to a linear memory, from the host's side. The guest does not run while it exists. Addresses are offsets from the memory's
/// first byte.
#[derive(Debug)]
pub struct GuestMemory<'a> {
    memory: &'a mut Memory,
}

/// An access outside of a linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of bounds memory access")]
pub struct OutOfBounds;

impl<'a> GuestMemory<'a> {
    pub(crate) fn new(memory: &'a mut Memory) -> GuestMemory<'a> {
        GuestMemory { memory }
    }

    fn range(&self, address: u64, bytes: u64) -> Result<std::ops::Range<usize>, OutOfBounds> {
        let end = address.checked_add(bytes).filter(|&end| end <= self.memory.length()).ok_or(OutOfBounds)?;
        // Both fit: lengths are sizes of address space.
        Ok(address as usize..end as usize)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.memory.length()
    }

    /// Whether it has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `bytes` bytes from `address`.
    ///
    /// # Errors
    /// When they do not all lie within the memory.
    pub fn slice(&self, address: u64, bytes: u64) -> Result<&[u8], OutOfBounds> {
        let range = self.range(address, bytes)?;
        Ok(&self.memory.bytes()[range])
    }

    /// As [`slice`](Self::slice), to be changed.
    ///
    /// # Errors
    /// As for `slice`.
    pub fn slice_mut(&mut self, address: u64, bytes: u64) -> Result<&mut [u8], OutOfBounds> {
        let range = self.range(address, bytes)?;
        Ok(&mut self.memory.bytes_mut()[range])
    }

    /// Copies from the memory; all of `to` or nothing.
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), OutOfBounds> {
        to.copy_from_slice(self.slice(address, to.len() as u64)?);
        Ok(())
    }

    /// Copies into the memory; all of `from` or nothing.
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), OutOfBounds> {
        self.slice_mut(address, from.len() as u64)?.copy_from_slice(from);
        Ok(())
    }
}

macro_rules! numbers {
    ($($ty:ty, $read:ident, $write:ident;)*) => {
        impl GuestMemory<'_> {
            $(
                #[doc = concat!("Reads a little-endian `", stringify!($ty), "`, aligned or not.")]
                ///
                /// # Errors
                /// As for [`slice`](Self::slice).
                pub fn $read(&self, address: u64) -> Result<$ty, OutOfBounds> {
                    let mut bytes = [0; size_of::<$ty>()];
                    self.read(address, &mut bytes)?;
                    Ok(<$ty>::from_le_bytes(bytes))
                }

                #[doc = concat!("Writes a little-endian `", stringify!($ty), "`, aligned or not.")]
                ///
                /// # Errors
                /// As for [`slice`](Self::slice).
                pub fn $write(&mut self, address: u64, value: $ty) -> Result<(), OutOfBounds> {
                    self.write(address, &value.to_le_bytes())
                }
            )*
        }
    };
}

numbers! {
    u8, read_u8, write_u8;
    u16, read_u16, write_u16;
    u32, read_u32, write_u32;
    u64, read_u64, write_u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: MemoryType = MemoryType { pages_min: 40, pages_max: Some(60), memory64: false, shared: false };

    fn memory() -> Memory {
        Memory::new(TYPE, Reservation::Guard, u64::MAX).unwrap()
    }

    #[test]
    fn what_was_written_anywhere_is_gone_after_a_restore_and_the_image_is_there() {
        for (at, text) in [(5usize, &b"low"[..]), (KEEP_RESIDENT_BYTES - 2, b"across"), (39 * 65536 + 60_000, b"high"), (0, b"")]
        {
            let mut first = memory();
            first.bytes_mut()[at..at + text.len()].copy_from_slice(text);
            let image = first.image();
            let mut memory = memory();
            memory.begin(&image).unwrap();
            for round in 0..3 {
                assert_eq!(memory.bytes(), first.bytes(), "round {round}");
                assert_eq!(memory.grow(10), Some(40));
                for page in 0..50 {
                    memory.bytes_mut()[page * 65536 + 65535] = 0xa5;
                }
                memory.bytes_mut()[at] = 0x5a;
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
        let mut limited = Memory::new(TYPE, Reservation::Checked, 41 * PAGE_BYTES + 1).unwrap();
        assert_eq!(limited.grow(2), None);
        assert_eq!(limited.grow(1), Some(40));
        assert!(Memory::new(TYPE, Reservation::Guard, 39 * PAGE_BYTES).is_err());
        assert!(!limited.suits(Bounds::Guard) && limited.suits(Bounds::Software) && memory.suits(Bounds::Guard));
    }

    #[test]
    fn a_memory_of_no_page_has_nothing_to_read() {
        let mut empty = Memory::new(MemoryType { pages_min: 0, ..TYPE }, Reservation::Guard, u64::MAX).unwrap();
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
