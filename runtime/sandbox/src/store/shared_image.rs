//! An image of a memory that all sandboxes of a template share: a sealed file that each maps over a part of its memory.
//!
//! ```text
//!   file      | page 0 | page 1 | page 2 | page 3 | ...        one for all, sealed
//!                  |        |        :        |
//!   memory    | page 0 | page 1 |  copy  | page 3 | ...        of each sandbox: private where it was written to
//! ```
//!
//! What a sandbox may write to without a fault, its spans, are copies; everything else is the file's page, and read-only (`writable.rs`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::budget::{Budget, Share};
use crate::store::memory::Memory;
use crate::store::memory_image::{MemoryImage, is_zero};
use crate::store::spans::{Span, Spans};
use crate::sys::page::page_bytes;
use crate::sys::sealed::SealedFile;

/// The pages of an image, for all sandboxes.
#[derive(Debug)]
pub(crate) struct SharedImage {
    file: SealedFile,
    /// What runs are known to write, of the sandbox that learned something last: what new ones begin with.
    learned: Mutex<Option<Spans>>,
    /// What is reserved for it of each budget whose sandboxes use it.
    counted: Mutex<Vec<Share>>,
}

impl SharedImage {
    /// That of whole pages.
    pub(crate) fn new(bytes: &[u8]) -> io::Result<SharedImage> {
        let file = SealedFile::new(bytes.len(), parts(bytes))?;
        Ok(SharedImage { file, learned: Mutex::default(), counted: Mutex::default() })
    }

    /// All of its pages.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.file.bytes()
    }

    /// Gives back what was read of [`bytes`](Self::bytes).
    pub(crate) fn forget_view(&self) {
        self.file.forget_view();
    }

    /// Its file, from whose begin on the pages lie.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Reserves it of `budget`, once for all sandboxes; false when there are not so many bytes left.
    pub(crate) fn count_in(&self, budget: &Arc<Budget>) -> bool {
        let mut counted = lock(&self.counted);
        if counted.iter().any(|share| share.is_of(budget)) {
            return true;
        }
        // Not `claim`: what is idle is taken apart by the caller, for its parts.
        budget.reserve(self.bytes().len() as u64).map(|share| counted.push(share)).is_some()
    }

    /// What a memory that begins now can be expected to write.
    pub(crate) fn learned(&self) -> Option<Spans> {
        lock(&self.learned).clone()
    }

    /// Notes what a memory is known to write.
    pub(crate) fn learn(&self, spans: &Spans) {
        *lock(&self.learned) = Some(spans.clone());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing between lock and unlock leaves it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memories that begin with such an image.
impl Memory {
    /// Maps the image over a memory of its length that nothing was ever written to. `private` is reserved for copies of its pages, if that is counted.
    pub(super) fn begin_shared(&mut self, image: &MemoryImage, shared: &SharedImage, private: Option<Share>) -> io::Result<()> {
        let mapped = Span { start: image.start(), end: image.end() };
        // On an error nothing is copied in its place: what was mapped there may be gone.
        // SAFETY: `&mut self` excludes references. The file is sealed.
        unsafe { self.pages.map_file(mapped.start..mapped.end, shared.file(), 0)? };
        let learned = shared.learned();
        if learned.is_some() {
            // It begins as those do that have learned: its first run alone is not to replace that.
            self.learn_at = self.learn_every;
        }
        let writable = self.writable.get_mut();
        let mut spans = learned.unwrap_or_else(|| Spans::all_but(mapped, writable.accessible));
        // A memory of checked code that grew stays writable where it did.
        spans.truncate(writable.accessible);
        if !writable.share(mapped, private, spans) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if writable.protected {
            // The first run writes to most of them, and the first reset to all: copied at once, they take no faults.
            writable.spans.within(mapped).for_each(|span| self.pages.populate(span.start..span.end));
        }
        Ok(())
    }

    /// Tells the image that is shared what this memory has learned since the last time, and has that counted.
    pub(super) fn tell(&mut self, shared: &SharedImage) {
        let writable = self.writable.get_mut();
        if writable.protected && self.told != writable.added {
            self.told = writable.added;
            shared.learn(&writable.spans);
        }
        writable.settle();
    }

    /// Gives the copies of pages back that were in spans and are in none of the new ones: what they have is what the image has.
    pub(super) fn share_again(&mut self, image: &MemoryImage, shared: &SharedImage, spans: &Spans) -> io::Result<()> {
        let writable = self.writable.get_mut();
        let mut done = Ok(());
        spans.gaps(writable.accessible, |gap| {
            let Some(gap) = gap.and(writable.shared) else { return };
            for span in writable.spans.within(gap) {
                // SAFETY: `&mut self` excludes references. `begin_shared` has mapped this file here, so that the image's first page is the file's.
                let discarded =
                    unsafe { self.pages.discard_copies(span.start..span.end, shared.file(), span.start - image.start()) };
                if discarded.is_err() {
                    done = discarded;
                }
            }
        });
        done
    }
}

/// What of whole pages is not zero: where each part begins, and its bytes.
fn parts(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let page = page_bytes();
    let pages = bytes.chunks(page);
    let mut parts: Vec<Span> = Vec::new();
    for (number, _) in pages.enumerate().filter(|(_, page)| !is_zero(page)) {
        let start = number * page;
        match parts.last_mut() {
            Some(last) if last.end == start => last.end += page,
            _ => parts.push(Span { start, end: start + page }),
        }
    }
    parts.into_iter().map(|part| (part.start, &bytes[part.start..part.end.min(bytes.len())]))
}
