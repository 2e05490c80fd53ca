//! What is done with a path, always below a folder that is open: cap-std resolves it and refuses what leads out, whether by `..`, by an
//! absolute path or by a symbolic link. Where the invocation has its own changes, [`scratch`](super::scratch) resolves it in the same way.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{FileType, OFlags, fstat};

use super::Errno;
use super::contents::{Base, Contents};
use super::descriptors::Descriptor;
use super::paths::{OFLAGS_CREAT, OFLAGS_DIRECTORY, OFLAGS_EXCL, OFLAGS_TRUNC, Opening};
use super::scratch;
use super::stat::{self, FDFLAGS_APPEND, FDFLAGS_DSYNC, FDFLAGS_RSYNC, FDFLAGS_SYNC, Stat};

/// What a path below an open folder names. What is done with it may wait for the disk.
#[derive(Debug)]
pub(in crate::host) struct Place {
    pub(super) base: Base,
    pub(super) path: PathBuf,
}

/// What was found, open.
#[derive(Debug)]
pub(in crate::host) enum Opened {
    File(Contents),
    Folder(Base),
}

impl Place {
    /// A path below a folder that has to have that right.
    pub(in crate::host) fn below(folder: &Descriptor, path: PathBuf, right: u64) -> Result<Place, Errno> {
        Ok(Place { base: folder.folder(right)?.0.base.clone(), path })
    }

    /// Makes a folder.
    pub(in crate::host) fn create_directory(self) -> Result<(), Errno> {
        match &self.base {
            Base::Host(dir) => Ok(dir.create_dir(self.path)?),
            Base::Scratch(folder) => folder.create_directory(&self.path),
        }
    }

    /// What is known about it, or with `follow` about what a symbolic link leads to.
    pub(in crate::host) fn stat(&self, follow: bool) -> Result<Stat, Errno> {
        let dir = match &self.base {
            Base::Host(dir) => dir,
            Base::Scratch(folder) => return folder.stat_at(&self.path, follow),
        };
        // A slash at the end says that it is a folder, be it by way of a link; so does `.` behind one, which cap-std drops together with the slash.
        let bytes = self.path.as_os_str().as_bytes();
        let path = Path::new(OsStr::from_bytes(if bytes.ends_with(b"/.") { &bytes[..bytes.len() - 1] } else { bytes }));
        let is_folder = path.as_os_str().as_bytes().ends_with(b"/");
        let metadata = if follow || is_folder { dir.metadata(path) } else { dir.symlink_metadata(path) }?;
        Ok(Stat::from(&metadata))
    }

    /// Changes the times of access and modification.
    pub(in crate::host) fn set_times(self, follow: bool, changes: [stat::Change; 2]) -> Result<(), Errno> {
        let [access, modification] = changes;
        let specs = (access.spec()?, modification.spec()?);
        match &self.base {
            Base::Host(dir) => {
                let set = if follow { Dir::set_times } else { Dir::set_symlink_times };
                Ok(set(dir, self.path, specs.0, specs.1)?)
            }
            Base::Scratch(folder) => folder.set_times_at(&self.path, follow, changes),
        }
    }

    /// Gives it another name, be it a symbolic link.
    pub(in crate::host) fn link(self, to: Place) -> Result<(), Errno> {
        match (&self.base, &to.base) {
            (Base::Host(dir), Base::Host(to_dir)) => Ok(dir.hard_link(self.path, to_dir, to.path)?),
            (Base::Scratch(folder), Base::Scratch(to_folder)) => folder.link(&self.path, to_folder, &to.path),
            // Both belong to one grant.
            _ => Err(Errno::XDEV),
        }
    }

    /// What a symbolic link says.
    pub(in crate::host) fn read_link(self) -> Result<PathBuf, Errno> {
        match &self.base {
            Base::Host(dir) => Ok(dir.read_link(self.path)?),
            Base::Scratch(folder) => folder.read_link(&self.path),
        }
    }

    /// Removes a folder.
    pub(in crate::host) fn remove_directory(self) -> Result<(), Errno> {
        let dir = match &self.base {
            Base::Host(dir) => dir,
            Base::Scratch(folder) => return folder.remove_directory(&self.path),
        };
        // Slashes at the end say that it is a folder, which it has to be anyway; cap-std does not take them here. What is all slashes is absolute.
        let bytes = self.path.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len(), |last| last + 1);
        let path = OsStr::from_bytes(&bytes[..end]);
        if end < bytes.len() && dir.symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
            // The slashes lead to what the link names, which is not removed by that name. It may lead out.
            dir.metadata(path)?;
            return Err(Errno::NOTDIR);
        }
        Ok(dir.remove_dir(path)?)
    }

    /// Renames it.
    pub(in crate::host) fn rename(self, to: Place) -> Result<(), Errno> {
        match (&self.base, &to.base) {
            (Base::Host(dir), Base::Host(to_dir)) => Ok(dir.rename(self.path, to_dir, to.path)?),
            (Base::Scratch(folder), Base::Scratch(to_folder)) => folder.rename(&self.path, to_folder, &to.path),
            // Both belong to one grant.
            _ => Err(Errno::XDEV),
        }
    }

    /// Makes a symbolic link: an absolute target is refused; any other is followed only as long as it stays inside.
    pub(in crate::host) fn symlink(self, target: PathBuf) -> Result<(), Errno> {
        match &self.base {
            Base::Host(dir) => Ok(dir.symlink(target, self.path)?),
            Base::Scratch(folder) => folder.symlink(target, &self.path),
        }
    }

    /// Removes a file.
    pub(in crate::host) fn unlink(self) -> Result<(), Errno> {
        match &self.base {
            Base::Host(dir) => Ok(dir.remove_file(self.path)?),
            Base::Scratch(folder) => folder.unlink(&self.path),
        }
    }

    /// Opens it.
    pub(in crate::host) fn open(&self, opening: Opening) -> Result<Opened, Errno> {
        match &self.base {
            Base::Host(dir) => open(dir, &self.path, opening),
            Base::Scratch(folder) => {
                let Opening { follow, oflags, fdflags, write: writes, .. } = opening;
                let has = |flag: u32| oflags & flag != 0;
                let wanted = scratch::Wanted {
                    follow,
                    creates: has(OFLAGS_CREAT),
                    exclusive: has(OFLAGS_EXCL),
                    truncates: has(OFLAGS_TRUNC),
                    writes,
                    folder: has(OFLAGS_DIRECTORY),
                    appends: fdflags & FDFLAGS_APPEND != 0,
                };
                Ok(match folder.open(&self.path, wanted)? {
                    scratch::Opened::File(file) => Opened::File(Contents::Scratch(Arc::new(file))),
                    scratch::Opened::Folder(folder) => Opened::Folder(Base::Scratch(Arc::new(folder))),
                })
            }
        }
    }
}

/// Opens what the host has.
fn open(dir: &Dir, path: &Path, opening: Opening) -> Result<Opened, Errno> {
    let Opening { follow, oflags, fdflags, read, write, may_change, .. } = opening;
    let mut options = OpenOptions::new();
    options.follow(if follow { FollowSymlinks::Yes } else { FollowSymlinks::No });
    options.dsync(fdflags & FDFLAGS_DSYNC != 0).sync(fdflags & (FDFLAGS_SYNC | FDFLAGS_RSYNC) != 0);
    // A pipe must not hold up anybody until its type is known.
    options.nonblock(true);
    if oflags & OFLAGS_DIRECTORY != 0 {
        options.custom_flags(OFlags::DIRECTORY.bits().cast_signed());
    }
    let creates = oflags & OFLAGS_CREAT != 0;
    let truncates = oflags & OFLAGS_TRUNC != 0;
    let exclusive = creates && oflags & OFLAGS_EXCL != 0;
    let file = if creates && !write && !truncates && !exclusive || !may_change {
        // What is there need not be writable; only to make a new one it has to be opened for writing.
        match dir.open_with(path, options.clone().read(true)) {
            Ok(_) if exclusive => return Err(Errno::EXIST),
            Err(error) if creates && error.kind() == io::ErrorKind::NotFound => {
                if !may_change {
                    return Err(Errno::ROFS);
                }
                dir.open_with(path, options.read(read).write(true).create(true))?
            }
            other => other?,
        }
    } else {
        options.write(write || creates || truncates).read(read || !(write || creates || truncates));
        options.create(creates).create_new(exclusive).truncate(truncates);
        dir.open_with(path, &options)?
    };
    let file = file.into_std();
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Ok(Opened::Folder(Base::Host(Arc::new(Dir::from_std_file(file))))),
        // Devices, pipes and sockets may wait for ever, and are more than the contents of a folder.
        _ => return Err(Errno::NOTSUP),
    }
    // cap-std opens nothing to truncate it and then append.
    if fdflags & FDFLAGS_APPEND != 0 {
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | OFlags::APPEND)?;
    }
    Ok(Opened::File(Contents::Host(Arc::new(file))))
}
