//! What changes names: making, removing, renaming, linking.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::file::ScratchFile;
use super::tree::{Contents, Id, Kind, Node};
use super::walk::{Found, Target, says_folder, walk};
use super::{Opened, ScratchFolder, Work, now, touch};
use crate::host::wasi::Errno;
use crate::host::wasi::stat::{Change, Times};

/// How something is to be opened.
#[derive(Clone, Copy, Debug)]
pub(in crate::host::wasi) struct Wanted {
    pub(in crate::host::wasi) follow: bool,
    /// Make a file where there is nothing.
    pub(in crate::host::wasi) creates: bool,
    /// Only if there is nothing.
    pub(in crate::host::wasi) exclusive: bool,
    pub(in crate::host::wasi) truncates: bool,
    pub(in crate::host::wasi) writes: bool,
    /// Only a folder.
    pub(in crate::host::wasi) folder: bool,
    /// Each write goes to the end.
    pub(in crate::host::wasi) appends: bool,
}

/// What a path names, without following a link at its end.
fn target(work: &Work<'_>, from: Id, path: &Path) -> Result<Target, Errno> {
    walk(&work.tree, work.lower(), from, path, false)
}

/// Makes something under a name that nothing has.
fn make(work: &mut Work<'_>, mut target: Target, kind: Kind) -> Result<Id, Errno> {
    let name = target.name.take().ok_or(Errno::EXIST)?;
    work.reserve(1)?;
    let overlay = work.overlay;
    let folder = target.at.settle(&mut work.tree, &overlay.lower)?;
    let mut node = Node::new(kind, None, work.tree.next_identity());
    let now = now();
    node.times = Some(Times { accessed: now, modified: now, changed: now });
    let id = work.tree.make(folder, &name, node);
    touch(work, folder);
    Ok(id)
}

/// Takes away the name of what is there. Room for a note of that has to be reserved.
fn remove(work: &mut Work<'_>, target: &mut Target) -> Result<(), Errno> {
    let overlay = work.overlay;
    let folder = target.at.settle(&mut work.tree, &overlay.lower)?;
    let name = target.name.as_ref().ok_or(Errno::INVAL)?;
    if work.tree.entry(folder, name).is_some() {
        work.tree.unname(folder, name);
    } else {
        work.tree.hide(folder, name);
    }
    touch(work, folder);
    Ok(())
}

/// Takes room for the note that a name is gone, if there has to be one.
fn reserve_removal(work: &mut Work<'_>, target: &Target) -> Result<(), Errno> {
    let is_made = match &target.found {
        Found::Node(id) => work.tree.node(*id).is_some_and(|node| node.lower.is_none()),
        Found::Nothing | Found::Host(_) => false,
    };
    // What was made here may stand where the host had something: then its entry is replaced by one that counts as much.
    if is_made { Ok(()) } else { work.reserve(1) }
}

/// Whether a folder has nothing in it.
fn is_empty(work: &Work<'_>, target: &Target) -> Result<bool, Errno> {
    match &target.found {
        Found::Node(id) => {
            let Some(entries) = work.tree.entries(*id) else { return Ok(true) };
            if entries.values().any(|entry| entry.node.is_some()) {
                return Ok(false);
            }
            match work.tree.lower(*id) {
                Some(path) => work.lower().is_empty(path, |name| entries.contains_key(name)),
                None => Ok(true),
            }
        }
        Found::Host(_) => {
            let path = target.lower_path(&work.tree).ok_or(Errno::NOENT)?;
            work.lower().is_empty(&path, |_| false)
        }
        Found::Nothing => Err(Errno::NOENT),
    }
}

impl ScratchFolder {
    /// Makes a folder.
    pub(in crate::host::wasi) fn create_directory(&self, path: &Path) -> Result<(), Errno> {
        let mut work = self.overlay.work();
        let target = target(&work, self.id, path)?;
        match target.found {
            Found::Nothing => make(&mut work, target, Kind::Folder(BTreeMap::new())).map(drop),
            Found::Node(_) | Found::Host(_) => Err(Errno::EXIST),
        }
    }

    /// Makes a symbolic link.
    pub(in crate::host::wasi) fn symlink(&self, to: PathBuf, path: &Path) -> Result<(), Errno> {
        if to.has_root() {
            return Err(Errno::NOTCAPABLE);
        }
        let mut work = self.overlay.work();
        let target = target(&work, self.id, path)?;
        match target.found {
            Found::Nothing if target.is_folder => Err(Errno::NOENT),
            Found::Nothing => {
                work.reserve_bytes(to.as_os_str().len() as u64)?;
                make(&mut work, target, Kind::Link(to)).map(drop)
            }
            Found::Node(_) | Found::Host(_) => Err(Errno::EXIST),
        }
    }

    /// What a symbolic link says.
    pub(in crate::host::wasi) fn read_link(&self, path: &Path) -> Result<PathBuf, Errno> {
        let work = self.overlay.work();
        let target = target(&work, self.id, path)?;
        let to = match (target.file_type(&work.tree), &target.found) {
            (None, _) => return Err(Errno::NOENT),
            (Some(FileType::Symlink), Found::Node(id)) => match work.tree.node(*id).map(|node| &node.kind) {
                Some(Kind::Link(to)) => to.clone(),
                _ => return Err(Errno::INVAL),
            },
            (Some(FileType::Symlink), _) => work.lower().read_link(&target.lower_path(&work.tree).ok_or(Errno::NOENT)?)?,
            _ => return Err(Errno::INVAL),
        };
        // As elsewhere: what leads out is not told.
        if to.has_root() { Err(Errno::NOTCAPABLE) } else { Ok(to) }
    }

    /// Removes a file or a link.
    pub(in crate::host::wasi) fn unlink(&self, path: &Path) -> Result<(), Errno> {
        let mut work = self.overlay.work();
        let mut target = target(&work, self.id, path)?;
        match target.file_type(&work.tree) {
            None => Err(Errno::NOENT),
            Some(FileType::Directory) => Err(Errno::ISDIR),
            Some(_) if target.is_folder => Err(Errno::NOTDIR),
            Some(_) => {
                reserve_removal(&mut work, &target)?;
                remove(&mut work, &mut target)
            }
        }
    }

    /// Removes a folder.
    pub(in crate::host::wasi) fn remove_directory(&self, path: &Path) -> Result<(), Errno> {
        let mut work = self.overlay.work();
        let mut target = target(&work, self.id, path)?;
        match target.file_type(&work.tree) {
            None => Err(Errno::NOENT),
            Some(FileType::Directory) if target.name.is_none() => Err(Errno::INVAL),
            Some(FileType::Directory) => {
                if !is_empty(&work, &target)? {
                    return Err(Errno::NOTEMPTY);
                }
                reserve_removal(&mut work, &target)?;
                remove(&mut work, &mut target)
            }
            Some(_) => Err(Errno::NOTDIR),
        }
    }

    /// Renames what is there; the other folder belongs to the same grant.
    pub(in crate::host::wasi) fn rename(&self, path: &Path, to: &ScratchFolder, to_path: &Path) -> Result<(), Errno> {
        let mut work = self.overlay.work();
        let work = &mut work;
        let overlay = work.overlay;
        let (mut source, mut target) = (target(work, self.id, path)?, target(work, to.id, to_path)?);
        let Some(ty) = source.file_type(&work.tree) else { return Err(Errno::NOENT) };
        let is_folder = ty == FileType::Directory;
        if source.name.is_none() || target.name.is_none() {
            return Err(Errno::BUSY);
        }
        if (source.is_folder || target.is_folder) && !is_folder {
            return Err(Errno::NOTDIR);
        }
        let replaced = target.file_type(&work.tree);
        let id = source.settle(&mut work.tree, &overlay.lower)?;
        let folder = target.at.settle(&mut work.tree, &overlay.lower)?;
        if is_folder && work.tree.is_within(folder, id) {
            return Err(Errno::INVAL);
        }
        if replaced.is_some() {
            if target.settle(&mut work.tree, &overlay.lower)? == id {
                return Ok(());
            }
            match (is_folder, replaced == Some(FileType::Directory)) {
                (true, false) => return Err(Errno::NOTDIR),
                (false, true) => return Err(Errno::ISDIR),
                (true, true) if !is_empty(work, &target)? => return Err(Errno::NOTEMPTY),
                _ => {}
            }
        }
        // The note that the old name is gone, and the new name, which takes the place of such a note where something was replaced.
        work.reserve(3)?;
        if replaced.is_some() {
            remove(work, &mut target)?;
        }
        remove(work, &mut source)?;
        name(work, folder, target.name, id)
    }

    /// Gives what is there another name; the other folder belongs to the same grant.
    pub(in crate::host::wasi) fn link(&self, path: &Path, to: &ScratchFolder, to_path: &Path) -> Result<(), Errno> {
        let mut work = self.overlay.work();
        let work = &mut work;
        let overlay = work.overlay;
        let (mut source, mut target) = (target(work, self.id, path)?, target(work, to.id, to_path)?);
        match source.file_type(&work.tree) {
            None => return Err(Errno::NOENT),
            Some(FileType::Directory) => return Err(Errno::PERM),
            Some(_) if source.is_folder => return Err(Errno::NOTDIR),
            Some(_) => {}
        }
        if !matches!(target.found, Found::Nothing) {
            return Err(Errno::EXIST);
        }
        if target.is_folder {
            return Err(Errno::NOENT);
        }
        let id = source.settle(&mut work.tree, &overlay.lower)?;
        let folder = target.at.settle(&mut work.tree, &overlay.lower)?;
        work.reserve(1)?;
        work.keep(id)?;
        name(work, folder, target.name, id)
    }

    /// Changes the times of what is there.
    pub(in crate::host::wasi) fn set_times_at(&self, path: &Path, follow: bool, changes: [Change; 2]) -> Result<(), Errno> {
        let mut work = self.overlay.work();
        let overlay = work.overlay;
        let mut target = walk(&work.tree, &overlay.lower, self.id, path, follow)?;
        if target.is_folder && target.file_type(&work.tree).is_some_and(|ty| ty != FileType::Directory) {
            return Err(Errno::NOTDIR);
        }
        let id = target.settle(&mut work.tree, &overlay.lower)?;
        super::set_times(&mut work, id, changes)
    }

    /// Opens a file or folder.
    pub(in crate::host::wasi) fn open(&self, path: &Path, wanted: Wanted) -> Result<Opened, Errno> {
        let mut work = self.overlay.work();
        let work = &mut work;
        let overlay = work.overlay;
        let follow = wanted.follow && !(wanted.creates && wanted.exclusive);
        let mut target = walk(&work.tree, &overlay.lower, self.id, path, follow || says_folder(path))?;
        let Some(ty) = target.file_type(&work.tree) else {
            if !wanted.creates {
                return Err(Errno::NOENT);
            }
            if target.is_folder {
                return Err(Errno::ISDIR);
            }
            let slot = work.store().slot()?;
            let id = make(work, target, Kind::File(Contents::Private(slot, 0)))?;
            return Ok(Opened::File(ScratchFile::open(&self.overlay, work, id, wanted.appends)?));
        };
        if wanted.creates && wanted.exclusive {
            return Err(Errno::EXIST);
        }
        match ty {
            FileType::Directory if wanted.truncates || wanted.writes => Err(Errno::ISDIR),
            FileType::Directory => {
                let id = target.settle(&mut work.tree, &overlay.lower)?;
                Ok(Opened::Folder(self.overlay.opened_folder(work, id)))
            }
            _ if wanted.folder || target.is_folder => Err(Errno::NOTDIR),
            FileType::RegularFile => {
                let id = target.settle(&mut work.tree, &overlay.lower)?;
                if wanted.truncates {
                    super::file::resize(work, id, 0)?;
                }
                Ok(Opened::File(ScratchFile::open(&self.overlay, work, id, wanted.appends)?))
            }
            FileType::Symlink => Err(Errno::LOOP),
            _ => Err(Errno::NOTSUP),
        }
    }
}

/// Gives a node a name that nothing has.
fn name(work: &mut Work<'_>, folder: Id, name: Option<OsString>, id: Id) -> Result<(), Errno> {
    work.tree.name(folder, &name.ok_or(Errno::INVAL)?, id);
    touch(work, folder);
    Ok(())
}
