//! Folders that an invocation may change for itself (`write = "scratch"`): copy-on-write over a folder of the host, which is never changed.
//!
//! ```text
//!   Place, File, Folder ──▶ Overlay, one for each grant ──▶ Tree    what was changed (no system calls)
//!   (as for any grant)        walk: path ─▶ node        ├─▶ Lower   the host's folder, only read
//!                                                       └─▶ Store   the private copies, and their limit; one for each invocation
//! ```
//!
//! What an invocation reads is the host's file. With the first write the file is copied, and everything that the invocation has open of it is the copy from then on.
//! New files, removed ones, names and times are noted in the tree. All of it belongs to the invocation and is gone when that is over, however it ends. So it is
//! safe to run an invocation ahead of time, or again ([`Effect::Scratch`](crate::host::Effect::Scratch)).
//!
//! One lock holds for a grant of an invocation. What may wait for a disk is done under it, on a thread for that ([`disk`](super::disk)). The worker's own thread
//! only tries it, except where nothing of the same guest can be under way.
//!
//! Others that change the host's folder meanwhile may be seen, or not, as with any grant.

mod changes;
mod file;
mod list;
mod lower;
mod store;
mod tree;
mod walk;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use cap_std::fs::Dir;
use rustix::time::{ClockId, clock_gettime};

use self::lower::Lower;
use self::tree::{Contents, ENTRY_BYTES_MAX, Id, Kind, ROOT, Tree};
use super::Errno;
use super::grants::{Access, Grant};
use super::stat::{Change, Stat, Times};

pub(super) use self::changes::Wanted;
pub(super) use self::file::ScratchFile;
use self::store::Store;
pub use self::store::Usage;

/// What an invocation sees of one granted folder.
#[derive(Debug)]
pub(in crate::host) struct Overlay {
    lower: Lower,
    store: Arc<Store>,
    tree: Mutex<Tree>,
    /// What was closed, to be taken note of by what locks the tree next: closing must not wait for that.
    closed: Mutex<Vec<Id>>,
}

/// What an invocation sees of those of its granted folders that it may change for itself.
#[derive(Debug)]
pub(super) struct Overlays {
    store: Arc<Store>,
    /// By the index of the grant; none for another kind of grant.
    all: Vec<Option<Arc<Overlay>>>,
}

impl Overlays {
    /// Those of an invocation that changed nothing; none where no grant is of that kind.
    pub(super) fn new(grants: &[Grant]) -> Option<Box<Overlays>> {
        let limit = |grant: &Grant| if let Access::Scratch { bytes_max } = grant.access { Some(bytes_max) } else { None };
        let store = Arc::new(Store::new(grants.iter().find_map(limit)?));
        let overlay = |grant: &Grant| {
            limit(grant)?;
            Some(Arc::new(Overlay::new(Arc::clone(&grant.dir), Arc::clone(&store))))
        };
        let all = grants.iter().map(overlay).collect();
        Some(Box::new(Overlays { store, all }))
    }

    /// That of a grant.
    pub(super) fn get(&self, grant: usize) -> Option<&Arc<Overlay>> {
        self.all.get(grant)?.as_ref()
    }

    /// Bytes that are kept for all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.store.bytes()
    }
}

/// An open folder.
#[derive(Debug)]
pub(in crate::host) struct ScratchFolder {
    overlay: Arc<Overlay>,
    id: Id,
}

/// What is opened.
#[derive(Debug)]
pub(super) enum Opened {
    File(ScratchFile),
    Folder(ScratchFolder),
}

/// A tree that is locked, and what was taken of the store for its changes.
struct Work<'o> {
    tree: MutexGuard<'o, Tree>,
    overlay: &'o Overlay,
    reserved: u64,
    before: u64,
}

impl Work<'_> {
    /// Takes room for so many entries that will be kept.
    fn reserve(&mut self, entries: u64) -> Result<(), Errno> {
        self.reserve_bytes(entries * ENTRY_BYTES_MAX)
    }

    /// Takes room for bytes beside entries.
    fn reserve_bytes(&mut self, bytes: u64) -> Result<(), Errno> {
        self.overlay.store.reserve(bytes)?;
        self.reserved += bytes;
        Ok(())
    }

    /// Takes room to [keep](Tree::keep) a node, and does so.
    fn keep(&mut self, id: Id) -> Result<(), Errno> {
        if !self.tree.is_kept(id) {
            self.reserve(1)?;
            self.tree.keep(id);
        }
        Ok(())
    }

    fn lower(&self) -> &Lower {
        &self.overlay.lower
    }

    fn store(&self) -> &Store {
        &self.overlay.store
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let vacated = self.tree.prune();
        let store = &self.overlay.store;
        for (slot, bytes) in vacated {
            store.vacate(slot, bytes);
        }
        // No more was kept than was reserved.
        store.release((self.reserved + self.before).saturating_sub(self.tree.kept_bytes()));
    }
}

impl Overlay {
    /// One over that folder, without changes.
    fn new(dir: Arc<Dir>, store: Arc<Store>) -> Overlay {
        // Its own numbers are asked for when it is looked at.
        Overlay { lower: Lower::new(dir), store, tree: Mutex::new(Tree::new((0, 0))), closed: Mutex::default() }
    }

    /// The granted folder.
    pub(super) fn root(self: &Arc<Self>) -> ScratchFolder {
        ScratchFolder { overlay: Arc::clone(self), id: ROOT }
    }

    fn work(&self) -> Work<'_> {
        self.working(self.tree.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, unless something of the invocation is under way.
    fn try_work(&self) -> Option<Work<'_>> {
        match self.tree.try_lock() {
            Ok(tree) => Some(self.working(tree)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.working(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn working<'o>(&'o self, mut tree: MutexGuard<'o, Tree>) -> Work<'o> {
        let before = tree.kept_bytes();
        let closed = std::mem::take(&mut *self.closed.lock().unwrap_or_else(PoisonError::into_inner));
        for id in closed {
            tree.close(id);
        }
        Work { tree, overlay: self, reserved: 0, before }
    }

    fn close(&self, id: Id) {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    fn opened_folder(self: &Arc<Self>, work: &mut Work<'_>, id: Id) -> ScratchFolder {
        work.tree.open(id);
        ScratchFolder { overlay: Arc::clone(self), id }
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if self.id != ROOT {
            self.overlay.close(self.id);
        }
    }
}

impl ScratchFolder {
    /// What is known of it.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        stat_of(&self.overlay.work(), self.id)
    }

    /// Changes its times.
    pub(super) fn set_times(&self, changes: [Change; 2]) -> Result<(), Errno> {
        set_times(&mut self.overlay.work(), self.id, changes)
    }

    /// What is known of a path below it.
    pub(super) fn stat_at(&self, path: &Path, follow: bool) -> Result<Stat, Errno> {
        let work = &self.overlay.work();
        let target = walk::walk(&work.tree, work.lower(), self.id, path, follow || walk::says_folder(path))?;
        match &target.found {
            walk::Found::Node(id) => stat_of(work, *id),
            walk::Found::Host(stat) => Ok(*stat),
            walk::Found::Nothing => Err(Errno::NOENT),
        }
        .and_then(|stat| {
            let is_wrong = target.is_folder && stat.ty != rustix::fs::FileType::Directory;
            if is_wrong { Err(Errno::NOTDIR) } else { Ok(stat) }
        })
    }
}

/// What is known of a node.
fn stat_of(work: &Work<'_>, id: Id) -> Result<Stat, Errno> {
    let node = work.tree.node(id).ok_or(Errno::STALE)?;
    let host = |node: &tree::Node| work.lower().stat(node.lower.as_deref().ok_or(Errno::STALE)?);
    let made = |bytes: u64, node: &tree::Node| Stat {
        device: node.identity.0,
        number: node.identity.1,
        ty: node.file_type(),
        names: node.names(),
        bytes,
        times: node.times.unwrap_or_default(),
    };
    let stat = match &node.kind {
        Kind::File(Contents::Private(_, bytes)) => return Ok(made(*bytes, node)),
        Kind::Folder(_) if node.lower.is_none() => Stat { names: 2, ..made(0, node) },
        Kind::Link(to) if node.lower.is_none() => made(to.as_os_str().len() as u64, node),
        Kind::File(Contents::Shared(Some(file))) => Stat::of_file(file)?,
        _ => host(node)?,
    };
    let stat = Stat { times: node.times.unwrap_or(stat.times), ..stat };
    // It stays the same thing, whatever others make of the host's.
    let (device, number) = node.identity;
    Ok(match &node.kind {
        _ if id == ROOT => stat,
        Kind::Folder(_) => Stat { device, number, ..stat },
        _ => Stat { device, number, names: node.names(), ..stat },
    })
}

/// The time, as a file system notes it.
fn now() -> rustix::fs::Timespec {
    clock_gettime(ClockId::RealtimeCoarse)
}

/// Changes the times of a node.
fn set_times(work: &mut Work<'_>, id: Id, [access, modification]: [Change; 2]) -> Result<(), Errno> {
    let before = stat_of(work, id)?.times;
    work.keep(id)?;
    let now = now();
    let times = Times {
        accessed: access.applied(before.accessed, now),
        modified: modification.applied(before.modified, now),
        changed: now,
    };
    if let Some(node) = work.tree.node_mut(id) {
        node.times = Some(times);
    }
    Ok(())
}

/// Notes that a node was changed now: a file's contents, or the names in a folder. What it was known to have before stays.
fn touch(work: &mut Work<'_>, id: Id) {
    let now = now();
    let before = stat_of(work, id).map_or_else(|_| Times::default(), |stat| stat.times);
    if let Some(node) = work.tree.node_mut(id) {
        node.times = Some(Times { modified: now, changed: now, ..before });
    }
}
