//! From outboxes to executions: what commits of functions have left behind is started, each request as an execution under its id, and then removed.
//!
//! Each step can be repeated. A request whose execution has begun and that is still there, after a crash or at another server, is started once more under the same name, which is the same execution.
//! So a request is lost at no moment, and sent by one execution.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::back_off::BackOff;
use super::{Executions, Refused};
use crate::kv::{BucketKey, Change, Commit, KvError, Outcome, Space, outbox};
use crate::upstream::posted;
use crate::workflow::Workflow;
use crate::workflow::items::page;

/// Requests that are started at the same time.
const TOGETHER: usize = 64;
/// How often outboxes are looked at in which nothing is known to be: another server may have died over them.
const LOOK: Duration = Duration::from_secs(30);
/// The time until what could not be started is tried again, at first; it doubles up to [`LOOK`].
const RETRY_MIN: Duration = Duration::from_millis(100);

/// Starts what is in the outboxes, for as long as it is polled.
pub(super) async fn keep(executions: Executions) {
    let bell = Arc::clone(&executions.0.bell);
    let mut back_off = BackOff::new(RETRY_MIN, LOOK);
    let mut left: HashSet<Arc<str>> = HashSet::new();
    // However often the bell rings for others, what is left is tried again in time.
    let mut look_at = Instant::now() + LOOK;
    loop {
        for tenant in bell.take() {
            if start_all(&executions, &tenant).await {
                left.remove(&tenant);
            } else if left.insert(tenant) {
                look_at = look_at.min(Instant::now() + RETRY_MIN);
            }
        }
        tokio::select! {
            () = bell.rung() => {}
            () = tokio::time::sleep_until(look_at) => {
                let again = if left.is_empty() { bell.known() } else { std::mem::take(&mut left) };
                for tenant in again {
                    if !start_all(&executions, &tenant).await {
                        left.insert(tenant);
                    }
                }
                if left.is_empty() {
                    back_off = BackOff::new(RETRY_MIN, LOOK);
                }
                look_at = Instant::now() + if left.is_empty() { LOOK } else { back_off.next() };
            }
        }
    }
}

/// Starts all that is in a tenant's outbox. Whether nothing is left.
async fn start_all(executions: &Executions, tenant: &Arc<str>) -> bool {
    let Some(space) = executions.tenants().get(tenant).and_then(|reach| reach.kv.clone()) else { return false };
    match pages(executions, tenant, &space).await {
        Ok(is_done) => is_done,
        Err(error) => {
            tracing::warn!(tenant = &**tenant, %error, "requests that functions have left behind cannot be sent now");
            false
        }
    }
}

async fn pages(executions: &Executions, tenant: &Arc<str>, space: &Space) -> Result<bool, KvError> {
    let (bucket, mut after, mut is_done): (_, Option<Bytes>, _) = (outbox::bucket(), None, true);
    loop {
        let keys = page(space, &bucket, b"", after.as_deref(), TOGETHER).await?;
        let Some(last) = keys.last() else { return Ok(is_done) };
        after = Some(last.clone());
        let mut starting = JoinSet::new();
        for key in keys {
            let key = bucket.key(&key)?;
            starting.spawn_local(start(executions.clone(), Arc::clone(tenant), space.clone(), key));
        }
        let mut started = Vec::new();
        while let Some(one) = starting.join_next().await {
            match one {
                Ok(Some(key)) => started.push((key, Change::Delete)),
                Ok(None) | Err(_) => is_done = false,
            }
        }
        if !started.is_empty()
            && let Outcome::Conflict { .. } = space.clone().commit(Commit::new(Vec::new(), started)).await?
        {
            is_done = false;
        }
    }
}

/// Starts one. Its key, if it is to be removed.
async fn start(executions: Executions, tenant: Arc<str>, space: Space, key: BucketKey) -> Option<BucketKey> {
    match start_one(&executions, &tenant, &space, &key).await {
        Ok(()) => Some(key),
        Err(why) => {
            tracing::warn!(tenant = &*tenant, request = %key.key().escape_ascii(), why, "a request that a function has left behind is not sent yet");
            None
        }
    }
}

async fn start_one(executions: &Executions, tenant: &str, space: &Space, key: &BucketKey) -> Result<(), String> {
    let entry = space.read(&outbox::bucket(), key.clone()).await.map_err(|error| error.to_string())?;
    // Another server was faster.
    let Some(entry) = entry else { return Ok(()) };
    let posted: Value = serde_json::from_slice(&entry.value).map_err(|error| format!("it is not what was written: {error}"))?;
    let function = posted::function(&posted).ok_or("it names no function")?;
    let workflow = executions.of_outbox(tenant, function).ok_or_else(|| format!("the function {function:?} is not served"))?;
    let id = String::from_utf8_lossy(key.key()).into_owned();
    match executions.start(&workflow, Some(id), posted).await {
        // It has begun before, and may have ended.
        Ok(_) | Err(Refused::Exists { .. }) => Ok(()),
        Err(refused) => Err(refused.to_string()),
    }
}

impl Executions {
    /// The workflow that sends what a function has left behind, while that is served.
    pub(super) fn of_outbox(&self, tenant: &str, function: &str) -> Option<Arc<Workflow>> {
        let reach = self.tenants().get(tenant)?.clone();
        let function = reach.functions.find(function).ok()?;
        Some(Arc::new(Workflow::of_outbox(tenant, &function, reach)))
    }

    /// The outbox of a tenant, for functions that may leave requests behind.
    #[must_use]
    pub fn outbox(&self, tenant: &str) -> outbox::Outbox {
        outbox::Outbox::of(&self.0.bell, tenant)
    }
}
