//! What memories begin as.

use std::ops::Range;
use std::sync::Arc;

use crate::limits::SHARED_IMAGE_BYTES_MIN;
use crate::store::shared_image::SharedImage;
use crate::sys::page::page_bytes;

/// What a memory begins as.
#[derive(Clone, Debug)]
pub(crate) struct MemoryImage {
    /// Length of the memory in bytes.
    pub(crate) length: u64,
    /// The pages, as offsets of their bytes, behind and before which everything is zero.
    pages: Range<usize>,
    /// Where `bytes` begin, within the pages; everything else is zero there, too.
    start: usize,
    bytes: Bytes,
}

/// Where the bytes of an image are.
#[derive(Clone, Debug)]
enum Bytes {
    /// To be copied.
    Own(Arc<[u8]>),
    /// To be mapped: all of the pages.
    Shared(Arc<SharedImage>),
}

/// Images that are copied begin and end at a multiple of this: a cache line.
const LINE_BYTES: usize = 64;

impl MemoryImage {
    /// That of a memory of `length` bytes that is zero but for `bytes`, which are those of its `pages`.
    pub(crate) fn new(length: u64, pages: Range<usize>, bytes: &[u8]) -> MemoryImage {
        debug_assert_eq!(bytes.len(), pages.len());
        let page = page_bytes();
        let is_paged = pages.start.is_multiple_of(page) && pages.end.is_multiple_of(page);
        let full = || bytes.chunks(page).filter(|page| !is_zero(page)).count() * page;
        // Where the system has no such file, or none more, each sandbox gets a copy.
        if is_paged
            && bytes.len() >= SHARED_IMAGE_BYTES_MIN
            && full() >= SHARED_IMAGE_BYTES_MIN
            && let Ok(shared) = SharedImage::new(bytes)
        {
            return MemoryImage { length, start: pages.start, pages, bytes: Bytes::Shared(Arc::new(shared)) };
        }
        let lines = |lines: usize| (lines * LINE_BYTES).min(bytes.len());
        let is_zero = |line: &&[u8]| is_zero(line);
        let before = lines(bytes.chunks(LINE_BYTES).take_while(is_zero).count());
        let bytes = &bytes[before..];
        let after = bytes.rchunks(LINE_BYTES).take_while(is_zero).count() * LINE_BYTES;
        let bytes = &bytes[..bytes.len().saturating_sub(after)];
        MemoryImage { length, start: pages.start + before, pages, bytes: Bytes::Own(bytes.into()) }
    }

    /// The file of its pages, where sandboxes share them.
    pub(crate) fn shared(&self) -> Option<&SharedImage> {
        match &self.bytes {
            Bytes::Own(_) => None,
            Bytes::Shared(shared) => Some(shared),
        }
    }

    /// Bytes of the pages that sandboxes share.
    pub(crate) fn shared_bytes(&self) -> u64 {
        self.shared().map_or(0, |_| self.pages.len() as u64)
    }

    /// Copies it to a memory that is all zero. Pages of zero are not touched.
    pub(crate) fn copy_to_zero(&self, memory: &mut [u8]) {
        let mut at = self.start;
        let mut rest = self.bytes();
        while !rest.is_empty() {
            let (bytes, after) = rest.split_at((page_bytes() - at % page_bytes()).min(rest.len()));
            if !is_zero(bytes) {
                memory[at..at + bytes.len()].copy_from_slice(bytes);
            }
            (at, rest) = (at + bytes.len(), after);
        }
    }

    /// What it has that is not zero.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(shared) => shared.bytes(),
        }
    }

    /// Where the page begins before which everything is zero.
    pub(crate) fn start(&self) -> usize {
        self.pages.start
    }

    /// Where the page ends behind which everything is zero.
    pub(crate) fn end(&self) -> usize {
        self.pages.end
    }

    /// What of `bytes`, all it has, lies in `at..end`, as a range of addresses.
    fn within(&self, bytes: &[u8], at: usize, end: usize) -> Range<usize> {
        let from = self.start.clamp(at, end);
        from..(self.start + bytes.len()).clamp(from, end)
    }

    /// Whether the memory has something else than `found` from `at` on.
    pub(crate) fn differs(&self, at: usize, found: &[u8]) -> bool {
        let bytes = self.bytes();
        let Range { start: from, end: until } = self.within(bytes, at, at + found.len());
        if from < until && found[from - at..until - at] != bytes[from - self.start..until - self.start] {
            return true;
        }
        !is_zero(&found[..from - at]) || !is_zero(&found[until - at..])
    }

    /// Writes what the memory has from `at` on.
    pub(crate) fn write(&self, at: usize, to: &mut [u8]) {
        let bytes = self.bytes();
        let Range { start: from, end: until } = self.within(bytes, at, at + to.len());
        zero(&mut to[..from - at]);
        if from < until {
            to[from - at..until - at].copy_from_slice(&bytes[from - self.start..until - self.start]);
        }
        zero(&mut to[until - at..]);
    }
}

/// Fills with zeros. Nothing is done for nothing: libc's memset writes no byte there with a masked store, which costs 150 ns when the address, a
/// memory's end, is inaccessible.
fn zero(bytes: &mut [u8]) {
    if !bytes.is_empty() {
        bytes.fill(0);
    }
}

pub(super) fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<64>();
    words.iter().all(|word| word == &[0; 64]) && rest.iter().all(|&byte| byte == 0)
}
