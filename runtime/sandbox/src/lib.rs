//! Loading artifacts and running them in sandboxes: all of the runtime's `unsafe` code, behind an interface that is entirely safe.
//!
//! ```text
//!   bytes -> Artifact -> Template -> Pool -> Sandbox -- resume --> Event -> ... -> Returned | Trapped -> back to the Pool
//! ```
//!
//! * [`Artifact`]: a `.so` of `awsm`, parsed and checked on a private copy, then mapped into the code arena (`load/arena.rs`);
//! * [`Template`]: what every sandbox of an artifact begins as; [`Pool`]: a worker's idle sandboxes of that kind;
//! * [`Sandbox`]: instances, memories, tables, a stack: and a fiber, which is a stack and the call on it; more with [`Sandbox::start`], of which one runs at a time.
//!   [`Sandbox::resume`] switches to the guest's stack
//!   and comes back with an [`Event`];
//! * [`WorkerThread`]: what a thread needs before it may resume guests: signal stack, quantum timer, handlers.
//!
//! Guests run on their own stacks, hosts on theirs (`fiber/record.rs`). The handlers of signals (`fiber/fault.rs`, `fiber/preempt.rs`) neither allocate nor
//! lock nor format. Nothing here knows WASI, HTTP or scheduling.

mod budget;
mod error;
mod event;
mod fiber;
pub mod limits;
mod load;
mod reset;
mod sandbox;
mod stacks;
mod store;
mod sys;
mod types;
mod value;

pub use awsm_abi::TrapCode;
pub use budget::{Budget, Reclaim, Share};
pub use error::{CallError, InstantiateError, LoadError};
pub use event::{Event, HostCall, Trap, WasmLocation};
pub use fiber::{Alarm, Backtrace, Callee, Frame, WorkerThread, affinity};
pub use load::{Artifact, LoadPolicy, WeakArtifact, cpu_features};
pub use reset::{Pool, Pools, Template, prefetch};
pub use sandbox::Sandbox;
pub use stacks::Stacks;
pub use store::{GuestMemory, OutOfBounds, Refusal, SandboxLimits};
pub use sys::descriptor::duplicate;
pub use sys::heap::{bound_heap, release_heap};
pub use sys::program::release_program;
pub use sys::space::room_for_guards;
pub use value::{
    Extern, FiberId, FuncRefHandle, FunctionHandle, GlobalHandle, InstanceId, MemoryHandle, Slot, TableHandle, TagHandle, Value,
};
