//! From a path to what it names: along private changes where there are any, and else along the host's folders.
//!
//! As cap-std does for other grants, a walk never leaves the folder in which it begins, be it by `..`, by an absolute path or by a symbolic link.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::lower::Lower;
use super::tree::{Contents, Id, Kind, NAME_BYTES_MAX, Node, Tree};
use crate::host::wasi::Errno;
use crate::host::wasi::stat::Stat;

/// Symbolic links that are followed on one walk, as on Linux (MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

/// A folder on a walk.
#[derive(Debug)]
pub(super) struct Position {
    /// The folders from the first on that have nodes; never empty.
    nodes: Vec<Id>,
    /// Behind these, folders that are only the host's.
    below: Vec<OsString>,
}

/// What a name stands for.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Node(Id),
    /// Only the host has it.
    Host(Stat),
}

/// What a path names.
#[derive(Debug)]
pub(super) struct Target {
    /// The folder.
    pub(super) at: Position,
    /// The name in that folder; none for the folder itself.
    pub(super) name: Option<OsString>,
    pub(super) found: Found,
    /// Whether a slash says that it is a folder.
    pub(super) is_folder: bool,
}

impl Position {
    const fn last(&self) -> Option<Id> {
        self.nodes.as_slice().last().copied()
    }

    /// One folder up.
    fn up(&mut self) -> Result<(), Errno> {
        if self.below.pop().is_none() {
            if self.nodes.len() == 1 {
                return Err(Errno::NOTCAPABLE);
            }
            self.nodes.pop();
        }
        Ok(())
    }

    /// The host's path of a name there, if the host has the folder.
    fn lower_of(&self, tree: &Tree, name: &OsStr) -> Option<PathBuf> {
        let mut path = tree.lower(self.last()?)?.to_owned();
        path.extend(&self.below);
        path.push(name);
        Some(path)
    }

    fn find(&self, tree: &Tree, lower: &Lower, name: &OsStr) -> Result<Found, Errno> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        if self.below.is_empty()
            && let Some(entry) = self.last().and_then(|folder| tree.entry(folder, name))
        {
            return Ok(entry.node.map_or(Found::Nothing, Found::Node));
        }
        let Some(path) = self.lower_of(tree, name) else { return Ok(Found::Nothing) };
        Ok(lower.find(&path)?.map_or(Found::Nothing, Found::Host))
    }

    /// A node for the folder.
    ///
    /// # Errors
    /// `ENOENT` when it was removed.
    pub(super) fn settle(&mut self, tree: &mut Tree, lower: &Lower) -> Result<Id, Errno> {
        for name in self.below.drain(..) {
            let Some(folder) = self.nodes.last().copied() else { break };
            let id = match tree.entry(folder, &name).map(|entry| entry.node) {
                Some(id) => id.ok_or(Errno::NOENT)?,
                None => {
                    let path = tree.lower_of(folder, &name).ok_or(Errno::NOENT)?;
                    let stat = lower.stat(&path)?;
                    tree.adopt(folder, &name, shown(path, &stat, lower)?)
                }
            };
            self.nodes.push(id);
        }
        self.last().filter(|folder| !tree.is_removed(*folder)).ok_or(Errno::NOENT)
    }
}

/// A node for what the host has at that path.
fn shown(path: PathBuf, stat: &Stat, lower: &Lower) -> Result<Node, Errno> {
    let kind = match stat.ty {
        FileType::Directory => Kind::Folder(std::collections::BTreeMap::new()),
        FileType::RegularFile => Kind::File(Contents::Shared(None)),
        FileType::Symlink => Kind::Link(lower.read_link(&path)?),
        other => Kind::Other(other),
    };
    let mut node = Node::new(kind, Some(path), (stat.device, stat.number));
    node.other_names = stat.names.saturating_sub(1);
    Ok(node)
}

impl Target {
    /// Its type; none where there is nothing.
    pub(super) fn file_type(&self, tree: &Tree) -> Option<FileType> {
        match &self.found {
            Found::Nothing => None,
            Found::Node(id) => tree.node(*id).map(Node::file_type),
            Found::Host(stat) => Some(stat.ty),
        }
    }

    /// A node for what is there.
    ///
    /// # Errors
    /// `ENOENT` where there is nothing.
    pub(super) fn settle(&mut self, tree: &mut Tree, lower: &Lower) -> Result<Id, Errno> {
        let folder = self.at.settle(tree, lower)?;
        let Some(name) = &self.name else { return Ok(folder) };
        // What goes before this may have given it a node meanwhile.
        if let Some(entry) = tree.entry(folder, name) {
            return entry.node.ok_or(Errno::NOENT);
        }
        let Found::Host(stat) = &self.found else { return Err(Errno::NOENT) };
        let path = tree.lower_of(folder, name).ok_or(Errno::NOENT)?;
        let node = shown(path, stat, lower)?;
        Ok(tree.adopt(folder, name, node))
    }
}

/// The names of a path, from the last to the first, and whether it ends as that of a folder.
fn names(path: &Path) -> (Vec<OsString>, bool) {
    let bytes = path.as_os_str().as_bytes();
    let names: Vec<OsString> = bytes
        .rsplit(|byte| *byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect();
    (names, says_folder(path))
}

/// Whether a path ends as only that of a folder does.
pub(super) fn says_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

/// Walks along a path from an open folder; `follow`: also where a link is at its end.
///
/// # Errors
/// `ENOTCAPABLE` where it leads out, and what the system would say.
pub(super) fn walk(tree: &Tree, lower: &Lower, from: Id, path: &Path, follow: bool) -> Result<Target, Errno> {
    if path.has_root() {
        return Err(Errno::NOTCAPABLE);
    }
    let mut at = Position { nodes: vec![from], below: Vec::new() };
    let (mut left, mut is_folder) = names(path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == ".." {
            at.up()?;
            continue;
        }
        let found = at.find(tree, lower, &name)?;
        let is_last = left.is_empty();
        let target = Target { at, name: Some(name), found, is_folder };
        match target.file_type(tree) {
            Some(FileType::Symlink) if !is_last || follow => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                let to = leads_to(tree, lower, &target)?;
                if to.has_root() {
                    return Err(Errno::NOTCAPABLE);
                }
                let (more, says_folder) = names(&to);
                is_folder |= is_last && says_folder;
                left.extend(more);
                at = target.at;
            }
            _ if is_last => return Ok(target),
            Some(FileType::Directory) => at = target.enter(),
            Some(_) => return Err(Errno::NOTDIR),
            None => return Err(Errno::NOENT),
        }
    }
    let found = if at.below.is_empty() { at.last().map_or(Found::Nothing, Found::Node) } else { here(tree, lower, &at)? };
    Ok(Target { at, name: None, found, is_folder: true })
}

/// The folder itself, where only the host has it.
fn here(tree: &Tree, lower: &Lower, at: &Position) -> Result<Found, Errno> {
    let path = at.lower_of(tree, OsStr::new("")).ok_or(Errno::NOENT)?;
    Ok(Found::Host(lower.stat(&path)?))
}

/// What a symbolic link says.
fn leads_to(tree: &Tree, lower: &Lower, link: &Target) -> Result<PathBuf, Errno> {
    match (&link.found, &link.name) {
        (Found::Node(id), _) => match tree.node(*id).map(|node| &node.kind) {
            Some(Kind::Link(to)) => Ok(to.clone()),
            _ => Err(Errno::INVAL),
        },
        (Found::Host(_), Some(name)) => lower.read_link(&link.at.lower_of(tree, name).ok_or(Errno::NOENT)?),
        _ => Err(Errno::NOENT),
    }
}

impl Target {
    /// The host's path of it, if the host has the folder.
    pub(super) fn lower_path(&self, tree: &Tree) -> Option<PathBuf> {
        self.at.lower_of(tree, self.name.as_deref().unwrap_or(OsStr::new("")))
    }

    /// Into the folder that it is.
    fn enter(self) -> Position {
        let mut at = self.at;
        match (self.found, self.name) {
            (Found::Node(id), _) => at.nodes.push(id),
            (_, Some(name)) => at.below.push(name),
            _ => {}
        }
        at
    }
}
