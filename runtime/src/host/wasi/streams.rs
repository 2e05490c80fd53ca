//! Reading and writing: the standard streams here, files in [`files`], and the lists of buffers that all of them have.

use sledge_sandbox::GuestMemory;
use smallvec::SmallVec;

use super::descriptors::{Kind, Standard};
use super::{Errno, files, rights};
use crate::host::rpc::Readable;
use crate::host::{Call, Context, Input, Output, Stop};

/// Buffers that one call serves; a call may always do less than it was asked for. Linux has the same limit (IOV_MAX).
pub(super) const BUFFERS_MAX: u32 = 1_024;
/// Bytes moved at a time; for more, others get their turn in between.
pub(super) const STEP_BYTES: u64 = 1 << 20;
/// Bytes that go through our own buffer to or from a file.
const COPY_BYTES: usize = 64 << 10;

/// Buffers that a guest lists: address and bytes of each. Two are what C libraries pass: what they have kept, and what is written now.
pub(in crate::host) type BufferList = SmallVec<[(u64, u64); 2]>;

/// `fd_read(fd, iovs: *iovec, count: size, read: *size)`
pub(super) fn fd_read(call: &mut Call<'_>) -> Result<(), Stop> {
    match call.context.ports.descriptors()?.with(call.args.u32(0), rights::FD_READ)?.kind {
        Kind::Stream(_) => {
            // A read that has moved something already ends with that.
            let waits = matches!(&call.context.ports.streams()?.input, Input::Body(body) if body.must_wait());
            if waits && call.context.progress.is_none() { read_later(call) } else { read_input(call) }
        }
        Kind::File(_) => files::read(call, None, call.args.address(3)),
        Kind::Rpc(_) => read_rpc(call),
        Kind::Folder(_) => Err(Errno::ISDIR.into()),
    }
}

/// Reads the input when more of it has come. Apart, so that other reads have no room on the stack for what is waited for.
#[cold]
fn read_later(call: &mut Call<'_>) -> Result<(), Stop> {
    let (iovs, count, result) = (call.args.address(1), call.args.u32(2), call.args.address(3));
    let (memory, context) = call.split()?;
    take_buffers(memory, iovs, count, result, &mut context.buffers)?;
    let streams = context.ports.streams_mut()?;
    if let (true, Input::Body(body)) = (streams.input_is_nonblocking, &mut streams.input) {
        return if body.look() { read_input(call) } else { Err(Errno::AGAIN.into()) };
    }
    let next = match &mut context.ports.streams_mut()?.input {
        Input::Body(body) if !context.buffers.is_empty() => body.next(None),
        _ => None,
    };
    let Some(next) = next else { return read_input(call) };
    Err(call.wait(next, |call, came| {
        if let Input::Body(body) = &mut call.context.ports.streams_mut()?.input {
            body.came(came);
        }
        fd_read(call)
    }))
}

/// Of the streams only the input can be read.
fn read_input(call: &mut Call<'_>) -> Result<(), Stop> {
    transfer(call, |memory, context, address, bytes| {
        match &mut context.ports.streams_mut()?.input {
            // Only what is written: the rest of a large buffer would have to be restored, too.
            Input::Body(body) => body.read(memory.slice_mut(address, bytes.min(body.left() as u64))?),
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
    match call.context.ports.descriptors()?.with(call.args.u32(0), rights::FD_WRITE)?.kind {
        Kind::Stream(Standard::Output) => match wait_for_room(&call.context.ports.streams()?.output) {
            Some(_) if call.context.ports.streams()?.output_is_nonblocking => Err(Errno::AGAIN.into()),
            Some(room) => Err(call.wait(room, |call, ()| fd_write(call))),
            None => write_output(call, Standard::Output),
        },
        Kind::Stream(standard) => write_output(call, standard),
        Kind::File(_) => files::write(call, None, call.args.address(3)),
        Kind::Rpc(_) => write_rpc(call),
        Kind::Folder(_) => Err(Errno::ISDIR.into()),
    }
}

/// What has to be waited for before anything can be written.
fn wait_for_room(output: &Output) -> Option<impl Future<Output = ()> + use<>> {
    match output {
        Output::Stream(writer) if !writer.has_room() => Some(writer.room()),
        _ => None,
    }
}

fn write_output(call: &mut Call<'_>, standard: Standard) -> Result<(), Stop> {
    transfer(call, |memory, context, address, bytes| {
        let mut left = memory.slice(address, bytes)?;
        let ports = &mut context.ports;
        let output = if standard == Standard::Output { &mut ports.streams_mut()?.output } else { ports.log()? };
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

/// Reads what has come of a call's reply.
fn read_rpc(call: &mut Call<'_>) -> Result<(), Stop> {
    let fd = call.args.u32(0);
    let begins = call.context.progress.is_none();
    let readable = call.context.ports.descriptors_mut()?.with_rpc(fd, |rpc| Ok::<_, Stop>(rpc.look_now()))?;
    if begins && !matches!(readable, Readable::Bytes(_)) {
        return Err(Errno::AGAIN.into());
    }
    transfer(call, |memory, context, address, bytes| {
        context.ports.descriptors_mut()?.with_rpc(fd, |rpc| -> Result<usize, Stop> {
            let bytes = bytes.min(rpc.left() as u64);
            Ok(rpc.read(memory.slice_mut(address, bytes)?))
        })
    })
}

/// Writes more of a call's request.
fn write_rpc(call: &mut Call<'_>) -> Result<(), Stop> {
    let fd = call.args.u32(0);
    let mut has_written = call.context.progress.is_some();
    transfer(call, |memory, context, address, bytes| {
        let written = context
            .ports
            .descriptors_mut()?
            .with_rpc(fd, |rpc| -> Result<usize, Stop> { rpc.write(memory.slice(address, bytes)?) });
        match written {
            // What was taken before counts; the next write says why no more is.
            Err(Stop::Errno(_)) if has_written => Ok(0),
            other => {
                has_written = true;
                other
            }
        }
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
pub(super) fn take_buffers(
    memory: &GuestMemory<'_>,
    iovs: u64,
    count: u32,
    result: u64,
    into: &mut BufferList,
) -> Result<(), Stop> {
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
