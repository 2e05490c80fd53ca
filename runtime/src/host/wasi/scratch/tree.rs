//! What an invocation has changed below one granted folder: a tree that lies over the host's. No system calls are here.
//!
//! The tree has a node for what was changed, for what is open, and for the folders above these. Anything else is as the host has it. An [`Entry`] says
//! what a name stands for in place of the host's: a node, or nothing.
//!
//! ```text
//!   host          tree                        what the guest sees
//!   a/one         a ── one: node, changed     a/one   the private copy
//!   a/two              two: gone              a/three
//!   a/three                                   a/four
//!                      four: node, made
//! ```
//!
//! A node that is as the host's, is not open and has nothing below it is given up again (*pruned*). So what a guest only reads is kept nowhere.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::store::Slot;
use crate::host::wasi::stat::Times;
use rustix::fs::FileType;

/// Bytes that are counted for an entry that is kept, beside its name.
const ENTRY_BYTES: u64 = 256;
/// Bytes of a name, as on Linux (NAME_MAX).
pub(super) const NAME_BYTES_MAX: usize = 255;
/// The most that an entry counts.
pub(super) const ENTRY_BYTES_MAX: u64 = ENTRY_BYTES + NAME_BYTES_MAX as u64;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u64);

/// The granted folder.
pub(super) const ROOT: Id = Id(0);

/// A file's contents.
#[derive(Debug)]
pub(super) enum Contents {
    /// The host's, and the host's file as long as it is open here.
    Shared(Option<Arc<fs::File>>),
    /// A private copy, with its length.
    Private(Slot, u64),
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Kind {
    /// What is said of the names in it; other names are as below [`Node::lower`], if there is that.
    Folder(BTreeMap<OsString, Entry>),
    File(Contents),
    /// Where it leads.
    Link(PathBuf),
    /// Of the host, and nothing that can be opened.
    Other(FileType),
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// None: nothing, whatever the host has.
    pub(super) node: Option<Id>,
    /// Whether the host has something of that name.
    pub(super) hides: bool,
    /// Whether this is other than at the host; counted.
    pub(super) is_kept: bool,
    /// Its place in a listing of what the host does not have, from [`FIRST_NUMBER`].
    pub(super) number: u64,
}

/// Before that are `.` and `..`.
pub(super) const FIRST_NUMBER: u64 = 3;

/// Something that was changed, is open, or has such things below it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The host's path, below the granted folder, of what it shows or showed.
    pub(super) lower: Option<PathBuf>,
    /// Device and number.
    pub(super) identity: (u64, u64),
    /// Its times, where they are not the host's.
    pub(super) times: Option<Times>,
    /// Names that the host has beside those here.
    pub(super) other_names: u64,
    names: u64,
    opens: u32,
    /// The last folder in which it got a name, and that name. The only one, unless it is a file.
    place: Option<(Id, OsString)>,
}

impl Node {
    pub(super) const fn new(kind: Kind, lower: Option<PathBuf>, identity: (u64, u64)) -> Node {
        Node { kind, lower, identity, times: None, other_names: 0, names: 0, opens: 0, place: None }
    }

    /// How many names it has.
    pub(super) const fn names(&self) -> u64 {
        self.other_names + self.names
    }

    /// Bytes of what a link says that was made here.
    pub(super) fn text_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Link(to) if self.lower.is_none() => to.as_os_str().len() as u64,
            _ => 0,
        }
    }

    pub(super) const fn file_type(&self) -> FileType {
        match &self.kind {
            Kind::Folder(_) => FileType::Directory,
            Kind::File(_) => FileType::RegularFile,
            Kind::Link(_) => FileType::Symlink,
            Kind::Other(ty) => *ty,
        }
    }
}

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: HashMap<Id, Node>,
    next: u64,
    next_number: u64,
    /// What the kept entries count.
    kept_bytes: u64,
    /// Nodes that are new, and may be of no use when what made them is over.
    fresh: Vec<Id>,
    /// Copies that nothing refers to any more, with their lengths.
    vacated: Vec<(Slot, u64)>,
}

fn entry_bytes(name: &OsStr) -> u64 {
    ENTRY_BYTES + name.len() as u64
}

impl Tree {
    /// One without changes.
    pub(super) fn new(identity: (u64, u64)) -> Tree {
        let root = Node::new(Kind::Folder(BTreeMap::new()), Some(PathBuf::new()), identity);
        Tree {
            nodes: HashMap::from([(ROOT, root)]),
            next: 1,
            next_number: FIRST_NUMBER,
            kept_bytes: 0,
            fresh: Vec::new(),
            vacated: Vec::new(),
        }
    }

    pub(super) const fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// A node; ids come from the tree itself, and stay with what is open or has a name.
    pub(super) fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(&id)
    }

    pub(super) fn node_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(&id)
    }

    /// What is said of the names in a folder.
    pub(super) fn entries(&self, folder: Id) -> Option<&BTreeMap<OsString, Entry>> {
        match &self.node(folder)?.kind {
            Kind::Folder(entries) => Some(entries),
            Kind::File(_) | Kind::Link(_) | Kind::Other(_) => None,
        }
    }

    /// What is said of a name in a folder.
    pub(super) fn entry(&self, folder: Id, name: &OsStr) -> Option<Entry> {
        self.entries(folder)?.get(name).copied()
    }

    /// The host's path of a name in a folder, where the host has that folder.
    pub(super) fn lower_of(&self, folder: Id, name: &OsStr) -> Option<PathBuf> {
        self.node(folder)?.lower.as_deref().map(|lower| lower.join(name))
    }

    /// The host's path of a folder itself.
    pub(super) fn lower(&self, folder: Id) -> Option<&Path> {
        self.node(folder)?.lower.as_deref()
    }

    /// Whether a folder was removed while it was open.
    pub(super) fn is_removed(&self, folder: Id) -> bool {
        folder != ROOT && self.node(folder).is_none_or(|node| node.names == 0)
    }

    /// Whether a folder is that one, or below it.
    pub(super) fn is_within(&self, folder: Id, above: Id) -> bool {
        let mut at = Some(folder);
        while let Some(id) = at {
            if id == above {
                return true;
            }
            at = self.node(id).and_then(|node| node.place.as_ref()).map(|(parent, _)| *parent);
        }
        false
    }

    fn insert(&mut self, node: Node) -> Id {
        let id = Id(self.next);
        self.next += 1;
        self.nodes.insert(id, node);
        id
    }

    /// Sets what a name stands for; what it was before.
    fn set(&mut self, folder: Id, name: &OsStr, entry: Option<Entry>) -> Option<Entry> {
        let Some(Node { kind: Kind::Folder(entries), .. }) = self.nodes.get_mut(&folder) else { return None };
        let bytes = |entry: Option<Entry>| if entry.is_some_and(|entry| entry.is_kept) { entry_bytes(name) } else { 0 };
        let before = match entry {
            Some(entry) => entries.insert(name.to_owned(), entry),
            None => entries.remove(name),
        };
        self.kept_bytes = self.kept_bytes + bytes(entry) - bytes(before);
        before
    }

    /// A node for what the host has under that name.
    pub(super) fn adopt(&mut self, folder: Id, name: &OsStr, mut node: Node) -> Id {
        (node.names, node.place) = (1, Some((folder, name.to_owned())));
        let id = self.insert(node);
        let number = self.number();
        self.set(folder, name, Some(Entry { node: Some(id), hides: true, is_kept: false, number }));
        self.fresh.push(id);
        id
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Gives what is new a name that nothing has. It counts at most [`ENTRY_BYTES_MAX`], and [what it says](Node::text_bytes).
    pub(super) fn make(&mut self, folder: Id, name: &OsStr, node: Node) -> Id {
        self.kept_bytes += node.text_bytes();
        let id = self.insert(node);
        self.name(folder, name, id);
        id
    }

    /// The number of the next node that is made, as its own.
    pub(super) const fn next_identity(&self) -> (u64, u64) {
        // No device of the host has the number 0.
        (0, self.next)
    }

    /// Gives a node a name that nothing has. It counts at most [`ENTRY_BYTES_MAX`].
    pub(super) fn name(&mut self, folder: Id, name: &OsStr, id: Id) {
        let hides = self.entry(folder, name).is_some_and(|entry| entry.hides);
        let number = self.number();
        self.set(folder, name, Some(Entry { node: Some(id), hides, is_kept: true, number }));
        if let Some(node) = self.nodes.get_mut(&id) {
            node.names += 1;
            node.place = Some((folder, name.to_owned()));
        }
    }

    /// Takes a name away from the node that has it. Where the host has something of that name, what is noted in its place counts at most [`ENTRY_BYTES_MAX`].
    pub(super) fn unname(&mut self, folder: Id, name: &OsStr) {
        let number = self.number();
        let Some(entry) = self.entry(folder, name) else { return };
        self.set(folder, name, entry.hides.then_some(Entry { node: None, hides: true, is_kept: true, number }));
        let Some(id) = entry.node else { return };
        if let Some(node) = self.nodes.get_mut(&id) {
            node.names = node.names.saturating_sub(1);
            if node.names == 0 {
                node.place = None;
            }
        }
        self.fresh.push(id);
    }

    /// Notes that the host has that name, and that it is gone here. It counts at most [`ENTRY_BYTES_MAX`].
    pub(super) fn hide(&mut self, folder: Id, name: &OsStr) {
        let number = self.number();
        self.set(folder, name, Some(Entry { node: None, hides: true, is_kept: true, number }));
    }

    /// Notes that a node is other than at the host. Each of its names counts at most [`ENTRY_BYTES_MAX`], which have been counted but for one.
    pub(super) fn keep(&mut self, id: Id) {
        let Some((folder, name)) = self.node(id).and_then(|node| node.place.clone()) else { return };
        if let Some(entry) = self.entry(folder, &name)
            && !entry.is_kept
        {
            self.set(folder, &name, Some(Entry { is_kept: true, ..entry }));
        }
    }

    /// Whether [`Self::keep`] would count anything.
    pub(super) fn is_kept(&self, id: Id) -> bool {
        let place = self.node(id).and_then(|node| node.place.as_ref());
        place.is_none_or(|(folder, name)| self.entry(*folder, name).is_none_or(|entry| entry.is_kept))
    }

    /// Notes that a node is open once more.
    pub(super) fn open(&mut self, id: Id) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.opens += 1;
        }
    }

    /// Notes that it is open once less.
    pub(super) fn close(&mut self, id: Id) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.opens = node.opens.saturating_sub(1);
        if node.opens == 0
            && let Kind::File(Contents::Shared(file)) = &mut node.kind
        {
            *file = None;
        }
        self.fresh.push(id);
    }

    /// Gives up the nodes that are of no use; the copies that went with them, with their lengths.
    pub(super) fn prune(&mut self) -> Vec<(Slot, u64)> {
        while let Some(id) = self.fresh.pop() {
            let mut next = Some(id);
            while let Some(id) = next {
                next = self.prune_one(id);
            }
        }
        std::mem::take(&mut self.vacated)
    }

    /// Gives a node up, if it is of no use; the folder that then may be of no use either.
    fn prune_one(&mut self, id: Id) -> Option<Id> {
        let node = self.nodes.get(&id)?;
        let is_empty = if let Kind::Folder(entries) = &node.kind { entries.is_empty() } else { true };
        if id == ROOT || node.opens > 0 {
            return None;
        }
        let above = match &node.place {
            // Nothing leads there any more.
            None if node.names == 0 => None,
            Some((folder, name)) if is_empty && self.entry(*folder, name).is_some_and(|entry| !entry.is_kept) => {
                Some((*folder, name.clone()))
            }
            _ => return None,
        };
        let node = self.nodes.remove(&id)?;
        self.kept_bytes -= node.text_bytes();
        if let Kind::File(Contents::Private(slot, bytes)) = node.kind {
            self.vacated.push((slot, bytes));
        }
        if let Kind::Folder(entries) = node.kind {
            // Only what is gone was in it: a folder with anything else cannot be removed.
            let kept = entries.iter().filter(|(_, entry)| entry.is_kept);
            self.kept_bytes -= kept.map(|(name, _)| entry_bytes(name)).sum::<u64>();
        }
        let (folder, name) = above?;
        self.set(folder, &name, None);
        Some(folder)
    }
}

#[cfg(test)]
mod tests;
