//! What gRPC says in HTTP's words: how a call ended (`grpc-status`), what that is where the server or a function has failed, and how long a call may take.
//!
//! After gRPC's PROTOCOL-HTTP2.md and http-grpc-status-mapping.md.
//!
//! * [`frame`]: messages as they stand in bodies, which are bytes here;
//! * [`offer`]: what an application offers to clients; [`descriptors`]: its .proto files; `own`: those of the services that the server itself offers;
//! * [`reflection`], [`health`]: what these services answer;
//! * [`web`] and [`connect`]: how browsers and others carry all that; [`json`]: messages as text; [`pack`]: messages that are compressed.
//!
//! Nothing here reads from a connection or knows functions: `http::services` does.

pub mod connect;
pub mod descriptors;
pub mod frame;
pub mod health;
pub mod json;
pub mod offer;
mod own;
pub mod pack;
pub mod reflection;
pub mod web;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::kv::KvError;
use crate::outcome::Failure;

pub use descriptors::Descriptors;
pub use offer::Offer;
pub use own::{HEALTH, REFLECTION, REFLECTION_ALPHA, pool as own_pool};

/// How a call ended, as a number.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The same in words, [encoded](encoded).
pub const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// How messages are compressed.
pub const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// How they may be.
pub const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
/// How long a call may take.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// The type of what is gRPC.
pub const GRPC_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");

/// Digits of a `grpc-timeout`.
const TIMEOUT_DIGITS_MAX: usize = 8;

/// The names of all statuses, by their numbers (gRPC's statuscodes.md).
pub const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The number of the status that fields have, if they have one. What is no number of a status is UNKNOWN to clients.
#[must_use]
pub fn status_in(fields: &HeaderMap) -> Option<usize> {
    fields.get(GRPC_STATUS).map(status_number)
}

/// The same of a `grpc-status`.
#[must_use]
pub fn status_number(value: &HeaderValue) -> usize {
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.filter(|number| *number < STATUSES.len()).unwrap_or(Code::Unknown as usize)
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Its caller has given it up.
    Cancelled = 1,
    /// Nothing is known of it.
    Unknown = 2,
    /// What is asked for makes no sense.
    InvalidArgument = 3,
    /// It was not done in time.
    DeadlineExceeded = 4,
    /// What is asked about is not there.
    NotFound = 5,
    /// The caller must not do that.
    PermissionDenied = 7,
    /// There is too much of something, or too little left.
    ResourceExhausted = 8,
    /// Others were in its way; it may be tried again.
    Aborted = 10,
    /// Nothing of that name is there.
    Unimplemented = 12,
    /// Something is broken.
    Internal = 13,
    /// It cannot be reached now.
    Unavailable = 14,
    /// The caller is not known.
    Unauthenticated = 16,
}

/// How a call ended, and what there is to say about that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Which kind.
    pub code: Code,
    /// In words.
    pub message: Cow<'static, str>,
}

impl Status {
    /// One in those words.
    #[must_use]
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Status {
        Status { code, message: message.into() }
    }

    /// That of a request which failed; `function`: whose it was, where it came so far.
    #[must_use]
    pub fn of(failure: &Failure, function: Option<&str>) -> Status {
        let reason = failure.reason();
        let message = match (function, failure) {
            (Some(name), Failure::Trap(_) | Failure::MemoryStack(_) | Failure::Component { .. } | Failure::MemoryLimit) => {
                format!("function `{name}` trapped: {reason}").into()
            }
            (Some(name), _) => format!("function `{name}`: {reason}").into(),
            (None, _) => reason,
        };
        Status { code: code(failure), message }
    }

    /// That of a call which was answered with a status of HTTP's and none of gRPC's.
    #[must_use]
    pub fn of_http(status: StatusCode) -> Status {
        let code = match status {
            StatusCode::BAD_REQUEST => Code::Internal,
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::PermissionDenied,
            StatusCode::NOT_FOUND => Code::Unimplemented,
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
            _ => Code::Unknown,
        };
        Status { code, message: format!("HTTP status {}", status.as_u16()).into() }
    }

    /// Says it in the fields of a head or in trailers.
    pub fn put(&self, fields: &mut HeaderMap) {
        fields.insert(GRPC_STATUS, HeaderValue::from(self.code as u16));
        if !self.message.is_empty()
            && let Ok(message) = HeaderValue::try_from(encoded(&self.message))
        {
            fields.insert(GRPC_MESSAGE, message);
        }
    }
}

/// What a failure is to gRPC.
const fn code(failure: &Failure) -> Code {
    match failure {
        Failure::NotFound | Failure::MethodNotAllowed | Failure::PathTooLong => Code::Unimplemented,
        // Those that say that another attempt does not help now, and those of sizes.
        Failure::FunctionBusy
        | Failure::Busy
        | Failure::Overload
        | Failure::Shed
        | Failure::NoMemory
        | Failure::BodyTooLarge
        | Failure::ReplyTooLarge => Code::ResourceExhausted,
        Failure::Stopping | Failure::Quarantined | Failure::NoStore | Failure::NotCommitted(KvError::Unavailable(_)) => {
            Code::Unavailable
        }
        Failure::Deadline | Failure::BodyTimeout => Code::DeadlineExceeded,
        Failure::Cancelled => Code::Cancelled,
        Failure::Conflict => Code::Aborted,
        Failure::OutcomeUnknown => Code::Unknown,
        Failure::BadHead(_)
        | Failure::BodyBroken
        | Failure::CpuLimit
        | Failure::Trap(_)
        | Failure::MemoryStack(_)
        | Failure::Component { .. }
        | Failure::MemoryLimit
        | Failure::Exit(_)
        | Failure::ReplyIncomplete
        | Failure::ReplyUnfinished
        | Failure::ReplyMissing
        | Failure::EffectRefused { .. }
        | Failure::NotCommitted(_)
        | Failure::Internal => Code::Internal,
    }
}

/// What a body carries, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// gRPC: `application/grpc`, perhaps with the format of its messages.
    Grpc,
    /// gRPC-Web: `application/grpc-web`, likewise.
    Web {
        /// As text: `application/grpc-web-text`.
        is_text: bool,
    },
    /// Connect: `application/proto` and `application/json` for a message, `application/connect+proto` and so on for a stream of them.
    Connect {
        /// In JSON.
        is_json: bool,
        /// In envelopes.
        is_stream: bool,
    },
    /// Something else.
    Other,
}

impl Kind {
    /// Of what these fields belong to.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Kind {
        let ty = headers.get(CONTENT_TYPE).and_then(|ty| ty.as_bytes().strip_prefix(b"application/"));
        let Some(ty) = ty else { return Kind::Other };
        let Some(rest) = ty.strip_prefix(b"grpc") else {
            let connect = |is_json, is_stream| Kind::Connect { is_json, is_stream };
            return match ty.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end() {
                b"proto" => connect(false, false),
                b"json" => connect(true, false),
                b"connect+proto" => connect(false, true),
                b"connect+json" => connect(true, true),
                _ => Kind::Other,
            };
        };
        let (kind, format) = match rest.strip_prefix(b"-web") {
            None => (Kind::Grpc, rest),
            Some(rest) => match rest.strip_prefix(b"-text") {
                None => (Kind::Web { is_text: false }, rest),
                Some(rest) => (Kind::Web { is_text: true }, rest),
            },
        };
        if matches!(format.first(), None | Some(b'+' | b';')) { kind } else { Kind::Other }
    }
}

/// Whether fields say that what they belong to is gRPC.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    Kind::of(headers) == Kind::Grpc
}

/// A `grpc-message`: what no header may hold, and `%`, as `%XX`.
fn encoded(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' | ..b' ' | b'\x7f'.. => {
                let _ = write!(text, "%{byte:02X}");
            }
            plain => text.push(char::from(plain)),
        }
    }
    text
}

/// A `grpc-timeout`: up to eight digits and a unit; none where it is malformed.
#[must_use]
pub fn timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > TIMEOUT_DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 3_600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Such a time as a header, in the finest unit in which it can be said; what is left over counts as one more.
#[must_use]
pub fn timeout_value(time: Duration) -> HeaderValue {
    const NUMBER_MAX: u128 = 10_u128.pow(TIMEOUT_DIGITS_MAX as u32) - 1;
    const UNITS: [(u128, char); 5] = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M')];
    let time = time.as_nanos();
    let found = UNITS.into_iter().map(|(size, unit)| (time.div_ceil(size), unit)).find(|(number, _)| *number <= NUMBER_MAX);
    let (number, unit) = found.unwrap_or((NUMBER_MAX, 'M'));
    // Digits and a letter.
    HeaderValue::try_from(format!("{number}{unit}")).unwrap_or(HeaderValue::from_static("99999999M"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sledge_sandbox::TrapCode;

    #[test]
    fn times_are_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Duration::from_secs(3_600)),
            ("99999999H", Duration::from_secs(359_999_996_400)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(timeout(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "1", "S", "1s", "-1S", "+1S", "1.5S", "123456789n", " 1S", "1S ", "1 S"] {
            assert_eq!(timeout(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_said_as_finely_as_it_can_be() {
        for (ns, expected) in [
            (0, "0n"),
            (99_999_999, "99999999n"),
            (100_000_000, "100000u"),
            (100_000_001, "100001u"),
            (30_000_000_000, "30000000u"),
            (86_400_000_000_000, "86400000m"),
            (100_000_000_000_000, "100000S"),
        ] {
            let time = Duration::from_nanos(ns);
            let text = timeout_value(time);
            assert_eq!(text, expected, "{ns}");
            assert!(timeout(text.as_bytes()).is_some_and(|said| said >= time), "{ns}");
        }
        assert_eq!(timeout_value(Duration::MAX), "99999999M");
    }

    #[test]
    fn messages_have_no_bytes_that_headers_cannot_have() {
        assert_eq!(encoded("a b~`c`"), "a b~`c`");
        assert_eq!(encoded("100%\n\u{e4}\x7f"), "100%25%0A%C3%A4%7F");
    }

    #[test]
    fn a_status_says_whose_function_failed_and_why() {
        let mut fields = HeaderMap::new();
        Status::of(&Failure::Trap(TrapCode::MemoryOutOfBounds), Some("f")).put(&mut fields);
        assert_eq!(fields["grpc-status"], "13");
        assert_eq!(fields["grpc-message"], "function `f` trapped: memory_out_of_bounds");
        assert_eq!(Status::of(&Failure::NotFound, None), Status::new(Code::Unimplemented, "no_such_route"));
        assert_eq!(Status::of(&Failure::Exit(3), Some("f")), Status::new(Code::Internal, "function `f`: status_3"));
    }

    #[test]
    fn a_number_without_a_name_is_unknown() {
        let number = |text: &str| status_number(&HeaderValue::try_from(text).unwrap());
        assert_eq!(["0", "5", "16", "17", "-1", "", "x", "99999999999999999999"].map(number), [0, 5, 16, 2, 2, 2, 2, 2]);
        for code in [Code::Cancelled, Code::Unknown, Code::DeadlineExceeded, Code::PermissionDenied, Code::ResourceExhausted] {
            assert_eq!(STATUSES[code as usize].replace('_', "").to_lowercase(), format!("{code:?}").to_lowercase());
        }
        for code in [Code::Unimplemented, Code::Internal, Code::Unavailable, Code::Unauthenticated] {
            assert_eq!(STATUSES[code as usize].to_lowercase(), format!("{code:?}").to_lowercase());
        }
        assert_eq!(status_in(&HeaderMap::new()), None);
    }

    #[test]
    fn types_of_grpc_are_known() {
        let kind = |ty: &str| Kind::of(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::try_from(ty).unwrap())]));
        let web = |is_text| Kind::Web { is_text };
        for (ty, expected) in [("", Kind::Grpc), ("-web", web(false)), ("-web-text", web(true))] {
            for format in ["", "+proto", "; charset=utf-8"] {
                assert_eq!(kind(&format!("application/grpc{ty}{format}")), expected, "{ty}{format}");
            }
        }
        for other in
            ["application/grpcx", "application/grpc-webx", "application/grpc-web-textx", "application/grpc-x", "text/plain"]
        {
            assert_eq!(kind(other), Kind::Other, "{other}");
        }
        assert_eq!(Kind::of(&HeaderMap::new()), Kind::Other);
        for (ty, is_json, is_stream) in [
            ("proto", false, false),
            ("json ; charset=utf-8", true, false),
            ("connect+proto", false, true),
            ("connect+json", true, true),
        ] {
            assert_eq!(kind(&format!("application/{ty}")), Kind::Connect { is_json, is_stream }, "{ty}");
        }
    }
}
