//! Where the private copies of one invocation are: in one file in memory, which has no name, and goes with its last user.
//!
//! All copies share that file, so they take one descriptor of the system, however many they are. Each has a stretch of it ([`Slot`]) that is as long as a
//! copy can get. What nothing was written to takes no memory. The store counts what all of them may keep, changes of folders included.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::process::{Resource, getrlimit};

use crate::host::wasi::Errno;
use crate::host::wasi::descriptors::Open;

/// Pages of memory: what a copy takes of it is a multiple of that.
const PAGE_BYTES: u64 = 4 << 10;

/// Bytes that the private copies of all invocations keep now.
static KEPT: AtomicU64 = AtomicU64::new(0);
/// Files of the host that were copied.
static COPIED: AtomicU64 = AtomicU64::new(0);
/// Changes that found no room.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// What the copies of all invocations take and took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that they keep now.
    pub bytes: u64,
    /// Files of the host that were copied so far.
    pub copied: u64,
    /// Changes so far that found no room.
    pub refused: u64,
}

impl Usage {
    /// What it is now.
    #[must_use]
    pub fn now() -> Usage {
        // Relaxed: counts, with which nothing else is published.
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Usage { bytes: get(&KEPT), copied: get(&COPIED), refused: get(&REFUSED) }
    }
}

/// A stretch of the store's file: a private copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

/// The private copies of one invocation, and what it may keep.
#[derive(Debug)]
pub(super) struct Store {
    bytes_max: u64,
    /// What is kept: copies in whole pages, and what is noted of folders.
    kept: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Made when there is something to write.
    file: Option<(fs::File, Open)>,
    /// The first slot that was never used.
    next: u32,
    vacant: Vec<Slot>,
}

/// What a copy of that length takes.
pub(super) const fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES)
}

impl Store {
    /// One that may keep so many bytes.
    pub(super) fn new(bytes_max: u64) -> Store {
        Store { bytes_max, kept: AtomicU64::new(0), inner: Mutex::default() }
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Bytes that may still be kept.
    pub(super) fn room(&self) -> u64 {
        self.bytes_max.saturating_sub(self.bytes())
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    /// `ENOSPC` when there are not so many left.
    pub(super) fn reserve(&self, bytes: u64) -> Result<(), Errno> {
        let more = |kept: u64| kept.checked_add(bytes).filter(|kept| *kept <= self.bytes_max);
        if bytes > 0 && self.kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            return Err(Errno::NOSPC);
        }
        KEPT.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back what was taken.
    pub(super) fn release(&self, bytes: u64) {
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
        KEPT.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes note that a file of the host was copied.
    pub(super) fn note_copy(&self) {
        COPIED.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes what a copy needs to have another length. When it becomes shorter, the rest is emptied, so that it reads as zeros should it grow again.
    ///
    /// # Errors
    /// `ENOSPC` when it may not become so long, and what the system says.
    pub(super) fn resize(&self, slot: Slot, from: u64, to: u64) -> Result<(), Errno> {
        let (before, after) = (pages(from), pages(to));
        if after >= before {
            self.reserve(after - before)?;
        }
        if to < from {
            self.empty(slot, to, from)?;
            self.release(before - after);
        }
        Ok(())
    }

    /// A slot for a copy without bytes.
    pub(super) fn slot(&self) -> Result<Slot, Errno> {
        let mut inner = self.inner();
        if let Some(slot) = inner.vacant.pop() {
            return Ok(slot);
        }
        let slot = Slot(inner.next);
        inner.next = inner.next.checked_add(1).ok_or(Errno::NOSPC)?;
        Ok(slot)
    }

    /// Gives up a copy of that length.
    pub(super) fn vacate(&self, slot: Slot, bytes: u64) {
        // What cannot be emptied is not used again, and goes with the store.
        if self.empty(slot, 0, bytes).is_ok() {
            self.inner().vacant.push(slot);
        }
        self.release(pages(bytes));
    }

    /// Reads a part of a copy, which has to be within its length.
    pub(super) fn read(&self, slot: Slot, at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let start = self.start(slot)?;
        let inner = self.inner();
        let mut done = 0;
        while let (Some((file, _)), true) = (&inner.file, done < bytes.len()) {
            match file.read_at(&mut bytes[done..], start + at + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Nothing was ever written there, nor behind it.
        bytes[done..].fill(0);
        Ok(())
    }

    /// Writes a part of a copy, for which there has to be [room](Self::resize).
    pub(super) fn write(&self, slot: Slot, at: u64, bytes: &[u8]) -> Result<(), Errno> {
        let start = self.start(slot)?;
        let mut inner = self.inner();
        let file = match &mut inner.file {
            Some((file, _)) => file,
            none => {
                let open = Open::take(None)?;
                &mut none.insert((memory_file()?, open)).0
            }
        };
        Ok(file.write_all_at(bytes, start + at)?)
    }

    /// Empties a part of a copy.
    fn empty(&self, slot: Slot, from: u64, to: u64) -> Result<(), Errno> {
        let start = self.start(slot)?;
        if let (Some((file, _)), true) = (&self.inner().file, from < to) {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            loop {
                match fallocate(file, flags, start + from, to - from) {
                    Err(rustix::io::Errno::INTR) => {}
                    other => return Ok(other?),
                }
            }
        }
        Ok(())
    }

    /// Where a slot begins: each has room for all that may be kept.
    fn start(&self, slot: Slot) -> Result<u64, Errno> {
        let end = (u64::from(slot.0) + 1).checked_mul(pages(self.bytes_max)).filter(|end| i64::try_from(*end).is_ok());
        // Beyond a limit on files the system would end this process.
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        end.filter(|end| *end <= limit).map(|end| end - pages(self.bytes_max)).ok_or(Errno::FBIG)
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        KEPT.fetch_sub(*self.kept.get_mut(), Ordering::Relaxed);
    }
}

/// A file in memory that is no program, as the filter of system calls wants it (`confine.rs`).
fn memory_file() -> Result<fs::File, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let sealed = memfd_create("scratch", flags | MemfdFlags::NOEXEC_SEAL);
    // Kernels before 6.3 do not know that flag.
    Ok(sealed.or_else(|_| memfd_create("scratch", flags))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(store: &Store, slot: Slot, bytes: usize) -> Vec<u8> {
        let mut read = vec![1; bytes];
        store.read(slot, 0, &mut read).unwrap();
        read
    }

    #[test]
    fn copies_are_apart_and_what_is_cut_off_is_zeros() {
        let store = Store::new(10 * PAGE_BYTES + 100);
        let [one, two] = [store.slot().unwrap(), store.slot().unwrap()];
        assert_eq!(read(&store, one, 3), [0; 3], "nothing was written");
        store.resize(one, 0, 6000).unwrap();
        store.resize(two, 0, 10).unwrap();
        store.write(one, 0, &[7; 6000]).unwrap();
        store.write(two, 0, &[8; 10]).unwrap();
        assert_eq!((read(&store, one, 6000), read(&store, two, 10)), (vec![7; 6000], vec![8; 10]));
        assert_eq!(store.bytes(), 3 * PAGE_BYTES);
        store.resize(one, 6000, 5).unwrap();
        store.resize(one, 5, 6000).unwrap();
        assert_eq!(read(&store, one, 6000), [vec![7; 5], vec![0; 5995]].concat());
        assert_eq!(store.resize(one, 6000, 10 * PAGE_BYTES), Err(Errno::NOSPC));
        store.resize(one, 6000, 9 * PAGE_BYTES).unwrap();
        store.vacate(one, 9 * PAGE_BYTES);
        assert_eq!(store.bytes(), PAGE_BYTES);
        let again = store.slot().unwrap();
        assert_eq!((again, read(&store, again, 10)), (one, vec![0; 10]), "another copy has nothing of it");
    }

    #[test]
    fn what_is_reserved_is_given_back() {
        let before = Usage::now();
        let store = Store::new(100);
        store.reserve(60).unwrap();
        assert_eq!(store.reserve(41), Err(Errno::NOSPC));
        store.reserve(40).unwrap();
        assert_eq!((store.bytes(), store.room()), (100, 0));
        store.release(100);
        assert_eq!(store.room(), 100);
        assert!(Usage::now().refused > before.refused);
    }
}
