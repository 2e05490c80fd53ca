//! The switch between a worker's stack and a guest's on x86-64 (System V ABI), and the registers in the kernel's signal frames.
//!
//! A suspended side's stack, from its saved stack pointer upwards:
//!
//! ```text
//!   sp +  0   r15
//!   sp +  8   r14
//!   sp + 16   r13
//!   sp + 24   r12
//!   sp + 32   rbx
//!   sp + 40   rbp
//!   sp + 48   return address: where it goes on
//! ```
//!
//! A stub first makes the whole frame, then fills it: wherever storing faults, the return address stands at `sp + 48`. It goes on by a jump:
//! a `ret` to the other stack is always mispredicted, since the processor remembers the calls of this one (46 ns a round trip instead of 28).

use std::arch::global_asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::mem::offset_of;
use std::ops::Range;

use awsm_abi::vmctx;

use super::switch::{EVENT_HOST_CALL, EVENT_RETURNED, ON_ALARM, Switch};

/// Bytes of a saved frame below its return address.
const FRAME_BYTES: usize = 48;

/// Stack that the alarm handler may use below the kernel's frame; its trampoline touches the lowest of these bytes first.
const ALARM_STACK_BYTES: usize = 2048;

global_asm!(
    r#"
    .pushsection .text.sledge_sandbox_switch, "ax", @progbits
    .macro sledge_save
        mov qword ptr [rsp + 40], rbp
        mov qword ptr [rsp + 32], rbx
        mov qword ptr [rsp + 24], r12
        mov qword ptr [rsp + 16], r13
        mov qword ptr [rsp + 8], r14
        mov qword ptr [rsp], r15
    .endm
    .macro sledge_restore_and_go_on
        mov rbp, qword ptr [rsp + 40]
        mov rbx, qword ptr [rsp + 32]
        mov r12, qword ptr [rsp + 24]
        mov r13, qword ptr [rsp + 16]
        mov r14, qword ptr [rsp + 8]
        mov r15, qword ptr [rsp]
        mov rcx, qword ptr [rsp + 48]
        add rsp, 56
        jmp rcx
    .endm
    .macro sledge_stub name
        .p2align 4
        .globl \name
        .hidden \name
        .type \name, @function
    \name:
    .endm

    sledge_stub sledge_sandbox_stubs_begin

    # fn(record: rdi), on the worker's stack: comes back when the guest is suspended or done.
    sledge_stub sledge_sandbox_resume
        sub rsp, {frame}
        sledge_save
        mov qword ptr [rdi + {worker_sp}], rsp
        mov rsp, qword ptr [rdi + {guest_sp}]
        sledge_restore_and_go_on

    # fn(record: rdi), on the guest's stack, from the alarm handler: suspends the guest.
    sledge_stub sledge_sandbox_suspend
        sub rsp, {frame}
        sledge_save
        mov qword ptr [rdi + {guest_sp}], rsp
        mov rsp, qword ptr [rdi + {worker_sp}]
        sledge_restore_and_go_on

    # fn(vmctx: rdi, call: esi, slots: rdx), on the guest's stack, from generated code: vmctx's host_call.
    sledge_stub sledge_sandbox_host_call
        sub rsp, {frame}
    .globl sledge_sandbox_host_call_saving
    .hidden sledge_sandbox_host_call_saving
    sledge_sandbox_host_call_saving:
        sledge_save
        mov rax, qword ptr [rdi + {vmctx_sandbox}]
        mov qword ptr [rax + {caller}], rdi
        mov dword ptr [rax + {call}], esi
        mov qword ptr [rax + {slots}], rdx
        mov dword ptr [rax + {event}], {event_host_call}
        mov qword ptr [rax + {guest_sp}], rsp
        mov rsp, qword ptr [rax + {worker_sp}]
        sledge_restore_and_go_on

    # Where a fresh stack begins, with rbx = record: calls the entry, then ends in Returned. Nothing resumes it after that.
    sledge_stub sledge_sandbox_start
        .cfi_startproc
        .cfi_undefined rip
        mov rdi, qword ptr [rbx + {entry_vmctx}]
        mov rsi, qword ptr [rbx + {entry_code}]
        mov rdx, qword ptr [rbx + {entry_slots}]
        call qword ptr [rbx + {entry}]
        mov dword ptr [rbx + {event}], {event_returned}
        mov rsp, qword ptr [rbx + {worker_sp}]
        sledge_restore_and_go_on
        .cfi_endproc

    # Where the fault handler sends a trapped guest, with rsp = worker_sp already.
    sledge_stub sledge_sandbox_leave
        sledge_restore_and_go_on

    sledge_stub sledge_sandbox_stubs_end

    # The handler of SIGALRM, fn(signal: edi, info: rsi, context: rdx). Touches the stack that the handler needs, so that it is here and nowhere
    # else that a guest's stack can turn out to be too small for it, with rdx still the context.
    sledge_stub sledge_sandbox_on_alarm
        test byte ptr [rsp - {alarm_stack}], 0
        jmp qword ptr [rip + {on_alarm}]
    sledge_stub sledge_sandbox_on_alarm_end

    .purgem sledge_save
    .purgem sledge_restore_and_go_on
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
    // After the return into the start stub the stack pointer must be a multiple of 16.
    let sp = stack_high - 16 - FRAME_BYTES - 8;
    let frame = sp as *mut usize;
    // SAFETY: Seven words within the stack, by the caller's contract.
    unsafe {
        frame.write_bytes(0, 7);
        frame.add(4).write(record as usize); // rbx
        frame.add(6).write(sledge_sandbox_start as *const () as usize);
    }
    sp
}

/// Registers by their DWARF numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and 16 for the program counter.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Registers([usize; 17]);

impl Registers {
    pub(crate) const SP: u16 = 7;
    pub(crate) const PC: u16 = 16;
    /// Where the caller's pc is found while unwinding.
    pub(crate) const RETURN: u16 = Self::PC;

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

    /// Those of a guest that is suspended with the frame of `read(0)..read(6)`: as they will be after the suspending call returned.
    pub(crate) fn from_suspended(sp: usize, read: impl Fn(usize) -> Option<usize>) -> Option<Registers> {
        let mut registers = Registers::default();
        for (word, number) in [15, 14, 13, 12, 3, 6, Self::PC].into_iter().enumerate() {
            registers.set(number, read(sp.checked_add(word * 8)?)?);
        }
        registers.set(Self::SP, sp + FRAME_BYTES + 8);
        Some(registers)
    }

    /// Those in a signal frame.
    ///
    /// # Safety
    /// `context` points to a signal frame's context.
    pub(crate) unsafe fn from_context(context: *const libc::ucontext_t) -> Registers {
        const ORDER: [libc::c_int; 17] = [
            libc::REG_RAX,
            libc::REG_RDX,
            libc::REG_RCX,
            libc::REG_RBX,
            libc::REG_RSI,
            libc::REG_RDI,
            libc::REG_RBP,
            libc::REG_RSP,
            libc::REG_R8,
            libc::REG_R9,
            libc::REG_R10,
            libc::REG_R11,
            libc::REG_R12,
            libc::REG_R13,
            libc::REG_R14,
            libc::REG_R15,
            libc::REG_RIP,
        ];
        // SAFETY: The caller's.
        let gregs = unsafe { &(*context).uc_mcontext.gregs };
        Registers(ORDER.map(|register| gregs[register as usize] as usize))
    }
}

/// Program counter in a signal frame.
///
/// # Safety
/// `context` points to a signal frame's context.
pub(crate) unsafe fn context_pc(context: *const libc::ucontext_t) -> usize {
    // SAFETY: The caller's.
    unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize }
}

/// Makes the return from a signal end the guest's call: it goes on in `resume`'s caller.
///
/// # Safety
/// `context` points to the frame of a signal that interrupted this record's guest on this thread.
pub(crate) unsafe fn context_leave_guest(context: *mut libc::ucontext_t, record: *const Switch) {
    const DIRECTION_FLAG: i64 = 1 << 10;
    // SAFETY: The caller's.
    unsafe {
        let gregs = &mut (*context).uc_mcontext.gregs;
        gregs[libc::REG_RIP as usize] = sledge_sandbox_leave as *const () as i64;
        gregs[libc::REG_RSP as usize] = (*record).worker_sp as i64;
        gregs[libc::REG_EFL as usize] &= !DIRECTION_FLAG;
    }
}

/// Where a fault outside of guest code, but on a guest's stack, happened.
pub(crate) enum StubFault {
    /// In the stubs, with the guest's registers, as far as they are known (pc and sp of the return into guest code).
    Stub(Registers),
    /// On entering the alarm handler, with the context that it was given.
    Alarm(*const libc::ucontext_t),
}

/// Whether this was a fault in the stubs or in the alarm handler's first instruction.
///
/// # Safety
/// `context` points to a signal frame's context, interrupted on a guest's stack of which `stack` is accessible.
pub(crate) unsafe fn stub_fault(context: *const libc::ucontext_t, stack: Range<usize>) -> Option<StubFault> {
    // SAFETY: The caller's.
    let at = unsafe { Registers::from_context(context) };
    let pc = at.pc();
    let address = |stub: unsafe extern "C" fn()| stub as *const () as usize;
    if (address(sledge_sandbox_on_alarm)..address(sledge_sandbox_on_alarm_end)).contains(&pc) {
        const RDX: usize = 1;
        return Some(StubFault::Alarm(at.0[RDX] as *const libc::ucontext_t));
    }
    if !(address(sledge_sandbox_stubs_begin)..address(sledge_sandbox_stubs_end)).contains(&pc) {
        return None;
    }
    let mut guest = at;
    guest.set(Registers::PC, 0);
    if (address(sledge_sandbox_host_call)..address(sledge_sandbox_start)).contains(&pc) {
        let frame = if pc >= address(sledge_sandbox_host_call_saving) { FRAME_BYTES } else { 0 };
        let return_at = at.sp() + frame;
        if stack.contains(&return_at) && return_at.is_multiple_of(8) {
            // SAFETY: An aligned word of the accessible stack.
            guest.set(Registers::PC, unsafe { *(return_at as *const usize) });
            guest.set(Registers::SP, return_at + 8);
        }
    }
    Some(StubFault::Stub(guest))
}

/// The number in the trapping instruction at `pc`: LLVM's `ubsantrap`, `ud1l NUMBER(%eax), %eax`.
///
/// # Safety
/// The processor has just refused the instruction at `pc` as illegal, so that its bytes are readable.
pub(crate) unsafe fn trap_number(pc: usize) -> Option<u8> {
    let byte = |i: usize| {
        // SAFETY: Bytes are read one after the other, each only when those before are the beginning of this instruction, which therefore
        // goes on; the processor has read it.
        unsafe { *((pc + i) as *const u8) }
    };
    (byte(0) == 0x67 && byte(1) == 0x0f && byte(2) == 0xb9 && byte(3) == 0x40).then(|| byte(4))
}

/// Makes freshly written code visible to instruction fetch: nothing to do here.
pub(crate) fn code_written(_range: Range<usize>) {}

/// Asks for the cache line at an address, which may be any.
#[inline]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: A prefetch reads nothing that anything could see, and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
}

/// Puts the upper halves of vector registers, which an interrupted guest may have left in use, into their initial state, so that code without
/// AVX on this thread runs at full speed. Their contents are in the signal frame or no longer needed.
pub(crate) fn clear_vector_uppers() {
    #[target_feature(enable = "avx")]
    fn clear() {
        std::arch::x86_64::_mm256_zeroupper();
    }
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: The processor has AVX.
        unsafe { clear() }
    }
}
