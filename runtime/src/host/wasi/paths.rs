//! What is done with a path, always below a folder that is open: cap-std resolves it and refuses what leads out, whether by `..`, by an
//! absolute path or by a symbolic link.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{FileType, OFlags, fstat};
use sledge_sandbox::GuestMemory;

use super::descriptors::{Descriptor, File, Folder, Kind, Open};
use super::disk::{just_on_disk, on_disk};
use super::stat::{self, FDFLAGS_APPEND, FDFLAGS_DSYNC, FDFLAGS_RSYNC, FDFLAGS_SYNC, FILESTAT_BYTES};
use super::{Errno, rights};
use crate::host::{Call, Stop};

/// Bytes of a path, as on Linux (PATH_MAX).
pub(in crate::host) const PATH_BYTES_MAX: u64 = 4_096;

const LOOKUPFLAGS_SYMLINK_FOLLOW: u32 = 1;
pub(in crate::host) const OFLAGS_CREAT: u32 = 1 << 0;
pub(in crate::host) const OFLAGS_DIRECTORY: u32 = 1 << 1;
pub(in crate::host) const OFLAGS_EXCL: u32 = 1 << 2;
pub(in crate::host) const OFLAGS_TRUNC: u32 = 1 << 3;
const OFLAGS_ALL: u32 = OFLAGS_CREAT | OFLAGS_DIRECTORY | OFLAGS_EXCL | OFLAGS_TRUNC;

/// Reads a path.
fn path(memory: &GuestMemory<'_>, address: u64, bytes: u32) -> Result<PathBuf, Stop> {
    let text = memory.slice(address, u64::from(bytes))?;
    if u64::from(bytes) > PATH_BYTES_MAX {
        return Err(Errno::NAMETOOLONG.into());
    }
    Ok(checked(std::str::from_utf8(text).map_err(|_| Errno::ILSEQ)?)?)
}

/// The text as a path, if it may be one.
///
/// # Errors
/// When it is empty, too long, or has a zero.
pub(in crate::host) fn checked(text: &str) -> Result<PathBuf, Errno> {
    if text.len() as u64 > PATH_BYTES_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    if text.contains('\0') {
        return Err(Errno::INVAL);
    }
    if text.is_empty() {
        return Err(Errno::NOENT);
    }
    Ok(PathBuf::from(text))
}

/// What a path below an open folder names. What is done with it may wait for the disk.
#[derive(Debug)]
pub(in crate::host) struct Place {
    dir: Arc<Dir>,
    path: PathBuf,
}

impl Place {
    /// A path below a folder that has to have that right.
    pub(in crate::host) fn below(folder: &Descriptor, path: PathBuf, right: u64) -> Result<Place, Errno> {
        Ok(Place { dir: Arc::clone(&folder.folder(right)?.0.dir), path })
    }

    /// Makes a folder.
    pub(in crate::host) fn create_directory(self) -> Result<(), Errno> {
        Ok(self.dir.create_dir(self.path)?)
    }

    /// What is known about it, or with `follow` about what a symbolic link leads to.
    pub(in crate::host) fn metadata(&self, follow: bool) -> Result<Metadata, Errno> {
        // A slash at the end says that it is a folder, be it by way of a link; so does `.` behind one, which cap-std drops together with the slash.
        let bytes = self.path.as_os_str().as_bytes();
        let path = Path::new(OsStr::from_bytes(if bytes.ends_with(b"/.") { &bytes[..bytes.len() - 1] } else { bytes }));
        let is_folder = path.as_os_str().as_bytes().ends_with(b"/");
        Ok(if follow || is_folder { self.dir.metadata(path) } else { self.dir.symlink_metadata(path) }?)
    }

    /// Changes the times of access and modification.
    pub(in crate::host) fn set_times(self, follow: bool, [access, modification]: [stat::Change; 2]) -> Result<(), Errno> {
        let set = if follow { Dir::set_times } else { Dir::set_symlink_times };
        Ok(set(&self.dir, self.path, access.spec()?, modification.spec()?)?)
    }

    /// Gives it another name, be it a symbolic link.
    pub(in crate::host) fn link(self, to: Place) -> Result<(), Errno> {
        Ok(self.dir.hard_link(self.path, &to.dir, to.path)?)
    }

    /// What a symbolic link says.
    pub(in crate::host) fn read_link(self) -> Result<PathBuf, Errno> {
        Ok(self.dir.read_link(self.path)?)
    }

    /// Removes a folder.
    pub(in crate::host) fn remove_directory(self) -> Result<(), Errno> {
        // Slashes at the end say that it is a folder, which it has to be anyway; cap-std does not take them here. What is all slashes is absolute.
        let bytes = self.path.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len(), |last| last + 1);
        let path = OsStr::from_bytes(&bytes[..end]);
        if end < bytes.len() && self.dir.symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
            // The slashes lead to what the link names, which is not removed by that name. It may lead out.
            self.dir.metadata(path)?;
            return Err(Errno::NOTDIR);
        }
        Ok(self.dir.remove_dir(path)?)
    }

    /// Renames it.
    pub(in crate::host) fn rename(self, to: Place) -> Result<(), Errno> {
        Ok(self.dir.rename(self.path, &to.dir, to.path)?)
    }

    /// Makes a symbolic link: an absolute target is refused; any other is followed only as long as it stays inside.
    pub(in crate::host) fn symlink(self, target: PathBuf) -> Result<(), Errno> {
        Ok(self.dir.symlink(target, self.path)?)
    }

    /// Removes a file.
    pub(in crate::host) fn unlink(self) -> Result<(), Errno> {
        Ok(self.dir.remove_file(self.path)?)
    }
}

/// Whether both folders belong to one grant: files go from one to the other only within one, since grants may differ in what they allow.
///
/// # Errors
/// When they do not, or one is no folder.
fn check_grants(from: &Descriptor, to: &Descriptor) -> Result<(), Errno> {
    if from.grant()? == to.grant()? { Ok(()) } else { Err(Errno::XDEV) }
}

/// Whether a symbolic link at a path's end is followed.
fn follows(flags: u32) -> Result<bool, Errno> {
    if flags & !LOOKUPFLAGS_SYMLINK_FOLLOW == 0 { Ok(flags != 0) } else { Err(Errno::INVAL) }
}

/// The folder of argument `fd`, which must have that right, and the path of the two arguments from `at` on.
fn place(call: &mut Call<'_>, fd: usize, at: usize, right: u64) -> Result<Place, Stop> {
    let dir = Arc::clone(&call.context.ports.descriptors()?.folder(call.args.u32(fd), right)?.0.dir);
    let (address, bytes) = (call.args.address(at), call.args.u32(at + 1));
    Ok(Place { dir, path: path(call.memory_mut()?, address, bytes)? })
}

/// Two places of which files go from one to the other.
fn places(call: &mut Call<'_>, from: (usize, usize, u64), to: (usize, usize, u64)) -> Result<[Place; 2], Stop> {
    let places = [place(call, from.0, from.1, from.2)?, place(call, to.0, to.1, to.2)?];
    let descriptors = call.context.ports.descriptors()?;
    check_grants(descriptors.get(call.args.u32(from.0))?, descriptors.get(call.args.u32(to.0))?)?;
    Ok(places)
}

/// `path_create_directory(fd, path: *u8, bytes: size)`
pub(super) fn path_create_directory(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = place(call, 0, 1, rights::PATH_CREATE_DIRECTORY)?;
    just_on_disk(call, move || place.create_directory())
}

/// `path_filestat_get(fd, flags: lookupflags, path: *u8, bytes: size, stat: *filestat)`
pub(super) fn path_filestat_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = place(call, 0, 2, rights::PATH_FILESTAT_GET)?;
    let (follow, at) = (follows(call.args.u32(1))?, call.args.address(4));
    call.memory_mut()?.slice(at, FILESTAT_BYTES as u64)?;
    on_disk(
        call,
        move || place.metadata(follow),
        move |call, metadata: Metadata| Ok(call.memory_mut()?.write(at, &stat::filestat(&metadata))?),
    )
}

/// `path_filestat_set_times(fd, flags: lookupflags, path: *u8, bytes: size, atim: timestamp, mtim: timestamp, times: fstflags)`
pub(super) fn path_filestat_set_times(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = place(call, 0, 2, rights::PATH_FILESTAT_SET_TIMES)?;
    let follow = follows(call.args.u32(1))?;
    let changes = stat::changes(call.args.u64(4), call.args.u64(5), call.args.u32(6))?;
    just_on_disk(call, move || place.set_times(follow, changes))
}

/// `path_link(fd, flags: lookupflags, path: *u8, bytes: size, to: fd, to_path: *u8, to_bytes: size)`: names what the path names, be it a
/// symbolic link.
pub(super) fn path_link(call: &mut Call<'_>) -> Result<(), Stop> {
    if follows(call.args.u32(1))? {
        return Err(Errno::INVAL.into());
    }
    let [from, to] = places(call, (0, 2, rights::PATH_LINK_SOURCE), (4, 5, rights::PATH_LINK_TARGET))?;
    just_on_disk(call, move || from.link(to))
}

/// `path_readlink(fd, path: *u8, bytes: size, buffer: *u8, buffer_bytes: size, used: *size)`: what does not fit is cut off.
pub(super) fn path_readlink(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = place(call, 0, 1, rights::PATH_READLINK)?;
    let (buffer, bytes, used) = (call.args.address(3), call.args.u32(4), call.args.address(5));
    let (memory, _) = call.split()?;
    memory.slice(buffer, u64::from(bytes))?;
    memory.slice(used, 4)?;
    on_disk(
        call,
        move || place.read_link(),
        move |call, target: PathBuf| {
            let target = target.as_os_str().as_bytes();
            let (memory, _) = call.split()?;
            let fits = &target[..target.len().min(bytes as usize)];
            memory.write(buffer, fits)?;
            memory.write_u32(used, fits.len() as u32)?;
            Ok(())
        },
    )
}

/// `path_remove_directory(fd, path: *u8, bytes: size)`
pub(super) fn path_remove_directory(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = place(call, 0, 1, rights::PATH_REMOVE_DIRECTORY)?;
    just_on_disk(call, move || place.remove_directory())
}

/// `path_rename(fd, path: *u8, bytes: size, to: fd, to_path: *u8, to_bytes: size)`
pub(super) fn path_rename(call: &mut Call<'_>) -> Result<(), Stop> {
    let [from, to] = places(call, (0, 1, rights::PATH_RENAME_SOURCE), (3, 4, rights::PATH_RENAME_TARGET))?;
    just_on_disk(call, move || from.rename(to))
}

/// `path_symlink(target: *u8, target_bytes: size, fd, path: *u8, bytes: size)`
pub(super) fn path_symlink(call: &mut Call<'_>) -> Result<(), Stop> {
    let (address, bytes) = (call.args.address(0), call.args.u32(1));
    let place = place(call, 2, 3, rights::PATH_SYMLINK)?;
    let target = path(call.memory_mut()?, address, bytes)?;
    just_on_disk(call, move || place.symlink(target))
}

/// `path_unlink_file(fd, path: *u8, bytes: size)`
pub(super) fn path_unlink_file(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = place(call, 0, 1, rights::PATH_UNLINK_FILE)?;
    just_on_disk(call, move || place.unlink())
}

/// How something is to be opened.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Opening {
    follow: bool,
    oflags: u32,
    fdflags: u16,
    read: bool,
    write: bool,
    /// Whether the grant is for writing.
    may_change: bool,
    /// The grant's index.
    grant: usize,
    /// Rights of the descriptor, as far as they apply to what is found.
    base: u64,
}

impl Opening {
    /// How a guest wants something opened below that folder, with descriptors that have at most these rights.
    ///
    /// # Errors
    /// When the folder or its grant does not allow it.
    pub(in crate::host) fn below(
        folder: &Descriptor,
        follow: bool,
        oflags: u32,
        fdflags: u16,
        base: u64,
    ) -> Result<Opening, Errno> {
        if oflags & !OFLAGS_ALL != 0 || (oflags & OFLAGS_DIRECTORY != 0 && oflags & (OFLAGS_CREAT | OFLAGS_TRUNC) != 0) {
            return Err(Errno::INVAL);
        }
        let (&Folder { grant, write: may_change, .. }, passed_on) = folder.folder(rights::PATH_OPEN)?;
        let (read, write) = (base & rights::FD_READ != 0, base & rights::FD_WRITE != 0);
        if base & (rights::FD_READ | rights::FD_WRITE) & !passed_on != 0 {
            return Err(Errno::NOTCAPABLE);
        }
        if may_change && oflags & OFLAGS_CREAT != 0 {
            folder.with(rights::PATH_CREATE_FILE)?;
        }
        if oflags & OFLAGS_TRUNC != 0 {
            folder.with(rights::PATH_FILESTAT_SET_SIZE)?;
        }
        if write && !may_change {
            return Err(Errno::ROFS);
        }
        Ok(Opening { follow, oflags, fdflags, read, write, may_change, grant, base: base & passed_on })
    }

    /// What a component is told where the grant is only for reading: not what it would be told of a disk that is.
    pub(in crate::host) fn refused(self, errno: Errno) -> Errno {
        if errno == Errno::ROFS && !self.may_change { Errno::PERM } else { errno }
    }

    /// What was opened, as a descriptor that passes on these rights.
    pub(in crate::host) fn descriptor(self, opened: Opened, open: Open, inheriting: u64) -> Descriptor {
        let Opening { fdflags, may_change, grant, .. } = self;
        let open = Arc::new(open);
        let (kind, applicable) = match opened {
            Opened::File(file) => {
                (Kind::File(File { file: Arc::new(file), flags: fdflags, write: may_change, open }), rights::FILE)
            }
            Opened::Folder(dir) => {
                let folder = Folder { dir: Arc::new(dir), grant, write: may_change, granted: false, open: Some(open) };
                (Kind::Folder(folder), rights::FOLDER)
            }
        };
        let rest = if may_change { 0 } else { rights::CHANGING };
        Descriptor { kind, base: self.base & applicable & !rest, inheriting }
    }
}

/// `path_open(fd, lookup: lookupflags, path: *u8, bytes: size, oflags, base: rights, inheriting: rights, fdflags, opened: *fd)`
pub(super) fn path_open(call: &mut Call<'_>) -> Result<(), Stop> {
    let (oflags, base, inheriting) = (call.args.u32(4), call.args.u64(5), call.args.u64(6));
    let (follow, fdflags) = (follows(call.args.u32(1))?, stat::fdflags(call.args.u32(7))?);
    let result = call.args.address(8);
    let place = place(call, 0, 2, rights::PATH_OPEN)?;
    call.memory_mut()?.slice(result, 4)?;
    let descriptors = call.context.ports.descriptors()?;
    let folder = descriptors.get(call.args.u32(0))?;
    let opening = Opening::below(folder, follow, oflags, fdflags, base)?;
    let inheriting = inheriting & folder.inheriting;
    descriptors.vacant()?;
    let counted = Open::take(None)?;
    on_disk(
        call,
        move || place.open(opening),
        move |call, opened| {
            let descriptor = opening.descriptor(opened, counted, inheriting);
            let fd = call.context.ports.descriptors_mut()?.insert(descriptor)?;
            call.memory_mut()?.write_u32(result, fd)?;
            Ok(())
        },
    )
}

/// What was found, open.
#[derive(Debug)]
pub(in crate::host) enum Opened {
    File(std::fs::File),
    Folder(Dir),
}

impl Place {
    /// Opens it.
    pub(in crate::host) fn open(&self, opening: Opening) -> Result<Opened, Errno> {
        open(&self.dir, &self.path, opening)
    }
}

fn open(dir: &Dir, path: &PathBuf, opening: Opening) -> Result<Opened, Errno> {
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
        FileType::Directory => return Ok(Opened::Folder(Dir::from_std_file(file))),
        // Devices, pipes and sockets may wait for ever, and are more than the contents of a folder.
        _ => return Err(Errno::NOTSUP),
    }
    // cap-std opens nothing to truncate it and then append.
    if fdflags & FDFLAGS_APPEND != 0 {
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | OFlags::APPEND)?;
    }
    Ok(Opened::File(file))
}
