//! What a thread needs before it may resume guests: handlers, a stack for them, a timer that ends quanta, a signal mask, a core. And how other threads end
//! what it runs before the timer does.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::ptr;
use std::time::{Duration, Instant};

use crate::fiber::fault::{self, FAULTS};
use crate::fiber::preempt;
use crate::limits::SIGNAL_STACK_BYTES;
use crate::sys::page::{Access, Pages, page_bytes};

/// A thread's permission to resume guests; ends on drop, after which the thread is as it was before.
///
/// Of the signals that have handlers without a stack of their own, only the timer's is delivered to the thread meanwhile: others would run on
/// guests' stacks. Another thread of the process has to take them.
#[derive(Debug)]
pub struct WorkerThread {
    state: Box<WorkerState>,
    timer: Timer,
    /// Stays on its thread.
    _thread: PhantomData<*const ()>,
}

/// What handlers and resumptions need to know of a worker's thread.
#[derive(Debug)]
pub(crate) struct WorkerState {
    signal_stack: Pages,
    /// Mask while guests run.
    mask: libc::sigset_t,
    mask_before: libc::sigset_t,
    stack_before: libc::stack_t,
}

thread_local! {
    static WORKER: Cell<*const WorkerState> = const { Cell::new(ptr::null()) };
}

/// Calls `with` with this thread's state.
///
/// # Panics
/// When the thread is no worker.
pub(crate) fn with_worker<R>(with: impl FnOnce(&WorkerState) -> R) -> R {
    let worker = WORKER.get();
    assert!(!worker.is_null(), "guests run on threads with a WorkerThread only");
    // SAFETY: Points into the box of this thread's WorkerThread, whose drop resets it; neither can happen during the call, since the guard
    // does not leave the thread and `with` is ours.
    with(unsafe { &*worker })
}

impl WorkerState {
    /// The thread's signal stack as the kernel wants it described.
    pub(crate) fn signal_stack(&self) -> libc::stack_t {
        let guard = page_bytes();
        libc::stack_t {
            ss_sp: (self.signal_stack.addresses().start + guard) as *mut libc::c_void,
            ss_flags: 0,
            ss_size: self.signal_stack.bytes() - guard,
        }
    }

    /// The thread's signal mask while guests run.
    pub(crate) fn mask(&self) -> &libc::sigset_t {
        &self.mask
    }
}

impl WorkerThread {
    /// Makes this thread a worker, whose guests are preempted after `quantum` while the timer is [armed](Self::arm).
    ///
    /// # Errors
    /// When the thread is one already, or the system refuses a timer or memory.
    pub fn enter(quantum: Duration) -> io::Result<WorkerThread> {
        if !WORKER.get().is_null() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this thread is a worker already"));
        }
        fault::install();
        let timer = Timer::new(quantum)?;
        let guard = page_bytes();
        let signal_stack = Pages::reserve(guard + SIGNAL_STACK_BYTES, Access::ReadWrite)?;
        // SAFETY: Fresh pages, to which no reference exists.
        unsafe { signal_stack.protect(0..guard, Access::None)? };
        let mask = mask_for_guests()?;
        // SAFETY: All zero is a valid value of these C structures.
        let (mask_before, stack_before) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut state = Box::new(WorkerState { signal_stack, mask, mask_before, stack_before });
        // SAFETY: Valid structures; the stack's memory lives until the guard's drop puts the previous stack back.
        unsafe {
            if libc::sigaltstack(&state.signal_stack(), &raw mut state.stack_before) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const state.mask, &raw mut state.mask_before);
        }
        preempt::take_tick();
        WORKER.set(&raw const *state);
        Ok(WorkerThread { state, timer, _thread: PhantomData })
    }

    /// Starts the timer: from now on a tick every quantum. Nothing when it runs already.
    pub fn arm(&self) {
        if self.timer.base.get().is_none() {
            self.timer.start(Instant::now());
        }
    }

    /// The same for a guest that begins to run at `begin`, which is now or was a moment ago: where the next tick would come within half a quantum, it
    /// comes a quantum from now instead. So guests that run for less never see a tick. Setting the timer costs a system call, and a tick an
    /// interrupt and a signal, on virtual machines tens of microseconds.
    pub fn arm_for(&self, begin: Instant) {
        let ticks_slowly = self.timer.interval.get() != self.timer.quantum;
        if ticks_slowly || self.timer.next(begin).is_none_or(|next| next < self.timer.quantum / 2) {
            self.timer.start(begin);
        }
    }

    /// For a guest that begins at `begin` and that nothing waits for: the next tick comes `first` after that or sooner, then one every `interval`, until the
    /// timer is armed in another way. `first` is not longer than `interval`. Where the timer runs so already, this is no system call.
    ///
    /// Ticks are rare now. So one that comes before the guest goes on, where it was preempted, is not lost: it preempts the guest again at once.
    pub fn arm_slowly(&self, begin: Instant, first: Duration, interval: Duration) {
        debug_assert!(first <= interval);
        preempt::heed_ticks(true);
        let fits = self.timer.interval.get() == interval && self.timer.next(begin).is_some_and(|next| next <= first);
        if !fits {
            self.timer.start_with(begin, first, interval);
        }
    }

    /// What sends this thread the timer's signal.
    #[must_use]
    pub fn alarm(&self) -> Alarm {
        // SAFETY: No arguments; it cannot fail.
        Alarm { process: unsafe { libc::getpid() }, thread: unsafe { libc::gettid() } }
    }

    /// Starts the timer anew, with the first tick after `first`, then one every quantum. Each tick costs the processor an interrupt, on virtual
    /// machines an expensive one: a guest that nothing else waits for needs none before its deadline.
    pub fn arm_after(&self, first: Duration) {
        self.timer.start_with(Instant::now(), first, self.timer.quantum);
    }

    /// Stops the timer.
    pub fn disarm(&self) {
        if self.timer.base.take().is_some() {
            self.timer.set(Duration::ZERO, Duration::ZERO);
        }
    }

    /// Starts the timer anew: the next tick comes a quantum from now.
    pub fn restart(&self) {
        self.arm_after(self.timer.quantum);
    }

    /// Whether a tick came while no guest code ran on this thread (in a host call, in the scheduler), since the last question.
    #[must_use]
    pub fn take_tick(&self) -> bool {
        preempt::take_tick()
    }

    /// Binds this thread to one core.
    ///
    /// # Errors
    /// When the core does not exist or the process may not use it.
    pub fn pin(&self, core: usize) -> io::Result<()> {
        if core >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no core {core}")));
        }
        // SAFETY: A zeroed set is the empty set; the core's number is within its size; 0 means this thread.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.disarm();
        WORKER.set(ptr::null());
        // SAFETY: Both were obtained from the kernel for this thread by `enter`.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.state.mask_before, ptr::null_mut());
            libc::sigaltstack(&raw const self.state.stack_before, ptr::null_mut());
        }
    }
}

/// Sends a worker's thread the timer's signal from another thread: for a guest the same as a tick, and noted as one where no guest runs. So one that comes
/// late does no harm.
#[derive(Clone, Debug)]
pub struct Alarm {
    process: libc::pid_t,
    thread: libc::pid_t,
}

impl Alarm {
    /// Sends the signal. Nothing where the thread has ended.
    pub fn ring(&self) {
        // SAFETY: Numbers only, and of a thread of this process: where another has got that number meanwhile, the handler finds no guest there.
        unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, libc::SIGALRM) };
    }
}

/// The cores that this thread may run on, as affinity mask and cgroup allow.
///
/// # Errors
/// When the system does not say.
pub fn affinity() -> io::Result<Vec<usize>> {
    // SAFETY: A zeroed set of the size given; 0 means this thread.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Err(io::Error::last_os_error());
        }
        set
    };
    // SAFETY: Numbers within the set's size.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect())
}

/// The thread's mask with SIGALRM and faults unblocked, and everything blocked whose handler would run on a guest's stack.
fn mask_for_guests() -> io::Result<libc::sigset_t> {
    // SAFETY: All zero are valid values; every call gets valid pointers to them.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        let error = libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), &raw mut mask);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        for signal in 1..=64 {
            let mut action: libc::sigaction = std::mem::zeroed();
            if signal == libc::SIGALRM || FAULTS.contains(&signal) || libc::sigaction(signal, ptr::null(), &raw mut action) != 0 {
                continue;
            }
            let handled = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
            if handled && action.sa_flags & libc::SA_ONSTACK == 0 {
                libc::sigaddset(&raw mut mask, signal);
            }
        }
        for signal in FAULTS.into_iter().chain([libc::SIGALRM]) {
            libc::sigdelset(&raw mut mask, signal);
        }
        Ok(mask)
    }
}

/// A POSIX timer that sends SIGALRM to the thread that made it.
#[derive(Debug)]
struct Timer {
    id: libc::timer_t,
    quantum: Duration,
    /// The time between two ticks: the quantum, or more.
    interval: Cell<Duration>,
    /// When it was started: from then on there is a tick every interval. None while it does not run.
    base: Cell<Option<Instant>>,
}

impl Timer {
    fn new(quantum: Duration) -> io::Result<Timer> {
        if quantum.is_zero() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a quantum of zero"));
        }
        // SAFETY: All zero is a valid sigevent, then filled; the id is written by the call.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGALRM;
            event.sigev_notify_thread_id = libc::gettid();
            let mut id: libc::timer_t = ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut id) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Timer { id, quantum, interval: Cell::new(quantum), base: Cell::new(None) })
        }
    }

    /// Makes it fire every quantum from now on.
    fn start(&self, now: Instant) {
        preempt::heed_ticks(false);
        self.interval.set(self.quantum);
        self.base.set(Some(now));
        self.set(self.quantum, self.quantum);
    }

    /// Makes it fire `first` from now, and from then on every `interval`.
    fn start_with(&self, now: Instant, first: Duration, interval: Duration) {
        let first = first.max(Duration::from_nanos(1));
        preempt::heed_ticks(interval != self.quantum);
        self.interval.set(interval);
        // That of a tick an interval before the first one.
        self.base.set((now + first).checked_sub(interval));
        self.set(first, interval);
    }

    /// How long it is from then until the next tick; none while it does not run.
    fn next(&self, from: Instant) -> Option<Duration> {
        let passed = from.saturating_duration_since(self.base.get()?);
        let interval = self.interval.get();
        if passed < interval {
            return Some(interval - passed);
        }
        let interval = interval.as_nanos();
        let into = passed.as_nanos() % interval;
        Some(Duration::from_nanos(u64::try_from(interval - into).unwrap_or(u64::MAX)))
    }

    /// Makes it fire after `first`, or never when that is zero, and from then on every `interval`.
    fn set(&self, first: Duration, interval: Duration) {
        let spec = |duration: Duration| libc::timespec {
            tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
        };
        let times = libc::itimerspec { it_interval: spec(interval), it_value: spec(first) };
        // SAFETY: The timer exists until drop. It cannot fail with valid times.
        unsafe { libc::timer_settime(self.id, 0, &raw const times, ptr::null_mut()) };
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: Made by `new`, deleted once.
        unsafe { libc::timer_delete(self.id) };
    }
}
