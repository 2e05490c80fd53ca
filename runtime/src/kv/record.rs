//! What the server itself keeps in a store, beside the entries of functions: in the embedded store on disk only, so that there may be more of it than memory holds; in Redis in keys of its own.
//!
//! Records are written by commits, together with what these change of a tenant's entries. They have neither versions nor expectations: each has one writer, which knows what it
//! has written. In Redis that is the server that holds the lease: [`Fence`](super::Fence).

use bytes::Bytes;

use super::KvError;

/// Bytes of a key.
pub const RECORD_KEY_BYTES_MAX: usize = 1 << 10;
/// Bytes of the keys and values of one commit's records.
pub const RECORDS_BYTES_MAX: usize = 64 << 20;

/// What a key of the server's own becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key: bytes that are in order as their meaning is.
    pub key: Box<[u8]>,
    /// The value; none where there is to be none.
    pub value: Option<Bytes>,
}

impl Record {
    /// A key that gets a value.
    #[must_use]
    pub fn put(key: impl Into<Box<[u8]>>, value: impl Into<Bytes>) -> Record {
        Record { key: key.into(), value: Some(value.into()) }
    }

    /// A key that is to be no more.
    #[must_use]
    pub fn remove(key: impl Into<Box<[u8]>>) -> Record {
        Record { key: key.into(), value: None }
    }

    /// Bytes of both.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// Whether these are within the limits on their size.
pub(super) fn check(records: &[Record]) -> Result<(), KvError> {
    if let Some(long) = records.iter().find(|record| record.key.len() > RECORD_KEY_BYTES_MAX) {
        return Err(KvError::TooLarge { what: "a record's key", bytes: long.key.len(), bytes_max: RECORD_KEY_BYTES_MAX });
    }
    let bytes = records.iter().map(Record::bytes).sum();
    if bytes > RECORDS_BYTES_MAX {
        return Err(KvError::TooLarge { what: "records of a commit", bytes, bytes_max: RECORDS_BYTES_MAX });
    }
    Ok(())
}
