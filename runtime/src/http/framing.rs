//! Where requests and their parts begin in what comes over a connection with HTTP/1, as far as hyper does not tell.
//!
//! It is needed for four things:
//!
//! - A request of a later version than 1.1 is one of 1.1 (RFC 9110, 2.5), where hyper refuses it: its version is changed as it comes.
//! - A chunk says how long it is before it comes, so what is too long can be refused at once: hyper says nothing of chunks until their bytes are there.
//! - A head that says more than once how its body is delimited hides requests in others (RFC 9112, 6.3): it is refused. hyper takes the chunks, or the first of
//!   equal lengths, and shows no more than that.
//! - A length that is too large for hyper's numbers is refused by hyper as too large a head. It is made a number that is only too large for a body.
//!
//! hyper decides what a request is. Whatever is unusual is refused by it or ends the connection; nothing is followed any further then.

use memchr::memchr;

/// How much of a line is kept whose end has not come: enough to tell the lines that matter.
const KEPT_BYTES_MAX: usize = 64;
/// What a request's line ends with, but for the last digit of its version.
const VERSION: &[u8; 8] = b" HTTP/1.";

/// How many digits of a length are kept: more than any body has, and not too many for hyper.
const LENGTH_DIGITS_MAX: u32 = 19;
const CONTENT_LENGTH: &[u8; 15] = b"content-length:";

/// Where a connection is.
#[derive(Debug)]
pub(super) struct Framing {
    place: Place,
    /// How what follows the head is delimited, as far as that is known.
    body: Body,
    /// The most bytes of a body in chunks.
    body_bytes_max: u64,
    /// The beginning of a line whose end has not come.
    kept: Vec<u8>,
    /// How much of [`VERSION`] stands at the end of what has come of a request's line.
    matched: usize,
    /// The digits of a length in a line whose end has not come, without zeros before them.
    digits: u32,
    /// Requests that have begun, counted around.
    requests: u32,
    /// The request of which no more is to be done.
    refused: Option<(u32, Refusal)>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A chunk of it is too long: no more of it is to be read.
    TooLarge,
    /// Its head says more than once where its body ends.
    Ambiguous,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    RequestLine,
    Header,
    /// So many bytes come before the next request.
    Body(u64),
    ChunkLine,
    /// So many bytes come before the next chunk, the end of its line included.
    Chunk(u64),
    Trailer,
    /// It is not known.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// Nothing is said of it: there is none.
    None,
    Length(u64),
    /// In chunks, of so many bytes so far.
    Chunks(u64),
    Unknown,
    /// More than one thing is said.
    Ambiguous,
}

impl Framing {
    /// At the begin of a connection on which bodies have at most so many bytes.
    pub(super) const fn new(body_bytes_max: u64) -> Framing {
        let (place, body) = (Place::RequestLine, Body::None);
        Framing { place, body, body_bytes_max, kept: Vec::new(), matched: 0, digits: 0, requests: 0, refused: None }
    }

    /// The request, counted from 1, that is refused, and why.
    pub(super) const fn refused(&self) -> Option<(u32, Refusal)> {
        self.refused
    }

    /// Follows what has come.
    pub(super) fn follow(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() && self.refused.is_none() {
            match &mut self.place {
                Place::Lost => return,
                Place::Body(left) | Place::Chunk(left) => {
                    let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= skipped as u64;
                    bytes = &mut bytes[skipped..];
                    if *left == 0 {
                        self.place = if matches!(self.place, Place::Chunk(_)) { Place::ChunkLine } else { Place::RequestLine };
                    }
                }
                _ => {
                    let end = memchr(b'\n', bytes);
                    let (line, rest) = bytes.split_at_mut(end.map_or(bytes.len(), |end| end + 1));
                    bytes = rest;
                    if self.place == Place::RequestLine {
                        self.modernise(line, end.is_some());
                    }
                    if end.is_none() || !self.kept.is_empty() {
                        if self.place == Place::Header {
                            self.shorten_part(line);
                        }
                        let room = KEPT_BYTES_MAX - self.kept.len();
                        self.kept.extend_from_slice(&line[..line.len().min(room)]);
                    }
                    if end.is_none() {
                        return;
                    }
                    if self.kept.is_empty() {
                        self.line(line);
                    } else {
                        let mut kept = std::mem::take(&mut self.kept);
                        self.digits = 0;
                        self.line(&mut kept);
                    }
                }
            }
        }
    }

    /// Makes a version of HTTP/1 that is later than 1.1 that one, in a part of a request's line.
    fn modernise(&mut self, line: &mut [u8], is_end: bool) {
        let is_later = |digit: u8| (b'2'..=b'9').contains(&digit);
        if is_end && self.kept.is_empty() {
            // The whole line, as nearly always.
            let end = line.trim_ascii_end().len();
            if let Some((digit, line)) = line[..end].split_last_mut()
                && is_later(*digit)
                && line.ends_with(VERSION)
            {
                *digit = b'1';
            }
            return;
        }
        for byte in line {
            match VERSION.get(self.matched) {
                None if is_later(*byte) => *byte = b'1',
                Some(expected) if byte == expected => {
                    self.matched += 1;
                    continue;
                }
                _ => {}
            }
            self.matched = usize::from(*byte == VERSION[0]);
        }
    }

    /// Shortens the length in a part of a header's line, behind what is kept of it.
    fn shorten_part(&mut self, part: &mut [u8]) {
        let of_name = CONTENT_LENGTH.len().saturating_sub(self.kept.len());
        let Some((name, value)) = part.split_at_mut_checked(of_name) else { return };
        let kept = &self.kept[..self.kept.len().min(CONTENT_LENGTH.len())];
        if [kept, &*name].concat().eq_ignore_ascii_case(CONTENT_LENGTH) {
            shorten(value, &mut self.digits);
        }
    }

    /// Takes a line, or its first [`KEPT_BYTES_MAX`] bytes, where it came in pieces.
    fn line(&mut self, line: &mut [u8]) {
        let is_empty = matches!(&*line, b"\n" | b"\r\n");
        match self.place {
            // Empty lines before a request are skipped.
            Place::RequestLine if is_empty => {}
            Place::RequestLine => {
                (self.place, self.body, self.matched) = (Place::Header, Body::None, 0);
                self.requests = self.requests.wrapping_add(1);
            }
            Place::Header if is_empty => {
                self.place = match self.body {
                    Body::None | Body::Length(0) => Place::RequestLine,
                    Body::Length(bytes) => Place::Body(bytes),
                    Body::Chunks(_) => Place::ChunkLine,
                    Body::Unknown => Place::Lost,
                    Body::Ambiguous => {
                        self.refused = Some((self.requests, Refusal::Ambiguous));
                        Place::Lost
                    }
                }
            }
            Place::Header => self.header(line),
            Place::ChunkLine => self.chunk(line),
            Place::Trailer if is_empty => self.place = Place::RequestLine,
            Place::Trailer | Place::Body(_) | Place::Chunk(_) | Place::Lost => {}
        }
    }

    fn header(&mut self, line: &mut [u8]) {
        let names_length = is_named(line, CONTENT_LENGTH);
        if !names_length && !is_named(line, b"transfer-encoding:") {
            return;
        }
        let colon = memchr(b':', line).unwrap_or_default();
        if names_length && line.len() > CONTENT_LENGTH.len() + LENGTH_DIGITS_MAX as usize {
            shorten(&mut line[colon..], &mut 0);
        }
        let value = line[colon + 1..].trim_ascii();
        let is_whole = line.ends_with(b"\n");
        self.body = match (names_length, self.body) {
            (_, body) if body != Body::None => Body::Ambiguous,
            _ if !is_whole => Body::Unknown,
            (false, _) if value.eq_ignore_ascii_case(b"chunked") => Body::Chunks(0),
            (true, _) => number(value, 10).map_or(Body::Unknown, Body::Length),
            (false, _) => Body::Unknown,
        };
    }

    fn chunk(&mut self, line: &[u8]) {
        let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
        let Body::Chunks(before) = self.body else { return self.place = Place::Lost };
        // Too many digits are too many bytes.
        let is_number = end > 0 && end < line.len();
        let bytes = is_number.then(|| number(&line[..end], 16).unwrap_or(u64::MAX));
        match bytes {
            None => self.place = Place::Lost,
            Some(0) => self.place = Place::Trailer,
            Some(bytes) => {
                let sum = before.saturating_add(bytes);
                (self.place, self.body) = (Place::Chunk(bytes.saturating_add(2)), Body::Chunks(sum));
                if sum > self.body_bytes_max {
                    self.refused = Some((self.requests, Refusal::TooLarge));
                }
            }
        }
    }
}

fn is_named(line: &[u8], name: &[u8]) -> bool {
    // Nearly all lines begin with another letter.
    let begins = line.first().zip(name.first()).is_some_and(|(line, name)| line.eq_ignore_ascii_case(name));
    begins && line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Leaves [`LENGTH_DIGITS_MAX`] digits of a length, in a part of it behind so many `digits`: white space takes the place of the rest. What is no number remains none.
fn shorten(part: &mut [u8], digits: &mut u32) {
    /// The number has ended.
    const OVER: u32 = u32::MAX;
    for byte in part {
        match *byte {
            _ if *digits == OVER => return,
            b'0' if *digits == 0 => {}
            b'0'..=b'9' => {
                *digits += 1;
                if *digits > LENGTH_DIGITS_MAX {
                    *byte = b' ';
                }
            }
            _ if *digits > 0 => *digits = OVER,
            _ => {}
        }
    }
}

/// A number of nothing but digits.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY_BYTES_MAX: u64 = 100;

    /// What becomes of bytes that come in pieces of that size, and which request is refused.
    fn followed(bytes: &str, piece: usize) -> (String, Framing) {
        let (mut bytes, mut framing) = (bytes.as_bytes().to_vec(), Framing::new(BODY_BYTES_MAX));
        for piece in bytes.chunks_mut(piece) {
            framing.follow(piece);
        }
        (String::from_utf8(bytes).unwrap(), framing)
    }

    #[track_caller]
    fn assert_follows(bytes: &str, expected: &str, requests: u32, refused: Option<(u32, Refusal)>) {
        for piece in 1..=bytes.len() {
            let (changed, framing) = followed(bytes, piece);
            assert_eq!(changed, expected, "in pieces of {piece}");
            assert_eq!((framing.requests, framing.refused()), (requests, refused), "{bytes:?} in pieces of {piece}");
        }
    }

    #[test]
    fn later_versions_become_1_1_in_requests_lines_and_nowhere_else() {
        let bytes = "\r\nPOST /a HTTP/1.2\r\nx: a HTTP/1.3\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.4\r\n\r\n\
                     GET /HTTP/1.5 HTTP/1.9\nhost: a\n\nGET / HTTP/1.0\r\n\r\nGET / HTTP/2.0\r\n\r\nGET / HTTP/1.12\r\n\r\n";
        let expected = bytes.replace("/a HTTP/1.2", "/a HTTP/1.1").replace("/HTTP/1.5 HTTP/1.9", "/HTTP/1.5 HTTP/1.1");
        assert_follows(bytes, &expected, 5, None);
    }

    #[test]
    fn bodies_in_chunks_are_followed_to_the_next_request() {
        let head = "POST / HTTP/1.1\r\ntransfer-encoding:  Chunked \r\n";
        let chunks = "\r\n5;x=HTTP/1.2\r\nab\r\nc\r\n5F\r\n";
        let bytes = format!("{head}{chunks}{}\r\n0\r\nt: u\r\n\r\nGET / HTTP/1.2\r\n\r\n", "y".repeat(0x5f));
        assert_follows(&bytes, &bytes.replace("GET / HTTP/1.2", "GET / HTTP/1.1"), 2, None);
    }

    #[test]
    fn the_request_with_too_long_a_body_is_named_as_soon_as_a_chunk_says_so() {
        let head = "GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        for chunk in ["65\r\n", "ffffffffffffffffff;x\r\n", "0000000065 \r\n", "64\n"] {
            let bytes = format!("{head}{chunk}");
            assert_follows(&bytes, &bytes, 2, (chunk != "64\n").then_some((2, Refusal::TooLarge)));
        }
        let sum = format!("{head}64\r\n{}\r\n1\r\n", "y".repeat(0x64));
        assert_follows(&sum, &sum, 2, Some((2, Refusal::TooLarge)));
    }

    #[test]
    fn the_request_is_named_that_says_more_than_once_where_it_ends() {
        let (length, chunked) = ("Content-Length: 3", "Transfer-Encoding: chunked");
        let long = format!("content-length: {}3", "0".repeat(2 * KEPT_BYTES_MAX));
        for (one, other) in [(length, chunked), (chunked, length), (length, length), (chunked, chunked), (&long, chunked)] {
            let head =
                format!("GET / HTTP/1.1\r\ncontent-length: 0\r\n\r\nPOST / HTTP/1.1\r\n{one}\r\nhost: a\r\n{other}\r\n\r\n");
            assert_follows(&head, &head, 2, Some((2, Refusal::Ambiguous)));
            // Not before its head is there.
            let begun = head.strip_suffix("\r\n").unwrap();
            assert_follows(begun, begun, 2, None);
        }
    }

    #[test]
    fn lengths_keep_so_many_digits_and_what_is_no_number_remains_none() {
        for (length, expected) in [
            ("18446744073709551615", "1844674407370955161 "),
            ("1844674407370955161500x", "1844674407370955161   x"),
            (" 000000018446744073709551615 1", " 00000001844674407370955161  1"),
            ("+18446744073709551615", "+1844674407370955161 "),
            ("9999999999999999999", "9999999999999999999"),
            ("00000000000000000000000000000000000", "00000000000000000000000000000000000"),
        ] {
            let head = format!("POST / HTTP/1.1\r\nx: {length}{length}\r\nConTent-lenGth:{length}\r\n");
            let expected = head.replace(&format!("lenGth:{length}"), &format!("lenGth:{expected}"));
            assert_follows(&head, &expected, 1, None);
        }
    }

    #[test]
    fn what_is_unusual_is_followed_no_further() {
        for head in ["transfer-encoding: gzip", "content-length: 1, 1", "content-length: +1", "content-length: x"] {
            let bytes = format!("POST / HTTP/1.1\r\n{head}\r\n\r\nGET / HTTP/1.2\r\n\r\n");
            assert_follows(&bytes, &bytes, 1, None);
        }
        let bytes = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nGET / HTTP/1.2\r\n\r\n";
        assert_follows(bytes, bytes, 1, None);
        // More digits than are kept of a line that comes in pieces.
        let bytes = bytes.replace("zz", &"0".repeat(2 * KEPT_BYTES_MAX));
        let framing = followed(&bytes, 3).1;
        assert_eq!((framing.place, framing.requests), (Place::Lost, 1));
    }
}
