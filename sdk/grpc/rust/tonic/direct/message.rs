//! One message in its frame: a flag, its length, itself.

use std::cell::Cell;

use bytes::{Buf, BufMut, BytesMut};

use crate::codec::{DecodeBuf, Decoder, EncodeBuf, Encoder};
use crate::Status;

/// Bytes in front of a message.
pub(crate) const FRAME_BYTES: usize = 5;
/// The largest message that is taken in where nothing else is said; as the original's.
const DECODED_BYTES_MAX: usize = 4 << 20;
/// What is kept of a buffer for the next message.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// A buffer that is used for one message after the other. It is taken out while it is used: encoders and decoders are the program's, and may call others meanwhile.
pub(crate) struct Scratch(Cell<Option<BytesMut>>);

impl Scratch {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(None))
    }

    /// It, empty.
    pub(crate) fn take(&self) -> BytesMut {
        self.0.take().unwrap_or_default()
    }

    /// Puts it back.
    pub(crate) fn put(&self, mut buffer: BytesMut) {
        buffer.clear();
        if buffer.capacity() <= KEPT_BYTES_MAX {
            self.0.set(Some(buffer));
        }
    }
}

/// Writes a message with its frame behind what is in `buffer`.
///
/// # Errors
/// Those of the encoder, and where it is larger than `bytes_max`; said as the original says it.
pub(crate) fn encode<E>(mut encoder: E, message: E::Item, bytes_max: Option<usize>, buffer: &mut BytesMut) -> Result<(), Status>
where
    E: Encoder<Error = Status>,
{
    let begin = buffer.len();
    buffer.put_slice(&[0; FRAME_BYTES]);
    encoder.encode(message, &mut EncodeBuf::new(buffer)).map_err(|error| Status::internal(format!("Error encoding: {error}")))?;
    let bytes = buffer.len() - begin - FRAME_BYTES;
    if let Some(limit) = bytes_max.filter(|limit| bytes > *limit) {
        return Err(Status::out_of_range(format!(
            "Error, encoded message length too large: found {bytes} bytes, the limit is: {limit} bytes"
        )));
    }
    // A function's memory has no more than 4 GiB.
    buffer[begin + 1..begin + FRAME_BYTES].copy_from_slice(&(bytes as u32).to_be_bytes());
    Ok(())
}

/// Whether that is one message in its frame and nothing else, which is not compressed and not larger than it may be.
pub(crate) fn is_one(frame: &[u8], bytes_max: Option<usize>) -> bool {
    let Some((&[0, a, b, c, d], message)) = frame.split_first_chunk::<FRAME_BYTES>() else { return false };
    u32::from_be_bytes([a, b, c, d]) as usize == message.len() && message.len() <= bytes_max.unwrap_or(DECODED_BYTES_MAX)
}

/// Reads the message in [such](is_one) a frame.
///
/// # Errors
/// Those of the decoder, and where it finds no message; said as the original says it, which `missing` is a part of.
pub(crate) fn decode<D>(mut decoder: D, frame: &mut BytesMut, missing: &'static str) -> Result<D::Item, Status>
where
    D: Decoder<Error = Status>,
{
    frame.advance(FRAME_BYTES);
    let bytes = frame.len();
    match decoder.decode(&mut DecodeBuf::new(frame, bytes))? {
        Some(message) => Ok(message),
        None if frame.has_remaining() => Err(Status::internal("Unexpected EOF decoding stream.")),
        None => Err(Status::internal(missing)),
    }
}
