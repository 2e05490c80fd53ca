//! Every number of this crate that bounds what a guest or an artifact can grow, beside those of [`awsm_abi::limits`].

/// Address space reserved for the code of all artifacts together.
pub const ARENA_BYTES: usize = 64 << 30;

/// The same where address space is narrow or dear.
pub const ARENA_BYTES_NARROW: usize = 1 << 30;

/// The least address space for code with which the process starts, where neither is to be had.
pub const ARENA_BYTES_MIN: usize = 256 << 20;

/// Encoded descriptor without trap table and data.
pub const DESCRIPTOR_BYTES_MAX: usize = 256 << 20;

/// Program headers of an artifact.
pub const PROGRAM_HEADERS_MAX: usize = 64;

/// Section headers of an artifact.
pub const SECTIONS_MAX: usize = 4096;

/// Different function types in the process; their canonical ids are never given back.
pub const CANONICAL_TYPES_MAX: usize = 1 << 20;

/// Instances of a sandbox to which instances are added; one made from a template has as many as its plan.
pub const INSTANCES_MAX: usize = 10_000;

/// Memories of a sandbox.
pub const MEMORIES_MAX: usize = 10_000;

/// Tables of a sandbox.
pub const TABLES_MAX: usize = 10_000;

/// Bytes of each memory, beyond its image, that stay resident when a sandbox is reset; what a run used above is given back to the system.
pub const KEEP_RESIDENT_BYTES: usize = 2 << 20;

/// Ranges of a memory that may be written to without a fault, because earlier runs did. Each costs up to two mappings. An engine for a language writes to
/// 100 to 200 pages all over its memory: with 8 ranges, JavaScript's has 2.0 MB in them and Python's 6.5 MB, with 64 ranges 0.5 and 1.8 MB.
pub const WRITABLE_SPANS_MAX: usize = 64;

/// So many of them a memory has as long as there are mappings, and more only while half of the process's mappings are free.
pub const WRITABLE_SPANS_SURE: usize = 8;

/// From so many bytes of its pages on, an image of a memory is shared by all sandboxes, and less is copied into each. To map an image takes a new sandbox
/// about 20 us (and two mappings, and the template a file descriptor), to copy 256 KiB to new pages about 150 us, and 64 KiB about 40 us: below, little is to be gained.
pub const SHARED_IMAGE_BYTES_MIN: usize = 256 << 10;

/// How many shared images a process has at most that may have so many open files: each keeps a file descriptor, and an eighth of them is for images. Where there
/// are as many, further images are copied into each sandbox.
#[must_use]
pub const fn sealed_files_max(files_max: u64) -> u64 {
    files_max / 8
}

/// What a sandbox may write of a shared image beyond what is known, counted in advance: a first write cannot wait until idle sandboxes gave memory back.
pub const PRIVATE_AHEAD_BYTES: usize = 1 << 20;

/// The part of the process's addresses and mappings that sandboxes and code leave to everything else: one in so many.
pub const ROOM_LEFT_SHARE: usize = 8;

/// Bytes of a table that stay resident when a sandbox is reset.
pub const KEEP_RESIDENT_TABLE_BYTES: usize = 256 << 10;

/// Bytes that a sandbox has beside its memory limit for all its tables and for what the host keeps for it; what is more counts as memory.
pub const BESIDE_MEMORY_FREE_BYTES: u64 = 64 << 10;

/// What a sandbox costs beside memories, tables and stack, as far as the total of a server is concerned: its records, and the kernel's for it.
pub const SANDBOX_OVERHEAD_BYTES: u64 = 64 << 10;

/// Memory for the exceptions that are alive in a sandbox, where its modules have tags: a few of the largest, or 2,048 of C++'s. Counted with its stack.
pub const EXCEPTION_BYTES: usize = 64 << 10;

/// Tags of a sandbox.
pub const TAGS_MAX: usize = 1 << 20;

/// Fibers of a sandbox: the first, and calls that were started beside it. Their stacks count as its memory.
pub const FIBERS_MAX: usize = 65;

/// Inaccessible address space below each guest stack. Guest code touches every page of a large frame, so that none is stepped over.
pub const STACK_GUARD_BYTES: usize = 64 << 10;

/// The smallest guest stack: room for the kernel's signal frame and a few calls.
pub const STACK_BYTES_MIN: usize = 64 << 10;

/// The largest guest stack.
pub const STACK_BYTES_MAX: usize = 1 << 30;

/// A worker thread's stack for the handlers of faults.
pub const SIGNAL_STACK_BYTES: usize = 64 << 10;

/// Large reservations of address space that are kept for their next user, where reserving is dear.
pub const KEPT_RESERVATIONS_MAX: usize = 64;

/// Frames that a backtrace shows.
pub const BACKTRACE_FRAMES_MAX: usize = 100;
