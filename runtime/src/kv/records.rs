//! Reading what the server itself keeps in a store: see [`Record`](super::Record) for writing it. It blocks its thread.

use std::ops::Bound;

use super::{KvError, Order, embedded, redis};

/// Reads records, from any thread.
///
/// One read sees what was written at one moment. A scan does so in the embedded store; in Redis each of its pages does, so that one of records that are being written may see some of a commit's
/// and not others. What is read is as durable as the store is.
#[derive(Clone, Debug)]
pub enum Records {
    /// In a file, or in memory.
    Embedded(embedded::Records),
    /// In a Redis server.
    Redis(redis::Records),
}

impl Records {
    /// What there is under a key.
    ///
    /// # Errors
    /// When the store cannot be read now.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        match self {
            Records::Embedded(records) => records.get(key),
            Records::Redis(records) => records.get(key),
        }
    }

    /// Calls `with` with each key and its value between the bounds, in order, for as long as it wants more.
    ///
    /// # Errors
    /// When the store cannot be read now. `with` may have been called before.
    pub fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
        with: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), KvError> {
        match self {
            Records::Embedded(records) => records.scan(bounds, order, with),
            Records::Redis(records) => records.scan(bounds, order, None, with),
        }
    }

    /// The same with rising keys, where no more of each value is wanted than so many bytes from its beginning; `with` may get more.
    ///
    /// # Errors
    /// As for [`scan`](Records::scan).
    pub fn scan_heads(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        head_bytes: usize,
        with: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), KvError> {
        match self {
            Records::Embedded(records) => records.scan(bounds, Order::Rising, with),
            Records::Redis(records) => records.scan(bounds, Order::Rising, Some(head_bytes), with),
        }
    }

    /// How many keys there are between the bounds.
    ///
    /// # Errors
    /// When the store cannot be read now.
    pub fn count(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<u64, KvError> {
        match self {
            Records::Embedded(records) => {
                let mut count = 0;
                records.scan(bounds, Order::Rising, |_, _| {
                    count += 1;
                    true
                })?;
                Ok(count)
            }
            Records::Redis(records) => records.count(bounds),
        }
    }
}
