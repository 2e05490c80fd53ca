//! Reading what the server itself keeps in Redis: blocking, over connections of its own.
//!
//! The records of a store are in two keys: a hash with all values, and a sorted set of the keys, for their order. They are written by the script of a commit alone.

use std::ops::Bound;
use std::sync::LazyLock;

use bytes::Bytes;
use redis::{FromRedisValue, Script, ScriptInvocation};

use super::blocking::Connections;
use super::shares::Shares;
use super::{Redis, not_ours};
use crate::kv::{KvError, Order};

/// Records that a page of a scan has: the first one, and at most. Most scans want one record, or very few.
const PAGE_MIN: usize = 8;
const PAGE_MAX: usize = 512;
/// Bytes of a page's keys and values, unless its first record alone has more.
const PAGE_BYTES_MAX: usize = 1 << 20;

static PAGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../records.lua")));
static GET: LazyLock<Script> = LazyLock::new(|| Script::new("return redis.call('HGET', KEYS[1], ARGV[1])"));
static COUNT: LazyLock<Script> = LazyLock::new(|| Script::new("return redis.call('ZLEXCOUNT', KEYS[1], ARGV[1], ARGV[2])"));

/// Reads records. Each request waits for the server, and no longer than for [some time](super::blocking).
#[derive(Clone, Debug)]
pub struct Records {
    connections: Connections,
}

/// A bound of keys as Redis has it.
fn bound(of: Bound<&[u8]>, unbounded: &[u8]) -> Vec<u8> {
    match of {
        Bound::Included(key) => [b"[", key].concat(),
        Bound::Excluded(key) => [b"(", key].concat(),
        Bound::Unbounded => unbounded.to_vec(),
    }
}

impl Redis {
    /// What the server itself keeps.
    #[must_use]
    pub fn records(&self) -> Records {
        Records { connections: self.blocking.clone() }
    }
}

impl Records {
    /// What there is under a key.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.ask(GET.key(Shares::RECORDS).arg(key))
    }

    /// Calls `with` with each key and its value between the bounds, in order, for as long as it wants more; with the heads of the values, where no more of each is wanted than so many bytes.
    ///
    /// # Errors
    /// When the server cannot be asked. `with` may have been called before.
    pub fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
        head_bytes: Option<usize>,
        mut with: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), KvError> {
        let (mut low, mut high) = (bound(bounds.0, b"-"), bound(bounds.1, b"+"));
        let mut size = PAGE_MIN;
        loop {
            let mut script = PAGE.prepare_invoke();
            script.key(Shares::RECORDS).key(Shares::RECORD_KEYS);
            script.arg(if order == Order::Rising { "r" } else { "f" }).arg(&*low).arg(&*high);
            script.arg(size).arg(PAGE_BYTES_MAX).arg(head_bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(-1)));
            let page: Vec<Bytes> = self.ask(&script)?;
            let (more, rows) = page.split_first().ok_or_else(not_ours)?;
            let (rows, []) = rows.as_chunks::<2>() else { return Err(not_ours()) };
            for [key, value] in rows {
                if !with(key, value) {
                    return Ok(());
                }
            }
            let Some([last, _]) = rows.last().filter(|_| &**more == b"1") else { return Ok(()) };
            // Each page begins behind the last one, so that a scan comes to its end whatever is written meanwhile.
            match order {
                Order::Rising => low = bound(Bound::Excluded(last), b""),
                Order::Falling => high = bound(Bound::Excluded(last), b""),
            }
            size = (size * 4).min(PAGE_MAX);
        }
    }

    /// How many keys there are between the bounds.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn count(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<u64, KvError> {
        self.ask(COUNT.key(Shares::RECORD_KEYS).arg(bound(bounds.0, b"-")).arg(bound(bounds.1, b"+")))
    }

    fn ask<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, KvError> {
        Ok(self.connections.ask(script)?)
    }
}
