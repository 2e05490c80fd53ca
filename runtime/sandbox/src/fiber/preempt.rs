//! The handler of SIGALRM: suspends the guest that it interrupted, and nothing else.
//!
//! It runs on the stack it interrupted, not on an alternate one: so the kernel's frame with all registers stays on the guest's stack, and
//! resuming is switching back into the handler, which returns through that frame. SIGALRM stays blocked while the handler is active; after a
//! switch away from it the worker unblocks it, and blocks it again before it switches back: signals never nest on a guest's stack.
//!
//! Only where the interrupted program counter lies in guest code is there anything to suspend. In the switch itself, in the host or in another
//! handler the tick is noted, until the worker takes it (`take_tick`).

use std::cell::Cell;

use crate::fiber::record;
use crate::load::arena;
use crate::sys;
use crate::sys::switch::EVENT_PREEMPTED;

thread_local! {
    static TICKED: Cell<bool> = const { Cell::new(false) };
    /// Whether a tick that was noted counts for the guest that goes on next.
    static HEEDED: Cell<bool> = const { Cell::new(false) };
}

/// Says whether a tick that is noted before a suspended guest goes on ends its run at once. Not where ticks are frequent: if going on took longer than the time between
/// two, it would never run.
pub(crate) fn heed_ticks(heeded: bool) {
    HEEDED.set(heeded);
}

/// Whether a tick came while no guest code ran on this thread, since the last question.
pub(crate) fn take_tick() -> bool {
    TICKED.replace(false)
}

/// The handler, behind the trampoline in `sys`, which made sure of enough stack.
///
/// After the switch it may be on another thread: it reads nothing of the thread's then.
pub(crate) unsafe extern "C" fn on_alarm(_signal: libc::c_int, _info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let record = record::current();
    // SAFETY: The kernel gave us the context of its frame.
    if record.is_null() || !arena::contains(unsafe { sys::context_pc(context) }) {
        TICKED.set(true);
        return;
    }
    // SAFETY: The record is that of the guest running on this thread, and guest code was interrupted: so this is the guest's stack.
    unsafe {
        (*record).context.interrupted = context;
        (*record).context.switch.event = EVENT_PREEMPTED;
        sys::suspend(record.cast());
    }
}

/// What a worker does after a guest was suspended by [`on_alarm`].
pub(crate) fn after_suspension() {
    block_alarm(false);
    sys::clear_vector_uppers();
}

/// What a worker does before a guest suspended by [`on_alarm`] goes on. The frame it returns through was made by the kernel for the thread
/// that was interrupted; the return would give that thread's signal stack and mask to this one.
///
/// # Safety
/// * `context` is the frame of a guest so suspended.
/// * `signal_stack` and `mask` are those of this thread while guests run.
pub(crate) unsafe fn before_resumption(context: *mut libc::ucontext_t, signal_stack: libc::stack_t, mask: &libc::sigset_t) {
    block_alarm(true);
    // SAFETY: The frame lies on the suspended guest's stack, by the caller's contract.
    unsafe {
        (*context).uc_stack = signal_stack;
        // The kernel's set is 64 bits and ends the structure; libc's type is longer.
        (&raw mut (*context).uc_sigmask).cast::<u64>().write((&raw const *mask).cast::<u64>().read());
    }
}

/// Whether a tick was noted that ends the run of the guest at once that was just made [ready to go on](before_resumption). If so, it is suspended as it was.
///
/// SIGALRM is blocked, so no other tick is noted before the guest runs; what comes from here on interrupts the guest.
pub(crate) fn ends_resumption() -> bool {
    let ends = HEEDED.get() && take_tick();
    if ends {
        block_alarm(false);
    }
    ends
}

/// Blocks or unblocks SIGALRM for this thread.
fn block_alarm(block: bool) {
    let how = if block { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    let set = alarm_set();
    // SAFETY: A valid set; the old one is not asked for. It cannot fail with these arguments.
    unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
}

/// The set that holds nothing but SIGALRM.
pub(crate) fn alarm_set() -> libc::sigset_t {
    // SAFETY: All zero is a sigset_t, the functions only set bits in it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGALRM);
        set
    }
}
