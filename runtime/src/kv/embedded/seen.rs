//! Whether what was read still is what is there: a commit that changes nothing, made without one. It is a look at the index, on the thread that asks.

use super::Space;
use crate::kv::{BucketKey, BucketName, Entry, KvError, Outcome};

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'s> {
    /// A key.
    Key(&'s BucketKey),
    /// The set of keys of a bucket.
    Bucket(&'s BucketName),
}

impl Space {
    /// The first of what was seen, each with its version, that is otherwise now, at one moment.
    ///
    /// # Errors
    /// When nothing could be read yet.
    pub fn changed<'s>(&self, seen: impl Iterator<Item = (Seen<'s>, u64)>) -> Result<Option<Seen<'s>>, KvError> {
        let counted = self.commits().begin();
        let (outcome, changed) = match self.check_open() {
            Ok(()) => {
                let index = self.tenant.read();
                let now = seen.map(|(seen, expected)| match seen {
                    Seen::Key(key) => (seen, expected, index.entries.get(key).map_or(0, |entry: &Entry| entry.version)),
                    Seen::Bucket(bucket) => (seen, expected, index.bucket(bucket)),
                });
                match now.enumerate().find(|(_, (_, expected, version))| version != expected) {
                    Some((at, (seen, _, version))) => (Ok(Outcome::Conflict { version, index: at }), Ok(Some(seen))),
                    None => (Ok(Outcome::Committed { version: index.version, sum: 0 }), Ok(None)),
                }
            }
            Err(error) => (Err(error.clone()), Err(error)),
        };
        counted.ended(&outcome);
        changed
    }
}
