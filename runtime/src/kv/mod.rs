//! The key-value store of functions: values with versions, in the buckets of each tenant, and one primitive that changes them.
//!
//! ```text
//!   host::kv -> Space -> embedded: index (reads) | writer -> log, then index; log -> redb (the tree)
//!                    -> redis: a connection for each worker
//! ```
//!
//! * A *version* is a number that each commit of a tenant gets, larger than all before; a key has the one of the commit that wrote it last. Zero stands for
//!   a key that does not exist. A commit that changes nothing gets none: it has that of the tenant's last one.
//! * A *commit* ([`Commit`]) happens as a whole or not at all, and only if the keys that it names still have the versions that it expects.
//!   Everything that writes is a commit.
//! * What is acknowledged is durable, and what is read is durable too (in Redis, as it is configured).
//!
//! Knows neither guests nor HTTP.

pub mod count;
pub mod embedded;
mod joined;
pub mod outbox;
pub mod record;
pub mod records;
pub mod redis;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::health::Health;

pub use self::redis::{Fence, Lease, Post, ReadCounts, Redis, Taken};
pub use count::Commits;
pub use embedded::{Embedded, OpenError, Order};
pub use joined::JoinCounts;
pub use record::Record;
pub use records::Records;

/// What stands in place of a path where entries are to be kept in memory only.
pub const KV_MEMORY: &str = "memory";
/// The longest key.
pub const KEY_BYTES_MAX: usize = 1 << 10;
/// The largest value.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// The longest name of a bucket.
pub const BUCKET_BYTES_MAX: usize = 64;
/// Keys that one commit names, expected and changed ones together.
pub const COMMIT_KEYS_MAX: usize = 1_024;
/// Bytes of keys and values of one commit.
pub const COMMIT_BYTES_MAX: usize = 4 << 20;
/// For how long a store knows a commit by its id.
pub const COMMIT_KNOWN: Duration = Duration::from_secs(60);
/// Buckets of a tenant of which it is known when their sets of keys have changed. Functions may use ever other names.
pub const BUCKETS_MAX: usize = 4_096;
/// What an entry costs beside its key and its value.
pub const ENTRY_OVERHEAD_BYTES: u64 = 128;

/// What there is under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// That of the commit that wrote it.
    pub version: u64,
    /// What it wrote.
    pub value: Bytes,
}

/// What is done to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets a value.
    Put(Bytes),
    /// It is no more.
    Delete,
    /// Its value, a decimal number, or zero where there is none, becomes larger by this.
    Add(i64),
}

/// Changes that are made together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Keys, and the version that each has to have.
    pub expected: Vec<(BucketKey, u64)>,
    /// Buckets whose keys were listed, and the version that the set of keys of each has to have.
    pub listed: Vec<(BucketName, u64)>,
    /// Keys, and what is done to each, one after the other.
    pub changes: Vec<(BucketKey, Change)>,
    /// By what the commit is known, so that it is made once where it has to be sent twice; none where its caller takes that upon itself.
    pub id: Option<CommitId>,
    /// What the server itself writes with it. It has limits of its own.
    pub records: Vec<Record>,
    /// In Redis: the commit is made only while this lease is held. Records are written only with one. The embedded store needs none: it belongs to one process.
    pub fence: Option<Fence>,
}

/// What tells a commit from all others. The store remembers it for [`COMMIT_KNOWN`] after it was made.
pub type CommitId = [u8; 16];

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was made, and will stay.
    Committed {
        /// The version of all that it wrote; of the tenant's last commit, if it wrote nothing.
        version: u64,
        /// What the last [`Change::Add`] came to.
        sum: i64,
    },
    /// A key, or the set of keys of a bucket, does not have the version that was expected of it: nothing was changed.
    Conflict {
        /// The version that the first such key has.
        version: u64,
        /// The place of that in [`Commit::expected`]; buckets come behind, in the order of [`Commit::listed`].
        index: usize,
    },
}

/// Why the store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// Something is larger than it may be.
    #[error("{what} of {bytes} bytes, of which there may be {bytes_max}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        bytes_max: usize,
    },
    /// A component's string is longer than it may be. Its length is not said: components count it in units of their encoding.
    #[error("{what} of more than {bytes_max} bytes")]
    TooLong {
        /// What.
        what: &'static str,
        /// How long it may be, in UTF-8.
        bytes_max: usize,
    },
    /// More keys are named than may be.
    #[error("{keys} keys together, of which there may be {keys_max}")]
    TooMany {
        /// How many are named.
        keys: usize,
        /// How many may be.
        keys_max: usize,
    },
    /// There is no room: `kv_tenant_bytes_max` or `kv_bytes_max`.
    #[error("there is no room in the store ({key} = {bytes_max})")]
    Full {
        /// The limit's name in the configuration.
        key: &'static str,
        /// The limit.
        bytes_max: u64,
    },
    /// What was to be added to is no number.
    #[error("the value is no decimal number of 64 bits")]
    NotANumber,
    /// The sum is no number of 64 bits.
    #[error("the sum does not fit in 64 bits")]
    Overflow,
    /// The store does not work.
    #[error("the store does not work: {0}")]
    Unavailable(String),
    /// The store did not answer: a commit may have been made or not.
    #[error("it is not known whether the store has made the commit: {0}")]
    Unknown(String),
    /// The server does not hold the lease any more under which the commit was to be made: it was not made.
    #[error("the lease is over under which the commit was to be made")]
    Fenced,
}

impl KvError {
    /// What it is, for machines.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            KvError::TooLarge { .. } | KvError::TooLong { .. } => "too_large",
            KvError::TooMany { .. } => "too_many_keys",
            KvError::Full { key, .. } => key,
            KvError::NotANumber => "not_a_number",
            KvError::Overflow => "overflow",
            KvError::Unavailable(_) => "kv_unavailable",
            KvError::Unknown(_) => "unknown",
            KvError::Fenced => "fenced",
        }
    }

    fn too_large_together(bytes: usize) -> KvError {
        KvError::TooLarge { what: "values asked for together,", bytes, bytes_max: COMMIT_BYTES_MAX }
    }
}

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLimits {
    /// Of all tenants, keys, values and [`ENTRY_OVERHEAD_BYTES`] for each.
    pub bytes_max: u64,
    /// The same of one tenant.
    pub tenant_bytes_max: u64,
}

impl Default for KvLimits {
    fn default() -> KvLimits {
        KvLimits { bytes_max: 256 << 20, tenant_bytes_max: 64 << 20 }
    }
}

/// What requests to a store in Redis share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvSharing {
    /// This process alone writes to it: reads that are under way are [joined](joined).
    pub is_exclusive: bool,
    /// How long reads and plain writes wait, under load, to be sent together.
    pub merge: Duration,
}

/// A store.
#[derive(Debug)]
pub enum Store {
    /// In this process.
    Embedded(Embedded),
    /// In a Redis server.
    Redis(Redis),
}

/// A tenant's share of a store.
#[derive(Clone, Debug)]
pub enum Space {
    /// In this process: reads wait for nothing.
    Embedded(embedded::Space),
    /// In a Redis server: everything waits.
    Redis(redis::Space),
}

impl Store {
    /// Opens the store that a configuration names. A file that cannot be opened is tried again, and `health` says what is wrong with it. `authorities` says, in PEM, to which the
    /// certificate of a server over TLS may lead.
    ///
    /// # Errors
    /// When there is no thread to be had, or that is no URL of a Redis server.
    pub fn open(
        kv: &Path,
        limits: KvLimits,
        health: &Arc<Health>,
        authorities: impl FnOnce() -> String,
    ) -> Result<Store, OpenError> {
        if is_redis(kv) {
            return Redis::new(&kv.to_string_lossy(), limits, authorities).map(Store::Redis).map_err(OpenError::Redis);
        }
        let embedded = if kv == Path::new(KV_MEMORY) { Embedded::in_memory(limits) } else { Embedded::open(kv, limits, health) };
        embedded.map(Store::Embedded)
    }

    /// The same, whose readers in Redis share what they ask for as is said there. The embedded store has nothing to share.
    #[must_use]
    pub fn sharing(self, sharing: KvSharing) -> Store {
        match self {
            Store::Redis(store) => {
                let store = if sharing.is_exclusive { store.exclusive() } else { store };
                Store::Redis(store.merging(sharing.merge))
            }
            store @ Store::Embedded(_) => store,
        }
    }

    /// What the server itself keeps in it.
    #[must_use]
    pub fn records(&self) -> Records {
        match self {
            Store::Embedded(store) => Records::Embedded(store.records()),
            Store::Redis(store) => Records::Redis(store.records()),
        }
    }

    /// The Redis server that holds it, if one does: other servers may use it, too.
    #[must_use]
    pub const fn shared(&self) -> Option<&Redis> {
        match self {
            Store::Embedded(_) => None,
            Store::Redis(store) => Some(store),
        }
    }

    /// A tenant's share.
    #[must_use]
    pub fn space(&self, tenant: &str) -> Space {
        match self {
            Store::Embedded(store) => Space::Embedded(store.space(tenant)),
            Store::Redis(store) => Space::Redis(store.space(tenant)),
        }
    }

    /// If there is something wrong with it, sees now whether there still is.
    pub fn retry(&self) {
        if let Store::Embedded(store) = self {
            store.retry();
        }
    }

    /// Closes it in good order when nothing more is to come.
    pub fn close(&self) {
        if let Store::Embedded(store) = self {
            store.close();
        }
    }

    /// What became of commits.
    #[must_use]
    pub fn commits(&self) -> &Commits {
        match self {
            Store::Embedded(store) => store.commits(),
            Store::Redis(store) => store.commits(),
        }
    }
}

/// The file that holds a store, if a file does.
#[must_use]
pub fn file(kv: Option<&Path>) -> Option<&Path> {
    kv.filter(|kv| *kv != Path::new(KV_MEMORY) && !is_redis(kv))
}

/// Whether that is no file but the URL of a Redis server.
#[must_use]
pub fn is_redis(kv: &Path) -> bool {
    const SCHEMES: [&str; 4] = ["redis://", "rediss://", "redis+unix://", "unix://"];
    kv.to_str().is_some_and(|kv| SCHEMES.iter().any(|scheme| kv.starts_with(scheme)))
}

impl Space {
    /// Makes a commit. Dropping the future does not take it back.
    ///
    /// # Errors
    /// When it is too large, there is no room, it adds to what is no number, its lease is over, or the store does not work.
    pub async fn commit(self, commit: Commit) -> Result<Outcome, KvError> {
        let space = self.clone();
        let counted = match &space {
            Space::Embedded(space) => space.commits().begin(),
            Space::Redis(space) => space.commits().begin(),
        };
        let result = match self {
            Space::Embedded(space) => space.commit(commit).await,
            Space::Redis(space) => space.commit(commit).await,
        };
        counted.ended(&result);
        result
    }

    /// What there is under a key.
    ///
    /// # Errors
    /// When the store does not work, or nothing could be read yet.
    pub async fn read(&self, bucket: &BucketName, key: BucketKey) -> Result<Option<Entry>, KvError> {
        match self {
            Space::Embedded(space) => space.get(bucket, key.key(), |entry| entry.cloned()),
            Space::Redis(space) => space.get(bucket, key.key())?.await,
        }
    }

    /// Whether there is a store behind it: not while its file has never been opened.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            Space::Embedded(space) => space.is_open(),
            Space::Redis(_) => true,
        }
    }
}

/// A bucket's name and a key in it, as one string of bytes in the order of both.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketKey(Box<[u8]>);

/// The most bytes of such a string: a name, the zero behind it, a key.
const BUCKET_KEY_BYTES_MAX: usize = BUCKET_BYTES_MAX + 1 + KEY_BYTES_MAX;

/// A name of a bucket that is one: 1 to [`BUCKET_BYTES_MAX`] bytes without zeros.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketName(Box<[u8]>);

impl BucketName {
    /// That name, if it is one that functions can use.
    #[must_use]
    pub fn new(name: &[u8]) -> Option<BucketName> {
        BucketName::stored(name).filter(|_| name != outbox::BUCKET)
    }

    /// That name, if a bucket in a store can have it: also one of the server's own.
    #[must_use]
    pub fn stored(name: &[u8]) -> Option<BucketName> {
        let good = (1..=BUCKET_BYTES_MAX).contains(&name.len()) && !name.contains(&0);
        good.then(|| BucketName(name.into()))
    }

    /// Calls `with` with a key of this bucket, made without allocating.
    ///
    /// # Errors
    /// When the key is too long.
    fn joined<R>(&self, key: &[u8], with: impl FnOnce(&[u8]) -> R) -> Result<R, KvError> {
        check_key(key)?;
        let mut joined = [0; BUCKET_KEY_BYTES_MAX];
        let start = self.0.len() + 1;
        joined[..self.0.len()].copy_from_slice(&self.0);
        joined[start..start + key.len()].copy_from_slice(key);
        Ok(with(&joined[..start + key.len()]))
    }

    /// Bytes of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The bytes themselves.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.0
    }

    /// A key of this bucket.
    ///
    /// # Errors
    /// When the key is too long.
    pub fn key(&self, key: &[u8]) -> Result<BucketKey, KvError> {
        check_key(key)?;
        let mut joined = Vec::with_capacity(self.0.len() + 1 + key.len());
        joined.extend_from_slice(&self.0);
        joined.push(0);
        joined.extend_from_slice(key);
        Ok(BucketKey(joined.into()))
    }
}

/// Whether it is not too long.
const fn check_key(key: &[u8]) -> Result<(), KvError> {
    if key.len() > KEY_BYTES_MAX {
        return Err(KvError::TooLarge { what: "a key", bytes: key.len(), bytes_max: KEY_BYTES_MAX });
    }
    Ok(())
}

impl BucketKey {
    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &[u8] {
        // Behind a bucket's name, which has no zeros, there is one.
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The key in its bucket.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.0.get(self.bucket().len() + 1..).unwrap_or_default()
    }

    /// Bytes of both.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Tells keys apart, as well as 128 bits can: for what a mistake costs nothing but time.
    #[must_use]
    pub fn hash128(&self) -> u128 {
        xxhash_rust::xxh3::xxh3_128(&self.0)
    }
}

impl fmt::Debug for BucketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl Change {
    fn bytes(&self) -> usize {
        if let Change::Put(value) = self { value.len() } else { 0 }
    }
}

impl Commit {
    /// One that expects these versions, and makes these changes.
    #[must_use]
    pub const fn new(expected: Vec<(BucketKey, u64)>, changes: Vec<(BucketKey, Change)>) -> Commit {
        Commit { expected, listed: Vec::new(), changes, id: None, records: Vec::new(), fence: None }
    }

    /// Bytes of its keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let expected: usize = self.expected.iter().map(|(key, _)| key.0.len()).sum();
        let listed: usize = self.listed.iter().map(|(bucket, _)| bucket.0.len()).sum();
        expected + listed + self.changes.iter().map(|(key, change)| key.0.len() + change.bytes()).sum::<usize>()
    }

    /// Whether it is within the limits on its size.
    ///
    /// # Errors
    /// Which limit it exceeds.
    pub fn check(&self) -> Result<(), KvError> {
        let keys = self.expected.len() + self.listed.len() + self.changes.len();
        if keys > COMMIT_KEYS_MAX {
            return Err(KvError::TooMany { keys, keys_max: COMMIT_KEYS_MAX });
        }
        let large = self.changes.iter().map(|(_, change)| change.bytes()).find(|bytes| *bytes > VALUE_BYTES_MAX);
        if let Some(bytes) = large {
            return Err(KvError::TooLarge { what: "a value", bytes, bytes_max: VALUE_BYTES_MAX });
        }
        let total = self.bytes();
        if total > COMMIT_BYTES_MAX {
            return Err(KvError::TooLarge { what: "a commit", bytes: total, bytes_max: COMMIT_BYTES_MAX });
        }
        record::check(&self.records)
    }

    /// Whether it changes nothing: its outcome says whether what it expects is there.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.changes.is_empty() && self.records.is_empty()
    }
}

/// What a sum of a value and a number is. A value is a number if it is written as a sum would be, as for Redis: `+5` and `05` are none.
///
/// # Errors
/// When the value is no number, or the sum none of 64 bits.
pub fn sum(value: Option<&[u8]>, delta: i64) -> Result<i64, KvError> {
    let parsed =
        |value| std::str::from_utf8(value).ok()?.parse::<i64>().ok().filter(|number| number.to_string().as_bytes() == value);
    let number = value.map_or(Some(0), parsed).ok_or(KvError::NotANumber)?;
    number.checked_add(delta).ok_or(KvError::Overflow)
}
