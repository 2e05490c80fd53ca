//! What one record of the log says: the changes of a group of commits, as bytes.
//!
//! ```text
//!   count, then each write:    tenant, bucket and key, 1 and version and value, or 0 where the entry is to be none
//!   count, then each version:  tenant, version
//!   count, then each record:   key, 1 and value, or 0 where it is to be none
//! ```
//!
//! Counts and lengths are 32 bits, versions 64, all little-endian. It knows nothing of places and checksums (`log.rs`). Reading checks each length against what is there: whatever the bytes
//! are, it ends, and takes no more memory than they do.

use bytes::Bytes;

use super::file::Write;
use super::{BucketKey, Entry};
use crate::kv::Record;

/// What a group of commits changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Tenant, key, and the entry that is there then, if any.
    pub(super) writes: Vec<(Box<str>, BucketKey, Option<Entry>)>,
    /// The versions that tenants have then.
    pub(super) versions: Vec<(Box<str>, u64)>,
    /// What the server itself writes.
    pub(super) records: Vec<Record>,
}

impl Changes {
    /// The writes, as a file takes them.
    pub(super) fn writes(&self) -> impl Iterator<Item = Write<'_>> {
        self.writes.iter().map(|(tenant, key, entry)| (&**tenant, key, entry.as_ref()))
    }

    /// The versions, as a file takes them.
    pub(super) fn versions(&self) -> impl Iterator<Item = (&str, u64)> {
        self.versions.iter().map(|(tenant, version)| (&**tenant, *version))
    }
}

/// Appends them to `out`.
pub(super) fn encode<'a>(
    out: &mut Vec<u8>,
    writes: impl Iterator<Item = Write<'a>>,
    versions: impl Iterator<Item = (&'a str, u64)>,
    records: &[Record],
) {
    counted(out, writes, |out, (tenant, key, entry)| {
        put(out, tenant.as_bytes());
        put(out, &key.0);
        match entry {
            Some(Entry { version, value }) => {
                out.push(1);
                out.extend_from_slice(&version.to_le_bytes());
                put(out, value);
            }
            None => out.push(0),
        }
    });
    counted(out, versions, |out, (tenant, version)| {
        put(out, tenant.as_bytes());
        out.extend_from_slice(&version.to_le_bytes());
    });
    counted(out, records.iter(), |out, Record { key, value }| {
        put(out, key);
        match value {
            Some(value) => {
                out.push(1);
                put(out, value);
            }
            None => out.push(0),
        }
    });
}

/// The number of items, and each as `one` writes it.
fn counted<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, one: impl Fn(&mut Vec<u8>, T)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count: u32 = 0;
    for item in items {
        one(out, item);
        count += 1;
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
}

/// A length, and the bytes. Each is far below 4 GiB: a commit has limits.
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads what [`encode`] wrote; none where these bytes are nothing of that kind.
pub(super) fn decode(bytes: &[u8]) -> Option<Changes> {
    let (mut left, mut changes) = (bytes, Changes::default());
    for _ in 0..number(&mut left)? {
        let (tenant, key) = (text(&mut left)?, BucketKey(slice(&mut left)?.into()));
        let entry = match byte(&mut left)? {
            0 => None,
            1 => Some(Entry { version: version(&mut left)?, value: Bytes::copy_from_slice(slice(&mut left)?) }),
            _ => return None,
        };
        changes.writes.push((tenant, key, entry));
    }
    for _ in 0..number(&mut left)? {
        changes.versions.push((text(&mut left)?, version(&mut left)?));
    }
    for _ in 0..number(&mut left)? {
        let key = slice(&mut left)?.into();
        let value = match byte(&mut left)? {
            0 => None,
            1 => Some(Bytes::copy_from_slice(slice(&mut left)?)),
            _ => return None,
        };
        changes.records.push(Record { key, value });
    }
    left.is_empty().then_some(changes)
}

fn byte(left: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = left.split_first()?;
    *left = rest;
    Some(*byte)
}

fn number(left: &mut &[u8]) -> Option<u32> {
    let (number, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(u32::from_le_bytes(*number))
}

fn version(left: &mut &[u8]) -> Option<u64> {
    let (version, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(u64::from_le_bytes(*version))
}

fn slice<'a>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(left)? as usize;
    let (slice, rest) = left.split_at_checked(length)?;
    *left = rest;
    Some(slice)
}

fn text(left: &mut &[u8]) -> Option<Box<str>> {
    std::str::from_utf8(slice(left)?).ok().map(Into::into)
}
