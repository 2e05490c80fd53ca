//! How guest and host call each other.
//!
//! Values cross the border in an array of *slots*, each 16 bytes, aligned to 16, little-endian: an `i32` or `f32` in the low 4
//! bytes, an `i64`, `f64` or a reference to a host's value or an exception in the low 8, a `v128` or a reference to a function in all 16. Bytes above a value are zero when the writer is
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
//! **Guest to guest** across instances, and wherever code is reached by its address: `code(vmctx, results, parameters...)` in the guest's
//! calling convention, LLVM's `tailcc`, with the callee's `vmctx` first. Nothing is ever passed on the stack, so that a call in tail
//! position is a jump whatever the two functions' types are:
//!
//! * parameters for which there is no register ([`params_in_memory`]) are written, in their order, to the slots called *arguments* of the callee's
//!   vmctx ([`vmctx::ARGUMENTS`](crate::vmctx::ARGUMENTS)), with anything above them; the callee reads them before it does anything else;
//! * where results need more registers than there are ([`results_in_memory`]), `code` returns nothing and writes each as a slot to `results`,
//!   which is on the stack of the caller, or of its caller when it was called by a tail call. Otherwise there is no such parameter;
//! * in modules that take part in exceptions ([`exceptions`](crate::descriptor::ModuleDescriptor::exceptions)), `code` returns one more integer, last
//!   and always in a register: zero, or the address of the exception that it throws ([`crate::exceptions`]); then its results mean nothing.
//!   Whether it does is one and the same for all instances of a sandbox. An entry traps with an exception that was not caught.

use crate::types::{FuncType, RefKind, ValType};

/// Size and alignment of a slot, in bytes.
pub const SLOT_BYTES: u32 = 16;

/// General registers for parameters: `vmctx` and `results` among them; two for a `funcref`, one for every other integer or reference.
pub const PARAM_INTEGERS_MAX: u32 = 6;

/// Vector registers for parameters: one for each `f32`, `f64` or `v128`.
pub const PARAM_VECTORS_MAX: u32 = 8;

/// General registers for results.
pub const RESULT_INTEGERS_MAX: u32 = 3;

/// Vector registers for results.
pub const RESULT_VECTORS_MAX: u32 = 2;

/// The general and the vector registers that a value needs.
const fn registers(ty: ValType) -> (u32, u32) {
    match ty {
        ValType::I32 | ValType::I64 => (1, 0),
        ValType::F32 | ValType::F64 | ValType::V128 => (0, 1),
        ValType::Ref(ty) => match ty.heap.kind() {
            RefKind::Func => (2, 0),
            RefKind::Extern | RefKind::Exn => (1, 0),
        },
    }
}

/// Whether functions of a type return their results in memory. `exceptions` says that one register is for the exception.
#[must_use]
pub fn results_in_memory(ty: &FuncType, exceptions: bool) -> bool {
    let needed = ty.results.iter().map(|&ty| registers(ty));
    let (integers, vectors) = needed.fold((u32::from(exceptions), 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    integers > RESULT_INTEGERS_MAX || vectors > RESULT_VECTORS_MAX
}

/// For each parameter whether it is passed in memory. Where one of a kind found no register, those of its kind that follow are, too.
pub fn params_in_memory(ty: &FuncType, exceptions: bool) -> impl Iterator<Item = bool> + '_ {
    let mut integers = 1 + u32::from(results_in_memory(ty, exceptions));
    let mut vectors = 0;
    ty.params.iter().map(move |&ty| {
        let (integers_needed, vectors_needed) = registers(ty);
        integers += integers_needed;
        vectors += vectors_needed;
        (integers_needed > 0 && integers > PARAM_INTEGERS_MAX) || (vectors_needed > 0 && vectors > PARAM_VECTORS_MAX)
    })
}

/// Number of parameters that are passed in memory.
#[must_use]
pub fn memory_params(ty: &FuncType, exceptions: bool) -> u32 {
    params_in_memory(ty, exceptions).map(u32::from).sum()
}

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
    /// `(timeout in nanoseconds: i64, endless if negative) -> 2`, after that time. Only where the value in memory is the expected one.
    pub const MEMORY_WAIT: u32 = FLAG | 9;
    /// `(bytes)`: makes room for an exception of that size ([`crate::exceptions`]); traps when there is none.
    pub const EXCEPTION_ROOM: u32 = FLAG | 10;
    /// `(canonical id, type) -> 1 when functions of the former are of the latter, or 0`.
    pub const TYPE_MATCHES: u32 = FLAG | 11;
    /// `(instance)`: makes %gs lead to the first memory of that instance; nothing if it has none that is reached so.
    pub const SEGMENT: u32 = FLAG | 12;
    /// The most slots any builtin uses.
    pub const SLOTS_MAX: usize = 5;
}
