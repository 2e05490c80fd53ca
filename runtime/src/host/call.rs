//! `sledge:call`: other functions of the same tenant, without the network, as sdk/wit/call.wit says.
//!
//! A call goes out with a name and an input ([`Outgoing`]); who runs functions answers it. What was called and not waited for ends with the
//! caller, unless it was only sent.

use awsm_abi::types::ValType::I32;
use bytes::Bytes;
use tokio::sync::oneshot;

use super::wasi::Errno;
use super::{Call, Code, Effect, HostFunction, Stop, ValType};
use crate::outcome::Failure;

/// Module name of the imports.
const MODULE: &str = "sledge:call";
/// The largest input of a call; replies have `reply_bytes_max`.
const INPUT_BYTES_MAX: usize = 4 << 20;
/// The longest name that is looked for.
const NAME_BYTES_MAX: u32 = 200;
/// Calls of one invocation whose replies nobody has taken yet.
const CALLS_MAX: usize = 64;

/// What a call came to.
pub type Answer = Result<Bytes, CallFailure>;

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
    /// Where the reply goes; nowhere if nobody asks.
    pub answer: Option<oneshot::Sender<Answer>>,
}

impl Outgoing {
    /// Says that there is no such function.
    pub fn refuse(self) {
        if let Some(answer) = self.answer {
            // Who does not wait for it any more need not know.
            let _ = answer.send(Err(CallFailure::Failed(Failure::NotFound)));
        }
    }
}

/// The calls of one invocation.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Those to be made.
    pub(super) outgoing: Vec<Outgoing>,
    /// Those that were made, by their handles.
    answers: Vec<Option<oneshot::Receiver<Answer>>>,
    /// What of the last reply did not fit.
    rest: Bytes,
}

impl Calls {
    /// Bytes of the inputs that nobody has taken yet, and of a reply of which there is more.
    pub(super) fn bytes(&self) -> usize {
        self.outgoing.iter().map(|call| call.input.len()).sum::<usize>() + self.rest.len()
    }
}

const fn own(name: &'static str, params: &'static [ValType], code: fn(&mut Call<'_>) -> Result<i32, Stop>) -> HostFunction {
    HostFunction { module: MODULE, name, params, results: &[I32], effect: Effect::Call, code: Code::Own(code) }
}

/// The interface.
pub(super) const FUNCTIONS: &[HostFunction] = &[
    own("invoke", &[I32, I32, I32, I32, I32, I32], invoke),
    own("start", &[I32, I32, I32, I32], start),
    own("wait", &[I32, I32, I32], wait),
    own("rest", &[I32, I32], rest),
    own("send", &[I32, I32, I32, I32], send),
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
fn begin(call: &mut Call<'_>, answer: Option<oneshot::Sender<Answer>>) -> Result<(), Stop> {
    let (name, name_bytes, input, input_bytes) = (call.args.address(0), call.args.u32(1), call.args.address(2), call.args.u32(3));
    let (memory, context) = call.split()?;
    if name_bytes > NAME_BYTES_MAX || input_bytes as usize > INPUT_BYTES_MAX || context.calls.outgoing.len() >= CALLS_MAX {
        return Err(Errno::TOOBIG.into());
    }
    let name = std::str::from_utf8(memory.slice(name, name_bytes.into())?).map_err(|_| Errno::NOENT)?.to_owned();
    let input = Bytes::copy_from_slice(memory.slice(input, input_bytes.into())?);
    let host_call = context.host_calls;
    context.calls.outgoing.push(Outgoing { name, input, host_call, answer });
    Ok(())
}

/// Waits for an answer; as much of it as fits goes to the address and length that are arguments `index` and `index + 1`.
fn answer(call: &mut Call<'_>, receiver: oneshot::Receiver<Answer>, index: usize) -> Stop {
    call.wait(receiver, move |call, answer| {
        // Who was to answer is gone.
        let reply = answer.unwrap_or(Err(CallFailure::Failed(Failure::Internal)))?;
        put(call, reply, index)
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
    context.calls.rest = if reply.len() > room { reply.split_off(room) } else { Bytes::new() };
    Ok(bytes)
}

/// Whether a reply can be written to where the arguments say.
fn check_room(call: &mut Call<'_>, index: usize) -> Result<(), Stop> {
    let (at, room) = (call.args.address(index), call.args.u32(index + 1));
    call.split()?.0.slice(at, room.into())?;
    Ok(())
}

/// `invoke(name, name_bytes, input, input_bytes, reply, reply_bytes) -> bytes`: the reply's length, of which as much is written as fits.
fn invoke(call: &mut Call<'_>) -> Result<i32, Stop> {
    check_room(call, 4)?;
    let (sender, receiver) = oneshot::channel();
    begin(call, Some(sender))?;
    Err(answer(call, receiver, 4))
}

/// `start(name, name_bytes, input, input_bytes) -> call`
fn start(call: &mut Call<'_>) -> Result<i32, Stop> {
    let answers = &mut call.context.calls.answers;
    let free = answers.iter().position(Option::is_none).unwrap_or(answers.len());
    if free >= CALLS_MAX {
        return Err(Errno::MFILE.into());
    }
    let (sender, receiver) = oneshot::channel();
    begin(call, Some(sender))?;
    let answers = &mut call.context.calls.answers;
    if free == answers.len() {
        answers.push(None);
    }
    answers[free] = Some(receiver);
    Ok(free as i32)
}

/// `wait(call, reply, reply_bytes) -> bytes`: as `invoke`; the handle is no more.
fn wait(call: &mut Call<'_>) -> Result<i32, Stop> {
    check_room(call, 1)?;
    let handle = call.args.u32(0) as usize;
    let receiver = call.context.calls.answers.get_mut(handle).and_then(Option::take).ok_or(Errno::BADF)?;
    Err(answer(call, receiver, 1))
}

/// `rest(reply, reply_bytes) -> bytes`: what of the last reply did not fit, as if it were a reply.
fn rest(call: &mut Call<'_>) -> Result<i32, Stop> {
    check_room(call, 0)?;
    let rest = std::mem::take(&mut call.context.calls.rest);
    put(call, rest, 0)
}

/// `send(name, name_bytes, input, input_bytes) -> 0`: whether it is even begun, nobody learns.
fn send(call: &mut Call<'_>) -> Result<i32, Stop> {
    begin(call, None).map(|()| 0)
}
