//! What a function returns.

use std::fmt::{self, Display};
use std::io;

/// There is no reply: the reason goes to the function's log, and the client learns that the function failed (status 500).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(
    /// The reason.
    pub String,
);

/// Where replies go.
pub trait Outgoing {
    /// How it went, 200 to 599; 200 where nothing is said.
    ///
    /// # Errors
    /// When that is no status.
    fn status(&mut self, code: u16) -> Result<(), Failed>;

    /// One more header.
    ///
    /// # Errors
    /// When it is none, or one that the server says itself.
    fn header(&mut self, name: &str, value: &[u8]) -> Result<(), Failed>;

    /// A field that comes behind the body: in place of those of its name, or `more` of them. Of a reply that is streamed, HTTP/1.1 sends only names that
    /// were set before it.
    ///
    /// # Errors
    /// When it is none, or cannot come behind a body.
    fn trailer(&mut self, name: &str, value: &[u8], more: bool) -> Result<(), Failed>;

    /// More of the body.
    ///
    /// # Errors
    /// When it cannot be written.
    fn body(&mut self, bytes: &[u8]) -> Result<(), Failed>;

    /// The head goes out, and from now on the body while it is written; of so many bytes, where that is known.
    ///
    /// # Errors
    /// When it has gone out already, or no reply may be so long.
    fn stream(&mut self, length: Option<u64>) -> Result<(), Failed>;
}

/// What a reply can be made of.
pub trait IntoReply {
    /// Hands it out.
    ///
    /// # Errors
    /// When it cannot be, or there is none.
    fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed>;
}

/// A reply with its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How it went: 200 to 599.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
    /// Names and values that come behind it.
    pub trailers: Vec<(String, Vec<u8>)>,
}

impl Reply {
    /// A reply with that status, and nothing else.
    #[must_use]
    pub const fn new(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: Vec::new(), trailers: Vec::new() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Reply {
        self.headers.push((name.to_ascii_lowercase(), value.as_ref().to_vec()));
        self
    }

    /// The same with one more field behind the body.
    #[must_use]
    pub fn with_trailer(mut self, name: &str, value: impl AsRef<[u8]>) -> Reply {
        self.trailers.push((name.to_ascii_lowercase(), value.as_ref().to_vec()));
        self
    }

    /// The same with another body.
    #[must_use]
    pub fn with_body(mut self, body: impl AsRef<[u8]>) -> Reply {
        self.body = body.as_ref().to_vec();
        self
    }

    /// The first header of that name, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// The body as text; what is none becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Reply {
    /// A reply that goes out while `write` writes the rest of its body: see [`Streaming`].
    #[must_use]
    pub const fn streaming<E: Display, W: FnOnce(&mut Body<'_>) -> Result<(), E>>(self, write: W) -> Streaming<W> {
        Streaming { reply: self, length: None, write }
    }
}

/// A reply that goes out while its body is written, first what it has already. Each write is sent at once; it waits while the client has not fetched
/// what was written before. Where `write` fails, the client sees that the reply breaks off.
///
/// ```
/// use sledge::{Body, Reply, Streaming};
/// use std::io::{self, Write};
///
/// fn count(text: &str) -> Streaming<impl FnOnce(&mut Body<'_>) -> io::Result<()>> {
///     let last: u32 = text.parse().unwrap_or(3);
///     Reply::new(200).streaming(move |body| (1..=last).try_for_each(|number| writeln!(body, "{number}")))
/// }
///
/// let request = sledge::Request::new("POST", "/count").with_body("2");
/// assert_eq!(sledge::testing::serve(&request, count).text(), "1\n2\n");
/// ```
#[derive(Clone, Debug)]
pub struct Streaming<W> {
    reply: Reply,
    length: Option<u64>,
    write: W,
}

impl<W> Streaming<W> {
    /// The same, saying of how many bytes all of the body is. Then it has to be.
    #[must_use]
    pub const fn with_length(mut self, bytes: u64) -> Streaming<W> {
        self.length = Some(bytes);
        self
    }
}

/// The body of a reply that goes out while it is written.
pub struct Body<'a>(&'a mut dyn Outgoing);

impl Body<'_> {
    /// What comes behind the body, in place of those of that name.
    ///
    /// # Errors
    /// When it is no field, or cannot come behind a body.
    pub fn set_trailer(&mut self, name: &str, value: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.trailer(name, value.as_ref(), false).map_err(|Failed(why)| io::Error::other(why))
    }
}

impl io::Write for Body<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.body(bytes).map_err(|Failed(why)| io::Error::other(why))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

impl<E: Display, W: FnOnce(&mut Body<'_>) -> Result<(), E>> IntoReply for Streaming<W> {
    fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed> {
        let Streaming { reply, length, write } = self;
        to.status(reply.status)?;
        reply.headers.iter().try_for_each(|(name, value)| to.header(name, value))?;
        reply.trailers.iter().try_for_each(|(name, value)| to.trailer(name, value, true))?;
        to.stream(length)?;
        to.body(&reply.body)?;
        write(&mut Body(to)).map_err(|error| Failed(error.to_string()))
    }
}

impl IntoReply for Reply {
    fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed> {
        to.status(self.status)?;
        self.headers.iter().try_for_each(|(name, value)| to.header(name, value))?;
        self.trailers.iter().try_for_each(|(name, value)| to.trailer(name, value, true))?;
        to.body(&self.body)
    }
}

impl IntoReply for () {
    fn reply(self, _: &mut impl Outgoing) -> Result<(), Failed> {
        Ok(())
    }
}

macro_rules! bytes {
    ($($ty:ty),*) => {$(
        impl IntoReply for $ty {
            fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed> {
                to.body(self.as_ref())
            }
        }
    )*};
}

bytes!(Vec<u8>, &[u8], String, &str);

impl<R: IntoReply, E: Display> IntoReply for Result<R, E> {
    fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed> {
        self.map_err(|error| Failed(error.to_string()))?.reply(to)
    }
}
