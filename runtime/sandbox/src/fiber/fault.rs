//! The handler of SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP: decides whether a fault is a guest's trap.
//!
//! | interrupted | signal | what it is |
//! |---|---|---|
//! | guest code | SIGILL, SIGTRAP | the trap whose number stands in the instruction, or an internal one |
//! | guest code | SIGFPE | the trap that the trap table names there |
//! | guest code | SIGSEGV at a page of its memory that is read-only | none: a first write, after which the page is writable (`writable.rs`) |
//! | guest code | SIGSEGV, SIGBUS in an address range of this sandbox's memories | out of bounds memory access |
//! | guest code, stubs, entry of the alarm handler | SIGSEGV in the stack's guard, or from the kernel with no room for a frame | stack exhausted |
//! | guest code | any other fault | fatal: isolation cannot be vouched for any more, the process ends |
//! | anything else | any | not ours: the handler that was there before, or the default |
//!
//! It runs on the worker's own guarded signal stack, so that an exhausted stack does not matter, with SIGALRM blocked. It neither allocates,
//! locks nor formats. A trap is recorded in the sandbox's record, and the return from the signal leads to the worker.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use awsm_abi::TrapCode;

use crate::fiber::preempt::{alarm_set, on_alarm};
use crate::fiber::record::{self, Record};
use crate::limits;
use crate::load::arena;
use crate::sys::switch::{EVENT_TRAPPED, set_on_alarm};
use crate::sys::{self, Registers, StubFault};

/// Signals that an instruction raises.
pub(crate) const FAULTS: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// `si_code` of signals that the kernel sends itself: no room for a signal frame, or a general protection fault.
const SI_KERNEL: libc::c_int = 0x80;

/// Beyond the size of the kernel's frame: what may lie between an interrupted stack pointer and the frame.
const FRAME_SLACK_BYTES: usize = 4096;

/// The actions that [`FAULTS`] had before ours were installed.
struct Previous([MaybeUninit<libc::sigaction>; FAULTS.len()]);

static mut PREVIOUS: Previous = Previous([MaybeUninit::uninit(); FAULTS.len()]);

/// The most that the kernel pushes when it delivers a signal, and then some.
static FRAME_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Installs the handlers of faults and of SIGALRM for the process; once.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: getauxval has no preconditions.
        let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        FRAME_BYTES.store(frame.clamp(libc::MINSIGSTKSZ, limits::STACK_BYTES_MIN / 2) + FRAME_SLACK_BYTES, Ordering::Relaxed);
        let previous = &raw mut PREVIOUS;
        for (i, signal) in FAULTS.into_iter().enumerate() {
            // SAFETY: Only this closure writes PREVIOUS, once; each element before the handler that reads it is installed.
            unsafe { libc::sigaction(signal, ptr::null(), (*previous).0[i].as_mut_ptr()) };
            set_action(signal, on_fault as *const () as usize, libc::SA_SIGINFO | libc::SA_ONSTACK);
        }
        set_on_alarm(on_alarm);
        set_action(libc::SIGALRM, sys::on_alarm_address(), libc::SA_SIGINFO | libc::SA_RESTART);
    });
}

/// Sets a handler during which SIGALRM is blocked.
fn set_action(signal: libc::c_int, handler: usize, flags: libc::c_int) {
    // SAFETY: All zero is a valid sigaction, then filled with a handler of the form that SA_SIGINFO wants.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        action.sa_mask = alarm_set();
        let done = libc::sigaction(signal, &raw const action, ptr::null_mut());
        assert_eq!(done, 0, "sigaction of a valid signal");
    }
}

/// What a fault means to a guest.
struct Verdict {
    /// Number of its trap; zero where the trap table decides.
    trap: u8,
    /// The guest's registers.
    registers: Registers,
    /// Whether their `pc` is where a call returns to.
    after_call: bool,
}

impl Verdict {
    fn at(trap: u8, registers: Registers) -> Option<Verdict> {
        Some(Verdict { trap, registers, after_call: false })
    }
}

unsafe extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let record = record::current();
    if !record.is_null() {
        // SAFETY: The kernel gave us `info` and `context`; the record is that of the guest running on this thread.
        unsafe {
            if learn(signal, info, context, record) {
                return;
            }
            if let Some(verdict) = judge(signal, info, context, record) {
                (*record).context.trap = verdict.trap;
                (*record).context.registers = verdict.registers;
                (*record).context.after_call = verdict.after_call;
                (*record).context.switch.event = EVENT_TRAPPED;
                // In case the alarm handler was just being entered.
                libc::sigdelset(&raw mut (*context).uc_sigmask, libc::SIGALRM);
                sys::context_leave_guest(context, record.cast());
                return;
            }
        }
    }
    // SAFETY: The kernel's arguments are handed on unchanged.
    unsafe { pass_on(signal, info, context) };
}

/// Whether guest code wrote to a page of its memory that was read-only until now: then the return from the signal does it again.
unsafe fn learn(
    signal: libc::c_int,
    info: *const libc::siginfo_t,
    context: *const libc::ucontext_t,
    record: *const Record,
) -> bool {
    /// Of SIGSEGV: the page exists, but does not allow this.
    const SEGV_ACCERR: libc::c_int = 2;
    // SAFETY: The kernel's context and, for this signal, its information. A guest runs, so that nothing else uses the list and what it leads to.
    unsafe {
        if signal != libc::SIGSEGV || (*info).si_code != SEGV_ACCERR || !arena::contains(Registers::from_context(context).pc()) {
            return false;
        }
        let address = (*info).si_addr() as usize;
        let ranges = std::slice::from_raw_parts((*record).ranges, (*record).ranges_len);
        let range = ranges.iter().find(|range| address >= range.start && address < range.end);
        range.is_some_and(|range| (*range.writable).learn(address))
    }
}

/// Decides whether it is the guest's trap.
unsafe fn judge(
    signal: libc::c_int,
    info: *const libc::siginfo_t,
    context: *const libc::ucontext_t,
    record: *const Record,
) -> Option<Verdict> {
    // SAFETY: A guest runs, so the record is only written by this thread's stubs and handlers; the context is the kernel's.
    let (record, at) = unsafe { (&*record, Registers::from_context(context)) };
    let (in_guest, fiber) = (arena::contains(at.pc()), &record.context);
    match signal {
        libc::SIGILL | libc::SIGTRAP if in_guest => {
            // SAFETY: The processor refused this very instruction.
            let number = unsafe { sys::trap_number(at.pc()) };
            Verdict::at(number.unwrap_or(TrapCode::Internal.number()), at)
        }
        libc::SIGFPE if in_guest => Verdict::at(0, at),
        libc::SIGSEGV | libc::SIGBUS => {
            // SAFETY: The kernel fills these fields for these signals.
            let (address, by_kernel) = unsafe { ((*info).si_addr() as usize, (*info).si_code == SI_KERNEL) };
            let exhausted = if by_kernel {
                (fiber.guard_low..fiber.stack_low + FRAME_BYTES.load(Ordering::Relaxed)).contains(&at.sp())
            } else {
                (fiber.guard_low..fiber.stack_low).contains(&address)
            };
            let on_guest_stack = (fiber.guard_low..=fiber.stack_high).contains(&at.sp());
            if exhausted && in_guest {
                return Verdict::at(TrapCode::StackExhausted.number(), at);
            }
            if exhausted && on_guest_stack {
                // SAFETY: On the guest's stack, whose accessible part this is.
                let stub = unsafe { sys::stub_fault(context, fiber.stack_low..fiber.stack_high) }?;
                let (registers, after_call) = match stub {
                    StubFault::Stub(registers) => (registers, true),
                    // SAFETY: What the kernel gave to the alarm handler, which has done nothing yet.
                    StubFault::Alarm(context) => (unsafe { Registers::from_context(context) }, false),
                };
                return Some(Verdict { trap: TrapCode::StackExhausted.number(), registers, after_call });
            }
            if !in_guest {
                return None;
            }
            // SAFETY: The sandbox keeps the list alive and unchanged while its guest runs.
            let ranges = unsafe { std::slice::from_raw_parts(record.ranges, record.ranges_len) };
            if !by_kernel && ranges.iter().any(|range| address >= range.start && address < range.end) {
                return Verdict::at(TrapCode::MemoryOutOfBounds.number(), at);
            }
            die(at.pc(), address)
        }
        _ => None,
    }
}

/// Hands a fault that is no guest's to the handler that was there before, or to the default.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let previous = &raw const PREVIOUS;
    let Some(i) = FAULTS.iter().position(|&fault| fault == signal) else { return };
    // SAFETY: Written before this handler was installed, and never since.
    let action = unsafe { (*previous).0[i].assume_init_ref() };
    match action.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction faults again, and then ends the process as it would have.
            // SAFETY: Setting the default action has no preconditions.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
                if (*info).si_code <= 0 {
                    // Sent by a process: nothing would fault again.
                    libc::raise(signal);
                }
            }
        }
        handler if action.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::ucontext_t);
            // SAFETY: Was installed as a handler of this form, and is called as the kernel would.
            unsafe { std::mem::transmute::<usize, Handler>(handler)(signal, info, context) }
        }
        handler => {
            // SAFETY: Was installed as a handler of the simple form.
            unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(libc::c_int)>(handler)(signal) }
        }
    }
}

/// Ends the process: guest code touched an address that its sandbox does not own.
fn die(pc: usize, address: usize) -> ! {
    fn say(text: &[u8]) {
        // SAFETY: Valid bytes; write is safe in handlers. Nothing can be done about an error.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
    fn say_number(number: usize) {
        let mut digits = [0u8; 18];
        digits[..2].copy_from_slice(b"0x");
        for (i, digit) in digits[2..].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (60 - 4 * i)) & 15];
        }
        say(&digits);
    }
    say(b"fatal: guest code at ");
    say_number(pc);
    say(b" touched ");
    say_number(address);
    say(b", which is no part of its sandbox.\nThis is a bug of awsm or a tampered artifact: what the other sandboxes hold cannot be vouched for, so the process ends here. Please report it with the artifact.\n");
    // SAFETY: abort has no preconditions, and is safe in handlers.
    unsafe { libc::abort() }
}
