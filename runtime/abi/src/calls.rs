//! How guest and host call each other.
//!
//! Values cross the border in an array of *slots*, each 16 bytes, aligned to 16, little-endian: an `i32` or `f32` in the low 4
//! bytes, an `i64`, `f64` or `externref` in the low 8, a `v128` or `funcref` in all 16. Bytes above a value are zero when the writer is
//! generated code or the runtime. Parameters come in slots `0..params`; results replace them in slots `0..results`.
//!
//! **Host to guest**: an artifact has for each function type an *entry*, `extern "C" fn(vmctx, code, slots)`, which loads the
//! parameters, calls `code` (a guest function of that type, in the guest's own calling convention) and stores the results.
//!
//! **Guest to host**: for each imported function an artifact has a *thunk*, a guest function of the import's type that stores its
//! parameters into slots on its stack and calls [`vmctx::HOST_CALL`](crate::vmctx::HOST_CALL), `extern "C" fn(vmctx, call: u32,
//! slots)`. `call` is the index of the imported function, or one of the [`builtin`] numbers. The callee switches to the host's own
//! stack, so that no host frame is ever live on a guest stack, and returns only when the call has completed; a trap does not return.
//!
//! **Guest to guest** across instances: `code(vmctx, parameters...)` in the guest's calling convention, LLVM's `fastcc`, with the
//! callee's `vmctx` first.

/// Size and alignment of a slot, in bytes.
pub const SLOT_BYTES: u32 = 16;

/// Host calls that are not imports: what generated code asks of the runtime. Slots hold `i64` unless said otherwise; indices are
/// those of the calling module.
pub mod builtin {
    /// Set in the number of every builtin, never in the index of an imported function.
    pub const FLAG: u32 = 1 << 31;
    /// `(memory, pages: i64) -> previous pages: i64, or -1`.
    pub const MEMORY_GROW: u32 = FLAG;
    /// `(memory, segment, destination, source, length)`; traps when out of bounds.
    pub const MEMORY_INIT: u32 = FLAG | 1;
    /// `(segment)`.
    pub const DATA_DROP: u32 = FLAG | 2;
    /// `(destination memory, source memory, destination, source, length)`; traps when out of bounds. Only where the two memories differ:
    /// within one memory the code does it itself.
    pub const MEMORY_COPY: u32 = FLAG | 3;
    /// `(table, elements: i64, value: reference) -> previous elements: i64, or -1`.
    pub const TABLE_GROW: u32 = FLAG | 4;
    /// `(table, start, value: reference, length)`; traps when out of bounds.
    pub const TABLE_FILL: u32 = FLAG | 5;
    /// `(destination table, source table, destination, source, length)`; traps when out of bounds.
    pub const TABLE_COPY: u32 = FLAG | 6;
    /// `(table, segment, destination, source, length)`; traps when out of bounds.
    pub const TABLE_INIT: u32 = FLAG | 7;
    /// `(segment)`.
    pub const ELEM_DROP: u32 = FLAG | 8;
    /// The most slots any builtin uses.
    pub const SLOTS_MAX: usize = 5;
}
