//! Messages as they stand in a body: flags, a length, and the bytes (`Length-Prefixed-Message` of PROTOCOL-HTTP2.md).

use bytes::{Buf as _, Bytes, BytesMut};

/// Bytes in front of a message.
pub const HEAD_BYTES: usize = 5;
/// The flag of a message that is compressed.
pub const COMPRESSED: u8 = 1;

/// A message is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {bytes} bytes; at most {bytes_max} are taken")]
pub struct TooLong {
    /// So long.
    pub bytes: usize,
    /// So long it may be.
    pub bytes_max: usize,
}

/// A message with its flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What is said of the message.
    pub flags: u8,
    /// Its bytes, as they came.
    pub message: Bytes,
}

/// Messages that come in pieces.
#[derive(Debug)]
pub struct Frames {
    came: BytesMut,
    bytes_max: usize,
}

impl Frames {
    /// None yet; each has at most so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Frames {
        Frames { came: BytesMut::new(), bytes_max }
    }

    /// More has come.
    pub fn push(&mut self, piece: &[u8]) {
        self.came.extend_from_slice(piece);
    }

    /// The next message; none as long as it is not there as a whole.
    ///
    /// # Errors
    /// When it is too long, as soon as that is known.
    pub fn take(&mut self) -> Result<Option<Frame>, TooLong> {
        let Some((&[flags, length @ ..], rest)) = self.came.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let bytes = u32::from_be_bytes(length) as usize;
        if bytes > self.bytes_max {
            return Err(TooLong { bytes, bytes_max: self.bytes_max });
        }
        if rest.len() < bytes {
            return Ok(None);
        }
        self.came.advance(HEAD_BYTES);
        Ok(Some(Frame { flags, message: self.came.split_to(bytes).freeze() }))
    }

    /// Whether nothing is left of what came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.came.is_empty()
    }
}

/// What stands in front of a message of that length.
#[must_use]
pub fn head(flags: u8, bytes: usize) -> [u8; HEAD_BYTES] {
    // No message of ours comes near it.
    let [a, b, c, d] = u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    [flags, a, b, c, d]
}

/// A message with its head.
#[must_use]
pub fn framed(flags: u8, message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEAD_BYTES + message.len());
    bytes.extend_from_slice(&head(flags, message.len()));
    bytes.extend_from_slice(message);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_they_are_cut() {
        let all = [&framed(0, b"abc")[..], &framed(1, b""), &framed(2, &[7; 300])].concat();
        for size in [1, 2, 4, 5, 6, 100, all.len()] {
            let (mut frames, mut found) = (Frames::new(300), Vec::new());
            for piece in all.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.take().unwrap() {
                    found.push((frame.flags, frame.message.to_vec()));
                }
            }
            assert_eq!(found, [(0, b"abc".to_vec()), (1, Vec::new()), (2, vec![7; 300])], "{size}");
            assert!(frames.is_empty());
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_by_its_head() {
        let mut frames = Frames::new(4);
        frames.push(&head(0, 5));
        assert_eq!(frames.take(), Err(TooLong { bytes: 5, bytes_max: 4 }));
        let mut frames = Frames::new(4);
        frames.push(&[0, 0, 0, 0]);
        assert_eq!((frames.take(), frames.is_empty()), (Ok(None), false));
    }
}
