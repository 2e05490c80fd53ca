//! Sealed files in memory: bytes that no process can change any more, to be mapped by as many owners as like.
//!
//! The kernel refuses each way to write to such a file (`fcntl_sealing`, memfd_create(2)): `write`, a mapping that is shared and writable, a change of its
//! length, and taking the seals away. So what a guest, or code that got out of one, does to its own mapping stays its own, and no mapping ever
//! loses its pages.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Resource, getrlimit};

use super::page::Pages;
use crate::limits::sealed_files_max;

/// A file without a name, in memory, that never changes.
#[derive(Debug)]
pub(crate) struct SealedFile {
    file: OwnedFd,
    /// All of it, to be read.
    view: Pages,
    _place: Place,
}

/// Such files that there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// One of the file descriptors that sealed files may have together.
#[derive(Debug)]
struct Place;

impl Place {
    fn take() -> io::Result<Place> {
        let limit = getrlimit(Resource::Nofile);
        // A server raises its limit to what it may be. Where it cannot, opening a file fails earlier.
        let max = limit.maximum.or(limit.current).map_or(usize::MAX, |files| sealed_files_max(files) as usize);
        let add = |count: usize| (count < max).then_some(count + 1);
        // Relaxed: a count that nothing else depends on.
        match COUNT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(Place),
            Err(_) => Err(io::Error::new(io::ErrorKind::QuotaExceeded, "file descriptors are left to connections")),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SealedFile {
    /// A file of `bytes`, at least one, zero but for `parts`: where each begins, and what it has. What no part touches takes no memory before it is read.
    ///
    /// # Errors
    /// Where the system has no such files, or no memory for one more, or there are [as many](sealed_files_max) as there may be.
    pub(crate) fn new<'a>(bytes: usize, parts: impl IntoIterator<Item = (usize, &'a [u8])>) -> io::Result<SealedFile> {
        // Beyond this limit the kernel sends a signal that would end the process.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < bytes as u64) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let place = Place::take()?;
        let (name, flags) = ("sledge-image", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        // Linux 6.3 has files that are never programs, and may be set to have no others (`vm.memfd_noexec`). Before, the flag is unknown.
        let file = memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL).or_else(|_| memfd_create(name, flags))?;
        let file = File::from(file);
        file.set_len(bytes as u64)?;
        for (start, part) in parts {
            file.write_all_at(part, start as u64)?;
        }
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let view = Pages::of_file(file.as_fd(), bytes)?;
        Ok(SealedFile { file: file.into(), view, _place: place })
    }

    /// Gives back what was read of the view: the kernel counts it as this process's memory (`RssShmem`). What is read later is mapped again.
    pub(crate) fn forget_view(&self) {
        // SAFETY: References into the view stay valid. Its pages are the file's, which never change, and none was written to: a page that is gone comes
        // back with the same bytes.
        unsafe { self.view.forget(0..self.view.bytes()) };
    }

    /// All that it has.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The view is readable and as long as the file, which is sealed: it neither changes nor becomes shorter. Both live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.view.base().as_ptr(), self.view.bytes()) }
    }
}

impl AsFd for SealedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
