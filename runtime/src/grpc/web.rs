//! gRPC-Web: gRPC's frames over any version of HTTP, trailers in a last frame, and as text where a client cannot read bytes (PROTOCOL-WEB.md).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use hyper::header::HeaderMap;

use super::frame;

/// The flag of the frame that has trailers.
const TRAILERS: u8 = 0x80;
/// Characters of text that stand for three bytes.
const GROUP: usize = 4;

/// Text that comes in pieces, each perhaps padded by itself.
#[derive(Debug, Default)]
pub struct Text {
    /// The begin of a group.
    rest: Vec<u8>,
}

/// What comes is no base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText;

impl Text {
    /// The bytes that a piece stands for, together with what is left of those before it.
    ///
    /// # Errors
    /// When it is no base64.
    pub fn decode(&mut self, piece: &[u8]) -> Result<Bytes, NotText> {
        self.rest.extend_from_slice(piece);
        let whole = self.rest.len() / GROUP * GROUP;
        let mut bytes = Vec::with_capacity(whole / GROUP * 3);
        let mut begin = 0;
        for end in (GROUP..=whole).step_by(GROUP) {
            // Behind padding another text begins.
            if self.rest[end - 1] == b'=' || end == whole {
                STANDARD.decode_vec(&self.rest[begin..end], &mut bytes).map_err(|_| NotText)?;
                begin = end;
            }
        }
        self.rest.drain(..whole);
        Ok(bytes.into())
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// When a group is not whole.
    pub fn end(&self) -> Result<(), NotText> {
        if self.rest.is_empty() { Ok(()) } else { Err(NotText) }
    }
}

/// Bytes as text, padded.
#[must_use]
pub fn encode(bytes: &[u8]) -> Bytes {
    STANDARD.encode(bytes).into()
}

/// Trailers as a frame: lines as of a head of HTTP/1.
#[must_use]
pub fn trailers(fields: &HeaderMap) -> Bytes {
    let mut text = BytesMut::new();
    for (name, value) in fields {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.put_slice(part);
        }
    }
    frame::framed(TRAILERS, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn text_is_decoded_however_it_is_cut_and_padded() {
        let bytes: Vec<u8> = (0..200).collect();
        let all = [encode(&bytes[..1]), encode(&bytes[1..3]), encode(&bytes[3..100]), encode(&bytes[100..])].concat();
        for size in [1, 2, 3, 4, 5, 7, 64, all.len()] {
            let mut text = Text::default();
            let found: Vec<Bytes> = all.chunks(size).map(|piece| text.decode(piece).unwrap()).collect();
            assert_eq!((found.concat(), text.end()), (bytes.clone(), Ok(())), "{size}");
        }
        for wrong in ["a b=", "====", "ab\r\n", "A=AA"] {
            assert_eq!(Text::default().decode(wrong.as_bytes()), Err(NotText), "{wrong:?}");
        }
        let mut text = Text::default();
        assert_eq!((text.decode(b"AAA"), text.end()), (Ok(Bytes::new()), Err(NotText)));
    }

    #[test]
    fn trailers_are_lines_in_a_frame() {
        let fields = HeaderMap::from_iter(
            [("grpc-status", "0"), ("x-a", "b")].map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))),
        );
        assert_eq!(trailers(&fields), &b"\x80\0\0\0\x18grpc-status: 0\r\nx-a: b\r\n"[..]);
    }
}
