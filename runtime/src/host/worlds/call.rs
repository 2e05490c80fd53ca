//! `sledge:call/functions`: other functions of the same tenant, for components.

use std::sync::Arc;

use awsm_abi::types::ValType::I32;
use bytes::Bytes;

use crate::host::Effect;
use crate::host::call::{self as calls, CallFailure, CallId, INPUT_BYTES_MAX, NAME_BYTES_MAX};
use crate::host::canonical::{Resource, Typed, canonical, enums, number};
use crate::host::{Call, Flat, HostFunction, Stop};
use crate::outcome::Failure;
use crate::reply::Answer;

const FUNCTIONS_MODULE: &str = "sledge:call/functions@0.1";

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(FUNCTIONS_MODULE, "invoke", &[I32, I32, I32, I32, I32, I32], &[I32], Effect::Call, invoke),
    canonical(FUNCTIONS_MODULE, "start", &[I32, I32, I32, I32, I32, I32], &[], Effect::Call, start),
    canonical(FUNCTIONS_MODULE, "[method]pending.wait", &[I32, I32, I32], &[I32], Effect::Call, wait),
    canonical(FUNCTIONS_MODULE, "send", &[I32, I32, I32, I32, I32, I32], &[], Effect::Call, send),
];

/// An `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Error {
    NotFound,
    TooDeep,
    Busy,
    Timeout,
    Failed,
    Quarantined,
    TooLarge,
}

enums! { Error }

impl From<CallFailure> for Error {
    fn from(failure: CallFailure) -> Error {
        match failure {
            CallFailure::TooDeep => Error::TooDeep,
            CallFailure::Failed(Failure::NotFound) => Error::NotFound,
            CallFailure::Failed(Failure::Deadline) => Error::Timeout,
            CallFailure::Failed(Failure::Quarantined) => Error::Quarantined,
            CallFailure::Failed(failure) if failure.is_temporary() => Error::Busy,
            CallFailure::Failed(_) => Error::Failed,
        }
    }
}

/// A `pending`: a call that was begun.
#[derive(Debug)]
struct Pending {
    /// None when its reply was asked for.
    handle: Option<usize>,
    /// Dropped with the resource: then its place is free.
    _owner: Arc<()>,
}

impl Resource for Pending {}

impl Typed for Pending {
    const NUMBER: u32 = number(FUNCTIONS_MODULE, "pending");
}

/// Name and input of a call, as arguments 1 to 4 say.
fn named(call: &Call<'_>) -> Result<Result<(Arc<str>, Bytes), Error>, Stop> {
    // No function has a longer name.
    let Some(name) = call.text_within(1, NAME_BYTES_MAX.into())? else { return Ok(Err(Error::NotFound)) };
    let input = call.bytes(3)?;
    if input.len() > INPUT_BYTES_MAX {
        return Ok(Err(Error::TooLarge));
    }
    Ok(Ok((name.into(), Bytes::copy_from_slice(input))))
}

/// Puts a call among those to be made; its reply is for `id`, if it is wanted.
fn begin(call: &mut Call<'_>, id: Option<CallId>) -> Result<Result<(), Error>, Stop> {
    let (name, input) = match named(call)? {
        Ok(named) => named,
        Err(error) => return Ok(Err(error)),
    };
    check_room(call)?;
    calls::begin(call, name, input, id)?;
    Ok(Ok(()))
}

/// Has the worker take the calls that are to be made, where there are as many as may be at a time; then this call is made again.
fn check_room(call: &mut Call<'_>) -> Result<(), Stop> {
    if call.context.ports.calls()?.is_full() { Err(Stop::Again) } else { Ok(()) }
}

/// Gives the component the reply of a call, at the address that is argument `index`.
fn reply(call: &mut Call<'_>, made: Result<Answer, CallFailure>, index: usize) -> Result<Flat, Stop> {
    match made {
        Ok(answer) => Err(calls::wait_for(call, answer, move |call, reply| call.lower(index, reply.map_err(Error::from)))),
        Err(failure) => call.lower(index, Err::<Bytes, _>(Error::from(failure))),
    }
}

/// `invoke(name, input) -> result<list<u8>, error>`
fn invoke(call: &mut Call<'_>) -> Result<Flat, Stop> {
    if let Some(made) = call.context.ports.calls()?.take_now() {
        return reply(call, made, 5);
    }
    match begin(call, Some(CallId::Now))? {
        // Its caller takes it from there before this is called again.
        Ok(()) => Err(Stop::Again),
        Err(error) => call.lower(5, Err::<Bytes, _>(error)),
    }
}

/// `start(name, input) -> result<pending, error>`
fn start(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let started = match named(call)? {
        Ok((name, input)) => {
            check_room(call)?;
            let owner = Arc::new(());
            match calls::begin_started(call, name, input, Some(Arc::downgrade(&owner)))? {
                Some(handle) => Ok(call.give(Pending { handle: Some(handle), _owner: owner })?),
                None => Err(Error::Busy),
            }
        }
        Err(error) => Err(error),
    };
    call.lower(5, started)
}

/// `wait(self) -> result<list<u8>, error>`: once.
fn wait(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let Some(handle) = call.borrowed::<Pending>(1)?.handle else { return call.lower(2, Err::<Bytes, _>(Error::Failed)) };
    let made = calls::take_started(call, handle)?;
    call.borrowed::<Pending>(1)?.handle = None;
    reply(call, made, 2)
}

/// `send(name, input) -> result<_, error>`
fn send(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let sent = begin(call, None)?;
    call.lower(5, sent)
}
