//! The store in a Redis server, which several servers may share.
//!
//! Each worker has one connection of its own, in its own runtime, over which the requests of all its guests are pipelined; it is made when it is
//! first needed, and anew when it broke. What was under way then fails, and the guest learns that: a commit may have been made or not.
//!
//! Per tenant, in one slot of a cluster (`{sledge:TENANT}`): a hash with all values, each with its version before it; a sorted set of the keys, for
//! their order; the last version; the bytes used. A commit is one script ([`commits`]), and as durable as the server is configured to be.
//!
//! What the servers themselves keep is beside that ([`shares`]): `records` reads it, [`lease`] says which server writes it, and through [`post`] the others ask that one.

mod blocking;
mod clock;
mod commits;
pub mod lease;
mod merged;
pub mod post;
pub mod records;
mod reopen;
mod shares;
#[cfg(test)]
pub(crate) mod tests;

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::Either;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{Client, Cmd, ConnectionAddr, ErrorKind, IntoConnectionInfo, RedisError, Script, TlsCertificates};
use tokio_rustls::rustls::crypto::ring;

use self::blocking::Connections;
use self::clock::Clock;
pub use self::lease::{Fence, Lease, Taken};
use self::merged::{Merges, Merging};
pub use self::post::Post;
pub use self::records::Records;
use self::shares::Keys;
use super::joined::{JoinCounts, Joined, Tenants};
use super::{BucketKey, BucketName, COMMIT_BYTES_MAX, COMMIT_KEYS_MAX, Commits, Entry, KvError, KvLimits};

/// How long an answer may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it may take to connect, each time.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// How often that is tried for one request, and how long apart at most.
const CONNECT_TRIES: usize = 3;
const CONNECT_DELAY_MAX: Duration = Duration::from_millis(200);

static KEYS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("keys.lua")));
static GET_MANY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("get_many.lua")));

thread_local! {
    /// This thread's connections, one for each server that it uses.
    static CONNECTIONS: RefCell<Vec<(Arc<Client>, ConnectionManager)>> = const { RefCell::new(Vec::new()) };
}

/// A Redis server.
#[derive(Clone, Debug)]
pub struct Redis {
    client: Arc<Client>,
    limits: KvLimits,
    commits: Arc<Commits>,
    /// For what waits on its thread.
    blocking: Connections,
    clock: Clock,
    /// Reads that may be joined, where nothing else writes to the server.
    joins: Option<Arc<Tenants>>,
    /// Reads and plain writes that are sent together, where they wait for that.
    merges: Option<Arc<Merges>>,
}

/// A tenant's share of it.
#[derive(Clone, Debug)]
pub struct Space {
    redis: Redis,
    keys: Arc<Keys>,
    joined: Option<Arc<Joined>>,
    merging: Option<Arc<Merging>>,
}

/// How reads of single keys were answered, and commits sent, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Where they are joined.
    pub joins: JoinCounts,
    /// Sent to the store together with others.
    pub merged: u64,
    /// Commits that were sent together with others.
    pub merged_commits: u64,
}

impl From<RedisError> for KvError {
    fn from(error: RedisError) -> KvError {
        if error.code() == Some("TOOLARGE") {
            return KvError::too_large_together(error.detail().and_then(|detail| detail.parse().ok()).unwrap_or(usize::MAX));
        }
        tracing::warn!(%error, "the key-value store");
        KvError::Unavailable(error.to_string())
    }
}

impl Redis {
    /// The server at that URL, which is not asked for anything yet. Over TLS its certificate has to lead to one of these authorities, in PEM.
    ///
    /// # Errors
    /// When that is no URL of a Redis server.
    pub fn new(url: &str, limits: KvLimits, authorities: impl FnOnce() -> String) -> Result<Redis, RedisError> {
        // What is asked while others wait for their answers is not to wait for these.
        let tcp = TcpSettings::default().set_nodelay(true);
        let server = url.into_connection_info()?.set_tcp_settings(tcp);
        let client = match server.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                const WHY: &str =
                    "certificates are always checked: leave `#insecure` out, and name the server's authority in `http_ca_file`";
                return Err((ErrorKind::InvalidClientConfig, WHY).into());
            }
            ConnectionAddr::TcpTls { .. } => {
                // The client asks for what the process has chosen. An error means that something is chosen already.
                let _ = ring::default_provider().install_default();
                Client::build_with_tls(server, TlsCertificates { client_tls: None, root_cert: Some(authorities().into()) })?
            }
            _ => Client::open(server)?,
        };
        let client = Arc::new(client);
        let blocking = Connections::new(&client);
        Ok(Redis { client, limits, commits: Arc::default(), blocking, clock: Clock::default(), joins: None, merges: None })
    }

    /// The same as the store of this process alone: reads are joined.
    #[must_use]
    pub fn exclusive(self) -> Redis {
        Redis { joins: Some(Arc::default()), ..self }
    }

    /// The same where reads, and writes that expect nothing, wait so long, under load, to be sent together; not at all, if that is no time.
    #[must_use]
    pub fn merging(self, wait: Duration) -> Redis {
        Redis { merges: (!wait.is_zero()).then(|| Arc::new(Merges::new(wait))), ..self }
    }

    /// How reads were answered, where they are joined or merged.
    #[must_use]
    pub fn read_counts(&self) -> Option<ReadCounts> {
        if self.joins.is_none() && self.merges.is_none() {
            return None;
        }
        let joins = self.joins.as_ref().map(|joins| joins.counts()).unwrap_or_default();
        let [merged, merged_commits] = self.merges.as_ref().map_or([0; 2], |merges| merges.merged());
        Some(ReadCounts { joins, merged, merged_commits })
    }

    /// A tenant's share.
    #[must_use]
    pub fn space(&self, tenant: &str) -> Space {
        let joined = self.joins.as_ref().map(|joins| joins.of(tenant));
        let merging = self.merges.as_ref().map(|merges| merges.of(tenant));
        Space { redis: self.clone(), keys: Arc::new(Keys::of(tenant)), joined, merging }
    }

    /// What became of commits.
    #[must_use]
    pub fn commits(&self) -> &Commits {
        &self.commits
    }

    /// This thread's connection.
    fn connection(&self) -> Result<ConnectionManager, RedisError> {
        CONNECTIONS.with_borrow_mut(|connections| {
            if let Some((_, connection)) = connections.iter().find(|(client, _)| Arc::ptr_eq(client, &self.client)) {
                return Ok(connection.clone());
            }
            let config = ConnectionManagerConfig::new()
                .set_response_timeout(Some(ANSWER_TIME_MAX))
                .set_connection_timeout(Some(CONNECT_TIME_MAX))
                .set_number_of_retries(CONNECT_TRIES)
                .set_max_delay(CONNECT_DELAY_MAX);
            let connection = ConnectionManager::new_lazy_with_config(Client::clone(&self.client), config)?;
            connections.push((Arc::clone(&self.client), connection.clone()));
            Ok(connection)
        })
    }
}

impl Space {
    pub(super) fn commits(&self) -> &Commits {
        &self.redis.commits
    }

    /// What there is under a key.
    ///
    /// # Errors
    /// When the key is too long. The future's: when the server cannot be asked.
    pub fn get(
        &self,
        bucket: &BucketName,
        key: &[u8],
    ) -> Result<impl Future<Output = Result<Option<Entry>, KvError>> + use<>, KvError> {
        if self.joined.is_none() && self.merging.is_none() {
            let mut command = Cmd::new();
            bucket.joined(key, |key| command.arg("HGET").arg(&self.keys.values).arg(key))?;
            return Ok(Either::Left(self.ask(command)));
        }
        Ok(Either::Right(self.get_shared(&bucket.key(key)?)))
    }

    /// The same, by a read that is under way if there is one; or sent together with others.
    fn get_shared(&self, key: &BucketKey) -> impl Future<Output = Result<Option<Entry>, KvError>> + use<> {
        match &self.joined {
            Some(joined) => Either::Left(joined.read(key, || self.get_merged(key))),
            None => Either::Right(self.get_merged(key)),
        }
    }

    fn get_merged(&self, key: &BucketKey) -> impl Future<Output = Result<Option<Entry>, KvError>> + use<> {
        let Some(merging) = &self.merging else {
            let mut command = Cmd::new();
            command.arg("HGET").arg(&self.keys.values).arg(&*key.0);
            return Either::Left(self.ask(command));
        };
        let space = self.clone();
        Either::Right(Arc::clone(&merging.reads).ask(key.clone(), |keys| space.ask_several(keys)))
    }

    /// What the server answers to a command that reads one entry.
    fn ask(&self, command: Cmd) -> impl Future<Output = Result<Option<Entry>, KvError>> + use<> {
        let redis = self.redis.clone();
        async move {
            let stored: Option<Bytes> = command.query_async(&mut redis.connection()?).await?;
            stored.map(entry).transpose()
        }
    }

    /// The same for a few entries, together as large as they are.
    async fn ask_several(self, keys: Vec<BucketKey>) -> Result<Vec<Option<Entry>>, KvError> {
        let mut command = Cmd::new();
        command.arg("HMGET").arg(&self.keys.values);
        keys.iter().for_each(|key| {
            command.arg(&*key.0);
        });
        let stored: Vec<Option<Bytes>> = command.query_async(&mut self.redis.connection()?).await?;
        stored.into_iter().map(|stored| stored.map(entry).transpose()).collect()
    }

    /// The same for several keys at the same moment.
    ///
    /// # Errors
    /// When the server cannot be asked, or the values are too large together.
    pub async fn get_many(self, keys: Vec<BucketKey>) -> Result<Vec<Option<Entry>>, KvError> {
        // Of several keys that are read at one moment, none can be of another read.
        if let [key] = &*keys
            && (self.joined.is_some() || self.merging.is_some())
        {
            return Ok(vec![self.get_shared(key).await?]);
        }
        let mut script = GET_MANY.prepare_invoke();
        script.key(&self.keys.values).arg(COMMIT_BYTES_MAX);
        keys.iter().for_each(|key| {
            script.arg(&*key.0);
        });
        let stored: Vec<Option<Bytes>> = script.invoke_async(&mut self.redis.connection()?).await?;
        stored.into_iter().map(|stored| stored.map(entry).transpose()).collect()
    }

    /// The keys of a bucket that begin with `prefix` and come behind `after`, in order, at most [`COMMIT_KEYS_MAX`] and one; and the version of the bucket's set of keys.
    ///
    /// # Errors
    /// When one of both is too long, or the server cannot be asked.
    pub async fn keys(
        self,
        bucket: BucketName,
        prefix: BucketKey,
        after: Option<BucketKey>,
    ) -> Result<(Vec<Bytes>, u64), KvError> {
        let bound = |mark: u8, key: &[u8]| [&[mark][..], key].concat();
        let min = match &after {
            Some(after) if *after >= prefix => bound(b'(', &after.0),
            _ => bound(b'[', &prefix.0),
        };
        // The first string behind all that begin with the prefix. It begins with a bucket's name, which is not empty.
        let mut max = prefix.0.to_vec();
        while max.pop_if(|last| *last == u8::MAX).is_some() {}
        let max = match max.last_mut() {
            Some(last) => {
                *last += 1;
                bound(b'(', &max)
            }
            None => b"+".to_vec(),
        };
        let mut script = KEYS.prepare_invoke();
        script.key(&self.keys.order).key(&self.keys.buckets).arg(&*bucket.0).arg(min).arg(max).arg(COMMIT_KEYS_MAX + 1);
        let (version, keys): (u64, Vec<Bytes>) = script.invoke_async(&mut self.redis.connection()?).await?;
        let keys = keys.into_iter().filter(|key| key.len() > bucket.0.len()).map(|key| key.slice(bucket.0.len() + 1..));
        Ok((keys.collect(), version))
    }
}

/// From `VERSION:VALUE`.
fn entry(stored: Bytes) -> Result<Entry, KvError> {
    let colon = stored.iter().position(|&byte| byte == b':').ok_or_else(not_ours)?;
    let version = std::str::from_utf8(&stored[..colon]).ok().and_then(|text| text.parse().ok()).ok_or_else(not_ours)?;
    Ok(Entry { version, value: stored.slice(colon + 1..) })
}

fn not_ours() -> KvError {
    KvError::Unavailable("what stands in Redis is not what was written".to_owned())
}
