//! The lease of the server that owns the records: of all servers that share a Redis server, one at a time writes them.
//!
//! A lease is a key with the owner's token that Redis itself removes when it was not renewed in time. The owner's clock has no say in whether a commit is made: each commit with records names the
//! token, and its script is refused when the key does not hold that one at this moment. So an owner that was stopped for as long as it may be and goes on then can write nothing, also when it
//! does not know yet that its lease is over.
//!
//! Tokens are random and used once. (Numbers that rise would have to be kept, and come again after a failover that has lost the last of them.)
//!
//! Redis may lose commits that it has acknowledged: in a failover, or in a crash with `appendfsync everysec`. What the owner has in memory is then ahead of the records. So Redis counts the commits
//! with records, the owner keeps the largest count that it was told, and a commit is refused too when Redis has counted less than that. The owner begins anew then, with what Redis has. So is a renewal:
//! an owner whose executions only wait commits nothing for a long time, and what Redis has may say that they do something now.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::Script;

use super::Redis;
use super::shares::Shares;
use crate::kv::KvError;

/// How long it is waited for a lease that lasts longer than anything gives one, or for ever.
const OTHERS_TIME_MAX: Duration = Duration::from_secs(60);

static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local owner = redis.call('GET', KEYS[1])
         if owner and owner ~= ARGV[1] then return { 0, redis.call('PTTL', KEYS[1]) } end
         redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
         return { 1, tonumber(redis.call('GET', KEYS[2]) or '0') }",
    )
});
static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         if tonumber(redis.call('GET', KEYS[2]) or '0') < tonumber(ARGV[3]) then return 0 end
         return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
    )
});
static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         return redis.call('DEL', KEYS[1])",
    )
});

/// What tells an owner's commits from those of all others, before it and after it.
#[derive(Clone)]
pub struct Fence(Arc<Held>);

struct Held {
    token: String,
    /// The largest count of commits that Redis has told.
    seen: AtomicU64,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fence").field(&self.0.token).finish()
    }
}

impl PartialEq for Fence {
    fn eq(&self, other: &Fence) -> bool {
        self.0.token == other.0.token
    }
}

impl Eq for Fence {}

impl Default for Fence {
    fn default() -> Fence {
        Fence::new()
    }
}

impl Fence {
    /// One that no other server has, and that holds nothing yet.
    #[must_use]
    pub fn new() -> Fence {
        Fence(Arc::new(Held { token: format!("{:032x}", fastrand::u128(..)), seen: AtomicU64::new(0) }))
    }

    pub(super) fn token(&self) -> &str {
        &self.0.token
    }

    pub(super) fn seen(&self) -> u64 {
        // Relaxed: a number that orders nothing else. It is that of answers which the thread that commits has received before.
        self.0.seen.load(Ordering::Relaxed)
    }

    pub(super) fn saw(&self, sequence: u64) {
        self.0.seen.fetch_max(sequence, Ordering::Relaxed);
    }
}

/// What became of the wish for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is held.
    Ours,
    /// Another server holds it, for so long if it does not renew it.
    Others(Duration),
}

/// The lease of a store's records.
#[derive(Clone, Debug)]
pub struct Lease {
    redis: Redis,
    time: Duration,
}

impl Redis {
    /// The lease of the records, which lasts so long each time it is taken or renewed.
    #[must_use]
    pub fn lease(&self, time: Duration) -> Lease {
        Lease { redis: self.clone(), time }
    }
}

impl Lease {
    /// How long it lasts.
    #[must_use]
    pub const fn time(&self) -> Duration {
        self.time
    }

    /// Where it is.
    #[must_use]
    pub const fn redis(&self) -> &Redis {
        &self.redis
    }

    /// Takes it, unless another server holds it.
    ///
    /// # Errors
    /// When Redis cannot be asked: it may be held then, until its time is over or it is taken with the same fence.
    pub async fn take(&self, fence: &Fence) -> Result<Taken, KvError> {
        let mut script = TAKE.key(Shares::OWNER);
        script.key(Shares::SEQUENCE).arg(fence.token()).arg(self.time_ms());
        let (is_ours, number): (bool, i64) = script.invoke_async(&mut self.redis.connection()?).await?;
        if is_ours {
            fence.saw(u64::try_from(number).unwrap_or(0));
            return Ok(Taken::Ours);
        }
        Ok(Taken::Others(u64::try_from(number).map_or(OTHERS_TIME_MAX, Duration::from_millis).min(OTHERS_TIME_MAX)))
    }

    /// Makes it last as long as at the beginning; whether it was still held, and Redis has all commits that it has acknowledged under it.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn renew(&self, fence: &Fence) -> Result<bool, KvError> {
        let mut script = RENEW.key(Shares::OWNER);
        script.key(Shares::SEQUENCE).arg(fence.token()).arg(self.time_ms()).arg(fence.seen());
        Ok(script.invoke_async(&mut self.redis.connection()?).await?)
    }

    /// Gives it back, if it is held.
    ///
    /// # Errors
    /// When Redis cannot be asked: it is over then when its time is.
    pub async fn release(&self, fence: &Fence) -> Result<(), KvError> {
        let _: i64 = RELEASE.key(Shares::OWNER).arg(fence.token()).invoke_async(&mut self.redis.connection()?).await?;
        Ok(())
    }

    fn time_ms(&self) -> u64 {
        u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}
