//! A thread of another process under control (ptrace(2)): its system calls listed or refused, or its instructions carried out one at a time.

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The pause between two checks whether the thread has stopped, for a test that waits for something else too.
const PAUSE: Duration = Duration::from_micros(20);
/// So many in vain, and the thread waits for something that does not come.
const QUIET: u32 = 500;
/// `PTRACE_SYSCALL_INFO_ENTRY`.
const ENTRY: u8 = 1;

/// The system calls, by number, that a thread of a child process begins while `work` runs; those that it waits in already are not among them.
///
/// # Panics
/// When the system does not allow it, or the thread ends.
pub fn system_calls(thread: u32, work: impl FnOnce()) -> Vec<i64> {
    let mut calls = Vec::new();
    traced(thread, work, |call| {
        calls.push(call);
        false
    });
    calls
}

/// Has the system refuse a thread of a child process (ENOMEM) the call with number `nth`, counted from zero, of those in `which` that it makes
/// while `work` runs. Whether it made so many.
///
/// # Panics
/// As for [`system_calls`].
pub fn refused(thread: u32, which: &[i64], nth: usize, work: impl FnOnce()) -> bool {
    let mut made = 0;
    traced(thread, work, |call| {
        made += usize::from(which.contains(&call));
        which.contains(&call) && made == nth + 1
    });
    made > nth
}

/// Has `refuses` look at each system call of a thread while `work` runs, and say whether it is to fail.
fn traced(thread: u32, work: impl FnOnce(), refuses: impl FnMut(i64) -> bool + Send) {
    let done = AtomicBool::new(false);
    let (attached, wait_for_attached) = mpsc::channel();
    thread::scope(|scope| {
        let tracer = scope.spawn(|| trace(pid(thread), &done, attached, refuses));
        wait_for_attached.recv().expect("the thread is traced");
        // Also when it panics.
        let end = SetOnDrop(&done);
        work();
        drop(end);
        tracer.join().expect("the tracer ends well");
    });
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn pid(thread: u32) -> Pid {
    Pid::from_raw(thread.cast_signed())
}

fn trace(thread: Pid, done: &AtomicBool, attached: mpsc::Sender<()>, mut refuses: impl FnMut(i64) -> bool) {
    ptrace::seize(thread, Options::PTRACE_O_TRACESYSGOOD).expect("PTRACE_SEIZE");
    ptrace::interrupt(thread).expect("PTRACE_INTERRUPT");
    let mut attached = Some(attached);
    let mut refusing = false;
    // Looks at which it did not stop, one after the other; and whether it was told to, after everything.
    let (mut quiet, mut last) = (0, false);
    loop {
        let status = waitpid(thread, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)).expect("waitpid");
        if status == WaitStatus::StillAlive {
            quiet += 1;
            // What it still does when the work is done belongs to that.
            if quiet >= QUIET && !last && done.load(Ordering::SeqCst) {
                last = true;
                ptrace::interrupt(thread).expect("PTRACE_INTERRUPT");
            }
            thread::sleep(PAUSE);
            continue;
        }
        quiet = 0;
        let signal = if let WaitStatus::Stopped(_, signal) = status { Some(signal) } else { None };
        match status {
            WaitStatus::PtraceEvent(..) => {
                if let Some(attached) = attached.take() {
                    let _ = attached.send(());
                }
            }
            WaitStatus::PtraceSyscall(_) => {
                if ptrace::syscall_info(thread).expect("PTRACE_GET_SYSCALL_INFO").op == ENTRY {
                    refusing = refuses(number(thread));
                    if refusing {
                        replace(thread, None);
                    }
                } else if std::mem::take(&mut refusing) {
                    replace(thread, Some(-libc::ENOMEM));
                }
            }
            WaitStatus::Stopped(..) => {}
            other => panic!("the thread that is traced: {other:?}"),
        }
        // Any stop will do: each takes the place of the one that was asked for. But a call that is being refused has to return.
        if last && !refusing {
            return ptrace::detach(thread, signal).expect("PTRACE_DETACH");
        }
        ptrace::syscall(thread, signal).expect("PTRACE_SYSCALL");
    }
}

/// Number of the system call that is being made.
fn number(thread: Pid) -> i64 {
    let registers = ptrace::getregs(thread).expect("PTRACE_GETREGS");
    #[cfg(target_arch = "x86_64")]
    return registers.orig_rax.cast_signed();
    #[cfg(target_arch = "aarch64")]
    return registers.regs[8].cast_signed();
}

/// Puts no system call in the place of the one that is being made, or says that it has returned `result`.
#[cfg(target_arch = "x86_64")]
fn replace(thread: Pid, result: Option<i32>) {
    let mut registers = ptrace::getregs(thread).expect("PTRACE_GETREGS");
    match result {
        None => registers.orig_rax = u64::MAX,
        Some(result) => registers.rax = i64::from(result).cast_unsigned(),
    }
    ptrace::setregs(thread, registers).expect("PTRACE_SETREGS");
}

#[cfg(not(target_arch = "x86_64"))]
fn replace(_: Pid, _: Option<i32>) {
    panic!(
        "system calls are refused on x86-64 only: elsewhere their number is in none of the registers that can be written to here"
    );
}

/// System calls that have to do with memory: those that get it, give it back, protect it, or ask what was written to.
pub const OF_MEMORY: [i64; 6] =
    [libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_madvise, libc::SYS_pread64];

/// A thread that stops at signals, and goes on as it is told. To be used by one thread only.
#[derive(Debug)]
pub struct Stepped(Pid);

impl Stepped {
    /// Takes control over a child's only thread, which runs on.
    ///
    /// # Panics
    /// When the system does not allow it.
    #[must_use]
    pub fn seize(thread: u32) -> Stepped {
        ptrace::seize(pid(thread), Options::PTRACE_O_EXITKILL).expect("PTRACE_SEIZE");
        Stepped(pid(thread))
    }

    /// Waits until it stops for a signal, which then is not delivered unless it is told so.
    ///
    /// # Panics
    /// When it ends.
    #[must_use]
    pub fn stopped(&self) -> Signal {
        match waitpid(self.0, Some(WaitPidFlag::__WALL)).expect("waitpid") {
            WaitStatus::Stopped(_, signal) => signal,
            other => panic!("the thread that is stepped: {other:?}"),
        }
    }

    /// Lets it run on, `signal` delivered if there is one.
    ///
    /// # Panics
    /// When the system does not allow it.
    pub fn resume(&self, signal: Option<Signal>) {
        ptrace::cont(self.0, signal).expect("PTRACE_CONT");
    }

    /// Carries out one instruction, or the first of the handler of `signal`; the signal for which it stops then, which is `SIGTRAP`
    /// unless the instruction raised another.
    ///
    /// # Panics
    /// When it ends.
    #[must_use]
    pub fn step(&self, signal: Option<Signal>) -> Signal {
        ptrace::step(self.0, signal).expect("PTRACE_SINGLESTEP");
        self.stopped()
    }

    /// Address of the next instruction.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn program_counter(&self) -> u64 {
        let registers = ptrace::getregs(self.0).expect("PTRACE_GETREGS");
        #[cfg(target_arch = "x86_64")]
        return registers.rip;
        #[cfg(target_arch = "aarch64")]
        return registers.pc;
    }
}
