//! Replies that are compressed on their way out (RFC 9110, 8.4 and 12.5.3), where a function's `compression` says so.
//!
//! A small reply is compressed at once and has a length. Any other goes out in steps: what its function has written so far is compressed, and flushed where there is no more for now, so that
//! nothing is held back. Between steps the worker can do something else.

use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use brotli::CompressorWriter;
use bytes::Bytes;
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use http_body_util::Either;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use sledge_sandbox::{Budget, Share};

use super::policy::vary;
use super::response::Answer;
use super::streamed::Streamed;
use crate::config::{CompressionConfig, Encoding};

/// What is compressed at a time: a third of a millisecond.
const STEP_BYTES: usize = 16 << 10;
/// How gzip compresses: its usual level.
const GZIP_LEVEL: u32 = 6;
/// How brotli compresses: about as fast as gzip. Its usual level is for what is compressed once and sent often.
const BROTLI_QUALITY: u32 = 4;
/// How far back brotli looks (a power of two).
const BROTLI_WINDOW_LOG: u32 = 18;
/// What brotli hands on at a time.
const BROTLI_BUFFER_BYTES: usize = 4 << 10;
/// How Zstandard compresses: its usual level.
const ZSTD_LEVEL: i32 = 3;
/// How far back Zstandard looks (a power of two). Larger windows need more memory for each reply that is under way.
const ZSTD_WINDOW_LOG: u32 = 18;
/// Memory of an encoder, at most.
const ENCODER_BYTES: u64 = 2 << 20;
/// The largest weight of an encoding: 1, in thousandths.
const WEIGHT_MAX: u16 = 1_000;

/// Headers that say something of the very bytes of a body.
const DIGESTS: [HeaderName; 3] =
    [HeaderName::from_static("content-digest"), HeaderName::from_static("digest"), HeaderName::from_static("content-md5")];

/// Content types that gain by it, beside `text/*`, `*+json`, `*+xml` and `*+yaml`.
const TYPES: [&str; 25] = [
    "application/ecmascript",
    "application/geo+json-seq",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/jsonlines",
    "application/json-seq",
    "application/ndjson",
    "application/postscript",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
    "font/collection",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
];

/// Which replies of a function are compressed.
#[derive(Debug)]
pub(super) struct Compression {
    encodings: Vec<Encoding>,
    bytes_min: u64,
    /// Of which memory is claimed.
    budget: Arc<Budget>,
}

/// What a request says of how its reply may be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// What the client likes best of what the server can; none where it is the reply as it is.
    encoding: Option<Encoding>,
    /// Whether the client does not take it as it is.
    refuses_identity: bool,
    /// Whether only the head of the reply is asked for.
    is_head: bool,
}

impl Compression {
    /// What a configuration says; memory is claimed of `budget`.
    pub(super) fn new(config: &CompressionConfig, budget: &Arc<Budget>) -> Compression {
        Compression { encodings: config.encodings.clone(), bytes_min: config.bytes_min, budget: Arc::clone(budget) }
    }

    /// What a request says.
    pub(super) fn wanted(&self, head: &Parts) -> Wanted {
        let weights = Weights::of(&head.headers);
        let mut best: Option<(Encoding, u16)> = None;
        for &encoding in &self.encodings {
            let weight = weights.of_encoding(encoding);
            if weight > best.map_or(0, |(_, best)| best) {
                best = Some((encoding, weight));
            }
        }
        let best = best.filter(|(_, weight)| weights.identity.is_none_or(|identity| identity <= *weight));
        let refuses_identity = weights.identity.or(weights.others.filter(|weight| *weight == 0)) == Some(0);
        Wanted { encoding: best.map(|(encoding, _)| encoding), refuses_identity, is_head: head.method == Method::HEAD }
    }

    /// Makes a reply what is wanted. Where there is no memory for that, it goes out as it is.
    pub(super) fn put(&self, response: Response<Answer>, wanted: Wanted) -> Response<Answer> {
        let (mut head, body) = response.into_parts();
        if head.status == StatusCode::NOT_MODIFIED {
            // As the reply that the client has.
            vary(&mut head.headers, ACCEPT_ENCODING.as_str());
            return Response::from_parts(head, body);
        }
        let has_trailers = matches!(&body, Either::Left(whole) if whole.has_trailers());
        if !may_change(head.status, &head.headers) || has_trailers {
            return Response::from_parts(head, body);
        }
        let is_forced = wanted.refuses_identity;
        if !is_forced && !gains(&head.headers) {
            return Response::from_parts(head, body);
        }
        vary(&mut head.headers, ACCEPT_ENCODING.as_str());
        let length = match &body {
            Either::Left(whole) => Some(whole.len() as u64),
            Either::Right(streamed) => streamed.length(),
        };
        let is_small = length.is_some_and(|length| length == 0 || !is_forced && length < self.bytes_min);
        let Some(encoding) = wanted.encoding.filter(|_| !is_small) else { return Response::from_parts(head, body) };
        let body = match pack(body, encoding, wanted.is_head, &self.budget) {
            Ok(body) => body,
            Err(body) => return Response::from_parts(head, body),
        };
        let name = match encoding {
            Encoding::Zstd => "zstd",
            Encoding::Brotli => "br",
            Encoding::Gzip => "gzip",
        };
        head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
        head.headers.remove(CONTENT_LENGTH);
        // Of other bytes than those that go out.
        head.headers.remove(ACCEPT_RANGES);
        weaken(&mut head.headers);
        Response::from_parts(head, body)
    }
}

/// A body that is compressed, or the same as it was, where there is no memory for that. What is compressed at once needs it for a moment only.
fn pack(body: Answer, encoding: Encoding, is_head: bool, budget: &Arc<Budget>) -> Result<Answer, Answer> {
    match body {
        Either::Left(whole) if whole.len() <= STEP_BYTES => match at_once(encoding, whole.as_piece()) {
            Ok(bytes) => Ok(Either::Left(bytes.into())),
            Err(_) => Err(Either::Left(whole)),
        },
        // Nothing of it is sent, and nothing is known of its length.
        Either::Left(whole) if is_head => Ok(Either::Left(whole.without_length())),
        Either::Left(whole) => match Packer::claim(encoding, Some(whole.len() as u64), budget) {
            Some(packer) => Ok(Either::Right(Box::new(Streamed::packed(whole, packer)))),
            None => Err(Either::Left(whole)),
        },
        Either::Right(mut streamed) if is_head => {
            streamed.forget_length();
            Ok(Either::Right(streamed))
        }
        Either::Right(mut streamed) => match Packer::claim(encoding, streamed.length(), budget) {
            Some(packer) => {
                streamed.pack(packer);
                Ok(Either::Right(streamed))
            }
            None => Err(Either::Right(streamed)),
        },
    }
}

/// All of a small body.
fn at_once(encoding: Encoding, bytes: Bytes) -> io::Result<Bytes> {
    let mut encoder = Encoder::new(encoding, Some(bytes.len() as u64))?;
    encoder.write_all(&bytes)?;
    encoder.finish().map(Bytes::from)
}

/// Whether a reply may be sent in another form than its function has given it.
fn may_change(status: StatusCode, headers: &HeaderMap) -> bool {
    let has_whole_body = !status.is_informational()
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::PARTIAL_CONTENT);
    let forbids = |value: &HeaderValue| {
        value.to_str().is_ok_and(|list| list.split(',').any(|item| item.trim().eq_ignore_ascii_case("no-transform")))
    };
    has_whole_body
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !headers.get_all(CACHE_CONTROL).iter().any(forbids)
        && !DIGESTS.iter().any(|name| headers.contains_key(name))
}

/// Whether bodies of that type are smaller afterwards.
fn gains(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let ty = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = ty.starts_with("text/") || ["+json", "+xml", "+yaml"].iter().any(|suffix| ty.ends_with(suffix));
    is_text || TYPES.contains(&&*ty)
}

/// A strong validator stands for the very bytes (RFC 9110, 8.8.3), which are others now.
fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(ETAG).filter(|tag| tag.as_bytes().starts_with(b"\"")) else { return };
    if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
        headers.insert(ETAG, weak);
    }
}

/// How much a client likes encodings, in thousandths; none where it says nothing of one.
#[derive(Debug, Default)]
struct Weights {
    zstd: Option<u16>,
    brotli: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    /// Of those that are not listed.
    others: Option<u16>,
}

impl Weights {
    fn of(headers: &HeaderMap) -> Weights {
        let mut weights = Weights::default();
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for item in values.flat_map(|list| list.split(',')) {
            let mut parts = item.split(';').map(str::trim);
            let coding = parts.next().unwrap_or_default();
            let is = |name: &str| coding.eq_ignore_ascii_case(name);
            let place = match coding {
                "*" => &mut weights.others,
                _ if is("gzip") || is("x-gzip") => &mut weights.gzip,
                _ if is("zstd") => &mut weights.zstd,
                _ if is("br") => &mut weights.brotli,
                _ if is("identity") => &mut weights.identity,
                _ => continue,
            };
            // What is malformed says nothing.
            if let Some(weight) = parts.next().map_or(Some(WEIGHT_MAX), weight) {
                *place = Some(weight);
            }
        }
        weights
    }

    fn of_encoding(&self, encoding: Encoding) -> u16 {
        let own = match encoding {
            Encoding::Zstd => self.zstd,
            Encoding::Brotli => self.brotli,
            Encoding::Gzip => self.gzip,
        };
        own.or(self.others).unwrap_or(0)
    }
}

/// `q=0.5` in thousandths (RFC 9110, 12.4.2).
fn weight(text: &str) -> Option<u16> {
    let number = text.strip_prefix(['q', 'Q'])?.strip_prefix('=')?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{part:0<3}").parse().ok()?;
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(WEIGHT_MAX),
        _ => None,
    }
}

/// Compresses, and keeps what came of it until it is taken.
enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// For so many bytes, if that is known.
    fn new(encoding: Encoding, length: Option<u64>) -> io::Result<Encoder> {
        Ok(match encoding {
            Encoding::Gzip => Encoder::Gzip(GzEncoder::new(Vec::new(), Level::new(GZIP_LEVEL))),
            Encoding::Brotli => {
                let writer = CompressorWriter::new(Vec::new(), BROTLI_BUFFER_BYTES, BROTLI_QUALITY, BROTLI_WINDOW_LOG);
                Encoder::Brotli(Box::new(writer))
            }
            Encoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                // Small tables for a small reply.
                encoder.set_pledged_src_size(length)?;
                if length.is_none_or(|length| length > 1 << ZSTD_WINDOW_LOG) {
                    encoder.window_log(ZSTD_WINDOW_LOG)?;
                }
                Encoder::Zstd(encoder)
            }
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
            Encoder::Brotli(encoder) => encoder.write_all(bytes),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Brotli(encoder) => encoder.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
        }
    }

    /// What came of it so far.
    fn take(&mut self) -> Vec<u8> {
        mem::take(match self {
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Brotli(encoder) => encoder.get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut(),
        })
    }

    /// The rest.
    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Brotli(encoder) => Ok(encoder.into_inner()),
            Encoder::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Compresses a body as it comes.
pub(super) struct Packer {
    /// None when it is over.
    encoder: Option<Encoder>,
    /// What has come and is not compressed yet.
    input: Bytes,
    /// Whether there is something in the encoder that was not taken.
    is_held: bool,
    /// Whether another task could run since the last step.
    is_rested: bool,
    _share: Share,
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("input", &self.input.len()).finish_non_exhaustive()
    }
}

/// What comes of a step.
#[derive(Debug)]
pub(super) enum Packed {
    /// This goes out.
    Bytes(Bytes),
    /// Others are to run first.
    Rest,
    /// There is no more until more is put in.
    Nothing,
}

impl Packer {
    /// One for so many bytes, if that is known and there is memory for it.
    fn claim(encoding: Encoding, length: Option<u64>, budget: &Arc<Budget>) -> Option<Packer> {
        let share = budget.claim(ENCODER_BYTES)?;
        let encoder = Encoder::new(encoding, length).ok()?;
        Some(Packer { encoder: Some(encoder), input: Bytes::new(), is_held: false, is_rested: true, _share: share })
    }

    /// More has come. What was there before was compressed.
    pub(super) fn put(&mut self, bytes: Bytes) {
        debug_assert!(self.input.is_empty());
        self.input = bytes;
    }

    /// Compresses some of what has come.
    ///
    /// # Errors
    /// When the encoder has no memory.
    pub(super) fn step(&mut self) -> io::Result<Packed> {
        let Some(encoder) = self.encoder.as_mut() else { return Ok(Packed::Nothing) };
        while !self.input.is_empty() {
            if !mem::replace(&mut self.is_rested, false) {
                self.is_rested = true;
                return Ok(Packed::Rest);
            }
            encoder.write_all(&self.input.split_to(self.input.len().min(STEP_BYTES)))?;
            self.is_held = true;
            let bytes = encoder.take();
            if !bytes.is_empty() {
                return Ok(Packed::Bytes(bytes.into()));
            }
        }
        Ok(Packed::Nothing)
    }

    /// All that has come so far, where something of it is held back.
    ///
    /// # Errors
    /// As for [`step`](Packer::step).
    pub(super) fn flush(&mut self) -> io::Result<Packed> {
        self.is_rested = true;
        let Some(encoder) = self.encoder.as_mut().filter(|_| self.is_held) else { return Ok(Packed::Nothing) };
        self.is_held = false;
        encoder.flush()?;
        Ok(Packed::Bytes(encoder.take().into()))
    }

    /// The end of it.
    ///
    /// # Errors
    /// As for [`step`](Packer::step).
    pub(super) fn finish(&mut self) -> io::Result<Packed> {
        match self.encoder.take() {
            Some(encoder) => Ok(Packed::Bytes(encoder.finish()?.into())),
            None => Ok(Packed::Nothing),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn wanted(accepted: &[&str], encodings: &[Encoding]) -> (Option<Encoding>, bool) {
        let mut request = hyper::Request::builder();
        for value in accepted {
            request = request.header(ACCEPT_ENCODING, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let Wanted { encoding, refuses_identity, .. } =
            Compression { encodings: encodings.to_vec(), bytes_min: 0, budget: Budget::new(0) }.wanted(&head);
        (encoding, refuses_identity)
    }

    #[test]
    fn the_client_says_what_it_likes_and_the_server_chooses_among_that() {
        const ALL: [Encoding; 3] = [Encoding::Zstd, Encoding::Brotli, Encoding::Gzip];
        let (zstd, brotli, gzip) = (Some(Encoding::Zstd), Some(Encoding::Brotli), Some(Encoding::Gzip));
        for (accepted, expected) in [
            (&[][..], (None, false)),
            (&[""], (None, false)),
            (&["gzip"], (gzip, false)),
            (&["X-GZIP"], (gzip, false)),
            (&["gzip, deflate, br, zstd"], (zstd, false)),
            (&["gzip", "zstd"], (zstd, false)),
            (&["gzip, deflate, br"], (brotli, false)),
            (&["Br;q=0.7, gzip;q=0.6"], (brotli, false)),
            (&["gzip, zstd;q=0.9"], (gzip, false)),
            (&["gzip;q=0.001,zstd;q=0"], (gzip, false)),
            (&["gzip;q=0, zstd;q=0.000"], (None, false)),
            (&["*"], (zstd, false)),
            (&["*, zstd;q=0"], (brotli, false)),
            (&["*, zstd;q=0, br;q=0"], (gzip, false)),
            (&["compress;q=1, *;q=0.1"], (zstd, false)),
            (&["identity"], (None, false)),
            (&["identity, gzip;q=0.5"], (None, false)),
            (&["identity;q=0.5, gzip;q=0.5"], (gzip, false)),
            (&["gzip, identity;q=0"], (gzip, true)),
            (&["identity;q=0"], (None, true)),
            (&["*;q=0"], (None, true)),
            (&["*;q=0, gzip"], (gzip, true)),
            (&["*;q=0, identity"], (None, false)),
            (&["gzip;q=2"], (None, false)),
            (&["gzip;q=0.1234"], (None, false)),
            (&["gzip;q=-1, gzip;level=9"], (None, false)),
            (&["gzip ; q=0.5 ,\tzstd; Q=0.4"], (gzip, false)),
        ] {
            assert_eq!(wanted(accepted, &ALL), expected, "{accepted:?}");
        }
        assert_eq!(wanted(&["gzip, zstd"], &[Encoding::Gzip, Encoding::Zstd]), (gzip, false));
        assert_eq!(wanted(&["zstd"], &[Encoding::Gzip]), (None, false));
    }

    #[test]
    fn text_gains_and_what_is_compressed_already_does_not() {
        let gains = |ty: &str| gains(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_str(ty).unwrap())]));
        for ty in
            ["text/html; charset=utf-8", "TEXT/plain", "application/json", "image/svg+xml", "application/ld+json;a=b", "font/ttf"]
        {
            assert!(gains(ty), "{ty}");
        }
        for ty in [
            "",
            "image/png",
            "application/octet-stream",
            "application/grpc",
            "application/grpc+proto",
            "video/mp4",
            "font/woff2",
            "json",
        ] {
            assert!(!gains(ty), "{ty}");
        }
    }

    #[test]
    fn a_body_goes_out_in_steps_between_which_others_run() {
        let input: Vec<u8> = (0..10 * STEP_BYTES as u32 + 1).flat_map(|number| (number / 7).to_le_bytes()).collect();
        for encoding in [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd] {
            let mut packer = Packer::claim(encoding, None, &Budget::new(u64::MAX)).unwrap();
            let (mut output, mut rests, mut steps) = (Vec::new(), 0, 0);
            packer.put(Bytes::from(input.clone()));
            loop {
                steps += 1;
                match packer.step().unwrap() {
                    Packed::Bytes(bytes) => output.extend(bytes),
                    Packed::Rest => rests += 1,
                    Packed::Nothing => break,
                }
            }
            assert!(rests >= input.len() / STEP_BYTES - 1, "{rests} rests in {steps} steps");
            let Packed::Bytes(flushed) = packer.flush().unwrap() else { panic!("something is held back") };
            output.extend(flushed);
            assert!(matches!(packer.flush().unwrap(), Packed::Nothing));
            assert!(unpack(encoding, &output) == input, "all of it has gone out before the end");
            let Packed::Bytes(end) = packer.finish().unwrap() else { panic!("there is an end") };
            output.extend(end);
            assert!(matches!(packer.finish().unwrap(), Packed::Nothing));
            assert!(unpack(encoding, &output) == input && output.len() < input.len() / 2);
        }
    }

    /// What there is so far of a body.
    fn unpack(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
        match encoding {
            Encoding::Gzip => {
                let mut decoder = flate2::write::GzDecoder::new(Vec::new());
                decoder.write_all(bytes).unwrap();
                decoder.flush().unwrap();
                decoder.get_ref().clone()
            }
            Encoding::Brotli => {
                let mut all = Vec::new();
                // That there is no end yet is an error, behind all that there is.
                let _ = brotli::Decompressor::new(bytes, BROTLI_BUFFER_BYTES).read_to_end(&mut all);
                all
            }
            Encoding::Zstd => {
                let mut decoder = zstd::stream::write::Decoder::new(Vec::new()).unwrap();
                decoder.write_all(bytes).unwrap();
                decoder.flush().unwrap();
                decoder.get_ref().clone()
            }
        }
    }
}
