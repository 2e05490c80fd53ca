//! The store inside this process: an index in memory for reads, a log for what is committed, a redb file, the *tree*, for what is kept.
//!
//! ```text
//!   Space -> Index (reads) | Message -> Writer (writer.rs) -> Log (log.rs), then Index
//!                                          │  └ Folder (fold.rs): many records of the log -> one transaction of the tree (file.rs)
//!                                          └ closed after an error, and opened again with back-off (recovery.rs)
//! ```
//!
//! All entries are in the index, which is as large as the limits let it become. One thread writes: it takes the commits that wait, checks each
//! against what is there, writes them as one record of the log, which costs one write and one fdatasync, puts them into the index, and only then
//! acknowledges them. So many commits at the same time cost one fdatasync, and no reader sees what a crash could take back. What the log holds comes to the tree later, much at once. A store in memory has no log: its commits
//! are transactions of redb.
//!
//! Each tenant has an index of its own under a lock of its own, held by the writer while it puts one commit there. So a reader that holds it
//! sees commits as a whole. A commit that changes nothing is a reader: what it expects is looked at under that lock.
//!
//! Where the file cannot be opened when the server starts, there is nothing to read either: [`Space::is_open`] says so until it can be.

mod fault;
pub mod file;
mod fold;
mod frame;
mod inbox;
mod lines;
mod log;
mod pending;
mod records;
mod recovery;
mod salvage;
mod seen;
pub mod tool;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Database, StorageBackend};
use rustix::fs::Advice;
use tokio::sync::{mpsc, oneshot};

use self::file::{Contents, File};
use self::fold::{FOLD_AT, FoldAt, Folder};
use self::pending::Overlay;
use self::writer::Writer;
use super::count::Commits;
use super::{
    BUCKETS_MAX, BucketKey, BucketName, COMMIT_BYTES_MAX, Commit, ENTRY_OVERHEAD_BYTES, Entry, KvError, KvLimits, Outcome,
};
use crate::confine;
use crate::health::Health;

pub use self::fault::FileError;
pub use self::records::{Order, Records};
pub use self::seen::Seen;

/// Commits that wait for the writer; those that come then wait for room.
const QUEUE_MAX: usize = 1_024;
/// For how long a server that ends waits for its store.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// That is no Redis server.
    #[error("the key-value store is to be in Redis: {0}")]
    Redis(#[source] redis::RedisError),
    /// There is no thread that writes.
    #[error("cannot start the key-value store's thread: {0}")]
    Thread(#[source] io::Error),
}

/// An open store.
#[derive(Debug)]
pub struct Embedded {
    shared: Arc<Shared>,
    writer: mpsc::Sender<Message>,
}

/// What readers and the writer share.
#[derive(Debug, Default)]
struct Shared {
    tenants: Mutex<Tenants>,
    /// Whether the indexes are what the file holds: from when it was first opened on, whatever becomes of it.
    is_open: AtomicBool,
    commits: Commits,
    /// Groups of commits that are in the indexes.
    applied: AtomicU64,
    /// Records that may be in the log alone.
    overlay: RwLock<Overlay>,
    /// The file that is open, for those that read records.
    database: RwLock<Option<Weak<Database>>>,
}

#[derive(Debug, Default)]
struct Tenants {
    by_name: HashMap<Box<str>, Arc<Tenant>>,
    /// Where the versions of a new one begin.
    floor: u64,
}

/// One tenant's entries.
#[derive(Debug)]
struct Tenant {
    name: Box<str>,
    index: RwLock<Index>,
}

#[derive(Debug, Default)]
struct Index {
    entries: BTreeMap<BucketKey, Entry>,
    /// Of the last commit.
    version: u64,
    /// Of the last commit that has added keys to a bucket or removed keys, by the bucket's name. Since this process began: what was expected before is no more.
    buckets: HashMap<Box<[u8]>, u64>,
    /// The same of buckets that are not there: when there were too many, all were forgotten. A transaction that has listed one before then runs again.
    forgotten: u64,
}

/// A tenant's share of the store.
#[derive(Clone, Debug)]
pub struct Space {
    tenant: Arc<Tenant>,
    shared: Arc<Shared>,
    writer: mpsc::Sender<Message>,
}

#[derive(Debug)]
enum Message {
    Commit(Request),
    /// If the file is closed, it is time to open it.
    Retry,
    /// Nothing more comes: the file is to be closed in good order. Then the sender is dropped.
    End(SyncSender<()>),
}

#[derive(Debug)]
struct Request {
    tenant: Arc<Tenant>,
    commit: Commit,
    answer: oneshot::Sender<Result<Outcome, KvError>>,
}

/// Opens the file, each time that it is needed anew.
type Source = Box<dyn FnMut() -> Result<File, FileError> + Send>;

impl std::borrow::Borrow<[u8]> for BucketKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Embedded {
    /// Opens the store in that file, or makes it; its log is beside it ([`log_path`]). Where that is not possible, `health` says why, and it is tried again.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn open(path: &Path, limits: KvLimits, health: &Arc<Health>) -> Result<Embedded, OpenError> {
        let name = path.display().to_string();
        let (path, log, mut was_there) = (path.to_owned(), log_path(path), false);
        let source = move || {
            let (file, is_again) = (open_file(&path, !was_there)?, was_there);
            was_there = true;
            if is_again {
                forget_unwritten(&file)?;
            }
            File::open_with_log(FileBackend::new(file)?, |is_needed| open_log(&log, is_needed))
        };
        Embedded::with_source(name, (Box::new(source), Some(FOLD_AT)), limits, health)
    }

    /// A store that is gone with this process.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn in_memory(limits: KvLimits) -> Result<Embedded, OpenError> {
        let source = || File::open(InMemoryBackend::new());
        Embedded::with_source("memory".to_owned(), (Box::new(source), None), limits, &Arc::default())
    }

    /// Opens the store in what are no ordinary files; `backends` is asked for the tree's and the log's each time that it is opened.
    ///
    /// # Errors
    /// As for [`Embedded::open`].
    pub fn with_backend<B: StorageBackend>(
        backends: impl FnMut() -> io::Result<[B; 2]> + Send + 'static,
        limits: KvLimits,
        health: &Arc<Health>,
    ) -> Result<Embedded, OpenError> {
        Embedded::with_folds(backends, FOLD_AT, limits, health)
    }

    /// The same with other moments at which the log is written to the tree.
    fn with_folds<B: StorageBackend>(
        mut backends: impl FnMut() -> io::Result<[B; 2]> + Send + 'static,
        at: FoldAt,
        limits: KvLimits,
        health: &Arc<Health>,
    ) -> Result<Embedded, OpenError> {
        let source = move || {
            let [tree, log] = backends()?;
            File::open_with_log(tree, |_| Ok(Box::new(log)))
        };
        Embedded::with_source("FILE".to_owned(), (Box::new(source), Some(at)), limits, health)
    }

    fn with_source(
        name: String,
        (source, folds): (Source, Option<FoldAt>),
        limits: KvLimits,
        health: &Arc<Health>,
    ) -> Result<Embedded, OpenError> {
        let (writer, messages) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared::default());
        let folder = folds.map_or_else(|| Ok(Folder::none()), Folder::start).map_err(OpenError::Thread)?;
        let mut thread = Writer::new(name, (source, folder), limits, Arc::clone(&shared), Arc::clone(health));
        // With the privileges that the server still has; threads that start later have none.
        thread.open_first();
        confine::thread("kv", move || thread.work(messages)).map_err(OpenError::Thread)?;
        Ok(Embedded { shared, writer })
    }

    /// A tenant's share.
    #[must_use]
    pub fn space(&self, tenant: &str) -> Space {
        let tenant = self.shared.tenants().get(tenant);
        Space { tenant, shared: Arc::clone(&self.shared), writer: self.writer.clone() }
    }

    /// What the server itself keeps in it.
    #[must_use]
    pub fn records(&self) -> Records {
        Records::new(Arc::clone(&self.shared))
    }

    /// If the file could not be used, tries again now.
    pub fn retry(&self) {
        // Where many wait, it is tried soon anyway.
        let _ = self.writer.try_send(Message::Retry);
    }

    /// Closes the file in good order, so that it needs no log, and waits for that, though not for long. Commits that come later are refused.
    pub fn close(&self) {
        let (sender, ended) = std::sync::mpsc::sync_channel(1);
        if self.writer.blocking_send(Message::End(sender)).is_ok() {
            // The writer says that it has ended, and how it went, by dropping the sender. What it has not done by then is in the log.
            let _ = ended.recv_timeout(CLOSE_TIME_MAX);
        }
    }

    /// What became of commits.
    #[must_use]
    pub fn commits(&self) -> &Commits {
        &self.shared.commits
    }
}

/// Opens a file to read and write, or makes it if it may.
fn open_file(path: &Path, create: bool) -> io::Result<std::fs::File> {
    OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)
}

/// Where the log of a store in that file is.
#[must_use]
pub fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".log");
    name.into()
}

/// Opens the log, which the tree's lock guards, too, or makes it where the tree does not need what it holds.
fn open_log(path: &Path, is_needed: bool) -> io::Result<Box<dyn StorageBackend>> {
    let file = open_file(path, !is_needed)?;
    if !is_needed {
        // Before the tree says that it needs it: a file whose name is lost in a crash is lost.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match std::fs::File::open(folder)?.sync_all() {
            // File systems that have nothing to sync there.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {}
            synced => synced?,
        }
    }
    // Always: the process that failed to write it may be another one.
    forget_unwritten(&file)?;
    let backend = FileBackend::new(file).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Box::new(backend))
}

/// Has the kernel forget what it could not write to the disk: it keeps that as if it had, so that one would read what a crash takes back.
fn forget_unwritten(file: &std::fs::File) -> io::Result<()> {
    file.sync_data()?;
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

impl Shared {
    fn tenants(&self) -> MutexGuard<'_, Tenants> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tenants {
    fn get(&mut self, name: &str) -> Arc<Tenant> {
        let index = Index { version: self.floor, ..Index::default() };
        let new = || Arc::new(Tenant { name: name.into(), index: RwLock::new(index) });
        Arc::clone(self.by_name.entry(name.into()).or_insert_with(new))
    }

    /// Puts what a file holds into the indexes, which have not been read yet.
    fn fill(&mut self, contents: Contents, floor: u64) {
        self.floor = floor;
        for tenant in self.by_name.values() {
            tenant.write().version = floor;
        }
        for (name, content) in contents {
            let tenant = self.get(&name);
            *tenant.write() = Index { entries: content.entries, version: content.version, ..Index::default() };
        }
    }
}

impl Tenant {
    fn read(&self) -> RwLockReadGuard<'_, Index> {
        // What is done under this lock is a change of entries, which cannot be half done but by a bug.
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Space {
    /// Whether there is something to read.
    #[must_use]
    pub fn is_open(&self) -> bool {
        // Acquire: with it come the indexes.
        self.shared.is_open.load(Ordering::Acquire)
    }

    fn check_open(&self) -> Result<(), KvError> {
        if self.is_open() { Ok(()) } else { Err(KvError::Unavailable("its file could not be opened".to_owned())) }
    }

    /// Calls `with` with what there is under a key, which does not change meanwhile.
    ///
    /// # Errors
    /// When the key is too long, or nothing could be read yet.
    pub fn get<R>(&self, bucket: &BucketName, key: &[u8], with: impl FnOnce(Option<&Entry>) -> R) -> Result<R, KvError> {
        self.check_open()?;
        bucket.joined(key, |key| with(self.tenant.read().entries.get(key)))
    }

    /// What there is under a key.
    ///
    /// # Errors
    /// When nothing could be read yet.
    pub fn entry(&self, key: &BucketKey) -> Result<Option<Entry>, KvError> {
        self.check_open()?;
        Ok(self.tenant.read().entries.get(key).cloned())
    }

    /// The same for several keys, between which nothing changes either.
    ///
    /// # Errors
    /// When the values are too large together: nothing else runs while they are copied. When nothing could be read yet.
    pub fn get_many(&self, keys: &[BucketKey]) -> Result<Vec<Option<Entry>>, KvError> {
        self.check_open()?;
        let index = self.tenant.read();
        let entries: Vec<Option<Entry>> = keys.iter().map(|key| index.entries.get(key).cloned()).collect();
        let bytes = entries.iter().flatten().map(|entry| entry.value.len()).sum();
        if bytes > COMMIT_BYTES_MAX { Err(KvError::too_large_together(bytes)) } else { Ok(entries) }
    }

    /// The keys of a bucket that begin with `prefix` and come behind `after`, in order, as long as `take` takes them. Returns the version of the bucket's set of keys.
    ///
    /// # Errors
    /// When one of both is too long, or nothing could be read yet.
    pub fn keys(
        &self,
        bucket: &BucketName,
        prefix: &[u8],
        after: Option<&[u8]>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<u64, KvError> {
        self.check_open()?;
        let prefix = bucket.key(prefix)?;
        let start = match after.map(|after| bucket.key(after)).transpose()? {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix.clone()),
        };
        let name_bytes = bucket.0.len() + 1;
        let index = self.tenant.read();
        for (key, _) in index.entries.range((start, Bound::Unbounded)) {
            if !key.0.starts_with(&prefix.0) || !take(&key.0[name_bytes..]) {
                break;
            }
        }
        Ok(index.bucket(bucket))
    }

    /// Makes a commit. Dropping the future does not take it back.
    ///
    /// # Errors
    /// When it is too large, there is no room, it adds to what is no number, or the store does not work.
    pub async fn commit(self, commit: Commit) -> Result<Outcome, KvError> {
        commit.check()?;
        if commit.is_read_only() {
            return self.validate(&commit);
        }
        let (answer, outcome) = oneshot::channel();
        let gone = || KvError::Unavailable("its thread has ended".to_owned());
        let request = Request { tenant: self.tenant, commit, answer };
        self.writer.send(Message::Commit(request)).await.map_err(|_| gone())?;
        outcome.await.unwrap_or_else(|_| Err(gone()))
    }

    /// A commit that changes nothing.
    fn validate(&self, commit: &Commit) -> Result<Outcome, KvError> {
        self.check_open()?;
        let index = self.tenant.read();
        let find = |key: &BucketKey| index.entries.get(key);
        let conflict = conflict(commit, find, |bucket| index.bucket(bucket));
        Ok(conflict.unwrap_or(Outcome::Committed { version: index.version, sum: 0 }))
    }

    /// Whether that still holds of what was read, without waiting: a commit that changes nothing.
    ///
    /// # Errors
    /// When nothing could be read yet.
    pub fn check(&self, commit: &Commit) -> Result<Outcome, KvError> {
        let counted = self.commits().begin();
        let outcome = self.validate(commit);
        counted.ended(&outcome);
        outcome
    }

    pub(super) fn commits(&self) -> &Commits {
        &self.shared.commits
    }
}

impl Index {
    /// The version of a bucket's set of keys.
    fn bucket(&self, name: &BucketName) -> u64 {
        self.buckets.get(&name.0).copied().unwrap_or(self.forgotten)
    }

    /// All entries in order, with the tenant's name.
    fn named<'a>(&'a self, tenant: &'a str) -> impl Iterator<Item = (&'a str, &'a BucketKey, &'a Entry)> {
        self.entries.iter().map(move |(key, entry)| (tenant, key, entry))
    }

    fn put(&mut self, key: BucketKey, entry: Option<Entry>) {
        let is_there = entry.is_some();
        let bucket = if self.entries.contains_key(&key) == is_there { None } else { Some(Box::from(key.bucket())) };
        match entry {
            Some(entry) => drop(self.entries.insert(key, entry)),
            None => drop(self.entries.remove(&key)),
        }
        if let Some(bucket) = bucket {
            if self.buckets.len() >= BUCKETS_MAX {
                self.buckets.clear();
                self.forgotten = self.version;
            }
            self.buckets.insert(bucket, self.version);
        }
    }
}

/// The first of what a commit expects that is otherwise. `find` knows entries, `bucket` the versions of sets of keys.
fn conflict<'a>(
    commit: &Commit,
    find: impl Fn(&BucketKey) -> Option<&'a Entry>,
    bucket: impl Fn(&BucketName) -> u64,
) -> Option<Outcome> {
    let keys = commit.expected.iter().map(|(key, expected)| (find(key).map_or(0, |entry| entry.version), *expected));
    let buckets = commit.listed.iter().map(|(name, expected)| (bucket(name), *expected));
    let mut all = keys.chain(buckets).enumerate();
    let (index, (version, _)) = all.find(|(_, (version, expected))| version != expected)?;
    Some(Outcome::Conflict { version, index })
}

/// Bytes of entries, as limits count them.
fn used(entries: &BTreeMap<BucketKey, Entry>) -> u64 {
    entries.iter().map(|(key, entry)| cost(key, &entry.value)).sum()
}

fn cost(key: &BucketKey, value: &[u8]) -> u64 {
    (key.0.len() + value.len()) as u64 + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
pub(crate) mod tests;
