//! Streams and futures of which the host has one end, by the number that the component's glue gives them (`outside.wat`).
//!
//! Reading and writing waits as any host call does, so it becomes an operation of the component. What a plain module makes up for numbers leads to ends of its
//! own invocation only.

use std::collections::BTreeMap;
use std::sync::Arc;

use awsm_abi::component::{CANONICAL, CLOSE, COPY};
use awsm_abi::types::ValType::I32;
use tokio::sync::watch;

use super::filesystem;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::Stream;
use crate::host::canonical::{Subject, canonical};
use crate::host::wasi::Errno;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::streams::{Content, read_then, room, write_then};
use crate::host::{Call, Flat, HostFunction, Stop};

/// The most ends of one invocation: they count nowhere else.
const ENDS_MAX: usize = 1 << 14;
/// What [`COPY`] returns where the host's end is dropped.
pub(super) const DROPPED: u32 = 1;

/// What glue imports for them.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(CANONICAL, COPY, &[I32, I32, I32, I32], &[I32], Stream, copy),
    canonical(CANONICAL, CLOSE, &[I32], &[], Stream, close),
];

/// The ends that the host has in an invocation.
#[derive(Debug, Default)]
pub(in crate::host) struct Ends(BTreeMap<u32, End>);

/// The host's end of a stream or future. A stream's representation is that of WASI 0.2.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// Bytes of an input stream, which the component reads.
    Source { stream: u32, outcome: Arc<Outcome> },
    /// An output stream, to which the component writes.
    Sink { stream: u32, outcome: Arc<Outcome> },
    /// Entries of a folder, which the component reads.
    Entries { stream: u32, outcome: Arc<Outcome> },
    /// What became of one of these, in a `future<result<_, error-code>>`.
    Outcome(Arc<Outcome>),
}

/// How the transfer of a stream ended: with an `error-code` of `wasi:cli`, or well.
#[derive(Debug, Default)]
pub(super) struct Outcome(watch::Sender<Option<Result<(), ErrorCode>>>);

/// An `error-code` of `wasi:cli`.
#[derive(Clone, Copy, Debug)]
pub(super) enum ErrorCode {
    Io = 0,
    Pipe = 2,
}

impl Outcome {
    /// It failed so, unless it had ended before.
    pub(super) fn fail(&self, errno: Errno) {
        self.end(Err(if errno == Errno::PIPE { ErrorCode::Pipe } else { ErrorCode::Io }));
    }

    /// It ended so, unless it had ended before.
    pub(super) fn end(&self, result: Result<(), ErrorCode>) {
        self.0.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(result);
            is_first
        });
    }
}

impl Call<'_> {
    /// The host has one end of the stream or future of that number now.
    ///
    /// # Errors
    /// A trap, when there are too many.
    pub(super) fn share(&mut self, number: u32, end: End) -> Result<(), Stop> {
        let ends = &mut self.context.ends.get_or_insert_default().0;
        if ends.len() >= ENDS_MAX {
            return Err(ComponentTrap::ResourcesExhausted.into());
        }
        ends.insert(number, end);
        Ok(())
    }
}

/// `copy(number, address, count, writes) -> packed`
fn copy(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (number, address, count, writes) = (call.args.u32(0), call.args.address(1), call.args.u32(2), call.args.u32(3) != 0);
    let end = call.context.ends.as_ref().and_then(|ends| ends.0.get(&number)).cloned();
    match end {
        Some(End::Source { stream, outcome }) if !writes => read(call, stream, outcome, address, count),
        Some(End::Sink { stream, outcome }) if writes => write(call, stream, outcome, address, count),
        Some(End::Entries { stream, outcome }) if !writes => filesystem::read_entries(call, stream, outcome, 1, count),
        Some(End::Outcome(outcome)) if !writes => learn(call, &outcome, address),
        _ => Err(ComponentTrap::NothingToResume.into()),
    }
}

/// The component reads bytes.
fn read(call: &mut Call<'_>, stream: u32, outcome: Arc<Outcome>, address: u64, count: u32) -> Result<Flat, Stop> {
    read_then(call, stream, count.into(), true, move |call, result| {
        let packed = match result {
            Ok(bytes) => {
                let memory = call.memory.as_mut().ok_or(ComponentTrap::OutOfBounds)?;
                memory.write(address, &bytes).map_err(|_| ComponentTrap::OutOfBounds)?;
                (bytes.len() as u32) << 4
            }
            Err(fault) => {
                outcome.end(if matches!(fault, Fault::Closed) { Ok(()) } else { Err(ErrorCode::Io) });
                DROPPED
            }
        };
        Ok(Flat::from(packed))
    })
}

/// The component writes bytes: as many as there is room for, so that nothing is lost where it gives that up while it waits.
fn write(call: &mut Call<'_>, stream: u32, outcome: Arc<Outcome>, address: u64, count: u32) -> Result<Flat, Stop> {
    let room = room(call, stream)?;
    if room == 0 && count > 0 {
        return Err(call.until_ready(&[Subject::Of(stream)], move |call| write(call, stream, outcome, address, count)));
    }
    let count = room.min(count as usize);
    write_then(call, stream, Content::Guest(address), 0, count, move |_, result| {
        Ok(Flat::from(match result {
            Ok(()) => (count as u32) << 4,
            Err(fault) => {
                let is_gone = matches!(fault, Fault::Closed | Fault::Failed(Errno::PIPE, _));
                outcome.end(Err(if is_gone { ErrorCode::Pipe } else { ErrorCode::Io }));
                DROPPED
            }
        }))
    })
}

/// The component reads how a transfer ended.
fn learn(call: &mut Call<'_>, outcome: &Outcome, address: u64) -> Result<Flat, Stop> {
    let known = *outcome.0.borrow();
    if let Some(result) = known {
        return tell(call, result, address);
    }
    let mut end = outcome.0.subscribe();
    let wait = async move { end.wait_for(Option::is_some).await.ok().and_then(|result| *result) };
    // What could end it with an error is gone.
    Err(call.wait(wait, move |call, result| tell(call, result.unwrap_or(Ok(())), address)))
}

/// Writes a `result<_, error-code>`.
fn tell(call: &mut Call<'_>, result: Result<(), ErrorCode>, address: u64) -> Result<Flat, Stop> {
    let bytes = match result {
        Ok(()) => [0, 0],
        Err(code) => [1, code as u8],
    };
    let memory = call.memory.as_mut().ok_or(ComponentTrap::OutOfBounds)?;
    memory.write(address, &bytes).map_err(|_| ComponentTrap::OutOfBounds)?;
    // The one value of a future.
    Ok(Flat::from(1_u32 << 4))
}

/// `close(number)`: what was written before has gone on its way.
fn close(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let number = call.args.u32(0);
    let end = call.context.ends.as_mut().and_then(|ends| ends.0.remove(&number));
    if let Some(End::Source { outcome, .. } | End::Sink { outcome, .. } | End::Entries { outcome, .. }) = end {
        outcome.end(Ok(()));
    }
    Ok(Flat::NONE)
}
