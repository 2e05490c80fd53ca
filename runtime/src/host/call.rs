//! `sledge:call`: other functions of the same tenant, without the network, as sdk/wit/call.wit says.
//!
//! A call goes out with a name and an input ([`Outgoing`]); the worker makes an invocation of it and says where its reply comes
//! ([`Answer`]). What was called and not waited for ends with the caller, unless it was only sent.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use awsm_abi::types::ValType::I32;
use bytes::Bytes;

use super::http::RequestHead;
use super::rpc::Begun;
use super::wasi::Errno;
use super::{Call, Effect, Flat, HostFunction, Stop, own};
use crate::outcome::Failure;
use crate::reply::{Answer, Content, Reply, Stream};

/// Module name of the imports.
const MODULE: &str = "sledge:call";
/// The largest input of a call; replies have `reply_bytes_max`.
pub(super) const INPUT_BYTES_MAX: usize = 4 << 20;
/// The longest name that is looked for.
pub(super) const NAME_BYTES_MAX: u32 = 200;
/// Calls of one invocation whose replies it has not taken yet.
const CALLS_MAX: usize = 64;

/// Why a call has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// Too many functions wait for each other.
    TooDeep,
    /// It was not begun, or it failed.
    Failed(Failure),
}

/// A call that an invocation makes.
#[derive(Debug)]
pub struct Outgoing {
    /// The function's name.
    pub name: Arc<str>,
    /// What it gets as its body.
    pub input: Bytes,
    /// Which of the caller's host calls this is, from 1.
    pub host_call: u32,
    /// Which call waits for the reply; none if it is not wanted.
    pub id: Option<CallId>,
    /// What a call by gRPC says besides.
    pub rpc: Option<RpcRequest>,
}

/// What a call by gRPC has besides its input.
#[derive(Debug)]
pub struct RpcRequest {
    /// What its callee sees as the request's head.
    pub head: Box<RequestHead>,
    /// What comes behind the input.
    pub more: Option<Stream>,
    /// How long it may take at most.
    pub timeout: Option<Duration>,
}

/// A call whose reply is wanted, among those of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallId {
    /// The host call that waits for it now.
    Now,
    /// The one with this handle.
    Started(usize),
}

/// A call that was made, and whose reply is to be asked for.
#[derive(Debug)]
struct Started {
    called: Called,
    /// What a component's handle of it holds: without that nothing asks for the reply.
    owner: Option<Weak<()>>,
}

/// What became of a call.
#[derive(Debug)]
enum Called {
    /// It is still to be made.
    Outgoing,
    /// It was made, or could not be.
    Made(Result<Answer, CallFailure>),
}

/// The calls of one invocation.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Those to be made.
    pub(super) outgoing: VecDeque<Outgoing>,
    /// A call by gRPC that is waited for to be made.
    pub(super) begun: Option<Box<Begun>>,
    /// Those that were made, by their handles.
    started: Vec<Option<Started>>,
    /// The one that is waited for at once, when it was made.
    now: Option<Result<Answer, CallFailure>>,
    /// What came so far of a reply that comes in pieces.
    collected: Vec<u8>,
    /// What of the last reply did not fit.
    rest: Bytes,
}

impl Calls {
    /// Bytes of the inputs that the worker has not taken yet, and of a reply of which there is more.
    pub(super) fn bytes(&self) -> usize {
        self.outgoing.iter().map(|call| call.input.len()).sum::<usize>() + self.rest.len() + self.collected.capacity()
    }

    /// A call was made, or not.
    pub(super) fn called(&mut self, id: CallId, answer: Result<Answer, CallFailure>) {
        match id {
            CallId::Now => self.now = Some(answer),
            CallId::Started(handle) => {
                if let Some(Some(Started { called: called @ Called::Outgoing, .. })) = self.started.get_mut(handle) {
                    *called = Called::Made(answer);
                }
            }
        }
    }

    /// What became of the call that is waited for at once, when it was made.
    pub(super) const fn take_now(&mut self) -> Option<Result<Answer, CallFailure>> {
        self.now.take()
    }

    /// Whether as many are to be made as may be at a time.
    pub(super) fn is_full(&self) -> bool {
        self.outgoing.len() >= CALLS_MAX
    }

    /// A place for a call to be begun; none where there are as many as may be.
    fn free(&self) -> Option<usize> {
        let is_free = |place: &Option<Started>| {
            let owner = place.as_ref().map(|started| started.owner.as_ref());
            owner.is_none_or(|owner| owner.is_some_and(|owner| owner.strong_count() == 0))
        };
        let free = self.started.iter().position(is_free).unwrap_or(self.started.len());
        (free < CALLS_MAX).then_some(free)
    }

    /// The call of that place is one that was begun.
    fn put(&mut self, handle: usize, owner: Option<Weak<()>>) {
        if handle == self.started.len() {
            self.started.push(None);
        }
        self.started[handle] = Some(Started { called: Called::Outgoing, owner });
    }
}

/// The interface.
pub(super) const FUNCTIONS: &[HostFunction] = &[
    own(MODULE, "invoke", &[I32, I32, I32, I32, I32, I32], Effect::Call, invoke),
    own(MODULE, "start", &[I32, I32, I32, I32], Effect::Call, start),
    own(MODULE, "wait", &[I32, I32, I32], Effect::Call, wait),
    own(MODULE, "rest", &[I32, I32], Effect::Call, rest),
    own(MODULE, "send", &[I32, I32, I32, I32], Effect::Call, send),
];

impl From<CallFailure> for Stop {
    fn from(failure: CallFailure) -> Stop {
        Stop::Errno(match failure {
            CallFailure::TooDeep => Errno::LOOP,
            CallFailure::Failed(Failure::NotFound) => Errno::NOENT,
            CallFailure::Failed(Failure::Deadline) => Errno::TIMEDOUT,
            CallFailure::Failed(Failure::Quarantined) => Errno::NOTRECOVERABLE,
            CallFailure::Failed(failure) if failure.is_temporary() => Errno::AGAIN,
            CallFailure::Failed(_) => Errno::CHILD,
        })
    }
}

/// Puts a call among those to be made. The lengths were checked.
///
/// # Errors
/// `E2BIG` when there are too many.
pub(super) fn begin(call: &mut Call<'_>, name: Arc<str>, input: Bytes, id: Option<CallId>) -> Result<(), Stop> {
    let host_call = call.context.host_calls;
    let calls = call.context.ports.calls()?;
    if calls.is_full() {
        return Err(Errno::TOOBIG.into());
    }
    calls.outgoing.push_back(Outgoing { name, input, host_call, id, rpc: None });
    Ok(())
}

/// The same of one whose reply is asked for later; its handle, none where there are as many as may be.
pub(super) fn begin_started(
    call: &mut Call<'_>,
    name: Arc<str>,
    input: Bytes,
    owner: Option<Weak<()>>,
) -> Result<Option<usize>, Stop> {
    let Some(handle) = call.context.ports.calls()?.free() else { return Ok(None) };
    begin(call, name, input, Some(CallId::Started(handle)))?;
    call.context.ports.calls()?.put(handle, owner);
    Ok(Some(handle))
}

/// What became of a call that was begun before; then the handle is no more.
///
/// # Errors
/// `EBADF` when there is no such handle. [`Stop::Again`] when it is still to be made.
pub(super) fn take_started(call: &mut Call<'_>, handle: usize) -> Result<Result<Answer, CallFailure>, Stop> {
    let place = call.context.ports.calls()?.started.get_mut(handle).ok_or(Errno::BADF)?;
    match place.take().ok_or(Errno::BADF)? {
        Started { called: Called::Made(made), .. } => Ok(made),
        outgoing => {
            *place = Some(outgoing);
            Err(Stop::Again)
        }
    }
}

/// Name and input of a call, as arguments 0 to 3 say.
fn named(call: &Call<'_>) -> Result<(Arc<str>, Bytes), Stop> {
    let (name, name_bytes, input, input_bytes) = (call.args.address(0), call.args.u32(1), call.args.address(2), call.args.u32(3));
    if name_bytes > NAME_BYTES_MAX || input_bytes as usize > INPUT_BYTES_MAX {
        return Err(Errno::TOOBIG.into());
    }
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let name = std::str::from_utf8(memory.slice(name, name_bytes.into())?).map_err(|_| Errno::NOENT)?.into();
    Ok((name, Bytes::copy_from_slice(memory.slice(input, input_bytes.into())?)))
}

/// Waits for a reply, and answers with what `then` makes of all of it.
pub(super) fn wait_for<R: Into<Flat>>(
    call: &mut Call<'_>,
    answer: Answer,
    then: impl FnOnce(&mut Call<'_>, Result<Bytes, CallFailure>) -> Result<R, Stop> + Send + 'static,
) -> Stop {
    call.wait(answer.reply(), move |call, reply| match reply.and_then(|Reply { result, .. }| result) {
        Ok(Content::Whole(bytes)) => then(call, Ok(bytes)),
        Ok(Content::Pieces(pieces)) => then(call, Ok(pieces.join())),
        Ok(Content::Stream(stream)) => Err(collect(call, stream, then)),
        Err(failure) => then(call, Err(CallFailure::Failed(failure))),
    })
}

/// Waits for all of a reply that comes in pieces. What came counts as the caller's, which has a limit.
fn collect<R: Into<Flat>>(
    call: &mut Call<'_>,
    mut stream: Stream,
    then: impl FnOnce(&mut Call<'_>, Result<Bytes, CallFailure>) -> Result<R, Stop> + Send + 'static,
) -> Stop {
    let next = async move {
        let next = stream.next().await;
        (stream, next)
    };
    call.wait(next, move |call, (stream, next)| {
        let collected = &mut call.context.ports.calls()?.collected;
        match next {
            Some(Ok(bytes)) => {
                collected.extend_from_slice(&bytes);
                drop(bytes);
                Err(collect(call, stream, then))
            }
            Some(Err(failure)) => {
                *collected = Vec::new();
                then(call, Err(CallFailure::Failed(failure)))
            }
            None => {
                let reply = Bytes::from(std::mem::take(collected));
                then(call, Ok(reply))
            }
        }
    })
}

/// Writes as much of a reply as fits to the address and length that are arguments `index` and `index + 1`, and keeps what does not; the answer is
/// the length of all of it.
fn put(call: &mut Call<'_>, mut reply: Bytes, index: usize) -> Result<i32, Stop> {
    let (at, room) = (call.args.address(index), call.args.u32(index + 1) as usize);
    let bytes = i32::try_from(reply.len()).map_err(|_| Errno::OVERFLOW)?;
    let (memory, context) = call.split()?;
    memory.write(at, &reply[..reply.len().min(room)])?;
    // Most leave nothing behind, and then the reply's buffer is not kept.
    context.ports.calls()?.rest = if reply.len() > room { reply.split_off(room) } else { Bytes::new() };
    Ok(bytes)
}

/// Whether a reply can be written to where the arguments say.
fn check_room(call: &mut Call<'_>, index: usize) -> Result<(), Stop> {
    let (at, room) = (call.args.address(index), call.args.u32(index + 1));
    call.memory_mut()?.slice(at, room.into())?;
    Ok(())
}

/// `invoke(name, name_bytes, input, input_bytes, reply, reply_bytes) -> bytes`: the reply's length, of which as much is written as fits.
fn invoke(call: &mut Call<'_>) -> Result<i32, Stop> {
    if let Some(made) = call.context.ports.calls()?.take_now() {
        return Err(wait_for(call, made?, |call, reply| put(call, reply?, 4)));
    }
    check_room(call, 4)?;
    let (name, input) = named(call)?;
    begin(call, name, input, Some(CallId::Now))?;
    // Its caller takes it from there before this is called again.
    Err(Stop::Again)
}

/// `start(name, name_bytes, input, input_bytes) -> call`
fn start(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (name, input) = named(call)?;
    let handle = begin_started(call, name, input, None)?.ok_or(Errno::MFILE)?;
    Ok(handle as i32)
}

/// `wait(call, reply, reply_bytes) -> bytes`: as `invoke`; the handle is no more.
fn wait(call: &mut Call<'_>) -> Result<i32, Stop> {
    check_room(call, 1)?;
    let handle = call.args.u32(0) as usize;
    let made = take_started(call, handle)?;
    Err(wait_for(call, made?, |call, reply| put(call, reply?, 1)))
}

/// `rest(reply, reply_bytes) -> bytes`: what of the last reply did not fit, as if it were a reply.
fn rest(call: &mut Call<'_>) -> Result<i32, Stop> {
    check_room(call, 0)?;
    let rest = std::mem::take(&mut call.context.ports.calls()?.rest);
    put(call, rest, 0)
}

/// `send(name, name_bytes, input, input_bytes) -> 0`: whether it is even begun is not told.
fn send(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (name, input) = named(call)?;
    begin(call, name, input, None).map(|()| 0)
}
