//! Requests to other servers that transactions leave behind, until they are on their way.
//!
//! A request is an entry in a bucket of the server's own, written by the commit of the transaction that makes it: both are there or neither. Functions cannot open the bucket. What
//! sends the requests is told by a [`Bell`] that there are any; the value is its business.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{BucketKey, BucketName, Commit, KvError};

/// The bucket's name, which functions cannot use.
pub(super) const BUCKET: &[u8] = b"sledge:outbox";

/// Which tenants have requests that are to be sent.
#[derive(Debug, Default)]
pub struct Bell {
    tenants: Mutex<Tenants>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Tenants {
    /// Those whose functions may leave requests behind.
    known: HashSet<Arc<str>>,
    /// Those that have.
    rung: HashSet<Arc<str>>,
}

impl Bell {
    /// The tenants that have rung since this was asked last.
    pub fn take(&self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.tenants().rung)
    }

    /// All tenants whose functions may leave requests behind.
    pub fn known(&self) -> HashSet<Arc<str>> {
        self.tenants().known.clone()
    }

    /// Waits until a tenant rings, unless one has rung since this was waited for last.
    pub async fn rung(&self) {
        self.notify.notified().await;
    }

    fn tenants(&self) -> MutexGuard<'_, Tenants> {
        // Single insertions and removals, which cannot be half done.
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tenant's outbox: of functions that may leave requests behind.
#[derive(Clone, Debug)]
pub struct Outbox {
    bell: Arc<Bell>,
    tenant: Arc<str>,
}

impl Outbox {
    /// That of a tenant. What it has from before is looked for: a server may have died over it.
    #[must_use]
    pub fn of(bell: &Arc<Bell>, tenant: &str) -> Outbox {
        let outbox = Outbox { bell: Arc::clone(bell), tenant: tenant.into() };
        bell.tenants().known.insert(Arc::clone(&outbox.tenant));
        outbox.ring();
        outbox
    }

    /// There are requests in it.
    pub fn ring(&self) {
        self.bell.tenants().rung.insert(Arc::clone(&self.tenant));
        self.bell.notify.notify_one();
    }
}

/// The bucket.
#[must_use]
pub fn bucket() -> BucketName {
    BucketName(BUCKET.into())
}

/// Under which key a request is.
///
/// # Errors
/// When the id is too long.
pub fn key(id: &str) -> Result<BucketKey, KvError> {
    bucket().key(id.as_bytes())
}

/// Whether a commit leaves requests behind.
#[must_use]
pub fn is_left_by(commit: &Commit) -> bool {
    commit.changes.iter().any(|(key, _)| key.0.strip_prefix(BUCKET).is_some_and(|rest| rest.first() == Some(&0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::Change;

    #[test]
    fn functions_cannot_open_the_bucket_and_tools_can_name_it() {
        assert_eq!(BucketName::new(BUCKET), None);
        assert_eq!(BucketName::stored(BUCKET), Some(bucket()));
        assert!(BucketName::new(b"sledge:outbox2").is_some() && BucketName::new(b"sledge").is_some());
        let put = |key| Commit::new(Vec::new(), vec![(key, Change::Put("x".into()))]);
        assert!(is_left_by(&put(key("id").unwrap())));
        let alike = BucketName::new(b"sledge:outbox2").unwrap();
        assert!(!is_left_by(&put(alike.key(b"id").unwrap())));
    }

    #[tokio::test]
    async fn a_bell_that_rings_while_nothing_waits_is_heard_and_tells_each_tenant_once() {
        let bell = Arc::new(Bell::default());
        let (one, other) = (Outbox::of(&bell, "one"), Outbox::of(&bell, "other"));
        bell.rung().await;
        assert_eq!(bell.take().len(), 2, "what is there from before is looked for");
        one.ring();
        one.ring();
        bell.rung().await;
        assert_eq!(bell.take(), HashSet::from(["one".into()]));
        assert_eq!((bell.take().len(), bell.known().len()), (0, 2));
        drop(other);
    }
}
