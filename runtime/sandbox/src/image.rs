//! What memories begin as.

use std::sync::Arc;

use crate::sys::page::page_bytes;

/// What a memory begins as.
#[derive(Clone, Debug)]
pub(crate) struct MemoryImage {
    /// Length of the memory in bytes.
    pub(crate) length: u64,
    /// Where `bytes` begin, at a page's border; everything else is zero.
    pub(crate) start: usize,
    pub(crate) bytes: Arc<[u8]>,
}

impl MemoryImage {
    /// Copies it to a memory that is all zero. Pages of zero are not touched.
    pub(crate) fn copy_to_zero(&self, memory: &mut [u8]) {
        let page = page_bytes();
        for (i, bytes) in self.bytes.chunks(page).enumerate().filter(|(_, bytes)| !is_zero(bytes)) {
            memory[self.start + i * page..][..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Where what is not zero ends.
    pub(crate) fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// Whether the memory has something else than `found` from `at` on.
    pub(crate) fn differs(&self, at: usize, found: &[u8]) -> bool {
        let end = at + found.len();
        let from = self.start.clamp(at, end);
        let until = self.end().clamp(from, end);
        if from < until && found[from - at..until - at] != self.bytes[from - self.start..until - self.start] {
            return true;
        }
        !is_zero(&found[..from - at]) || !is_zero(&found[until - at..])
    }

    /// Writes what the memory has from `at` on.
    pub(crate) fn write(&self, at: usize, to: &mut [u8]) {
        let end = at + to.len();
        let from = self.start.clamp(at, end);
        let until = (self.start + self.bytes.len()).clamp(from, end);
        zero(&mut to[..from - at]);
        if from < until {
            to[from - at..until - at].copy_from_slice(&self.bytes[from - self.start..until - self.start]);
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

fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<64>();
    words.iter().all(|word| word == &[0; 64]) && rest.iter().all(|&byte| byte == 0)
}
