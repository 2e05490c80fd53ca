//! What a driver goes by: the tables of the tenant, and what the configuration allows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sledge_workflow::definition::StateIndex;
use sledge_workflow::machine::{StartTask, Way};

use super::chain::Chain;
use super::plan::{Answer, Oracle};
use super::runs::Took;
use crate::config::{Instance, SpeculationLevel};
use crate::invoke::function::Function;
use crate::kv::BucketKey;
use crate::memo::callees::Part;
use crate::speculate::benefit::Edge;
use crate::speculate::depth::{Load, depth};
use crate::speculate::outputs::Rest;
use crate::speculate::paths::{Path, Target, Trail};
use crate::speculate::skips::{Grounds, Skip};
use crate::speculate::stalls::Reader;
use crate::speculate::{Of, Speculation, times};
use crate::txn::Outside;
use crate::txn::pipeline::{Basis, Stalls, Values};
use crate::workflow::Workflow;
use crate::workflow::function::Asked;

/// What it costs to begin a run, about: an invocation with its sandbox, and the steps of the plan.
const LAUNCH: Duration = Duration::from_micros(20);

/// A commit that takes less is made at once: the runtime's timers know milliseconds. One that takes longer than that is rather begun early.
const HELD_MIN: Duration = Duration::from_millis(1);
const HELD_MAX: Duration = Duration::from_millis(50);

/// Whether an execution that begins now goes ahead of itself: not where the workers have no time for it, unless functions may be left out, nor where memory is short, nor where that has cost more than it has saved.
pub(in crate::workflow) fn goes_ahead(workflow: &Workflow, tables: &Speculation, load: Load) -> bool {
    let Some(definition) = workflow.definition() else { return false };
    let has_time = !load.is_saturated() || workflow.config.speculation >= SpeculationLevel::Skips;
    has_time && !tables.is_short_of_memory() && tables.verdict_of_workflow(definition.fingerprint()).is_started()
}

/// The tables, for one execution.
pub(super) struct Knowledge<'a> {
    workflow: &'a Workflow,
    tables: &'a Speculation,
    fingerprint: u64,
    /// How many runs may be ahead now.
    depth: usize,
    /// Whether sandboxes are refused.
    is_short_of_memory: bool,
    /// How much time this execution has saved by going ahead of itself, and lost by conflicts.
    saved: Duration,
    lost: Duration,
    /// Whether what it has read was changed by transactions outside.
    has_conflicted: bool,
    /// Of each state, whether this execution goes on behind it: asked once.
    verdicts: HashMap<StateIndex, bool>,
    /// The runs that it has committed last.
    chain: Chain,
    /// States of which a run was squashed in this execution.
    squashed: HashSet<StateIndex>,
    /// Which versions of functions this execution calls, if not all that are served: no other runs ahead.
    calls: Option<Calls<'a>>,
}

/// Says whether an execution calls that version of a function.
type Calls<'a> = Box<dyn Fn(&Function) -> bool + 'a>;

impl<'a> Knowledge<'a> {
    pub(super) fn new(workflow: &'a Workflow, tables: &'a Speculation) -> Knowledge<'a> {
        let fingerprint = workflow.definition().map_or(0, |definition| definition.fingerprint());
        let (saved, lost) = (Duration::ZERO, Duration::ZERO);
        Knowledge {
            workflow,
            tables,
            fingerprint,
            depth: 0,
            is_short_of_memory: false,
            saved,
            lost,
            has_conflicted: false,
            verdicts: HashMap::new(),
            chain: Chain::default(),
            squashed: HashSet::new(),
            calls: None,
        }
    }

    /// The same of an execution that calls other versions of functions than those that are served, where this says so.
    pub(super) fn which_calls(self, calls: impl Fn(&Function) -> bool + 'a) -> Knowledge<'a> {
        Knowledge { calls: Some(Box::new(calls)), ..self }
    }

    /// Whether this execution calls that version of a function.
    pub(super) fn calls(&self, function: &Function) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls(function))
    }

    /// The workers are so busy.
    pub(super) fn look_at(&mut self, load: Load) {
        self.is_short_of_memory = self.tables.is_short_of_memory();
        let depth_max = if self.is_short_of_memory { 0 } else { self.workflow.config.speculation_depth_max };
        self.depth = depth(load, depth_max) as usize;
    }

    /// The state of that name.
    pub(super) fn state(&self, name: &str) -> Option<StateIndex> {
        self.workflow.definition()?.find(name)
    }

    /// The guess that goes on behind a state.
    const fn edge(&self, state: StateIndex) -> Edge {
        Edge { workflow: self.fingerprint, from: state, to: state }
    }

    fn level(&self) -> SpeculationLevel {
        self.workflow.config.speculation
    }

    /// Whether to go on behind a state whose run has not ended.
    pub(super) fn goes_behind(&mut self, task: &StartTask) -> Option<StateIndex> {
        if task.token.is_some() {
            // When a callback comes, nothing says.
            return None;
        }
        let state = self.state(&task.state)?;
        let remaining = self.tables.remaining(self.fingerprint, state, Duration::ZERO);
        let is_worth = remaining.is_some_and(|remaining| times::worth(remaining, LAUNCH));
        let edge = self.edge(state);
        let goes = is_worth && *self.verdicts.entry(state).or_insert_with(|| self.tables.verdict(&edge).is_started());
        goes.then_some(state)
    }

    /// The number of the version of the function that a task calls.
    fn version(&self, task: &StartTask) -> Option<u64> {
        let function = Asked::of(task)?.ok()?.find(self.workflow).ok()?;
        Some(function.version)
    }

    /// A run that began then and took so long is committed. `ahead`: the state whose run had not ended when it began, and for how long the base then waited for it.
    pub(super) fn committed(&mut self, task: &StartTask, (began, took): (Instant, Took), ahead: Option<(StateIndex, Duration)>) {
        let Some(state) = self.state(&task.state) else { return };
        self.tables.took(self.fingerprint, state, took.all);
        let guesses = self.chain.add(state, ahead.map(|(behind, _)| behind), (began, began + took.all));
        if let Some((_, waited)) = ahead {
            let (saved, cost) = (took.worked, times::cost(took.worked, waited, LAUNCH));
            self.saved += saved;
            self.lost += cost;
            self.tables.adopted(guesses.into_iter().map(|guess| self.edge(guess)), saved, cost);
            // Its next run may have begun behind the same state, after the write for which it was squashed.
            if !self.squashed.contains(&state) {
                self.tables.kept(Reader { workflow: self.fingerprint, state });
            }
        }
    }

    /// A run that was begun behind that state is dropped.
    pub(super) fn dropped(&self, behind: StateIndex, ran: Duration) {
        self.tables.squashed(self.edge(behind), ran);
    }

    /// What runs have read was changed by transactions outside: they run again, of which the first has begun so long ago.
    pub(super) fn conflicted(&mut self, ran: Duration) {
        self.lost += ran;
        self.has_conflicted = true;
    }

    /// The execution is over, in which so many reads did not go to the store: each would have taken about as long as a commit, and without going ahead all of them had gone. Where it has conflicted they count
    /// for nothing: what they were given may have been what was changed.
    pub(super) fn ended(&self, reads_spared: u32) {
        let reads_spared = if self.has_conflicted { 0 } else { reads_spared };
        let spared = self.tables.commit_time().unwrap_or_default().saturating_mul(reads_spared);
        if self.saved + self.lost + spared > Duration::ZERO {
            self.tables.executed(self.fingerprint, self.saved + spared, self.lost);
        }
    }

    /// What a run has read was changed.
    pub(super) fn runs_again(&mut self, task: &StartTask) {
        self.squashed.extend(self.state(&task.state));
        self.tables.runs_again();
    }

    /// For how long it pays to wait for runs that took so long already, so that they are committed together with what has ended: none if one of them is expected to take longer than that.
    pub(super) fn patience<'t>(&self, mut running: impl Iterator<Item = (&'t StartTask, Duration)>) -> Option<Duration> {
        // Where others want the workers' time, runs take longer than expected, and so would the wait.
        if self.depth < self.workflow.config.speculation_depth_max as usize {
            return None;
        }
        let commit = self.tables.commit_time().filter(|time| (HELD_MIN..=HELD_MAX).contains(time))?;
        let ends_soon = |(task, so_far): (&StartTask, Duration)| {
            let remaining = self.tables.remaining(self.fingerprint, self.state(&task.state)?, so_far)?;
            (remaining < commit).then_some(())
        };
        running.all(|running| ends_soon(running).is_some()).then_some(commit)
    }

    /// A commit took that long.
    pub(super) fn commit_took(&self, time: Duration) {
        self.tables.commit_took(time);
    }

    /// That is what a task has come to, what that rests on, if it is known, and the keys of the store that it has read.
    pub(super) fn answered(&self, task: &StartTask, answer: Answer, grounds: Option<(u64, Arc<Grounds>)>, reads: Vec<BucketKey>) {
        let Some(Ok(asked)) = Asked::of(task) else { return };
        let Ok(function) = asked.find(self.workflow) else { return };
        let (name, version) = (asked.name, function.version);
        // It may have been deployed anew since the run.
        let grounds = grounds.filter(|(of, _)| *of == version).map(|(_, grounds)| grounds);
        self.tables.answered(
            Of { name, version },
            self.tables.key(name, &task.input),
            &answer.map(Into::into),
            Rest { grounds, reads: reads.into() },
        );
    }

    /// Whether what functions are expected to read is fetched when they begin.
    pub(super) fn fetches(&self) -> bool {
        self.level() >= SpeculationLevel::Outputs
    }

    /// The keys of the store that a task's function is expected to read.
    pub(super) fn reads(&self, task: &StartTask, function: &Function) -> Option<Arc<[BucketKey]>> {
        self.tables.reads(function.version, &self.tables.key(function.name(), &task.input))
    }

    /// What says which reads wait, if any do.
    pub(super) fn stalls(&self) -> Option<Arc<dyn Stalls>> {
        let tables = Arc::clone(&self.workflow.reach.speculation);
        (self.level() >= SpeculationLevel::Stalls)
            .then(|| Arc::new(Early { tables, workflow: self.fingerprint }) as Arc<dyn Stalls>)
    }

    /// What the store is expected to have.
    pub(super) fn values(&self) -> Arc<dyn Values> {
        Arc::<Speculation>::clone(&self.workflow.reach.speculation)
    }

    /// Whether runs are left out whose answers are known.
    pub(super) fn skips(&self) -> bool {
        self.level() >= SpeculationLevel::Skips
    }

    /// What may stand for a run of a task's function: it calls what it has called.
    pub(super) fn skip(&self, task: &StartTask, function: &Function) -> Option<Skip> {
        if !self.skips() {
            return None;
        }
        let skip = self.tables.skip(function.version, &self.tables.key(function.name(), &task.input))?;
        let is_there = |(name, version): &(Arc<str>, u64)| function.neighbours.find(name).is_ok_and(|of| of.version == *version);
        skip.grounds.callees.iter().all(is_there).then_some(skip)
    }

    /// What a run rests on that has told this: none where it would not be the same again.
    pub(super) fn grounds(basis: Basis, part: Part) -> Option<(u64, Arc<Grounds>)> {
        part.is_repeatable().then(|| (part.callee.1, Arc::new(Grounds { basis, callees: part.callees.into() })))
    }

    /// An answer that has stood for a run is committed.
    pub(super) fn skipped(&mut self, task: &StartTask, version: u64) {
        self.tables.skipped(version);
        let state = self.state(&task.state);
        self.saved += state.and_then(|state| self.tables.remaining(self.fingerprint, state, Duration::ZERO)).unwrap_or_default();
    }

    /// What an answer rests on that has stood for a run is not so any more.
    pub(super) fn skipped_wrongly(&self, task: &StartTask, version: u64) {
        if let Some(Ok(asked)) = Asked::of(task) {
            self.tables.skipped_wrongly(version, self.tables.key(asked.name, &task.input));
        }
    }

    /// Those are the ways that the execution has gone.
    pub(super) fn went(&self, trail: &mut Trail) {
        self.tables.went(self.fingerprint, trail);
    }
}

/// Reads that come too early, as a pipeline asks for them.
#[derive(Debug)]
struct Early {
    tables: Arc<Speculation>,
    workflow: u64,
}

impl Early {
    const fn reader(&self, state: StateIndex) -> Reader {
        Reader { workflow: self.workflow, state }
    }
}

impl Stalls for Early {
    fn waits(&self, reader: StateIndex, writer: StateIndex, key: &BucketKey) -> bool {
        self.tables.waits(self.reader(reader), writer, key)
    }

    fn waited(&self, reader: StateIndex, writer: StateIndex, key: &BucketKey, has_written: bool) {
        self.tables.waited(self.reader(reader), writer, key, has_written);
    }

    fn read_too_early(&self, reader: StateIndex, writer: StateIndex, key: &BucketKey) {
        self.tables.read_too_early(self.reader(reader), writer, key);
    }
}

impl Oracle for Knowledge<'_> {
    fn takes_part(&mut self, task: &StartTask) -> bool {
        let config = &self.workflow.config;
        if config.speculation_excluded.iter().any(|state| **state == *task.state) {
            return false;
        }
        let state = self.state(&task.state).and_then(|state| self.workflow.definition()?.state(state));
        // What the context says, as the time at which a state is entered, is not the same ahead.
        if state.is_none_or(|state| state.uses_context) {
            return false;
        }
        let Some(Ok(function)) = Asked::of(task).map(|asked| asked.and_then(|asked| asked.find(self.workflow))) else {
            return false;
        };
        let can_be_dropped = function.isolation.as_ref().is_some_and(|isolation| !matches!(isolation.outside, Outside::Split));
        can_be_dropped
            && self.calls(&function)
            && function.speculative
            && function.instance == Instance::Call
            && !function.streams_body
    }

    fn depth(&mut self) -> usize {
        self.depth
    }

    fn keeps(&mut self) -> bool {
        // Their time is none that another one needs: they stand behind all requests. Their sandboxes' memory is.
        !self.is_short_of_memory
    }

    fn answer(&mut self, task: &StartTask) -> Option<Answer> {
        if self.level() < SpeculationLevel::Outputs {
            return None;
        }
        self.goes_behind(task)?;
        let function = Asked::of(task)?.ok()?.find(self.workflow).ok()?;
        let answer = self.tables.answer(function.version, &self.tables.key(function.name(), &task.input))?;
        Some(answer.map(|output| (*output).clone()))
    }

    fn shape(&mut self, task: &StartTask) -> Option<Value> {
        self.goes_behind(task)?;
        self.tables.last(self.version(task)?).map(|output| (*output).clone())
    }

    fn way(&mut self, choice: StateIndex, path: Path) -> Way {
        match self.tables.way(self.fingerprint, choice, path).map(|way| way.target) {
            Some(Target::Rule(rule)) => Way::Rule(rule as usize),
            Some(Target::Default) => Way::Default,
            Some(Target::Next | Target::Catch(_)) | None => Way::Nowhere,
        }
    }
}
