//! What a server gives up once it serves: privileges, and all system calls but those that serving takes.
//!
//! An attacker that finds a way out of a sandbox should not find a shell at its end. So when the sockets listen, capabilities are dropped and cannot come
//! back (`no_new_privs`); and when all threads run, a seccomp filter refuses with EPERM whatever is not in [`CALLS`] or [`CALLS_IF`]: no program is
//! executed, no process made, traced or signalled, no socket but of the three families, nothing mounted, no module loaded. Sockets are bound only where a
//! function of the configuration may have some. Compilers are started by a process that was made before (`compile::broker`).
//!
//! The filter is for all threads, and for those that they make. The kernel keeps a table of calls that are always allowed, so that length and order of the
//! list cost nothing: a call costs 30 ns more (AMD EPYC), as it does with a filter that allows everything.

use std::collections::BTreeMap;
use std::{io, thread};

use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// Calls that serving takes, whatever their arguments.
const CALLS: &[i64] = &[
    // Reading and writing what is open.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_dup,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    // Connections. What listens, listens already.
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    // Names of hosts are asked for with it.
    libc::SYS_sendmmsg,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Files: artifacts, the cache, what was deployed, what the system says of this process, folders that functions may use.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_utimensat,
    libc::SYS_copy_file_range,
    // Memory, of sandboxes and of the process.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // Threads, and their end.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Of capabilities, nothing can be had that was dropped.
    libc::SYS_capset,
    // Told to return ENOSYS by another filter: its arguments lie in memory, where none can look.
    libc::SYS_clone3,
    // Signals to oneself: preemption, faults of guests, SIGTERM.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_delete,
    // What is the time, who am I, how much may I have.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_umask,
];

/// Calls that sockets of functions take, where a function may have any.
const CALLS_OF_SOCKETS: &[i64] = &[libc::SYS_bind, libc::SYS_listen];

/// Calls that only one architecture has, in place of others above.
#[cfg(target_arch = "x86_64")]
const CALLS_OF_PROCESSOR: &[i64] = &[
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_chmod,
    libc::SYS_time,
    // The base of memories, where the kernel does not let programs set it themselves.
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const CALLS_OF_PROCESSOR: &[i64] = &[];

/// A call that is allowed if the bits of one argument that are in a mask are one of these.
type CallIf = (i64, u8, Width, u64, &'static [u64]);

const ALL_BITS: u64 = u32::MAX as u64;
const SEALABLE: u64 = (libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) as u64;
const THREAD: u64 = libc::CLONE_THREAD as u64 | libc::CLONE_VM as u64;

/// Calls that are allowed with some arguments.
const CALLS_IF: &[CallIf] = &[
    // Threads, no processes.
    (libc::SYS_clone, 0, Width::Qword, THREAD, &[THREAD]),
    (libc::SYS_socket, 0, Width::Dword, ALL_BITS, &[libc::AF_UNIX as u64, libc::AF_INET as u64, libc::AF_INET6 as u64]),
    // Images of memories, which are sealed, and private copies of files. None that could be a program, where the kernel knows that flag.
    (libc::SYS_memfd_create, 1, Width::Dword, ALL_BITS, &[SEALABLE, SEALABLE | libc::MFD_NOEXEC_SEAL as u64]),
    (libc::SYS_ioctl, 1, Width::Dword, ALL_BITS, &[libc::FIONBIO, libc::FIOCLEX, libc::TCGETS, libc::TIOCGWINSZ]),
    (
        libc::SYS_prctl,
        0,
        Width::Dword,
        ALL_BITS,
        &[libc::PR_SET_NAME as u64, libc::PR_SET_VMA as u64, libc::PR_SET_NO_NEW_PRIVS as u64],
    ),
];

/// Why a server is not confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// The filter is none.
    #[error("the filter of system calls is none: {0}")]
    Filter(#[from] seccompiler::BackendError),
    /// The kernel does not take it.
    #[error("the kernel takes no filter of system calls: {0}")]
    Kernel(#[from] seccompiler::Error),
}

/// Gives up all capabilities, of this thread and of those that it makes, also those that executing a file could bring back.
pub fn drop_privileges() {
    let dropped = rustix::thread::set_no_new_privs(true).and_then(|()| {
        // Where the right to do so is missing, there is nothing that could be inherited either.
        for capability in 0..u64::BITS {
            let _ = rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << capability));
        }
        let _ = rustix::thread::clear_ambient_capability_set();
        let none = CapabilitySet::empty();
        rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
    });
    if let Err(error) = dropped {
        tracing::warn!(%error, "privileges could not be given up");
    }
}

/// Starts a thread that has no privileges and leaves signals to others: for those that a server needs before it has given up its own.
///
/// # Errors
/// When the system has no thread.
pub fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let begin = || {
        drop_privileges();
        body();
    };
    without_signals(|| thread::Builder::new().name(name.to_owned()).spawn(begin).map(drop))
}

/// Does something meanwhile no signal comes to this thread: threads that are started by it never get any.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let result = work();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    result
}

/// Refuses, for all threads, system calls that serving does not take; `has_sockets`: whether functions may have sockets of their own.
///
/// # Errors
/// Where the kernel knows no such filters. Nothing has changed then.
pub fn filter_calls(has_sockets: bool) -> Result<(), ConfineError> {
    for filter in filters(has_sockets)? {
        seccompiler::apply_filter_all_threads(&filter)?;
    }
    Ok(())
}

fn filters(has_sockets: bool) -> Result<[BpfProgram; 2], ConfineError> {
    let processor: TargetArch = std::env::consts::ARCH.try_into()?;
    let errno = |error: i32| SeccompAction::Errno(error.unsigned_abs());
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.iter().chain(CALLS_OF_PROCESSOR).map(|call| (*call, Vec::new())).collect();
    if has_sockets {
        rules.extend(CALLS_OF_SOCKETS.iter().map(|call| (*call, Vec::new())));
    }
    for (call, argument, width, mask, values) in CALLS_IF {
        let rule =
            |value: &u64| SeccompRule::new(vec![SeccompCondition::new(*argument, width.clone(), Is::MaskedEq(*mask), *value)?]);
        rules.insert(*call, values.iter().map(rule).collect::<Result<_, _>>()?);
    }
    // Signals for this process only.
    let this = u64::from(std::process::id());
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        let condition = SeccompCondition::new(0, Width::Dword, Is::Eq, this)?;
        rules.insert(call, vec![SeccompRule::new(vec![condition])?]);
    }
    // Limits of this process, which may be raised and lowered as ever; its own number is 0.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![SeccompCondition::new(0, Width::Dword, Is::Eq, 0)?])?]);
    let allowed = SeccompFilter::new(rules, errno(libc::EPERM), SeccompAction::Allow, processor)?;
    // A library that is told so uses clone, whose flags can be looked at.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let no_clone3 = SeccompFilter::new(clone3, SeccompAction::Allow, errno(libc::ENOSYS), processor)?;
    Ok([no_clone3.try_into()?, allowed.try_into()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_stands_in_two_lists() {
        let conditional = CALLS_IF.iter().map(|(call, ..)| call);
        let lists = CALLS.iter().chain(CALLS_OF_PROCESSOR).chain(conditional);
        let mut all: Vec<i64> = lists.copied().collect();
        all.extend([libc::SYS_kill, libc::SYS_tgkill, libc::SYS_prlimit64]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for call in
            [libc::SYS_execve, libc::SYS_execveat, libc::SYS_ptrace, libc::SYS_bpf, libc::SYS_io_uring_setup, libc::SYS_bind]
        {
            assert!(!all.contains(&call), "{call}");
        }
        assert!(CALLS_OF_SOCKETS.iter().all(|call| !all.contains(call)));
        assert!(filters(false).is_ok() && filters(true).is_ok());
    }

    /// In a thread: a filter of one thread holds for what that thread makes, and no other.
    #[test]
    fn what_is_not_in_the_list_is_refused_and_threads_go_on() {
        // Asked for before: a confined process may not.
        let other = rustix::process::getppid().unwrap_or(rustix::process::Pid::INIT);
        confined(false, move || {
            let denied =
                |what: std::io::Result<()>| what.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
            assert!(denied(std::process::Command::new("/bin/true").status().map(drop)), "a program was executed");
            assert!(denied(std::net::TcpListener::bind("127.0.0.1:0").map(drop)), "a socket was bound");
            assert!(denied(socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None).map(drop)), "a raw socket");
            assert!(denied(rustix::process::test_kill_process(other).map_err(Into::into)), "another process was signalled");
            rustix::process::test_kill_process(rustix::process::getpid()).unwrap();
            assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
            assert!(std::fs::read_to_string("/proc/thread-self/status").unwrap().contains("Seccomp:\t2"));
        });
    }

    #[test]
    fn a_file_in_memory_can_be_made_and_sealed_and_is_no_program() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
        confined(false, || {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = memfd_create("image", flags | MemfdFlags::NOEXEC_SEAL).or_else(|_| memfd_create("image", flags)).unwrap();
            let mut file = std::fs::File::from(file);
            std::io::Write::write_all(&mut file, b"image").unwrap();
            fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
            assert!(std::io::Write::write_all(&mut file, b"other").is_err());
            assert_eq!(memfd_create("program", flags | MemfdFlags::EXEC).unwrap_err(), rustix::io::Errno::PERM);
            assert_eq!(memfd_create("inherited", MemfdFlags::ALLOW_SEALING).unwrap_err(), rustix::io::Errno::PERM);
        });
    }

    #[test]
    fn sockets_of_functions_are_bound_where_there_may_be_any() {
        confined(true, || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            assert!(socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None).is_err(), "a raw socket");
        });
    }

    /// Runs something in a thread that is confined, unless the kernel takes no filter.
    fn confined(has_sockets: bool, then: impl FnOnce() + Send + 'static) {
        let thread = std::thread::spawn(move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            for filter in filters(has_sockets).unwrap() {
                if let Err(error) = seccompiler::apply_filter(&filter) {
                    eprintln!("not tested, the kernel takes no filter: {error}");
                    return;
                }
            }
            then();
        });
        thread.join().unwrap();
    }
}
