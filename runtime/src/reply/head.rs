//! What a function says about its reply, besides what it writes.

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

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

/// Headers or trailers, as many as a function may set. A list, since most replies have one or two, and a reply to another function needs no map of them.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    list: SmallVec<[(HeaderName, HeaderValue); 1]>,
    /// Bytes of their names and values.
    bytes: usize,
}

/// Fields whose number and size are limited elsewhere.
impl FromIterator<(HeaderName, HeaderValue)> for Fields {
    fn from_iter<I: IntoIterator<Item = (HeaderName, HeaderValue)>>(fields: I) -> Fields {
        Fields { list: fields.into_iter().collect(), bytes: FIELDS_BYTES_MAX }
    }
}

impl From<HeaderMap> for Fields {
    fn from(map: HeaderMap) -> Fields {
        map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
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
        if bytes > FIELDS_BYTES_MAX || self.list.len() >= FIELDS_MAX {
            return Err(TooLarge);
        }
        // What is replaced stays counted: no function replaces so much.
        self.bytes = bytes;
        if !more && let Some(first) = self.list.iter().position(|(known, _)| *known == name) {
            self.list[first].1 = value;
            let mut index = 0;
            self.list.retain(|(known, _)| {
                index += 1;
                index <= first + 1 || *known != name
            });
        } else {
            self.list.push((name, value));
        }
        Ok(())
    }

    /// A field's values, the first of them.
    #[must_use]
    pub fn get(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.list.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.list.iter().map(|(name, value)| (name, value))
    }

    /// Their names, for the header that announces trailers.
    #[must_use]
    pub fn names(&self) -> Option<HeaderValue> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in &self.list {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        HeaderValue::try_from(names.join(", ")).ok().filter(|names| !names.is_empty())
    }

    /// All of them.
    #[must_use]
    pub fn into_map(self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.list.len());
        for (name, value) in self.list {
            map.append(name, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(fields: &mut Fields, name: &'static str, value: &'static str, more: bool) {
        fields.put(HeaderName::from_static(name), HeaderValue::from_static(value), more).expect("there is room");
    }

    #[test]
    fn a_field_is_set_in_place_of_all_of_its_name_or_added() {
        let mut fields = Fields::default();
        for (name, value, more) in
            [("a", "1", true), ("b", "2", false), ("a", "3", true), ("a", "4", true), ("c", "5", true), ("a", "6", false)]
        {
            put(&mut fields, name, value, more);
        }
        put(&mut fields, "c", "7", true);
        let all: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(all, [("a", "6"), ("b", "2"), ("c", "5"), ("c", "7")]);
        assert_eq!(fields.names().unwrap(), "a, b, c");
        assert_eq!(fields.get(&HeaderName::from_static("c")).unwrap(), "5");
        let map = fields.clone().into_map();
        assert_eq!(map.get_all("c").iter().collect::<Vec<_>>(), ["5", "7"]);
        let back: Vec<_> = Fields::from(map).iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        assert_eq!(back, fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>());
    }

    #[test]
    fn there_is_a_most_of_fields_and_bytes() {
        let mut fields = Fields::default();
        for _ in 0..FIELDS_MAX {
            put(&mut fields, "a", "1", true);
        }
        let more = |fields: &mut Fields, value| fields.put(HeaderName::from_static("b"), value, true);
        assert_eq!(more(&mut fields, HeaderValue::from_static("1")), Err(TooLarge));
        let long = HeaderValue::try_from("1".repeat(FIELDS_BYTES_MAX)).unwrap();
        assert_eq!(more(&mut Fields::default(), long), Err(TooLarge));
    }
}
