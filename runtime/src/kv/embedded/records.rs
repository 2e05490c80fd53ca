//! Reading what the server itself keeps in the file: from any thread, beside the writer. What the tree does not have yet is in the layers above it (`pending.rs`).

use std::cmp;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use redb::{AccessGuard, Database, ReadTransaction, ReadableDatabase as _, StorageError, TableError};

use super::Shared;
use super::fault::FileError;
use super::file::{RECORDS, guarded, sequence};
use super::pending::Overlay;
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

    /// The records that the tree may not have.
    pub(super) fn overlay(&self) -> RwLockReadGuard<'_, Overlay> {
        self.overlay.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same to change them: the writer alone does.
    pub(super) fn overlay_mut(&self) -> RwLockWriteGuard<'_, Overlay> {
        self.overlay.write().unwrap_or_else(PoisonError::into_inner)
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
        let get = |read: &ReadTransaction| match read.open_table(RECORDS) {
            Ok(table) => Ok(table.get(key)?.map(|value| value.value().to_vec())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        };
        self.read(
            |overlay| overlay.get(key).cloned(),
            |read, known| match known {
                Some(known) => Ok(known.map(|value| value.to_vec())),
                None => get(read),
            },
        )
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
        self.read(
            |overlay| overlay.range(bounds),
            |read, known| {
                let table = match read.open_table(RECORDS) {
                    Ok(table) => Some(table),
                    Err(TableError::TableDoesNotExist(_)) => None,
                    Err(error) => return Err(error.into()),
                };
                let rows = table.as_ref().map(|table| table.range::<&[u8]>(bounds)).transpose()?;
                match order {
                    Order::Rising => merge(known.into_iter(), rows.into_iter().flatten(), order, &mut with),
                    Order::Falling => merge(known.into_iter().rev(), rows.into_iter().flat_map(Iterator::rev), order, &mut with),
                }
            },
        )
    }

    /// Reads what the layers know by `of`, and then the tree, both as they are at one moment.
    fn read<K, T>(
        &self,
        of: impl FnOnce(&Overlay) -> K,
        with: impl FnOnce(&ReadTransaction, K) -> Result<T, FileError>,
    ) -> Result<T, KvError> {
        let database = self.shared.database.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade);
        // While this is held, a writer that closes the file cannot open it again: it waits for a second, and then tries again by itself.
        let database = database.ok_or_else(|| KvError::Unavailable("its file is not open".to_owned()))?;
        let found = guarded(|| {
            let (read, known) = {
                // What this lock is for: the layers have all that was written since the state of the tree that the transaction sees, or since one before that. Were the transaction begun
                // after it, the tree could have some of what was written later, and not the rest; were it begun before, a layer could be gone that the tree did not have.
                let overlay = self.shared.overlay();
                (database.begin_read()?, of(&overlay))
            };
            Ok((with(&read, known)?, sequence(&read)?))
        });
        // Before this waits for the writer, which may be about to open the file again.
        drop(database);
        let (found, sequence) = found.map_err(|error| KvError::Unavailable(error.to_string()))?;
        self.wait_for_index(sequence)?;
        Ok(found)
    }

    /// Waits until the indexes have what the tree has: of commits that go there without the log they have it a moment later. What the layers have, they have. So what is read here is never ahead
    /// of the entries that were committed with it.
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

/// A row of the tree.
type Row<'a> = Result<(AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>), StorageError>;

/// Calls `with` with what both have, in the order in which both come; what the layers know is newer than what the tree has.
fn merge<'a>(
    known: impl Iterator<Item = (Bytes, Option<Bytes>)>,
    rows: impl Iterator<Item = Row<'a>>,
    order: Order,
    with: &mut impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), FileError> {
    let (mut known, mut rows) = (known.peekable(), rows.peekable());
    loop {
        let first = first(&mut known, &mut rows, order);
        if first != cmp::Ordering::Less
            && let Some(row) = rows.next()
        {
            let (key, value) = row?;
            // Where both have it, the tree's is outdated.
            if first == cmp::Ordering::Greater {
                if with(key.value(), value.value()) {
                    continue;
                }
                return Ok(());
            }
        }
        let Some((key, value)) = known.next() else { return Ok(()) };
        if value.is_some_and(|value| !with(&key, &value)) {
            return Ok(());
        }
    }
}

/// Which comes next: of the layers (`Less`), of the tree (`Greater`), or one of both that is the same (`Equal`).
fn first<'a>(
    known: &mut Peekable<impl Iterator<Item = (Bytes, Option<Bytes>)>>,
    rows: &mut Peekable<impl Iterator<Item = Row<'a>>>,
    order: Order,
) -> cmp::Ordering {
    match (known.peek(), rows.peek()) {
        (_, None) => cmp::Ordering::Less,
        (None, Some(_)) | (_, Some(Err(_))) => cmp::Ordering::Greater,
        (Some((key, _)), Some(Ok((row, _)))) => match order {
            Order::Rising => (**key).cmp(row.value()),
            Order::Falling => row.value().cmp(key),
        },
    }
}
