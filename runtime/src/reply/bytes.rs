//! The bytes of a reply, and the buffers they are written to.
//!
//! A buffer of some size that was just allocated is made of pages that are faulted in one by one, and given back to the system when it is
//! dropped. So buffers are used again: by the worker whose they are, when the reply was sent. They come in sizes that are powers of two, so
//! that what a reply costs does not depend on which buffer it got.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sledge_sandbox::Share;

/// Replies below this size are allocated, and not worth counting either: a connection's own buffers are larger.
pub const BUFFER_BYTES_MIN: usize = 4 << 10;
/// Larger buffers are given back to the system.
const BUFFER_BYTES_MAX: usize = 1 << 20;
/// Bytes of all the buffers that a worker keeps.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// A worker's buffers that are free; the one that was used last is at the end. Shared with the replies that are being sent.
#[derive(Clone, Debug, Default)]
pub struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// An empty buffer of that size.
    fn take(&self, bytes: usize) -> Vec<u8> {
        let found = (bytes <= BUFFER_BYTES_MAX).then(|| {
            let mut kept = self.kept();
            let at = kept.iter().rposition(|buffer| buffer.capacity() == bytes)?;
            Some(kept.remove(at))
        });
        found.flatten().unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    /// Keeps a buffer, in place of those that were not used for longest.
    fn put(&self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if !bytes.is_power_of_two() || !(BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&bytes) {
            return;
        }
        buffer.clear();
        let mut kept = self.kept();
        let mut sum: usize = kept.iter().map(Vec::capacity).sum();
        while sum + bytes > KEPT_BYTES_MAX {
            sum -= kept.remove(0).capacity();
        }
        kept.push(buffer);
    }

    /// Gives those that are there back to the system.
    pub fn clear(&self) {
        self.kept().clear();
    }

    /// Whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept().is_empty()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        // Nothing that is done under the lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reply that is being written.
#[derive(Debug, Default)]
pub struct ReplyBytes {
    bytes: Vec<u8>,
    buffers: Buffers,
}

impl ReplyBytes {
    /// An empty one, in whatever buffer there is when it needs one.
    #[must_use]
    pub const fn new(buffers: Buffers) -> ReplyBytes {
        ReplyBytes { bytes: Vec::new(), buffers }
    }

    /// What was written.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that it has.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Writes more.
    pub fn extend(&mut self, more: &[u8]) {
        let after = self.bytes.len() + more.len();
        if after > self.bytes.capacity() && after >= BUFFER_BYTES_MIN {
            let bytes = after.next_power_of_two();
            if self.bytes.capacity() > BUFFER_BYTES_MAX {
                // The system moves pages, which is cheaper than copying.
                self.bytes.reserve_exact(bytes - self.bytes.len());
            } else {
                let mut larger = self.buffers.take(bytes);
                larger.extend_from_slice(&self.bytes);
                self.buffers.put(mem::replace(&mut self.bytes, larger));
            }
        }
        if self.bytes.capacity() == 0 {
            // Most replies are written at once. One that fills its buffer is sent without a count of references beside it.
            self.bytes.reserve_exact(more.len());
        }
        self.bytes.extend_from_slice(more);
    }

    /// What was written, leaving nothing of it.
    #[must_use]
    pub fn take(&mut self) -> ReplyBytes {
        ReplyBytes { bytes: mem::take(&mut self.bytes), buffers: self.buffers.clone() }
    }

    /// Gives its buffer back.
    pub fn give_back(&mut self) {
        self.buffers.put(mem::take(&mut self.bytes));
    }

    /// What is to be sent; when that is done, `share` is given back, and so is the buffer.
    #[must_use]
    pub fn into_bytes(self, share: Option<Share>) -> Bytes {
        if self.bytes.capacity() < BUFFER_BYTES_MIN {
            return Bytes::from(self.bytes);
        }
        Bytes::from_owner(Sending { reply: self, _share: share })
    }
}

/// A reply that is being sent.
struct Sending {
    reply: ReplyBytes,
    _share: Option<Share>,
}

impl AsRef<[u8]> for Sending {
    fn as_ref(&self) -> &[u8] {
        &self.reply.bytes
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.reply.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(buffers: &Buffers, bytes: usize, step: usize) -> ReplyBytes {
        let mut reply = ReplyBytes::new(buffers.clone());
        let text: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        text.chunks(step).for_each(|chunk| reply.extend(chunk));
        assert_eq!(reply.as_slice(), text);
        reply
    }

    #[test]
    fn a_buffer_is_used_again_when_its_reply_was_sent_and_holds_nothing_of_it() {
        let buffers = Buffers::default();
        let sent = written(&buffers, 100_000, 100_000).into_bytes(None);
        let at = sent.as_ptr();
        assert!(buffers.is_empty(), "it is being sent");
        drop(sent);
        let next = written(&buffers, 70_000, 70_000);
        assert_eq!((next.as_slice().as_ptr(), next.as_slice().len()), (at, 70_000));
    }

    #[test]
    fn what_a_reply_costs_depends_on_its_size_only() {
        let (fresh, used) = (Buffers::default(), Buffers::default());
        for bytes in [1 << 20, 5_000, 600_000, 4_096, 70_000] {
            drop(written(&used, bytes, bytes).into_bytes(None));
        }
        for bytes in [0, 1, 100, 4_095, 4_096, 4_097, 50_000, 1 << 20, (1 << 20) + 1, 3 << 20] {
            let (first, second) = (written(&fresh, bytes, bytes.max(1)), written(&used, bytes, bytes.max(1)));
            assert_eq!(first.memory_bytes(), second.memory_bytes());
            assert!(first.memory_bytes() < 2 * bytes.max(BUFFER_BYTES_MIN));
        }
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let buffers = Buffers::default();
        let sending: Vec<Bytes> = (0..100).map(|_| written(&buffers, 200_000, 200_000).into_bytes(None)).collect();
        drop(sending);
        drop(written(&buffers, 3 << 20, 1 << 20).into_bytes(None));
        let kept: usize = buffers.kept().iter().map(Vec::capacity).sum();
        assert_eq!(kept, KEPT_BYTES_MAX);
        buffers.clear();
        assert!(buffers.is_empty());
    }
}
