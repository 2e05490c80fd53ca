//! How many frames of HTTP/2 a client may send that carry neither a request nor a part of one.
//!
//! PING and SETTINGS are answered, and all others cost time, too: a connection that sends nothing else would keep a core busy. Frames that belong to
//! requests are limited by what limits requests. So frames of the other kinds are counted where bytes are read, before anything looks into
//! them; what ordinary clients send stays far below the limit, and costs a look at each frame's head.

use super::connections::now_ms;

/// Such frames that a client may send at once.
const FRAMES_MAX: u32 = 10_000;
/// And so many more in each millisecond.
const FRAMES_PER_MS: u64 = 1;
/// A client that fetches much says so often: one more for so many bytes that are sent to it. More than the answer to a PING has.
const SENT_BYTES_PER_FRAME: usize = 64;
/// And so many for each request, which may be prioritised, given room to and reset.
const FRAMES_PER_REQUEST: u32 = 4;
/// The preface of HTTP/2, which is no frame.
const PREFACE_BYTES: usize = 24;
/// A frame's head: length, kind, flags, stream (RFC 9113, 4.1).
const HEAD_BYTES: usize = 9;
/// Kinds of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;
/// The flag of the last frame of a request.
const END_STREAM: u8 = 1;
/// Why a connection ends (RFC 9113, 7).
const ENHANCE_YOUR_CALM: u8 = 11;

/// What a connection has sent.
#[derive(Debug)]
pub(super) struct Calm {
    /// Bytes until the next frame begins.
    skipped: usize,
    head: [u8; HEAD_BYTES],
    /// How much of it has come.
    head_bytes: usize,
    /// Frames that may still come.
    left: u32,
    /// Up to when time is counted in that.
    counted_ms: u64,
    /// The last stream that the client has opened.
    stream: [u8; 4],
}

impl Calm {
    /// At the begin of a connection.
    pub(super) fn new() -> Calm {
        let (skipped, left, counted_ms) = (PREFACE_BYTES, FRAMES_MAX, now_ms());
        Calm { skipped, head: [0; HEAD_BYTES], head_bytes: 0, left, counted_ms, stream: [0; 4] }
    }

    /// Counts what was sent to the client.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.gain(u32::try_from(bytes / SENT_BYTES_PER_FRAME).unwrap_or(FRAMES_MAX));
    }

    /// Counts what has come; whether that was not too much.
    pub(super) fn bears(&mut self, mut bytes: &[u8]) -> bool {
        loop {
            let skipped = self.skipped.min(bytes.len());
            self.skipped -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEAD_BYTES - self.head_bytes).min(bytes.len());
            self.head[self.head_bytes..][..taken].copy_from_slice(&bytes[..taken]);
            self.head_bytes += taken;
            bytes = &bytes[taken..];
            if self.head_bytes < HEAD_BYTES {
                return true;
            }
            self.head_bytes = 0;
            if !self.frame() {
                return false;
            }
        }
    }

    /// Counts the frame whose head has come.
    fn frame(&mut self) -> bool {
        let [long, middle, low, kind, flags, stream @ ..] = self.head;
        self.skipped = u32::from_be_bytes([0, long, middle, low]) as usize;
        match kind {
            HEADERS => {
                self.stream = stream;
                self.gain(FRAMES_PER_REQUEST);
                true
            }
            // An empty one that is not the last says nothing.
            DATA if self.skipped > 0 || flags & END_STREAM != 0 => true,
            _ => self.spend(),
        }
    }

    fn gain(&mut self, frames: u32) {
        self.left = self.left.saturating_add(frames).min(FRAMES_MAX);
    }

    fn spend(&mut self) -> bool {
        if self.left == 0 {
            let now_ms = now_ms();
            let passed_ms = now_ms.saturating_sub(self.counted_ms);
            self.counted_ms = now_ms;
            self.gain(u32::try_from(passed_ms.saturating_mul(FRAMES_PER_MS)).unwrap_or(FRAMES_MAX));
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    /// The last frame for a client that has sent too much.
    pub(super) fn goodbye(&self) -> [u8; HEAD_BYTES + 8] {
        let [a, b, c, d] = self.stream;
        [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, a, b, c, d, 0, 0, 0, ENHANCE_YOUR_CALM]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let mut frame = vec![0, (payload >> 8) as u8, payload as u8, kind, flags, 0, 0, 0, 1];
        frame.resize(HEAD_BYTES + payload, 0xff);
        frame
    }

    fn begun() -> Calm {
        let mut calm = Calm::new();
        assert!(calm.bears(&[4; PREFACE_BYTES]));
        calm
    }

    /// How many of them are borne in pieces of that size; each flood takes less than the time in which as many more may come.
    fn borne(calm: &mut Calm, frame: &[u8], piece: usize) -> u32 {
        let mut count = 0;
        while frame.chunks(piece).all(|piece| calm.bears(piece)) {
            count += 1;
            assert!(count < 100 * FRAMES_MAX, "without an end");
        }
        count
    }

    #[test]
    fn frames_that_carry_nothing_are_limited_however_they_come() {
        // PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION, an unknown one, DATA without data.
        for (kind, payload) in [(2, 5), (3, 4), (4, 0), (6, 8), (8, 4), (9, 1), (77, 300), (0, 0)] {
            for piece in [1, 7, 9, 1_000] {
                let count = borne(&mut begun(), &frame(kind, 0, payload), piece);
                assert!((FRAMES_MAX..2 * FRAMES_MAX).contains(&count), "{kind}: {count}");
            }
        }
    }

    #[test]
    fn requests_and_replies_are_not_limited() {
        let (head, last, ping) = (frame(HEADERS, 4, 20), frame(DATA, END_STREAM, 0), frame(6, 0, 8));
        let request = [&head[..], &frame(DATA, 0, 100), &last, &ping, &ping, &ping, &ping].concat();
        let mut calm = begun();
        for _ in 0..10 * FRAMES_MAX {
            assert!(calm.bears(&request));
        }
        // A client that fetches much gives much room.
        let updates = frame(8, 0, 4).repeat(100);
        for _ in 0..FRAMES_MAX {
            calm.sent(100 * SENT_BYTES_PER_FRAME);
            assert!(calm.bears(&updates));
        }
        assert!(borne(&mut calm, &ping, 17) < 2 * FRAMES_MAX);
        assert_eq!(calm.goodbye(), *b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\x0b");
    }
}
