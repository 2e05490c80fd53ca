//! What is done with an open file.

use std::io::{self, SeekFrom};
use std::{fs, mem};

use rustix::fs::Advice;

use super::contents::Contents;
use super::descriptors::{Descriptor, Folder, Kind};
use super::disk::{begin, just_on_disk, on_disk};
use super::streams::{BufferList, take_buffers};
use super::{Errno, rights};
use crate::host::{Call, Flat, Stop};

/// Bytes that one call reads or writes at most: so much of the host's memory it uses meanwhile. It may always do less than it was asked for.
pub(in crate::host) const TRANSFER_BYTES_MAX: u64 = 64 << 10;

/// An offset within a file, as the system takes it.
pub(in crate::host) fn offset(value: u64) -> Result<u64, Errno> {
    i64::try_from(value).map_err(|_| Errno::INVAL)?;
    Ok(value)
}

/// Does it again when a signal (of the quantum's timer) came in between.
pub(super) fn retry<T>(mut operation: impl FnMut() -> io::Result<T>) -> Result<T, Errno> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return Ok(other?),
        }
    }
}

/// The buffers that the guest lists, and their size, as far as one call goes.
fn buffers(call: &mut Call<'_>, result: u64) -> Result<(BufferList, usize), Stop> {
    let (iovs, count) = (call.args.address(1), call.args.u32(2));
    let (memory, context) = call.split()?;
    take_buffers(memory, iovs, count, result, &mut context.buffers)?;
    let buffers = mem::take(&mut context.buffers);
    let total: u64 = buffers.iter().map(|(_, bytes)| bytes).sum();
    Ok((buffers, total.min(TRANSFER_BYTES_MAX) as usize))
}

/// Reads from where the file is, or from an offset: at once what the kernel has in memory, else when the disk has given it.
pub(super) fn read(call: &mut Call<'_>, at: Option<u64>, result: u64) -> Result<(), Stop> {
    let file = call.context.ports.descriptors()?.file(call.args.u32(0), rights::FD_READ)?.contents.clone();
    let (buffers, total) = buffers(call, result)?;
    read_then(call, file, at, total, move |call, bytes| scatter(call, buffers, &bytes?, result))
}

/// Reads at most so many bytes, and goes on with them.
pub(in crate::host) fn read_then<R: Into<Flat>>(
    call: &mut Call<'_>,
    file: Contents,
    at: Option<u64>,
    bytes_max: usize,
    then: impl FnOnce(&mut Call<'_>, Result<Vec<u8>, Errno>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let mut bytes = vec![0; bytes_max];
    if let Some(count) = file.read_now(at, &mut bytes) {
        bytes.truncate(count);
        return then(call, Ok(bytes));
    }
    let work = move || {
        let count = file.read(at, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    };
    Err(begin(call, work, then))
}

/// Where bytes of a file go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum To {
    /// To where it is.
    Position,
    /// To that offset.
    Offset(u64),
    /// To its end, wherever that is by then.
    End,
}

/// Hands what was read to the guest.
fn scatter(call: &mut Call<'_>, buffers: BufferList, bytes: &[u8], result: u64) -> Result<(), Stop> {
    let (memory, context) = call.split()?;
    let mut left = bytes;
    for &(address, size) in &buffers {
        let (now, then) = left.split_at(left.len().min(size as usize));
        memory.write(address, now)?;
        left = then;
    }
    memory.write_u32(result, bytes.len() as u32)?;
    context.buffers = buffers;
    Ok(())
}

/// Writes to where the file is, or to an offset.
pub(super) fn write(call: &mut Call<'_>, at: Option<u64>, result: u64) -> Result<(), Stop> {
    let file = call.context.ports.descriptors()?.file(call.args.u32(0), rights::FD_WRITE)?.contents.clone();
    let (buffers, total) = buffers(call, result)?;
    let (memory, context) = call.split()?;
    let mut bytes = Vec::with_capacity(total);
    for &(address, size) in &buffers {
        let size = size.min((total - bytes.len()) as u64);
        bytes.extend_from_slice(memory.slice(address, size)?);
    }
    context.buffers = buffers;
    let to = at.map_or(To::Position, To::Offset);
    on_disk(
        call,
        move || file.write(to, &bytes),
        move |call, count| {
            // No more than was to be written.
            call.memory_mut()?.write_u32(result, count as u32)?;
            Ok(())
        },
    )
}

/// `fd_pread(fd, iovs: *iovec, count: size, offset: filesize, read: *size)`
pub(super) fn fd_pread(call: &mut Call<'_>) -> Result<(), Stop> {
    let fd = call.args.u32(0);
    call.context.ports.descriptors()?.file(fd, rights::FD_READ | rights::FD_SEEK)?;
    let at = offset(call.args.u64(3))?;
    read(call, Some(at), call.args.address(4))
}

/// `fd_pwrite(fd, iovs: *ciovec, count: size, offset: filesize, written: *size)`
pub(super) fn fd_pwrite(call: &mut Call<'_>) -> Result<(), Stop> {
    let fd = call.args.u32(0);
    call.context.ports.descriptors()?.file(fd, rights::FD_WRITE | rights::FD_SEEK)?;
    let at = offset(call.args.u64(3))?;
    write(call, Some(at), call.args.address(4))
}

/// `fd_seek(fd, offset: filedelta, whence, new: *filesize)`
pub(super) fn fd_seek(call: &mut Call<'_>) -> Result<(), Stop> {
    let (by, result) = (call.args.u64(1).cast_signed(), call.args.address(3));
    let to = match call.args.u32(2) {
        0 => SeekFrom::Start(u64::try_from(by).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(by),
        2 => SeekFrom::End(by),
        _ => return Err(Errno::INVAL.into()),
    };
    let right = if to == SeekFrom::Current(0) { tell(call)? } else { rights::FD_SEEK };
    seek(call, right, to, result)
}

/// `fd_tell(fd, offset: *filesize)`
pub(super) fn fd_tell(call: &mut Call<'_>) -> Result<(), Stop> {
    let right = tell(call)?;
    seek(call, right, SeekFrom::Current(0), call.args.address(1))
}

/// The right with which a descriptor may tell its position: the right to move it implies that.
fn tell(call: &Call<'_>) -> Result<u64, Stop> {
    let seeks = call.context.ports.descriptors()?.with(call.args.u32(0), rights::FD_SEEK).is_ok();
    Ok(if seeks { rights::FD_SEEK } else { rights::FD_TELL })
}

fn seek(call: &mut Call<'_>, right: u64, to: SeekFrom, result: u64) -> Result<(), Stop> {
    let file = call.context.ports.descriptors()?.file(call.args.u32(0), right)?.contents.clone();
    let (memory, _) = call.split()?;
    memory.slice(result, 8)?;
    let position = file.seek(to)?;
    memory.write_u64(result, position)?;
    Ok(())
}

/// `fd_advise(fd, offset: filesize, bytes: filesize, advice)`
pub(super) fn fd_advise(call: &mut Call<'_>) -> Result<(), Stop> {
    let descriptor = call.context.ports.descriptors()?.get(call.args.u32(0))?;
    let work = advise(descriptor, call.args.u64(1), call.args.u64(2), call.args.u32(3))?;
    just_on_disk(call, work)
}

/// Says how a part of a file will be used.
///
/// # Errors
/// When it is no file, or the advice unknown.
pub(in crate::host) fn advise(
    descriptor: &Descriptor,
    at: u64,
    bytes: u64,
    advice: u32,
) -> Result<impl FnOnce() -> Result<(), Errno> + Send + use<>, Errno> {
    let file = descriptor.file(rights::FD_ADVISE)?.contents.clone();
    let (at, bytes) = (offset(at)?, offset(bytes)?);
    let advice = match advice {
        0 => Advice::Normal,
        1 => Advice::Sequential,
        2 => Advice::Random,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => return Err(Errno::INVAL),
    };
    Ok(move || file.advise(at, bytes, advice))
}

/// `fd_allocate(fd, offset: filesize, bytes: filesize)`
pub(super) fn fd_allocate(call: &mut Call<'_>) -> Result<(), Stop> {
    let file = call.context.ports.descriptors()?.file(call.args.u32(0), rights::FD_ALLOCATE)?.contents.clone();
    let (at, bytes) = (offset(call.args.u64(1))?, offset(call.args.u64(2))?);
    just_on_disk(call, move || file.allocate(at, bytes))
}

/// `fd_filestat_set_size(fd, bytes: filesize)`
pub(super) fn fd_filestat_set_size(call: &mut Call<'_>) -> Result<(), Stop> {
    let work = set_size(call.context.ports.descriptors()?.get(call.args.u32(0))?, call.args.u64(1))?;
    just_on_disk(call, work)
}

/// Changes a file's size.
///
/// # Errors
/// When it is no file, or must not be changed.
pub(in crate::host) fn set_size(
    descriptor: &Descriptor,
    bytes: u64,
) -> Result<impl FnOnce() -> Result<(), Errno> + Send + use<>, Errno> {
    let file = descriptor.file(rights::FD_FILESTAT_SET_SIZE)?.contents.clone();
    let bytes = offset(bytes)?;
    Ok(move || file.set_len(bytes))
}

/// `fd_sync(fd)`
pub(super) fn fd_sync(call: &mut Call<'_>) -> Result<(), Stop> {
    let work = sync(call.context.ports.descriptors()?.get(call.args.u32(0))?)?;
    just_on_disk(call, work)
}

/// Flushes a file or a folder.
///
/// # Errors
/// When it is neither.
pub(in crate::host) fn sync(descriptor: &Descriptor) -> Result<impl FnOnce() -> Result<(), Errno> + Send + use<>, Errno> {
    flush(descriptor, rights::FD_SYNC, fs::File::sync_all)
}

fn flush(
    descriptor: &Descriptor,
    right: u64,
    flush: fn(&fs::File) -> io::Result<()>,
) -> Result<impl FnOnce() -> Result<(), Errno> + Send + use<>, Errno> {
    let (file, base) = match &descriptor.with(right)?.kind {
        Kind::File(file) => (Some(file.contents.clone()), None),
        Kind::Folder(Folder { base, .. }) => (None, Some(base.clone())),
        Kind::Stream(_) | Kind::Rpc(_) => return Err(Errno::BADF),
    };
    Ok(move || match (&file, &base) {
        (Some(file), _) => file.flush(flush),
        (None, Some(base)) => base.flush(flush),
        (None, None) => Ok(()),
    })
}

/// `fd_datasync(fd)`
pub(super) fn fd_datasync(call: &mut Call<'_>) -> Result<(), Stop> {
    let work = sync_data(call.context.ports.descriptors()?.get(call.args.u32(0))?)?;
    just_on_disk(call, work)
}

/// Flushes the contents of a file or a folder.
///
/// # Errors
/// When it is neither.
pub(in crate::host) fn sync_data(descriptor: &Descriptor) -> Result<impl FnOnce() -> Result<(), Errno> + Send + use<>, Errno> {
    // A descriptor that may flush everything may flush this.
    let right = if descriptor.with(rights::FD_SYNC).is_ok() { rights::FD_SYNC } else { rights::FD_DATASYNC };
    flush(descriptor, right, fs::File::sync_data)
}
