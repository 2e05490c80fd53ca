//! What an execution that goes ahead of itself does: a pure step machine.
//!
//! ```text
//!               told what is committed                      told what runs have answered, and are guessed to answer
//!   base:  --A--B--|                        front:  --A--B--|--C--D--(choice)--E
//!                                           runs:            C: ended   D: running   E: running, since D is guessed to answer so
//! ```
//!
//! Both are copies of the machine's own [`Execution`]. So no rule of the language stands here: which task follows what, what it is given, and what a failure leads to says the machine. The front is a guess, and is
//! made again from the base when something turns out to be otherwise. A run that is asked for again, at the same place with the same input, goes on; any other is dropped.
//!
//! Runs are in the order of their paths, which is the order in which everything would be done one after the other. They are committed in that order, as groups: only then the base is told of them, and only
//! the base's timers, failures and end are real.
//!
//! Invariants:
//! - A run that is committed was begun with the input that the base gives it, when it was told all that is committed before: [`Plan::group`] has tried that on a copy.
//! - What does not take part (it is no function, or its effects cannot be taken back) is carried out only when the base asks for it.
//! - The front has at most so many runs that have not ended as the oracle allows, and [`RUNS_MAX`] in all.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use serde_json::Value;
use sledge_workflow::definition::{Definition, StateIndex};
use sledge_workflow::machine::{
    About, Action, Event, Execution, Failure, Limits, Outcome, Purpose, Random, StartTask, TaskId, Way, step_guided,
};

use super::guides::Ahead;
use super::hole;
use super::next::Next;
use super::story::{Story, Why};
use crate::speculate::paths::{Path as WayPath, Trail};
use crate::speculate::value;
use crate::workflow::express::ended;

/// Runs of an execution that are not committed.
pub(super) const RUNS_MAX: usize = 32;
/// How often the front goes on for one event after it has yielded: workflows may go round without a task.
const YIELDS_MAX: usize = 4;

/// Where a task is in the order of everything: see [`Execution::path`].
pub(in crate::workflow) type Path = Vec<u32>;

/// What a task has come to, or is guessed to come to.
pub(in crate::workflow) type Answer = Result<Value, Failure>;

/// Names a run, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::workflow) struct RunId(pub(super) u32);

/// What is known of functions and of ways.
pub(super) trait Oracle {
    /// Whether a run of that task can be taken back.
    fn takes_part(&mut self, task: &StartTask) -> bool;

    /// How many runs may be under way ahead of the base.
    fn depth(&mut self) -> usize;

    /// Whether runs that were begun ahead are kept where no more may begin.
    fn keeps(&mut self) -> bool;

    /// What it will answer, if that can be told.
    fn answer(&mut self, task: &StartTask) -> Option<Answer>;

    /// What it has answered to anything, if it is worth going on without its answer.
    fn shape(&mut self, task: &StartTask) -> Option<Value>;

    /// Which way a Choice goes that was reached on that path, if that can be told.
    fn way(&mut self, choice: StateIndex, path: WayPath) -> Way;
}

/// What the caller does, in this order.
#[derive(Debug)]
pub(super) enum Do {
    /// Begins a run that may be dropped: a guess, if it is begun before the run of that state has ended.
    Begin { run: RunId, path: Path, task: StartTask, behind: Option<Arc<str>> },
    /// Drops a run, with all that it has done.
    Drop(RunId),
    /// Carries a task out for good.
    CarryOut { run: RunId, task: StartTask },
    /// What the base asks for beside tasks.
    Base(Action),
}

/// Where a base stands that another keeps, what it waits for, and the ways that it has gone.
pub(in crate::workflow) struct Standing {
    pub(in crate::workflow) base: Execution,
    pub(in crate::workflow) asked: BTreeMap<Path, StartTask>,
    pub(in crate::workflow) trail: Trail,
}

/// What a step is given beside its event.
pub(super) struct Outside<'a, O> {
    pub(super) oracle: &'a mut O,
    pub(super) now_ms: i64,
    pub(super) random: &'a mut Random<'a>,
    pub(super) actions: &'a mut Vec<Do>,
}

/// A task with what has become of it.
#[derive(Debug)]
struct Run {
    id: RunId,
    /// As it was asked for. Its number is the front's.
    task: StartTask,
    takes_part: bool,
    /// Something in its input is not there yet.
    has_hole: bool,
    phase: Phase,
    told: Told,
    /// The front was told a guess, when it was made last before this.
    was_guessed: bool,
    /// There was no room for it: it is begun again when the base asks for it.
    refused: bool,
    /// The front has asked for it, since it was last made.
    is_asked: bool,
}

impl Run {
    /// What was asked for, and what it has come to, if it has ended.
    const fn ended(&self) -> Option<(&StartTask, &Answer)> {
        if let Phase::Ended(answer) = &self.phase { Some((&self.task, answer)) } else { None }
    }
}

#[derive(Debug)]
enum Phase {
    /// It was not begun.
    Asked,
    Running,
    Ended(Answer),
}

/// What the front was told of a run.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    Nothing,
    Guess(Answer),
    /// That there is an answer.
    Hole,
    Answer,
}

/// An execution that goes ahead of itself.
pub(super) struct Plan<'d> {
    definition: &'d Definition,
    base: Execution,
    /// What the base waits for.
    asked: BTreeMap<Path, StartTask>,
    /// The way that the base has gone.
    trail: Trail,
    front: Execution,
    front_way: WayPath,
    front_yields: bool,
    runs: BTreeMap<Path, Run>,
    last_run: u32,
    /// The group that is being committed.
    next: Option<Next>,
    /// What the base is told when that is over.
    later: Vec<Later>,
    /// What it did, for operators.
    story: Story,
}

/// What the base is told of, but no group.
#[derive(Debug)]
enum Later {
    Event(Event),
    /// What was carried out for good.
    Ended(RunId, Answer),
}

impl<'d> Plan<'d> {
    /// An execution that has not begun.
    pub(super) fn new(definition: &'d Definition, about: About, limits: Limits) -> Plan<'d> {
        let base = Execution::new(definition, about, limits, false);
        Plan {
            definition,
            front: base.clone(),
            base,
            asked: BTreeMap::new(),
            trail: Trail::default(),
            front_way: WayPath::default(),
            front_yields: false,
            runs: BTreeMap::new(),
            last_run: 0,
            next: None,
            later: Vec::new(),
            story: Story::default(),
        }
    }

    /// The same of one that stands somewhere already, and whose base another keeps: see [`stands`](Plan::stands).
    pub(super) fn kept_elsewhere(definition: &'d Definition, base: Execution) -> Plan<'d> {
        let (about, limits) = (base.about().clone(), Limits::default());
        Plan { front: base.clone(), base, ..Plan::new(definition, about, limits) }
    }

    /// What it did so far.
    pub(super) const fn story(&mut self) -> &mut Story {
        &mut self.story
    }

    /// Whether the base waits for that run.
    pub(super) fn is_asked(&self, run: RunId) -> bool {
        self.path_of(run).is_some_and(|path| self.asked.contains_key(path))
    }

    /// The runs that the base waits for.
    pub(super) fn asked(&self) -> impl Iterator<Item = RunId> {
        self.asked.keys().filter_map(|path| self.runs.get(path)).map(|run| run.id)
    }

    /// Where a run is in the order of everything, as what it was asked for, and what it has come to; none if it has not ended.
    pub(super) fn come_to(&self, run: RunId) -> Option<(&Path, &StartTask, &Answer)> {
        let path = self.path_of(run)?;
        let (task, answer) = self.runs.get(path)?.ended()?;
        Some((path, task, answer))
    }

    /// Which way Choices of the base went: to be learned.
    pub(super) const fn trail(&mut self) -> &mut Trail {
        &mut self.trail
    }

    /// Begins, with that input.
    pub(super) fn start(&mut self, input: Value, outside: &mut Outside<'_, impl Oracle>) {
        self.base_event(Event::Started { input }, outside);
    }

    /// Something has happened that is no end of a run: a timer, or that it may go on.
    pub(super) fn base_event(&mut self, event: Event, outside: &mut Outside<'_, impl Oracle>) {
        if self.next.is_some() {
            return self.later.push(Later::Event(event));
        }
        let mut next = self.copy();
        next.step(self.definition, event, outside);
        self.adopt(next, outside);
        self.remake(outside);
    }

    /// A run has ended so.
    pub(super) fn ended(&mut self, run: RunId, answer: Answer, outside: &mut Outside<'_, impl Oracle>) {
        let Some(path) = self.path_of(run).cloned() else { return };
        let Some(run) = self.runs.get_mut(&path) else { return };
        self.story.ended(run.id, &answer, &run.told);
        if !run.takes_part {
            if self.next.is_some() {
                return self.later.push(Later::Ended(run.id, answer));
            }
            run.phase = Phase::Ended(answer);
            let mut next = self.copy();
            if let Some(ended) = self.runs.get(&path).and_then(Run::ended)
                && next.tell(self.definition, &path, ended, outside)
            {
                self.runs.remove(&path);
                self.adopt(next, outside);
            }
            return self.remake(outside);
        }
        let is_as_told = match &run.told {
            Told::Nothing => None,
            Told::Guess(guess) => Some(is_same_answer(guess, &answer)),
            Told::Hole | Told::Answer => Some(false),
        };
        run.phase = Phase::Ended(answer);
        match is_as_told {
            Some(true) => {
                run.told = Told::Answer;
                self.go_on(outside);
            }
            Some(false) => self.remake(outside),
            None => self.go_on(outside),
        }
    }

    /// A run could not be begun: it is when the base asks for it, with the next step.
    pub(super) fn refused(&mut self, run: RunId) {
        let Some(path) = self.path_of(run).cloned() else { return };
        if let Some(run) = self.runs.get_mut(&path) {
            (run.phase, run.refused) = (Phase::Asked, true);
        }
    }

    /// A run takes part no more that was not begun: it is carried out for good when the base asks for it.
    pub(super) fn takes_part_no_more(&mut self, run: RunId, outside: &mut Outside<'_, impl Oracle>) {
        let Some(path) = self.path_of(run).cloned() else { return };
        if let Some(run) = self.runs.get_mut(&path) {
            (run.phase, run.takes_part) = (Phase::Asked, false);
            self.go_on(outside);
        }
    }

    /// There is no room for a run because of those behind it, which are committed after it: the last of these makes room, and is begun again later.
    pub(super) fn make_room(&mut self, run: RunId, outside: &mut Outside<'_, impl Oracle>) {
        self.refused(run);
        let has_begun = |(_, run): &(&Path, &Run)| run.takes_part && !matches!(run.phase, Phase::Asked);
        let last = self.runs.iter().rev().find(has_begun).filter(|(path, _)| self.path_of(run) < Some(path));
        if let Some(last) = last.map(|(_, run)| run.id) {
            self.squashed(last, outside);
        }
    }

    /// What a run has read is otherwise: it is begun again.
    pub(super) fn squashed(&mut self, run: RunId, outside: &mut Outside<'_, impl Oracle>) {
        let Some(path) = self.path_of(run).cloned() else { return };
        self.last_run += 1;
        let Some(run) = self.runs.get_mut(&path) else { return };
        outside.actions.push(Do::Drop(run.id));
        self.story.again(run.id, RunId(self.last_run), &path, &run.task);
        run.id = RunId(self.last_run);
        if let Phase::Ended(answer) = mem::replace(&mut run.phase, Phase::Asked)
            && run.told == Told::Answer
        {
            // What it has answered is as good a guess as any.
            run.told = Told::Guess(answer);
            self.story.told(run.id, &run.told);
        }
        self.go_on(outside);
    }

    /// The runs that can be committed now as one group, in order; none while one is being committed, or nothing can be.
    pub(super) fn group(&mut self, outside: &mut Outside<'_, impl Oracle>) -> Vec<RunId> {
        if self.next.is_some() || self.runs.values().find(|run| run.takes_part).and_then(Run::ended).is_none() {
            return Vec::new();
        }
        let (mut next, mut ids) = (self.copy(), Vec::new());
        for (path, run) in &self.runs {
            if !run.takes_part {
                // What is carried out for good holds back what follows it, and that is not asked for before its end.
                continue;
            }
            if !run.ended().is_some_and(|ended| next.tell(self.definition, path, ended, outside)) {
                break;
            }
            ids.push(run.id);
        }
        if !ids.is_empty() {
            self.next = Some(next);
        }
        ids
    }

    /// The group is not committed.
    pub(super) fn group_failed(&mut self, outside: &mut Outside<'_, impl Oracle>) {
        self.next = None;
        self.go_on(outside);
        self.tell_later(outside);
    }

    fn tell_later(&mut self, outside: &mut Outside<'_, impl Oracle>) {
        for later in mem::take(&mut self.later) {
            match later {
                Later::Event(event) => self.base_event(event, outside),
                Later::Ended(run, answer) => self.ended(run, answer, outside),
            }
        }
    }

    /// So many first runs of the group are committed. What each of their tasks has come to.
    pub(super) fn committed(&mut self, count: usize, outside: &mut Outside<'_, impl Oracle>) -> Vec<(RunId, StartTask, Answer)> {
        let Some(mut next) = self.next.take() else { return Vec::new() };
        if count < next.group.len() {
            let first = mem::take(&mut next.group);
            next = self.copy();
            // What was told of all can be told of these.
            for path in &first[..count] {
                if let Some(ended) = self.runs.get(path).and_then(Run::ended) {
                    next.tell(self.definition, path, ended, outside);
                }
            }
        }
        self.adopt_group(next, outside)
    }

    /// The same where another keeps the base: it stands there now.
    pub(super) fn committed_at(
        &mut self,
        count: usize,
        Standing { base, asked, trail }: Standing,
        outside: &mut Outside<'_, impl Oracle>,
    ) -> Vec<(RunId, StartTask, Answer)> {
        let Some(Next { mut group, .. }) = self.next.take() else { return Vec::new() };
        group.truncate(count);
        self.adopt_group(Next { base, asked, actions: Vec::new(), trail, group }, outside)
    }

    /// Something that is no group has happened to the base, which another keeps: it stands there now. `ended`: what was carried out for good, and has ended with that.
    pub(super) fn stands(
        &mut self,
        Standing { base, asked, trail }: Standing,
        ended: Option<&(TaskId, Answer)>,
        outside: &mut Outside<'_, impl Oracle>,
    ) {
        if let Some((task, answer)) = ended
            && let Some(path) = self.asked.iter().find(|(_, asked)| asked.task == *task).map(|(path, _)| path)
            && let Some(run) = self.runs.remove(path)
        {
            self.story.ended(run.id, answer, &run.told);
        }
        self.adopt(Next { base, asked, actions: Vec::new(), trail, group: Vec::new() }, outside);
        self.remake(outside);
    }

    /// Takes in where the base stands when a group is committed. What each of its tasks has come to.
    fn adopt_group(&mut self, next: Next, outside: &mut Outside<'_, impl Oracle>) -> Vec<(RunId, StartTask, Answer)> {
        let (mut answers, mut is_as_told) = (Vec::new(), true);
        for path in &next.group {
            let Some(Run { id, task, phase: Phase::Ended(answer), told, .. }) = self.runs.remove(path) else { continue };
            is_as_told &= told == Told::Answer;
            answers.push((id, task, answer));
        }
        self.adopt(next, outside);
        let is_asked = |(path, task): (&Path, &StartTask)| self.runs.get(path).is_some_and(|run| is_same(&run.task, task));
        if is_as_told && self.asked.iter().all(is_asked) {
            self.go_on(outside);
        } else {
            self.remake(outside);
        }
        self.tell_later(outside);
        answers
    }

    fn path_of(&self, run: RunId) -> Option<&Path> {
        self.runs.iter().find(|(_, known)| known.id == run).map(|(path, _)| path)
    }

    fn copy(&self) -> Next {
        Next {
            base: self.base.clone(),
            asked: self.asked.clone(),
            actions: Vec::new(),
            trail: self.trail.clone(),
            group: Vec::new(),
        }
    }

    fn adopt(&mut self, next: Next, outside: &mut Outside<'_, impl Oracle>) {
        outside.actions.extend(next.actions.into_iter().map(Do::Base));
        (self.base, self.asked, self.trail) = (next.base, next.asked, next.trail);
        self.story.went_really(self.definition, &self.trail);
    }

    /// Makes the front again from the base, and drops all runs for which it does not ask any more.
    fn remake(&mut self, outside: &mut Outside<'_, impl Oracle>) {
        (self.front, self.front_way, self.front_yields) = (self.base.clone(), self.trail.path(), false);
        for run in self.runs.values_mut() {
            run.was_guessed = matches!(run.told, Told::Guess(_) | Told::Hole);
            (run.told, run.is_asked) = (Told::Nothing, false);
        }
        for task in self.asked.values().cloned().collect::<Vec<_>>() {
            self.place(task, outside);
        }
        self.go_on(outside);
        let dropped = self.runs.extract_if(.., |_, run| !run.is_asked);
        let dropped = dropped.inspect(|(_, run)| self.story.dropped(run.id, Why::NotAsked));
        outside.actions.extend(dropped.filter(|(_, run)| !matches!(run.phase, Phase::Asked)).map(|(_, run)| Do::Drop(run.id)));
    }

    /// Begins what may begin, and tells the front what there is to tell, until neither is any more.
    fn go_on(&mut self, outside: &mut Outside<'_, impl Oracle>) {
        let mut yields = 0;
        loop {
            if mem::take(&mut self.front_yields) {
                if yields == YIELDS_MAX {
                    self.front_yields = true;
                } else {
                    yields += 1;
                    self.tell_front(Event::Continue, outside);
                }
            }
            self.begin(outside);
            if !self.tell_one(outside) && (!self.front_yields || yields == YIELDS_MAX) {
                return;
            }
        }
    }

    /// Begins runs: those that the base asks for, and as many others as may be under way.
    fn begin(&mut self, outside: &mut Outside<'_, impl Oracle>) {
        let mut under_way = self.runs.values().filter(|run| matches!(run.phase, Phase::Running)).count();
        let depth = outside.oracle.depth();
        let mut last: Option<Arc<str>> = None;
        for (path, run) in &mut self.runs {
            let behind = last.take();
            if !matches!(run.phase, Phase::Ended(_)) {
                last = Some(Arc::clone(&run.task.state));
            }
            let asked = self.asked.get(path).filter(|task| is_same(task, &run.task));
            if !run.is_asked || !matches!(run.phase, Phase::Asked) {
                continue;
            }
            if !run.takes_part {
                let Some(asked) = asked else { continue };
                run.phase = Phase::Running;
                self.story.carried_out(run.id);
                outside.actions.push(Do::CarryOut { run: run.id, task: asked.clone() });
            } else if asked.is_some() || (under_way <= depth && !run.refused && !run.has_hole) {
                run.phase = Phase::Running;
                under_way += 1;
                let behind = behind.filter(|_| asked.is_none());
                self.story.begun(run.id, asked.is_some(), behind.as_ref());
                outside.actions.push(Do::Begin { run: run.id, path: path.clone(), task: run.task.clone(), behind });
            }
        }
    }

    /// Tells the front of the first run of which it can be told something. Whether there was one.
    fn tell_one(&mut self, outside: &mut Outside<'_, impl Oracle>) -> bool {
        let depth = outside.oracle.depth();
        let ahead = self.runs.values().filter(|run| run.is_asked && !matches!(run.phase, Phase::Ended(_))).count();
        let may_guess = ahead <= depth && self.runs.len() < RUNS_MAX;
        let keeps = outside.oracle.keeps();
        for run in self.runs.values_mut().filter(|run| run.is_asked && run.told == Told::Nothing) {
            let is_nested = !run.task.position.is_empty();
            let (told, answer) = match &run.phase {
                // Of failures the order in which branches hear decides what becomes of the others: the base's.
                Phase::Ended(Err(_)) if is_nested => continue,
                Phase::Ended(answer) => (Told::Answer, answer.clone()),
                // What was guessed before is guessed again also where nothing new may be: runs that were begun behind it would be dropped, with all that they have done.
                Phase::Asked | Phase::Running if !(may_guess || keeps && run.was_guessed) => continue,
                Phase::Asked | Phase::Running => {
                    let guess = if run.has_hole { None } else { outside.oracle.answer(&run.task) };
                    match guess {
                        Some(Err(_)) if is_nested => continue,
                        Some(guess) => (Told::Guess(guess.clone()), guess),
                        None => match outside.oracle.shape(&run.task) {
                            Some(last) => (Told::Hole, Ok(hole::of_shape(&last))),
                            None => continue,
                        },
                    }
                }
            };
            self.story.told(run.id, &told);
            let is_hole = told == Told::Hole;
            run.told = told;
            let task = run.task.task;
            let event = ended(task, answer);
            let before = is_hole.then(|| (self.front.clone(), self.front_way));
            let fails = self.tell_front(event, outside);
            if let Some((front, way)) = before.filter(|_| fails) {
                // What is made of an output cannot be made of one that is not there.
                (self.front, self.front_way) = (front, way);
            }
            return true;
        }
        false
    }

    /// Steps the front. Whether it has failed with that.
    fn tell_front(&mut self, event: Event, outside: &mut Outside<'_, impl Oracle>) -> bool {
        let mut actions = Vec::new();
        let (way, story) = (&mut self.front_way, &mut self.story);
        let mut ahead = Ahead { oracle: &mut *outside.oracle, way, definition: self.definition, story, is_guess: false };
        let (now_ms, random) = (outside.now_ms, &mut *outside.random);
        step_guided(self.definition, &mut self.front, event, (now_ms, random), &mut ahead, &mut actions);
        let mut fails = false;
        for action in actions {
            match action {
                Action::StartTask(task) => self.place(task, outside),
                Action::Yield => self.front_yields = true,
                Action::Ended(outcome) => fails = !matches!(outcome, Outcome::Succeeded(_)),
                // Timers and ends are the base's.
                _ => {}
            }
        }
        fails
    }

    /// The front asks for a task: for the run that is there, or another one.
    fn place(&mut self, task: StartTask, outside: &mut Outside<'_, impl Oracle>) {
        let Some(path) = self.front.path(task.task) else { return };
        if let Some(run) = self.runs.get_mut(&path) {
            if is_same(&run.task, &task) {
                self.story.asked_by(run.id, &task.state);
                (run.task, run.is_asked) = (task, true);
                return;
            }
            let why = if run.task.state == task.state { Why::OtherInput } else { Why::NotAsked };
            self.story.dropped(run.id, why);
            if !matches!(run.phase, Phase::Asked) {
                outside.actions.push(Do::Drop(run.id));
            }
        }
        self.last_run += 1;
        let takes_part = task.purpose == Purpose::Work && task.token.is_none() && outside.oracle.takes_part(&task);
        let has_hole = hole::is_in(&task.input);
        let (id, phase, told) = (RunId(self.last_run), Phase::Asked, Told::Nothing);
        self.story.asked(id, &path, &task);
        let (was_guessed, refused, is_asked) = (false, false, true);
        self.runs.insert(path, Run { id, task, takes_part, has_hole, phase, told, was_guessed, refused, is_asked });
    }
}

/// Whether both ask for the same, with the same input.
pub(in crate::workflow) fn is_same(one: &StartTask, other: &StartTask) -> bool {
    one.purpose == other.purpose
        && (Arc::ptr_eq(&one.resource, &other.resource) || one.resource == other.resource)
        && (Arc::ptr_eq(&one.input, &other.input) || value::is_same(&one.input, &other.input))
}

fn is_same_answer(one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => value::is_same(one, other),
        (one, other) => one == other,
    }
}
