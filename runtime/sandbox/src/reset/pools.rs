//! The pools of several workers, which help each other out.
//!
//! Each worker uses its own pool, whose lock is free then. Another one takes something from it only where memory, address space or mappings are exhausted:
//! a sandbox of the wanted template as it is, or else the idle one that was used least recently, to be taken apart. Nothing is reset or given back to the system under a
//! lock, and no thread holds two of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::pool::{Pool, give_back, lacks_mappings, reset};
use super::template::Template;
use crate::budget::{Budget, Reclaim};
use crate::error::InstantiateError;
use crate::sandbox::{Parts, Sandbox};

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
    /// Empty pools for so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Arc<Pools> {
        Arc::new(Pools { pools: (0..workers).map(|_| Padded(Mutex::new(Pool::new()))).collect() })
    }

    /// Makes what is idle in any of them available to each thread that [claims](Budget::claim) something of `budget` that is exhausted.
    pub fn lend_to(self: &Arc<Pools>, budget: &Budget) {
        let this: Weak<Pools> = Arc::downgrade(self);
        budget.set_reclaim(this);
    }

    /// A sandbox as the template says: an idle one of this worker, or else a new one, or, where memory, address space or mappings are exhausted,
    /// what idle ones of all workers can be made into, beginning with the one that was used least recently.
    ///
    /// # Errors
    /// When there is no memory for a new one although nothing is idle.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn take(&self, worker: usize, template: &Template) -> Result<Box<Sandbox>, InstantiateError> {
        if let Some(sandbox) = self.take_idle(worker, template) {
            return Ok(sandbox);
        }
        let mut made = template.instantiate_in_room(Parts::default());
        while made.as_ref().is_err_and(InstantiateError::is_exhaustion) {
            if let Some(sandbox) = self.pop_anywhere(worker, template) {
                return Ok(sandbox);
            }
            let parts = match (self.evict(), &made) {
                (Some(idle), _) => idle.into_parts(),
                // Nothing is idle: what others keep goes.
                (None, Err(InstantiateError::Exhausted { wanted, .. }))
                    if template.budget().is_some_and(|budget| budget.reclaim_lent(*wanted)) =>
                {
                    Parts::default()
                }
                (None, _) => break,
            };
            made = template.instantiate_in_room(parts);
        }
        if let (Err(InstantiateError::Exhausted { .. }), Some(budget)) = (&made, template.budget()) {
            budget.note_refusal();
        }
        made.map(Box::new)
    }

    /// An idle one of this worker.
    ///
    /// # Panics
    /// When there is no such worker.
    #[must_use]
    pub fn take_idle(&self, worker: usize, template: &Template) -> Option<Box<Sandbox>> {
        self.pool(worker).pop(template)
    }

    /// Has the caches fetch the idle sandbox that [`take`](Self::take) would return to this worker, while something else is done.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn prefetch(&self, worker: usize, template: &Template) {
        self.pool(worker).prefetch(template);
    }

    /// Takes a sandbox back into a worker's pool, as [`Pool::put`]; it was used until `now`.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn put(&self, worker: usize, sandbox: Box<Sandbox>, now: Instant) {
        if let Some(sandbox) = self.renew(sandbox) {
            self.pool(worker).push(sandbox, Some(now));
        }
    }

    /// Makes a sandbox what it was when new, for the next request of its template, as if that had it from the pool. None where it is not to be used again.
    #[must_use]
    pub fn renew(&self, sandbox: Box<Sandbox>) -> Option<Box<Sandbox>> {
        let mut sandbox = reset(sandbox)?;
        if lacks_mappings(&mut sandbox) {
            drop(self.evict());
        }
        Some(sandbox)
    }

    /// Gives those of a worker back to the system that were not needed since the last trim, `count_max` at a time; whether that was all, so that this
    /// trim is complete.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn trim(&self, worker: usize, count_max: usize) -> bool {
        (0..count_max).any(|_| {
            let unneeded = self.pool(worker).unneeded();
            unneeded.map(give_back).is_none()
        })
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

    /// An idle sandbox of that template: of the worker's own pool, or else of another's.
    fn pop_anywhere(&self, worker: usize, template: &Template) -> Option<Box<Sandbox>> {
        let (before, from) = self.pools.split_at(worker);
        from.iter().chain(before).find_map(|pool| lock(pool).pop(template))
    }

    /// Takes away the one of all pools that was used least recently, at the time each was looked at.
    fn evict(&self) -> Option<Box<Sandbox>> {
        let oldest = |pool| Some((lock(pool).oldest()?, pool));
        let (_, pool) = self.pools.iter().filter_map(oldest).min_by_key(|(since, _)| *since)?;
        lock(pool).evict()
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
            && let Some(idle) = self.evict()
        {
            given += idle.reserved_bytes();
        }
        given != 0
    }
}
