//! The store's file: a redb database, the *tree*, its tables, and the versions of its format; and beside it the log (`log.rs`), in which commits are before they are in the tree.
//!
//! ```text
//!   entries  (tenant, bucket and key) -> (version, value)
//!   version  tenant -> the version of its last commit        format 1: () -> that of all tenants
//!   about    "format", "identity", "sequence", "floor"       format 1: none
//!            "log"                                           format 3 alone: the nonce of the log's records that count
//!   records  key -> value                                    what the server keeps for itself; none before there is one
//! ```
//!
//! `sequence` counts the groups of commits: those up to it are in the tree, those behind it in the log, if there is one. By it a writer finds out whether a group that failed is in the file. `floor` is
//! what the one counter of format 1 came to: the versions of tenants that have none of their own go on from there.
//!
//! Format 3 is format 2 with a log that may hold commits: a sledge that knows no log refuses it. When the store is closed in good order, the log is written to the tree, whose format is 2 again. Then the tree is all there is, and
//! whatever lies where a log would be does not count.
//!
//! redb checks what it reads only after a crash. So a file that was closed in good order is checked here when it is opened, and whatever redb does with a
//! damaged one, be it a panic, is an error.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition,
    TableError, WriteTransaction,
};

use super::fault::FileError;
use super::frame::Changes;
use super::log::Log;
use super::pending::{Layer, Pending};
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

/// The newest version of the format: that of a file that has a log.
pub const FORMAT: u64 = 3;
/// That of a file without a log.
const FORMAT_ALONE: u64 = 2;
const FORMAT_KEY: &str = "format";
const IDENTITY_KEY: &str = "identity";
const SEQUENCE_KEY: &str = "sequence";
const FLOOR_KEY: &str = "floor";
const LOG_KEY: &str = "log";

/// For how long a file that failed is kept for those that read it, before it is closed.
const READERS_TIME_MAX: Duration = Duration::from_secs(1);
/// How often that is looked at.
const READERS_LOOK: Duration = Duration::from_micros(100);

/// What a file of redb's begins with, and its smallest page.
pub(super) const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";
pub(super) const PAGE_BYTES: usize = 4 << 10;

/// Memory in which redb keeps pages; reads do not come here.
const CACHE_BYTES: usize = 16 << 20;

/// An open file.
#[derive(Debug)]
pub struct File {
    /// Shared with those that read records, for as long as they do, and with the thread that writes the log to it.
    database: Arc<Database>,
    /// None of a store in memory.
    log: Option<Log>,
    /// The nonce of the log's records that count, if the log may hold some.
    nonce: Option<u64>,
    /// What it has in common with its copies only: a random number.
    pub identity: u64,
    /// Groups of commits that are in the tree.
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
    /// Opens a store without a log, or makes one of what is empty.
    ///
    /// # Errors
    /// When it cannot be read or written, is damaged, a later sledge has written it, or it needs its log.
    pub fn open(backend: impl StorageBackend) -> Result<File, FileError> {
        let file = File::tree(backend)?;
        if file.nonce.is_some() { Err(FileError::NoLog) } else { Ok(file) }
    }

    /// Opens a store and its log, for which `log` is asked when the tree is open, and so locked for this process. It is told whether there has to be one.
    ///
    /// # Errors
    /// As for [`File::open`], and when the log cannot be opened.
    pub fn open_with_log(
        backend: impl StorageBackend,
        log: impl FnOnce(bool) -> io::Result<Box<dyn StorageBackend>>,
    ) -> Result<File, FileError> {
        let mut file = File::tree(backend)?;
        let is_needed = file.nonce.is_some();
        let log = log(is_needed).and_then(Log::open).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if is_needed => FileError::NoLog,
            _ => FileError::Log(error),
        });
        let log = log?;
        if !is_needed && log.is_foreign().map_err(FileError::Log)? {
            return Err(FileError::NotALog);
        }
        file.log = Some(log);
        Ok(file)
    }

    fn tree(backend: impl StorageBackend) -> Result<File, FileError> {
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

    /// What the log holds behind the tree, in order.
    ///
    /// # Errors
    /// When it cannot be read, is another tree's, or lacks something.
    pub(super) fn tail(&self) -> Result<Vec<Changes>, FileError> {
        let (Some(log), Some(nonce)) = (&self.log, self.nonce) else { return Ok(Vec::new()) };
        let nonces = log.nonces().map_err(FileError::Log)?;
        if !nonces.contains(&Some(nonce)) {
            return Err(FileError::OtherLog);
        }
        for other in nonces.into_iter().flatten().filter(|other| *other != nonce) {
            // Records of the opening before are in the tree, each of them. Later ones than the tree has are of the opening behind: they were written when the tree had that nonce, which it
            // has no more. So the tree is an older copy, or redb has gone back; what the log had for this state of the tree may be overwritten.
            if !log.found(other, self.sequence).map_err(FileError::Log)?.is_empty() {
                return Err(FileError::OtherLog);
            }
        }
        let scan = log.scan(nonce, self.sequence).map_err(FileError::Log)?;
        scan.lost.map_or(Ok(scan.changes), |sequence| Err(FileError::LogGap { sequence }))
    }

    /// Whether the group of commits with that sequence is there: in the tree, or in the log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(super) fn holds(&self, sequence: u64) -> Result<bool, FileError> {
        let (Some(log), Some(nonce)) = (&self.log, self.nonce) else { return Ok(sequence <= self.sequence) };
        let found = log.found(nonce, self.sequence).map_err(FileError::Log)?;
        Ok(sequence <= self.sequence || found.contains_key(&sequence))
    }

    /// All that the tree holds.
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

    /// All that the tree and the log hold, and of that what the log holds.
    ///
    /// # Errors
    /// When one of both cannot be read, or the log lacks something.
    pub(super) fn contents(&self) -> Result<(Contents, Vec<Changes>), FileError> {
        let tail = self.tail()?;
        let mut contents = self.load()?;
        for changes in &tail {
            for (tenant, key, entry) in changes.writes() {
                let content = contents.entry(tenant.into()).or_default();
                match entry {
                    Some(entry) => drop(content.entries.insert(key.clone(), entry.clone())),
                    None => drop(content.entries.remove(key)),
                }
            }
            for (tenant, version) in changes.versions() {
                contents.entry(tenant.into()).or_default().version = version;
            }
        }
        Ok((contents, tail))
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

    /// Writes a group of commits to the tree, the versions that tenants have then, and records, for good: without a log, or where the log is too small for it.
    ///
    /// # Errors
    /// When that fails. Then this file cannot be used any more.
    pub fn commit<'a>(
        &mut self,
        writes: impl Iterator<Item = Write<'a>>,
        versions: impl Iterator<Item = (&'a str, u64)>,
        records: &[Record],
    ) -> Result<(), LogError> {
        let sequence = self.sequence + 1;
        let write = guarded(|| {
            let write = begin(&self.database)?;
            put(&write, writes, versions, sequence)?;
            put_records(&write, records.iter().map(|record| (&*record.key, record.value.as_deref())))?;
            Ok(write)
        });
        let write = write.map_err(LogError::NotMade)?;
        guarded(|| Ok(write.commit()?)).map_err(LogError::Unknown)?;
        self.sequence = sequence;
        Ok(())
    }

    /// The nonce of the records of the log that count, if there may be some, and the sequence above which they do.
    pub(super) const fn logged(&self) -> (Option<u64>, u64) {
        (self.nonce, self.sequence)
    }

    /// What writes to the tree beside this thread.
    pub(super) fn shared(&self) -> Arc<Database> {
        Arc::clone(&self.database)
    }

    /// The log, if this store has one.
    pub(super) fn log(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// The tree has all groups of commits up to that one, durably.
    pub(super) fn folded(&mut self, sequence: u64) {
        self.sequence = sequence;
        if let Some(log) = &mut self.log {
            log.folded(sequence);
        }
    }

    /// Writes what the log holds to the tree, up to that sequence, and begins a log with nothing in it. A store without a log stays as it is.
    ///
    /// # Errors
    /// When that fails. Then this file cannot be used any more, and the log holds what it held.
    pub(super) fn start(&mut self, pending: &Pending, layer: &Layer, sequence: u64) -> Result<(), FileError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let nonce = random()?;
        // First the log says the nonce, then the tree: the log of a tree with a nonce knows it, whenever this ends.
        log.announce(self.nonce, nonce).map_err(FileError::Log)?;
        let more = |write: &WriteTransaction| {
            let mut about = write.open_table(ABOUT)?;
            about.insert(LOG_KEY, nonce)?;
            about.insert(FORMAT_KEY, FORMAT)?;
            Ok(())
        };
        // In one transaction: with another nonce, the log's records do not count any more.
        fold_with(&self.database, pending, layer, sequence, more)?;
        (self.sequence, self.nonce) = (sequence, Some(nonce));
        log.begin(nonce).map_err(FileError::Log)
    }

    /// The same at the end: a file that needs no log any more, and that an earlier sledge may open.
    ///
    /// # Errors
    /// When that fails; the log holds what it held.
    pub(super) fn end(self, pending: &Pending, layer: &Layer, sequence: u64) -> Result<(), FileError> {
        let more = |write: &WriteTransaction| {
            let mut about = write.open_table(ABOUT)?;
            about.remove(LOG_KEY)?;
            about.insert(FORMAT_KEY, FORMAT_ALONE)?;
            Ok(())
        };
        let ended = if self.nonce.is_some() { fold_with(&self.database, pending, layer, sequence, more) } else { Ok(()) };
        self.discard();
        ended
    }

    /// Sets where the versions of tenants begin that have none.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_floor(&mut self, floor: u64) -> Result<(), FileError> {
        guarded(|| {
            let write = begin(&self.database)?;
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
            let write = begin(&self.database)?;
            put(&write, writes, versions, sequence)?;
            Ok(write.commit()?)
        })?;
        self.sequence = sequence;
        Ok(())
    }

    /// Writes so many bytes for good, and removes them again: whether there is room for a commit of that size, in the log as in the tree.
    ///
    /// # Errors
    /// When there is none.
    pub fn probe(&mut self, bytes: usize) -> Result<(), FileError> {
        if let Some(log) = &mut self.log {
            log.reserve(bytes).map_err(FileError::Log)?;
        }
        guarded(|| {
            let write = begin(&self.database)?;
            write.open_table(PROBE)?.insert((), &*vec![0; bytes])?;
            write.commit()?;
            let write = begin(&self.database)?;
            write.delete_table(PROBE)?;
            Ok(write.commit()?)
        })
    }

    /// For those that read records.
    pub(super) fn database(&self) -> Weak<Database> {
        Arc::downgrade(&self.database)
    }

    /// Closes it after an error, as it is, when those that read records have done with it: while they hold it, it cannot be opened again, as if another server had it. No new ones come, and one
    /// that reads for long is not waited for.
    pub(super) fn discard(self) {
        let end = Instant::now() + READERS_TIME_MAX;
        while Arc::strong_count(&self.database) > 1 && Instant::now() < end {
            thread::sleep(READERS_LOOK);
        }
        let _ = guarded(|| {
            drop(self.database);
            Ok(())
        });
    }
}

/// Writes what the log holds up to that sequence to the tree, durably, as one transaction.
///
/// # Errors
/// When that fails: nothing of it may be there, or all.
pub(super) fn fold(database: &Database, pending: &Pending, layer: &Layer, sequence: u64) -> Result<(), FileError> {
    fold_with(database, pending, layer, sequence, |_| Ok(()))
}

fn fold_with(
    database: &Database,
    pending: &Pending,
    layer: &Layer,
    sequence: u64,
    more: impl FnOnce(&WriteTransaction) -> Result<(), FileError>,
) -> Result<(), FileError> {
    guarded(|| {
        let write = begin(database)?;
        put(&write, pending.writes(), pending.versions(), sequence)?;
        put_records(&write, layer.iter().map(|(key, value)| (&**key, value.as_deref())))?;
        more(&write)?;
        Ok(write.commit()?)
    })
}

fn begin(database: &Database) -> Result<WriteTransaction, FileError> {
    let mut write = database.begin_write()?;
    write.set_durability(Durability::Immediate).map_err(redb::Error::from)?;
    Ok(write)
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

fn put_records<'a>(
    write: &WriteTransaction,
    records: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) -> Result<(), FileError> {
    let mut records = records.peekable();
    if records.peek().is_none() {
        return Ok(());
    }
    let mut table = write.open_table(RECORDS)?;
    for (key, value) in records {
        match value {
            Some(value) => table.insert(key, value)?,
            None => table.remove(key)?,
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
        Some(format) => {
            let [identity, sequence, floor] = [IDENTITY_KEY, SEQUENCE_KEY, FLOOR_KEY].map(about);
            let (identity, sequence, floor) = (identity?.unwrap_or(0), sequence?.unwrap_or(0), floor?.unwrap_or(0));
            // An earlier sledge leaves the key where it is, and the format says that it does not count.
            let nonce = if format > FORMAT_ALONE { Some(about(LOG_KEY)?.unwrap_or(0)) } else { None };
            return Ok(File { database: Arc::new(database), log: None, nonce, identity, sequence, floor, was_damaged });
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
    for (key, number) in [(FORMAT_KEY, FORMAT_ALONE), (IDENTITY_KEY, identity), (SEQUENCE_KEY, 0), (FLOOR_KEY, floor)] {
        write.open_table(ABOUT)?.insert(key, number)?;
    }
    write.commit()?;
    Ok(File { database: Arc::new(database), log: None, nonce: None, identity, sequence: 0, floor, was_damaged })
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
