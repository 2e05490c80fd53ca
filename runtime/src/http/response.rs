//! What is answered.

use std::fmt::Write as _;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use super::router::Place;
use super::streamed::Streamed;
use crate::outcome::Failure;
use crate::reply::{Content, Reply, ReplyHead};

/// A request with this header, of any value, is answered with how long it took, in `Server-Timing`.
pub const TIMING_REQUEST: HeaderName = HeaderName::from_static("server-timing-request");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// A response's body: all of it, or what its function still writes.
pub type Answer = Either<Full<Bytes>, Streamed>;

/// The answer to a request that its function handled; `head` is what it said about it.
#[must_use]
pub fn success(content: Content, content_type: &HeaderValue, head: Option<Box<ReplyHead>>) -> Response<Answer> {
    let mut response = Response::new(match content {
        Content::Whole(bytes) => Either::Left(Full::new(bytes)),
        Content::Stream(stream) => Either::Right(Streamed::new(stream)),
    });
    response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
    if let Some(head) = head {
        *response.status_mut() = head.status;
        // In place of ours, where the names are the same.
        response.headers_mut().extend(head.headers.into_map());
    }
    response
}

/// The answer to whoever asks what may be asked for.
#[must_use]
pub fn options(allow: &HeaderValue) -> Response<Answer> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, allow.clone());
    response
}

/// The answer to a request that failed; `place` is whose path it was for, where it came so far.
#[must_use]
pub fn failure(failure: &Failure, place: Option<&Place>) -> Response<Answer> {
    let mut json = failure.to_json(place.map(|place| place.labels().function.as_str()));
    json.push('\n');
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(json))));
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
    use std::time::Duration;

    #[test]
    fn timing_is_in_milliseconds() {
        let mut response = success(Content::Whole(Bytes::new()), &HeaderValue::from_static("text/plain"), None);
        let record = Record { ready: Duration::from_micros(1), running: Duration::from_millis(2), ..Record::default() };
        let (queued, ran) = (Duration::from_nanos(12_300), Duration::from_nanos(1_000_456_700));
        let reply = Reply { result: Ok(Content::Whole(Bytes::new())), head: None, queued, ran, record };
        add_timing(&mut response, &reply);
        assert_eq!(
            response.headers()["server-timing"],
            "queue;dur=0.0123, run;dur=1000.4567, ready;dur=0.0010, cpu;dur=2.0000, blocked;dur=0.0000"
        );
    }
}
