//! Every number of this crate that bounds what a guest or an artifact can grow, beside those of [`awsm_abi::limits`].

/// Address space reserved for the code of all artifacts together.
pub const ARENA_BYTES: usize = 64 << 30;

/// The least address space for code with which the process starts, where [`ARENA_BYTES`] is not to be had.
pub const ARENA_BYTES_MIN: usize = 256 << 20;

/// Encoded descriptor without trap table and data.
pub const DESCRIPTOR_BYTES_MAX: usize = 256 << 20;

/// Program headers of an artifact.
pub const PROGRAM_HEADERS_MAX: usize = 64;

/// Section headers of an artifact.
pub const SECTIONS_MAX: usize = 4096;

/// Code ranges of an artifact.
pub const TEXTS_MAX: usize = 4096;

/// Core modules of an artifact, and likewise steps of its plan.
pub const MODULES_MAX: usize = 1_000;

/// Different function types in the process; their canonical ids are never given back.
pub const CANONICAL_TYPES_MAX: usize = 1 << 20;

/// Instances of a sandbox to which instances are added; one made from a template has as many as its plan.
pub const INSTANCES_MAX: usize = 10_000;

/// Memories of a sandbox.
pub const MEMORIES_MAX: usize = 10_000;

/// Tables of a sandbox.
pub const TABLES_MAX: usize = 10_000;

/// Bytes at the start of a memory that stay resident when a sandbox is reset: their pages are restored by copying, never by faulting.
pub const KEEP_RESIDENT_BYTES: usize = 2 << 20;

/// Bytes of a table that stay resident when a sandbox is reset.
pub const KEEP_RESIDENT_TABLE_BYTES: usize = 256 << 10;

/// Inaccessible address space below each guest stack. Guest code touches every page of a large frame, so that none is stepped over.
pub const STACK_GUARD_BYTES: usize = 64 << 10;

/// The smallest guest stack: room for the kernel's signal frame and a few calls.
pub const STACK_BYTES_MIN: usize = 64 << 10;

/// The largest guest stack.
pub const STACK_BYTES_MAX: usize = 1 << 30;

/// A worker thread's stack for the handlers of faults.
pub const SIGNAL_STACK_BYTES: usize = 64 << 10;

/// Frames that a backtrace shows.
pub const BACKTRACE_FRAMES_MAX: usize = 100;

/// Idle sandboxes of one pool.
pub const POOL_IDLE_MAX: usize = 1_024;

/// Pages that a memory with 64-bit addresses may declare; how many it can have is up to the sandbox's limits.
pub const MEMORY64_PAGES_MAX: u64 = 1 << 48;
