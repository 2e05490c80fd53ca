//! Reads that are sent together: the paper's T_merge (MXFaaS, "I/O merging"), `kv_merge_us`.
//!
//! The rule: a read is sent at once while no other read of its tenant is under way. Otherwise it waits, for [`Merging::wait`] at most, and all that wait then are one command for several keys. So a
//! server that is not loaded waits for nothing.
//!
//! A batch belongs to all its readers: each polls it, and it goes on for the others if one is killed. Reads change nothing, so that to be sent later than they were asked for is right: an answer is of a
//! moment between the reader's question and its answer. Writes are not held back: their scripts go out in one pipeline as it is.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{FutureExt as _, Shared, WeakShared};

use crate::kv::{BucketKey, Entry, KvError};

/// Keys of one batch. Their values are 16 MiB at most.
const BATCH_KEYS_MAX: usize = 16;

type Entries = Result<Arc<[Option<Entry>]>, KvError>;
type Sending = Pin<Box<dyn Future<Output = Entries> + Send>>;

/// The reads of all tenants.
#[derive(Debug)]
pub(super) struct Merges {
    wait: Duration,
    tenants: Mutex<HashMap<String, Arc<Merging>>>,
}

/// The reads of one tenant that are sent together.
pub(super) struct Merging {
    wait: Duration,
    /// Reads that are under way or wait.
    under_way: AtomicU64,
    /// Those that were sent as a part of a batch of several keys.
    merged: AtomicU64,
    /// The batch that was begun last.
    last: Mutex<Option<Batch>>,
}

struct Batch {
    /// Its keys, until it is sent.
    keys: Arc<Mutex<Option<Vec<BucketKey>>>>,
    sending: WeakShared<Sending>,
}

/// A read that is under way until this is dropped.
struct UnderWay<'m>(&'m Merging);

impl fmt::Debug for Merging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merging").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl Merges {
    /// Reads wait so long for others.
    pub(super) fn new(wait: Duration) -> Merges {
        Merges { wait, tenants: Mutex::default() }
    }

    /// Those of a tenant, the same for all functions that it has.
    pub(super) fn of(&self, tenant: &str) -> Arc<Merging> {
        let mut tenants = lock(&self.tenants);
        Arc::clone(tenants.entry(tenant.to_owned()).or_insert_with(|| Arc::new(Merging::new(self.wait))))
    }

    /// Reads that were sent together with others.
    pub(super) fn merged(&self) -> u64 {
        lock(&self.tenants).values().map(|merging| merging.merged.load(Ordering::Relaxed)).sum()
    }
}

impl Merging {
    fn new(wait: Duration) -> Merging {
        Merging { wait, under_way: AtomicU64::new(0), merged: AtomicU64::new(0), last: Mutex::default() }
    }

    /// What is under a key, by `send`, which asks for several: at once, or with those that others ask for meanwhile.
    pub(super) async fn read<F>(
        self: Arc<Self>,
        key: BucketKey,
        send: impl FnOnce(Vec<BucketKey>) -> F + Send + 'static,
    ) -> Result<Option<Entry>, KvError>
    where
        F: Future<Output = Result<Vec<Option<Entry>>, KvError>> + Send,
    {
        // Relaxed: whether it waits is a matter of time alone.
        let is_loaded = self.under_way.fetch_add(1, Ordering::Relaxed) > 0;
        let _under_way = UnderWay(&self);
        if !is_loaded {
            return one(&send(vec![key]).await?, 0);
        }
        let (sending, index) = self.batch(key, send);
        one(&sending.await?, index)
    }

    /// The batch that takes this key, and the key's place in it.
    fn batch<F>(
        self: &Arc<Self>,
        key: BucketKey,
        send: impl FnOnce(Vec<BucketKey>) -> F + Send + 'static,
    ) -> (Shared<Sending>, usize)
    where
        F: Future<Output = Result<Vec<Option<Entry>>, KvError>> + Send,
    {
        let mut last = lock(&self.last);
        if let Some(joined) = last.as_ref().and_then(|batch| batch.add(&key)) {
            return joined;
        }
        let keys = Arc::new(Mutex::new(Some(vec![key])));
        let (merging, own) = (Arc::clone(self), Arc::clone(&keys));
        let sending = async move {
            tokio::time::sleep(merging.wait).await;
            let keys = lock(&own).take().unwrap_or_default();
            if keys.len() > 1 {
                merging.merged.fetch_add(keys.len() as u64, Ordering::Relaxed);
            }
            send(keys).await.map(Arc::from)
        };
        let sending = sending.boxed().shared();
        *last = sending.downgrade().map(|sending| Batch { keys, sending });
        (sending, 0)
    }
}

impl Batch {
    /// Takes a key, if it was not sent, has room, and one of its readers is still there.
    fn add(&self, key: &BucketKey) -> Option<(Shared<Sending>, usize)> {
        let mut keys = lock(&self.keys);
        let keys = keys.as_mut()?;
        let index = keys.iter().position(|other| other == key).unwrap_or(keys.len());
        if index == BATCH_KEYS_MAX {
            return None;
        }
        let sending = self.sending.upgrade()?;
        if index == keys.len() {
            keys.push(key.clone());
        }
        Some((sending, index))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The entry at that place.
fn one(entries: &[Option<Entry>], index: usize) -> Result<Option<Entry>, KvError> {
    entries.get(index).cloned().ok_or_else(super::not_ours)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks cannot be half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
