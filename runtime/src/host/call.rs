//! `sledge:call`: other functions of the same tenant, without the network, as sdk/wit/call.wit says.
//!
//! A call goes out with a name and an input ([`Outgoing`]); the worker makes an invocation of it and says where its reply comes
//! ([`Answer`]). What was called and not waited for ends with the caller, unless it was only sent.

use awsm_abi::types::ValType::I32;
use bytes::Bytes;

use super::wasi::Errno;
use super::{Call, Effect, HostFunction, Stop, own};
use crate::outcome::Failure;
use crate::reply::{Answer, Content, Reply, Stream};

/// Module name of the imports.
const MODULE: &str = "sledge:call";
/// The largest input of a call; replies have `reply_bytes_max`.
const INPUT_BYTES_MAX: usize = 4 << 20;
/// The longest name that is looked for.
const NAME_BYTES_MAX: u32 = 200;
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
    pub name: String,
    /// What it gets as its body.
    pub input: Bytes,
    /// Which of the caller's host calls this is, from 1.
    pub host_call: u32,
    /// Which call waits for the reply; none if it is not wanted.
    pub id: Option<CallId>,
}

/// A call whose reply is wanted, among those of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallId {
    /// The host call that waits for it now.
    Now,
    /// The one with this handle.
    Started(usize),
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
    pub(super) outgoing: Vec<Outgoing>,
    /// Those that were made, by their handles.
    started: Vec<Option<Called>>,
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
                if let Some(place @ Some(Called::Outgoing)) = self.started.get_mut(handle) {
                    *place = Some(Called::Made(answer));
                }
            }
        }
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

/// Puts a call of the function that arguments 0 to 3 name, with its input, among those to be made.
fn begin(call: &mut Call<'_>, id: Option<CallId>) -> Result<(), Stop> {
    let (name, name_bytes, input, input_bytes) = (call.args.address(0), call.args.u32(1), call.args.address(2), call.args.u32(3));
    let (memory, context) = call.split()?;
    let host_call = context.host_calls;
    let outgoing = &mut context.ports.calls()?.outgoing;
    if name_bytes > NAME_BYTES_MAX || input_bytes as usize > INPUT_BYTES_MAX || outgoing.len() >= CALLS_MAX {
        return Err(Errno::TOOBIG.into());
    }
    let name = std::str::from_utf8(memory.slice(name, name_bytes.into())?).map_err(|_| Errno::NOENT)?.to_owned();
    let input = Bytes::copy_from_slice(memory.slice(input, input_bytes.into())?);
    outgoing.push(Outgoing { name, input, host_call, id });
    Ok(())
}

/// Waits for a reply; as much of it as fits goes to the address and length that are arguments `index` and `index + 1`.
fn answer(call: &mut Call<'_>, answer: Answer, index: usize) -> Stop {
    call.wait(answer.reply(), move |call, reply| {
        match reply.and_then(|Reply { result, .. }| result).map_err(CallFailure::Failed)? {
            Content::Whole(bytes) => put(call, bytes, index),
            Content::Stream(stream) => Err(collect(call, stream, index)),
        }
    })
}

/// Waits for all of a reply that comes in pieces. What came counts as the caller's, which has a limit.
fn collect(call: &mut Call<'_>, mut stream: Stream, index: usize) -> Stop {
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
                Err(collect(call, stream, index))
            }
            Some(Err(failure)) => {
                *collected = Vec::new();
                Err(CallFailure::Failed(failure).into())
            }
            None => {
                let reply = Bytes::from(std::mem::take(collected));
                put(call, reply, index)
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
    if let Some(made) = call.context.ports.calls()?.now.take() {
        return Err(answer(call, made?, 4));
    }
    check_room(call, 4)?;
    begin(call, Some(CallId::Now))?;
    // Its caller takes it from there before this is called again.
    Err(Stop::Again)
}

/// `start(name, name_bytes, input, input_bytes) -> call`
fn start(call: &mut Call<'_>) -> Result<i32, Stop> {
    let started = &call.context.ports.calls()?.started;
    let free = started.iter().position(Option::is_none).unwrap_or(started.len());
    if free >= CALLS_MAX {
        return Err(Errno::MFILE.into());
    }
    begin(call, Some(CallId::Started(free)))?;
    let started = &mut call.context.ports.calls()?.started;
    if free == started.len() {
        started.push(None);
    }
    started[free] = Some(Called::Outgoing);
    Ok(free as i32)
}

/// `wait(call, reply, reply_bytes) -> bytes`: as `invoke`; the handle is no more.
fn wait(call: &mut Call<'_>) -> Result<i32, Stop> {
    check_room(call, 1)?;
    let handle = call.args.u32(0) as usize;
    let place = call.context.ports.calls()?.started.get_mut(handle).ok_or(Errno::BADF)?;
    match place.take().ok_or(Errno::BADF)? {
        Called::Made(made) => Err(answer(call, made?, 1)),
        Called::Outgoing => {
            *place = Some(Called::Outgoing);
            Err(Stop::Again)
        }
    }
}

/// `rest(reply, reply_bytes) -> bytes`: what of the last reply did not fit, as if it were a reply.
fn rest(call: &mut Call<'_>) -> Result<i32, Stop> {
    check_room(call, 0)?;
    let rest = std::mem::take(&mut call.context.ports.calls()?.rest);
    put(call, rest, 0)
}

/// `send(name, name_bytes, input, input_bytes) -> 0`: whether it is even begun is not told.
fn send(call: &mut Call<'_>) -> Result<i32, Stop> {
    begin(call, None).map(|()| 0)
}
