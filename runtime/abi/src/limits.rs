//! Every number that compiler and runtime both check against. Sizes in bytes unless the name says otherwise.

/// Size of a WebAssembly page.
pub const PAGE_BYTES: u64 = 64 * 1024;

/// Pages of a memory with 32-bit addresses: 4 GiB.
pub const MEMORY32_PAGES_MAX: u64 = 1 << 16;

/// Pages that a memory with 64-bit addresses may declare.
pub const MEMORY64_PAGES_MAX: u64 = 1 << 48;

/// Bytes that a memory with 64-bit addresses ever has, whatever it declares; its address space is reserved at once.
pub const MEMORY64_BYTES_MAX: u64 = 64 << 30;

/// The most bytes that one access touches: a 512-bit vector that LLVM may form from neighbouring accesses.
pub const ACCESS_BYTES_MAX: u64 = 64;

/// Address space behind a guarded memory's base that belongs to it: a 32-bit index plus a 32-bit constant offset plus the widest access
/// stays inside, so that whatever the code touches is either this memory or faults.
pub const GUARD_RESERVATION_BYTES: u64 = (1 << 33) + PAGE_BYTES;

/// Elements of a table.
pub const TABLE_ELEMENTS_MAX: u64 = 10_000_000;

/// Functions of a module, imported and defined.
pub const FUNCTIONS_MAX: usize = 1_000_000;

/// Function types of a module.
pub const TYPES_MAX: usize = 100_000;

/// Parameters, and likewise results, of a function type.
pub const PARAMS_MAX: usize = 1_000;

/// Locals of a function, parameters included.
pub const LOCALS_MAX: usize = 50_000;

/// Body of a function.
pub const FUNCTION_BYTES_MAX: usize = 7_654_321;

/// Operators of a function that is optimised as hard as was asked for; a larger one is optimised as by `-O 1`.
pub const OPTIMISED_OPERATORS_MAX: usize = 200_000;

/// How many times its limit of processor time a compilation may take by the clock, where others want the same processors.
pub const COMPILE_WALL_MULTIPLE: u32 = 8;

/// What `awsm` exits with where compiling takes longer than it may.
pub const TIME_EXIT_STATUS: u8 = 124;

/// Nesting of blocks in a function.
pub const NESTING_MAX: usize = 10_000;

/// Targets of one `br_table`.
pub const BR_TABLE_TARGETS_MAX: usize = 65_520;

/// Values of exceptions that the handlers of a function take, all clauses together: so much code is made for them.
pub const HANDLER_VALUES_MAX: usize = 500_000;

/// Memories, and likewise tables, of a module.
pub const MEMORIES_MAX: usize = 100;

/// Globals of a module.
pub const GLOBALS_MAX: usize = 1_000_000;

/// Tags of a module, imported and defined.
pub const TAGS_MAX: usize = 100_000;

/// Imports of a module.
pub const IMPORTS_MAX: usize = 1_000_000;

/// Exports of a module.
pub const EXPORTS_MAX: usize = 1_000_000;

/// Element segments, and likewise data segments, of a module.
pub const SEGMENTS_MAX: usize = 100_000;

/// A WebAssembly module.
pub const MODULE_BYTES_MAX: u64 = 256 << 20;

/// Core modules of an artifact, and likewise steps of its plan.
pub const MODULES_MAX: usize = 1_000;

/// The world of a component, as an artifact says it in WIT.
pub const WORLD_BYTES_MAX: usize = 64 << 10;

/// Component instances of an artifact, which are those that its component makes.
pub const COMPONENT_INSTANCES_MAX: usize = 10_000;

/// Components within each other, as they stand in a file.
pub const COMPONENT_NESTING_MAX: usize = 100;

/// Definitions of a component, with arguments of instances, counted anew for each instance in which they are.
pub const COMPONENT_STEPS_MAX: usize = 1_000_000;

/// Calls between the component instances of an artifact that it names.
pub const COMPONENT_CALLS_MAX: usize = 100_000;

/// A name of a component instance, or of a function through which it is called, as an artifact says it; and any name in a backtrace.
pub const COMPONENT_NAME_BYTES_MAX: usize = 256;

/// Places of an artifact where the code of a function became part of another's that it names.
pub const INLINED_MAX: usize = 1 << 17;

/// Code ranges of an artifact.
pub const TEXTS_MAX: usize = 4096;

/// An artifact.
pub const ARTIFACT_BYTES_MAX: u64 = 1 << 30;

/// A file that `awsm` reads: a module or component, binary or text, or an artifact. No more is read of a larger one.
pub const INPUT_BYTES_MAX: u64 = ARTIFACT_BYTES_MAX;

/// An instance's vmctx.
pub const VMCTX_BYTES_MAX: u32 = 64 << 20;

/// Operators of a constant expression.
pub const CONST_EXPR_OPERATORS_MAX: usize = 1_000;
