//! The functions that are given a path. What is done with it is in [`place`](super::place).

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use sledge_sandbox::GuestMemory;

use super::descriptors::{Descriptor, File, Folder, Kind, Open};
use super::disk::{just_on_disk, on_disk};
use super::place::{Opened, Place};
use super::stat::{self, FILESTAT_BYTES, Stat};
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
    let base = call.context.ports.descriptors()?.folder(call.args.u32(fd), right)?.0.base.clone();
    let (address, bytes) = (call.args.address(at), call.args.u32(at + 1));
    Ok(Place { base, path: path(call.memory_mut()?, address, bytes)? })
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
    on_disk(call, move || place.stat(follow), move |call, stat: Stat| Ok(call.memory_mut()?.write(at, &stat::filestat(&stat))?))
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
    pub(super) follow: bool,
    pub(super) oflags: u32,
    pub(super) fdflags: u16,
    pub(super) read: bool,
    pub(super) write: bool,
    /// Whether the grant allows changes.
    pub(super) may_change: bool,
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
            Opened::File(contents) => (Kind::File(File { contents, flags: fdflags, write: may_change, open }), rights::FILE),
            Opened::Folder(base) => {
                let folder = Folder { base, grant, write: may_change, granted: false, open: Some(open) };
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
