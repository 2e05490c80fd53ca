//! Reserved address space: pages that are mapped, made accessible, emptied and given back.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

use super::{room, space};

/// Size of the system's pages.
pub(crate) fn page_bytes() -> usize {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    match BYTES.load(Ordering::Relaxed) {
        0 => {
            let bytes = rustix::param::page_size();
            BYTES.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// What may be done with pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    None,
    Read,
    ReadWrite,
    ReadExecute,
}

impl Access {
    fn flags(self) -> MprotectFlags {
        match self {
            Access::None => MprotectFlags::empty(),
            Access::Read => MprotectFlags::READ,
            Access::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
            Access::ReadExecute => MprotectFlags::READ | MprotectFlags::EXEC,
        }
    }
}

/// Changes what may be done with pages of any owner; false when the system refuses. For handlers: one system call and nothing else.
///
/// # Safety
/// The pages' owner agrees, and no reference into them exists that this would break.
pub(crate) unsafe fn protect_raw(address: usize, bytes: usize, access: Access) -> bool {
    // SAFETY: The caller's.
    unsafe { rustix::mm::mprotect(address as *mut c_void, bytes, access.flags()) }.is_ok()
}

/// Private anonymous pages, owned: unmapped on drop. Nothing is committed before it is touched.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    bytes: usize,
    /// Behind this nothing was ever accessible.
    opened: AtomicUsize,
    taken: Taken,
}

/// Room of the process, given back on drop.
#[derive(Debug)]
struct Taken {
    addresses: usize,
    mappings: usize,
}

impl Taken {
    fn new(addresses: usize, mappings: usize) -> Taken {
        room::ADDRESSES.add(addresses);
        room::MAPPINGS.add(mappings);
        Taken { addresses, mappings }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        room::ADDRESSES.give_back(self.addresses);
        room::MAPPINGS.give_back(self.mappings);
    }
}

// SAFETY: Address space belongs to the process, not to a thread; the owner decides on access.
unsafe impl Send for Pages {}
// SAFETY: As above; `&Pages` only gives out addresses.
unsafe impl Sync for Pages {}

impl Pages {
    /// Mappings of pages of which a part is made accessible: that part and the rest.
    pub(crate) const MAPPINGS: usize = 2;

    /// Reserves at least `bytes`, accessible as `access` says.
    pub(crate) fn reserve(bytes: usize, access: Access) -> io::Result<Pages> {
        let bytes = bytes.max(1).checked_next_multiple_of(page_bytes()).ok_or(io::ErrorKind::OutOfMemory)?;
        let protection = match access {
            Access::None => ProtFlags::empty(),
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
            Access::ReadExecute => ProtFlags::READ | ProtFlags::EXEC,
        };
        let taken = Taken::new(bytes, if access == Access::None { Pages::MAPPINGS } else { 1 });
        if access == Access::None
            && let Some(base) = space::take(bytes)
        {
            return Ok(Pages { base, bytes, opened: AtomicUsize::new(0), taken });
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: A new anonymous mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, protection, flags)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { base, bytes, opened: AtomicUsize::new(if access == Access::None { 0 } else { bytes }), taken })
    }

    /// The first `bytes` of a file, to be read.
    pub(crate) fn of_file(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Pages> {
        let taken = Taken::new(bytes, 1);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: A new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, ProtFlags::READ, flags, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { base, bytes, opened: AtomicUsize::new(bytes), taken })
    }

    /// Puts what a file has from `offset` on in the place of `range`, whose ends are at page borders: to be read, until it is made writable. Then a
    /// first write to a page makes a copy of it, and the file stays as it is.
    ///
    /// # Safety
    /// No reference into the range exists. The file never becomes shorter and never changes: otherwise a read would raise SIGBUS, or one owner's pages
    /// would change by another.
    pub(crate) unsafe fn map_file(&self, range: Range<usize>, file: BorrowedFd<'_>, offset: usize) -> io::Result<()> {
        let start = self.part(&range);
        if range.is_empty() {
            return Ok(());
        }
        self.opened.fetch_max(range.end, Ordering::Relaxed);
        // Shared would be one page for all, private is copied when it is written to.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: Replaces only our own pages, to which no reference exists, by the caller's promise.
        unsafe { rustix::mm::mmap(start, range.len(), ProtFlags::READ, flags, file, offset as u64)? };
        Ok(())
    }

    /// Gives the copies of pages in `range` back that writes made: it has what [`map_file`](Self::map_file) put there, as accessible as it is now.
    ///
    /// # Safety
    /// As for `map_file`, which mapped the range with the same file and offset.
    pub(crate) unsafe fn discard_copies(&self, range: Range<usize>, file: BorrowedFd<'_>, offset: usize) -> io::Result<()> {
        if !discards() {
            // SAFETY: The caller's.
            return unsafe { self.map_file(range, file, offset) };
        }
        let start = self.part(&range);
        // SAFETY: The pages are ours; the rest is the caller's promise. Where a file is mapped, its pages are there again, not zeros.
        Ok(unsafe { rustix::mm::madvise(start, range.len(), Advice::LinuxDontNeed) }?)
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What they take of the process's room: addresses and mappings.
    pub(crate) fn room(&self) -> [usize; 2] {
        [self.taken.addresses, self.taken.mappings]
    }

    /// All its addresses.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.base.as_ptr() as usize;
        start..start + self.bytes
    }

    fn part(&self, range: &Range<usize>) -> *mut c_void {
        assert!(range.start <= range.end && range.end <= self.bytes, "a range within the pages");
        // SAFETY: Within the mapping, by the assertion.
        unsafe { self.base.as_ptr().add(range.start).cast() }
    }

    /// Changes what may be done with `range`, given in bytes from the base, both ends at page borders.
    ///
    /// # Safety
    /// No reference into the range exists that this would break.
    pub(crate) unsafe fn protect(&self, range: Range<usize>, access: Access) -> io::Result<()> {
        let start = self.part(&range);
        if range.is_empty() {
            return Ok(());
        }
        if access != Access::None {
            // Relaxed: the thread that drops the pages has synchronised with all that used them.
            self.opened.fetch_max(range.end, Ordering::Relaxed);
        }
        // SAFETY: The pages are ours; the rest is the caller's promise.
        Ok(unsafe { rustix::mm::mprotect(start, range.len(), access.flags()) }?)
    }

    /// Keeps the system from making a first touch commit megabytes, where it would.
    pub(crate) fn refuse_huge_pages(&self) {
        static ALWAYS: OnceLock<bool> = OnceLock::new();
        let always = *ALWAYS.get_or_init(|| {
            let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
            setting.is_ok_and(|text| text.contains("[always]"))
        });
        if always {
            // SAFETY: The pages are ours, and it changes nothing that can be seen. Where it is refused, more memory is used.
            let _ = unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.bytes, Advice::LinuxNoHugepage) };
        }
    }

    /// Has the system make the pages of `range`, which can be written to and will be, all at once instead of at the first write to each.
    pub(crate) fn populate(&self, range: Range<usize>) {
        let start = self.part(&range);
        // SAFETY: The pages are ours, and it changes nothing that can be seen. Systems before Linux 5.14 refuse it; then writing makes them.
        let _ = unsafe { rustix::mm::madvise(start, range.len(), Advice::LinuxPopulateWrite) };
    }

    /// Gives the pages of `range`, which can be written to, back: they are zero when next touched.
    ///
    /// # Safety
    /// No reference into the range exists.
    pub(crate) unsafe fn discard(&self, range: Range<usize>) -> io::Result<()> {
        let start = self.part(&range);
        if range.is_empty() {
            return Ok(());
        }
        if !discards() {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
            // SAFETY: Replaces only our own pages, to which no reference exists, by the caller's promise.
            unsafe { rustix::mm::mmap_anonymous(start, range.len(), ProtFlags::READ | ProtFlags::WRITE, flags)? };
            return Ok(());
        }
        // SAFETY: The pages are ours; the rest is the caller's promise.
        Ok(unsafe { rustix::mm::madvise(start, range.len(), Advice::LinuxDontNeed) }?)
    }

    /// Gives the pages of `range` back, whatever their protection, which stays: zero when next touched. Where the system does not do that, they stay as they are.
    ///
    /// # Safety
    /// No reference into the range exists.
    pub(crate) unsafe fn forget(&self, range: Range<usize>) {
        let start = self.part(&range);
        if discards() {
            // SAFETY: The pages are ours; the rest is the caller's promise. An error leaves them as they are.
            let _ = unsafe { rustix::mm::madvise(start, range.len(), Advice::LinuxDontNeed) };
        }
    }

    /// Replaces `range` by fresh inaccessible pages.
    ///
    /// # Safety
    /// No reference into the range exists, and nothing runs there.
    pub(crate) unsafe fn reset(&self, range: Range<usize>) -> io::Result<()> {
        let start = self.part(&range);
        if range.is_empty() {
            return Ok(());
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: Replaces only our own pages, which are unused, by the caller's promise.
        unsafe { rustix::mm::mmap_anonymous(start, range.len(), ProtFlags::empty(), flags)? };
        Ok(())
    }

    /// Calls `each` with every run of pages in `range` that may have been touched since they were mapped or discarded: all others are zero.
    pub(crate) fn for_each_touched(&self, range: Range<usize>, mut each: impl FnMut(Range<usize>)) {
        const CHUNK_PAGES: usize = 512;
        let page = page_bytes();
        let mut entries = [0u64; CHUNK_PAGES];
        let mut run: Option<usize> = None;
        let mut at = range.start;
        while at < range.end {
            let pages = (range.end - at).div_ceil(page).min(CHUNK_PAGES);
            let first = (self.part(&(at..at)) as usize / page) as u64;
            let known = pagemap(first, &mut entries[..pages]);
            for (i, &entry) in entries[..pages].iter().enumerate() {
                let here = at + i * page;
                if !known || entry & TOUCHED != 0 {
                    run.get_or_insert(here);
                } else if let Some(start) = run.take() {
                    each(start..here);
                }
            }
            at += pages * page;
        }
        if let Some(start) = run {
            each(start..range.end);
        }
    }
}

/// Reads the kernel's entries for pages from number `first` on (`Documentation/admin-guide/mm/pagemap.rst`); false when it does not say.
fn pagemap(first: u64, entries: &mut [u64]) -> bool {
    // A file opened before a fork tells of the parent.
    static FILE: OnceLock<Option<(u32, File)>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let file = File::open("/proc/self/pagemap").ok()?;
        tells_what_was_touched(&file).then(|| (std::process::id(), file))
    });
    let Some((process, file)) = file else { return false };
    *process == std::process::id() && read_entries(file, first, entries)
}

/// Of an entry: the page is in memory, or swapped out.
const TOUCHED: u64 = 0b11 << 62;

fn read_entries(file: &File, first: u64, entries: &mut [u64]) -> bool {
    let bytes = size_of_val(entries);
    // SAFETY: Any bytes are an array of u64.
    let to = unsafe { std::slice::from_raw_parts_mut(entries.as_mut_ptr().cast::<u8>(), bytes) };
    file.read_at(to, first * size_of::<u64>() as u64).is_ok_and(|read| read == bytes)
}

/// Whether the file is about this process's pages: emulators may show another's, or have pages of another size.
fn tells_what_was_touched(file: &File) -> bool {
    const PAGES: usize = 8;
    let page = page_bytes();
    let Ok(pages) = Pages::reserve(PAGES * page, Access::ReadWrite) else { return false };
    for i in (0..PAGES).step_by(2) {
        // SAFETY: Within fresh pages, which can be written to.
        unsafe { pages.base().as_ptr().add(i * page).write_volatile(1) };
    }
    let mut entries = [0; PAGES];
    read_entries(file, (pages.addresses().start / page) as u64, &mut entries)
        && entries.iter().enumerate().all(|(i, entry)| i % 2 == 1 || entry & TOUCHED != 0)
}

/// Whether `MADV_DONTNEED` empties pages: emulators may ignore it.
fn discards() -> bool {
    static DISCARDS: OnceLock<bool> = OnceLock::new();
    *DISCARDS.get_or_init(|| {
        let Ok(pages) = Pages::reserve(page_bytes(), Access::ReadWrite) else { return false };
        let at = pages.base().as_ptr();
        // SAFETY: Within a fresh page, which can be written to.
        unsafe {
            at.write_volatile(1);
            rustix::mm::madvise(at.cast(), pages.bytes, Advice::LinuxDontNeed).is_ok() && at.read_volatile() == 0
        }
    })
}

impl Drop for Pages {
    fn drop(&mut self) {
        if space::wants(self.bytes) {
            let opened = *self.opened.get_mut();
            // SAFETY: The owner gives the pages up.
            if unsafe { self.reset(0..opened) }.is_ok() {
                space::keep(self.base, self.bytes);
                return;
            }
        }
        // SAFETY: Our own mapping, which its owner gives up. An error would only leak it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
