//! `output-stream`: standard output and error, bodies of messages, files and connections, as they are written.

use std::sync::Arc;

use bytes::Bytes;
use sledge_sandbox::GuestMemory;

use super::{COPY_BYTES, OpenFile};
use crate::component_trap::ComponentTrap;
use crate::host::canonical::{Look, Resource, Subject, Typed, number};
use crate::host::wasi::Errno;
use crate::host::wasi::contents::Contents;
use crate::host::wasi::disk::begin;
use crate::host::wasi::files::{TRANSFER_BYTES_MAX, To};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::http::Outgoing;
use crate::host::wasi2::sockets::{Connection, PERMIT_BYTES_MAX, send_then};
use crate::host::{Call, Flat, Output, Stop};

/// Bytes that may be written at once to what takes as much as there is.
const PERMIT_BYTES: usize = 1 << 20;

/// An `output-stream`.
#[derive(Debug)]
pub(in crate::host) enum OutputStream {
    /// Standard output: the reply, or the log if that is written through `wasi:http`.
    Output,
    /// Standard error: the log.
    Errors,
    /// The body of a response or request.
    Body(Arc<Outgoing>),
    /// A file, from that place on.
    File(OpenFile, To),
    /// What the other end of a connection receives.
    Socket(Arc<Connection>),
    /// What was a file, and has failed.
    Failed,
}

impl Resource for OutputStream {
    fn dropped(&mut self) {
        if let OutputStream::Socket(connection) = self {
            connection.drop_writer();
        }
    }

    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        match self {
            OutputStream::Output if look.streams.is_http => Ok(true),
            OutputStream::Output => Ok(look.at_output()),
            OutputStream::Body(outgoing) => Ok(outgoing.is_ready(look)),
            OutputStream::Socket(connection) => Ok(connection.write_ready(look)),
            OutputStream::Errors | OutputStream::File(..) | OutputStream::Failed => Ok(true),
        }
    }
}

impl Typed for OutputStream {
    const NUMBER: u32 = number("wasi:io/streams@0.2", "output-stream");
}

/// Bytes that an output stream takes now.
pub(in crate::host) fn room(call: &mut Call<'_>, representation: u32) -> Result<usize, Stop> {
    let ports = &mut call.context.ports;
    let is_http = ports.streams()?.is_http;
    Ok(match ports.resource::<OutputStream>(representation)? {
        OutputStream::Output if is_http => PERMIT_BYTES,
        OutputStream::Body(outgoing) => {
            let outgoing = Arc::clone(outgoing);
            outgoing.room_bytes(ports.streams_mut()?)
        }
        OutputStream::Output => match &ports.streams()?.output {
            Output::Stream(writer) => writer.room_bytes(),
            Output::Reply { .. } | Output::File(_) | Output::Log(_) => PERMIT_BYTES,
        },
        OutputStream::Errors | OutputStream::Failed => PERMIT_BYTES,
        OutputStream::File(..) => TRANSFER_BYTES_MAX as usize,
        OutputStream::Socket(connection) => connection.room_bytes(),
    })
}

/// Whether the output stream of argument 1 takes anything, however long that takes.
fn check_open(call: &mut Call<'_>) -> Result<Result<(), Fault>, Stop> {
    let is_closed = match call.borrowed::<OutputStream>(1)? {
        OutputStream::Body(outgoing) => outgoing.is_closed(),
        OutputStream::Socket(connection) => connection.is_write_closed(),
        OutputStream::Failed => true,
        OutputStream::Output | OutputStream::Errors | OutputStream::File(..) => false,
    };
    Ok(if is_closed { Err(Fault::Closed) } else { Ok(()) })
}

/// What is written.
#[derive(Debug)]
pub(in crate::host) enum Content {
    /// What the component has at that address.
    Guest(u64),
    /// Zeros.
    Zeros,
    /// These bytes.
    Given(Bytes),
}

/// Zeros are written by so many.
static ZEROS: [u8; 4 << 10] = [0; 4 << 10];

impl Content {
    /// What is left of so many bytes behind those that are done, or a part of it.
    pub(in crate::host::wasi2) fn rest<'c>(
        &'c self,
        memory: Option<&'c GuestMemory<'_>>,
        done: usize,
        length: usize,
    ) -> Result<&'c [u8], Stop> {
        match self {
            Content::Guest(address) => {
                let memory = memory.ok_or(ComponentTrap::OutOfBounds)?;
                let rest = memory.slice(*address + done as u64, (length - done) as u64);
                rest.map_err(|_| ComponentTrap::OutOfBounds.into())
            }
            Content::Zeros => Ok(&ZEROS[..(length - done).min(ZEROS.len())]),
            Content::Given(bytes) => Ok(&bytes[done..length]),
        }
    }
}

/// Writes all of it, however long that takes, and goes on with what became of it.
pub(in crate::host) fn write_then(
    call: &mut Call<'_>,
    representation: u32,
    content: Content,
    done: usize,
    length: usize,
    then: impl FnOnce(&mut Call<'_>, Result<(), Fault>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let file = match call.context.ports.resource::<OutputStream>(representation)? {
        OutputStream::File(OpenFile { file, .. }, to) => Some((file.clone(), *to)),
        OutputStream::Body(outgoing) => match outgoing.check(length - done) {
            Ok(()) => None,
            Err(code) => return then(call, Err(Fault::Http(code))),
        },
        OutputStream::Socket(connection) => {
            let connection = Arc::clone(connection);
            return send_then(call, representation, connection, content, done, length, then);
        }
        OutputStream::Output | OutputStream::Errors => None,
        OutputStream::Failed => return then(call, Err(Fault::Closed)),
    };
    if let Some((file, to)) = file {
        let mut bytes = Vec::with_capacity(length - done);
        while done + bytes.len() < length {
            bytes.extend_from_slice(content.rest(call.memory.as_ref(), done + bytes.len(), length)?);
        }
        let taken = call.context.operations.as_ref().map(|operations| operations.take(bytes.len()));
        return Err(begin(
            call,
            move || {
                let _taken = taken;
                write_file(&file, to, &bytes)
            },
            move |call, (count, result)| {
                let stream = call.context.ports.resource::<OutputStream>(representation)?;
                if result.is_err() {
                    *stream = OutputStream::Failed;
                } else if let OutputStream::File(_, To::Offset(at)) = stream {
                    *at += count as u64;
                }
                then(call, result.map_err(Fault::Failed))
            },
        ));
    }
    let mut done = done;
    while done < length {
        match write_some(call, representation, &content, done, length) {
            Ok(0) => {
                return Err(call.until_ready(&[Subject::Of(representation)], move |call| {
                    write_then(call, representation, content, done, length, then)
                }));
            }
            Ok(count) => done += count,
            Err(Stop::Errno(Errno::PIPE)) => return then(call, Err(Fault::Closed)),
            Err(Stop::Errno(errno)) => return then(call, Err(Fault::Failed(errno))),
            Err(stop) => return Err(stop),
        }
    }
    then(call, Ok(()))
}

/// Writes all of the bytes to a file; how many were written, and whether that was all.
fn write_file(file: &Contents, to: To, bytes: &[u8]) -> (usize, Result<(), Errno>) {
    let mut done = 0;
    while done < bytes.len() {
        let to = if let To::Offset(at) = to { To::Offset(at + done as u64) } else { to };
        match file.write(to, &bytes[done..]) {
            Ok(0) => return (done, Err(Errno::IO)),
            Ok(count) => done += count,
            Err(errno) => return (done, Err(errno)),
        }
    }
    (done, Ok(()))
}

/// Writes some of it to a standard stream or the reply; none where that has to wait.
fn write_some(call: &mut Call<'_>, representation: u32, content: &Content, done: usize, length: usize) -> Result<usize, Stop> {
    let Call { memory, context, .. } = call;
    let bytes = content.rest(memory.as_ref(), done, length)?;
    let ports = &mut context.ports;
    let is_http = ports.streams()?.is_http;
    let is_logged = match ports.resource::<OutputStream>(representation)? {
        OutputStream::Output => is_http,
        OutputStream::Errors => true,
        OutputStream::Body(outgoing) => {
            let outgoing = Arc::clone(outgoing);
            let (count, message) = outgoing.write(ports.streams_mut()?, bytes)?;
            if let Some(message) = message {
                // The message may have gone.
                let _ = ports.resources_mut().count(message);
            }
            return Ok(count);
        }
        OutputStream::File(..) | OutputStream::Socket(_) | OutputStream::Failed => false,
    };
    let output = if is_logged { ports.log()? } else { &mut ports.streams_mut()?.output };
    if !matches!(output, Output::File(_)) {
        return output.write(bytes);
    }
    // The kernel reads from our buffer, never from the guest's memory.
    let copy = bytes[..bytes.len().min(COPY_BYTES)].to_vec();
    match output.write(&copy)? {
        0 => Err(Errno::IO.into()),
        count => Ok(count),
    }
}

/// `check-write(self) -> result<u64, stream-error>`
pub(super) fn check_write(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutputStream>(1)?;
    let room = room(call, representation)? as u64;
    let result = check_open(call)?.map(|()| room);
    call.lower_streamed(2, result)
}

/// Writes so many bytes; the result is argument `index`.
fn write_bytes(call: &mut Call<'_>, content: Content, length: u64, index: usize, blocking: bool) -> Result<Flat, Stop> {
    let representation = call.representation::<OutputStream>(1)?;
    let room = match call.context.ports.resource::<OutputStream>(representation)? {
        _ if blocking => PERMIT_BYTES,
        // What there was room for before, the kernel may need itself by now: then it waits.
        OutputStream::Socket(_) => PERMIT_BYTES_MAX,
        _ => room(call, representation)?,
    };
    if length > room as u64 {
        return Err(ComponentTrap::BeyondPermit.into());
    }
    write_then(call, representation, content, 0, length as usize, move |call, result| call.lower_streamed(index, result))
}

/// `write(self, contents: list<u8>) -> result<_, stream-error>`
pub(super) fn write(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Guest(call.args.address(2)), call.args.u32(3).into(), 4, false)
}

/// `blocking-write-and-flush(self, contents: list<u8>) -> result<_, stream-error>`
pub(super) fn blocking_write_and_flush(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Guest(call.args.address(2)), call.args.u32(3).into(), 4, true)
}

/// `write-zeroes(self, len: u64) -> result<_, stream-error>`
pub(super) fn write_zeroes(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Zeros, call.args.u64(2), 3, false)
}

/// `blocking-write-zeroes-and-flush(self, len: u64) -> result<_, stream-error>`
pub(super) fn blocking_write_zeroes_and_flush(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Zeros, call.args.u64(2), 3, true)
}

/// `flush(self) -> result<_, stream-error>` and `blocking-flush`: nothing is kept back.
pub(super) fn flush(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let result = check_open(call)?;
    call.lower_streamed(2, result)
}
