//! Idle sandboxes, kept for the next request of their template.

use std::collections::HashMap;

use crate::error::InstantiateError;
use crate::limits::POOL_IDLE_MAX;
use crate::sandbox::Sandbox;
use crate::template::Template;

/// What a pool may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Idle sandboxes, of all templates together; at most [`POOL_IDLE_MAX`].
    pub idle_max: usize,
}

impl Default for PoolLimits {
    fn default() -> PoolLimits {
        PoolLimits { idle_max: 64 }
    }
}

/// Makes a sandbox what it was when new, if it was made from a template and its call returned or was [finished](Sandbox::finish); otherwise
/// everything of it is given back to the system.
pub(crate) fn reset(mut sandbox: Box<Sandbox>) -> Option<Box<Sandbox>> {
    if !sandbox.call.is_clean() {
        return None;
    }
    let template = sandbox.template.clone()?;
    template.restore(&mut sandbox).ok()?;
    Some(sandbox)
}

/// A worker's idle sandboxes.
///
/// A sandbox is used again only by the template it was made from, after it was reset, and never after a trap or a kill. They are boxed: each request
/// hands its own on half a dozen times, and it has more than 400 bytes.
#[derive(Debug)]
pub struct Pool {
    limits: PoolLimits,
    /// By the template's key, which is unique while the entry holds the template.
    shelves: HashMap<usize, Shelf>,
    idle: usize,
}

#[derive(Debug)]
struct Shelf {
    template: Template,
    /// The one that was used last is at the end, and the next to be taken.
    #[expect(clippy::vec_box, reason = "it goes on in its box")]
    sandboxes: Vec<Box<Sandbox>>,
    /// The fewest that were here at once since the last trim: so many were not needed.
    unused: usize,
}

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new(limits: PoolLimits) -> Pool {
        let limits = PoolLimits { idle_max: limits.idle_max.min(POOL_IDLE_MAX) };
        Pool { limits, shelves: HashMap::new(), idle: 0 }
    }

    /// A sandbox as the template says: an idle one, or else a new one. Where memory or address space is exhausted, idle ones of other templates
    /// are taken apart for it.
    ///
    /// # Errors
    /// When the system has no memory for a new one.
    pub fn take(&mut self, template: &Template) -> Result<Box<Sandbox>, InstantiateError> {
        if let Some(sandbox) = self.pop(template) {
            return Ok(sandbox);
        }
        let mut made = template.instantiate();
        while made.as_ref().is_err_and(InstantiateError::is_exhaustion)
            && let Some(idle) = self.evict()
        {
            made = template.instantiate_of(idle.into_parts());
        }
        made.map(Box::new)
    }

    /// An idle sandbox of that template.
    pub(crate) fn pop(&mut self, template: &Template) -> Option<Box<Sandbox>> {
        let shelf = self.shelves.get_mut(&template.key())?;
        let sandbox = shelf.sandboxes.pop()?;
        shelf.unused = shelf.unused.min(shelf.sandboxes.len());
        self.idle -= 1;
        Some(sandbox)
    }

    /// Takes a sandbox back. It is reset and kept when it was made from a template and its call returned or was
    /// [finished](Sandbox::finish); otherwise everything of it is given back to the system. Where that makes one too many, the template with the
    /// most idle sandboxes loses the one that was used least recently.
    pub fn put(&mut self, sandbox: Box<Sandbox>) {
        if self.limits.idle_max > 0
            && let Some(sandbox) = reset(sandbox)
        {
            drop(self.push(sandbox));
        }
    }

    /// Keeps a sandbox that was reset; what that is one too many of.
    pub(crate) fn push(&mut self, sandbox: Box<Sandbox>) -> Option<Box<Sandbox>> {
        let Some(template) = &sandbox.template else { return Some(sandbox) };
        let shelf = self.shelves.entry(template.key()).or_insert_with(|| Shelf {
            template: template.clone(),
            sandboxes: Vec::new(),
            unused: 0,
        });
        shelf.sandboxes.push(sandbox);
        self.idle += 1;
        if self.idle > self.limits.idle_max { self.evict() } else { None }
    }

    /// Takes away the least recently used one of the template with the most idle ones.
    pub(crate) fn evict(&mut self) -> Option<Box<Sandbox>> {
        let shelf =
            self.shelves.values_mut().max_by_key(|shelf| shelf.sandboxes.len()).filter(|shelf| !shelf.sandboxes.is_empty())?;
        let sandbox = shelf.sandboxes.remove(0);
        shelf.unused = shelf.unused.min(shelf.sandboxes.len());
        self.idle -= 1;
        Some(sandbox)
    }

    /// Gives those back to the system that were not needed since the last trim; to be called now and then by a thread that has nothing else to do.
    /// How many.
    pub fn trim(&mut self) -> usize {
        self.unneeded().len()
    }

    /// Takes away those that were not needed since the last time.
    #[expect(clippy::vec_box, reason = "as it is kept")]
    pub(crate) fn unneeded(&mut self) -> Vec<Box<Sandbox>> {
        let mut unneeded = Vec::new();
        self.shelves.retain(|_, shelf| {
            unneeded.extend(shelf.sandboxes.drain(..shelf.unused));
            shelf.unused = shelf.sandboxes.len();
            !shelf.sandboxes.is_empty()
        });
        self.idle -= unneeded.len();
        unneeded
    }

    /// Number of idle sandboxes.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle
    }

    /// Gives the idle sandboxes of a template back to the system: of a function that is served no longer.
    pub fn forget(&mut self, template: &Template) {
        if let Some(shelf) = self.shelves.remove(&template.key()) {
            debug_assert_eq!(shelf.template.key(), template.key());
            self.idle -= shelf.sandboxes.len();
        }
    }

    /// Gives all idle sandboxes back to the system.
    pub fn clear(&mut self) {
        self.shelves.clear();
        self.idle = 0;
    }
}
