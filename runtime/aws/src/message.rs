//! An HTTP request as plain data.

use http::{HeaderMap, Method};

/// What the server received. The path and the query are as they were sent: not decoded, not normalised.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, with its leading `/`.
    pub path: &'a str,
    /// The query, without `?`.
    pub query: Option<&'a str>,
    /// Host and port, for requests without the header `host`: HTTP/2's `:authority`.
    pub authority: Option<&'a str>,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The one value of a header, if it is text; `None` if it is absent, repeated or has other bytes than visible ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        if values.next().is_some() {
            return None;
        }
        value.to_str().ok()
    }
}
