//! What a function returns.

use std::fmt::Display;

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

    /// More of the body.
    ///
    /// # Errors
    /// When it cannot be written.
    fn body(&mut self, bytes: &[u8]) -> Result<(), Failed>;
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
}

impl Reply {
    /// A reply with that status, and nothing else.
    #[must_use]
    pub const fn new(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: Vec::new() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Reply {
        self.headers.push((name.to_ascii_lowercase(), value.as_ref().to_vec()));
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

impl IntoReply for Reply {
    fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed> {
        to.status(self.status)?;
        self.headers.iter().try_for_each(|(name, value)| to.header(name, value))?;
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
