//! The bytes of a reply, and the buffers they are written to.
//!
//! A buffer of some size that was just allocated is made of pages that are faulted in one by one, and given back to the system when it is
//! dropped. So buffers are used again: by the worker whose they are, when the reply was sent. They come in sizes that are powers of two, so
//! that what a reply costs does not depend on which buffer it got. A reply that is written little by little has several: moved to ever larger ones, each of
//! its bytes would be copied once more.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sledge_sandbox::Share;

use super::{Content, Pieces};

/// Replies below this size are allocated, and not worth counting either: a connection's own buffers are larger.
pub const BUFFER_BYTES_MIN: usize = 4 << 10;
/// Larger buffers are given back to the system.
const BUFFER_BYTES_MAX: usize = 1 << 20;
/// What is written so far is moved to a larger buffer while it is shorter than this; then more goes to further buffers.
const MOVED_BYTES_MAX: usize = 64 << 10;
/// These have at least so many bytes.
const PIECE_BYTES_MIN: usize = 256 << 10;
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

/// A reply that is being written, in pieces: what was written is moved to a larger buffer only while it is short.
#[derive(Debug, Default)]
pub struct ReplyBytes {
    /// The piece that is written to.
    bytes: Vec<u8>,
    /// Those before it.
    full: Option<Box<Full>>,
    /// Where its buffers come from and go to; none until it needs one, where it was given none.
    buffers: Option<Buffers>,
}

/// The pieces of a reply that are written to no more.
#[derive(Debug, Default)]
struct Full {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of all of them, and of the memory that they have.
    bytes: usize,
    memory_bytes: usize,
}

impl ReplyBytes {
    /// An empty one, in whatever buffer there is when it needs one.
    #[must_use]
    pub const fn new(buffers: Buffers) -> ReplyBytes {
        ReplyBytes { bytes: Vec::new(), full: None, buffers: Some(buffers) }
    }

    /// Has its buffers from where that one has them, from now on.
    pub fn share_buffers(&mut self, with: &ReplyBytes) {
        self.buffers.clone_from(&with.buffers);
    }

    /// Bytes that were written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.full.as_ref().map_or(0, |full| full.bytes)
    }

    /// Whether nothing was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was written, in pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let full = self.full.iter().flat_map(|full| &full.pieces);
        full.chain([&self.bytes]).map(Vec::as_slice).filter(|piece| !piece.is_empty())
    }

    /// Bytes of memory that it has.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.full.as_ref().map_or(0, |full| full.memory_bytes)
    }

    /// Writes more.
    pub fn extend(&mut self, more: &[u8]) {
        let after = self.bytes.len() + more.len();
        if after <= self.bytes.capacity() || after < BUFFER_BYTES_MIN {
            if self.bytes.capacity() == 0 {
                // Most replies are written at once. One that fills its buffer is sent without a count of references beside it.
                self.bytes.reserve_exact(more.len());
            }
            self.bytes.extend_from_slice(more);
        } else if self.bytes.len() < MOVED_BYTES_MAX && after <= BUFFER_BYTES_MAX {
            let buffers = self.buffers.get_or_insert_default();
            let mut larger = buffers.take(after.next_power_of_two());
            larger.extend_from_slice(&self.bytes);
            larger.extend_from_slice(more);
            buffers.put(mem::replace(&mut self.bytes, larger));
        } else {
            self.extend_in_pieces(more);
        }
    }

    fn extend_in_pieces(&mut self, mut more: &[u8]) {
        loop {
            let (now, rest) = more.split_at(more.len().min(self.bytes.capacity() - self.bytes.len()));
            self.bytes.extend_from_slice(now);
            if rest.is_empty() {
                return;
            }
            more = rest;
            let buffers = self.buffers.get_or_insert_default();
            let next = buffers.take(rest.len().next_power_of_two().clamp(PIECE_BYTES_MIN, BUFFER_BYTES_MAX));
            let piece = mem::replace(&mut self.bytes, next);
            if !piece.is_empty() {
                let full = self.full.get_or_insert_default();
                full.bytes += piece.len();
                full.memory_bytes += piece.capacity();
                full.pieces.push_back(piece);
            }
        }
    }

    /// What was written, leaving nothing of it.
    #[must_use]
    pub fn take(&mut self) -> ReplyBytes {
        ReplyBytes { bytes: mem::take(&mut self.bytes), full: self.full.take(), buffers: self.buffers.clone() }
    }

    /// What was written first, as one piece; none where nothing is left.
    #[must_use]
    pub fn take_piece(&mut self) -> Option<ReplyPiece> {
        let bytes = match &mut self.full {
            Some(full) => {
                let piece = full.pieces.pop_front();
                full.bytes -= piece.as_ref().map_or(0, Vec::len);
                full.memory_bytes -= piece.as_ref().map_or(0, Vec::capacity);
                if full.pieces.is_empty() {
                    self.full = None;
                }
                piece?
            }
            None => mem::take(&mut self.bytes),
        };
        (!bytes.is_empty()).then(|| ReplyPiece { bytes, buffers: self.buffers.clone() })
    }

    /// What is to be sent, leaving nothing of it; when that is done, `share` is given back, and so are the buffers.
    #[must_use]
    pub fn take_content(&mut self, share: Option<Share>) -> Content {
        if self.full.is_none() {
            return Content::Whole(self.take_last(share));
        }
        let mut pieces = VecDeque::new();
        while self.full.is_some()
            && let Some(piece) = self.take_piece()
        {
            pieces.push_back(Bytes::from_owner(piece));
        }
        // It is sent last.
        pieces.push_back(self.take_last(share));
        Content::Pieces(Box::new(Pieces(pieces)))
    }

    /// The same as one piece.
    #[must_use]
    pub fn into_bytes(mut self, share: Option<Share>) -> Bytes {
        if self.full.is_none() {
            return self.take_last(share);
        }
        let mut all = Vec::with_capacity(self.len());
        while let Some(piece) = self.take_piece() {
            all.extend_from_slice(piece.as_ref());
        }
        ReplyBytes { bytes: all, full: None, buffers: None }.take_last(share)
    }

    /// The last piece.
    fn take_last(&mut self, share: Option<Share>) -> Bytes {
        let bytes = mem::take(&mut self.bytes);
        if bytes.capacity() < BUFFER_BYTES_MIN {
            return Bytes::from(bytes);
        }
        Bytes::from_owner(Sending { piece: ReplyPiece { bytes, buffers: self.buffers.clone() }, _share: share })
    }
}

/// A piece of a reply. Its buffer is given back when it is dropped.
#[derive(Debug)]
pub struct ReplyPiece {
    bytes: Vec<u8>,
    buffers: Option<Buffers>,
}

impl ReplyPiece {
    /// Bytes of memory that it has.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl AsRef<[u8]> for ReplyPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ReplyPiece {
    fn drop(&mut self) {
        if let Some(buffers) = &self.buffers {
            buffers.put(mem::take(&mut self.bytes));
        }
    }
}

/// A piece that is being sent, and what is reserved for it.
struct Sending {
    piece: ReplyPiece,
    _share: Option<Share>,
}

impl AsRef<[u8]> for Sending {
    fn as_ref(&self) -> &[u8] {
        &self.piece.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(buffers: &Buffers, bytes: usize, step: usize) -> ReplyBytes {
        let mut reply = ReplyBytes::new(buffers.clone());
        let text: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        text.chunks(step).for_each(|chunk| reply.extend(chunk));
        assert_eq!((reply.len(), reply.pieces().collect::<Vec<_>>().concat()), (bytes, text));
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
        let pieces: Vec<&[u8]> = next.pieces().collect();
        assert_eq!((pieces[0].as_ptr(), pieces[0].len(), pieces.len()), (at, 70_000, 1));
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
    #[test]
    fn a_reply_in_many_writes_is_copied_once_and_takes_little_more_memory_than_it_has_bytes() {
        let buffers = Buffers::default();
        for (bytes, step) in
            [(1_000_000, 64 << 10), (1_000_000, 1_000), (5 << 20, 1 << 20), (300_000, 65_537), (3 << 20, 3 << 20)]
        {
            let mut reply = written(&buffers, bytes, step);
            assert!(reply.memory_bytes() <= bytes + PIECE_BYTES_MIN.max(step) + MOVED_BYTES_MAX, "{}", reply.memory_bytes());
            let text = reply.pieces().collect::<Vec<_>>().concat();
            let starts: Vec<*const u8> = reply.pieces().map(<[u8]>::as_ptr).collect();
            reply.extend(b"more");
            let moved = reply.pieces().zip(&starts).filter(|(piece, start)| piece.as_ptr() != **start);
            assert_eq!(moved.count(), 0, "{bytes} in steps of {step}");
            let mut taken = reply.take();
            assert!(reply.is_empty() && reply.memory_bytes() == 0 && reply.take_piece().is_none());
            let mut read = Vec::new();
            while let Some(piece) = taken.take_piece() {
                read.extend_from_slice(piece.as_ref());
                assert_eq!(taken.len(), bytes + 4 - read.len());
            }
            assert_eq!(read, [&text[..], b"more"].concat());
            assert_eq!((taken.len(), taken.memory_bytes()), (0, 0));
        }
    }

    #[test]
    fn what_is_reserved_for_a_reply_is_given_back_with_its_last_piece_and_so_are_its_buffers() {
        let buffers = Buffers::default();
        let budget = sledge_sandbox::Budget::new(10 << 20);
        for bytes in [100_000, 1_000_000] {
            let mut reply = written(&buffers, bytes, 64 << 10);
            let share = budget.claim(reply.memory_bytes() as u64);
            let sent = match reply.take_content(share) {
                Content::Whole(bytes) => vec![bytes],
                Content::Pieces(pieces) => pieces.0.into(),
                Content::Stream(_) => unreachable!("it is whole"),
            };
            assert_eq!(sent.iter().map(Bytes::len).sum::<usize>(), bytes);
            assert!(sent.iter().all(|piece| !piece.is_empty()));
            for piece in sent {
                assert!(budget.bytes_used() > 0);
                drop(piece);
            }
            assert_eq!(budget.bytes_used(), 0);
            assert!(!buffers.is_empty());
            let joined = written(&buffers, bytes, 64 << 10).into_bytes(None);
            assert!(joined.iter().enumerate().all(|(at, &byte)| byte == (at % 251) as u8) && joined.len() == bytes);
        }
    }
}
