//! A thread's counts, and all threads' together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use sledge_sandbox::prefetch;

use super::readiness::Readiness;
use crate::counters::{Count, Histogram, Sum};
use crate::grpc::STATUSES;
use crate::invoke::function::Function;
use crate::invoke::loaded::Labels;
use crate::memo::Event;
use crate::memo::rule::Why;
use crate::outcome::Failure;
use crate::phases::PhaseClock;
use crate::schedule::{CLASSES, FunctionId};

/// How requests end: success, and every [code](Failure::code) of a failure.
pub const OUTCOMES: [&str; Failure::CODES.len() + 1] = {
    let mut outcomes = ["ok"; Failure::CODES.len() + 1];
    let mut index = 0;
    while index < Failure::CODES.len() {
        outcomes[index + 1] = Failure::CODES[index];
        index += 1;
    }
    outcomes
};

/// What one thread counted of one function.
#[derive(Debug)]
pub struct Counters {
    labels: Arc<Labels>,
    /// Requests that this thread answered, by their [outcome](OUTCOMES).
    outcomes: [Count; OUTCOMES.len()],
    /// Of those the ones by gRPC, by the status that their clients got. None until there is one.
    calls: OnceLock<Box<[Count; STATUSES.len()]>>,
    /// From arrival until a worker took it.
    pub queue: Histogram,
    /// Getting a sandbox.
    pub instantiate: Histogram,
    /// From then until the end.
    pub run: Histogram,
    /// Making the sandbox what it was, after the reply.
    pub reset: Histogram,
    /// How often its quantum was over before it was.
    pub preemptions: Count,
    /// How often a transaction ran again, since what it had read was changed.
    pub reruns: Count,
    /// For how long requests could have run and did not, for how long they ran, and for how long they waited for something else, in nanoseconds.
    pub ready: Count,
    /// See there.
    pub running: Count,
    /// See there.
    pub blocked: Count,
    /// Requests and runs, by what its table had of them or got from them. None until there is one.
    memo: OnceLock<Box<MemoCounts<Count>>>,
    /// Running in each of the phases that it declares.
    phases: Box<[Histogram]>,
}

/// What became of requests and runs of a function with a table.
#[derive(Clone, Debug, Default)]
pub struct MemoCounts<N> {
    /// By [what happened](MEMO_EVENTS).
    pub events: [N; MEMO_EVENTS.len()],
    /// Runs that were not remembered, by [why](Why::ALL).
    pub refused: [N; Why::ALL.len()],
}

/// What can happen to an entry of a table.
pub const MEMO_EVENTS: [&str; 8] = ["hit", "miss", "stale", "compared", "stored", "evicted", "replayed", "collapsed"];

/// What one thread counted of all functions together.
#[derive(Debug, Default)]
pub struct Thread {
    name: String,
    /// Requests for which there is no route.
    pub unrouted: Count,
    /// Requests for paths that have moved.
    pub redirected: Count,
    /// Requests for workflows.
    pub executions: Count,
    /// Requests for files of folders.
    pub files: Count,
    /// Connections accepted.
    pub accepted: Count,
    /// Connections that have ended.
    pub closed: Count,
    /// Requests, begun or not, that it took over from other workers.
    pub stolen: Count,
    /// Microtasks by their class, where they have classes: how many have ended, and the processor time that they used, in nanoseconds.
    pub classes: [[Count; 2]; CLASSES],
    /// Those of the functions, in the order in which they came.
    rows: Mutex<Vec<Arc<Counters>>>,
}

/// A thread's side: for that thread alone.
#[derive(Clone)]
pub struct Shard {
    thread: Arc<Thread>,
    counts_functions: bool,
    /// By the function's number.
    rows: Rc<RefCell<Vec<Option<Arc<Counters>>>>>,
}

/// All threads.
#[derive(Debug, Default)]
pub struct Metrics {
    threads: Mutex<Vec<Arc<Thread>>>,
    readiness: Mutex<Readiness>,
}

/// A function's rows, added up.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Requests by their outcome.
    pub outcomes: [u64; OUTCOMES.len()],
    /// Calls by gRPC, by the number of their status.
    pub calls: [u64; STATUSES.len()],
    /// As of a [`Counters`].
    pub queue: Sum,
    /// As of a [`Counters`].
    pub instantiate: Sum,
    /// As of a [`Counters`].
    pub run: Sum,
    /// As of a [`Counters`].
    pub reset: Sum,
    /// As of a [`Counters`].
    pub preemptions: u64,
    /// As of a [`Counters`].
    pub reruns: u64,
    /// As of a [`Counters`].
    pub ready: u64,
    /// As of a [`Counters`].
    pub running: u64,
    /// As of a [`Counters`].
    pub blocked: u64,
    /// As of a [`Counters`].
    pub memo: MemoCounts<u64>,
    /// The same, by the phase's name.
    pub phases: BTreeMap<String, Sum>,
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard").field("thread", &self.thread.name).finish_non_exhaustive()
    }
}

impl Counters {
    /// Takes note of how a request ended.
    pub fn ended(&self, failure: Option<&Failure>) {
        let index = failure.map_or(0, |failure| {
            let code = failure.code();
            // Every code is there.
            Failure::CODES.iter().position(|known| *known == code).map_or(0, |index| index + 1)
        });
        self.outcomes[index].add(1);
    }

    /// Takes note of what its table had of a request, or got from a run.
    pub fn remembered(&self, event: Event) {
        let counts = self.memo.get_or_init(Box::default);
        let (index, count) = match event {
            Event::Hit => (0, 1),
            Event::Miss => (1, 1),
            Event::Stale => (2, 1),
            Event::Compared => (3, 1),
            Event::Stored => (4, 1),
            Event::Evicted(count) => (5, count),
            Event::Replayed => (6, 1),
            Event::Collapsed => (7, 1),
            Event::Refused(why) => return counts.refused[why as usize].add(1),
        };
        counts.events[index].add(count);
    }

    /// Takes note of the status with which a call by gRPC ended; the request is counted [as any](Self::ended) beside that.
    pub fn called(&self, status: usize) {
        if let Some(count) = self.calls.get_or_init(Box::default).get(status) {
            count.add(1);
        }
    }
}

impl Counters {
    /// Takes note of how long a request was in which phase.
    pub fn note_phases(&self, clock: &PhaseClock) {
        for (index, _, time) in clock.times() {
            // They are the labels' own.
            if let Some(histogram) = self.phases.get(index) {
                histogram.observe(time);
            }
        }
    }

    /// Names and times of the phases.
    fn phases(&self) -> impl Iterator<Item = (&str, &Histogram)> {
        let phases = self.labels.phases.as_ref().map_or(&[][..], |phases| phases.as_slice());
        phases.iter().map(|phase| phase.name.as_str()).zip(&self.phases)
    }
}

impl Shard {
    /// The side of the thread to which those counts belong; it counts requests by function, or does not.
    #[must_use]
    pub fn new(thread: Arc<Thread>, counts_functions: bool) -> Shard {
        Shard { thread, counts_functions, rows: Rc::default() }
    }

    /// What is counted of all functions together.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The time, if it is measured how long things take; else another one that was known.
    #[must_use]
    pub fn now(&self, known: Instant) -> Instant {
        if self.counts_functions { Instant::now() } else { known }
    }

    /// Has the caches fetch the function's row of this thread.
    pub fn prefetch(&self, function: &Function) {
        if let Some(Some(row)) = self.rows.borrow().get(function.number.0 as usize) {
            prefetch(&**row);
        }
    }

    /// Takes note of something in the function's row of this thread.
    pub fn note(&self, function: &Function, note: impl FnOnce(&Counters)) {
        self.note_of(function.number, &function.labels, note);
    }

    /// The same of a function that need not be there.
    pub fn note_of(&self, number: FunctionId, labels: &Arc<Labels>, note: impl FnOnce(&Counters)) {
        if !self.counts_functions {
            return;
        }
        let mut rows = self.rows.borrow_mut();
        let index = number.0 as usize;
        // All versions of a function have the same labels, at one address.
        if let Some(Some(row)) = rows.get(index)
            && row.labels == *labels
        {
            return note(row);
        }
        if rows.len() <= index {
            rows.resize_with(index + 1, || None);
        }
        note(rows[index].insert(self.thread.row(labels)));
    }
}

impl Thread {
    /// The function's row; a new one if there is none.
    fn row(&self, labels: &Arc<Labels>) -> Arc<Counters> {
        let mut rows = lock(&self.rows);
        if let Some(row) = rows.iter().find(|row| row.labels == *labels) {
            return Arc::clone(row);
        }
        let phases = labels.phases.as_ref().map_or(0, |phases| phases.as_slice().len());
        let row = Arc::new(Counters {
            labels: Arc::clone(labels),
            outcomes: Default::default(),
            calls: OnceLock::new(),
            memo: OnceLock::new(),
            queue: Histogram::default(),
            instantiate: Histogram::default(),
            run: Histogram::default(),
            reset: Histogram::default(),
            preemptions: Count::default(),
            reruns: Count::default(),
            ready: Count::default(),
            running: Count::default(),
            blocked: Count::default(),
            phases: (0..phases).map(|_| Histogram::default()).collect(),
        });
        rows.push(Arc::clone(&row));
        row
    }
}

impl Metrics {
    /// For one more thread, to be used by it alone.
    #[must_use]
    pub fn thread(&self, name: &str) -> Arc<Thread> {
        let thread = Arc::new(Thread { name: name.to_owned(), ..Thread::default() });
        lock(&self.threads).push(Arc::clone(&thread));
        thread
    }

    /// All functions that had a request, by name and tenant.
    #[must_use]
    pub fn functions(&self) -> BTreeMap<(String, String), Totals> {
        let mut all: BTreeMap<(String, String), Totals> = BTreeMap::new();
        for thread in lock(&self.threads).iter() {
            for row in lock(&thread.rows).iter() {
                let totals = all.entry((row.labels.function.clone(), row.labels.tenant.clone())).or_default();
                for (sum, count) in totals.outcomes.iter_mut().zip(&row.outcomes) {
                    *sum += count.get();
                }
                let calls = row.calls.get().map_or(&[][..], |calls| &calls[..]);
                for (sum, count) in totals.calls.iter_mut().zip(calls) {
                    *sum += count.get();
                }
                if let Some(counts) = row.memo.get() {
                    let sums = totals.memo.events.iter_mut().chain(&mut totals.memo.refused);
                    sums.zip(counts.events.iter().chain(&counts.refused)).for_each(|(sum, count)| *sum += count.get());
                }
                totals.queue.add(&row.queue);
                totals.instantiate.add(&row.instantiate);
                totals.run.add(&row.run);
                totals.reset.add(&row.reset);
                totals.preemptions += row.preemptions.get();
                totals.reruns += row.reruns.get();
                totals.ready += row.ready.get();
                totals.running += row.running.get();
                totals.blocked += row.blocked.get();
                for (name, histogram) in row.phases() {
                    totals.phases.entry(name.to_owned()).or_default().add(histogram);
                }
            }
        }
        all
    }

    /// Of each of these functions the time for which requests were ready and did not run, as a part of their execution, as it was lately.
    #[must_use]
    pub fn readiness(&self, functions: &BTreeMap<(String, String), Totals>, now: Instant) -> Vec<((String, String), f64)> {
        let mut readiness = lock(&self.readiness);
        let ratio = |(function, totals): (&(String, String), &Totals)| {
            let executed = totals.running + totals.blocked;
            Some((function.clone(), readiness.ratio(function, totals.ready, executed, now)?))
        };
        functions.iter().filter_map(ratio).collect()
    }

    /// A count of each thread, by the thread's name.
    #[must_use]
    pub fn threads(&self, count: impl Fn(&Thread) -> &Count) -> Vec<(String, u64)> {
        lock(&self.threads).iter().map(|thread| (thread.name.clone(), count(thread).get())).collect()
    }

    /// Microtasks of all threads, by their class: how many have ended, and the processor time that they used, in nanoseconds.
    #[must_use]
    pub fn classes(&self) -> [[u64; 2]; CLASSES] {
        std::array::from_fn(|class| std::array::from_fn(|what| self.sum(|thread| &thread.classes[class][what])))
    }

    /// A count of all threads, added up.
    #[must_use]
    pub fn sum(&self, count: impl Fn(&Thread) -> &Count) -> u64 {
        lock(&self.threads).iter().map(|thread| count(thread).get()).sum()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks is a push, an insertion or a look.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
