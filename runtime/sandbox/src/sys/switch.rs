//! What the assembly of the switch between a worker's stack and a guest's knows, by offsets: the guest's registers and its stack pointers, and why it
//! came back. The stubs themselves are in the file of each processor.
//!
//! The stubs find it by vmctx's `sandbox` pointer, which is written when an instance is made and never again: one `Switch` a sandbox, at one address. The
//! fiber that runs next has its state in there. A stub stores what it knows *before* it changes the stack pointer, and nothing after it: a
//! fault in between is on a stack whose bounds the handler knows.

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::value::Slot;

/// [`Switch::event`]: the entry returned.
pub(crate) const EVENT_RETURNED: u32 = 1;
/// [`Switch::event`]: the guest called the host.
pub(crate) const EVENT_HOST_CALL: u32 = 2;
/// [`Switch::event`]: the fault handler ended the call.
pub(crate) const EVENT_TRAPPED: u32 = 3;
/// [`Switch::event`]: the alarm handler suspended the guest.
pub(crate) const EVENT_PREEMPTED: u32 = 4;

/// At a fixed address, behind every vmctx's `sandbox` pointer.
///
/// While a guest runs, only the stubs and the handlers of its own thread touch it; otherwise only the sandbox that owns it.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Switch {
    /// Where the worker's callee-saved registers lie while the guest runs.
    pub(crate) worker_sp: usize,
    /// Where the guest's callee-saved registers lie while it is suspended.
    pub(crate) guest_sp: usize,
    /// Why control came back: one of the `EVENT_` numbers.
    pub(crate) event: u32,
    /// Of a host call: which.
    pub(crate) call: u32,
    /// Of a host call: the calling instance's vmctx.
    pub(crate) caller: *mut u8,
    /// Of a host call: its slots, on the guest's stack.
    pub(crate) slots: *mut Slot,
    /// The call in progress: address of the entry...
    pub(crate) entry: usize,
    /// ...and its three arguments.
    pub(crate) entry_vmctx: *mut u8,
    pub(crate) entry_code: usize,
    pub(crate) entry_slots: *mut Slot,
}

/// A handler of SIGALRM.
pub(crate) type OnAlarm = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::ucontext_t);

/// Where the trampoline of SIGALRM goes on, once it made sure of enough stack.
pub(super) static ON_ALARM: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Says what runs at SIGALRM; before the trampoline is installed.
pub(crate) fn set_on_alarm(handler: OnAlarm) {
    // Relaxed: sigaction(2) comes after it, in the same thread.
    ON_ALARM.store(handler as *mut (), Ordering::Relaxed);
}
