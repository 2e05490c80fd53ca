//! Why columns are squashed.

use super::super::column::Stale;
use super::ColumnId;
use crate::kv::{BucketKey, BucketName};

/// A column that takes part no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Squashed {
    /// The column.
    pub column: ColumnId,
    /// Why.
    pub cause: Cause,
}

/// What has squashed a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// That column before it has written the key, which it had read before.
    Wrote(ColumnId, BucketKey),
    /// That column before it has changed the set of keys of the bucket, which it had listed before.
    Listed(ColumnId, BucketName),
    /// It has read what that column had written, which was squashed, has failed, or is not wanted.
    Gone(ColumnId),
    /// It has read a sum that only the store knows.
    Sum,
    /// It has listed a bucket of which columns before it have changed the keys, and their commit does not say which there are now.
    Set,
    /// The store holds something else than it has read there: that key, or a set of keys.
    Changed(Option<BucketKey>),
}

impl Cause {
    /// That does not hold any more of what it has read.
    pub(super) fn of(stale: &Stale) -> Cause {
        Cause::Changed(if let Stale::Key(key) = stale { Some(key.clone()) } else { None })
    }

    /// The column that has done it, if one has.
    #[must_use]
    pub const fn by(&self) -> Option<ColumnId> {
        match self {
            Cause::Wrote(column, _) | Cause::Listed(column, _) | Cause::Gone(column) => Some(*column),
            Cause::Sum | Cause::Set | Cause::Changed(_) => None,
        }
    }

    /// Bytes of the key that it names.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Cause::Wrote(_, key) | Cause::Changed(Some(key)) => key.bytes(),
            Cause::Listed(_, bucket) => bucket.bytes(),
            Cause::Gone(_) | Cause::Sum | Cause::Set | Cause::Changed(None) => 0,
        }
    }
}
