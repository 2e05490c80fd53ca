//! `wasi:io/streams`: the standard streams, files from an offset on, bodies of messages, connections.
//!
//! What must not block here never keeps a worker: where it may wait for a disk, the guest is suspended meanwhile.

use std::fs;
use std::sync::Arc;

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;
use sledge_sandbox::GuestMemory;

use super::error::Fault;
use super::http::{Arriving, Outgoing};
use super::sockets::{Connection, PERMIT_BYTES_MAX, send_then};
use crate::component_trap::ComponentTrap;
use crate::host::Effect::Stream;
use crate::host::canonical::{Look, Pollable, Resource, Subject, Typed, canonical, number};
use crate::host::context::Ports;
use crate::host::wasi::Errno;
use crate::host::wasi::descriptors::Open;
use crate::host::wasi::disk::begin;
use crate::host::wasi::files::{self, TRANSFER_BYTES_MAX, To};
use crate::host::{Call, Flat, HostFunction, Input, Output, Stop};

/// Module name of the imports.
const MODULE: &str = "wasi:io/streams@0.2";
/// Bytes of a stream that are read at once.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Bytes that may be written at once to what takes as much as there is.
const PERMIT_BYTES: usize = 1 << 20;
/// Bytes that go through our own buffer to or from a file that is a standard stream.
const COPY_BYTES: usize = 64 << 10;

/// The interface. What is behind a stream that is no standard stream was opened by a call that says so.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(MODULE, "[method]input-stream.read", &[I32, I32, I64, I32], &[I32], Stream, read),
    canonical(MODULE, "[method]input-stream.blocking-read", &[I32, I32, I64, I32], &[I32], Stream, blocking_read),
    canonical(MODULE, "[method]input-stream.skip", &[I32, I32, I64, I32], &[], Stream, skip),
    canonical(MODULE, "[method]input-stream.blocking-skip", &[I32, I32, I64, I32], &[], Stream, blocking_skip),
    canonical(MODULE, "[method]input-stream.subscribe", &[I32, I32], &[I32], Stream, subscribe::<InputStream>),
    canonical(MODULE, "[method]output-stream.check-write", &[I32, I32, I32], &[], Stream, check_write),
    canonical(MODULE, "[method]output-stream.write", &[I32, I32, I32, I32, I32], &[], Stream, write),
    canonical(
        MODULE,
        "[method]output-stream.blocking-write-and-flush",
        &[I32, I32, I32, I32, I32],
        &[],
        Stream,
        blocking_write_and_flush,
    ),
    canonical(MODULE, "[method]output-stream.flush", &[I32, I32, I32], &[], Stream, flush),
    canonical(MODULE, "[method]output-stream.blocking-flush", &[I32, I32, I32], &[], Stream, flush),
    canonical(MODULE, "[method]output-stream.subscribe", &[I32, I32], &[I32], Stream, subscribe::<OutputStream>),
    canonical(MODULE, "[method]output-stream.write-zeroes", &[I32, I32, I64, I32], &[], Stream, write_zeroes),
    canonical(
        MODULE,
        "[method]output-stream.blocking-write-zeroes-and-flush",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        blocking_write_zeroes_and_flush,
    ),
    canonical(MODULE, "[method]output-stream.splice", &[I32, I32, I32, I64, I32], &[], Stream, splice),
    canonical(MODULE, "[method]output-stream.blocking-splice", &[I32, I32, I32, I64, I32], &[], Stream, blocking_splice),
];

/// A file that a stream reads or writes.
#[derive(Clone, Debug)]
pub(in crate::host) struct OpenFile {
    pub(in crate::host) file: Arc<fs::File>,
    /// That the system has it open, for as long as the stream does.
    pub(in crate::host) _open: Arc<Open>,
}

/// An `input-stream`.
#[derive(Debug)]
pub(in crate::host) enum InputStream {
    /// Standard input: the request's body, unless that is read through `wasi:http`.
    Standard,
    /// The request's body.
    Request,
    /// The body of another server's response.
    Response(Arc<Arriving>),
    /// A file, from that offset on.
    File(OpenFile, u64),
    /// What the other end of a connection sends.
    Socket(Arc<Connection>),
    /// What was a file, and has failed.
    Failed,
}

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

impl Resource for InputStream {
    fn dropped(&mut self) {
        if let InputStream::Socket(connection) = self {
            connection.drop_reader();
        }
    }

    fn memory_bytes(&self) -> usize {
        if let InputStream::Response(arriving) = self { arriving.memory_bytes() } else { 0 }
    }

    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        match self {
            InputStream::Standard if look.streams.is_http => Ok(true),
            InputStream::Standard | InputStream::Request => look.at_input(),
            InputStream::Response(arriving) => Ok(arriving.is_ready(look)),
            InputStream::Socket(connection) => Ok(connection.read_ready(look)),
            InputStream::File(..) | InputStream::Failed => Ok(true),
        }
    }
}

impl Typed for InputStream {
    const NUMBER: u32 = number("wasi:io/streams@0.2", "input-stream");
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

/// `subscribe(self) -> pollable`
pub(super) fn subscribe<T: Typed>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<T>(1)?;
    call.borrowed::<T>(1)?;
    call.give_child(Pollable(Subject::Of(representation)), Some(representation)).map(|own| Flat::from(own.0))
}

/// Reads at most so many bytes of an input stream, and goes on with them. None without being at the end means that there are none now, unless it blocks.
pub(in crate::host) fn read_then(
    call: &mut Call<'_>,
    representation: u32,
    length: u64,
    blocking: bool,
    then: impl FnOnce(&mut Call<'_>, Result<Bytes, Fault>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let ports = &mut call.context.ports;
    let is_http = ports.streams()?.is_http;
    match ports.resource::<InputStream>(representation)? {
        InputStream::Failed => then(call, Err(Fault::Closed)),
        InputStream::Standard if is_http => then(call, Err(Fault::Closed)),
        InputStream::Standard | InputStream::Request => match read_input(ports, length, blocking)? {
            Some(result) => then(call, result),
            None => Err(call.until_ready(&[Subject::Of(representation)], move |call| {
                read_then(call, representation, length, blocking, then)
            })),
        },
        InputStream::Response(_) if length == 0 => then(call, Ok(Bytes::new())),
        InputStream::Response(arriving) => {
            let result = arriving.read(length.min(READ_BYTES_MAX) as usize);
            call.context.ports.resources_mut().count(representation)?;
            match result {
                Some(result) => then(call, result),
                None if !blocking => then(call, Ok(Bytes::new())),
                None => Err(call.until_ready(&[Subject::Of(representation)], move |call| {
                    read_then(call, representation, length, blocking, then)
                })),
            }
        }
        InputStream::Socket(connection) => match connection.read(length.min(READ_BYTES_MAX) as usize) {
            Some(result) => then(call, result),
            None if !blocking => then(call, Ok(Bytes::new())),
            None => Err(call.until_ready(&[Subject::Of(representation)], move |call| {
                read_then(call, representation, length, blocking, then)
            })),
        },
        InputStream::File(OpenFile { file, .. }, at) => {
            let (file, at) = (Arc::clone(file), *at);
            let bytes_max = length.min(TRANSFER_BYTES_MAX) as usize;
            files::read_then(call, file, Some(at), bytes_max, move |call, result| {
                let result = match result {
                    Ok(bytes) if bytes.is_empty() && bytes_max > 0 => Err(Fault::Closed),
                    Ok(bytes) => {
                        if let InputStream::File(_, at) = call.context.ports.resource(representation)? {
                            *at += bytes.len() as u64;
                        }
                        Ok(bytes.into())
                    }
                    Err(errno) => {
                        *call.context.ports.resource::<InputStream>(representation)? = InputStream::Failed;
                        Err(Fault::Failed(errno))
                    }
                };
                then(call, result)
            })
        }
    }
}

/// Reads the request's body, or a file in its place; none where it blocks and there is nothing yet.
fn read_input(ports: &mut Ports, length: u64, blocking: bool) -> Result<Option<Result<Bytes, Fault>>, Stop> {
    if length == 0 {
        return Ok(Some(Ok(Bytes::new())));
    }
    let bytes_max = length.min(READ_BYTES_MAX) as usize;
    let bytes = match &mut ports.streams_mut()?.input {
        Input::Body(body) => {
            if !body.look() {
                return Ok((!blocking).then(|| Ok(Bytes::new())));
            }
            body.take_piece(bytes_max)?
        }
        input @ Input::File { .. } => {
            if !blocking && !input.wait_until(Some(std::time::Instant::now()))? {
                return Ok(Some(Ok(Bytes::new())));
            }
            let mut bytes = vec![0; bytes_max.min(COPY_BYTES)];
            match input.read(&mut bytes) {
                Ok(count) => bytes.truncate(count),
                Err(Stop::Errno(errno)) => return Ok(Some(Err(Fault::Failed(errno)))),
                Err(stop) => return Err(stop),
            }
            bytes.into()
        }
    };
    Ok(Some(if bytes.is_empty() { Err(Fault::Closed) } else { Ok(bytes) }))
}

fn read_bytes(call: &mut Call<'_>, blocking: bool) -> Result<Flat, Stop> {
    let representation = call.representation::<InputStream>(1)?;
    let length = call.args.u64(2);
    read_then(call, representation, length, blocking, |call, result| call.lower_streamed(3, result))
}

/// `read(self, len: u64) -> result<list<u8>, stream-error>`
fn read(call: &mut Call<'_>) -> Result<Flat, Stop> {
    read_bytes(call, false)
}

/// `blocking-read(self, len: u64) -> result<list<u8>, stream-error>`
fn blocking_read(call: &mut Call<'_>) -> Result<Flat, Stop> {
    read_bytes(call, true)
}

fn skip_bytes(call: &mut Call<'_>, blocking: bool) -> Result<Flat, Stop> {
    let representation = call.representation::<InputStream>(1)?;
    let length = call.args.u64(2);
    read_then(call, representation, length, blocking, |call, result| {
        call.lower_streamed(3, result.map(|bytes| bytes.len() as u64))
    })
}

/// `skip(self, len: u64) -> result<u64, stream-error>`
fn skip(call: &mut Call<'_>) -> Result<Flat, Stop> {
    skip_bytes(call, false)
}

/// `blocking-skip(self, len: u64) -> result<u64, stream-error>`
fn blocking_skip(call: &mut Call<'_>) -> Result<Flat, Stop> {
    skip_bytes(call, true)
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
    pub(super) fn rest<'c>(&'c self, memory: Option<&'c GuestMemory<'_>>, done: usize, length: usize) -> Result<&'c [u8], Stop> {
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
        OutputStream::File(OpenFile { file, .. }, to) => Some((Arc::clone(file), *to)),
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
fn write_file(file: &fs::File, to: To, bytes: &[u8]) -> (usize, Result<(), Errno>) {
    let mut done = 0;
    while done < bytes.len() {
        let to = if let To::Offset(at) = to { To::Offset(at + done as u64) } else { to };
        match files::write_some(file, to, &bytes[done..]) {
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
            let count = outgoing.write(ports.streams_mut()?, bytes)?;
            if let Some(message) = outgoing.counted_by() {
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
fn check_write(call: &mut Call<'_>) -> Result<Flat, Stop> {
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
fn write(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Guest(call.args.address(2)), call.args.u32(3).into(), 4, false)
}

/// `blocking-write-and-flush(self, contents: list<u8>) -> result<_, stream-error>`
fn blocking_write_and_flush(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Guest(call.args.address(2)), call.args.u32(3).into(), 4, true)
}

/// `write-zeroes(self, len: u64) -> result<_, stream-error>`
fn write_zeroes(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Zeros, call.args.u64(2), 3, false)
}

/// `blocking-write-zeroes-and-flush(self, len: u64) -> result<_, stream-error>`
fn blocking_write_zeroes_and_flush(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write_bytes(call, Content::Zeros, call.args.u64(2), 3, true)
}

/// `flush(self) -> result<_, stream-error>` and `blocking-flush`: nothing is kept back.
fn flush(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let result = check_open(call)?;
    call.lower_streamed(2, result)
}

/// `splice(self, src: borrow<input-stream>, len: u64) -> result<u64, stream-error>`
fn splice(call: &mut Call<'_>) -> Result<Flat, Stop> {
    splice_bytes(call, false)
}

/// `blocking-splice(self, src: borrow<input-stream>, len: u64) -> result<u64, stream-error>`
fn blocking_splice(call: &mut Call<'_>) -> Result<Flat, Stop> {
    splice_bytes(call, true)
}

fn splice_bytes(call: &mut Call<'_>, blocking: bool) -> Result<Flat, Stop> {
    let (to, from) = (call.representation::<OutputStream>(1)?, call.representation::<InputStream>(2)?);
    let room = room(call, to)?;
    if room == 0 && blocking {
        return Err(call.until_ready(&[Subject::Of(to)], blocking_splice));
    }
    let length = call.args.u64(3).min(room as u64);
    read_then(call, from, length, blocking, move |call, result| match result {
        Ok(bytes) => {
            let count = bytes.len();
            write_then(call, to, Content::Given(bytes), 0, count, move |call, result| {
                call.lower_streamed(4, result.map(|()| count as u64))
            })
        }
        Err(fault) => call.lower_streamed(4, Err::<u64, _>(fault)),
    })
}
