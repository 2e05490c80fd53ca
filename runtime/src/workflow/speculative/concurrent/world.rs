//! Executions at the same time on one store, with all that can happen to them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use serde_json::Value;
use sledge_workflow::definition::Definition;

use super::disk::{Disk, Doubtful, Write};
use super::execution::Execution;
use super::functions::{Functions, NAMES, answer, input};
use super::history::{Happened, Ran, check};
use crate::kv::{Commit, Outcome as Stored};
use crate::speculate::Speculation;
use crate::speculate::skips::Skip;
use crate::txn::Settled;
use crate::txn::tests::pipeline::Store;
use crate::txn::tests::{Model, Program};

/// What has not ended by then does not end.
const TICKS_MAX: u64 = 50_000;
/// Transactions of other clients.
const OUTSIDE: u64 = 5;

/// How often things have happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) skipped: u64,
    pub(super) squashed: u64,
    pub(super) failed: u64,
    /// Commits whose fsync has failed: those that were on the disk nevertheless, and those that were not.
    pub(super) found: u64,
    pub(super) lost: u64,
    pub(super) crashes: u64,
    pub(super) deploys: u64,
    pub(super) ended: u64,
}

impl Counts {
    pub(super) const ALL: usize = 8;

    pub(super) const fn all(&self) -> [u64; Counts::ALL] {
        let Counts { skipped, squashed, failed, found, lost, crashes, deploys, ended } = *self;
        [skipped, squashed, failed, found, lost, crashes, deploys, ended]
    }
}

/// What runs have logged.
#[derive(Default)]
pub(super) struct Log(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    /// Runs that are over for good: nothing that they log is too early.
    over: HashSet<u64>,
    said: HashMap<u64, u32>,
    is_early: bool,
}

impl Log {
    pub(super) fn says(&self, run: u64) {
        let mut lines = self.0.lock().unwrap();
        lines.is_early |= !lines.over.contains(&run);
        *lines.said.entry(run).or_default() += 1;
    }

    pub(super) fn may_say(&self, run: u64) {
        self.0.lock().unwrap().over.insert(run);
    }

    /// Whether each run has logged once at most, and not before it was committed, and each of those that owe a line has logged it.
    fn check(&self, owed: &[u64]) -> Result<(), String> {
        let lines = self.0.lock().unwrap();
        if lines.is_early {
            return Err("a run has logged before its commit".to_owned());
        }
        if owed.iter().any(|run| lines.said.get(run) != Some(&1)) || lines.said.values().any(|times| *times > 1) {
            return Err(format!("the log has {:?}, and not once each of {owed:?}", lines.said));
        }
        Ok(())
    }
}

/// What executions have in common.
pub(super) struct Shared {
    pub(super) rng: Rng,
    pub(super) now_ms: i64,
    pub(super) store: Store,
    pub(super) disk: Disk,
    /// The store as it was a while ago: an answer may have been on its way for long.
    before: Option<Box<Model>>,
    pub(super) functions: Functions,
    pub(super) tables: Arc<Speculation>,
    pub(super) log: Arc<Log>,
    /// Runs that have to have logged.
    pub(super) owed: Vec<u64>,
    pub(super) history: Vec<Happened>,
    /// How many runs there were, and commits of groups.
    pub(super) runs: u64,
    pub(super) groups: u64,
    /// The commit that the store does not make.
    pub(super) fails_at: Option<u64>,
    pub(super) counts: Counts,
    /// Whether known answers stand for runs.
    skips: bool,
}

impl Shared {
    /// Does a step of a program; false at its end.
    pub(super) fn goes(&mut self, program: &mut Program) -> bool {
        match &self.before {
            Some(before) if self.rng.u8(..10) == 0 => program.go(&**before),
            _ => program.go(&self.store),
        }
    }

    /// What may stand for a run.
    pub(super) fn skip(&mut self, version: u64, function: &str, input: &Value) -> Option<Skip> {
        let skip = self.tables.skip(version, &self.tables.key(function, input));
        skip.filter(|_| self.skips && self.rng.u32(..8) > 0)
    }

    pub(super) fn skipped_wrongly(&self, version: u64, function: &str, input: &Value) {
        self.tables.skipped_wrongly(version, self.tables.key(function, input));
    }

    /// Commits a program by itself; none where it has to run again. `is_awaited`: an execution waits for it, and has it run again where the disk fails.
    pub(super) fn commit_alone(
        &mut self,
        program: &Program,
        (function, input): (&str, &Arc<Value>),
        is_awaited: bool,
    ) -> Result<Option<Ran>, String> {
        if !matches!(program.outer.settle(!program.failed, None), Settled::Done) {
            return Ok(None);
        }
        let ran = Ran {
            function: function.to_owned(),
            path: Vec::new(),
            input: Arc::clone(input),
            number: program.number,
            seen: Some(program.seen.clone()),
            is_killed: false,
            answer: answer(program),
        };
        match self.disk.write(&mut self.rng) {
            Write::Synced => Ok(self.make_alone(&program.commit(), &ran)?.then_some(ran)),
            Write::Doubtful if !is_awaited => {
                self.disk.doubts(Doubtful::Alone(Box::new((program.commit(), ran.clone()))));
                Ok(Some(ran))
            }
            Write::Doubtful | Write::Refused => Ok(None),
        }
    }

    /// The store makes that commit; false where it conflicts.
    fn make_alone(&mut self, commit: &Commit, ran: &Ran) -> Result<bool, String> {
        let outcome = self.store.commit(commit).map_err(|error| error.to_string())?;
        let is_made = matches!(outcome, Stored::Committed { .. });
        if is_made {
            self.history.push(Happened::Alone(ran.clone()));
        }
        Ok(is_made)
    }
}

/// All of it.
pub(super) struct World<'d> {
    definitions: Vec<(&'d Definition, bool)>,
    shared: Shared,
    executions: Vec<Execution<'d>>,
    outside: Vec<Program>,
    outside_left: u64,
    seed: u64,
    crashes_left: u32,
    deploys_left: u32,
}

impl<'d> World<'d> {
    /// Executions of these definitions; whether each is durable.
    pub(super) fn new(seed: u64, store: Store, definitions: Vec<(&'d Definition, bool)>, fails_at: Option<u64>) -> World<'d> {
        let mut rng = Rng::with_seed(seed);
        let (skips, crashes_left, deploys_left) = (rng.bool(), rng.u32(..3), rng.u32(..4));
        let disk = Disk::new(&mut rng);
        let shared = Shared {
            rng,
            now_ms: 0,
            store,
            disk,
            before: None,
            functions: Functions::new(seed),
            tables: tables(),
            log: Arc::default(),
            owed: Vec::new(),
            history: Vec::new(),
            runs: 0,
            groups: 0,
            fails_at,
            counts: Counts::default(),
            skips,
        };
        World {
            definitions,
            shared,
            executions: Vec::new(),
            outside: Vec::new(),
            outside_left: OUTSIDE,
            seed,
            crashes_left,
            deploys_left,
        }
    }

    /// Plays it; what is wrong with it. How often things have happened, and how many groups were sent.
    pub(super) fn play(mut self) -> Result<(Counts, u64), String> {
        for _ in 0..TICKS_MAX {
            let all_have_begun = self.executions.len() == self.definitions.len();
            if all_have_begun
                && self.outside_left == 0
                && self.outside.is_empty()
                && self.executions.iter().all(Execution::is_over)
            {
                let values = self.shared.store.values();
                self.shared.log.check(&self.shared.owed)?;
                check(&self.shared.history, &self.definitions, &values)?;
                return Ok((self.shared.counts, self.shared.groups));
            }
            self.tick()?;
        }
        let stand: Vec<String> = self.executions.iter().map(Execution::stands_at).collect();
        Err(format!("it does not end: {}", stand.join(", ")))
    }

    fn tick(&mut self) -> Result<(), String> {
        let shared = &mut self.shared;
        match shared.rng.u32(..400) {
            0..10 => {
                if let Store::Model(model) = &shared.store {
                    self.shared.before = Some(model.clone());
                }
            }
            10..50 => return self.run_outside(),
            // A durable one is accepted when it is written.
            50..58
                if (self.definitions.get(self.executions.len()))
                    .is_some_and(|(_, is_durable)| !(*is_durable && shared.disk.is_closed())) =>
            {
                let (index, id) = (self.executions.len(), shared.rng.u64(..3));
                let begun = Execution::begin(index, self.definitions[index], input(id), shared);
                self.executions.push(begun);
            }
            58 if self.deploys_left > 0 => {
                self.deploys_left -= 1;
                shared.counts.deploys += 1;
                let name = NAMES[shared.rng.usize(..NAMES.len())];
                let old = shared.functions.deploy(name);
                if shared.rng.bool() {
                    shared.tables.forget_function(old);
                }
            }
            59 if self.crashes_left > 0 && shared.rng.u32(..3) == 0 => {
                self.crashes_left -= 1;
                shared.counts.crashes += 1;
                shared.tables = tables();
                self.read_again(true)?;
                self.outside.clear();
                let shared = &mut self.shared;
                for execution in self.executions.iter_mut().filter(|execution| !execution.is_over()) {
                    execution.crash(shared);
                }
            }
            60..66 if shared.disk.is_closed() => return self.read_again(false),
            _ if !self.executions.is_empty() => {
                let index = shared.rng.usize(..self.executions.len());
                let execution = &mut self.executions[index];
                if !execution.is_over() {
                    execution.happens(shared)?;
                    shared.counts.ended += u64::from(execution.is_over());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The store reads its file again, which says what has become of what was doubtful. `is_new`: after a crash, when nothing waits for that any more.
    fn read_again(&mut self, is_new: bool) -> Result<(), String> {
        let shared = &mut self.shared;
        let (doubtful, is_there) = shared.disk.read_again(&mut shared.rng);
        let count = if is_there { &mut shared.counts.found } else { &mut shared.counts.lost };
        *count += doubtful.len() as u64;
        for doubtful in doubtful {
            match doubtful {
                Doubtful::Group(index) => self.executions[index].is_known(shared, is_there, is_new),
                Doubtful::Alone(alone) if is_there => _ = shared.make_alone(&alone.0, &alone.1)?,
                Doubtful::Alone(..) => {}
            }
        }
        Ok(())
    }

    /// Another client's transaction begins, or goes on.
    fn run_outside(&mut self) -> Result<(), String> {
        if self.outside_left > 0 && self.outside.len() < 2 {
            self.outside_left -= 1;
            self.outside.push(Program::new(self.seed * 1_000 + self.outside_left));
        }
        if self.outside.is_empty() {
            return Ok(());
        }
        let index = self.shared.rng.usize(..self.outside.len());
        if self.shared.goes(&mut self.outside[index]) {
            return Ok(());
        }
        let program = self.outside.swap_remove(index);
        if self.shared.commit_alone(&program, ("outside", &Arc::default()), false)?.is_none() {
            self.outside.push(Program::new(program.number));
        }
        Ok(())
    }
}

fn tables() -> Arc<Speculation> {
    Speculation::new([7; 32], None)
}
