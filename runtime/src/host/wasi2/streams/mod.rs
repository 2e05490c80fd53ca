//! `wasi:io/streams`: the standard streams, files from an offset on, bodies of messages, connections.
//!
//! What must not block here never keeps a worker: where it may wait for a disk, the guest is suspended meanwhile.

mod input;
mod output;

use std::sync::Arc;

use awsm_abi::types::ValType::{I32, I64};

pub(in crate::host) use self::input::{InputStream, read_then};
use self::input::{blocking_read, blocking_skip, read, skip};
pub(in crate::host) use self::output::{Content, OutputStream, room, write_then};
use self::output::{blocking_write_and_flush, blocking_write_zeroes_and_flush, check_write, flush, write, write_zeroes};
use crate::host::Effect::Stream;
use crate::host::canonical::{Pollable, Subject, Typed, canonical};
use crate::host::wasi::contents::Contents;
use crate::host::wasi::descriptors::Open;
use crate::host::{Call, Flat, HostFunction, Stop};

/// Module name of the imports.
const MODULE: &str = "wasi:io/streams@0.2";
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
    pub(in crate::host) file: Contents,
    /// That the system has it open, for as long as the stream does.
    pub(in crate::host) _open: Arc<Open>,
}

/// `subscribe(self) -> pollable`
pub(super) fn subscribe<T: Typed>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<T>(1)?;
    call.borrowed::<T>(1)?;
    call.give_child(Pollable(Subject::Of(representation)), Some(representation)).map(|own| Flat::from(own.0))
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
