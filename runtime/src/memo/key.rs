//! What tells requests apart: a keyed hash of the body and of what runs have read of the head.
//!
//! Which parts of the head a function reads is known after its runs only. So all that any run has read of it is in every key ([`Vary`]): a run of an equal request reads the same, since nothing else
//! decides what it reads. What grows makes other keys: a hash covers the names, too. A part that is absent is not one that is empty.
//!
//! Everything has its length before it, so no two requests make the same bytes.

use std::collections::BTreeSet;

use blake3::Hasher;
use hyper::header::HeaderName;

use super::rule::Why;
use crate::host::{Body, HeadField, RequestHead};
use crate::reply::{Content, ReplyHead};

/// A request.
pub type Key = [u8; 32];
/// A body, or a reply.
pub type Digest = [u8; 32];

/// Headers by which requests are told apart, at most.
const HEADERS_MAX: usize = 32;

/// Makes keys, each with a secret of this process.
#[derive(Clone)]
pub struct Asker {
    secret: [u8; 32],
}

/// What requests are told apart by, beside their bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vary {
    /// Method, path, query and scheme.
    has_target: bool,
    /// All headers.
    has_all: bool,
    /// Or these, also where they are absent.
    names: BTreeSet<String>,
}

impl Vary {
    /// By nothing; or by everything.
    #[must_use]
    pub fn new(whole_head: bool) -> Vary {
        Vary { has_target: whole_head, has_all: whole_head, names: BTreeSet::new() }
    }

    /// The same with what a run has read; none where that is in it already.
    ///
    /// # Errors
    /// When these are too many, or there is a part that no key has.
    pub fn wider(&self, read: &BTreeSet<HeadField>) -> Result<Option<Vary>, Why> {
        let mut wider = self.clone();
        for field in read {
            match field {
                HeadField::Method | HeadField::Target => wider.has_target = true,
                HeadField::Headers => {
                    wider.has_all = true;
                    wider.names.clear();
                }
                HeadField::Header(_) if wider.has_all => {}
                HeadField::Header(name) => _ = wider.names.insert(name.to_ascii_lowercase()),
                // Only requests without trailers are looked for, so each has none of that name.
                HeadField::Trailer(_) => {}
            }
        }
        if wider.names.len() > HEADERS_MAX {
            return Err(Why::Varies);
        }
        Ok((wider != *self).then_some(wider))
    }
}

impl Asker {
    /// With a secret that no other has.
    #[must_use]
    pub fn random() -> Asker {
        Asker { secret: secret() }
    }

    fn hasher(&self, what: u8) -> Hasher {
        let mut hasher = Hasher::new_keyed(&self.secret);
        hasher.update(&[what]);
        hasher
    }

    /// A body, as a function sees it: with the pieces in which it is read.
    #[must_use]
    pub fn body(&self, body: &Body) -> Digest {
        let mut hasher = self.hasher(b'b');
        body.pieces().for_each(|piece| put(&mut hasher, piece));
        *hasher.finalize().as_bytes()
    }

    /// A request.
    #[must_use]
    pub fn key(&self, vary: &Vary, body: Digest, head: Option<&RequestHead>) -> Key {
        let mut hasher = self.hasher(b'k');
        hasher.update(&body);
        let Some(head) = head else {
            hasher.update(b"-");
            return *hasher.finalize().as_bytes();
        };
        if vary.has_target {
            hasher.update(if head.is_secure { b"S" } else { b"T" });
            put(&mut hasher, head.method.as_str().as_bytes());
            put(&mut hasher, head.target.path_and_query().map_or("", |target| target.as_str()).as_bytes());
        }
        if vary.has_all {
            hasher.update(b"A");
            count(&mut hasher, head.headers.len());
            for (name, value) in &head.headers {
                put(&mut hasher, name.as_str().as_bytes());
                put(&mut hasher, value.as_bytes());
            }
        }
        for name in &vary.names {
            hasher.update(b"H");
            put(&mut hasher, name.as_bytes());
            // A name that no header can have is absent from all requests.
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
            let values = head.headers.get_all(name);
            count(&mut hasher, values.iter().count());
            values.iter().for_each(|value| put(&mut hasher, value.as_bytes()));
        }
        *hasher.finalize().as_bytes()
    }

    /// A reply, all of it.
    #[must_use]
    pub fn reply(&self, head: Option<&ReplyHead>, content: &Content) -> Digest {
        let mut hasher = self.hasher(b'r');
        match head {
            None => _ = hasher.update(b"-"),
            Some(head) => {
                hasher.update(if head.says_type { b"T" } else { b"N" });
                hasher.update(&head.status.as_u16().to_le_bytes());
                count(&mut hasher, head.headers.iter().count());
                for (name, value) in head.headers.iter() {
                    put(&mut hasher, name.as_str().as_bytes());
                    put(&mut hasher, value.as_bytes());
                }
            }
        }
        // Whether it comes in pieces is none of the client's concern.
        match content {
            Content::Whole(bytes) => _ = hasher.update(bytes),
            Content::Pieces(pieces) => pieces.0.iter().for_each(|piece| _ = hasher.update(piece)),
            Content::Stream(_) => {}
        }
        *hasher.finalize().as_bytes()
    }
}

fn put(hasher: &mut Hasher, bytes: &[u8]) {
    count(hasher, bytes.len());
    hasher.update(bytes);
}

fn count(hasher: &mut Hasher, count: usize) {
    hasher.update(&(count as u64).to_le_bytes());
}

/// A secret of this process.
#[must_use]
pub fn secret() -> [u8; 32] {
    let mut secret = [0; 32];
    // The system's random numbers. A system that has none yet gives this process's own: a secret all the same, though one that is easier to guess.
    if getrandom(&mut secret).is_none() {
        secret.iter_mut().for_each(|byte| *byte = fastrand::u8(..));
    }
    secret
}

fn getrandom(into: &mut [u8; 32]) -> Option<()> {
    let flags = rustix::rand::GetRandomFlags::empty();
    // So few bytes come all at once.
    (rustix::rand::getrandom(&mut into[..], flags).ok()? == 32).then_some(())
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderValue};
    use hyper::{Method, Uri};

    use super::*;

    fn head(headers: &[(&'static str, &'static str)]) -> RequestHead {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        RequestHead { method: Method::GET, target: Uri::from_static("/a?b"), headers: map, is_secure: false }
    }

    fn reading(fields: &[HeadField]) -> Vary {
        Vary::new(false).wider(&fields.iter().cloned().collect()).unwrap().unwrap()
    }

    fn header(name: &str) -> HeadField {
        HeadField::Header(name.to_owned())
    }

    #[test]
    fn only_what_was_read_of_a_head_tells_requests_apart_and_what_is_absent_is_not_empty() {
        let asker = Asker::random();
        let key = |vary: &Vary, head: &RequestHead| asker.key(vary, [0; 32], Some(head));
        let vary = reading(&[header("X-A")]);
        let heads = [head(&[]), head(&[("x-a", "")]), head(&[("x-a", "1")]), head(&[("x-a", "1"), ("x-a", "1")])];
        let keys: BTreeSet<Key> = heads.iter().map(|head| key(&vary, head)).collect();
        assert_eq!(keys.len(), heads.len());
        assert_eq!(key(&vary, &head(&[("x-b", "1")])), key(&vary, &heads[0]), "it was not read");
        let other = RequestHead { method: Method::POST, target: Uri::from_static("/c"), ..head(&[]) };
        assert_eq!(key(&vary, &other), key(&vary, &heads[0]), "neither was that");
        for field in [HeadField::Method, HeadField::Target] {
            let vary = reading(&[field]);
            assert_ne!(key(&vary, &other), key(&vary, &heads[0]));
        }
        let secure = RequestHead { is_secure: true, ..head(&[]) };
        assert_ne!(key(&reading(&[HeadField::Target]), &secure), key(&reading(&[HeadField::Target]), &heads[0]));
        let all = reading(&[HeadField::Headers]);
        assert_ne!(key(&all, &head(&[("x-b", "1")])), key(&all, &heads[0]));
        assert_ne!(key(&all, &head(&[("a", "b"), ("c", "d")])), key(&all, &head(&[("a", "bc"), ("c", "d")])));
    }

    #[test]
    fn what_is_read_only_grows_and_has_an_end() {
        let vary = reading(&[header("a"), HeadField::Method]);
        assert_eq!(vary.wider(&[header("a")].into()), Ok(None));
        let wider = vary.wider(&[header("b")].into()).unwrap().unwrap();
        assert_eq!(wider.names.len(), 2);
        let all = wider.wider(&[HeadField::Headers].into()).unwrap().unwrap();
        assert_eq!(all.wider(&[header("c")].into()), Ok(None));
        let many = (0..=HEADERS_MAX).map(|number| header(&format!("h{number}"))).collect();
        assert_eq!(vary.wider(&many), Err(Why::Varies));
        // Two that read other headers do not share a key, also where both are absent.
        let asker = Asker::random();
        let key = |name| asker.key(&reading(&[header(name)]), [0; 32], Some(&head(&[])));
        assert_ne!(key("a"), key("b"));
    }

    #[test]
    fn a_body_is_known_by_its_bytes_and_its_pieces_and_by_this_process_alone() {
        let body = |pieces: &[&'static str]| {
            let mut body = Body::default();
            pieces.iter().for_each(|piece| body.push(piece.as_bytes().into()));
            body
        };
        let asker = Asker::random();
        let bodies = [body(&[]), body(&["ab"]), body(&["a", "b"]), body(&["abc"])];
        let digests: BTreeSet<Digest> = bodies.iter().map(|body| asker.body(body)).collect();
        assert_eq!(digests.len(), bodies.len());
        assert_ne!(asker.body(&body(&["ab"])), Asker::random().body(&body(&["ab"])));
    }
}
