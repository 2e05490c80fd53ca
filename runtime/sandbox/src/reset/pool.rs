//! Idle sandboxes, kept for the next request of their template.
//!
//! There is no number of places. What is idle counts as what runs does: in the [`Budget`](crate::Budget), and in the addresses and mappings that
//! the process may have ([`crate::sys::room`]). Where one of these is exhausted, those go that were used least recently, of whatever template.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::prefetch::{Whereabouts, prefetch};
use super::recency::{Place, Recency};
use super::template::Template;
use crate::error::InstantiateError;
use crate::sandbox::{Parts, Sandbox};
use crate::store::memory::Memory;

/// Makes a sandbox what it was when new, if it was made from a template and its call returned or was [finished](Sandbox::finish); otherwise
/// everything of it is given back to the system.
pub(crate) fn reset(mut sandbox: Box<Sandbox>) -> Option<Box<Sandbox>> {
    if !sandbox.is_clean() {
        return None;
    }
    // Taken out meanwhile: a count of references less.
    let origin = sandbox.origin.take()?;
    sandbox.restore(&origin).ok()?;
    sandbox.origin = Some(origin);
    Some(sandbox)
}

/// Whether each reset of it costs more than it would if the process had more mappings.
pub(crate) fn lacks_mappings(sandbox: &mut Sandbox) -> bool {
    !sandbox.store.memories.iter_mut().all(Memory::is_protected)
}

/// Gives a sandbox that is not needed back to the system, and what its resets have read of images.
pub(crate) fn give_back(sandbox: Box<Sandbox>) {
    if let Some(origin) = &sandbox.origin {
        origin.forget_views();
    }
}

/// A worker's idle sandboxes.
///
/// A sandbox is used again only by the template it was made from, after it was reset, and never after a trap or a kill. They are boxed: each request
/// hands its own on half a dozen times, and it has more than 400 bytes.
#[derive(Debug, Default)]
pub struct Pool {
    /// By the template's key, which is unique while the entry holds the template.
    shelves: FxHashMap<usize, Shelf>,
    idle: Recency<Idle>,
    /// Counts trims.
    trims: u32,
}

#[derive(Debug)]
struct Shelf {
    template: Template,
    /// The one that was used last is at the end, and the next to be taken; the first is the one that was used least recently.
    places: VecDeque<Place>,
    /// Of the sandbox that was put here last, which is mostly the next to be taken.
    last: Whereabouts,
}

#[derive(Debug)]
struct Idle {
    sandbox: Box<Sandbox>,
    /// The key of its shelf.
    shelf: usize,
    /// When it was put here, where there are other pools to compare with.
    since: Option<Instant>,
    /// The trims before that.
    trims: u32,
}

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Pool {
        Pool::default()
    }

    /// A sandbox as the template says: an idle one, or else a new one. Where memory, address space or mappings are exhausted, idle ones of other
    /// templates are taken apart for it.
    ///
    /// # Errors
    /// When the system has no memory for a new one.
    pub fn take(&mut self, template: &Template) -> Result<Box<Sandbox>, InstantiateError> {
        if let Some(sandbox) = self.pop(template) {
            return Ok(sandbox);
        }
        let mut made = template.instantiate_in_room(Parts::default());
        while made.as_ref().is_err_and(InstantiateError::is_exhaustion)
            && let Some(idle) = self.evict()
        {
            made = template.instantiate_in_room(idle.into_parts());
        }
        made.map(Box::new)
    }

    /// An idle sandbox of that template.
    pub(crate) fn pop(&mut self, template: &Template) -> Option<Box<Sandbox>> {
        let place = self.shelves.get_mut(&template.key())?.places.pop_back()?;
        self.idle.take(place).map(|idle| idle.sandbox)
    }

    /// Takes a sandbox back. It is reset and kept when it was made from a template and its call returned or was
    /// [finished](Sandbox::finish); otherwise everything of it is given back to the system.
    pub fn put(&mut self, sandbox: Box<Sandbox>) {
        let Some(mut sandbox) = reset(sandbox) else { return };
        if lacks_mappings(&mut sandbox) {
            drop(self.evict());
        }
        self.push(sandbox, None);
    }

    /// Keeps a sandbox that was reset.
    pub(crate) fn push(&mut self, mut sandbox: Box<Sandbox>, since: Option<Instant>) {
        let last = Whereabouts::of(&mut sandbox);
        let Some(origin) = &sandbox.origin else { return };
        let key = Template::key_of(origin);
        let new = || Shelf { template: Template::from(Arc::clone(origin)), places: VecDeque::new(), last };
        let shelf = self.shelves.entry(key).or_insert_with(new);
        shelf.last = last;
        shelf.places.push_back(self.idle.add(Idle { sandbox, shelf: key, since, trims: self.trims }));
    }

    /// Has the caches fetch the sandbox that [`take`](Self::take) would return.
    pub(crate) fn prefetch(&self, template: &Template) {
        template.prefetch();
        if let Some(shelf) = self.shelves.get(&template.key()) {
            prefetch(shelf.places.as_slices().0);
            shelf.last.prefetch();
        }
    }

    /// Since when the one is here that was used least recently.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.idle.oldest()?.1.since
    }

    /// Takes away the one that was used least recently.
    pub(crate) fn evict(&mut self) -> Option<Box<Sandbox>> {
        let (place, _) = self.idle.oldest()?;
        let Idle { sandbox, shelf: key, .. } = self.idle.take(place)?;
        if let Some(shelf) = self.shelves.get_mut(&key) {
            let first = shelf.places.pop_front();
            debug_assert_eq!(first, Some(place), "shelves have the order of all");
            if shelf.places.is_empty() {
                self.shelves.remove(&key);
            }
        }
        Some(sandbox)
    }

    /// Gives those back to the system that were not needed since the last trim; to be called now and then by a thread that has nothing else to do.
    /// How many.
    pub fn trim(&mut self) -> usize {
        let mut count = 0;
        while let Some(sandbox) = self.unneeded() {
            give_back(sandbox);
            count += 1;
        }
        count
    }

    /// Takes away one that was not needed since the last trim; none when this trim is complete.
    pub(crate) fn unneeded(&mut self) -> Option<Box<Sandbox>> {
        // Whichever is needed is the last of its shelf, and is put back as used just now.
        if self.idle.oldest().is_some_and(|(_, idle)| idle.trims != self.trims) {
            return self.evict();
        }
        self.trims = self.trims.wrapping_add(1);
        None
    }

    /// Number of idle sandboxes.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle.len()
    }

    /// Gives the idle sandboxes of a template back to the system: of a function that is served no longer.
    pub fn forget(&mut self, template: &Template) {
        if let Some(shelf) = self.shelves.remove(&template.key()) {
            debug_assert_eq!(shelf.template.key(), template.key());
            shelf.places.into_iter().for_each(|place| drop(self.idle.take(place)));
        }
    }

    /// Gives all idle sandboxes back to the system.
    pub fn clear(&mut self) {
        self.shelves.clear();
        self.idle = Recency::default();
    }
}
