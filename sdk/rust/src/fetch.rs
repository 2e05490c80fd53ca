//! Requests over HTTP to other servers: to those that `http_hosts` in the configuration allows the function.
//!
//! ```
//! use sledge::{Reply, fetch, testing};
//!
//! testing::upstream("api.example.org", |request| Reply::new(200).with_body(format!("you sent {}", request.body.len())));
//! let mut response = fetch::Request::new("POST", "http://api.example.org/count").with_body("abc").send()?;
//! assert_eq!((response.status()?, response.bytes(1 << 20)?), (200, b"you sent 3".to_vec()));
//! # Ok::<(), fetch::Error>(())
//! ```

use std::fmt;
use std::time::Duration;

use crate::sys;

/// A request to another server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// GET, POST and so on.
    pub method: String,
    /// With `http://` or `https://`.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its body, of at most 4 MiB.
    pub body: Vec<u8>,
    /// How long the head of the response may take; 30 s where nothing is said.
    pub head_time_max: Option<Duration>,
    /// And each piece of its body.
    pub piece_time_max: Option<Duration>,
}

/// A response, or what will be one: each part is waited for when it is asked for. It is given up when this is dropped.
#[derive(Debug)]
pub struct Response(u32);

/// Why there is no response, or no more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The host, or the address to which its name leads, is not in the function's `http_hosts`.
    NotAllowed,
    /// Too many requests.
    Busy,
    /// No URL, method or header; a header that the connection needs.
    Invalid,
    /// Larger than it may be.
    TooLarge,
    /// It cannot be reached, its certificate is wrong, the connection broke, or what comes is not HTTP; the function's log says which.
    Unreachable,
    /// It took too long.
    Timeout,
    /// Another of WASI's error numbers.
    Other(i32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::NotAllowed => "the host is not in the function's `http_hosts`",
            Error::Busy => "too many requests to other servers",
            Error::Invalid => "no request over HTTP",
            Error::TooLarge => "larger than it may be",
            Error::Unreachable => "the server cannot be reached; the function's log says why",
            Error::Timeout => "the server took too long",
            Error::Other(number) => return write!(f, "a request to another server: error {number}"),
        })
    }
}

impl std::error::Error for Error {}

impl From<i32> for Error {
    fn from(number: i32) -> Error {
        match number {
            sys::E2BIG => Error::TooLarge,
            sys::EACCES => Error::NotAllowed,
            sys::EAGAIN | sys::EMFILE => Error::Busy,
            sys::EINVAL | sys::ENOTSUP => Error::Invalid,
            sys::EIO => Error::Unreachable,
            sys::ETIMEDOUT => Error::Timeout,
            other => Error::Other(other),
        }
    }
}

impl Request {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: &str, url: &str) -> Request {
        Request { method: method.to_owned(), url: url.to_owned(), ..Request::default() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// The same with another body.
    #[must_use]
    pub fn with_body(mut self, body: impl AsRef<[u8]>) -> Request {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Sends it, and does not wait: several may be on their way at once.
    ///
    /// # Errors
    /// When it is none, or not allowed.
    pub fn send(&self) -> Result<Response, Error> {
        Ok(Response(sys::fetch_send(self)?))
    }
}

impl Response {
    /// Waits for the response to begin: its status.
    ///
    /// # Errors
    /// When there is none; so for all that follow.
    pub fn status(&self) -> Result<u16, Error> {
        Ok(sys::fetch_status(self.0)?)
    }

    /// Waits for the same: names, in small letters, and values.
    ///
    /// # Errors
    /// As for [`Response::status`].
    pub fn headers(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        Ok(sys::fetch_headers(self.0)?)
    }

    /// Waits for more of the body: how much of `buffer` it takes; 0 at the end.
    ///
    /// # Errors
    /// As for [`Response::status`].
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        Ok(sys::fetch_read(self.0, buffer)?)
    }

    /// Waits for all of the body that was not read.
    ///
    /// # Errors
    /// Besides, when it has more than that many bytes.
    pub fn bytes(&mut self, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let (mut all, mut buffer) = (Vec::new(), [0; 8 << 10]);
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(all),
                count if all.len() + count > bytes_max => return Err(Error::TooLarge),
                count => all.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        sys::fetch_close(self.0);
    }
}

/// Asks with GET.
///
/// # Errors
/// As for [`Request::send`].
pub fn get(url: &str) -> Result<Response, Error> {
    Request::new("GET", url).send()
}

/// Asks with POST.
///
/// # Errors
/// As for [`Request::send`].
pub fn post(url: &str, body: impl AsRef<[u8]>) -> Result<Response, Error> {
    Request::new("POST", url).with_body(body).send()
}
