//! What is known about a file: kind, size, times, flags, rights.

use std::io::IsTerminal as _;
use std::time::{Duration, UNIX_EPOCH};

use cap_fs_ext::SystemTimeSpec;
use cap_std::fs::{Metadata, MetadataExt as _};
use cap_std::time::SystemTime;
use rustix::fs::{FileType, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::descriptors::{Descriptor, Kind, Standard};
use super::disk::{just_on_disk, on_disk};
use super::{Errno, rights};
use crate::host::{Call, Input, Output, Stop, Streams};

/// Bytes of a `filestat`.
pub(super) const FILESTAT_BYTES: usize = 64;

const FILETYPE_UNKNOWN: u8 = 0;
const FILETYPE_CHARACTER_DEVICE: u8 = 2;
const FILETYPE_DIRECTORY: u8 = 3;
const FILETYPE_REGULAR_FILE: u8 = 4;
const FILETYPE_SOCKET_STREAM: u8 = 6;

pub(super) const FDFLAGS_APPEND: u16 = 1 << 0;
pub(in crate::host) const FDFLAGS_DSYNC: u16 = 1 << 1;
pub(super) const FDFLAGS_NONBLOCK: u16 = 1 << 2;
pub(in crate::host) const FDFLAGS_RSYNC: u16 = 1 << 3;
pub(in crate::host) const FDFLAGS_SYNC: u16 = 1 << 4;
const FDFLAGS_ALL: u16 = FDFLAGS_APPEND | FDFLAGS_DSYNC | FDFLAGS_NONBLOCK | FDFLAGS_RSYNC | FDFLAGS_SYNC;

const FSTFLAGS_ATIM: u32 = 1 << 0;
const FSTFLAGS_ATIM_NOW: u32 = 1 << 1;
const FSTFLAGS_MTIM: u32 = 1 << 2;
const FSTFLAGS_MTIM_NOW: u32 = 1 << 3;
const NANOSECONDS: u64 = 1_000_000_000;

/// `fdflags` that a guest gave.
pub(super) fn fdflags(given: u32) -> Result<u16, Errno> {
    u16::try_from(given).ok().filter(|flags| flags & !FDFLAGS_ALL == 0).ok_or(Errno::INVAL)
}

/// The number of a type of file in WASI.
pub(super) const fn filetype(ty: FileType) -> u8 {
    match ty {
        FileType::BlockDevice => 1,
        FileType::CharacterDevice => FILETYPE_CHARACTER_DEVICE,
        FileType::Directory => FILETYPE_DIRECTORY,
        FileType::RegularFile => FILETYPE_REGULAR_FILE,
        // A socket's own type is not known from outside; a stream is what most are.
        FileType::Socket => FILETYPE_SOCKET_STREAM,
        FileType::Symlink => 7,
        FileType::Fifo | FileType::Unknown => FILETYPE_UNKNOWN,
    }
}

/// When a file was read, written, and changed in any way.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Times {
    pub(in crate::host) accessed: Timespec,
    pub(in crate::host) modified: Timespec,
    pub(in crate::host) changed: Timespec,
}

impl Default for Times {
    fn default() -> Times {
        const START: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        Times { accessed: START, modified: START, changed: START }
    }
}

/// What is known about something on the disk.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Stat {
    pub(in crate::host) device: u64,
    pub(in crate::host) number: u64,
    pub(in crate::host) ty: FileType,
    /// How many names it has.
    pub(in crate::host) names: u64,
    pub(in crate::host) bytes: u64,
    pub(in crate::host) times: Times,
}

impl From<&Metadata> for Stat {
    fn from(metadata: &Metadata) -> Stat {
        let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        Stat {
            device: metadata.dev(),
            number: metadata.ino(),
            ty: FileType::from_raw_mode(metadata.mode()),
            names: metadata.nlink(),
            bytes: metadata.size(),
            times: Times {
                accessed: time(metadata.atime(), metadata.atime_nsec()),
                modified: time(metadata.mtime(), metadata.mtime_nsec()),
                changed: time(metadata.ctime(), metadata.ctime_nsec()),
            },
        }
    }
}

impl Stat {
    /// That of an open file.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn of_file(file: &std::fs::File) -> Result<Stat, Errno> {
        Ok(Stat::from(&Metadata::from_file(file)?))
    }
}

/// A `filestat`.
pub(super) fn filestat(stat: &Stat) -> [u8; FILESTAT_BYTES] {
    let nanoseconds = |time: Timespec| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds.saturating_mul(NANOSECONDS).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
    };
    let Stat { device, number, ty, names, bytes, times } = *stat;
    let fields = [
        device,
        number,
        u64::from(filetype(ty)),
        names,
        bytes,
        nanoseconds(times.accessed),
        nanoseconds(times.modified),
        nanoseconds(times.changed),
    ];
    // { dev: u64, ino: u64, filetype: u8, nlink: u64, size: u64, atim: u64, mtim: u64, ctim: u64 }, each at a multiple of 8
    let mut stat = [0; FILESTAT_BYTES];
    for (place, field) in stat.chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    stat
}

/// Not a character device unless it is a terminal: C libraries buffer by lines what they take for one.
fn stream_filetype(streams: &Streams, standard: Standard) -> u8 {
    let output = |output: &Output| matches!(output, Output::File(file) if file.is_terminal());
    let terminal = match standard {
        Standard::Input => matches!(&streams.input, Input::File { file, .. } if file.is_terminal()),
        Standard::Output => output(&streams.output),
        Standard::Errors => output(&streams.errors),
    };
    if terminal { FILETYPE_CHARACTER_DEVICE } else { FILETYPE_UNKNOWN }
}

/// Whether it was asked not to wait. The log never does.
const fn is_nonblocking(streams: &Streams, standard: Standard) -> bool {
    match standard {
        Standard::Input => streams.input_is_nonblocking,
        Standard::Output => streams.output_is_nonblocking,
        Standard::Errors => false,
    }
}

/// `fd_fdstat_get(fd, stat: *fdstat)`
pub(super) fn fd_fdstat_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (fd, at) = (call.args.u32(0), call.args.address(1));
    let (memory, context) = call.split()?;
    let descriptor = context.ports.descriptors()?.get(fd)?;
    let (filetype, flags) = match &descriptor.kind {
        Kind::Stream(standard) => {
            let streams = context.ports.streams()?;
            let flags = if is_nonblocking(streams, *standard) { FDFLAGS_NONBLOCK } else { 0 };
            (stream_filetype(streams, *standard), flags)
        }
        Kind::File(file) => (FILETYPE_REGULAR_FILE, file.flags),
        Kind::Folder(_) => (FILETYPE_DIRECTORY, 0),
        Kind::Rpc(_) => (FILETYPE_SOCKET_STREAM, FDFLAGS_NONBLOCK),
    };
    // { fs_filetype: u8, fs_flags: u16 at 2, fs_rights_base: u64 at 8, fs_rights_inheriting: u64 at 16 }
    let mut stat = [0; 24];
    stat[0] = filetype;
    stat[2..4].copy_from_slice(&flags.to_le_bytes());
    stat[8..16].copy_from_slice(&descriptor.base.to_le_bytes());
    stat[16..24].copy_from_slice(&descriptor.inheriting.to_le_bytes());
    memory.write(at, &stat)?;
    Ok(())
}

/// `fd_fdstat_set_flags(fd, flags: fdflags)`: a standard stream can be asked not to wait; no flag changes how folders and calls behave here; of a file's, those
/// that say when it is flushed can only be given when it is opened.
pub(super) fn fd_fdstat_set_flags(call: &mut Call<'_>) -> Result<(), Stop> {
    const FIXED: u16 = FDFLAGS_DSYNC | FDFLAGS_RSYNC | FDFLAGS_SYNC;
    let fd = call.args.u32(0);
    call.context.ports.descriptors()?.with(fd, rights::FD_FDSTAT_SET_FLAGS)?;
    let flags = fdflags(call.args.u32(1))?;
    if let Kind::Stream(standard) = call.context.ports.descriptors()?.get(fd)?.kind {
        let (streams, waits_not) = (call.context.ports.streams_mut()?, flags & FDFLAGS_NONBLOCK != 0);
        match standard {
            Standard::Input => streams.input_is_nonblocking = waits_not,
            Standard::Output => streams.output_is_nonblocking = waits_not,
            Standard::Errors => {}
        }
        return Ok(());
    }
    let Kind::File(file) = &mut call.context.ports.descriptors_mut()?.get_mut(fd)?.kind else { return Ok(()) };
    if (file.flags ^ flags) & FIXED != 0 {
        return Err(Errno::NOTSUP.into());
    }
    file.contents.set_appends(flags & FDFLAGS_APPEND != 0)?;
    file.flags = flags;
    Ok(())
}

/// `fd_filestat_get(fd, stat: *filestat)`
pub(super) fn fd_filestat_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (fd, at) = (call.args.u32(0), call.args.address(1));
    call.memory_mut()?.slice(at, FILESTAT_BYTES as u64)?;
    let put = move |call: &mut Call<'_>, stat: Stat| Ok(call.memory_mut()?.write(at, &filestat(&stat))?);
    match &call.context.ports.descriptors()?.with(fd, rights::FD_FILESTAT_GET)?.kind {
        Kind::Stream(standard) => {
            let mut stat = [0; FILESTAT_BYTES];
            stat[16] = stream_filetype(call.context.ports.streams()?, *standard);
            call.memory_mut()?.write(at, &stat)?;
            Ok(())
        }
        Kind::Rpc(_) => {
            let mut stat = [0; FILESTAT_BYTES];
            stat[16] = FILETYPE_SOCKET_STREAM;
            call.memory_mut()?.write(at, &stat)?;
            Ok(())
        }
        Kind::File(_) | Kind::Folder(_) => {
            let work = stat_of(call.context.ports.descriptors()?.get(fd)?)?;
            on_disk(call, work, put)
        }
    }
}

/// What is known about an open file or folder.
///
/// # Errors
/// When it is neither, or must not be asked about.
pub(in crate::host) fn stat_of(descriptor: &Descriptor) -> Result<impl FnOnce() -> Result<Stat, Errno> + Send + use<>, Errno> {
    let (file, base) = match &descriptor.with(rights::FD_FILESTAT_GET)?.kind {
        Kind::File(file) => (Some(file.contents.clone()), None),
        Kind::Folder(folder) => (None, Some(folder.base.clone())),
        Kind::Stream(_) | Kind::Rpc(_) => return Err(Errno::BADF),
    };
    Ok(move || match (&file, &base) {
        (Some(file), _) => file.stat(),
        (None, Some(base)) => base.stat(),
        (None, None) => Err(Errno::BADF),
    })
}

/// What is to become of a time.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) enum Change {
    Keep,
    Now,
    To(Timespec),
}

impl Change {
    /// To a time: seconds since 1970, and nanoseconds, however many.
    ///
    /// # Errors
    /// When it is too late for the system.
    pub(in crate::host) fn to(seconds: i64, nanoseconds: u32) -> Result<Change, Errno> {
        const SECOND: u32 = NANOSECONDS as u32;
        let seconds = seconds.checked_add((nanoseconds / SECOND).into()).ok_or(Errno::OVERFLOW)?;
        Ok(Change::To(Timespec { tv_sec: seconds, tv_nsec: (nanoseconds % SECOND).into() }))
    }

    /// What comes of a time.
    pub(super) const fn applied(self, before: Timespec, now: Timespec) -> Timespec {
        match self {
            Change::Keep => before,
            Change::Now => now,
            Change::To(time) => time,
        }
    }

    fn timespec(self) -> Timespec {
        match self {
            Change::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            Change::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            Change::To(time) => time,
        }
    }

    /// As cap-std takes it; nothing when it is to be kept.
    ///
    /// # Errors
    /// For a time before 1970: there cap-std has none.
    pub(super) fn spec(self) -> Result<Option<SystemTimeSpec>, Errno> {
        Ok(match self {
            Change::Keep => None,
            Change::Now => Some(SystemTimeSpec::SymbolicNow),
            Change::To(Timespec { tv_sec, tv_nsec }) => {
                let seconds = u64::try_from(tv_sec).map_err(|_| Errno::INVAL)?;
                // Below a second.
                let time = UNIX_EPOCH + Duration::new(seconds, tv_nsec as u32);
                Some(SystemTimeSpec::Absolute(SystemTime::from_std(time)))
            }
        })
    }
}

/// What `fstflags` say about the time of access and that of modification.
pub(super) fn changes(access: u64, modification: u64, flags: u32) -> Result<[Change; 2], Errno> {
    let change = |time: u64, to, now| match (flags & to != 0, flags & now != 0) {
        (true, true) => Err(Errno::INVAL),
        // The rest of a second has 30 bits.
        (true, false) => Change::to((time / NANOSECONDS).cast_signed(), (time % NANOSECONDS) as u32),
        (false, true) => Ok(Change::Now),
        (false, false) => Ok(Change::Keep),
    };
    if flags & !(FSTFLAGS_ATIM | FSTFLAGS_ATIM_NOW | FSTFLAGS_MTIM | FSTFLAGS_MTIM_NOW) != 0 {
        return Err(Errno::INVAL);
    }
    Ok([change(access, FSTFLAGS_ATIM, FSTFLAGS_ATIM_NOW)?, change(modification, FSTFLAGS_MTIM, FSTFLAGS_MTIM_NOW)?])
}

/// `fd_filestat_set_times(fd, atim: timestamp, mtim: timestamp, flags: fstflags)`
pub(super) fn fd_filestat_set_times(call: &mut Call<'_>) -> Result<(), Stop> {
    let descriptor = call.context.ports.descriptors()?.with(call.args.u32(0), rights::FD_FILESTAT_SET_TIMES)?;
    let work = set_times(descriptor, changes(call.args.u64(1), call.args.u64(2), call.args.u32(3))?)?;
    just_on_disk(call, work)
}

/// Changes the times of access and modification of an open file or folder.
///
/// # Errors
/// When it is neither, or must not be changed.
pub(in crate::host) fn set_times(
    descriptor: &Descriptor,
    changes: [Change; 2],
) -> Result<impl FnOnce() -> Result<(), Errno> + Send + use<>, Errno> {
    let (file, base) = match &descriptor.with(rights::FD_FILESTAT_SET_TIMES)?.kind {
        Kind::File(file) => (Some(file.contents.clone()), None),
        Kind::Folder(folder) => (None, Some(folder.base.clone())),
        Kind::Stream(_) | Kind::Rpc(_) => return Err(Errno::BADF),
    };
    Ok(move || match (&file, &base) {
        (Some(file), _) => file.set_times(changes),
        (None, Some(base)) => base.set_times(changes),
        (None, None) => Err(Errno::BADF),
    })
}

/// Both, as the system takes them.
pub(super) fn timestamps([access, modification]: [Change; 2]) -> Timestamps {
    Timestamps { last_access: access.timespec(), last_modification: modification.timespec() }
}
