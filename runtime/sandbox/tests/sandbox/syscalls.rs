//! Counts page faults and system calls of a piece of code, in this process and without privileges.
//!
//! Page faults are those of the thread, as the kernel counts them. System calls are caught by Syscall User Dispatch (Linux 5.11,
//! Documentation/admin-guide/syscall-user-dispatch.rst): while it blocks, each raises SIGSYS, whose handler carries it out and counts it.

use std::arch::{asm, global_asm};
use std::cell::Cell;
use std::ptr;
use std::sync::Once;

const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) faults: u64,
    /// Their numbers, in order.
    pub(crate) calls: Vec<i64>,
}

thread_local! {
    static SELECTOR: Cell<u8> = const { Cell::new(ALLOW) };
    static CALLS: Cell<[i64; CALLS_MAX]> = const { Cell::new([0; CALLS_MAX]) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// More are not told apart.
const CALLS_MAX: usize = 64;

// The return from the handler is a system call, too: this one is let through, by its address.
global_asm!(
    ".text",
    "sledge_test_restorer:",
    "mov eax, 15",
    "syscall",
    // What the kernel compares is the address behind the instruction.
    "ud2",
    "sledge_test_restorer_end:",
    ".globl sledge_test_restorer",
    ".globl sledge_test_restorer_end"
);

unsafe extern "C" {
    fn sledge_test_restorer();
    fn sledge_test_restorer_end();
}

#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

unsafe extern "C" fn on_call(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    SELECTOR.set(ALLOW);
    // SAFETY: The kernel's context, with the registers of a system call that was not carried out.
    unsafe {
        let registers = &mut (*context).uc_mcontext.gregs;
        let register = |name: libc::c_int| registers[name as usize];
        let number = register(libc::REG_RAX);
        if COUNT.get() < CALLS_MAX {
            // The signal stack may be small: nothing is copied.
            CALLS.with(|calls| calls.as_ptr().cast::<i64>().add(COUNT.get()).write(number));
        }
        COUNT.set(COUNT.get() + 1);
        if number == libc::SYS_rt_sigreturn {
            // Only possible where it stands: do it there, and count no further.
            registers[libc::REG_RIP as usize] -= 2;
            return;
        }
        let result: i64;
        asm!("syscall", inlateout("rax") number => result,
            in("rdi") register(libc::REG_RDI), in("rsi") register(libc::REG_RSI), in("rdx") register(libc::REG_RDX),
            in("r10") register(libc::REG_R10), in("r8") register(libc::REG_R8), in("r9") register(libc::REG_R9),
            lateout("rcx") _, lateout("r11") _);
        registers[libc::REG_RAX as usize] = result;
    }
    SELECTOR.set(BLOCK);
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let flags = (libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK) as u64 | 0x0400_0000;
        let restorer = sledge_test_restorer as *const () as usize;
        let action = KernelAction { handler: on_call as *const () as usize, flags, restorer, mask: 0 };
        // SAFETY: The kernel's own form of the structure, with a handler for SIGSYS, a signal that has no other use here.
        let done = unsafe { libc::syscall(libc::SYS_rt_sigaction, libc::SIGSYS, &raw const action, ptr::null_mut::<u8>(), 8) };
        assert_eq!(done, 0);
    });
}

fn faults() -> u64 {
    // SAFETY: All zero is a valid rusage, which the call fills.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        (usage.ru_minflt + usage.ru_majflt) as u64
    }
}

/// Runs `work` and counts.
pub(crate) fn count(work: impl FnOnce()) -> Counts {
    install();
    let (start, end) = (sledge_test_restorer as *const () as usize, sledge_test_restorer_end as *const () as usize);
    let selector = SELECTOR.with(Cell::as_ptr);
    // Workers block what they do not know.
    // SAFETY: All zero is a sigset_t, to which a valid signal is added.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
    }
    COUNT.set(0);
    // SAFETY: The selector lives as long as the thread; the range is that of the restorer.
    let on = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, start, end - start, selector) };
    if on != 0 {
        eprintln!("SKIPPED: system calls are not counted, since this kernel has no Syscall User Dispatch");
    }
    let before = faults();
    SELECTOR.set(if on == 0 { BLOCK } else { ALLOW });
    work();
    SELECTOR.set(ALLOW);
    let faults = faults() - before;
    // SAFETY: Turning it off has no preconditions.
    unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) };
    Counts { faults, calls: CALLS.get()[..COUNT.get().min(CALLS_MAX)].to_vec() }
}

#[test]
fn system_calls_and_faults_are_counted() {
    const BYTES: usize = 1 << 20;
    let counts = count(|| {
        let _ = rustix::process::getpid();
        // SAFETY: A fresh mapping, used within its size and then given back.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(ptr::null_mut(), BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            libc::madvise(base, BYTES, libc::MADV_NOHUGEPAGE);
            ptr::write_bytes(base.cast::<u8>(), 1, BYTES);
            libc::munmap(base, BYTES);
        }
    });
    assert!(counts.faults >= 200, "{counts:?}");
    let expected = [libc::SYS_getpid, libc::SYS_mmap, libc::SYS_madvise, libc::SYS_munmap];
    assert!(counts.calls.is_empty() || counts.calls == expected, "{counts:?}");
    assert_eq!(count(|| ()), Counts::default());
}
