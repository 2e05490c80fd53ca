//! An open file: the host's until something is written to it, then the private copy.

use std::io::{IoSliceMut, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::{ReadWriteFlags, preadv2};

use super::tree::{Contents, Id, Kind};
use super::{Overlay, Work, set_times, stat_of, touch};
use crate::host::wasi::Errno;
use crate::host::wasi::files::{To, retry};
use crate::host::wasi::stat::{Change, Stat};

/// Bytes that are copied at a time.
const COPY_BYTES: usize = 256 << 10;

/// An open file. Its position is its own, as that of any descriptor.
#[derive(Debug)]
pub(in crate::host) struct ScratchFile {
    overlay: Arc<Overlay>,
    id: Id,
    // Relaxed, both: a descriptor is used by one call of its guest at a time.
    position: AtomicU64,
    appends: AtomicBool,
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        self.overlay.close(self.id);
    }
}

/// Where the bytes are that are read.
enum Source {
    Copy,
    Host(Arc<std::fs::File>),
}

impl ScratchFile {
    /// Opens a node that is a file.
    pub(super) fn open(overlay: &Arc<Overlay>, work: &mut Work<'_>, id: Id, appends: bool) -> Result<ScratchFile, Errno> {
        shared(work, id)?;
        work.tree.open(id);
        let (position, appends) = (AtomicU64::new(0), AtomicBool::new(appends));
        Ok(ScratchFile { overlay: Arc::clone(overlay), id, position, appends })
    }

    /// Reads, where that waits for no disk and nothing else of the invocation; `None` where it might.
    pub(in crate::host::wasi) fn read_now(&self, at: Option<u64>, bytes: &mut [u8]) -> Option<usize> {
        let start = self.start(at);
        let mut work = self.overlay.try_work()?;
        let (from, count) = read(&mut work, self.id, start, bytes).ok()?;
        drop(work);
        let count = match from {
            Source::Copy => count,
            Source::Host(file) => preadv2(&*file, &mut [IoSliceMut::new(bytes)], start, ReadWriteFlags::NOWAIT).ok()?,
        };
        self.read_to(at, start, count);
        Some(count)
    }

    /// Reads from an offset, or from where the file is.
    pub(in crate::host::wasi) fn read(&self, at: Option<u64>, bytes: &mut [u8]) -> Result<usize, Errno> {
        let start = self.start(at);
        let (from, count) = read(&mut self.overlay.work(), self.id, start, bytes)?;
        let count = match from {
            Source::Copy => count,
            Source::Host(file) => retry(|| file.read_at(bytes, start))?,
        };
        self.read_to(at, start, count);
        Ok(count)
    }

    fn start(&self, at: Option<u64>) -> u64 {
        at.unwrap_or_else(|| self.position.load(Ordering::Relaxed))
    }

    fn read_to(&self, at: Option<u64>, start: u64, count: usize) {
        if at.is_none() {
            self.position.store(start + count as u64, Ordering::Relaxed);
        }
    }

    /// Writes some of the bytes; as many as there is room for.
    pub(in crate::host::wasi) fn write(&self, to: To, bytes: &[u8]) -> Result<usize, Errno> {
        let mut work = self.overlay.work();
        if bytes.is_empty() {
            return Ok(0);
        }
        let before = private(&mut work, self.id, u64::MAX)?;
        let start = match to {
            _ if self.appends.load(Ordering::Relaxed) => before,
            To::End => before,
            To::Position => self.position.load(Ordering::Relaxed),
            To::Offset(at) => at,
        };
        let end = start.checked_add(bytes.len() as u64).filter(|end| i64::try_from(*end).is_ok()).ok_or(Errno::FBIG)?;
        let end = grow(&mut work, self.id, end.max(before), start.saturating_add(1)).map(|length| length.min(end))?;
        let bytes = &bytes[..(end - start) as usize];
        let (slot, length) = copy_of(&work, self.id)?;
        if let Err(errno) = work.store().write(slot, start, bytes) {
            work.store().resize(slot, length, before)?;
            set_length(&mut work, self.id, before);
            return Err(errno);
        }
        touch(&mut work, self.id);
        if to == To::Position {
            self.position.store(end, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    /// Moves the position.
    pub(in crate::host::wasi) fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        let moved = |from: u64, by: i64| from.checked_add_signed(by);
        let position = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => moved(self.position.load(Ordering::Relaxed), by),
            SeekFrom::End(by) => moved(self.stat()?.bytes, by),
        };
        let position = position.filter(|position| i64::try_from(*position).is_ok()).ok_or(Errno::INVAL)?;
        self.position.store(position, Ordering::Relaxed);
        Ok(position)
    }

    /// Bytes behind the position; 0 while something else of the invocation is under way.
    pub(in crate::host::wasi) fn left(&self) -> u64 {
        let bytes = self.overlay.try_work().and_then(|work| stat_of(&work, self.id).ok()).map_or(0, |stat| stat.bytes);
        bytes.saturating_sub(self.position.load(Ordering::Relaxed))
    }

    /// Says whether each write goes to the end.
    pub(in crate::host::wasi) fn set_appends(&self, appends: bool) {
        self.appends.store(appends, Ordering::Relaxed);
    }

    /// Changes the length.
    pub(in crate::host::wasi) fn set_len(&self, bytes: u64) -> Result<(), Errno> {
        resize(&mut self.overlay.work(), self.id, bytes)
    }

    /// Makes the file at least so long.
    pub(in crate::host::wasi) fn allocate(&self, at: u64, bytes: u64) -> Result<(), Errno> {
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        let end = at.checked_add(bytes).filter(|end| i64::try_from(*end).is_ok()).ok_or(Errno::FBIG)?;
        let mut work = self.overlay.work();
        let before = private(&mut work, self.id, u64::MAX)?;
        grow(&mut work, self.id, end.max(before), end)?;
        touch(&mut work, self.id);
        Ok(())
    }

    /// What is known of it.
    pub(in crate::host::wasi) fn stat(&self) -> Result<Stat, Errno> {
        stat_of(&self.overlay.work(), self.id)
    }

    /// Changes its times.
    pub(in crate::host::wasi) fn set_times(&self, changes: [Change; 2]) -> Result<(), Errno> {
        set_times(&mut self.overlay.work(), self.id, changes)
    }
}

/// Reads of a private copy. Of the host's file only says where that is.
fn read(work: &mut Work<'_>, id: Id, at: u64, bytes: &mut [u8]) -> Result<(Source, usize), Errno> {
    if let Some(file) = shared(work, id)? {
        return Ok((Source::Host(file), 0));
    }
    let (slot, length) = copy_of(work, id)?;
    let count = length.saturating_sub(at).min(bytes.len() as u64) as usize;
    work.store().read(slot, at, &mut bytes[..count])?;
    Ok((Source::Copy, count))
}

/// The host's file, open; none where there is a private copy.
fn shared(work: &mut Work<'_>, id: Id) -> Result<Option<Arc<std::fs::File>>, Errno> {
    let overlay = work.overlay;
    let node = work.tree.node_mut(id).ok_or(Errno::STALE)?;
    match &mut node.kind {
        Kind::File(Contents::Shared(Some(file))) => Ok(Some(Arc::clone(file))),
        Kind::File(Contents::Shared(none)) => {
            let file = Arc::new(overlay.lower.open(node.lower.as_deref().ok_or(Errno::STALE)?)?);
            Ok(Some(Arc::clone(none.insert(file))))
        }
        Kind::File(Contents::Private(..)) => Ok(None),
        Kind::Folder(_) | Kind::Link(_) | Kind::Other(_) => Err(Errno::BADF),
    }
}

/// The private copy, which there has to be, and its length.
fn copy_of(work: &Work<'_>, id: Id) -> Result<(super::store::Slot, u64), Errno> {
    match work.tree.node(id).map(|node| &node.kind) {
        Some(Kind::File(Contents::Private(slot, bytes))) => Ok((*slot, *bytes)),
        _ => Err(Errno::BADF),
    }
}

fn set_length(work: &mut Work<'_>, id: Id, length: u64) {
    if let Some(Kind::File(Contents::Private(_, bytes))) = work.tree.node_mut(id).map(|node| &mut node.kind) {
        *bytes = length;
    }
}

/// Makes the copy as long as `to`, or as there is room for, at least `least`; how long it is.
fn grow(work: &mut Work<'_>, id: Id, to: u64, least: u64) -> Result<u64, Errno> {
    let (slot, before) = copy_of(work, id)?;
    // The last page may be there already.
    let page = super::store::pages(1);
    let room = super::store::pages(before).saturating_add(work.store().room() / page * page);
    let to = to.min(room.max(least));
    work.store().resize(slot, before, to)?;
    set_length(work, id, to);
    Ok(to)
}

/// Sees to it that the file is a private copy, of its first bytes at most so many; its length.
fn private(work: &mut Work<'_>, id: Id, bytes_max: u64) -> Result<u64, Errno> {
    let Some(file) = shared(work, id)? else { return Ok(copy_of(work, id)?.1) };
    let stat = stat_of(work, id)?;
    let length = stat.bytes.min(bytes_max);
    let slot = work.store().slot()?;
    work.store().resize(slot, 0, length)?;
    let copied = copy(work, &file, slot, length).and_then(|()| work.keep(id));
    if let Err(errno) = copied {
        work.store().vacate(slot, length);
        return Err(errno);
    }
    if length > 0 {
        work.store().note_copy();
    }
    if let Some(node) = work.tree.node_mut(id) {
        node.kind = Kind::File(Contents::Private(slot, length));
        node.times = Some(stat.times);
    }
    Ok(length)
}

fn copy(work: &Work<'_>, file: &std::fs::File, slot: super::store::Slot, length: u64) -> Result<(), Errno> {
    let mut buffer = vec![0; COPY_BYTES.min(length as usize)];
    let mut done = 0;
    while done < length {
        let wanted = buffer.len().min((length - done) as usize);
        match retry(|| file.read_at(&mut buffer[..wanted], done))? {
            // It has become shorter meanwhile: the rest is zeros.
            0 => break,
            count => {
                work.store().write(slot, done, &buffer[..count])?;
                done += count as u64;
            }
        }
    }
    Ok(())
}

/// Changes the length of a file.
pub(super) fn resize(work: &mut Work<'_>, id: Id, bytes: u64) -> Result<(), Errno> {
    let before = private(work, id, bytes)?;
    let (slot, _) = copy_of(work, id)?;
    work.store().resize(slot, before, bytes)?;
    set_length(work, id, bytes);
    touch(work, id);
    Ok(())
}
