//! The switch between a worker's stack and a guest's on AArch64 (AAPCS64), and the registers in the kernel's signal frames.
//!
//! A suspended side's stack, from its saved stack pointer upwards:
//!
//! ```text
//!   sp +   0  x19 ... x28
//!   sp +  80  x29
//!   sp +  88  x30: where it goes on
//!   sp +  96  d8 ... d15
//! ```

use std::arch::{asm, global_asm};
use std::mem::offset_of;
use std::ops::Range;

use awsm_abi::vmctx;
use rustix::thread::{MembarrierCommand, membarrier};

use super::switch::{EVENT_HOST_CALL, EVENT_RETURNED, ON_ALARM, Switch};

/// Bytes of a saved frame.
const FRAME_BYTES: usize = 160;

/// Stack that the alarm handler may use below the kernel's frame; its trampoline touches the lowest of these bytes first.
const ALARM_STACK_BYTES: usize = 2048;

global_asm!(
    r#"
    .pushsection .text.sledge_sandbox_switch, "ax", @progbits
    .macro sledge_save
        stp x19, x20, [sp]
        stp x21, x22, [sp, #16]
        stp x23, x24, [sp, #32]
        stp x25, x26, [sp, #48]
        stp x27, x28, [sp, #64]
        stp x29, x30, [sp, #80]
        stp d8, d9, [sp, #96]
        stp d10, d11, [sp, #112]
        stp d12, d13, [sp, #128]
        stp d14, d15, [sp, #144]
    .endm
    .macro sledge_restore_and_return
        ldp x19, x20, [sp]
        ldp x21, x22, [sp, #16]
        ldp x23, x24, [sp, #32]
        ldp x25, x26, [sp, #48]
        ldp x27, x28, [sp, #64]
        ldp x29, x30, [sp, #80]
        ldp d8, d9, [sp, #96]
        ldp d10, d11, [sp, #112]
        ldp d12, d13, [sp, #128]
        ldp d14, d15, [sp, #144]
        add sp, sp, #{frame}
        ret
    .endm
    .macro sledge_stub name
        .p2align 4
        .globl \name
        .hidden \name
        .type \name, %function
    \name:
    .endm

    sledge_stub sledge_sandbox_stubs_begin

    // fn(record: x0), on the worker's stack: comes back when the guest is suspended or done.
    sledge_stub sledge_sandbox_resume
        sub sp, sp, #{frame}
        sledge_save
        mov x9, sp
        str x9, [x0, #{worker_sp}]
        ldr x9, [x0, #{guest_sp}]
        mov sp, x9
        sledge_restore_and_return

    // fn(record: x0), on the guest's stack, from the alarm handler: suspends the guest.
    sledge_stub sledge_sandbox_suspend
        sub sp, sp, #{frame}
        sledge_save
        mov x9, sp
        str x9, [x0, #{guest_sp}]
        ldr x9, [x0, #{worker_sp}]
        mov sp, x9
        sledge_restore_and_return

    // fn(vmctx: x0, call: w1, slots: x2), on the guest's stack, from generated code: vmctx's host_call.
    sledge_stub sledge_sandbox_host_call
        sub sp, sp, #{frame}
    .globl sledge_sandbox_host_call_saving
    .hidden sledge_sandbox_host_call_saving
    sledge_sandbox_host_call_saving:
        sledge_save
        ldr x9, [x0, #{vmctx_sandbox}]
        str x0, [x9, #{caller}]
        str w1, [x9, #{call}]
        str x2, [x9, #{slots}]
        mov w10, #{event_host_call}
        str w10, [x9, #{event}]
        mov x10, sp
        str x10, [x9, #{guest_sp}]
        ldr x10, [x9, #{worker_sp}]
        mov sp, x10
        sledge_restore_and_return

    // Where a fresh stack begins, with x19 = record: calls the entry, then ends in Returned. Nothing resumes it after that.
    sledge_stub sledge_sandbox_start
        .cfi_startproc
        .cfi_undefined x30
        ldr x0, [x19, #{entry_vmctx}]
        ldr x1, [x19, #{entry_code}]
        ldr x2, [x19, #{entry_slots}]
        ldr x9, [x19, #{entry}]
        blr x9
        mov w9, #{event_returned}
        str w9, [x19, #{event}]
        ldr x9, [x19, #{worker_sp}]
        mov sp, x9
        sledge_restore_and_return
        .cfi_endproc

    // Where the fault handler sends a trapped guest, with sp = worker_sp already.
    sledge_stub sledge_sandbox_leave
        sledge_restore_and_return

    sledge_stub sledge_sandbox_stubs_end

    // The handler of SIGALRM, fn(signal: w0, info: x1, context: x2). Touches the stack that the handler needs, so that it is here and nowhere
    // else that a guest's stack can turn out to be too small for it, with x2 still the context.
    sledge_stub sledge_sandbox_on_alarm
        sub x9, sp, #{alarm_stack}
        ldrb w9, [x9]
        adrp x9, {on_alarm}
        ldr x9, [x9, :lo12:{on_alarm}]
        br x9
    sledge_stub sledge_sandbox_on_alarm_end

    .purgem sledge_save
    .purgem sledge_restore_and_return
    .purgem sledge_stub
    .popsection
    "#,
    frame = const FRAME_BYTES,
    alarm_stack = const ALARM_STACK_BYTES,
    worker_sp = const offset_of!(Switch, worker_sp),
    guest_sp = const offset_of!(Switch, guest_sp),
    event = const offset_of!(Switch, event),
    call = const offset_of!(Switch, call),
    caller = const offset_of!(Switch, caller),
    slots = const offset_of!(Switch, slots),
    entry = const offset_of!(Switch, entry),
    entry_vmctx = const offset_of!(Switch, entry_vmctx),
    entry_code = const offset_of!(Switch, entry_code),
    entry_slots = const offset_of!(Switch, entry_slots),
    vmctx_sandbox = const vmctx::SANDBOX,
    event_host_call = const EVENT_HOST_CALL,
    event_returned = const EVENT_RETURNED,
    on_alarm = sym ON_ALARM,
);

unsafe extern "C" {
    fn sledge_sandbox_stubs_begin();
    fn sledge_sandbox_stubs_end();
    fn sledge_sandbox_resume(record: *mut Switch);
    fn sledge_sandbox_suspend(record: *mut Switch);
    fn sledge_sandbox_host_call();
    fn sledge_sandbox_host_call_saving();
    fn sledge_sandbox_start();
    fn sledge_sandbox_leave();
    fn sledge_sandbox_on_alarm();
    fn sledge_sandbox_on_alarm_end();
}

/// Runs the guest on its stack until it is suspended or done.
///
/// # Safety
/// `record` is that of a guest that may run on this thread: suspended, or started by [`prepare_start`].
pub(crate) unsafe fn resume(record: *mut Switch) {
    // SAFETY: The caller's.
    unsafe { sledge_sandbox_resume(record) }
}

/// Suspends the guest from the alarm handler.
///
/// # Safety
/// Runs on the stack of the guest whose record this is, which `resume` let run on this thread.
pub(crate) unsafe fn suspend(record: *mut Switch) {
    // SAFETY: The caller's.
    unsafe { sledge_sandbox_suspend(record) }
}

/// What vmctx's `host_call` points to.
pub(crate) fn host_call_address() -> usize {
    sledge_sandbox_host_call as *const () as usize
}

/// The handler to install for SIGALRM.
pub(crate) fn on_alarm_address() -> usize {
    sledge_sandbox_on_alarm as *const () as usize
}

/// Makes the frame with which `resume` starts the call that the record describes, on an unused stack that ends at `stack_high`; the guest's
/// stack pointer is the result.
///
/// # Safety
/// The bytes below `stack_high` are a stack on which nothing is live, and `stack_high` is aligned to 16.
pub(crate) unsafe fn prepare_start(record: *mut Switch, stack_high: usize) -> usize {
    let sp = stack_high - FRAME_BYTES;
    let frame = sp as *mut usize;
    // SAFETY: A frame within the stack, by the caller's contract.
    unsafe {
        frame.write_bytes(0, FRAME_BYTES / 8);
        frame.write(record as usize); // x19
        frame.add(11).write(sledge_sandbox_start as *const () as usize);
    }
    sp
}

/// Registers by their DWARF numbers: x0 to x30, sp, and 32 for the program counter.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Registers([usize; 33]);

impl Default for Registers {
    fn default() -> Registers {
        Registers([0; 33])
    }
}

impl Registers {
    const LINK: u16 = 30;
    pub(crate) const SP: u16 = 31;
    pub(crate) const PC: u16 = 32;
    /// Where the caller's pc is found while unwinding.
    pub(crate) const RETURN: u16 = Self::LINK;

    /// One register's value; none when there is no such register.
    pub(crate) fn get(&self, number: u16) -> Option<usize> {
        self.0.get(usize::from(number)).copied()
    }

    /// Changes a register; without effect when there is no such register.
    pub(crate) fn set(&mut self, number: u16, value: usize) {
        if let Some(register) = self.0.get_mut(usize::from(number)) {
            *register = value;
        }
    }

    pub(crate) fn pc(&self) -> usize {
        self.0[usize::from(Self::PC)]
    }

    pub(crate) fn sp(&self) -> usize {
        self.0[usize::from(Self::SP)]
    }

    /// Those of a guest that is suspended with the frame that begins at `sp`: as they will be after the suspending call returned.
    pub(crate) fn from_suspended(sp: usize, read: impl Fn(usize) -> Option<usize>) -> Option<Registers> {
        let mut registers = Registers::default();
        for (word, number) in (19..=Self::LINK).enumerate() {
            registers.set(number, read(sp.checked_add(word * 8)?)?);
        }
        registers.set(Self::PC, registers.0[usize::from(Self::LINK)]);
        registers.set(Self::SP, sp + FRAME_BYTES);
        Some(registers)
    }

    /// Those in a signal frame.
    ///
    /// # Safety
    /// `context` points to a signal frame's context.
    pub(crate) unsafe fn from_context(context: *const libc::ucontext_t) -> Registers {
        // SAFETY: The caller's.
        let machine = unsafe { &(*context).uc_mcontext };
        let mut registers = Registers::default();
        for (register, &value) in registers.0.iter_mut().zip(&machine.regs) {
            *register = value as usize;
        }
        registers.set(Self::SP, machine.sp as usize);
        registers.set(Self::PC, machine.pc as usize);
        registers
    }
}

/// Program counter in a signal frame.
///
/// # Safety
/// `context` points to a signal frame's context.
pub(crate) unsafe fn context_pc(context: *const libc::ucontext_t) -> usize {
    // SAFETY: The caller's.
    unsafe { (*context).uc_mcontext.pc as usize }
}

/// Makes the return from a signal end the guest's call: it goes on in `resume`'s caller.
///
/// # Safety
/// `context` points to the frame of a signal that interrupted this record's guest on this thread.
pub(crate) unsafe fn context_leave_guest(context: *mut libc::ucontext_t, record: *const Switch) {
    // SAFETY: The caller's.
    unsafe {
        (*context).uc_mcontext.pc = sledge_sandbox_leave as *const () as u64;
        (*context).uc_mcontext.sp = (*record).worker_sp as u64;
    }
}

/// Where a fault outside of guest code, but on a guest's stack, happened.
pub(crate) enum StubFault {
    /// In the stubs, with the guest's registers, as far as they are known (pc and sp of the return into guest code).
    Stub(Registers),
    /// On entering the alarm handler, with the context that it was given.
    Alarm(*const libc::ucontext_t),
}

/// Whether this was a fault in the stubs or in the alarm handler's first instructions.
///
/// # Safety
/// `context` points to a signal frame's context, interrupted on a guest's stack of which `stack` is accessible.
pub(crate) unsafe fn stub_fault(context: *const libc::ucontext_t, _stack: Range<usize>) -> Option<StubFault> {
    // SAFETY: The caller's.
    let at = unsafe { Registers::from_context(context) };
    let pc = at.pc();
    let address = |stub: unsafe extern "C" fn()| stub as *const () as usize;
    if (address(sledge_sandbox_on_alarm)..address(sledge_sandbox_on_alarm_end)).contains(&pc) {
        return Some(StubFault::Alarm(at.0[2] as *const libc::ucontext_t));
    }
    if !(address(sledge_sandbox_stubs_begin)..address(sledge_sandbox_stubs_end)).contains(&pc) {
        return None;
    }
    let mut guest = at;
    guest.set(Registers::PC, 0);
    if (address(sledge_sandbox_host_call)..address(sledge_sandbox_start)).contains(&pc) {
        let frame = if pc >= address(sledge_sandbox_host_call_saving) { FRAME_BYTES } else { 0 };
        guest.set(Registers::PC, at.0[usize::from(Registers::LINK)]);
        guest.set(Registers::SP, at.sp().wrapping_add(frame));
    }
    Some(StubFault::Stub(guest))
}

/// The number in the trapping instruction at `pc`: LLVM's `ubsantrap`, `brk #(0x5500 | NUMBER)`.
///
/// # Safety
/// The processor has just trapped at `pc`.
pub(crate) unsafe fn trap_number(pc: usize) -> Option<u8> {
    // SAFETY: The processor has read this instruction; instructions are aligned words.
    let instruction = unsafe { *(pc as *const u32) };
    let number = (instruction >> 5) & 0xffff;
    (instruction & 0xffe0_001f == 0xd420_0000 && number >> 8 == 0x55).then_some(number as u8)
}

/// Makes freshly written code visible to instruction fetch, of all threads: other processors may have fetched ahead what was there before. (Arm
/// Architecture Reference Manual, B2.2.5; membarrier(2).)
pub(crate) fn code_written(range: Range<usize>) {
    let sizes: u64;
    // SAFETY: Reads the cache type register, which user code may.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack, preserves_flags)) };
    let data_line = 4usize << ((sizes >> 16) & 15);
    let code_line = 4usize << (sizes & 15);
    for at in (range.start & !(data_line - 1)..range.end).step_by(data_line) {
        // SAFETY: Cleans a cache line of mapped memory.
        unsafe { asm!("dc cvau, {}", in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: Barriers.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for at in (range.start & !(code_line - 1)..range.end).step_by(code_line) {
        // SAFETY: Invalidates a cache line of mapped memory.
        unsafe { asm!("ic ivau, {}", in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: Barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
    // Linux before 4.16 and emulators do not have it. There the others synchronise when they next enter the kernel, which they do before they
    // learn of new code, but for one that was awake and spinning for just that.
    if membarrier(MembarrierCommand::RegisterPrivateExpeditedSyncCore).is_ok() {
        let _ = membarrier(MembarrierCommand::PrivateExpeditedSyncCore);
    }
}

/// Asks for the cache line at an address, which may be any.
#[inline]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: A prefetch reads nothing that anything could see, and never faults.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly)) };
}

/// Nothing to do: there are no vector states whose use slows other code down.
pub(crate) fn clear_vector_uppers() {}
