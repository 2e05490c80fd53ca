//! The stories of the last executions of a tenant's workflows, in memory.
//!
//! Each workflow has [`STORIES_MAX`], and a tenant [`BYTES_MAX`] of them. They count in the server's budget as tables of answers do: where that is exhausted the oldest go, and they take nothing from others.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sledge_sandbox::{Budget, Reclaim};

use super::explained::{Explained, Kept};
use super::tale::{About, Tale};
use crate::memo::room::Room;

/// Stories of a workflow.
pub(super) const STORIES_MAX: usize = 64;
/// Bytes of all stories of a tenant.
pub(super) const BYTES_MAX: usize = 2 << 20;
/// They take memory of the server by so many bytes.
const STEP_BYTES: usize = 16 << 10;

/// The stories of a tenant.
pub struct Stories(Mutex<Shelf>);

#[derive(Debug)]
struct Shelf {
    /// Of each workflow, by name; the oldest one first.
    of: HashMap<Arc<str>, VecDeque<Told>>,
    /// How many were told so far.
    told: u64,
    bytes: usize,
    room: Room,
    /// What they have of the server's memory.
    counted: usize,
}

#[derive(Debug)]
struct Told {
    /// How many were told before.
    number: u64,
    bytes: usize,
    tale: Arc<Tale>,
}

impl fmt::Debug for Stories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stories").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl Stories {
    /// None yet; they share a budget with all else that the server keeps.
    #[must_use]
    pub fn new(budget: Option<Arc<Budget>>) -> Arc<Stories> {
        let (of, room) = (HashMap::new(), Room::new(budget.clone()));
        let stories = Arc::new(Stories(Mutex::new(Shelf { of, told: 0, bytes: 0, room, counted: 0 })));
        if let Some(budget) = budget {
            let owner: Weak<Stories> = Arc::downgrade(&stories);
            budget.lend(owner);
        }
        stories
    }

    /// What the last execution of a workflow did, or the last one of that name or ARN.
    #[must_use]
    pub fn explain(&self, workflow: &str, execution: Option<&str>) -> Option<Explained> {
        let tale = {
            let shelf = self.shelf();
            let is_it = |told: &&Told| {
                let About { name, id, .. } = &told.tale.about;
                execution.is_none_or(|execution| **name == *execution || **id == *execution)
            };
            Arc::clone(&shelf.of.get(workflow)?.iter().rev().find(is_it)?.tale)
        };
        Some(tale.explained())
    }

    /// The executions of a workflow of which there are stories, the last one first.
    #[must_use]
    pub fn list(&self, workflow: &str) -> Kept {
        let tales: Vec<Arc<Tale>> = {
            let shelf = self.shelf();
            shelf.of.get(workflow).into_iter().flatten().rev().map(|told| Arc::clone(&told.tale)).collect()
        };
        Kept { executions: tales.iter().map(|tale| tale.listed()).collect() }
    }

    /// Bytes of all stories.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shelf().bytes
    }

    pub(super) fn keep(&self, tale: Arc<Tale>) {
        let bytes = tale.bytes();
        let mut shelf = self.shelf();
        let number = shelf.told;
        shelf.told += 1;
        shelf.bytes += bytes;
        let of = shelf.of.entry(Arc::clone(&tale.about.workflow)).or_default();
        of.push_back(Told { number, bytes, tale });
        let oldest = if of.len() > STORIES_MAX { of.pop_front() } else { None };
        shelf.bytes -= oldest.map_or(0, |told| told.bytes);
        while shelf.bytes > BYTES_MAX && shelf.evict() {}
        shelf.fit();
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Insertions and removals, which cannot be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    /// Drops the oldest story.
    fn evict(&mut self) -> bool {
        let first = |told: &VecDeque<Told>| told.front().map(|told| told.number);
        let oldest = self.of.iter().filter_map(|(workflow, told)| Some((first(told)?, Arc::clone(workflow)))).min();
        let Some((_, workflow)) = oldest else { return false };
        let Some(of) = self.of.get_mut(&workflow) else { return false };
        self.bytes -= of.pop_front().map_or(0, |told| told.bytes);
        if of.is_empty() {
            self.of.remove(&workflow);
        }
        true
    }

    /// Has them counted as they are now. Where there is no memory left for that, the oldest go.
    fn fit(&mut self) {
        loop {
            let counted = self.bytes.next_multiple_of(STEP_BYTES);
            if counted == self.counted || self.room.resize(counted) {
                self.counted = counted;
                return;
            }
            if !self.evict() {
                return;
            }
        }
    }
}

/// Requests need memory: stories go for that.
impl Reclaim for Stories {
    fn reclaim(&self, bytes: u64) -> bool {
        let mut shelf = self.shelf();
        let had = shelf.counted;
        while (had.saturating_sub(shelf.bytes.next_multiple_of(STEP_BYTES)) as u64) < bytes && shelf.evict() {}
        shelf.fit();
        shelf.counted < had
    }
}
