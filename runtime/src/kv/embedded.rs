//! The store inside this process: an index in memory for reads, a redb file as the durable log.
//!
//! All entries are in the index, which is as large as the limits let it become. One thread writes: it takes the commits that wait, checks each
//! against what is there, writes them in one transaction of redb, which ends with an fsync, puts them into the index, and only then
//! acknowledges them. So many commits at the same time cost one fsync, and nobody sees what a crash could take back.
//!
//! Each tenant has an index of its own under a lock of its own, held by the writer while it puts one commit there. So a reader that holds it
//! sees commits as a whole.

use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition};
use tokio::sync::{mpsc, oneshot};

use super::{
    BucketKey, BucketName, COMMIT_BYTES_MAX, Change, Commit, ENTRY_OVERHEAD_BYTES, Entry, KvError, KvLimits, Outcome, sum,
};
use crate::confine;

/// A tenant, and a [`BucketKey`].
type Place<'a> = (&'a str, &'a [u8]);
/// A version, and a value.
type Stored<'a> = (u64, &'a [u8]);

const ENTRIES: TableDefinition<'_, Place<'_>, Stored<'_>> = TableDefinition::new("entries");
/// The version of the last commit.
const VERSION: TableDefinition<'_, (), u64> = TableDefinition::new("version");
/// Commits that wait for the writer; those that come then wait for room.
const QUEUE_MAX: usize = 1_024;
/// Commits that are written together.
const GROUP_MAX: usize = 256;
/// Memory in which redb keeps pages; reads do not come here.
const CACHE_BYTES: usize = 16 << 20;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is none, or another's.
    #[error("the key-value store {name}: {source}", name = .file.as_deref().map_or("in memory".into(), Path::to_string_lossy))]
    Database {
        /// The file, if there is one.
        file: Option<PathBuf>,
        /// Why not.
        source: redb::Error,
    },
    /// That is no Redis server.
    #[error("the key-value store is to be in Redis: {0}")]
    Redis(#[source] redis::RedisError),
    /// There is no thread that writes.
    #[error("cannot start the key-value store's thread: {0}")]
    Thread(#[source] io::Error),
}

impl From<redb::Error> for OpenError {
    fn from(source: redb::Error) -> OpenError {
        OpenError::Database { file: None, source }
    }
}

/// An open store.
#[derive(Debug)]
pub struct Embedded {
    tenants: Mutex<HashMap<Box<str>, Arc<Tenant>>>,
    writer: mpsc::Sender<Request>,
}

/// One tenant's entries.
#[derive(Debug)]
struct Tenant {
    name: Box<str>,
    index: RwLock<BTreeMap<BucketKey, Entry>>,
}

/// A tenant's share of the store.
#[derive(Clone, Debug)]
pub struct Space {
    tenant: Arc<Tenant>,
    writer: mpsc::Sender<Request>,
}

#[derive(Debug)]
struct Request {
    tenant: Arc<Tenant>,
    commit: Commit,
    answer: oneshot::Sender<Result<Outcome, KvError>>,
}

impl std::borrow::Borrow<[u8]> for BucketKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Embedded {
    /// Opens the store in that file, or makes it.
    ///
    /// # Errors
    /// When the file is none, is in use, or cannot be read.
    pub fn open(path: &Path, limits: KvLimits) -> Result<Embedded, OpenError> {
        let named = |source: redb::Error| OpenError::Database { file: Some(path.to_owned()), source };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| named(error.into()))?;
        let backend = FileBackend::new(file).map_err(|error| named(error.into()))?;
        Embedded::with_backend(backend, limits).map_err(|error| match error {
            OpenError::Database { file: None, source } => named(source),
            other => other,
        })
    }

    /// A store that is gone with this process.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn in_memory(limits: KvLimits) -> Result<Embedded, OpenError> {
        Embedded::with_backend(InMemoryBackend::new(), limits)
    }

    /// Opens the store in a file that is no ordinary one.
    ///
    /// # Errors
    /// As for [`Embedded::open`].
    pub fn with_backend(backend: impl StorageBackend, limits: KvLimits) -> Result<Embedded, OpenError> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend).map_err(redb::Error::from)?;
        let (tenants, version) = read(&database)?;
        let used = tenants.values().map(|tenant| (Arc::clone(tenant), used(tenant))).collect::<Vec<_>>();
        let total = used.iter().map(|(_, bytes)| bytes).sum();
        let used = used.into_iter().map(|(tenant, bytes)| (tenant.name.clone(), bytes)).collect();
        let (writer, requests) = mpsc::channel(QUEUE_MAX);
        let mut thread = Writer { database, limits, version, total, used };
        // The file is open: no privilege is needed any more.
        confine::thread("kv", move || thread.work(requests)).map_err(OpenError::Thread)?;
        Ok(Embedded { tenants: Mutex::new(tenants), writer })
    }

    /// A tenant's share.
    #[must_use]
    pub fn space(&self, tenant: &str) -> Space {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Tenant { name: tenant.into(), index: RwLock::default() });
        let tenant = Arc::clone(tenants.entry(tenant.into()).or_insert_with(new));
        Space { tenant, writer: self.writer.clone() }
    }
}

impl Space {
    /// Calls `with` with what there is under a key, which nobody changes meanwhile.
    ///
    /// # Errors
    /// When the key is too long.
    pub fn get<R>(&self, bucket: &BucketName, key: &[u8], with: impl FnOnce(Option<&Entry>) -> R) -> Result<R, KvError> {
        bucket.joined(key, |key| with(self.tenant.index.read().unwrap_or_else(PoisonError::into_inner).get(key)))
    }

    /// The same for several keys, between which nobody changes anything either.
    ///
    /// # Errors
    /// When the values are too large together: nobody else runs while they are copied.
    pub fn get_many(&self, keys: &[BucketKey]) -> Result<Vec<Option<Entry>>, KvError> {
        let index = self.tenant.index.read().unwrap_or_else(PoisonError::into_inner);
        let entries: Vec<Option<Entry>> = keys.iter().map(|key| index.get(key).cloned()).collect();
        let bytes = entries.iter().flatten().map(|entry| entry.value.len()).sum();
        if bytes > COMMIT_BYTES_MAX { Err(KvError::too_large_together(bytes)) } else { Ok(entries) }
    }

    /// The keys of a bucket that begin with `prefix` and come behind `after`, in order, as long as `take` takes them.
    ///
    /// # Errors
    /// When one of both is too long.
    pub fn keys(
        &self,
        bucket: &BucketName,
        prefix: &[u8],
        after: Option<&[u8]>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), KvError> {
        let prefix = bucket.key(prefix)?;
        let start = match after.map(|after| bucket.key(after)).transpose()? {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix.clone()),
        };
        let name_bytes = bucket.0.len() + 1;
        let index = self.tenant.index.read().unwrap_or_else(PoisonError::into_inner);
        for (key, _) in index.range((start, Bound::Unbounded)) {
            if !key.0.starts_with(&prefix.0) || !take(&key.0[name_bytes..]) {
                break;
            }
        }
        Ok(())
    }

    /// Makes a commit. Dropping the future does not take it back.
    ///
    /// # Errors
    /// When it is too large, there is no room, it adds to what is no number, or the store does not work.
    pub async fn commit(self, commit: Commit) -> Result<Outcome, KvError> {
        commit.check()?;
        let (answer, outcome) = oneshot::channel();
        let gone = || KvError::Unavailable("its thread has ended".to_owned());
        let request = Request { tenant: self.tenant, commit, answer };
        self.writer.send(request).await.map_err(|_| gone())?;
        outcome.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn cost(key: &BucketKey, value: &[u8]) -> u64 {
    (key.0.len() + value.len()) as u64 + ENTRY_OVERHEAD_BYTES
}

fn used(tenant: &Tenant) -> u64 {
    let index = tenant.index.read().unwrap_or_else(PoisonError::into_inner);
    index.iter().map(|(key, entry)| cost(key, &entry.value)).sum()
}

type Tenants = HashMap<Box<str>, Arc<Tenant>>;

/// All that a database holds, and the version of its last commit.
fn read(database: &Database) -> Result<(Tenants, u64), redb::Error> {
    let write = database.begin_write()?;
    // Both exist from here on.
    write.open_table(ENTRIES)?;
    write.open_table(VERSION)?;
    write.commit()?;
    let read = database.begin_read()?;
    let version = read.open_table(VERSION)?.get(())?.map_or(0, |version| version.value());
    let mut tenants: HashMap<Box<str>, BTreeMap<BucketKey, Entry>> = HashMap::new();
    for row in read.open_table(ENTRIES)?.iter()? {
        let (key, value) = row?;
        let ((tenant, key), (version, value)) = (key.value(), value.value());
        if !tenants.contains_key(tenant) {
            tenants.insert(tenant.into(), BTreeMap::new());
        }
        if let Some(index) = tenants.get_mut(tenant) {
            index.insert(BucketKey(key.into()), Entry { version, value: Bytes::copy_from_slice(value) });
        }
    }
    let shared = tenants.into_iter().map(|(name, index)| {
        let tenant = Tenant { name: name.clone(), index: RwLock::new(index) };
        (name, Arc::new(tenant))
    });
    Ok((shared.collect(), version))
}

/// The thread that writes.
struct Writer {
    database: Database,
    limits: KvLimits,
    /// Of the last commit.
    version: u64,
    /// Bytes of all tenants, and of each.
    total: u64,
    used: HashMap<Box<str>, u64>,
}

/// A commit that can be made: what each key that it changes becomes.
struct Planned {
    tenant: Arc<Tenant>,
    entries: BTreeMap<BucketKey, Option<Entry>>,
    outcome: Outcome,
}

/// What the commits of a group make of keys, before the index knows.
type Overlay = HashMap<Box<str>, HashMap<BucketKey, Option<Entry>>>;

impl Writer {
    fn work(&mut self, mut requests: mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
            let mut group = vec![first];
            while group.len() < GROUP_MAX
                && let Ok(next) = requests.try_recv()
            {
                group.push(next);
            }
            self.write(group);
        }
    }

    /// Makes a group of commits, and answers them.
    fn write(&mut self, group: Vec<Request>) {
        let before = (self.version, self.total, self.used.clone());
        let mut overlay = Overlay::new();
        let mut answers = Vec::with_capacity(group.len());
        let mut planned = Vec::with_capacity(group.len());
        for Request { tenant, commit, answer } in group {
            match self.plan(&tenant, commit, &mut overlay) {
                Ok(Ok(plan)) => {
                    answers.push((answer, Ok(plan.outcome)));
                    planned.push(plan);
                }
                Ok(Err(outcome)) => answers.push((answer, Ok(outcome))),
                Err(error) => answers.push((answer, Err(error))),
            }
        }
        if !planned.is_empty() {
            match self.log(&planned) {
                Ok(()) => planned.into_iter().for_each(apply),
                Err(error) => {
                    tracing::error!(%error, "the key-value store cannot be written to");
                    (self.version, self.total, self.used) = before;
                    // Those that conflicted did so with commits that never were.
                    answers.iter_mut().for_each(|(_, result)| *result = Err(KvError::Unavailable(error.to_string())));
                }
            }
        }
        // Whose guest is gone needs no answer.
        answers.into_iter().for_each(|(answer, result)| drop(answer.send(result)));
    }

    /// What a commit comes to: changes, or a conflict.
    fn plan(&mut self, tenant: &Arc<Tenant>, commit: Commit, overlay: &mut Overlay) -> Result<Result<Planned, Outcome>, KvError> {
        let index = tenant.index.read().unwrap_or_else(PoisonError::into_inner);
        let group = overlay.entry(tenant.name.clone()).or_default();
        let find = |key: &BucketKey| group.get(key).map_or_else(|| index.get(key), |entry| entry.as_ref());
        for (key, expected) in &commit.expected {
            let version = find(key).map_or(0, |entry| entry.version);
            if version != *expected {
                return Ok(Err(Outcome::Conflict { version }));
            }
        }
        let version = self.version + 1;
        let mut total_sum = 0;
        let mut entries: BTreeMap<BucketKey, Option<Entry>> = BTreeMap::new();
        for (key, change) in commit.changes {
            let value = match change {
                Change::Put(value) => Some(value),
                Change::Delete => None,
                Change::Add(delta) => {
                    let before = entries.get(&key).map_or_else(|| find(&key), |entry| entry.as_ref());
                    total_sum = sum(before.map(|entry| &*entry.value), delta)?;
                    Some(Bytes::from(total_sum.to_string()))
                }
            };
            entries.insert(key, value.map(|value| Entry { version, value }));
        }
        let size = |key: &BucketKey, entry: Option<&Entry>| entry.map_or(0, |entry| cost(key, &entry.value));
        let freed: u64 = entries.keys().map(|key| size(key, find(key))).sum();
        let taken: u64 = entries.iter().map(|(key, entry)| size(key, entry.as_ref())).sum();
        let used = self.used.get(&tenant.name).copied().unwrap_or(0);
        let (tenant_after, total_after) = (used + taken - freed.min(used), self.total + taken - freed.min(self.total));
        let KvLimits { bytes_max, tenant_bytes_max } = self.limits;
        // Whatever makes it smaller is always possible.
        if taken > freed && tenant_after > tenant_bytes_max {
            return Err(KvError::Full { key: "kv_tenant_bytes_max", bytes_max: tenant_bytes_max });
        }
        if taken > freed && total_after > bytes_max {
            return Err(KvError::Full { key: "kv_bytes_max", bytes_max });
        }
        self.used.insert(tenant.name.clone(), tenant_after);
        (self.total, self.version) = (total_after, version);
        group.extend(entries.iter().map(|(key, entry)| (key.clone(), entry.clone())));
        let outcome = Outcome::Committed { version, sum: total_sum };
        Ok(Ok(Planned { tenant: Arc::clone(tenant), entries, outcome }))
    }

    /// Writes commits to the file, for good.
    fn log(&self, planned: &[Planned]) -> Result<(), redb::Error> {
        let mut write = self.database.begin_write()?;
        write.set_durability(Durability::Immediate)?;
        {
            let mut table = write.open_table(ENTRIES)?;
            for Planned { tenant, entries, .. } in planned {
                for (key, entry) in entries {
                    let key = (&*tenant.name, &*key.0);
                    match entry {
                        Some(Entry { version, value }) => table.insert(key, (*version, &**value))?,
                        None => table.remove(key)?,
                    };
                }
            }
            write.open_table(VERSION)?.insert((), self.version)?;
        }
        write.commit()?;
        Ok(())
    }
}

/// Lets readers see a commit.
fn apply(planned: Planned) {
    let Planned { tenant, entries, .. } = planned;
    let mut index = tenant.index.write().unwrap_or_else(PoisonError::into_inner);
    for (key, entry) in entries {
        match entry {
            Some(entry) => drop(index.insert(key, entry)),
            None => drop(index.remove(&key)),
        }
    }
}

#[cfg(test)]
mod tests;
