//! What waits of one function: oldest first, in levels.
//!
//! An invocation keeps the age of its admission, whatever it waited for: what comes back from I/O goes before what came later. So that one long invocation does not stand
//! before many short ones of its function, it drops a level when it has used more than max(3 quanta, 4x the function's median), and another each time that it has used
//! four times as much again. A level that is lower has a quarter of the time of the one above it, while both have something to run: never more, and never nothing.

use std::collections::VecDeque;
use std::time::Duration;

use crate::percentile::follow;
use crate::task::Task;
use crate::turns::{Turn, nanoseconds};

/// How many levels there are; the last one has no end.
const LEVELS: usize = 6;
/// By what the levels differ, in length and in their part of the time: a power of two.
const LEVEL_SHIFT: u32 = 2;
/// What an invocation may use in the highest level: the larger of so many quanta, and of so many medians of its function. With four quanta the short ones of a bimodal function wait a
/// fifth longer than in plain turns, with two the long ones half longer (`core/simulation.rs`).
const FIRST_QUANTA: u64 = 3;
const FIRST_MEDIANS: u64 = 4;
/// How many values a moving average, and one of deviations, goes over.
const AVERAGED: u64 = 8;
const DEVIATIONS_AVERAGED: u64 = 4;

#[derive(Debug, Default)]
struct Level {
    /// By age.
    queue: VecDeque<Task>,
    /// The time that it has used, divided by its part.
    clock: u64,
}

/// An average of values, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    value: u64,
    count: u64,
}

/// What one function has to run, and what is known of it.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Its turn among the functions of its tenant.
    pub(crate) turn: Turn,
    /// Its share, as its last task said.
    weight: u32,
    levels: Vec<Level>,
    /// The clock of the level that ran last.
    clock: u64,
    waiting: usize,
    started: usize,
    /// For how long arrivals run before they end, block or are preempted.
    first_run: Average,
    /// Processor time of invocations, and by how much it differs from that.
    mean: Average,
    deviation: Average,
    /// The median of processor times, in nanoseconds.
    median: u64,
}

impl Group {
    /// Invocations that wait for their turn.
    #[must_use]
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Those of them that have begun.
    #[must_use]
    pub(crate) const fn started(&self) -> usize {
        self.started
    }

    /// The part of its tenant's time by which its turn advances when it has used so much.
    pub(crate) fn weighted(&self, time: Duration) -> Duration {
        time / self.weight.max(1)
    }

    /// For how long arrivals run at first, if that is known.
    #[must_use]
    pub(crate) fn first_run(&self) -> Option<Duration> {
        (self.first_run.count > 0).then(|| Duration::from_nanos(self.first_run.value))
    }

    /// The processor time that an invocation is expected to use at most: the mean, and twice the mean deviation (as TCP waits for acknowledgements, RFC 6298). Zero if
    /// nothing is known.
    #[must_use]
    pub(crate) const fn expected(&self) -> Duration {
        Duration::from_nanos(self.mean.value.saturating_add(self.deviation.value.saturating_mul(2)))
    }

    /// The processor time that all that waits is expected to use.
    #[must_use]
    pub(crate) const fn backlog(&self) -> Duration {
        Duration::from_nanos(self.mean.value.saturating_mul(self.waiting as u64))
    }

    /// An arrival ran for so long.
    pub(crate) fn ran_first(&mut self, time: Duration) {
        self.first_run.add(nanoseconds(time), AVERAGED);
    }

    /// An invocation has ended after so much processor time.
    pub(crate) fn ended(&mut self, cpu: Duration) {
        let cpu = nanoseconds(cpu).max(1);
        if self.mean.count > 0 {
            self.deviation.add(self.mean.value.abs_diff(cpu), DEVIATIONS_AVERAGED);
        }
        self.mean.add(cpu, AVERAGED);
        self.median = follow(self.median, cpu, 0.5);
    }

    /// One of them, that had used `task.cpu` before, ran for so long.
    pub(crate) fn used(&mut self, task: &Task, ran: Duration, quantum: Duration) {
        // One that runs at once was never added.
        self.weight = task.weight;
        let index = self.level(task, quantum);
        let clock = self.clock;
        let level = &mut self.levels_to(index)[index];
        let part = LEVEL_SHIFT * index as u32;
        level.clock = level.clock.max(clock).saturating_add(nanoseconds(ran).saturating_mul(1 << part));
    }

    /// One more waits.
    pub(crate) fn add(&mut self, mut task: Task, quantum: Duration) {
        let index = self.level(&task, quantum);
        task.level = index as u8;
        self.weight = task.weight;
        let clock = self.clock;
        let level = &mut self.levels_to(index)[index];
        if level.queue.is_empty() {
            level.clock = level.clock.max(clock);
        }
        let queue = &mut level.queue;
        let behind_all = queue.back().is_none_or(|last| last.age <= task.age);
        let at = if behind_all { queue.len() } else { queue.partition_point(|other| other.age <= task.age) };
        queue.insert(at, task);
        self.waiting += 1;
        self.started += usize::from(task.started);
    }

    /// The next one; where no more may begin, of those that have begun.
    #[must_use]
    pub(crate) fn first(&self, is_full: bool) -> Option<&Task> {
        let (level, at) = self.find_first(is_full)?;
        self.levels[level].queue.get(at)
    }

    /// Takes the [first](Group::first).
    pub(crate) fn take_first(&mut self, is_full: bool) -> Option<Task> {
        let (level, at) = self.find_first(is_full)?;
        self.clock = self.clock.max(self.levels[level].clock);
        self.take_at(level, at)
    }

    /// Takes one that is wanted.
    pub(crate) fn take(&mut self, wanted: impl Fn(&Task) -> bool) -> Option<Task> {
        let found = self
            .levels
            .iter()
            .enumerate()
            .find_map(|(level, Level { queue, .. })| Some((level, queue.iter().position(&wanted)?)));
        let (level, at) = found?;
        self.take_at(level, at)
    }

    /// Takes the one that would wait longest, of those that have begun or not.
    pub(crate) fn take_last(&mut self, started: bool) -> Option<Task> {
        let last = |(level, Level { queue, .. }): (usize, &Level)| {
            Some((level, queue.iter().rposition(|task| task.started == started)?))
        };
        let (level, at) = self.levels.iter().enumerate().rev().find_map(last)?;
        self.take_at(level, at)
    }

    /// All that wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.levels.iter().flat_map(|level| &level.queue)
    }

    /// Where the next one is: in the level whose clock is earliest, of several the highest.
    fn find_first(&self, is_full: bool) -> Option<(usize, usize)> {
        let first = |(index, level): (usize, &Level)| {
            let at = if is_full {
                level.queue.iter().position(|task| task.started)?
            } else {
                (!level.queue.is_empty()).then_some(0)?
            };
            Some((level.clock, index, at))
        };
        let (_, level, at) = self.levels.iter().enumerate().filter_map(first).min()?;
        Some((level, at))
    }

    fn take_at(&mut self, level: usize, at: usize) -> Option<Task> {
        let task = self.levels[level].queue.remove(at)?;
        self.waiting -= 1;
        self.started -= usize::from(task.started);
        Some(task)
    }

    fn levels_to(&mut self, index: usize) -> &mut [Level] {
        if self.levels.len() <= index {
            self.levels.resize_with(index + 1, Level::default);
        }
        &mut self.levels
    }

    /// The level of an invocation: how often it has used up what a level has.
    fn level(&self, task: &Task, quantum: Duration) -> usize {
        let mut end = nanoseconds(quantum).saturating_mul(FIRST_QUANTA).max(self.median.saturating_mul(FIRST_MEDIANS));
        let cpu = nanoseconds(task.cpu);
        let mut level = 0;
        // Also after the median has grown.
        while (cpu > end || level < task.level.into()) && level + 1 < LEVELS {
            end = end.saturating_mul(1 << LEVEL_SHIFT);
            level += 1;
        }
        level
    }
}

impl Average {
    /// The plain average of the first values, a moving one of so many then.
    fn add(&mut self, value: u64, averaged: u64) {
        self.count = (self.count + 1).min(averaged);
        self.value = self.value - self.value / self.count + value / self.count;
    }
}
