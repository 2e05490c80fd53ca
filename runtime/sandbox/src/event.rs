//! How a guest hands control back to its worker.

use std::fmt;
use std::time::Duration;

use awsm_abi::TrapCode;

use crate::value::InstanceId;

/// Why [`Sandbox::resume`](crate::Sandbox::resume) came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The function returned; see [`Sandbox::results`](crate::Sandbox::results).
    Returned,
    /// The guest calls an imported function. Answer with [`Sandbox::host_results`](crate::Sandbox::host_results) and resume, or end it.
    HostCall(HostCall),
    /// The guest trapped. The call is over; its state is what the trap left.
    Trapped(Trap),
    /// The quantum is over; resume to go on.
    Preempted,
    /// The guest waits for one of its shared memories to change (`memory.atomic.wait`), which no other guest can do: resume it when this time is
    /// over. Without a time it waits for ever, and only its end is left.
    Waits {
        /// For how long, from now.
        time: Option<Duration>,
    },
}

/// A call of an imported function. Its arguments are [`Sandbox::host_args`](crate::Sandbox::host_args).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCall {
    /// The instance whose import is called: not always the innermost on the stack, since imports may be exported again.
    pub instance: InstanceId,
    /// Index of the imported function in its module: among imported functions, from 0.
    pub import: u32,
}

/// Why and where a guest ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Why.
    pub code: TrapCode,
    /// Where, as far as the trapping instruction belongs to a WebAssembly function. [`Sandbox::backtrace`](crate::Sandbox::backtrace)
    /// says how execution came there.
    pub location: Option<WasmLocation>,
}

/// A place in a WebAssembly module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasmLocation {
    /// Index of the module in the artifact's descriptor.
    pub module: u32,
    /// Index of the function in the module, imports first.
    pub function: u32,
    /// Bytes from the start of the module.
    pub offset: u32,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)
    }
}
