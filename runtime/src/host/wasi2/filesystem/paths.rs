//! What is done with a path below a folder.

use std::path::PathBuf;
use std::sync::Arc;

use super::files::{
    DATA_INTEGRITY_SYNC, FILE_INTEGRITY_SYNC, MUTATE_DIRECTORY, READ, REQUESTED_WRITE_SYNC, WRITE, changes, hash_of, stat_of,
};
use super::{FileDescriptor, Form, descriptor, just_on_disk, on_disk};
use crate::host::wasi::descriptors::{DESCRIPTORS_MAX, Open};
use crate::host::wasi::paths::{self, OFLAGS_CREAT, OFLAGS_DIRECTORY, OFLAGS_EXCL, OFLAGS_TRUNC, Opening, PATH_BYTES_MAX};
use crate::host::wasi::place::Place;
use crate::host::wasi::stat::{FDFLAGS_DSYNC, FDFLAGS_RSYNC, FDFLAGS_SYNC};
use crate::host::wasi::{Errno, rights};
use crate::host::{Call, Flat, Stop};

/// `path-flags`
const SYMLINK_FOLLOW: u32 = 1 << 0;
/// `open-flags`
pub(super) const CREATE: u32 = 1 << 0;
const DIRECTORY: u32 = 1 << 1;
const EXCLUSIVE: u32 = 1 << 2;
pub(super) const TRUNCATE: u32 = 1 << 3;

/// What a path among the arguments names, below the descriptor that is another and has to have that right. A path that can be none is told to the
/// component; what is not even a string is a trap.
fn place<F: Form>(call: &mut Call<'_>, descriptor: usize, path: usize, right: u64) -> Result<Result<Place, Errno>, Stop> {
    let path = self::path(call, path)?;
    let descriptor = self::descriptor::<F>(call, descriptor)?;
    Ok(path.and_then(|path| Place::below(descriptor, path, right)))
}

/// The string that is two arguments, as a path.
fn path(call: &Call<'_>, index: usize) -> Result<Result<PathBuf, Errno>, Stop> {
    Ok(call.text_within(index, PATH_BYTES_MAX)?.ok_or(Errno::NAMETOOLONG).and_then(|path| paths::checked(&path)))
}

/// Two places, of which something goes from the first to the second.
fn places<F: Form>(
    call: &mut Call<'_>,
    from: (usize, usize, u64),
    to: (usize, usize, u64),
) -> Result<Result<(Place, Place), Errno>, Stop> {
    let [source, target] = [place::<F>(call, from.0, from.1, from.2)?, place::<F>(call, to.0, to.1, to.2)?];
    let [one, other] = [from.0, to.0].map(|index| Ok::<_, Stop>(descriptor::<F>(call, index)?.grant()));
    let (one, other) = (one?, other?);
    Ok(source.and_then(|source| {
        let target = target?;
        if one? == other? { Ok((source, target)) } else { Err(Errno::XDEV) }
    }))
}

/// Whether a symbolic link at a path's end is followed.
fn follows(call: &Call<'_>, index: usize) -> bool {
    call.args.u32(index) & SYMLINK_FOLLOW != 0
}

/// `create-directory-at(self, path: string) -> result<_, error-code>`
pub(super) fn create_directory_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = place::<F>(call, 1, 2, rights::PATH_CREATE_DIRECTORY)?.map(|place| move || place.create_directory());
    just_on_disk::<F>(call, 4, work)
}

/// `stat-at(self, path-flags, path: string) -> result<descriptor-stat, error-code>`
pub(super) fn stat_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let follow = follows(call, 2);
    let work = place::<F>(call, 1, 3, rights::PATH_FILESTAT_GET)?.map(|place| move || place.stat(follow));
    on_disk::<F, _, _>(call, 5, work, |_, stat| Ok(stat_of::<F>(&stat)))
}

/// `metadata-hash-at(self, path-flags, path: string) -> result<metadata-hash-value, error-code>`
pub(super) fn metadata_hash_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let follow = follows(call, 2);
    let work = place::<F>(call, 1, 3, rights::PATH_FILESTAT_GET)?.map(|place| move || place.stat(follow));
    on_disk::<F, _, _>(call, 5, work, |_, stat| Ok(hash_of(&stat)))
}

/// `set-times-at(self, path-flags, path: string, data-access-timestamp, data-modification-timestamp) -> result<_, error-code>`
pub(super) fn set_times_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let follow = follows(call, 2);
    let changes = changes::<F>(call, 5)?;
    let place = place::<F>(call, 1, 3, rights::PATH_FILESTAT_SET_TIMES)?;
    let work = place.and_then(|place| changes.map(|changes| move || place.set_times(follow, changes)));
    just_on_disk::<F>(call, 11, work)
}

/// `link-at(self, old-path-flags, old-path: string, new-descriptor: borrow<descriptor>, new-path: string) -> result<_, error-code>`
pub(super) fn link_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let places = places::<F>(call, (1, 3, rights::PATH_LINK_SOURCE), (5, 6, rights::PATH_LINK_TARGET))?;
    let places = if follows(call, 2) { Err(Errno::INVAL) } else { places };
    just_on_disk::<F>(call, 8, places.map(|(from, to)| move || from.link(to)))
}

/// `rename-at(self, old-path: string, new-descriptor: borrow<descriptor>, new-path: string) -> result<_, error-code>`
pub(super) fn rename_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let places = places::<F>(call, (1, 2, rights::PATH_RENAME_SOURCE), (4, 5, rights::PATH_RENAME_TARGET))?;
    just_on_disk::<F>(call, 7, places.map(|(from, to)| move || from.rename(to)))
}

/// `symlink-at(self, old-path: string, new-path: string) -> result<_, error-code>`: the old path is what the link says.
pub(super) fn symlink_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = path(call, 2)?;
    let place = place::<F>(call, 1, 4, rights::PATH_SYMLINK)?;
    let work = place.and_then(|place| target.map(|target| move || place.symlink(target)));
    just_on_disk::<F>(call, 6, work)
}

/// `readlink-at(self, path: string) -> result<string, error-code>`
pub(super) fn readlink_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = place::<F>(call, 1, 2, rights::PATH_READLINK)?.map(|place| move || place.read_link());
    on_disk::<F, _, _>(call, 4, work, |_, target: PathBuf| {
        target.into_os_string().into_string().map_err(|_| Stop::Errno(Errno::ILSEQ))
    })
}

/// `remove-directory-at(self, path: string) -> result<_, error-code>`
pub(super) fn remove_directory_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = place::<F>(call, 1, 2, rights::PATH_REMOVE_DIRECTORY)?.map(|place| move || place.remove_directory());
    just_on_disk::<F>(call, 4, work)
}

/// `unlink-file-at(self, path: string) -> result<_, error-code>`
pub(super) fn unlink_file_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = place::<F>(call, 1, 2, rights::PATH_UNLINK_FILE)?.map(|place| move || place.unlink());
    just_on_disk::<F>(call, 4, work)
}

/// `open-at(self, path-flags, path: string, open-flags, descriptor-flags) -> result<descriptor, error-code>`
pub(super) fn open_at<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let place = place::<F>(call, 1, 3, rights::PATH_OPEN)?;
    let opening = opening::<F>(call)?;
    let share = Arc::clone(call.context.ports.open_files_share());
    let counted = if Arc::strong_count(&share) > DESCRIPTORS_MAX { Err(Errno::MFILE) } else { Open::take(Some(share)) };
    let work = place.and_then(|place| {
        let (opening, counted) = (opening?, counted?);
        Ok(move || Ok((opening, place.open(opening).map_err(|errno| opening.refused(errno))?, counted)))
    });
    let mutates = call.args.u32(6) & MUTATE_DIRECTORY != 0;
    on_disk::<F, _, _>(call, 7, work, move |call, (opening, opened, counted)| {
        let descriptor = opening.descriptor(opened, counted, rights::FOLDER | rights::FILE);
        call.give(FileDescriptor::<F>::new(descriptor, mutates))
    })
}

/// How it is to be opened.
fn opening<F: Form>(call: &mut Call<'_>) -> Result<Result<Opening, Errno>, Stop> {
    /// `open-flags` and what preview 1 has for them.
    const OFLAGS: [(u32, u32); 4] =
        [(CREATE, OFLAGS_CREAT), (DIRECTORY, OFLAGS_DIRECTORY), (EXCLUSIVE, OFLAGS_EXCL), (TRUNCATE, OFLAGS_TRUNC)];
    /// `descriptor-flags` and what preview 1 has for them.
    const FDFLAGS: [(u32, u16); 3] =
        [(FILE_INTEGRITY_SYNC, FDFLAGS_SYNC), (DATA_INTEGRITY_SYNC, FDFLAGS_DSYNC), (REQUESTED_WRITE_SYNC, FDFLAGS_RSYNC)];
    let (follow, open_flags, flags) = (follows(call, 2), call.args.u32(5), call.args.u32(6));
    let oflags = OFLAGS.iter().filter(|(flag, _)| open_flags & flag != 0).fold(0, |oflags, (_, oflag)| oflags | oflag);
    let fdflags = FDFLAGS.iter().filter(|(flag, _)| flags & flag != 0).fold(0, |fdflags, (_, fdflag)| fdflags | fdflag);
    let mut base = rights::FILE | rights::FOLDER;
    // What makes or truncates a file can write to it, and what can do neither can read it.
    let writes = flags & WRITE != 0 || open_flags & (CREATE | TRUNCATE) != 0;
    if flags & READ == 0 && flags & WRITE != 0 {
        base &= !rights::FD_READ;
    }
    if !writes {
        base &= !(rights::FD_WRITE | rights::FD_ALLOCATE | rights::FD_FILESTAT_SET_SIZE);
    }
    let folder = descriptor::<F>(call, 1)?;
    Ok(Opening::below(folder, follow, oflags, fdflags, base))
}
