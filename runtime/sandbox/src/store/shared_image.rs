//! An image of a memory that all sandboxes of a template share: a sealed file that each maps over a part of its memory.
//!
//! ```text
//!   file      | page 0 | page 1 | page 2 | page 3 | ...        one for all, sealed
//!                  |        |        :        |
//!   memory    | page 0 | page 1 |  copy  | page 3 | ...        of each sandbox: private where it was written to
//! ```
//!
//! What a sandbox may write to without a fault, its spans, are copies; everything else is the file's page, and read-only (`writable.rs`).

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::budget::{Budget, Share};
use crate::store::memory_image::is_zero;
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
    pub(crate) fn new(bytes: &[u8]) -> std::io::Result<SharedImage> {
        let file = SealedFile::new(bytes.len(), parts(bytes))?;
        Ok(SharedImage { file, learned: Mutex::default(), counted: Mutex::default() })
    }

    /// All of its pages.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.file.bytes()
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
