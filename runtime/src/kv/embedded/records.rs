//! Reading what the server itself keeps in the file: from any thread, beside the writer.

use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use redb::{Database, ReadTransaction, ReadableDatabase as _, TableError};

use super::Shared;
use super::fault::FileError;
use super::file::{RECORDS, guarded, sequence};
use crate::kv::KvError;

/// How long the indexes may be behind the file: microseconds, unless the writer does not get the processor.
const INDEX_TIME_MAX: Duration = Duration::from_secs(10);
/// How often that is looked at.
const INDEX_LOOK: Duration = Duration::from_micros(20);

/// Reads records. A read sees what was written at one moment, and nothing that is not durable. It may wait for the disk.
#[derive(Clone, Debug)]
pub struct Records {
    shared: Arc<Shared>,
}

/// The order in which records are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The smallest key first.
    Rising,
    /// The largest key first.
    Falling,
}

impl Shared {
    /// Those that read records use that file from now on, or none.
    pub(super) fn set_database(&self, database: Option<Weak<Database>>) {
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = database;
    }
}

impl Records {
    pub(super) const fn new(shared: Arc<Shared>) -> Records {
        Records { shared }
    }

    /// What there is under a key.
    ///
    /// # Errors
    /// When the file cannot be read now.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.read(|read| match read.open_table(RECORDS) {
            Ok(table) => Ok(table.get(key)?.map(|value| value.value().to_vec())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        })
    }

    /// Calls `with` with each key and its value between the bounds, in order, for as long as it wants more.
    ///
    /// # Errors
    /// When the file cannot be read now.
    pub fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
        mut with: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), KvError> {
        self.read(|read| {
            let table = match read.open_table(RECORDS) {
                Ok(table) => table,
                Err(TableError::TableDoesNotExist(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut range = table.range::<&[u8]>(bounds)?;
            loop {
                let row = match order {
                    Order::Rising => range.next(),
                    Order::Falling => range.next_back(),
                };
                let Some(row) = row else { return Ok(()) };
                let (key, value) = row?;
                if !with(key.value(), value.value()) {
                    return Ok(());
                }
            }
        })
    }

    fn read<T>(&self, with: impl FnOnce(&ReadTransaction) -> Result<T, FileError>) -> Result<T, KvError> {
        let database = self.shared.database.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade);
        // While this is held, a writer that closes the file cannot open it again: it tries again by itself.
        let database = database.ok_or_else(|| KvError::Unavailable("its file is not open".to_owned()))?;
        let found = guarded(|| {
            let read = database.begin_read()?;
            Ok((with(&read)?, sequence(&read)?))
        });
        let (found, sequence) = found.map_err(|error| KvError::Unavailable(error.to_string()))?;
        self.wait_for_index(sequence)?;
        Ok(found)
    }

    /// Waits until the indexes have what the file has: the writer puts it there at once. So what is read here is never ahead of the entries that were committed with it.
    fn wait_for_index(&self, sequence: u64) -> Result<(), KvError> {
        let deadline = Instant::now() + INDEX_TIME_MAX;
        // Acquire: with it come the indexes.
        while self.shared.applied.load(Ordering::Acquire) < sequence {
            if Instant::now() > deadline {
                return Err(KvError::Unavailable("its indexes are behind its file".to_owned()));
            }
            thread::sleep(INDEX_LOOK);
        }
        Ok(())
    }
}
