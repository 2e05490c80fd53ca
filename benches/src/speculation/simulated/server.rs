//! Executions on the cores of a server: their tasks compute, wait for the store and for each other.
//!
//! [`chain`](super::chain) says what of a workflow is begun when, and [`tree`](super::tree) what of functions that call each other.

use super::super::ceiling::Computes;
use super::Ahead;
use super::execution::{Execution, Op, Phase, Role, Task};
use super::machine::{Happens, Machine, Token};
use super::prices::Prices;
use super::setup::{Arrivals, Drops, Outcome, Setup};
use super::trace::{Read, Run, Trace};
use crate::random::Random;

/// A wait is this part of the usual one at least.
const WAIT_MIN: f64 = 0.3;
/// How many runs may be ahead up to which part of the cores' time that is used; above the last part none is.
const DEPTHS: [(f64, usize); 4] = [(0.7, 6), (0.81, 5), (0.95, 4), (f64::INFINITY, 0)];
/// Below that, as many as this are: of workflows, and of calls.
const FREE: f64 = 0.6;
const DEPTH_MAX: usize = 6;
const CALLS_MAX: usize = 12;
/// What it costs to kill a process, of a core's time, and a container, of its place's time; and how many places there are for each core.
const PROCESS_MS: f64 = 1.0;
const CONTAINER_MS: f64 = 10_000.0;
const PLACES: usize = 8;
/// The part of another event's cost that an answer takes which stands for a run.
const SKIP: f64 = 0.2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Due {
    Arrives(usize),
    Answered(Token),
    /// What was held back is committed.
    Held(usize),
    /// A place is free again.
    Place,
}

pub(super) struct Server<'a> {
    traces: &'a [Trace],
    pub(super) prices: &'a Prices,
    pub(super) setup: Setup,
    arrivals: Arrivals,
    count: usize,
    pub(super) random: Random,
    pub(super) machine: Machine<Due>,
    pub(super) executions: Vec<Execution<'a>>,
    pub(super) tasks: Vec<Task>,
    /// Places that nothing can have, and those that runs have.
    killed: usize,
    running: usize,
    pub(super) outcome: Outcome,
}

/// Plays so many executions: the traces in turn, or at random where they come at random times.
pub fn play(traces: &[Trace], prices: &Prices, setup: &Setup, arrivals: Arrivals, count: usize, seed: u64) -> Outcome {
    let mut server = Server {
        traces,
        prices,
        setup: *setup,
        arrivals,
        count,
        random: Random(seed),
        machine: Machine::new(setup.cores, prices.wake_ms),
        executions: Vec::with_capacity(count),
        tasks: Vec::new(),
        killed: 0,
        running: 0,
        outcome: Outcome { latencies_ms: vec![f64::NAN; count], waits_each: vec![0; count], ..Outcome::default() },
    };
    if count > 0 && !traces.is_empty() {
        server.machine.later(0.0, Due::Arrives(0));
    }
    while let Some(happens) = server.machine.next() {
        match happens {
            Happens::Computed(token, took) => {
                server.tasks[token].took += took;
                server.go_on(token);
            }
            Happens::Due(due) => server.due(due),
        }
    }
    let Server { machine, mut outcome, .. } = server;
    (outcome.used_ms, outcome.wakes) = (machine.used, machine.wakes);
    outcome
}

impl<'a> Server<'a> {
    fn due(&mut self, due: Due) {
        match due {
            Due::Arrives(number) => self.arrives(number),
            Due::Answered(token) if self.tasks[token].is_over => {}
            Due::Answered(token) => self.event(token),
            Due::Held(execution) => self.advance(execution),
            Due::Place => self.killed -= 1,
        }
    }

    fn arrives(&mut self, number: usize) {
        let trace = match self.arrivals {
            Arrivals::OneClient => &self.traces[number % self.traces.len()],
            Arrivals::Poisson(per_second) => {
                if number + 1 < self.count {
                    let gap_ms = -(1.0 - self.random.unit()).ln() * 1e3 / per_second;
                    self.machine.later(gap_ms, Due::Arrives(number + 1));
                }
                &self.traces[self.random.below(self.traces.len() as u64) as usize]
            }
        };
        let has_time = self.setup.ahead >= Ahead::Skips || self.depth(DEPTH_MAX) > 0;
        let goes_ahead = has_time && self.setup.ahead != Ahead::Off && (trace.is_tree() || self.random.unit() < self.setup.share);
        self.executions.push(Execution::new(trace, self.machine.now, goes_ahead));
        self.advance(number);
    }

    /// How many runs may be ahead now, of so many at most.
    pub(super) fn depth(&mut self, most: usize) -> usize {
        let busy = self.machine.busy();
        if busy < FREE {
            return most;
        }
        DEPTHS.iter().find(|(below, _)| busy < *below).map_or(0, |(_, depth)| *depth).min(most)
    }

    pub(super) fn depth_of_workflows(&mut self) -> usize {
        self.depth(DEPTH_MAX)
    }

    /// Whether all may be ahead that may be at best.
    pub(super) fn has_time(&mut self) -> bool {
        self.machine.busy() < FREE
    }

    pub(super) fn depth_of_calls(&mut self) -> usize {
        self.depth(CALLS_MAX)
    }

    /// Goes on with an execution, as far as that is possible now.
    pub(super) fn advance(&mut self, execution: usize) {
        if self.executions[execution].trace.is_tree() { self.advance_tree(execution) } else { self.advance_chain(execution) }
    }

    /// Whether there is a place for a run that is not asked for.
    pub(super) fn has_place(&self) -> bool {
        self.setup.drops != Drops::Container || self.running + self.killed < PLACES * self.setup.cores
    }

    /// Begins a task of an execution.
    pub(super) fn begin(&mut self, execution: usize, role: Role, ops: Vec<Op>) -> Token {
        let token = self.tasks.len();
        if matches!(role, Role::Run(_) | Role::Wrong) {
            self.running += 1;
        }
        self.tasks.push(Task {
            execution,
            role,
            ops,
            at: 0,
            waits_for: None,
            took: 0.0,
            counts: true,
            has_ended: false,
            is_over: false,
        });
        self.go_on(token);
        token
    }

    /// What a run does. The first of an execution has the request before it.
    pub(super) fn ops(&mut self, execution: usize, run: &Run, calls: &[usize]) -> Vec<Op> {
        let events = if std::mem::replace(&mut self.executions[execution].has_begun, true) { 1.0 } else { 2.0 };
        let mut ops = vec![Op::Event(events)];
        ops.extend(self.reads(execution, run).map(|read| Op::Read(read.from)));
        let takes = Op::Compute(self.prices.of_run(run));
        if self.prices.computes == Computes::BeforeCalls {
            ops.push(takes);
        }
        ops.extend(calls.iter().map(|callee| Op::Call(*callee)));
        ops.push(Op::Wrote);
        if self.prices.computes == Computes::Last {
            ops.push(takes);
        }
        ops
    }

    /// Whether what the runs of a workflow read of the store is known before they ask.
    fn fetches(&self, execution: usize) -> bool {
        let Execution { trace, goes_ahead, .. } = self.executions[execution];
        let has_level = (Ahead::Outputs..=Ahead::Skips).contains(&self.setup.ahead);
        has_level && self.prices.is_remote && goes_ahead && trace.known && !trace.is_tree()
    }

    /// The reads for which a run waits: what is expected of the store is fetched in one.
    pub(super) fn reads<'r>(&self, execution: usize, run: &'r Run) -> impl Iterator<Item = &'r Read> + use<'r> {
        let (is_fetched, mut has_fetched) = (self.fetches(execution), false);
        run.reads.iter().filter(move |read| read.from.is_some() || !std::mem::replace(&mut has_fetched, is_fetched))
    }

    /// What stands for a run whose answer is known.
    pub(super) fn ops_of_skip(&mut self, execution: usize) -> Vec<Op> {
        let events = if std::mem::replace(&mut self.executions[execution].has_begun, true) { SKIP } else { 1.0 + SKIP };
        vec![Op::Event(events)]
    }

    fn event(&mut self, token: Token) {
        self.outcome.events += 1;
        self.machine.compute(token, self.prices.event_ms);
    }

    /// Goes on with a task, until it computes, waits, or is over.
    pub(super) fn go_on(&mut self, token: Token) {
        loop {
            let task = &mut self.tasks[token];
            if task.is_over || task.has_ended {
                return;
            }
            let Some(op) = task.ops.get(task.at).copied() else { return self.ends(token) };
            let (execution, role, counts) = (task.execution, task.role, task.counts);
            task.at += 1;
            match op {
                Op::Compute(ms) => return self.machine.compute(token, ms),
                Op::Event(times) => {
                    self.outcome.events += times.ceil() as usize;
                    return self.machine.compute(token, times * self.prices.event_ms);
                }
                Op::Commit => return self.ask_store(token),
                Op::Read(from) => match from.filter(|_| counts).map(|from| self.read(execution, from)) {
                    None | Some(Found::Store) => return self.ask_store(token),
                    Some(Found::Written) => {}
                    Some(Found::Later(from)) => {
                        self.tasks[token].waits_for = Some(from);
                        return;
                    }
                },
                Op::Call(callee) if counts => {
                    if !self.call(execution, role, callee) {
                        self.tasks[token].waits_for = Some(callee);
                        return;
                    }
                }
                Op::Call(_) => {}
                Op::Wrote => {
                    if let Role::Run(run) = role
                        && counts
                    {
                        self.wrote(execution, run);
                    }
                }
            }
        }
    }

    fn ask_store(&mut self, token: Token) {
        let Prices { wait_ms, deviations_ms, .. } = self.prices;
        let deviation = match deviations_ms.len() as u64 {
            0 => 0.0,
            count => deviations_ms[self.random.below(count) as usize],
        };
        self.outcome.waits += 1;
        let execution = self.tasks[token].execution;
        self.executions[execution].waits += 1;
        self.machine.later((wait_ms + deviation).max(WAIT_MIN * wait_ms), Due::Answered(token));
    }

    fn read(&self, execution: usize, from: usize) -> Found {
        let of = &self.executions[execution];
        if of.committed > from && !of.trace.is_tree() {
            return Found::Store;
        }
        match (of.wrote[from], self.setup.ahead) {
            (true, _) => Found::Written,
            // Calls that are begun ahead wait for nothing.
            (false, Ahead::Stalls | Ahead::Skips) if !of.trace.is_tree() => Found::Later(from),
            (false, _) => Found::Store,
        }
    }

    /// A run has written: those that wait for that go on, and those that have read before it run again.
    fn wrote(&mut self, execution: usize, run: usize) {
        self.executions[execution].wrote[run] = true;
        if self.executions[execution].trace.runs[run].writes && self.executions[execution].goes_ahead {
            self.squash_readers(execution, run);
        }
        self.wake(execution, run, false);
    }

    /// What waits for that run goes on: reads when it has written, and callers when it has ended.
    fn wake(&mut self, execution: usize, run: usize, has_ended: bool) {
        for token in self.tokens(execution) {
            let task = &mut self.tasks[token];
            let reads = task.at.checked_sub(1).is_some_and(|at| matches!(task.ops[at], Op::Read(_)));
            if task.waits_for == Some(run) && (reads || has_ended) && !task.is_over {
                task.waits_for = None;
                self.go_on(token);
            }
        }
    }

    /// The tasks of an execution that run.
    fn tokens(&self, execution: usize) -> Vec<Token> {
        let of = |phase: &Phase| if let Phase::Running(token) = phase { Some(*token) } else { None };
        self.executions[execution].phases.iter().filter_map(of).collect()
    }

    /// Those that have read what a run has only written now run again.
    fn squash_readers(&mut self, execution: usize, writer: usize) {
        let of = &self.executions[execution];
        let reads = |run: &Run| run.depth == 0 && run.reads.iter().any(|read| read.from == Some(writer));
        let readers: Vec<usize> = (writer + 1..of.trace.runs.len()).filter(|run| reads(&of.trace.runs[*run])).collect();
        for run in readers {
            let has_read = match self.executions[execution].phases[run] {
                Phase::Asked => false,
                Phase::Ended(_) => true,
                Phase::Running(token) => self.tasks[token].waits_for.is_none(),
            };
            if has_read {
                if let Phase::Running(token) | Phase::Ended(token) = self.executions[execution].phases[run] {
                    self.drop_task(token);
                }
                self.outcome.squashed += 1;
                let of = &mut self.executions[execution];
                (of.phases[run], of.wrote[run]) = (Phase::Asked, false);
            }
        }
    }

    /// A task turned out to be wrong.
    pub(super) fn drop_task(&mut self, token: Token) {
        let task = &mut self.tasks[token];
        if task.is_over || !task.counts {
            return;
        }
        task.counts = false;
        if task.has_ended {
            task.is_over = true;
            self.outcome.wasted_ms += task.took;
            return;
        }
        if self.setup.drops == Drops::AtEnd {
            if task.waits_for.take().is_some() {
                self.go_on(token);
            }
            return;
        }
        task.is_over = true;
        let (execution, before) = (task.execution, task.took);
        self.running -= 1;
        self.outcome.wasted_ms += before + self.machine.stop(token);
        match self.setup.drops {
            Drops::Process => {
                self.outcome.wasted_ms += PROCESS_MS;
                self.begin(execution, Role::Other, vec![Op::Compute(PROCESS_MS)]);
            }
            Drops::Container => {
                self.killed += 1;
                self.machine.later(CONTAINER_MS, Due::Place);
            }
            Drops::AtOnce | Drops::AtEnd => {}
        }
    }

    fn ends(&mut self, token: Token) {
        let task = &mut self.tasks[token];
        task.has_ended = true;
        let Task { execution, role, counts, took, .. } = *task;
        if matches!(role, Role::Run(_) | Role::Wrong) {
            self.running -= 1;
        }
        match role {
            _ if !counts => self.outcome.wasted_ms += took,
            Role::Run(run) => {
                self.executions[execution].phases[run] = Phase::Ended(token);
                self.wake(execution, run, true);
                self.advance(execution);
            }
            Role::Commit(before) => {
                let of = &mut self.executions[execution];
                (of.committed, of.is_committing) = (before, false);
                self.advance(execution);
            }
            // It is not known yet that nothing comes of it.
            Role::Wrong | Role::Other => {}
        }
    }

    /// An execution is over.
    pub(super) fn over(&mut self, execution: usize) {
        let Execution { arrived, waits, .. } = self.executions[execution];
        self.outcome.latencies_ms[execution] = self.machine.now - arrived + self.prices.outside_ms;
        self.outcome.waits_each[execution] = waits;
        if self.arrivals == Arrivals::OneClient && execution + 1 < self.count {
            self.machine.later(self.prices.outside_ms, Due::Arrives(execution + 1));
        }
    }
}

enum Found {
    Store,
    Written,
    Later(usize),
}
