//! What the order knows of an invocation.

use std::time::{Duration, Instant};

/// An invocation of one worker; the worker knows what is behind the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A tenant, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u32);

/// A function, by its number; of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// What there is to know of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// The tenant whose function it calls.
    pub tenant: TenantId,
    /// Which function it calls.
    pub function: FunctionId,
    /// The share of its function among the functions of its tenant: at equal load, a function of weight 2 gets twice the time of one of weight 1. At least 1.
    pub weight: u32,
    /// Its place among all admitted invocations: the smaller, the older.
    pub age: u64,
    /// When the request was complete.
    pub arrived: Instant,
    /// When it must be over.
    pub deadline: Instant,
    /// The processor time it may use.
    pub cpu_max: Duration,
    /// The processor time it has used.
    pub cpu: Duration,
    /// Whether it has started.
    pub started: bool,
    /// How many levels it has dropped for what it has used; only the order writes it.
    pub level: u8,
    /// The class of its microtask; only the order writes it.
    pub class: u8,
}
