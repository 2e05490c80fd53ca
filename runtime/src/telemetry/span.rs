//! One span: something that took some time, and what is known of it.

use std::borrow::Cow;

use hyper::Method;
use hyper::header::HeaderValue;

use super::context::{SpanId, TraceId};

/// How much of a text from outside is kept.
pub const TEXT_BYTES_MAX: usize = 1_000;

/// Something that took some time.
#[derive(Clone, Debug)]
pub struct Span {
    /// The trace that it belongs to.
    pub trace: TraceId,
    /// Its own number.
    pub id: SpanId,
    /// What it is a part of.
    pub parent: Option<SpanId>,
    /// What others have noted of the trace.
    pub state: Option<HeaderValue>,
    /// What it is, in few words; the same for all of its kind.
    pub name: Cow<'static, str>,
    /// Which side of a conversation it is.
    pub kind: Kind,
    /// When it began, in nanoseconds since 1970.
    pub begin_unix_ns: u64,
    /// When it was over.
    pub end_unix_ns: u64,
    /// What else is known of it, by the names of OpenTelemetry's semantic conventions where they have one.
    pub attributes: Vec<(&'static str, Value)>,
    /// What went wrong, if anything did; perhaps no more than that is known.
    pub error: Option<String>,
}

/// Which side of a conversation a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// None: it is a part of something.
    Internal,
    /// The one that is asked.
    Server,
    /// The one that asks.
    Client,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl Span {
    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.attributes.push((name, value.into()));
    }

    /// Says which method of HTTP it is of: one of few, whatever was sent.
    pub fn set_method(&mut self, method: &Method) {
        let known = known(method);
        self.set("http.request.method", known.unwrap_or("_OTHER"));
        if known.is_none() {
            self.set("http.request.method_original", short(method.as_str()));
        }
    }

    /// Says which server it was for; an address of IPv6 may have the brackets that it has in a URL.
    pub fn set_server(&mut self, host: &str, port: Option<u16>) {
        self.set("server.address", short(host.trim_start_matches('[').trim_end_matches(']')));
        if let Some(port) = port {
            self.set("server.port", port);
        }
    }

    /// Says that it went wrong: the kind of error, and what is known of it beyond that.
    pub fn fail(&mut self, kind: impl Into<Value>, why: impl Into<String>) {
        self.set("error.type", kind);
        self.error = Some(why.into());
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Value {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(Cow::Owned(text))
    }
}

impl From<Cow<'static, str>> for Value {
    fn from(text: Cow<'static, str>) -> Value {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Value {
        Value::Number(number.into())
    }
}

/// The name of a span of HTTP, one of few: of a method, and of what it is for.
#[must_use]
pub fn name(method: &Method, target: Option<&str>) -> Cow<'static, str> {
    let method = known(method).unwrap_or("HTTP");
    target.map_or(Cow::Borrowed(method), |target| Cow::Owned(format!("{method} {target}")))
}

fn known(method: &Method) -> Option<&'static str> {
    const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    KNOWN.into_iter().find(|known| *known == method.as_str())
}

/// As much of a text as is kept.
#[must_use]
pub fn short(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}
