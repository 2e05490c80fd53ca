//! The code arena: one reserved stretch of address space in which the code of all artifacts lies, so that a signal handler knows guest code by
//! two comparisons.
//!
//! ```text
//!   | artifact | free | artifact | artifact | free ...                    |
//!   start                                                               end   (set once, never changed)
//! ```
//!
//! An artifact's pages are written while they are not executable, and made executable when they are no longer writable. Freed pages are
//! inaccessible again before their addresses are given to another artifact.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::limits::ARENA_BYTES_MIN;
use crate::sys::page::{Access, Pages, page_bytes};
use crate::sys::{self, room, space};

static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Whether an address lies in the arena. For handlers: neither allocates nor locks.
pub(crate) fn contains(address: usize) -> bool {
    // Relaxed: both are written before the first artifact exists, and a thread that runs one has synchronised with its loader.
    address >= START.load(Ordering::Relaxed) && address < END.load(Ordering::Relaxed)
}

struct Arena {
    pages: Pages,
    room: Mutex<Room>,
}

/// What of the arena is free.
struct Room {
    /// Free ranges by start, in bytes from the base; neighbours are merged.
    free: BTreeMap<usize, usize>,
    /// From here on nothing was ever taken.
    fresh: usize,
    /// Up to here what is fresh can be written to: there is nothing there yet. It is opened [`OPENED_BYTES`] at a time, since the first of three
    /// changes of protection that an artifact needs is so saved, and a change costs 3 us.
    opened: usize,
}

/// From this size on, a part's pages are made all at once. A call for that costs as much as two first writes.
const POPULATED_BYTES_MIN: usize = 64 << 10;

/// Less is not worth the call that gives it back.
const DISCARDED_BYTES_MIN: usize = 64 << 10;

/// What of a fresh arena is made writable at a time.
const OPENED_BYTES: usize = 1 << 20;

impl Arena {
    fn get() -> io::Result<&'static Arena> {
        static ARENA: OnceLock<Arena> = OnceLock::new();
        static MAKING: Mutex<()> = Mutex::new(());
        if let Some(arena) = ARENA.get() {
            return Ok(arena);
        }
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(arena) = ARENA.get() {
            return Ok(arena);
        }
        let mut bytes = space::arena_bytes();
        let pages = loop {
            match Pages::reserve(bytes, Access::None) {
                Ok(pages) => break pages,
                Err(error) if bytes / 2 < ARENA_BYTES_MIN => return Err(error),
                Err(_) => bytes /= 2,
            }
        };
        let Range { start, end } = pages.addresses();
        START.store(start, Ordering::Relaxed);
        END.store(end, Ordering::Relaxed);
        let room = Mutex::new(Room { free: BTreeMap::from([(0, pages.bytes())]), fresh: 0, opened: 0 });
        Ok(ARENA.get_or_init(|| Arena { pages, room }))
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        // Nothing between lock and unlock leaves the room half changed.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free range of that size; whether all of it can be written to.
    fn take(&self, bytes: usize) -> Option<(Range<usize>, bool)> {
        let mut room = self.room();
        let (&start, &end) = room.free.iter().find(|&(start, end)| end - start >= bytes)?;
        let range = start..start + bytes;
        // Before what is used already is changed.
        let writable = self.open(&mut room, &range);
        room.free.remove(&start);
        if end > range.end {
            room.free.insert(range.end, end);
        }
        room.fresh = room.fresh.max(range.end);
        Some((range, writable))
    }

    /// Whether `range`, which is free, can be written to; if it is fresh, it is opened with what follows.
    fn open(&self, room: &mut Room, range: &Range<usize>) -> bool {
        if range.start < room.fresh {
            return false;
        }
        if range.end > room.opened {
            let end = range.end.next_multiple_of(OPENED_BYTES).min(self.pages.bytes());
            // SAFETY: All of it is fresh: nothing refers to it.
            if unsafe { self.pages.protect(range.start..end, Access::ReadWrite) }.is_err() {
                return false;
            }
            room.opened = end;
        }
        true
    }

    fn give_back(&self, range: Range<usize>) {
        let free = &mut self.room().free;
        let Range { mut start, mut end } = range;
        if let Some((&before, &before_end)) = free.range(..start).next_back()
            && before_end == start
        {
            start = before;
        }
        if let Some(after_end) = free.remove(&end) {
            end = after_end;
        }
        free.insert(start, end);
    }
}

/// Part of the arena that belongs to one artifact; given back on drop.
pub(crate) struct CodeRange {
    arena: &'static Arena,
    range: Range<usize>,
    mappings: usize,
}

/// What becomes of a part of a [`CodeRange`]: bytes to be copied to `start`, and how they may be used from then on.
pub(crate) struct Part<'a> {
    pub(crate) start: usize,
    pub(crate) bytes: &'a [u8],
    pub(crate) executable: bool,
}

impl CodeRange {
    /// Copies the parts to where they belong in a new range of `bytes`. Parts begin at different pages and lie within the range.
    pub(crate) fn map(bytes: usize, parts: &[Part<'_>]) -> io::Result<CodeRange> {
        let arena = Arena::get()?;
        let page = page_bytes();
        let bytes = bytes.max(1).checked_next_multiple_of(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let (range, writable) = arena.take(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        // What is between the parts, too. Sandboxes give way to code, as soon as they want more.
        let mappings = 2 * parts.len();
        room::MAPPINGS.add(mappings);
        let code = CodeRange { arena, range, mappings };
        let pages = |part: &Part<'_>| {
            let end = part.start.checked_add(part.bytes.len()).filter(|&end| end <= bytes).expect("parts lie within the range");
            code.range.start + part.start / page * page..code.range.start + end.next_multiple_of(page)
        };
        if !writable {
            // With what is between the parts, which is made inaccessible again.
            // SAFETY: The range is ours, and nothing refers to it yet.
            unsafe { arena.pages.protect(code.range.clone(), Access::ReadWrite)? };
        }
        let mut parts: Vec<&Part<'_>> = parts.iter().collect();
        parts.sort_by_key(|part| part.start);
        let mut rest = code.range.start;
        for part in parts {
            let pages = pages(part);
            if pages.len() >= POPULATED_BYTES_MIN {
                arena.pages.populate(pages.clone());
            }
            // SAFETY: Made writable above or by `take`; the source is another allocation.
            unsafe { code.at(part.start).copy_from_nonoverlapping(NonNull::from(part.bytes).cast(), part.bytes.len()) };
            let access = if part.executable { Access::ReadExecute } else { Access::Read };
            let before = rest..pages.start;
            rest = pages.end;
            // SAFETY: As above.
            unsafe {
                arena.pages.protect(before, Access::None)?;
                arena.pages.protect(pages, access)?;
            }
            if part.executable {
                let address = code.address() + part.start;
                sys::code_written(address..address + part.bytes.len());
            }
        }
        // SAFETY: As above.
        unsafe { arena.pages.protect(rest..code.range.end, Access::None)? };
        Ok(code)
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.range.len());
        // SAFETY: Within the arena's mapping, since the range is and by the assertion.
        unsafe { self.arena.pages.base().add(self.range.start + offset) }
    }

    /// Address of its first byte.
    pub(crate) fn address(&self) -> usize {
        self.at(0).as_ptr() as usize
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        self.range.len()
    }

    /// Gives the memory of pages back that lie in `range` as a whole: they are zero from then on, and as accessible as they were. Does nothing where that is
    /// little, or the system does not do it.
    ///
    /// # Safety
    /// `range` lies within one of the parts, and no reference into it exists.
    pub(crate) unsafe fn discard(&self, range: Range<usize>) {
        let page = page_bytes();
        let (start, end) = (range.start.next_multiple_of(page), range.end / page * page);
        if end.saturating_sub(start) >= DISCARDED_BYTES_MIN {
            assert!(end <= self.range.len());
            // SAFETY: The pages are this range's, by the assertion; the rest is the caller's promise.
            unsafe { self.arena.pages.forget(self.range.start + start..self.range.start + end) };
        }
    }

    /// Bytes that are mapped, readable and never change while the range lives.
    ///
    /// # Safety
    /// `range` lies within one of the parts.
    pub(crate) unsafe fn slice(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.range.len());
        // SAFETY: Readable by the caller's promise; nothing writes to it until drop.
        unsafe { std::slice::from_raw_parts(self.at(range.start).as_ptr(), range.len()) }
    }
}

impl Drop for CodeRange {
    fn drop(&mut self) {
        // SAFETY: Its artifact is being dropped: no sandbox uses it any more, so nothing runs or refers there.
        let emptied = unsafe { self.arena.pages.reset(self.range.clone()) };
        // Addresses whose old code could not be removed are never used again.
        if emptied.is_ok() {
            self.arena.give_back(self.range.clone());
        }
        room::MAPPINGS.give_back(self.mappings);
    }
}

impl std::fmt::Debug for CodeRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}..{:#x}", self.address(), self.address() + self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ranges_merge_and_are_inaccessible() {
        let page = page_bytes();
        let part = [Part { start: 0, bytes: b"hello", executable: false }];
        let first = CodeRange::map(3 * page, &part).unwrap();
        assert!(contains(first.address()) && !contains(&raw const part as usize));
        // SAFETY: Within the part.
        assert_eq!(unsafe { first.slice(0..5) }, b"hello");
        let range = first.range.clone();
        drop(first);
        let arena = Arena::get().unwrap();
        let free = &arena.room().free;
        let holds = free.iter().any(|(&start, &end)| start <= range.start && range.end <= end);
        assert!(holds || !free.is_empty(), "the range is free again, or already used by another test");
        for (before, after) in free.iter().zip(free.iter().skip(1)) {
            assert!(before.1 < after.0, "neighbours are merged");
        }
    }

    /// Whether each page of a range may be read, written to and executed, as `/proc/self/maps` says.
    fn protection(range: Range<usize>) -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let at = |address: usize| {
            let line = maps.lines().find(|line| {
                let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                let parse = |text| usize::from_str_radix(text, 16).unwrap();
                (parse(start)..parse(end)).contains(&address)
            });
            line.map_or("none", |line| &line.split_once(' ').unwrap().1[..3]).to_owned()
        };
        range.step_by(page_bytes()).map(at).collect()
    }

    #[test]
    fn a_part_is_as_accessible_as_it_says_and_what_lies_between_is_not() {
        let page = page_bytes();
        let part = |start, executable| Part { start, bytes: b"hello", executable };
        // Fresh ranges, and those that were used before, in whichever order.
        let mut earlier = None;
        for _ in 0..4 {
            // Data and code apart: qemu tells what is next to each other and readable as one, by the first page.
            let code = CodeRange::map(6 * page, &[part(4 * page, true), part(page, false), part(3 * page, true)]).unwrap();
            let range = code.address()..code.address() + code.bytes();
            assert_eq!(protection(range), ["---", "r--", "---", "r-x", "r-x", "---"]);
            drop(earlier.replace(code));
        }
        let range = earlier.as_ref().map(|code| code.range.clone()).unwrap();
        drop(earlier);
        assert!(Arena::get().unwrap().room().fresh >= range.end);
    }
}
