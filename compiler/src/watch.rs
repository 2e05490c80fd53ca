//! Which functions take more than their share of the time: those are given up, and compiled with less effort by the next process.
//!
//! A thread of the child looks, every [`LOOK_INTERVAL`], at how much processor time each thread that generates code has had, and puts it down to
//! the function on which that thread says it works. LLVM cannot be interrupted: so a function is given up by ending the process. Its parent
//! has what was finished, and starts another.
//!
//! A function may take a quarter of all the time by its size, or, if that is more, an eighth of what other functions left of it. So each of
//! several that are slow may take less than the one before, and there is time for the rest. It may always take what is too little to be worth
//! another process: where a module of ordinary functions is too large for the time, none of them is at fault.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::thread::Pid;

use crate::llvm::{FUNCTION_NUMBER_MODULE_SHIFT, NO_FUNCTION, saying_function};
use crate::module::{FuncId, FuncIdx, ModuleIdx};

/// Between looks.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What a function may take in any case, or an eighth of all the time if that is less.
const LEAST_SHARE: Duration = Duration::from_secs(1);

/// What is watched.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Sizes of the functions that are compiled.
    bytes: BTreeMap<FuncId, usize>,
    /// The threads at work, by their part.
    workers: BTreeMap<usize, Worker>,
    /// What functions took so far.
    used: BTreeMap<FuncId, Duration>,
}

/// A thread that works on a part.
struct Worker {
    thread: Pid,
    /// The number of the function on which it works.
    function: Arc<AtomicU64>,
    /// The time of the thread that was put down to functions.
    counted: Duration,
}

impl Worker {
    /// The function on which it works, if that is one of the program's.
    fn at(&self) -> Option<FuncId> {
        let number = self.function.load(Ordering::Relaxed);
        let (module, function) = ((number >> FUNCTION_NUMBER_MODULE_SHIFT) as u32, number as u32);
        (number != NO_FUNCTION).then_some(FuncId { module: ModuleIdx(module), function: FuncIdx(function) })
    }
}

impl Watch {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what will be compiled: functions with the sizes of their bodies. Only these can be given up.
    pub(crate) fn begin(&self, functions: Vec<(FuncId, usize)>) {
        self.state().bytes = functions.into_iter().collect();
    }

    /// Does the work of a part, on the thread that calls.
    pub(crate) fn part<T>(&self, part: usize, work: impl FnOnce() -> T) -> T {
        let function = Arc::new(AtomicU64::new(NO_FUNCTION));
        let saying = saying_function(&function);
        let thread = rustix::thread::gettid();
        let worker = Worker { thread, function: Arc::clone(&function), counted: time_of(thread).unwrap_or_default() };
        self.state().workers.insert(part, worker);
        let result = work();
        self.state().workers.remove(&part);
        drop(saying);
        result
    }

    /// Looks, and returns a function that has to be given up, with what it took; `time_max` is all the time that there is.
    pub(crate) fn look(&self, time_max: Duration) -> Option<(FuncId, Duration)> {
        let state = &mut *self.state();
        for worker in state.workers.values_mut() {
            let Some(time) = time_of(worker.thread) else { continue };
            if let Some(function) = worker.at().filter(|function| state.bytes.contains_key(function)) {
                *state.used.entry(function).or_default() += time.saturating_sub(worker.counted);
            }
            worker.counted = time;
        }
        let at_work = state.workers.values().filter_map(Worker::at);
        let total = state.bytes.values().sum();
        let shares = Shares { time_max, total };
        at_work.filter_map(|function| Some((function, *state.used.get(&function)?))).find(|&(function, used)| {
            let others = state.used.values().sum::<Duration>().saturating_sub(used);
            used > shares.of(state.bytes[&function], others)
        })
    }
}

/// How the time is divided.
struct Shares {
    time_max: Duration,
    /// Size of all functions.
    total: usize,
}

impl Shares {
    /// What a function of a size may take, where others took so much.
    fn of(&self, bytes: usize, others: Duration) -> Duration {
        let by_size = (self.time_max / 4).mul_f64(bytes as f64 / self.total.max(1) as f64);
        let least = LEAST_SHARE.min(self.time_max / 8);
        by_size.max(self.time_max.saturating_sub(others) / 8).max(least)
    }
}

/// Processor time that a thread of this process has had, in steps of 10 ms; none where the system does not say.
fn time_of(thread: Pid) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", thread.as_raw_nonzero())).ok()?;
    // proc(5): behind the name in parentheses, fields 14 and 15 of all are the times in user and kernel mode.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_functions_leave_time_for_others() {
        let shares = Shares { time_max: Duration::from_secs(600), total: 1_000_000 };
        // Each takes all that it may.
        let taken = (0..5).fold(Duration::ZERO, |taken, _| taken + shares.of(10_000, taken));
        assert!(taken < Duration::from_secs(300), "{taken:?}");
        assert_eq!(shares.of(10_000, Duration::ZERO), Duration::from_secs(75));
        assert_eq!(shares.of(1_000_000, Duration::ZERO), Duration::from_secs(150), "by its size");
        assert_eq!(shares.of(10, Duration::from_secs(600)), LEAST_SHARE, "late");
    }

    /// This test's own thread works until it is found to be over.
    #[test]
    fn the_function_at_work_is_given_up_and_no_other() {
        let watch = Watch::default();
        let id = |function| FuncId { module: ModuleIdx(1), function: FuncIdx(function) };
        watch.begin(vec![(id(3), 10), (id(4), 990)]);
        // An eighth of it for the first, which is small.
        let time_max = Duration::from_millis(800);
        watch.part(0, || {
            let function = Arc::clone(&watch.state().workers[&0].function);
            // Time without a function belongs to none.
            while time_of(rustix::thread::gettid()).unwrap() < Duration::from_millis(300) {
                assert_eq!(watch.look(time_max), None);
            }
            function.store((1 << FUNCTION_NUMBER_MODULE_SHIFT) + 3, Ordering::Relaxed);
            let (given_up, used) = loop {
                if let Some(over) = watch.look(time_max) {
                    break over;
                }
            };
            assert!(given_up == id(3) && used > Duration::from_millis(50), "{given_up:?} {used:?}");
        });
        assert!(watch.look(time_max).is_none(), "it is done");
    }
}
