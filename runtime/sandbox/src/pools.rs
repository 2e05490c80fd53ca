//! The pools of several workers, which help each other out.
//!
//! Each worker uses its own pool, whose lock is free then. Another one takes something from it only where memory or address space is exhausted:
//! a sandbox of the wanted template as it is, or else any idle one, to be taken apart. Nothing is reset or given back to the system under a
//! lock, and nobody holds two of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::budget::{Budget, Reclaim};
use crate::error::InstantiateError;
use crate::pool::{Pool, PoolLimits, reset};
use crate::sandbox::Sandbox;
use crate::template::Template;

/// A pool for each of several workers, known by index.
#[derive(Debug)]
pub struct Pools {
    pools: Box<[Padded]>,
}

/// On cache lines of its own, since each is used by another core.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(Mutex<Pool>);

impl Pools {
    /// Empty pools for so many workers, each with these limits.
    #[must_use]
    pub fn new(workers: usize, limits: PoolLimits) -> Arc<Pools> {
        Arc::new(Pools { pools: (0..workers).map(|_| Padded(Mutex::new(Pool::new(limits)))).collect() })
    }

    /// Makes what is idle in any of them available to whoever [claims](Budget::claim) something of `budget` that is exhausted.
    pub fn lend_to(self: &Arc<Pools>, budget: &Budget) {
        let this: Weak<Pools> = Arc::downgrade(self);
        budget.set_reclaim(this);
    }

    /// A sandbox as the template says: an idle one of this worker, or else a new one, or, where memory or address space is exhausted, what idle
    /// ones of all workers can be made into.
    ///
    /// # Errors
    /// When there is no memory for a new one although nothing is idle.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn take(&self, worker: usize, template: &Template) -> Result<Box<Sandbox>, InstantiateError> {
        let idle = self.pool(worker).pop(template);
        if let Some(sandbox) = idle {
            return Ok(sandbox);
        }
        let mut made = template.instantiate();
        while made.as_ref().is_err_and(InstantiateError::is_exhaustion) {
            if let Some(sandbox) = self.first_of(worker, |pool| pool.pop(template)) {
                return Ok(sandbox);
            }
            let Some(idle) = self.first_of(worker, Pool::evict) else { break };
            made = template.instantiate_of(idle.into_parts());
        }
        made.map(Box::new)
    }

    /// Takes a sandbox back into a worker's pool, as [`Pool::put`].
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn put(&self, worker: usize, sandbox: Box<Sandbox>) {
        if let Some(sandbox) = reset(sandbox) {
            let surplus = self.pool(worker).push(sandbox);
            drop(surplus);
        }
    }

    /// Gives those of a worker back to the system that were not needed since the last time; how many.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn trim(&self, worker: usize) -> usize {
        let unneeded = self.pool(worker).unneeded();
        unneeded.len()
    }

    /// Gives a worker's idle sandboxes of a template back to the system: of a function that is served no longer.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn forget(&self, worker: usize, template: &Template) {
        while let Some(sandbox) = { self.pool(worker).pop(template) } {
            drop(sandbox);
        }
        self.pool(worker).forget(template);
    }

    /// Gives all of a worker's idle sandboxes back to the system.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn clear(&self, worker: usize) {
        while let Some(sandbox) = { self.pool(worker).evict() } {
            drop(sandbox);
        }
        self.pool(worker).clear();
    }

    /// Number of a worker's idle sandboxes.
    ///
    /// # Panics
    /// When there is no such worker.
    #[must_use]
    pub fn idle(&self, worker: usize) -> usize {
        self.pool(worker).idle()
    }

    /// What `find` finds first: in the worker's own pool, and then in those of the others.
    fn first_of(&self, worker: usize, find: impl Fn(&mut Pool) -> Option<Box<Sandbox>>) -> Option<Box<Sandbox>> {
        let (before, from) = self.pools.split_at(worker);
        from.iter().chain(before).find_map(|pool| find(&mut lock(pool)))
    }

    fn pool(&self, worker: usize) -> MutexGuard<'_, Pool> {
        lock(&self.pools[worker])
    }
}

fn lock(pool: &Padded) -> MutexGuard<'_, Pool> {
    // Nothing that is done under the lock can panic half-way.
    pool.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reclaim for Pools {
    fn reclaim(&self, bytes: u64) -> bool {
        let mut given = 0;
        while given < bytes
            && let Some(idle) = self.fullest().and_then(|pool| lock(pool).evict())
        {
            given += idle.reserved_bytes();
        }
        given > 0
    }
}

impl Pools {
    /// The one with the most idle sandboxes, at the time each was looked at.
    fn fullest(&self) -> Option<&Padded> {
        self.pools.iter().max_by_key(|pool| lock(pool).idle())
    }
}
