//! Questions that are sent together: the paper's T_merge (MXFaaS, "I/O merging"), `kv_merge_us`. Reads are one `HMGET`, plain commits one script ([`commits`](super::commits)).
//!
//! The rule: a question is sent at once while no other of its kind and tenant is under way. Otherwise it waits, for [`Merging::of`]'s time at most, and all that wait then are sent together. So a
//! server that is not loaded waits for nothing.
//!
//! A batch belongs to all that ask: each polls it, and it goes on for the others if one is killed. To be sent later than it was asked for is right for a read, which changes nothing, and for a write, which nothing
//! depends on before its answer: the store does either at a moment between question and answer. What stays unknown of a batch stays unknown of each.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{FutureExt as _, Shared, WeakShared};

use crate::kv::{BucketKey, Commit, Entry, KvError};

/// Keys of one batch. Their values are 16 MiB at most.
const BATCH_KEYS_MAX: usize = 16;
/// Keys that a commit changes which is sent together with others.
pub(super) const WRITES_MAX: usize = BATCH_KEYS_MAX;

/// What can be asked together with others.
pub(super) trait Together: Send + Sized + 'static {
    /// What comes of one.
    type Answer: Clone + Send + Sync + 'static;
    /// What keeps all from having an answer.
    type Error: Clone + Send + Sync + 'static;

    /// How many keys it is about.
    fn size(&self) -> usize;

    /// Whether the other one's answer is its own.
    fn is_same(&self, other: &Self) -> bool;

    /// What it means that there is no answer to it among those to all.
    fn without_answer() -> Self::Error;
}

impl Together for BucketKey {
    type Answer = Option<Entry>;
    type Error = KvError;

    fn size(&self) -> usize {
        1
    }

    fn is_same(&self, other: &BucketKey) -> bool {
        self == other
    }

    fn without_answer() -> KvError {
        super::not_ours()
    }
}

type Answers<Q> = Result<Arc<[<Q as Together>::Answer]>, <Q as Together>::Error>;
type Sending<Q> = Pin<Box<dyn Future<Output = Answers<Q>> + Send>>;

/// The questions of all tenants.
#[derive(Debug)]
pub(super) struct Merges {
    wait: Duration,
    tenants: Mutex<HashMap<String, Arc<Merging>>>,
}

/// Those of one tenant.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) reads: Arc<Kind<BucketKey>>,
    pub(super) commits: Arc<Kind<Commit>>,
}

/// Those of one kind.
pub(super) struct Kind<Q: Together> {
    wait: Duration,
    /// Questions that are under way or wait.
    under_way: AtomicU64,
    /// Those that were sent as a part of a batch of several.
    merged: AtomicU64,
    /// The batch that was begun last.
    last: Mutex<Option<Batch<Q>>>,
}

struct Batch<Q: Together> {
    /// What is asked, until it is sent.
    questions: Arc<Mutex<Option<Vec<Q>>>>,
    sending: WeakShared<Sending<Q>>,
}

/// A question that is under way until this is dropped.
struct UnderWay<'k>(&'k AtomicU64);

impl<Q: Together> fmt::Debug for Kind<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl Merges {
    /// Questions wait so long for others.
    pub(super) fn new(wait: Duration) -> Merges {
        Merges { wait, tenants: Mutex::default() }
    }

    /// Those of a tenant, the same for all functions that it has.
    pub(super) fn of(&self, tenant: &str) -> Arc<Merging> {
        let mut tenants = lock(&self.tenants);
        let new = || Arc::new(Merging { reads: Arc::new(Kind::of(self.wait)), commits: Arc::new(Kind::of(self.wait)) });
        Arc::clone(tenants.entry(tenant.to_owned()).or_insert_with(new))
    }

    /// Reads and commits that were sent together with others.
    pub(super) fn merged(&self) -> [u64; 2] {
        let tenants = lock(&self.tenants);
        tenants
            .values()
            .fold([0; 2], |[reads, commits], merging| [reads + merging.reads.merged(), commits + merging.commits.merged()])
    }
}

impl<Q: Together> Kind<Q> {
    fn of(wait: Duration) -> Kind<Q> {
        Kind { wait, under_way: AtomicU64::new(0), merged: AtomicU64::new(0), last: Mutex::default() }
    }

    fn merged(&self) -> u64 {
        // Relaxed: a number that orders nothing else.
        self.merged.load(Ordering::Relaxed)
    }

    /// The answer to a question, by `send`, which asks several: at once, or with those that are asked meanwhile.
    pub(super) async fn ask<F>(
        self: Arc<Self>,
        question: Q,
        send: impl FnOnce(Vec<Q>) -> F + Send + 'static,
    ) -> Result<Q::Answer, Q::Error>
    where
        F: Future<Output = Result<Vec<Q::Answer>, Q::Error>> + Send,
    {
        // Relaxed: whether it waits is a matter of time alone.
        let is_loaded = self.under_way.fetch_add(1, Ordering::Relaxed) > 0;
        let _under_way = UnderWay(&self.under_way);
        if !is_loaded {
            return one::<Q>(&send(vec![question]).await?, 0);
        }
        let (sending, index) = self.batch(question, send);
        one::<Q>(&sending.await?, index)
    }

    /// The batch that takes this question, and its place in it.
    fn batch<F>(self: &Arc<Self>, question: Q, send: impl FnOnce(Vec<Q>) -> F + Send + 'static) -> (Shared<Sending<Q>>, usize)
    where
        F: Future<Output = Result<Vec<Q::Answer>, Q::Error>> + Send,
    {
        let mut last = lock(&self.last);
        let question = match &*last {
            Some(batch) => match batch.add(question) {
                Ok(joined) => return joined,
                Err(question) => question,
            },
            None => question,
        };
        let questions = Arc::new(Mutex::new(Some(vec![question])));
        let (kind, own) = (Arc::clone(self), Arc::clone(&questions));
        let sending = async move {
            tokio::time::sleep(kind.wait).await;
            let questions = lock(&own).take().unwrap_or_default();
            if questions.len() > 1 {
                kind.merged.fetch_add(questions.len() as u64, Ordering::Relaxed);
            }
            send(questions).await.map(Arc::from)
        };
        let sending = sending.boxed().shared();
        *last = sending.downgrade().map(|sending| Batch { questions, sending });
        (sending, 0)
    }
}

impl<Q: Together> Batch<Q> {
    /// Takes a question, or gives it back: if the batch was sent, has no room, or nothing waits for it any more.
    fn add(&self, question: Q) -> Result<(Shared<Sending<Q>>, usize), Q> {
        let mut own = lock(&self.questions);
        let Some((questions, sending)) = own.as_mut().zip(self.sending.upgrade()) else { return Err(question) };
        if let Some(index) = questions.iter().position(|other| question.is_same(other)) {
            return Ok((sending, index));
        }
        let size: usize = questions.iter().map(Q::size).sum();
        if size + question.size() > BATCH_KEYS_MAX {
            return Err(question);
        }
        questions.push(question);
        Ok((sending, questions.len() - 1))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The answer at that place.
fn one<Q: Together>(answers: &[Q::Answer], index: usize) -> Result<Q::Answer, Q::Error> {
    answers.get(index).cloned().ok_or_else(Q::without_answer)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks cannot be half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
