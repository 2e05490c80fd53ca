//! What a guest can call: the host functions, each with its signature and effect class, and how a call of one is carried out.
//!
//! ```text
//!   artifact's imports --resolve--> Imports (one dense table per instance) --call--> HostFunction -> Answer | Stop
//! ```
//!
//! Imports are resolved once, when a function is loaded ([`Imports`]). A call arrives as an event on the worker's own stack, sees the
//! guest only through checked [`GuestMemory`], and touches the outside only through the ports of its invocation (`context/ports.rs`) that its effect opens.
//! Host functions know neither HTTP nor the scheduler.

mod body;
mod call;
pub mod canonical;
mod context;
mod effect;
mod fetch;
mod fetch_span;
mod http;
mod imports;
mod kv;
mod lines;
mod log;
mod note;
mod outbox;
mod pending;
mod rpc;
mod signal;
mod spin;
mod spin3;
mod stdio;
pub mod wasi;
pub mod wasi2;
pub mod wasi3;
mod worlds;

use std::future::Future;

use awsm_abi::types::ValType;
use sledge_sandbox::{GuestMemory, InstanceId, OutOfBounds, Sandbox, Slot};

pub use crate::reply::{BUFFER_BYTES_MIN, Buffers, ReplyBytes};
pub use body::{Body, BodyError, Piece, Source};
pub use call::{CallFailure, CallId, Outgoing, RpcRequest};
pub use context::{Context, Drawn, Process, Streams, Strings};
pub use effect::{Effect, EffectTrace, Effects, Guard, HeadField, Objection, Watch};
pub use http::RequestHead;
pub use imports::{ImportError, ImportedFunction, Imports, Offer, offered, offered_to_components};
pub use lines::{FunctionLog, Line, Taken, Writer};
pub use log::LogLines;
pub use pending::{Completion, Panicked, Pending, Waiter};
pub use rpc::{Destination, Edges, coming};

pub use worlds::EXCHANGE;

use crate::component_trap::ComponentTrap;
use crate::outcome::Failure;
use stdio::{Input, Output};
use wasi::Errno;

/// The most parameters that a host function has.
pub const PARAMS_MAX: usize = 18;

/// A function that guests may import.
#[derive(Debug)]
pub struct HostFunction {
    /// The import's module name.
    pub module: &'static str,
    /// The import's field name.
    pub name: &'static str,
    /// Parameter types.
    pub params: &'static [ValType],
    /// Result types.
    pub results: &'static [ValType],
    /// What it can do to the world.
    pub effect: Effect,
    /// What it does.
    pub code: Code,
}

/// One of our own host functions.
const fn own(
    module: &'static str,
    name: &'static str,
    params: &'static [ValType],
    effect: Effect,
    code: fn(&mut Call<'_>) -> Result<i32, Stop>,
) -> HostFunction {
    HostFunction { module, name, params, results: &[ValType::I32], effect, code: Code::Own(code) }
}

/// What a host function does, by the convention under which it returns.
#[derive(Clone, Copy, Debug)]
pub enum Code {
    /// WASI preview 1: the result is an error number, zero for success.
    Wasi(fn(&mut Call<'_>) -> Result<(), Stop>),
    /// Our own: the result is a number from zero; below zero it is one of WASI's error numbers, negated.
    Own(fn(&mut Call<'_>) -> Result<i32, Stop>),
    /// A component's, behind a wrapper: what is flat of the result by the canonical ABI, or whether the wrapper has to go on with the call. See [`canonical`].
    Canonical(fn(&mut Call<'_>) -> Result<Flat, Stop>),
}

/// Why a host function did not simply succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The guest gets this error number.
    Errno(Errno),
    /// There is more to do: call it again, in this quantum or the next.
    Again,
    /// The answer comes later: what [`Call::wait`] says.
    Waits,
    /// The guest asked to end, with this status.
    Exit(u32),
    /// The reply became larger than it may be: the invocation ends.
    ReplyTooLarge,
    /// The deadline passed while the host waited.
    Deadline,
    /// The rest of the request's body does not come, and is wanted: the invocation ends.
    Body(BodyError),
    /// What [watches](Watch) the invocation has objected to the call.
    Refused,
    /// A component did what the component model forbids: the invocation ends.
    Trap(ComponentTrap),
    /// The call is answered, but another stack of the guest goes on first: the one with that number.
    Switch(u32),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Errno(errno)
    }
}

impl From<ComponentTrap> for Stop {
    fn from(trap: ComponentTrap) -> Stop {
        Stop::Trap(trap)
    }
}

impl From<OutOfBounds> for Stop {
    fn from(_: OutOfBounds) -> Stop {
        Stop::Errno(Errno::FAULT)
    }
}

/// The arguments of a call. No host function takes vectors, so half a slot holds any of them.
#[derive(Clone, Copy, Debug)]
pub struct Args {
    slots: [u64; PARAMS_MAX],
}

impl Args {
    /// No arguments.
    const NONE: Args = Args { slots: [0; PARAMS_MAX] };

    /// Copies the arguments; those beyond [`PARAMS_MAX`] belong to no host function and are left out.
    #[cfg(test)]
    #[must_use]
    pub fn new(slots: &[Slot]) -> Args {
        let mut args = Args::NONE;
        args.take(slots);
        args
    }

    /// The same to where they are to be: what is returned would be copied once more, in larger pieces than it was just written in, for which the processor waits.
    #[inline]
    fn take(&mut self, slots: &[Slot]) {
        for (arg, slot) in self.slots.iter_mut().zip(slots) {
            *arg = slot.u64();
        }
    }

    /// An `i32`, read as unsigned. Signatures were checked when the function was loaded.
    #[must_use]
    pub const fn u32(&self, index: usize) -> u32 {
        self.slots[index] as u32
    }

    /// A component's `u16`. What is above its bits does not count (CanonicalABI.md, `lift_flat_unsigned`).
    #[must_use]
    pub const fn u16(&self, index: usize) -> u16 {
        self.slots[index] as u16
    }

    /// An `i64`, read as unsigned.
    #[must_use]
    pub const fn u64(&self, index: usize) -> u64 {
        self.slots[index]
    }

    /// An `i32` that is an address in the guest's memory.
    #[must_use]
    pub const fn address(&self, index: usize) -> u64 {
        self.u32(index) as u64
    }
}

/// A call of a host function.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its arguments.
    pub args: &'a Args,
    /// The calling instance's memory, if it has one; of a component's wrapper that of the component.
    pub memory: Option<GuestMemory<'a>>,
    /// The memory with the handle tables of a component.
    state: Option<GuestMemory<'a>>,
    /// The host's side of the invocation.
    context: &'a mut Context,
    /// What it waits for.
    pending: Option<Pending>,
}

/// The one result that a host function may have, as bits: those of an `i32` or an `f32` are the low ones. Meaningless where there is no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flat(pub u64);

impl Flat {
    /// No result.
    pub const NONE: Flat = Flat(0);
}

impl From<()> for Flat {
    fn from((): ()) -> Flat {
        Flat::NONE
    }
}

impl From<i32> for Flat {
    fn from(value: i32) -> Flat {
        Flat(value.cast_unsigned().into())
    }
}

impl From<u32> for Flat {
    fn from(value: u32) -> Flat {
        Flat(value.into())
    }
}

impl From<u64> for Flat {
    fn from(value: u64) -> Flat {
        Flat(value)
    }
}

impl From<bool> for Flat {
    fn from(value: bool) -> Flat {
        Flat(value.into())
    }
}

impl<'a> Call<'a> {
    /// A call of that function with these arguments, which opens the ports that its effect reaches.
    #[cfg(test)]
    const fn new(function: &HostFunction, args: &'a Args, memory: Option<GuestMemory<'a>>, context: &'a mut Context) -> Call<'a> {
        context.ports.open(function.effect);
        Call { args, memory, state: None, context, pending: None }
    }

    /// A call by that instance of a sandbox, with its memories, which opens the ports that the function's effect reaches.
    #[inline]
    fn of(
        imported: &ImportedFunction,
        args: &'a Args,
        instance: InstanceId,
        sandbox: &'a mut Sandbox,
        context: &'a mut Context,
    ) -> Call<'a> {
        let (memory, state) = if matches!(imported.function.code, Code::Canonical(_)) {
            match sandbox.first_and_last_memory(instance) {
                Some((memory, Some(state))) => (Some(memory), Some(state)),
                // A component without a memory passes no address.
                Some((state, None)) => (None, Some(state)),
                None => (None, None),
            }
        } else {
            (sandbox.memory(instance), None)
        };
        context.ports.open(imported.function.effect);
        Call { args, memory, state, context, pending: None }
    }

    /// Suspends the guest until `future` is done, then answers with what `then` makes of its output; meanwhile the worker runs others. The host
    /// function returns what this returns. `then` sees the call anew, with its arguments, and may do all that a host function may: wait
    /// again, or return [`Stop::Again`] to have the function called from its beginning.
    ///
    /// The future is polled at once, and from then on when it is woken, on this worker. It runs in a context of tokio's; work that would
    /// block the thread goes through [`blocking::run`]. When the invocation ends, it is dropped wherever it is.
    pub fn wait<T: Send + 'static, R: Into<Flat>>(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut Call<'_>, T) -> Result<R, Stop> + Send + 'static,
    ) -> Stop {
        self.pending = Some(Pending::new(future, then));
        Stop::Waits
    }

    /// The effect that it has, with the file or folder that it is about.
    fn effect(&mut self, function: &HostFunction) -> Effect {
        let is_private = function.effect == Effect::External
            && match function.code {
                Code::Wasi(_) => self.context.ports.is_scratch(self.args.u32(wasi::subject(function.name))),
                Code::Canonical(_) => wasi2::is_private(self, function),
                Code::Own(_) => false,
            };
        if is_private { Effect::Scratch } else { function.effect }
    }

    /// The calling instance's memory.
    ///
    /// # Errors
    /// `EFAULT` when it has none: whatever it passed is no address.
    pub fn memory_mut(&mut self) -> Result<&mut GuestMemory<'a>, Stop> {
        self.memory.as_mut().ok_or(Stop::Errno(Errno::FAULT))
    }

    /// The memory, and the context beside it.
    ///
    /// # Errors
    /// `EFAULT` when the calling instance has no memory: whatever it passed is no address.
    pub(crate) fn split(&mut self) -> Result<(&mut GuestMemory<'a>, &mut Context), Stop> {
        match &mut self.memory {
            Some(memory) => Ok((memory, self.context)),
            None => Err(Errno::FAULT.into()),
        }
    }
}

/// What became of a host call.
#[derive(Debug)]
pub enum Answer {
    /// Answered: the guest can be resumed.
    Done,
    /// To be called again, in this quantum or the next.
    Again,
    /// To be [completed](complete) when this is done.
    Waits(Pending),
    /// The invocation ends, and not with an errno: an exit, a limit.
    Ended(Stop),
}

/// Whether what watches the invocation admits a call.
#[cold]
fn is_admitted(
    imported: &ImportedFunction,
    args: &Args,
    instance: InstanceId,
    sandbox: &mut Sandbox,
    context: &mut Context,
) -> bool {
    let function = imported.function;
    // Only of what can be private it has to be seen what it is about.
    let effect = match function.effect {
        Effect::External => Call::of(imported, args, instance, sandbox, context).effect(function),
        effect => effect,
    };
    // What cannot be taken back does not fit an invocation that may run again.
    if effect == Effect::External
        && let Some(transaction) = context.transaction()
        && !(transaction.may_split() || (transaction.has_outbox() && outbox::takes(function)))
        && !rpc::joins(&Call::of(imported, args, instance, sandbox, context), function)
    {
        context.refused = Some(Failure::EffectRefused { module: function.module, name: function.name });
        return false;
    }
    context.watch.as_mut().is_none_or(|watch| watch.admits(function, effect, args))
}

/// Carries out the pending host call of `sandbox`, which is one of `imported`, and hands its result to the guest.
pub fn call(imported: &ImportedFunction, instance: InstanceId, sandbox: &mut Sandbox, context: &mut Context) -> Answer {
    let mut args = Args::NONE;
    args.take(sandbox.host_args());
    if context.is_observed() && !is_admitted(imported, &args, instance, sandbox, context) {
        return Answer::Ended(Stop::Refused);
    }
    let mut call = Call::of(imported, &args, instance, sandbox, context);
    let (result, is_canonical) = match imported.function.code {
        Code::Wasi(function) => (function(&mut call).map(Flat::from), false),
        Code::Own(function) => (function(&mut call).map(Flat::from), false),
        Code::Canonical(function) => (function(&mut call), true),
    };
    let stop = match result {
        // Most calls are over at once.
        Ok(value) => return hand_over(imported, sandbox, context, value),
        Err(stop) => stop,
    };
    let pending = call.pending.take();
    // Only a component has operations.
    let (result, pending) = if is_canonical {
        call.or_operation((&args, imported.function.effect), Err(stop), pending)
    } else {
        (Err(stop), pending)
    };
    answer(imported, sandbox, context, result, pending)
}

/// Goes on with a host call that has waited.
pub fn complete(
    imported: &ImportedFunction,
    instance: InstanceId,
    sandbox: &mut Sandbox,
    context: &mut Context,
    completion: Completion,
) -> Answer {
    let mut args = Args::NONE;
    args.take(sandbox.host_args());
    let mut call = Call::of(imported, &args, instance, sandbox, context);
    let result = completion(&mut call);
    let pending = call.pending;
    answer(imported, sandbox, context, result, pending)
}

/// Hands the result of a host call that is over to the guest, if it has one.
#[inline]
fn hand_over(imported: &ImportedFunction, sandbox: &mut Sandbox, context: &Context, Flat(value): Flat) -> Answer {
    if sandbox.host_number(value).is_err() {
        // The signature was checked at load, so the types match; a guest that is gone needs no answer either.
        tracing::error!(function = context.name(), import = imported.function.name, "a host call's result was refused");
        return Answer::Ended(Errno::INVAL.into());
    }
    Answer::Done
}

/// Answers a host call with what became of it.
fn answer(
    imported: &ImportedFunction,
    sandbox: &mut Sandbox,
    context: &Context,
    result: Result<Flat, Stop>,
    pending: Option<Pending>,
) -> Answer {
    let value = match (result, pending) {
        (Ok(value), _) => value,
        (Err(stop @ Stop::Errno(errno)), _) => match imported.function.code {
            Code::Own(_) => Flat::from(-i32::from(errno.0)),
            Code::Wasi(_) => Flat::from(u32::from(errno.0)),
            // What fails says so in its result.
            Code::Canonical(_) => return Answer::Ended(stop),
        },
        (Err(Stop::Again), _) => return Answer::Again,
        (Err(Stop::Waits), Some(pending)) => return Answer::Waits(pending),
        (Err(stop), _) => return Answer::Ended(stop),
    };
    hand_over(imported, sandbox, context, value)
}
