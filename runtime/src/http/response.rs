//! What is answered.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Either;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, TE, TRAILER};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, Version};

use super::router::Place;
use super::streamed::Streamed;
use crate::grpc::{GRPC_TYPE, Status};
use crate::outcome::Failure;
use crate::reply::{Content, Fields, Pieces, Reply, ReplyHead};

/// A request with this header, of any value, is answered with how long it took, in `Server-Timing`.
pub const TIMING_REQUEST: HeaderName = HeaderName::from_static("server-timing-request");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// A response's body: all of it, or what its function still writes.
pub type Answer = Either<Whole, Box<Streamed>>;

/// How trailers can be sent to a client, if they can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trailing {
    /// Not at all.
    #[default]
    Never,
    /// Behind the last chunk of a body in chunks, those that the head announces: HTTP/1.1, where the client accepts them.
    Chunked,
    /// With HTTP/2, in a frame of their own.
    Framed,
}

impl Trailing {
    /// To the client that sent a request with that head.
    #[must_use]
    pub fn of(head: &Parts) -> Trailing {
        let accepts = |value: &HeaderValue| {
            value.to_str().is_ok_and(|list| list.split(',').any(|item| item.trim().eq_ignore_ascii_case("trailers")))
        };
        match head.version {
            _ if head.method == Method::HEAD => Trailing::Never,
            Version::HTTP_2 => Trailing::Framed,
            Version::HTTP_11 if head.headers.get_all(TE).iter().any(accepts) => Trailing::Chunked,
            _ => Trailing::Never,
        }
    }
}

/// The answer to a request that its function handled; `room` is an empty map for its headers.
#[must_use]
pub fn success(
    content: Content,
    head: Option<Box<ReplyHead>>,
    (trailers, trailing): (Option<Box<Fields>>, Trailing),
    content_type: &HeaderValue,
    room: HeaderMap,
) -> Response<Answer> {
    debug_assert!(room.is_empty());
    let status = head.as_ref().map(|head| head.status);
    let is_bodiless = matches!(status, Some(StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED));
    let trailing = if is_bodiless { Trailing::Never } else { trailing };
    let trailers = trailers.filter(|_| trailing != Trailing::Never);
    // A component announces what it knows only at the end of its body.
    let says_names = head.as_ref().is_some_and(|head| head.headers.get(&TRAILER).is_some());
    let names = trailers.as_ref().and_then(|trailers| trailers.names()).or_else(|| match &content {
        Content::Stream(stream) if trailing != Trailing::Never && !says_names => stream.announced(),
        _ => None,
    });
    let is_announced = names.is_some() || says_names;
    // hyper sends those only that are announced.
    let is_chunked = trailing == Trailing::Chunked && is_announced;
    let mut response = Response::new(match content {
        Content::Whole(bytes) => Either::Left(Whole { bytes, more: None, trailers, is_chunked }),
        Content::Pieces(mut pieces) => {
            let bytes = pieces.0.pop_front().unwrap_or_default();
            Either::Left(Whole { bytes, more: Some(pieces), trailers, is_chunked })
        }
        Content::Stream(mut stream) => {
            if trailing == Trailing::Never || trailing == Trailing::Chunked && !is_chunked {
                stream.without_trailers();
            }
            Either::Right(Box::new(Streamed::new(stream, is_chunked)))
        }
    });
    *response.headers_mut() = room;
    if !head.as_ref().is_some_and(|head| head.says_type) {
        response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
    }
    if let Some(head) = head {
        *response.status_mut() = head.status;
        // In place of ours, where the names are the same.
        response.headers_mut().extend(head.headers.into_map());
    }
    if let Some(names) = names {
        response.headers_mut().insert(TRAILER, names);
    }
    response
}

/// A body that is there, and what comes behind it.
#[derive(Debug, Default)]
pub struct Whole {
    /// Empty where there is no more.
    bytes: Bytes,
    /// Further pieces, none of which is empty.
    more: Option<Box<Pieces>>,
    trailers: Option<Box<Fields>>,
    /// Whether it has to come in chunks, for its trailers.
    is_chunked: bool,
}

impl Whole {
    /// Its bytes, as one piece, and what comes behind it.
    pub(super) fn into_parts(self) -> (Bytes, Option<HeaderMap>) {
        let bytes = self.as_piece();
        (bytes, self.trailers.map(|trailers| trailers.into_map()))
    }

    /// Its bytes, as one piece.
    pub(super) fn as_piece(&self) -> Bytes {
        match &self.more {
            Some(pieces) if !pieces.0.is_empty() => {
                let mut all = Vec::with_capacity(self.len());
                all.extend_from_slice(&self.bytes);
                pieces.0.iter().for_each(|piece| all.extend_from_slice(piece));
                all.into()
            }
            _ => self.bytes.clone(),
        }
    }

    /// The next piece of it.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let next = self.more.as_mut().and_then(|pieces| pieces.0.pop_front()).unwrap_or_default();
        Some(mem::replace(&mut self.bytes, next)).filter(|bytes| !bytes.is_empty())
    }

    /// The same, of which clients are not told the length.
    pub(super) fn without_length(self) -> Whole {
        Whole { is_chunked: true, ..self }
    }

    /// Whether something comes behind it.
    pub(super) const fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// A field that comes behind it.
    #[must_use]
    pub fn trailer(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.trailers.as_ref().and_then(|trailers| trailers.get(name))
    }

    /// Bytes of the body.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.more.iter().flat_map(|pieces| &pieces.0).map(Bytes::len).sum::<usize>()
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl From<Bytes> for Whole {
    fn from(bytes: Bytes) -> Whole {
        Whole { bytes, ..Whole::default() }
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match self.next() {
            Some(bytes) => Some(Frame::data(bytes)),
            None => self.trailers.take().map(|trailers| Frame::trailers(trailers.into_map())),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::default();
        // What is not known exactly comes in chunks.
        let bytes = self.len() as u64;
        hint.set_lower(bytes);
        if !self.is_chunked {
            hint.set_exact(bytes);
        }
        hint
    }
}

/// The answer to OPTIONS.
#[must_use]
pub fn options(allow: &HeaderValue) -> Response<Answer> {
    let mut response = Response::new(Either::Left(Whole::default()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, allow.clone());
    response
}

/// The answer to a request that failed; `place` is whose path it was for, where it came so far.
#[must_use]
pub fn failure(failure: &Failure, place: Option<&Place>) -> Response<Answer> {
    let mut json = failure.to_json(place.map(|place| place.labels().function.as_str()));
    json.push('\n');
    let mut response = Response::new(Either::Left(Bytes::from(json).into()));
    *response.status_mut() = failure.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    match (failure, place) {
        (Failure::MethodNotAllowed, Some(Place::Served(route))) => {
            headers.insert(ALLOW, route.allow.clone());
        }
        // What is left of the body is not worth reading, or cannot be told from the next request.
        (Failure::BadHead(_) | Failure::BodyTooLarge | Failure::BodyBroken | Failure::BodyTimeout, _) => {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        _ if failure.is_temporary() => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    debug_assert_ne!(response.status(), StatusCode::OK);
    response
}

/// The same to a client that speaks gRPC: a head without a body, whose fields are trailers.
#[must_use]
pub fn grpc_failure(failure: &Failure, place: Option<&Place>) -> Response<Answer> {
    let mut response = Response::new(Either::Left(Whole::default()));
    response.headers_mut().insert(CONTENT_TYPE, GRPC_TYPE);
    Status::of(failure, place.map(|place| place.labels().function.as_str())).put(response.headers_mut());
    response
}

/// Adds how long a request waited and ran, in milliseconds (<https://www.w3.org/TR/server-timing/>).
pub fn add_timing(response: &mut Response<Answer>, reply: &Reply) {
    let mut text = String::with_capacity(48);
    let milliseconds = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
    let _ = write!(text, "queue;dur={:.4}, run;dur={:.4}", milliseconds(reply.queued), milliseconds(reply.ran));
    let record = &reply.record;
    let times = [("ready", record.ready), ("cpu", record.running), ("blocked", record.blocked)];
    for (name, time) in times {
        let _ = write!(text, ", {name};dur={:.4}", milliseconds(time));
    }
    for (_, phase, time) in record.phases.iter().flat_map(|phases| phases.times()) {
        let _ = write!(text, ", phase-{};dur={:.4}", phase.name, milliseconds(time));
    }
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(SERVER_TIMING, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Record;
    use std::task::Waker;
    use std::time::Duration;

    #[test]
    fn a_body_in_pieces_is_sent_piece_by_piece_and_its_length_is_known() {
        let pieces = || Content::Pieces(Box::new(Pieces(["ab", "c", "def"].map(Bytes::from).into())));
        let text = HeaderValue::from_static("text/plain");
        let whole = |content| match success(content, None, (None, Trailing::Never), &text, HeaderMap::new()).into_body() {
            Either::Left(whole) => whole,
            Either::Right(_) => panic!("it is whole"),
        };
        let mut body = whole(pieces());
        assert_eq!((body.len(), body.size_hint().exact(), body.is_empty()), (6, Some(6), false));
        let mut sent: Vec<Bytes> = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop())) {
            sent.push(frame.into_data().unwrap());
            let left = 6 - sent.iter().map(Bytes::len).sum::<usize>() as u64;
            assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(left), left == 0));
        }
        assert_eq!(sent, ["ab", "c", "def"]);
        assert_eq!(whole(pieces()).into_parts().0, "abcdef");
    }

    #[test]
    fn timing_is_in_milliseconds() {
        let text = HeaderValue::from_static("text/plain");
        let mut response = success(Content::Whole(Bytes::new()), None, (None, Trailing::Never), &text, HeaderMap::new());
        let record = Record { ready: Duration::from_micros(1), running: Duration::from_millis(2), ..Record::default() };
        let (queued, ran) = (Duration::from_nanos(12_300), Duration::from_nanos(1_000_456_700));
        let reply = Reply { result: Ok(Content::Whole(Bytes::new())), head: None, trailers: None, queued, ran, record };
        add_timing(&mut response, &reply);
        assert_eq!(
            response.headers()["server-timing"],
            "queue;dur=0.0123, run;dur=1000.4567, ready;dur=0.0010, cpu;dur=2.0000, blocked;dur=0.0000"
        );
    }
}
