//! What a function says about its reply, besides what it writes.

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// Fields that a function may set, and their bytes.
const FIELDS_MAX: usize = 64;
/// The largest fields, names and values together.
pub const FIELDS_BYTES_MAX: usize = 16 << 10;

/// The head of a reply.
#[derive(Clone, Debug, Default)]
pub struct ReplyHead {
    /// How it went.
    pub status: StatusCode,
    /// What else there is to say; in place of the server's own headers of these names.
    pub headers: Fields,
    /// Whether it says what type the body has, or that it has none: then the server says nothing of it.
    pub says_type: bool,
}

/// Headers or trailers, as many as a function may set.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    map: HeaderMap,
    /// Bytes of their names and values.
    bytes: usize,
}

/// Fields whose number and size are limited elsewhere.
impl From<HeaderMap> for Fields {
    fn from(map: HeaderMap) -> Fields {
        Fields { map, bytes: FIELDS_BYTES_MAX }
    }
}

/// There are too many fields, or they are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Fields {
    /// Sets a field: in place of all of that name, or `more` of them.
    ///
    /// # Errors
    /// When there are too many.
    pub fn put(&mut self, name: HeaderName, value: HeaderValue, more: bool) -> Result<(), TooLarge> {
        let bytes = self.bytes + name.as_str().len() + value.len();
        if bytes > FIELDS_BYTES_MAX || self.map.len() >= FIELDS_MAX {
            return Err(TooLarge);
        }
        // What is replaced stays counted: no function replaces so much.
        self.bytes = bytes;
        if more {
            self.map.append(name, value);
        } else {
            self.map.insert(name, value);
        }
        Ok(())
    }

    /// A field's values, the first of them.
    #[must_use]
    pub fn get(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.map.get(name)
    }

    /// Their names, for the header that announces trailers.
    #[must_use]
    pub fn names(&self) -> Option<HeaderValue> {
        let names: Vec<&str> = self.map.keys().map(HeaderName::as_str).collect();
        HeaderValue::try_from(names.join(", ")).ok().filter(|names| !names.is_empty())
    }

    /// All of them.
    #[must_use]
    pub fn into_map(self) -> HeaderMap {
        self.map
    }
}
