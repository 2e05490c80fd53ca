//! `input-stream`: standard input, bodies of messages, files and connections, as they are read.

use std::sync::Arc;

use bytes::Bytes;

use super::{COPY_BYTES, OpenFile};
use crate::host::canonical::{Look, Resource, Subject, Typed, number};
use crate::host::context::Ports;
use crate::host::wasi::files::{self, TRANSFER_BYTES_MAX};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::http::Arriving;
use crate::host::wasi2::sockets::Connection;
use crate::host::{Call, Flat, Input, Stop};

/// Bytes of a stream that are read at once.
const READ_BYTES_MAX: u64 = 1 << 20;

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
            let (file, at) = (file.clone(), *at);
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
pub(super) fn read(call: &mut Call<'_>) -> Result<Flat, Stop> {
    read_bytes(call, false)
}

/// `blocking-read(self, len: u64) -> result<list<u8>, stream-error>`
pub(super) fn blocking_read(call: &mut Call<'_>) -> Result<Flat, Stop> {
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
pub(super) fn skip(call: &mut Call<'_>) -> Result<Flat, Stop> {
    skip_bytes(call, false)
}

/// `blocking-skip(self, len: u64) -> result<u64, stream-error>`
pub(super) fn blocking_skip(call: &mut Call<'_>) -> Result<Flat, Stop> {
    skip_bytes(call, true)
}
