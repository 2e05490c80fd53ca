//! What a function is called with.

use std::convert::Infallible;
use std::str;

use crate::reply::{Failed, IntoReply, Outgoing};
use crate::sys;

/// What a request says beside its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// GET, POST and so on; empty for a call by another function, which has no request.
    pub method: String,
    /// Path and query, as they were sent.
    pub target: String,
    /// Names, in small letters, and values.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// What it says beside its body.
    pub head: Head,
    /// Its body.
    pub body: Vec<u8>,
    /// What comes behind its body: names and values. For tests; a function asks with [`trailer`].
    pub trailers: Vec<(String, Vec<u8>)>,
}

/// What came behind the body of this request under that name, if anything did.
#[must_use]
pub fn trailer(name: &str) -> Option<Vec<u8>> {
    sys::trailer_of_request(name)
}

/// Why a request is answered without the function: status 400, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(
    /// The reason.
    pub String,
);

/// What can be had from a request, its body first.
pub trait FromRequest<'a>: Sized {
    /// What is answered where it cannot.
    type Refused: IntoReply;

    /// Takes it. `head` is asked only where it is wanted: a function that does not ask costs the server nothing for it.
    ///
    /// # Errors
    /// When the request is none for this function.
    fn from_request(body: &'a [u8], head: impl FnOnce() -> Head) -> Result<Self, Self::Refused>;
}

impl Head {
    pub(crate) fn of_this_request() -> Head {
        sys::head().unwrap_or_default()
    }

    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(&self.target, |(path, _)| path)
    }

    /// What stands behind the target's `?`, as it was sent.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The first header of that name, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        str::from_utf8(value).ok()
    }
}

impl Request {
    /// A request, for tests.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Request {
        Request { head: Head { method: method.to_owned(), target: target.to_owned(), headers: Vec::new() }, ..Request::default() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        self.head.headers.push((name.to_ascii_lowercase(), value.as_ref().to_vec()));
        self
    }

    /// The same with one more field behind the body.
    #[must_use]
    pub fn with_trailer(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        self.trailers.push((name.to_ascii_lowercase(), value.as_ref().to_vec()));
        self
    }

    /// The same with another body.
    #[must_use]
    pub fn with_body(mut self, body: impl AsRef<[u8]>) -> Request {
        self.body = body.as_ref().to_vec();
        self
    }
}

impl IntoReply for Refused {
    fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed> {
        to.status(400)?;
        to.header("content-type", b"text/plain; charset=utf-8")?;
        to.body(self.0.as_bytes())
    }
}

impl IntoReply for Infallible {
    fn reply(self, _: &mut impl Outgoing) -> Result<(), Failed> {
        match self {}
    }
}

impl<'a> FromRequest<'a> for () {
    type Refused = Infallible;

    fn from_request(_: &'a [u8], _: impl FnOnce() -> Head) -> Result<(), Infallible> {
        Ok(())
    }
}

impl<'a> FromRequest<'a> for &'a [u8] {
    type Refused = Infallible;

    fn from_request(body: &'a [u8], _: impl FnOnce() -> Head) -> Result<&'a [u8], Infallible> {
        Ok(body)
    }
}

impl<'a> FromRequest<'a> for Vec<u8> {
    type Refused = Infallible;

    fn from_request(body: &'a [u8], _: impl FnOnce() -> Head) -> Result<Vec<u8>, Infallible> {
        Ok(body.to_vec())
    }
}

impl<'a> FromRequest<'a> for &'a str {
    type Refused = Refused;

    fn from_request(body: &'a [u8], _: impl FnOnce() -> Head) -> Result<&'a str, Refused> {
        str::from_utf8(body).map_err(|error| Refused(format!("the body is no text: {error}")))
    }
}

impl<'a> FromRequest<'a> for String {
    type Refused = Refused;

    fn from_request(body: &'a [u8], head: impl FnOnce() -> Head) -> Result<String, Refused> {
        <&str>::from_request(body, head).map(str::to_owned)
    }
}

impl<'a> FromRequest<'a> for Request {
    type Refused = Infallible;

    fn from_request(body: &'a [u8], head: impl FnOnce() -> Head) -> Result<Request, Infallible> {
        Ok(Request { head: head(), body: body.to_vec(), trailers: Vec::new() })
    }
}
