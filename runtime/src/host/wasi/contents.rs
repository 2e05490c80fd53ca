//! What is behind an open file and an open folder: the host's, or what an invocation has in their place.

use std::fs;
use std::io::{IoSlice, IoSliceMut, Read as _, Seek as _, SeekFrom, Write as _};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use cap_std::fs::Dir;
use rustix::fs::{Advice, AtFlags, FallocateFlags, OFlags, fadvise, fallocate, fcntl_getfl, fcntl_setfl, futimens, utimensat};
use rustix::io::{ReadWriteFlags, preadv2, pwritev2};

use super::files::{To, retry};
use super::scratch::{ScratchFile, ScratchFolder};
use super::stat::{Change, Stat, timestamps};
use super::{Errno, folders};

/// An open file.
#[derive(Clone, Debug)]
pub(in crate::host) enum Contents {
    Host(Arc<fs::File>),
    Scratch(Arc<ScratchFile>),
}

/// An open folder, where paths begin.
#[derive(Clone, Debug)]
pub(in crate::host) enum Base {
    Host(Arc<Dir>),
    Scratch(Arc<ScratchFolder>),
}

impl Contents {
    /// Reads what is in memory already, from an offset or from where the file is; `None` where it may have to be waited for.
    pub(super) fn read_now(&self, at: Option<u64>, bytes: &mut [u8]) -> Option<usize> {
        match self {
            // To the system the largest offset is where the file is.
            Contents::Host(file) => {
                let at = at.unwrap_or(u64::MAX);
                preadv2(&**file, &mut [IoSliceMut::new(bytes)], at, ReadWriteFlags::NOWAIT).ok()
            }
            Contents::Scratch(file) => file.read_now(at, bytes),
        }
    }

    /// Reads from an offset or from where the file is, on a thread that may wait for the disk.
    pub(super) fn read(&self, at: Option<u64>, bytes: &mut [u8]) -> Result<usize, Errno> {
        match (self, at) {
            (Contents::Host(file), None) => retry(|| (&**file).read(bytes)),
            (Contents::Host(file), Some(at)) => retry(|| file.read_at(bytes, at)),
            (Contents::Scratch(file), at) => file.read(at, bytes),
        }
    }

    /// Writes some of the bytes, on a thread that may wait for the disk; how many.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::host) fn write(&self, to: To, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Contents::Host(file) => retry(|| match to {
                To::Position => (&**file).write(bytes),
                To::Offset(at) => file.write_at(bytes, at),
                To::End => Ok(pwritev2(&**file, &[IoSlice::new(bytes)], u64::MAX, ReadWriteFlags::APPEND)?),
            }),
            Contents::Scratch(file) => file.write(to, bytes),
        }
    }

    /// Moves its position. Positions are the kernel's or ours; only the end may be asked of a remote file system, and that knows by then.
    pub(super) fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        match self {
            Contents::Host(file) => Ok((&**file).seek(to)?),
            Contents::Scratch(file) => file.seek(to),
        }
    }

    /// Bytes behind where it is. Both numbers are in memory.
    pub(super) fn left(&self) -> u64 {
        match self {
            Contents::Host(file) => {
                let bytes = file.metadata().map_or(0, |metadata| metadata.len());
                bytes.saturating_sub((&**file).stream_position().unwrap_or(0))
            }
            Contents::Scratch(file) => file.left(),
        }
    }

    /// Says whether each write goes to its end. Waits for no disk.
    pub(super) fn set_appends(&self, appends: bool) -> Result<(), Errno> {
        match self {
            Contents::Host(file) => {
                let mut flags = fcntl_getfl(&**file)?;
                flags.set(OFlags::APPEND, appends);
                fcntl_setfl(&**file, flags)?;
            }
            Contents::Scratch(file) => file.set_appends(appends),
        }
        Ok(())
    }

    /// Says how a part will be used. Of no use to a copy in memory.
    pub(super) fn advise(&self, at: u64, bytes: u64, advice: Advice) -> Result<(), Errno> {
        match self {
            Contents::Host(file) => Ok(fadvise(&**file, at, NonZeroU64::new(bytes), advice)?),
            Contents::Scratch(_) => Ok(()),
        }
    }

    /// Takes room for a part.
    pub(super) fn allocate(&self, at: u64, bytes: u64) -> Result<(), Errno> {
        match self {
            Contents::Host(file) => retry(|| Ok(fallocate(&**file, FallocateFlags::empty(), at, bytes)?)),
            Contents::Scratch(file) => file.allocate(at, bytes),
        }
    }

    /// Changes its length.
    pub(super) fn set_len(&self, bytes: u64) -> Result<(), Errno> {
        match self {
            Contents::Host(file) => retry(|| file.set_len(bytes)),
            Contents::Scratch(file) => file.set_len(bytes),
        }
    }

    /// Flushes it. There is no disk below a copy.
    pub(super) fn flush(&self, flush: fn(&fs::File) -> std::io::Result<()>) -> Result<(), Errno> {
        match self {
            Contents::Host(file) => retry(|| flush(file)),
            Contents::Scratch(_) => Ok(()),
        }
    }

    /// What is known of it.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        match self {
            Contents::Host(file) => Stat::of_file(file),
            Contents::Scratch(file) => file.stat(),
        }
    }

    /// Changes its times.
    pub(super) fn set_times(&self, changes: [Change; 2]) -> Result<(), Errno> {
        match self {
            Contents::Host(file) => Ok(futimens(&**file, &timestamps(changes))?),
            Contents::Scratch(file) => file.set_times(changes),
        }
    }
}

impl Base {
    /// Flushes it. There is no disk below private changes.
    pub(super) fn flush(&self, flush: fn(&fs::File) -> std::io::Result<()>) -> Result<(), Errno> {
        match self {
            Base::Host(dir) => retry(|| flush(&fs::File::from(folders::itself(dir)?))),
            Base::Scratch(_) => Ok(()),
        }
    }

    /// What is known of it.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        match self {
            Base::Host(dir) => Ok(Stat::from(&dir.dir_metadata()?)),
            Base::Scratch(folder) => folder.stat(),
        }
    }

    /// Changes its times.
    pub(super) fn set_times(&self, changes: [Change; 2]) -> Result<(), Errno> {
        match self {
            Base::Host(dir) => Ok(utimensat(&**dir, ".", &timestamps(changes), AtFlags::empty())?),
            Base::Scratch(folder) => folder.set_times(changes),
        }
    }

    /// Lists it from a cookie on, as long as `each` wants more. Where to go on, and whether all were listed.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::host) fn list(&self, cookie: u64, each: impl FnMut(folders::Entry<'_>) -> bool) -> Result<(u64, bool), Errno> {
        match self {
            Base::Host(dir) => Ok(folders::list(dir, cookie, each)?),
            Base::Scratch(folder) => folder.list(cookie, each),
        }
    }
}
