//! `wasi:cli`: the standard streams.

use std::sync::Arc;

use awsm_abi::types::ValType::I32;

use super::ends::{FaultCode, Outcome, Source, Told};
use super::pump;
use crate::host::Effect::Stream;
use crate::host::canonical::{canonical, enums};
use crate::host::wasi::Errno;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::{ERRORS, INPUT, OUTPUT};
use crate::host::{Call, Flat, HostFunction, Stop};

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical("wasi:cli/stdin@0.3", "read-via-stream", &[I32, I32, I32], &[], Stream, read_stdin),
    canonical("wasi:cli/stdout@0.3", "write-via-stream", &[I32, I32, I32], &[], Stream, write_stdout),
    canonical("wasi:cli/stderr@0.3", "write-via-stream", &[I32, I32, I32], &[], Stream, write_stderr),
];

/// An `error-code` of `wasi:cli/types`.
#[derive(Clone, Copy, Debug)]
enum ErrorCode {
    Io = 0,
    Pipe = 2,
}

enums! { ErrorCode }

impl FaultCode for ErrorCode {
    fn of(fault: Fault) -> ErrorCode {
        if matches!(fault, Fault::Closed | Fault::Failed(Errno::PIPE)) { ErrorCode::Pipe } else { ErrorCode::Io }
    }
}

/// `read-via-stream() -> tuple<stream<u8>, future<result<_, error-code>>>`
fn read_stdin(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let outcome = Arc::new(Outcome::default());
    call.share(call.args.u32(1), Arc::new(Source { stream: INPUT, outcome: Arc::clone(&outcome) }))?;
    call.share(call.args.u32(2), Told::<ErrorCode>::new(outcome))?;
    Ok(Flat::NONE)
}

/// `write-via-stream(data: stream<u8>) -> future<result<_, error-code>>`
fn write_stdout(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write(call, OUTPUT)
}

fn write_stderr(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write(call, ERRORS)
}

fn write(call: &mut Call<'_>, stream: u32) -> Result<Flat, Stop> {
    let outcome = Arc::new(Outcome::default());
    pump::take(call, call.args.u32(1), stream, Arc::clone(&outcome))?;
    call.share(call.args.u32(2), Told::<ErrorCode>::new(outcome))?;
    Ok(Flat::NONE)
}
