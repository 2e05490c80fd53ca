//! File descriptors: the three standard streams. There are no others.

use std::io::IsTerminal as _;

use sledge_sandbox::GuestMemory;

use super::Errno;
use crate::host::{Call, Context, Input, Output, Stop};

/// Buffers that one call serves; a call may always do less than it was asked for. Linux has the same limit (IOV_MAX).
pub(super) const BUFFERS_MAX: u32 = 1_024;
/// Bytes moved at a time; for more, others get their turn in between.
pub(super) const STEP_BYTES: u64 = 1 << 20;
/// Bytes that go through our own buffer to or from a file.
const COPY_BYTES: usize = 64 << 10;

const FILETYPE_UNKNOWN: u8 = 0;
const FILETYPE_CHARACTER_DEVICE: u8 = 2;
const RIGHT_FD_READ: u64 = 1 << 1;
const RIGHT_FD_FDSTAT_SET_FLAGS: u64 = 1 << 3;
const RIGHT_FD_WRITE: u64 = 1 << 6;
const RIGHT_POLL_FD_READWRITE: u64 = 1 << 27;
/// append, dsync, nonblock, rsync, sync
const FDFLAGS_ALL: u32 = 0x1f;

/// A standard stream that is open.
enum Stream<'a> {
    Input(&'a mut Input),
    Output(&'a mut Output),
}

fn stream(context: &mut Context, fd: u32) -> Result<Stream<'_>, Errno> {
    if !context.open.get(fd as usize).is_some_and(|open| *open) {
        return Err(Errno::BADF);
    }
    Ok(match fd {
        0 => Stream::Input(&mut context.input),
        1 => Stream::Output(&mut context.output),
        _ => Stream::Output(&mut context.errors),
    })
}

/// `fd_read(fd, iovs: *iovec, count: size, read: *size)`
pub(super) fn fd_read(call: &mut Call<'_>) -> Result<(), Stop> {
    let fd = call.args.u32(0);
    if !matches!(stream(call.context, fd)?, Stream::Input(_)) {
        return Err(Errno::BADF.into());
    }
    transfer(call, |memory, context, address, bytes| {
        match &mut context.input {
            // Only what is written: the rest of a large buffer would have to be restored, too.
            Input::Body(body) => Ok(body.read(memory.slice_mut(address, bytes.min(body.left() as u64))?)),
            // The kernel writes to our buffer, never to the guest's memory.
            input @ Input::File { .. } => {
                let mut copy = vec![0; COPY_BYTES.min(bytes as usize)];
                let count = input.read(&mut copy)?;
                memory.write(address, &copy[..count])?;
                Ok(count)
            }
        }
    })
}

/// `fd_write(fd, iovs: *ciovec, count: size, written: *size)`
pub(super) fn fd_write(call: &mut Call<'_>) -> Result<(), Stop> {
    let fd = call.args.u32(0);
    if !matches!(stream(call.context, fd)?, Stream::Output(_)) {
        return Err(Errno::BADF.into());
    }
    transfer(call, |memory, context, address, bytes| {
        let mut left = memory.slice(address, bytes)?;
        let Stream::Output(output) = stream(context, fd)? else { return Err(Errno::BADF.into()) };
        if !matches!(output, Output::File(_)) {
            return output.write(left);
        }
        while !left.is_empty() {
            // The kernel reads from our buffer, never from the guest's memory.
            let copy = left[..left.len().min(COPY_BYTES)].to_vec();
            left = &left[output.write(&copy)?..];
        }
        Ok(bytes as usize)
    })
}

/// Moves bytes between a stream and the buffers that a guest lists, in steps of [`STEP_BYTES`]: `step(memory, context, address, bytes)`
/// moves at most `bytes` and says how many; fewer end the call.
fn transfer<'a>(
    call: &mut Call<'a>,
    mut step: impl FnMut(&mut GuestMemory<'a>, &mut Context, u64, u64) -> Result<usize, Stop>,
) -> Result<(), Stop> {
    let (iovs, count, result) = (call.args.address(1), call.args.u32(2), call.args.address(3));
    let (memory, context) = call.split()?;
    let mut buffers = std::mem::take(&mut context.buffers);
    let mut done = context.progress.take().unwrap_or(0);
    if done == 0 {
        take_buffers(memory, iovs, count, result, &mut buffers)?;
    }
    let end = done + STEP_BYTES;
    let mut start = 0;
    let mut more = true;
    for &(address, bytes) in &buffers {
        while more && done < start + bytes {
            if done == end {
                (context.progress, context.buffers) = (Some(done), buffers);
                return Err(Stop::Again);
            }
            let wanted = (start + bytes - done).min(end - done);
            let moved = step(memory, context, address + (done - start), wanted)? as u64;
            done += moved;
            more = moved == wanted;
        }
        start += bytes;
    }
    context.buffers = buffers;
    memory.write_u32(result, u32::try_from(done).map_err(|_| Errno::INVAL)?)?;
    Ok(())
}

/// Reads and checks a guest's list of buffers, before anything is moved: reading into one of them may overwrite the list. Beyond
/// [`BUFFERS_MAX`] they are left out, and so are empty ones.
fn take_buffers(memory: &GuestMemory<'_>, iovs: u64, count: u32, result: u64, into: &mut Vec<(u64, u64)>) -> Result<(), Stop> {
    memory.slice(result, 4)?;
    memory.slice(iovs, u64::from(count) * 8)?;
    into.clear();
    let mut total = 0;
    for index in 0..u64::from(count.min(BUFFERS_MAX)) {
        let address = u64::from(memory.read_u32(iovs + index * 8)?);
        let bytes = u64::from(memory.read_u32(iovs + index * 8 + 4)?);
        memory.slice(address, bytes)?;
        // The result has 32 bits. Buffers may overlap, so their sum may be larger than the memory.
        let bytes = bytes.min(u64::from(u32::MAX) - total);
        total += bytes;
        if bytes > 0 {
            into.push((address, bytes));
        }
    }
    // Doing nothing would look like the end of the stream.
    if total == 0 && count > BUFFERS_MAX {
        return Err(Errno::INVAL.into());
    }
    Ok(())
}

/// `fd_close(fd)`
pub(super) fn fd_close(call: &mut Call<'_>) -> Result<(), Stop> {
    let fd = call.args.u32(0);
    stream(call.context, fd)?;
    call.context.open[fd as usize] = false;
    Ok(())
}

/// `fd_seek(fd, offset: filedelta, whence, new: *filesize)` and `fd_tell(fd, offset: *filesize)`
pub(super) fn fd_seek(call: &mut Call<'_>) -> Result<(), Stop> {
    stream(call.context, call.args.u32(0))?;
    Err(Errno::SPIPE.into())
}

/// `fd_fdstat_get(fd, stat: *fdstat)`
pub(super) fn fd_fdstat_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (fd, at) = (call.args.u32(0), call.args.address(1));
    let (memory, context) = call.split()?;
    let (terminal, right) = match stream(context, fd)? {
        Stream::Input(Input::File { file, .. }) => (file.is_terminal(), RIGHT_FD_READ),
        Stream::Input(Input::Body(_)) => (false, RIGHT_FD_READ),
        Stream::Output(Output::File(file)) => (file.is_terminal(), RIGHT_FD_WRITE),
        Stream::Output(Output::Reply { .. } | Output::Log(_)) => (false, RIGHT_FD_WRITE),
    };
    // Not a character device unless it is a terminal: C libraries buffer by lines what they take for one.
    let filetype = if terminal { FILETYPE_CHARACTER_DEVICE } else { FILETYPE_UNKNOWN };
    let rights = right | RIGHT_FD_FDSTAT_SET_FLAGS | RIGHT_POLL_FD_READWRITE;
    // { fs_filetype: u8, fs_flags: u16 at 2, fs_rights_base: u64 at 8, fs_rights_inheriting: u64 at 16 }
    let mut stat = [0; 24];
    stat[0] = filetype;
    stat[8..16].copy_from_slice(&rights.to_le_bytes());
    memory.write(at, &stat)?;
    Ok(())
}

/// `fd_fdstat_set_flags(fd, flags: fdflags)`: no flag changes how the standard streams behave here.
pub(super) fn fd_fdstat_set_flags(call: &mut Call<'_>) -> Result<(), Stop> {
    let (fd, flags) = (call.args.u32(0), call.args.u32(1));
    stream(call.context, fd)?;
    if flags & !FDFLAGS_ALL != 0 { Err(Errno::INVAL.into()) } else { Ok(()) }
}

/// `fd_prestat_get` and `fd_prestat_dir_name`: no folder is open. C libraries ask from 3 upwards until they get this answer.
pub(super) fn fd_prestat(_: &mut Call<'_>) -> Result<(), Stop> {
    Err(Errno::BADF.into())
}
