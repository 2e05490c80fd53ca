//! The store's file: a redb database, its tables, and the versions of its format.
//!
//! ```text
//!   entries  (tenant, bucket and key) -> (version, value)
//!   version  tenant -> the version of its last commit        format 1: () -> that of all tenants
//!   about    "format", "identity", "sequence", "floor"       format 1: none
//!   records  key -> value                                    what the server keeps for itself; none before there is one
//! ```
//!
//! `sequence` counts the transactions that write commits: by it a writer finds out whether one that failed is in the file. `floor` is what the one counter of
//! format 1 came to: the versions of tenants that have none of their own go on from there.
//!
//! redb checks what it reads only after a crash. So a file that was closed in good order is checked here when it is opened, and whatever redb does with a
//! damaged one, be it a panic, is an error.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition,
    TableError, WriteTransaction,
};

use super::fault::FileError;
use super::{BucketKey, Entry};
use crate::kv::Record;

/// A tenant, and a [`BucketKey`].
type Place<'a> = (&'a str, &'a [u8]);
/// A version, and a value.
type Stored<'a> = (u64, &'a [u8]);

const ENTRIES: TableDefinition<'_, Place<'_>, Stored<'_>> = TableDefinition::new("entries");
/// It has the name of format 1's, with another type: a sledge that knows no later formats refuses the file.
const VERSIONS: TableDefinition<'_, &str, u64> = TableDefinition::new("version");
const VERSION_1: TableDefinition<'_, (), u64> = TableDefinition::new("version");
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// What the server itself keeps.
pub(super) const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
/// What is written to see whether something can be.
const PROBE: TableDefinition<'_, (), &[u8]> = TableDefinition::new("probe");

/// The version of the format that is written.
pub const FORMAT: u64 = 2;
const FORMAT_KEY: &str = "format";
const IDENTITY_KEY: &str = "identity";
const SEQUENCE_KEY: &str = "sequence";
const FLOOR_KEY: &str = "floor";

/// What a file of redb's begins with, and its smallest page.
pub(super) const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";
pub(super) const PAGE_BYTES: usize = 4 << 10;

/// Memory in which redb keeps pages; reads do not come here.
const CACHE_BYTES: usize = 16 << 20;

/// An open file.
#[derive(Debug)]
pub struct File {
    /// Shared with those that read records, for as long as they do.
    database: Arc<Database>,
    /// What it has in common with its copies only: a random number.
    pub identity: u64,
    /// Transactions with commits that are in it.
    pub sequence: u64,
    /// Where the versions of a tenant begin that has none here.
    pub floor: u64,
    /// Whether it was closed in good order and redb had to mend it nevertheless, for which it may have gone back by one transaction.
    pub was_damaged: bool,
}

/// What a file holds of one tenant.
#[derive(Debug, Default)]
pub struct Content {
    /// Its entries.
    pub entries: BTreeMap<BucketKey, Entry>,
    /// The version of its last commit.
    pub version: u64,
}

/// What a file holds, by tenant.
pub type Contents = HashMap<Box<str>, Content>;

/// One write: tenant, key, and the entry that is there then, if any.
pub type Write<'a> = (&'a str, &'a BucketKey, Option<&'a Entry>);

/// Why commits were not written.
#[derive(Debug)]
pub enum LogError {
    /// They are not in the file, and will not be.
    NotMade(FileError),
    /// They may be in the file: it has to be opened again to know.
    Unknown(FileError),
}

impl File {
    /// Opens a store, or makes one of what is empty.
    ///
    /// # Errors
    /// When it cannot be read or written, is damaged, or a later sledge has written it.
    pub fn open(backend: impl StorageBackend) -> Result<File, FileError> {
        guarded(move || {
            let repaired = Arc::new(AtomicBool::new(false));
            let mut builder = Database::builder();
            let seen = Arc::clone(&repaired);
            builder.set_cache_size(CACHE_BYTES).set_repair_callback(move |_| seen.store(true, Ordering::Relaxed));
            let is_new = is_unmade(&backend)?;
            if is_new {
                backend.set_len(0)?;
            }
            let mut database = builder.create_with_backend(backend)?;
            let is_checked = is_new || repaired.load(Ordering::Relaxed);
            let was_damaged = !is_checked && !database.check_integrity()?;
            prepare(database, was_damaged)
        })
    }

    /// All that it holds.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self) -> Result<Contents, FileError> {
        let mut contents = Contents::new();
        self.each(|tenant, key, version, value| {
            let entry = Entry { version, value: Bytes::copy_from_slice(value) };
            match contents.get_mut(tenant) {
                Some(content) => drop(content.entries.insert(BucketKey(key.into()), entry)),
                None => {
                    drop(contents.insert(tenant.into(), Content { entries: [(BucketKey(key.into()), entry)].into(), version: 0 }))
                }
            }
        })?;
        guarded(|| {
            for row in self.database.begin_read()?.open_table(VERSIONS)?.iter()? {
                let (tenant, version) = row?;
                contents.entry(tenant.value().into()).or_default().version = version.value();
            }
            Ok(())
        })?;
        contents.values_mut().for_each(|content| content.version = content.version.max(self.floor));
        Ok(contents)
    }

    /// Calls `with` with tenant, key, version and value of each entry, in order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn each(&self, mut with: impl FnMut(&str, &[u8], u64, &[u8])) -> Result<(), FileError> {
        guarded(|| {
            for row in self.database.begin_read()?.open_table(ENTRIES)?.iter()? {
                let (key, value) = row?;
                let ((tenant, key), (version, value)) = (key.value(), value.value());
                with(tenant, key, version, value);
            }
            Ok(())
        })
    }

    /// Writes the commits of one transaction, the versions that tenants have then, and records, for good.
    ///
    /// # Errors
    /// When that fails. Then this file cannot be used any more.
    pub fn log<'a>(
        &mut self,
        writes: impl Iterator<Item = Write<'a>>,
        versions: impl Iterator<Item = (&'a str, u64)>,
        records: &[Record],
    ) -> Result<(), LogError> {
        let sequence = self.sequence + 1;
        let write = guarded(|| {
            let write = self.begin()?;
            put(&write, writes, versions, sequence)?;
            put_records(&write, records)?;
            Ok(write)
        });
        let write = write.map_err(LogError::NotMade)?;
        guarded(|| Ok(write.commit()?)).map_err(LogError::Unknown)?;
        self.sequence = sequence;
        Ok(())
    }

    /// Sets where the versions of tenants begin that have none.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_floor(&mut self, floor: u64) -> Result<(), FileError> {
        guarded(|| {
            let write = self.begin()?;
            write.open_table(ABOUT)?.insert(FLOOR_KEY, floor)?;
            Ok(write.commit()?)
        })?;
        self.floor = floor;
        Ok(())
    }

    /// Writes entries, versions and the sequence as they should be, which are no commits.
    ///
    /// # Errors
    /// When that fails.
    pub fn correct<'a>(
        &mut self,
        writes: impl Iterator<Item = Write<'a>>,
        versions: impl Iterator<Item = (&'a str, u64)>,
        sequence: u64,
    ) -> Result<(), FileError> {
        guarded(|| {
            let write = self.begin()?;
            put(&write, writes, versions, sequence)?;
            Ok(write.commit()?)
        })?;
        self.sequence = sequence;
        Ok(())
    }

    /// Writes so many bytes for good, and removes them again: whether there is room for a commit of that size.
    ///
    /// # Errors
    /// When there is none.
    pub fn probe(&self, bytes: usize) -> Result<(), FileError> {
        guarded(|| {
            let write = self.begin()?;
            write.open_table(PROBE)?.insert((), &*vec![0; bytes])?;
            write.commit()?;
            let write = self.begin()?;
            write.delete_table(PROBE)?;
            Ok(write.commit()?)
        })
    }

    /// For those that read records.
    pub(super) fn database(&self) -> Weak<Database> {
        Arc::downgrade(&self.database)
    }

    /// Closes it after an error, as it is.
    pub(super) fn discard(self) {
        let _ = guarded(|| {
            drop(self.database);
            Ok(())
        });
    }

    fn begin(&self) -> Result<WriteTransaction, FileError> {
        let mut write = self.database.begin_write()?;
        write.set_durability(Durability::Immediate).map_err(redb::Error::from)?;
        Ok(write)
    }
}

fn put<'a>(
    write: &WriteTransaction,
    writes: impl Iterator<Item = Write<'a>>,
    versions: impl Iterator<Item = (&'a str, u64)>,
    sequence: u64,
) -> Result<(), FileError> {
    // Tables of which nothing changes, as where only records do, are not opened: that costs time.
    let (mut writes, mut versions) = (writes.peekable(), versions.peekable());
    if writes.peek().is_some() {
        let mut table = write.open_table(ENTRIES)?;
        for (tenant, key, entry) in writes {
            let key = (tenant, &*key.0);
            match entry {
                Some(Entry { version, value }) => table.insert(key, (*version, &**value))?,
                None => table.remove(key)?,
            };
        }
    }
    if versions.peek().is_some() {
        let mut table = write.open_table(VERSIONS)?;
        for (tenant, version) in versions {
            table.insert(tenant, version)?;
        }
    }
    write.open_table(ABOUT)?.insert(SEQUENCE_KEY, sequence)?;
    Ok(())
}

/// The transactions with commits that a reader sees.
pub(super) fn sequence(read: &ReadTransaction) -> Result<u64, FileError> {
    Ok(read.open_table(ABOUT)?.get(SEQUENCE_KEY)?.map_or(0, |number| number.value()))
}

fn put_records(write: &WriteTransaction, records: &[Record]) -> Result<(), FileError> {
    if records.is_empty() {
        return Ok(());
    }
    let mut table = write.open_table(RECORDS)?;
    for Record { key, value } in records {
        match value {
            Some(value) => table.insert(&**key, &**value)?,
            None => table.remove(&**key)?,
        };
    }
    Ok(())
}

/// Reads what a file says about itself; one of format 1 or without anything becomes one of this format.
fn prepare(database: Database, was_damaged: bool) -> Result<File, FileError> {
    let about = |key: &str| -> Result<Option<u64>, FileError> {
        match database.begin_read()?.open_table(ABOUT) {
            Ok(table) => Ok(table.get(key)?.map(|number| number.value())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    };
    match about(FORMAT_KEY)? {
        Some(found) if found > FORMAT => return Err(FileError::Newer { found, known: FORMAT }),
        Some(_) => {
            let [identity, sequence, floor] = [IDENTITY_KEY, SEQUENCE_KEY, FLOOR_KEY].map(about);
            let (identity, sequence, floor) = (identity?.unwrap_or(0), sequence?.unwrap_or(0), floor?.unwrap_or(0));
            return Ok(File { database: Arc::new(database), identity, sequence, floor, was_damaged });
        }
        None => {}
    }
    let floor = match database.begin_read()?.open_table(VERSION_1) {
        Ok(table) => table.get(())?.map_or(0, |version| version.value()),
        Err(TableError::TableDoesNotExist(_)) => 0,
        Err(error) => return Err(error.into()),
    };
    let write = database.begin_write()?;
    write.delete_table(VERSION_1)?;
    write.open_table(VERSIONS)?;
    write.open_table(ENTRIES)?;
    let identity = random()?;
    for (key, number) in [(FORMAT_KEY, FORMAT), (IDENTITY_KEY, identity), (SEQUENCE_KEY, 0), (FLOOR_KEY, floor)] {
        write.open_table(ABOUT)?.insert(key, number)?;
    }
    write.commit()?;
    Ok(File { database: Arc::new(database), identity, sequence: 0, floor, was_damaged })
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}

/// Whether there is nothing in a file, or what redb leaves that was stopped while it made one: no magic number, and nothing behind the first page.
fn is_unmade(backend: &impl StorageBackend) -> io::Result<bool> {
    const CHUNK: usize = 64 << 10;
    let length = backend.len()?;
    if length <= CHUNK as u64 {
        return Ok(length == 0);
    }
    let mut chunk = vec![0; CHUNK];
    backend.read(0, &mut chunk)?;
    if chunk.starts_with(MAGIC) {
        return Ok(false);
    }
    chunk[..PAGE_BYTES].fill(0);
    for at in (CHUNK as u64..length).step_by(CHUNK) {
        if chunk.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        let bytes = CHUNK.min((length - at) as usize);
        backend.read(at, &mut chunk[..bytes])?;
    }
    Ok(chunk.iter().all(|byte| *byte == 0))
}

/// Does something with redb, whose panics are errors: what a damaged file leads to.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
    // The database on which it panicked is closed and not used again.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(FileError::Redb(redb::Error::Corrupted(text.unwrap_or("it cannot be read").to_owned())))
    })
}
