//! The exports: `_initialize`, `init-component` and `sledge_handle`.
//!
//! `init-component` runs the program's `main`. It is done when the program serves and no task can go on. There are two ways out of `main`
//! then: `#[tokio::main]` returns from it, its future being kept; a program that calls `Runtime::block_on` itself cannot be returned from,
//! so [`leave`] ends the call, and its stack stays as it is below what requests use.

use std::task::Waker;

use crate::once::Single;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `main` runs, and does not serve yet.
    Begins,
    /// It serves.
    Serves,
    /// It serves, and no task could go on.
    Idle,
    /// Requests are answered.
    Requests,
}

static PHASE: Single<Phase> = Single::new(Phase::Begins);
static ROOT: Single<Option<Waker>> = Single::new(None);
static HANDLER: Single<Option<fn() -> i32>> = Single::new(None);

extern "C" {
    /// Constructors of static variables; the linker makes it.
    fn __wasm_call_ctors();
    /// `main` of the program, as rustc calls it.
    fn __main_void() -> i32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
extern "C" {
    #[link_name = "proc_exit"]
    fn exit(status: u32) -> !;
}

/// # Safety
/// The host calls it once, before anything else.
#[no_mangle]
unsafe extern "C" fn _initialize() {
    // SAFETY: It is called once, before anything else.
    unsafe { __wasm_call_ctors() };
}

/// # Safety
/// The host calls it once, behind `_initialize`.
#[export_name = "init-component"]
unsafe extern "C" fn init_component() {
    // SAFETY: It is called once, as a command's `_start` does.
    let status = unsafe { __main_void() };
    if !serves() {
        eprintln!("main returned with status {status} before it served");
        // SAFETY: It does not return.
        unsafe { exit(status.max(1) as u32) };
    }
    PHASE.set(Phase::Requests);
}

#[export_name = "sledge_handle"]
extern "C" fn handle() -> i32 {
    let Some(handler) = HANDLER.get() else {
        eprintln!("a request came before main served: `init = \"init-component\"` has to be set");
        return 1;
    };
    // Where `main` was left.
    PHASE.set(Phase::Requests);
    handler()
}

/// Says that the program serves, and what answers a request.
pub fn serve(handler: fn() -> i32) {
    HANDLER.set(Some(handler));
    if PHASE.get() == Phase::Begins {
        PHASE.set(Phase::Serves);
    }
}

/// Whether it has said so.
pub fn serves() -> bool {
    PHASE.get() != Phase::Begins
}

/// Whether `main` is to be left: it serves, and no task can go on.
pub fn is_idle() -> bool {
    PHASE.get() == Phase::Idle
}

/// Whether requests are answered.
pub fn answers() -> bool {
    PHASE.get() == Phase::Requests
}

/// Keeps what is to be woken when [`is_idle`] becomes true.
pub fn set_root(waker: &Waker) {
    ROOT.with(|root| match root {
        Some(root) => root.clone_from(waker),
        None => *root = Some(waker.clone()),
    });
}

/// No task can go on: whether that was waited for.
pub(crate) fn idle() -> bool {
    if PHASE.get() != Phase::Serves {
        return false;
    }
    let root = ROOT.with(Option::take);
    if let Some(root) = root {
        PHASE.set(Phase::Idle);
        root.wake();
        return true;
    }
    false
}

/// The status that says to the host that `init` is left and requests may come (`LEAVES_INIT` in the runtime). With 0 the host refuses the
/// function: a `main` that calls `exit(0)` before it serves has ended.
const LEAVES_INIT: u32 = u32::from_be_bytes(*b"SERV");

/// Ends `init-component` from within `main`.
pub fn leave() -> ! {
    // SAFETY: It does not return. Nothing is flushed by intention: what `main` has begun goes on in requests.
    unsafe { exit(LEAVES_INIT) }
}
