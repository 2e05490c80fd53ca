//! How many bytes of the journal executions take up: a [`Size`] of each, and a [`Quota`] that adds them up by tenant.
//!
//! ```text
//!   step --records--> Size (in the head of its checkpoint) --change--> Used of the tenant <--check-- start
//!   end  --Size--> the row by which it is removed later;  removal --> Used;  server start: heads and rows --> Used
//! ```
//!
//! What holds: a size is written in the commit that makes it so, and the sum is made anew when the server starts; so a crash changes nothing of it. Only starts are refused: what has begun goes on,
//! also beyond the quota. Without a quota nothing is added up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Refused;
use super::journal::Part;
use crate::kv::Record;

/// What an execution takes up at its start at least, beside its input: names, first events, a checkpoint.
const START_BYTES: u64 = 4 << 10;
/// How often an input is written when an execution begins: in what it is, in two events, in the checkpoint of the machine and in that of its first state.
const INPUT_COPIES: u64 = 5;

/// Bytes that one execution takes up in the journal: keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Its history.
    pub history: u64,
    /// What it is: its input and output are in that.
    pub summary: u32,
    /// Where it stands.
    pub checkpoint: u32,
}

impl Size {
    /// All of them.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.history + self.summary as u64 + self.checkpoint as u64
    }

    /// What it is when these are written, too.
    #[must_use]
    pub fn with(self, records: &[Record]) -> Size {
        records.iter().fold(self, |mut size, record| {
            let bytes = record.value.as_ref().map_or(0, |_| record.bytes());
            // A commit is far smaller than 4 GiB.
            let small = u32::try_from(bytes).unwrap_or(u32::MAX);
            match Part::of(&record.key) {
                Part::History => size.history = size.history.saturating_add(bytes as u64),
                Part::Summary => size.summary = small,
                Part::Checkpoint => size.checkpoint = small,
                Part::Other => {}
            }
            size
        })
    }
}

/// Bytes that the executions of one tenant take up. Written by the thread of executions alone.
#[derive(Debug, Default)]
pub(super) struct Used {
    bytes: AtomicU64,
    /// Of executions that are being started.
    reserved: AtomicU64,
}

// Relaxed throughout: numbers that order nothing else.
impl Used {
    /// An execution that took up so much takes up so much now.
    pub(super) fn change(&self, before: u64, now: u64) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(bytes.saturating_add(now).saturating_sub(before), Ordering::Relaxed);
    }

    fn reserve(&self, more: u64, less: u64) {
        let bytes = self.reserved.load(Ordering::Relaxed);
        self.reserved.store(bytes.saturating_add(more).saturating_sub(less), Ordering::Relaxed);
    }
}

/// Room for an execution that is being started, until its first step is counted.
#[derive(Debug)]
pub(super) struct Reserved(Option<(Arc<Used>, u64)>);

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some((used, bytes)) = &self.0 {
            used.reserve(0, *bytes);
        }
    }
}

/// How many bytes executions of each tenant may take up.
#[derive(Debug, Default)]
pub(super) struct Quota {
    max: OnceLock<u64>,
    tenants: Mutex<HashMap<Arc<str>, Arc<Used>>>,
}

impl Quota {
    /// Sets it. The first one stays.
    pub(super) fn limit(&self, bytes_max: u64) {
        let _ = self.max.set(bytes_max);
    }

    /// Whether there is one.
    pub(super) fn is_set(&self) -> bool {
        self.max.get().is_some()
    }

    /// Where the bytes of a tenant are added up, if there is a quota.
    pub(super) fn of(&self, tenant: &str) -> Option<Arc<Used>> {
        self.max.get()?;
        // Single insertions, which cannot be half done.
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = tenants.get(tenant) {
            return Some(Arc::clone(used));
        }
        let used = Arc::new(Used::default());
        tenants.insert(tenant.into(), Arc::clone(&used));
        Some(used)
    }

    /// Begins anew with these sums: the executions in memory are gone.
    pub(super) fn begin(&self, sums: &HashMap<Arc<str>, u64>) {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for (tenant, bytes) in sums {
            if let Some(used) = self.of(tenant) {
                used.change(0, *bytes);
            }
        }
    }

    /// Room for an execution with an input of so many bytes.
    pub(super) fn reserve(&self, tenant: &str, input_bytes: usize) -> Result<Reserved, Refused> {
        let Some((used, bytes_max)) = self.of(tenant).zip(self.max.get().copied()) else { return Ok(Reserved(None)) };
        let wanted = START_BYTES.saturating_add((input_bytes as u64).saturating_mul(INPUT_COPIES));
        let bytes = used.bytes.load(Ordering::Relaxed);
        if bytes.saturating_add(used.reserved.load(Ordering::Relaxed)).saturating_add(wanted) > bytes_max {
            return Err(Refused::Full { bytes, bytes_max });
        }
        used.reserve(wanted, 0);
        Ok(Reserved(Some((used, wanted))))
    }

    /// The bytes of each tenant, by its name; none where there is no quota.
    pub(super) fn now(&self) -> Vec<(Arc<str>, u64)> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now: Vec<_> =
            tenants.iter().map(|(tenant, used)| (Arc::clone(tenant), used.bytes.load(Ordering::Relaxed))).collect();
        now.sort_unstable();
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_started_counts_until_it_has_begun() {
        let quota = Quota::default();
        assert!(quota.of("a").is_none() && quota.reserve("a", 1 << 40).is_ok(), "there is none");
        quota.limit(10_000);
        let first = quota.reserve("a", 100).unwrap();
        assert!(matches!(quota.reserve("a", 300), Err(Refused::Full { bytes: 0, bytes_max: 10_000 })));
        assert!(quota.reserve("b", 300).is_ok(), "another tenant has a quota of its own");
        quota.of("a").unwrap().change(0, 700);
        drop(first);
        let second = quota.reserve("a", 300).unwrap();
        assert!(matches!(quota.reserve("a", 300), Err(Refused::Full { bytes: 700, .. })));
        drop(second);
        quota.of("a").unwrap().change(700, 0);
        assert_eq!(quota.now(), [("a".into(), 0), ("b".into(), 0)]);
        quota.begin(&HashMap::from([("c".into(), 5)]));
        assert_eq!(quota.now(), [("c".into(), 5)]);
    }
}
