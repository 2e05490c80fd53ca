//! One execution: its plan, its columns and its runs, driven by a seed. What both drivers do with them is done here, by the same rules; what takes time happens when the seed says so.

mod group;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Event, Execution as Machine, Outcome, StartTask, TaskId, TimerId};
use tokio::sync::Notify;

use super::functions::{self, answer, killed, name};
use super::history::{Happened, Ran};
use super::oracle::Guesses;
use super::world::Shared;
use super::{about, limits};
use crate::kv::{Commit, KvError, Outcome as Stored};
use crate::speculate::Speculation;
use crate::speculate::paths::Trail;
use crate::txn::pipeline::{ColumnId, Dewey, Pipeline};
use crate::txn::tests::Program;
use crate::txn::{Isolation, Outside as Effects, PutOff, Settled, Transaction};
use crate::workflow::express::ended;
use crate::workflow::speculative::next::Next;
use crate::workflow::speculative::plan::{Answer, Do, Outside, Path, Plan, RunId, Standing};

/// A run that has a column.
struct Run {
    /// Names it in the log.
    number: u64,
    column: ColumnId,
    program: Program,
    path: Path,
    task: StartTask,
    version: u64,
    /// A known answer stands for it.
    is_skipped: bool,
    is_killed: bool,
    answer: Option<Answer>,
}

/// What an execution keeps over a crash.
#[derive(Clone)]
struct Journal {
    base: Machine,
    asked: BTreeMap<Path, StartTask>,
    trail: Trail,
    timers: Vec<(i64, TimerId)>,
    yields: bool,
    outcome: Option<Outcome>,
}

/// A commit on its way.
struct Sent {
    runs: Vec<RunId>,
    commit: Commit,
    /// Where the execution stands when it is made, if that is a part of it.
    journal: Option<Journal>,
    /// The disk has failed as it was written, and the store has not read its file again.
    is_doubtful: bool,
    /// What the store has said.
    outcome: Option<Result<Stored, KvError>>,
}

pub(super) struct Execution<'d> {
    index: usize,
    definition: &'d Definition,
    plan: Plan<'d>,
    pipeline: Arc<Pipeline>,
    /// Of a durable one: where it stands.
    journal: Option<Journal>,
    runs: BTreeMap<RunId, Run>,
    /// Tasks that are carried out for good.
    for_good: BTreeMap<RunId, (StartTask, Option<Program>)>,
    /// Runs that have ended at once, or without a column.
    ended: Vec<(RunId, Answer)>,
    /// Runs for which there was no room, and whether the pipeline had none.
    refused: Vec<(RunId, bool)>,
    /// Runs that do not count any more, and go on.
    dropped: Vec<Program>,
    sent: Option<Sent>,
    timers: Vec<(i64, TimerId)>,
    yields: bool,
    /// What it hears of when the commit is decided that is under way.
    later: Vec<Happened>,
    outcome: Option<Outcome>,
    /// The server has died with it.
    is_gone: bool,
    depth: usize,
    /// Of a hundred guesses, how many are made up.
    wrong: u32,
    /// How often the store still fails it.
    whims: u32,
}

impl<'d> Execution<'d> {
    pub(super) fn begin(
        index: usize,
        (definition, is_durable): (&'d Definition, bool),
        input: Value,
        shared: &mut Shared,
    ) -> Self {
        shared.history.push(Happened::Began(index, input.clone()));
        let (depth, wrong) = (shared.rng.usize(..8), *shared.rng.choice([0, 0, 10, 50, 100].iter()).expect("one"));
        let mut execution = Execution {
            index,
            definition,
            plan: Plan::new(definition, about(), limits(false)),
            pipeline: pipeline(shared),
            journal: None,
            runs: BTreeMap::new(),
            for_good: BTreeMap::new(),
            ended: Vec::new(),
            refused: Vec::new(),
            dropped: Vec::new(),
            sent: None,
            timers: Vec::new(),
            yields: false,
            later: Vec::new(),
            outcome: None,
            is_gone: false,
            depth,
            wrong,
            whims: 4,
        };
        if is_durable {
            let base = Machine::new(definition, about(), limits(true), false);
            let journal = Journal {
                base,
                asked: BTreeMap::new(),
                trail: Trail::default(),
                timers: Vec::new(),
                yields: false,
                outcome: None,
            };
            execution.recover(journal, shared);
            execution.write(shared, Event::Started { input }, None);
        } else {
            execution.step(shared, |plan, outside| plan.start(input, outside));
        }
        execution
    }

    pub(super) const fn is_over(&self) -> bool {
        self.outcome.is_some() || self.is_gone
    }

    /// Where it stands, for a message.
    pub(super) fn stands_at(&self) -> String {
        let runs: Vec<_> =
            self.runs.values().map(|run| (&run.path, name(&run.task), &run.answer, self.pipeline.ended(run.column))).collect();
        let for_good: Vec<_> = self.for_good.values().map(|(task, _)| name(task)).collect();
        let (is_over, is_sending, is_durable) = (self.is_over(), self.sent.is_some(), self.journal.is_some());
        format!(
            "{{ over {is_over}, durable {is_durable}, sending {is_sending}, runs {runs:?}, for good {for_good:?}, timers {:?}, yields {} }}",
            self.timers, self.yields
        )
    }

    /// The server has died, and is there again: a durable execution goes on from its journal.
    pub(super) fn crash(&mut self, shared: &mut Shared) {
        let journal = self.journal.clone();
        (self.sent, self.dropped) = (None, Vec::new());
        (self.ended, self.refused, self.later) = (Vec::new(), Vec::new(), Vec::new());
        (self.runs, self.for_good) = (BTreeMap::new(), BTreeMap::new());
        let Some(journal) = journal else {
            self.is_gone = true;
            return shared.history.push(Happened::Gone(self.index));
        };
        self.recover(journal.clone(), shared);
        self.adopt(shared, journal);
        self.stands(shared, None);
    }

    /// Goes on from what is in the journal.
    fn recover(&mut self, journal: Journal, shared: &Shared) {
        self.plan = Plan::kept_elsewhere(self.definition, journal.base.clone());
        self.pipeline = pipeline(shared);
        self.pipeline.journal();
        (self.timers, self.yields) = (journal.timers.clone(), journal.yields);
        self.journal = Some(journal);
    }

    /// Steps the plan, and does what it asks for.
    fn step<T>(&mut self, shared: &mut Shared, step: impl FnOnce(&mut Plan<'d>, &mut Outside<'_, Guesses<'_>>) -> T) -> T {
        let (mut actions, mut random, now_ms) = (Vec::new(), || 7, shared.now_ms);
        let mut guesses = Guesses::new(shared, (self.definition, self.depth, self.wrong));
        let mut outside = Outside { oracle: &mut guesses, now_ms, random: &mut random, actions: &mut actions };
        let result = step(&mut self.plan, &mut outside);
        for action in actions {
            match action {
                Do::Begin { run, path, task, .. } => self.begin_run(shared, run, path, task),
                Do::Drop(run) => self.drop_run(run),
                Do::CarryOut { run, task } => _ = self.for_good.insert(run, (task, None)),
                Do::Base(action) => self.does(shared, action),
            }
        }
        result
    }

    /// What the base asks for beside tasks.
    fn does(&mut self, shared: &mut Shared, action: Action) {
        match action {
            Action::SetTimer { timer, at_ms } => self.timers.push((at_ms, timer)),
            Action::CancelTimer { timer } => self.timers.retain(|(_, known)| *known != timer),
            Action::Yield => self.yields = true,
            Action::Ended(outcome) => {
                shared.history.push(Happened::Ended(self.index, outcome.clone()));
                self.outcome = Some(outcome);
            }
            other => panic!("{other:?}"),
        }
    }

    fn begin_run(&mut self, shared: &mut Shared, run: RunId, path: Path, task: StartTask) {
        if shared.rng.u32(..30) == 0 && !self.plan.is_asked(run) {
            return self.refused.push((run, false));
        }
        let place = Dewey::new(&path.iter().map(|step| u64::from(*step)).collect::<Vec<_>>());
        let isolation = Isolation { contention: Arc::default(), outside: Effects::Refused };
        let Some((column, transaction)) = self.pipeline.open(place, &isolation) else { return self.refused.push((run, true)) };
        let function = name(&task);
        let version = shared.functions.version(function);
        let program = Program::new(shared.functions.number(function, version, &task.input));
        shared.runs += 1;
        let mut begun =
            Run { number: shared.runs, column, program, path, task, version, is_skipped: false, is_killed: false, answer: None };
        let skip = shared.skip(version, name(&begun.task), &begun.task.input);
        if let Some(skip) = skip.filter(|skip| self.pipeline.recall(column, &skip.grounds.basis)) {
            shared.counts.skipped += 1;
            begun.is_skipped = true;
            begun.program.outer = transaction;
            begun.answer = Some(Ok((*skip.answer).clone()));
            self.ended.push((run, Ok((*skip.answer).clone())));
        } else {
            begun.program.outer = Transaction::of_call(&transaction);
            if functions::logs(begun.program.number) {
                let (log, number) = (Arc::clone(&shared.log), begun.number);
                match transaction.held() {
                    Some(held) => held.put(Box::new(move || log.says(number))),
                    None => log.says(number),
                }
            }
        }
        self.runs.insert(run, begun);
    }

    fn drop_run(&mut self, run: RunId) {
        self.for_good.remove(&run);
        self.ended.retain(|(ended, _)| *ended != run);
        if let Some(Run { column, program, .. }) = self.runs.remove(&run) {
            self.pipeline.give_up(column);
            self.dropped.push(program);
        }
    }

    /// One of the things that can happen, and what follows from it at once.
    pub(super) fn happens(&mut self, shared: &mut Shared) -> Result<(), String> {
        // A durable execution writes one step after the other, and none while the store has no file.
        let waits = self.journal.is_some() && (self.sent.is_some() || shared.disk.is_closed());
        match shared.rng.u32(..20) {
            0 | 1 => self.take_squashed(shared),
            2 => self.go_dropped(shared),
            3..=5 if !waits => self.settle(shared)?,
            6..=8 => self.send(shared)?,
            9 | 10 if !waits => self.carry_out(shared)?,
            11 if self.yields && !waits => {
                self.yields = false;
                self.event(shared, Event::Continue);
            }
            12 | 13 if !waits => self.fire(shared),
            14 => self.depth = shared.rng.usize(..8),
            _ => self.run(shared)?,
        }
        self.go_on(shared);
        Ok(())
    }

    /// Takes in what is there already.
    fn go_on(&mut self, shared: &mut Shared) {
        while self.outcome.is_none() {
            if let Some((run, answer)) = self.ended.pop() {
                self.step(shared, |plan, outside| plan.ended(run, answer, outside));
            } else if let Some((run, is_full)) = self.refused.pop() {
                if self.plan.is_asked(run) && is_full && self.sent.is_none() {
                    self.step(shared, |plan, outside| plan.make_room(run, outside));
                } else {
                    self.plan.refused(run);
                }
            } else {
                return;
            }
        }
    }

    /// A run goes on, or ends.
    fn run(&mut self, shared: &mut Shared) -> Result<(), String> {
        let running: Vec<RunId> = self.runs.iter().filter(|(_, run)| run.answer.is_none()).map(|(id, _)| *id).collect();
        let Some(id) = shared.rng.choice(running) else { return Ok(()) };
        let is_killed = shared.rng.u32(..60) == 0;
        let Some(run) = self.runs.get_mut(&id) else { return Ok(()) };
        if !is_killed && shared.goes(&mut run.program) {
            return Ok(());
        }
        run.is_killed = is_killed;
        run.program.failed |= is_killed;
        let (transaction, number) = (Arc::clone(&run.program.outer), run.program.number);
        if functions::sends(number) {
            transaction.put_off(call(number));
        }
        if !matches!(transaction.settle(!run.program.failed, None), Settled::Done) {
            return Err("the end of a column is more than its end".to_owned());
        }
        let answer = if is_killed { killed() } else { answer(&run.program) };
        run.answer = Some(answer.clone());
        self.step(shared, |plan, outside| plan.ended(id, answer, outside));
        Ok(())
    }

    /// A run goes on that does not know yet that it is not wanted.
    fn go_dropped(&mut self, shared: &mut Shared) {
        let Some(program) = self.dropped.last_mut() else { return };
        if !shared.goes(program) {
            assert!(matches!(program.outer.settle(!program.failed, None), Settled::Done));
            self.dropped.pop();
        }
    }

    fn take_squashed(&mut self, shared: &mut Shared) {
        for squashed in self.pipeline.take_squashed() {
            let Some((id, run)) = self.runs.iter().find(|(_, run)| run.column == squashed.column) else { continue };
            shared.counts.squashed += 1;
            if run.is_skipped {
                shared.skipped_wrongly(run.version, name(&run.task), &run.task.input);
            }
            let id = *id;
            self.step(shared, |plan, outside| plan.squashed(id, outside));
        }
    }

    /// A task goes on that does not take part: a transaction by itself.
    fn carry_out(&mut self, shared: &mut Shared) -> Result<(), String> {
        let ids: Vec<RunId> = self.for_good.keys().copied().collect();
        let Some((id, (task, program))) = shared.rng.choice(ids).and_then(|id| Some((id, self.for_good.get_mut(&id)?))) else {
            return Ok(());
        };
        let version = shared.functions.version(name(task));
        let program = program.get_or_insert_with(|| Program::new(shared.functions.number(name(task), version, &task.input)));
        if shared.goes(program) {
            return Ok(());
        }
        let program = std::mem::replace(program, Program::new(program.number));
        let Some(ran) = shared.commit_alone(&program, (name(task), &task.input), true)? else { return Ok(()) };
        let task = task.clone();
        self.for_good.remove(&id);
        let told = Happened::Told(self.index, task.task, Arc::clone(&task.input), ran.answer.clone());
        self.hears(shared, told);
        if self.journal.is_some() {
            self.write(shared, ended(task.task, ran.answer.clone()), Some((task.task, ran.answer)));
        } else {
            self.step(shared, |plan, outside| plan.ended(id, ran.answer, outside));
        }
        Ok(())
    }

    /// The base hears of that, now or when the commit is decided that is under way.
    fn hears(&mut self, shared: &mut Shared, happened: Happened) {
        if self.sent.is_some() { self.later.push(happened) } else { shared.history.push(happened) }
    }

    /// The timer fires that is due first.
    fn fire(&mut self, shared: &mut Shared) {
        let is_busy = !self.runs.is_empty() || !self.for_good.is_empty();
        if self.timers.is_empty() || (is_busy && shared.rng.u32(..4) > 0) {
            return;
        }
        self.timers.sort_unstable();
        let (at_ms, timer) = self.timers.remove(0);
        shared.now_ms = shared.now_ms.max(at_ms);
        self.event(shared, Event::TimerFired { timer });
    }

    /// Something has happened to the base that is neither a group nor the end of a task.
    fn event(&mut self, shared: &mut Shared, event: Event) {
        self.hears(shared, Happened::Event(self.index, event.clone(), shared.now_ms));
        if self.journal.is_some() {
            self.write(shared, event, None);
        } else {
            self.step(shared, |plan, outside| plan.base_event(event, outside));
        }
    }

    /// A durable execution makes a step that is no group, and writes it. `ended`: a task that was carried out for good.
    fn write(&mut self, shared: &mut Shared, event: Event, ended: Option<(TaskId, Answer)>) {
        let mut next = self.next();
        self.base_steps(shared, |definition, outside| next.step(definition, event, outside));
        let journal = self.follows(next);
        self.adopt(shared, journal);
        self.stands(shared, ended.as_ref());
    }

    /// The base of a durable execution, to be stepped.
    fn next(&self) -> Next {
        let Journal { base, asked, trail, .. } = self.journal.clone().expect("it is durable");
        Next { base, asked, actions: Vec::new(), trail, group: Vec::new() }
    }

    fn base_steps<T>(&self, shared: &mut Shared, step: impl FnOnce(&'d Definition, &mut Outside<'_, Guesses<'_>>) -> T) -> T {
        let (mut none, mut random, now_ms) = (Vec::new(), || 7, shared.now_ms);
        let mut guesses = Guesses::new(shared, (self.definition, 0, 0));
        let mut outside = Outside { oracle: &mut guesses, now_ms, random: &mut random, actions: &mut none };
        step(self.definition, &mut outside)
    }

    /// What is written of it when it stands there.
    fn follows(&self, next: Next) -> Journal {
        let mut journal =
            Journal { base: next.base, asked: next.asked, trail: next.trail, ..self.journal.clone().expect("it is durable") };
        (journal.timers, journal.yields) = (self.timers.clone(), self.yields);
        for action in next.actions {
            match action {
                Action::SetTimer { timer, at_ms } => journal.timers.push((at_ms, timer)),
                Action::CancelTimer { timer } => journal.timers.retain(|(_, known)| *known != timer),
                Action::Yield => journal.yields = true,
                Action::Ended(outcome) => journal.outcome = Some(outcome),
                other => panic!("{other:?}"),
            }
        }
        journal
    }

    /// That is written.
    fn adopt(&mut self, shared: &mut Shared, journal: Journal) {
        (self.timers, self.yields) = (journal.timers.clone(), journal.yields);
        if let Some(outcome) = &journal.outcome {
            self.does(shared, Action::Ended(outcome.clone()));
        }
        self.journal = Some(journal);
    }

    fn standing(&self) -> Standing {
        let Journal { base, asked, trail, .. } = self.journal.clone().expect("it is durable");
        Standing { base, asked, trail }
    }

    /// Tells the plan where the base stands.
    fn stands(&mut self, shared: &mut Shared, ended: Option<&(TaskId, Answer)>) {
        if self.outcome.is_none() {
            let standing = self.standing();
            self.step(shared, |plan, outside| plan.stands(standing, ended, outside));
        }
    }
}

impl Run {
    /// What is to be compared of it.
    fn ran(&self) -> Option<Ran> {
        Some(Ran {
            function: name(&self.task).to_owned(),
            path: self.path.clone(),
            input: Arc::clone(&self.task.input),
            number: self.program.number,
            seen: (!self.is_skipped).then(|| self.program.seen.clone()),
            is_killed: self.is_killed,
            answer: self.answer.clone()?,
        })
    }
}

/// What a program sends.
fn call(number: u64) -> PutOff {
    PutOff { name: "sent".into(), input: number.to_string().into(), host_call: 1 }
}

fn pipeline(shared: &Shared) -> Arc<Pipeline> {
    let pipeline = Pipeline::new(Some(shared.store.space()), Arc::new(Notify::new()));
    pipeline.keep_bases();
    pipeline.expect_values(Arc::<Speculation>::clone(&shared.tables));
    pipeline
}
