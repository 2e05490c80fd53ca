//! Listing a folder.
//!
//! A cookie is the position that the kernel gave with an entry. So nothing is kept between calls: each opens the folder anew, goes to the
//! guest's cookie, and reads on from there.

use std::io;
use std::os::fd::OwnedFd;
use std::str;

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom, fstat, openat, seek, statat};

use super::contents::Base;
use super::disk::on_disk;
use super::stat::filetype;
use super::{Errno, rights};
use crate::host::{Call, Stop};

/// Bytes of a listing that are made at a time; for more, others get their turn in between.
pub(super) const LISTING_BYTES: usize = 32 << 10;
/// Bytes of entries that are asked of the kernel at a time; the longest entry has 280.
const ENTRIES_BYTES: usize = 8 << 10;
/// Bytes of a `dirent`, before its name.
const DIRENT_BYTES: usize = 24;

/// A piece of a listing.
struct Listing {
    /// Entries with their names, as the guest gets them.
    bytes: Vec<u8>,
    /// Where to go on.
    cookie: u64,
    /// Whether these are the last.
    last: bool,
}

/// A folder opened for what needs a descriptor that was not only opened as a place to begin paths at.
pub(super) fn itself(dir: &Dir) -> io::Result<OwnedFd> {
    Ok(openat(dir, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// `fd_readdir(fd, buffer: *u8, bytes: size, cookie: dircookie, used: *size)`: fewer bytes used than the buffer has mean that this is all;
/// an entry that does not fit is cut off.
pub(super) fn fd_readdir(call: &mut Call<'_>) -> Result<(), Stop> {
    let (buffer, bytes, used) = (call.args.address(1), u64::from(call.args.u32(2)), call.args.address(4));
    let base = call.context.ports.descriptors()?.folder(call.args.u32(0), rights::FD_READDIR)?.0.base.clone();
    let (memory, _) = call.split()?;
    memory.slice(buffer, bytes)?;
    memory.slice(used, 4)?;
    let cookie = call.args.u64(3);
    go_on(call, base, 0, cookie)
}

/// Lists a folder into what is left of the guest's buffer behind `done` bytes.
fn go_on(call: &mut Call<'_>, base: Base, done: u64, cookie: u64) -> Result<(), Stop> {
    let (buffer, bytes, used) = (call.args.address(1), u64::from(call.args.u32(2)), call.args.address(4));
    let room = (bytes - done) as usize;
    let work = move || Ok((dirents(&base, cookie, room.min(LISTING_BYTES))?, base));
    on_disk(call, work, move |call, (listing, base)| {
        let (memory, _) = call.split()?;
        let now = &listing.bytes[..listing.bytes.len().min(room)];
        memory.write(buffer + done, now)?;
        let done = done + now.len() as u64;
        if !listing.last && done < bytes {
            return go_on(call, base, done, listing.cookie);
        }
        // No more than the buffer, whose size has 32 bits.
        memory.write_u32(used, done as u32)?;
        Ok(())
    })
}

/// An entry of a folder.
#[derive(Debug)]
pub(in crate::host) struct Entry<'e> {
    /// Where to go on behind it.
    pub(super) cookie: u64,
    pub(super) inode: u64,
    pub(in crate::host) ty: FileType,
    pub(in crate::host) name: &'e str,
}

/// At least `room` bytes of entries from `cookie` on, or all there are.
fn dirents(base: &Base, cookie: u64, room: usize) -> Result<Listing, Errno> {
    let mut listing = Listing { bytes: Vec::with_capacity(room), cookie, last: false };
    (listing.cookie, listing.last) = base.list(cookie, |entry| {
        let Entry { cookie, inode, ty, name } = entry;
        // { d_next: u64, d_ino: u64, d_namlen: u32, d_type: u8 }
        let mut dirent = [0; DIRENT_BYTES];
        dirent[..8].copy_from_slice(&cookie.to_le_bytes());
        dirent[8..16].copy_from_slice(&inode.to_le_bytes());
        dirent[16..20].copy_from_slice(&(name.len() as u32).to_le_bytes());
        dirent[20] = filetype(ty);
        listing.bytes.extend_from_slice(&dirent);
        listing.bytes.extend_from_slice(name.as_bytes());
        listing.bytes.len() < room
    })?;
    Ok(listing)
}

/// Lists a folder from `cookie` on, as long as `each` wants more. Where to go on, and whether all were listed.
///
/// # Errors
/// What the system says.
pub(super) fn list(dir: &Dir, mut cookie: u64, mut each: impl FnMut(Entry<'_>) -> bool) -> rustix::io::Result<(u64, bool)> {
    let folder = itself(dir).map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))?;
    if cookie != 0 {
        if i64::try_from(cookie).is_err() {
            return Err(rustix::io::Errno::INVAL);
        }
        seek(&folder, SeekFrom::Start(cookie))?;
    }
    let own = fstat(&folder)?.st_ino;
    let mut entries = Vec::with_capacity(ENTRIES_BYTES);
    let mut entries = RawDir::new(&folder, entries.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        cookie = entry.next_entry_cookie();
        let name = entry.file_name();
        // Names are UTF-8 in WASI: what has another one cannot be named.
        let Ok(text) = str::from_utf8(name.to_bytes()) else { continue };
        // Of what lies outside a granted folder not even the number is told.
        let inode = if name == c".." { own } else { entry.ino() };
        let ty = match entry.file_type() {
            FileType::Unknown => statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        if !each(Entry { cookie, inode, ty, name: text }) {
            return Ok((cookie, false));
        }
    }
    Ok((cookie, true))
}
