//! What a guest can call: the host functions, each with its signature and effect class, and how a call of one is carried out.
//!
//! ```text
//!   artifact's imports --resolve--> Imports (one dense table per instance) --call--> HostFunction -> Answer | Stop
//! ```
//!
//! Imports are resolved once, when a function is loaded ([`Imports`]). A call arrives as an event on the worker's own stack, sees the
//! guest only through checked [`GuestMemory`], and what it touches of the outside through a [`Context`], which belongs to one
//! invocation. Host functions know neither HTTP nor the scheduler.

mod context;
mod imports;
mod lines;
mod log;
mod reply;
mod stdio;
pub mod wasi;

use awsm_abi::types::ValType;
use sledge_sandbox::{GuestMemory, OutOfBounds, Sandbox, Slot, Value};

pub use context::{Context, Process, Strings};
pub use imports::{ImportError, ImportedFunction, Imports, Offer};
pub use lines::{FunctionLog, Taken};
pub use log::LogLines;
pub use reply::{BUFFER_BYTES_MIN, Buffers, ReplyBytes};
pub use stdio::{Body, Input, Output};

use wasi::Errno;

/// The most parameters that a host function has.
pub const PARAMS_MAX: usize = 12;

/// What a host function can do to the world, for whoever wants to run, repeat, snapshot or merge invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The same answer to every invocation of a function, and nothing changes.
    Safe,
    /// Reads or changes what belongs to this invocation and this moment: its streams, the clock, random numbers.
    Local,
    /// Reads the key-value store.
    KvRead,
    /// Writes the key-value store.
    KvWrite,
    /// Calls another function.
    Call,
    /// Reaches something outside that nobody can take back: files, sockets, signals.
    External,
}

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

/// What a host function does, by the convention under which it returns.
#[derive(Clone, Copy, Debug)]
pub enum Code {
    /// WASI preview 1: the result is an error number, zero for success.
    Wasi(fn(&mut Call<'_>) -> Result<(), Stop>),
    /// Provided so that programs load, but not implemented: answers [`Errno::NOSYS`].
    WasiStub,
}

/// Why a host function did not simply succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The guest gets this error number.
    Errno(Errno),
    /// There is more to do: call it again when others have had their turn.
    Again,
    /// The guest asked to end, with this status.
    Exit(u32),
    /// The reply became larger than it may be: the invocation ends.
    ReplyTooLarge,
    /// The deadline passed while the host waited.
    Deadline,
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Errno(errno)
    }
}

impl From<OutOfBounds> for Stop {
    fn from(_: OutOfBounds) -> Stop {
        Stop::Errno(Errno::FAULT)
    }
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct Args {
    slots: [Slot; PARAMS_MAX],
}

impl Args {
    /// Copies the arguments; those beyond [`PARAMS_MAX`] belong to no host function and are left out.
    #[must_use]
    pub fn new(slots: &[Slot]) -> Args {
        let mut args = Args { slots: [Slot::default(); PARAMS_MAX] };
        let count = slots.len().min(PARAMS_MAX);
        args.slots[..count].copy_from_slice(&slots[..count]);
        args
    }

    /// An `i32`, read as unsigned. Signatures were checked when the function was loaded.
    #[must_use]
    pub const fn u32(&self, index: usize) -> u32 {
        self.slots[index].u32()
    }

    /// An `i64`, read as unsigned.
    #[must_use]
    pub const fn u64(&self, index: usize) -> u64 {
        self.slots[index].u64()
    }

    /// An `i32` that is an address in the guest's memory.
    #[must_use]
    pub const fn address(&self, index: usize) -> u64 {
        self.slots[index].u32() as u64
    }
}

/// A call of a host function.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its arguments.
    pub args: Args,
    /// The calling instance's memory, if it has one.
    pub memory: Option<GuestMemory<'a>>,
    /// The invocation's side of the outside world.
    pub context: &'a mut Context,
}

impl<'a> Call<'a> {
    /// The memory, and the context beside it.
    ///
    /// # Errors
    /// `EFAULT` when the calling instance has no memory: whatever it passed is no address.
    pub fn split(&mut self) -> Result<(&mut GuestMemory<'a>, &mut Context), Stop> {
        match &mut self.memory {
            Some(memory) => Ok((memory, self.context)),
            None => Err(Errno::FAULT.into()),
        }
    }
}

/// What became of a host call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Answered: the guest can be resumed.
    Done,
    /// To be called again when others have had their turn.
    Again,
    /// The invocation ends, and not with an errno: an exit, a limit.
    Ended(Stop),
}

/// Carries out the pending host call of `sandbox`, which is one of `imported`, and hands its result to the guest.
pub fn call(
    imported: &ImportedFunction,
    instance: sledge_sandbox::InstanceId,
    sandbox: &mut Sandbox,
    context: &mut Context,
) -> Answer {
    let args = Args::new(sandbox.host_args());
    let errno = match imported.function.code {
        Code::Wasi(function) => match function(&mut Call { args, memory: sandbox.memory(instance), context }) {
            Ok(()) => Errno::SUCCESS,
            Err(Stop::Errno(errno)) => errno,
            Err(Stop::Again) => return Answer::Again,
            Err(stop) => return Answer::Ended(stop),
        },
        Code::WasiStub => {
            imported.warn_unimplemented(&context.process.name);
            Errno::NOSYS
        }
    };
    let result = [Value::I32(i32::from(errno.0))];
    let results = &result[..imported.function.results.len().min(1)];
    if sandbox.host_results(results).is_err() {
        // The signature was checked at load, so the types match; a guest that is gone needs no answer either.
        tracing::error!(function = context.process.name, import = imported.function.name, "a host call's result was refused");
        return Answer::Ended(Errno::INVAL.into());
    }
    Answer::Done
}
