//! Loading artifacts and running them in sandboxes: all of the runtime's `unsafe` code, behind an interface that is entirely safe.
//!
//! ```text
//!   bytes -> Artifact -> Template -> Pool -> Sandbox -- resume --> Event -> ... -> Returned | Trapped -> back to the Pool
//! ```
//!
//! * [`Artifact`]: a `.so` of `awsm`, parsed and checked on a private copy, then mapped into the code arena (`arena.rs`);
//! * [`Template`]: what every sandbox of an artifact begins as; [`Pool`]: a worker's idle sandboxes of that kind;
//! * [`Sandbox`]: instances, memories, tables, a stack: one guest thread of execution. [`Sandbox::resume`] switches to the guest's stack
//!   and comes back with an [`Event`];
//! * [`WorkerThread`]: what a thread needs before it may resume guests: signal stack, quantum timer, handlers.
//!
//! Guests run on their own stacks, hosts on theirs (`context.rs`). The handlers of signals (`fault.rs`, `preempt.rs`) neither allocate nor
//! lock nor format. Nothing here knows WASI, HTTP or scheduling.

mod arena;
mod backtrace;
mod budget;
mod builtins;
mod call;
mod constexpr;
mod context;
mod error;
mod event;
mod exceptions;
mod externs;
mod fault;
mod guest_memory;
mod image;
mod instance;
mod instantiate;
pub mod limits;
mod link;
mod load;
mod memory;
mod pool;
mod pools;
mod preempt;
mod prefetch;
mod recency;
mod sandbox;
mod spans;
mod stack;
mod store;
mod store_image;
mod sys;
mod table;
mod template;
mod types;
mod unwind;
mod value;
mod worker;
mod writable;

pub use awsm_abi::TrapCode;
pub use backtrace::{Backtrace, Frame};
pub use budget::{Budget, Reclaim, Share};
pub use call::Callee;
pub use error::{CallError, InstantiateError, LoadError};
pub use event::{Event, HostCall, Trap, WasmLocation};
pub use guest_memory::{GuestMemory, OutOfBounds};
pub use load::{Artifact, LoadPolicy, WeakArtifact, cpu_features};
pub use pool::Pool;
pub use pools::Pools;
pub use prefetch::prefetch;
pub use sandbox::Sandbox;
pub use store::{Refusal, SandboxLimits};
pub use sys::heap::{bound_heap, release_heap};
pub use sys::program::release_program;
pub use sys::space::room_for_guards;
pub use template::Template;
pub use value::{
    Extern, FuncRefHandle, FunctionHandle, GlobalHandle, InstanceId, MemoryHandle, Slot, TableHandle, TagHandle, Value,
};
pub use worker::{WorkerThread, affinity};
