//! Which way a Choice goes while its input is not known yet, and whether a state fails and where that is caught (speculation.md, S2, C14, C15).
//!
//! The way depends on how the execution has come to the state: a branch has counts for each [`Path`] that has led to it, and one sum for all of them, which is asked where the path is new.
//! Only what was committed is learned: the driver notes the ways of an execution in a [`Trail`], and hands it over when they are certain.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;
use sledge_workflow::definition::{MachineIndex, StateIndex};

use super::bounded::{Bounded, Weigh};
use super::counts::Counts;
use super::shown;

/// Ways that a trail has; those beyond are not learned.
const STEPS_MAX: usize = 1_024;
/// Paths of one state that are told apart: a loop makes a new one in each round, and must not push out all others.
const PATHS_MAX: usize = 64;

/// Where an execution goes on after a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Where that rule of a Choice leads.
    Rule(u32),
    /// Where `Default` leads.
    Default,
    /// Where `Next` leads, or the end: the state has not failed.
    Next,
    /// Where that catcher leads.
    Catch(u32),
}

/// The ways that an execution has gone since its start, as a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(u64);

impl Path {
    /// The path after that way of a state.
    #[must_use]
    pub fn then(self, state: StateIndex, target: Target) -> Path {
        self.with((state, target))
    }

    /// The path at the start of a branch of a Parallel, or of any iteration of a Map.
    #[must_use]
    pub fn within(self, machine: MachineIndex) -> Path {
        self.with(machine)
    }

    fn with(self, what: impl Hash) -> Path {
        // Its key is the same in each process, and nothing of it is secret: states are not the client's.
        let mut hasher = DefaultHasher::new();
        (self, what).hash(&mut hasher);
        Path(hasher.finish())
    }
}

/// The ways that an execution has gone, or a branch of it. Copies are cheap as long as ways are few.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    path: Path,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    state: StateIndex,
    /// How the execution had come to it.
    path: Path,
    target: Target,
}

impl Trail {
    /// How the execution has come to where it is.
    #[must_use]
    pub const fn path(&self) -> Path {
        self.path
    }

    /// The ways, each with its state and how the execution had come to it.
    pub fn ways(&self) -> impl Iterator<Item = (StateIndex, Path, Target)> {
        self.steps.iter().map(|step| (step.state, step.path, step.target))
    }

    /// The execution went that way. To be told of states with several ways: of others there is nothing to learn.
    pub fn went(&mut self, state: StateIndex, target: Target) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(Step { state, path: self.path, target });
        }
        self.path = self.path.then(state, target);
    }

    /// The trail of a branch or an iteration that begins here. Its ways are [joined](Trail::join) when they are certain.
    #[must_use]
    pub fn within(&self, machine: MachineIndex) -> Trail {
        Trail { path: self.path.within(machine), steps: Vec::new() }
    }

    /// Adds the ways of a branch. The path stays what it was: what comes after a Parallel does not depend on the order in which its branches ended.
    pub fn join(&mut self, branch: Trail) {
        let room = STEPS_MAX - self.steps.len();
        self.steps.extend(branch.steps.into_iter().take(room));
    }
}

/// The way that is to be expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// Where to.
    pub target: Target,
    /// Its share of the recent outcomes.
    pub percent: u32,
    /// How many these are.
    pub samples: u32,
    /// Whether executions that had come by the same path went so; else it is what all of them did.
    pub is_of_path: bool,
}

/// What branches did.
#[derive(Debug)]
pub struct Paths {
    branches: Bounded<(u64, StateIndex), Branch>,
}

#[derive(Debug, Default)]
struct Branch {
    all: Counts<Target>,
    /// Those that were learned last at the end.
    paths: Vec<(Path, Counts<Target>)>,
}

impl Weigh for Branch {
    fn heap_bytes(&self) -> usize {
        let paths: usize = self.paths.iter().map(|(_, counts)| counts.heap_bytes()).sum();
        self.paths.capacity() * size_of::<(Path, Counts<Target>)>() + paths + self.all.heap_bytes()
    }
}

impl Branch {
    fn went(&mut self, path: Path, target: Target) {
        self.all.add(&target);
        let known = self.paths.iter().position(|(own, _)| *own == path);
        let (_, mut counts) = match known {
            Some(at) => self.paths.remove(at),
            None => (path, Counts::default()),
        };
        counts.add(&target);
        if self.paths.len() >= PATHS_MAX {
            self.paths.remove(0);
        }
        self.paths.push((path, counts));
    }

    fn way(&self, path: Path) -> Option<Way> {
        let own = self.paths.iter().find(|(own, _)| *own == path).map(|(_, counts)| counts).filter(|own| own.suffice());
        let likeliest = own.unwrap_or(&self.all).likeliest()?;
        let is_of_path = own.is_some();
        Some(Way { target: likeliest.outcome, percent: likeliest.percent, samples: likeliest.samples, is_of_path })
    }
}

impl Paths {
    /// Nothing yet, and room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Paths {
        Paths { branches: Bounded::new(bytes_max, usize::MAX) }
    }

    /// The way that an execution of a workflow will go at a state to which it has come so, if one is to be expected. `workflow` is the fingerprint of its definition.
    #[must_use]
    pub fn way(&self, workflow: u64, state: StateIndex, path: Path) -> Option<Way> {
        self.branches.peek(&(workflow, state))?.way(path)
    }

    /// Learns the ways of a trail, which are certain, and takes them from it: what comes after them can be learned later.
    pub fn learn(&mut self, workflow: u64, trail: &mut Trail) {
        for Step { state, path, target } in trail.steps.drain(..) {
            self.branches.change((workflow, state), Branch::default, |branch| branch.went(path, target));
        }
    }

    /// Drops what is known of a workflow.
    pub fn forget(&mut self, workflow: u64) {
        self.branches.retain(|(own, _)| *own != workflow);
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.branches.bytes()
    }

    /// Drops what was not learned for longest; false where there is nothing.
    pub fn evict(&mut self) -> bool {
        self.branches.evict()
    }

    /// All that is known, for people.
    #[must_use]
    pub fn known(&self) -> Vec<KnownBranch> {
        let mut known: Vec<_> = self.branches.iter().map(|(key, branch)| (*key, branch)).collect();
        known.sort_unstable_by_key(|(key, _)| *key);
        let known = known.into_iter().map(|((workflow, state), branch)| KnownBranch {
            workflow: shown(workflow),
            state,
            paths: branch.paths.len(),
            ways: branch.all.iter().copied().collect(),
            expected: branch.all.likeliest().map(|likeliest| likeliest.outcome),
        });
        known.collect()
    }
}

/// What a branch did.
#[derive(Clone, Debug, Serialize)]
pub struct KnownBranch {
    /// The fingerprint of the workflow's definition.
    pub workflow: String,
    /// The state's number among all of the definition.
    pub state: StateIndex,
    /// The paths that have led to it.
    pub paths: usize,
    /// Where executions went, and how many of the recent ones.
    pub ways: Vec<(Target, u32)>,
    /// What is to be expected on a new path.
    pub expected: Option<Target>,
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::*;

    const MANY: usize = 1 << 20;

    fn learn(paths: &mut Paths, ways: &[(u32, Target)]) -> Path {
        let mut trail = Trail::default();
        ways.iter().for_each(|(at, target)| trail.went(state(*at), *target));
        let path = trail.path();
        paths.learn(1, &mut trail);
        path
    }

    #[test]
    fn a_branch_goes_as_it_went_on_the_same_path_and_on_a_new_one_as_it_mostly_went() {
        let mut paths = Paths::new(MANY);
        let [left, right] = [Target::Rule(0), Target::Default];
        // The second branch goes as the first one has gone.
        for _ in 0..3 {
            learn(&mut paths, &[(0, left), (1, left)]);
            learn(&mut paths, &[(0, left), (1, left)]);
            learn(&mut paths, &[(0, right), (1, right)]);
        }
        let at = |target| Path::default().then(state(0), target);
        let way = |path| paths.way(1, state(1), path).map(|way| (way.target, way.percent, way.is_of_path));
        assert_eq!(way(at(left)), Some((left, 100, true)));
        assert_eq!(way(at(right)), Some((right, 100, true)));
        assert_eq!(way(at(Target::Catch(0))), Some((left, 66, false)), "as all of them");
        assert_eq!(paths.way(2, state(1), at(left)), None, "another workflow");
        assert_eq!(paths.way(1, state(2), at(left)), None, "another state");
    }

    #[test]
    fn a_path_that_has_two_samples_and_no_likely_way_is_not_overruled_by_the_sum() {
        let mut paths = Paths::new(MANY);
        let before = |way| (0, way);
        for _ in 0..10 {
            learn(&mut paths, &[before(Target::Rule(0)), (1, Target::Next)]);
        }
        let path = Path::default().then(state(0), Target::Default);
        learn(&mut paths, &[before(Target::Default), (1, Target::Catch(0))]);
        assert!(paths.way(1, state(1), path).is_some_and(|way| way.target == Target::Next && !way.is_of_path), "one sample");
        learn(&mut paths, &[before(Target::Default), (1, Target::Next)]);
        assert_eq!(paths.way(1, state(1), path), None);
    }

    #[test]
    fn the_same_ways_in_another_order_are_another_path_and_branches_have_their_own() {
        let [one, other] = [(state(0), Target::Next), (state(1), Target::Next)];
        let then = |path: Path, (state, target)| path.then(state, target);
        let start = Path::default();
        let [first, second]: [MachineIndex; 2] = [1, 2].map(|at| serde_json::from_value(at.into()).unwrap());
        let paths = [
            start,
            then(start, one),
            then(start, other),
            then(then(start, one), other),
            then(then(start, other), one),
            then(then(start, one), one),
            start.within(first),
            start.within(second),
            start.then(state(0), Target::Rule(0)),
            start.then(state(0), Target::Catch(0)),
        ];
        assert_eq!(paths.iter().collect::<std::collections::HashSet<_>>().len(), paths.len());
        let mut trail = Trail::default();
        let mut branch = trail.within(first);
        branch.went(state(5), Target::Next);
        assert_eq!(branch.path(), start.within(first).then(state(5), Target::Next));
        trail.join(branch);
        assert_eq!(trail.path(), start);
        let mut paths = Paths::new(MANY);
        paths.learn(1, &mut trail.clone());
        paths.learn(1, &mut trail);
        paths.learn(1, &mut trail);
        let way = paths.way(1, state(5), start.within(first)).unwrap();
        assert_eq!((way.target, way.samples), (Target::Next, 2), "the ways of a trail are learned once");
    }

    #[test]
    fn a_long_loop_takes_neither_the_room_of_other_branches_nor_more_than_its_own() {
        let mut paths = Paths::new(MANY);
        for _ in 0..2 {
            learn(&mut paths, &[(7, Target::Default)]);
        }
        let rounds: Vec<_> = (0..STEPS_MAX + 100).map(|_| (1, Target::Rule(0))).collect();
        for _ in 0..3 {
            learn(&mut paths, &rounds);
        }
        assert_eq!(paths.branches.peek(&(1, state(1))).unwrap().paths.len(), PATHS_MAX);
        assert!(paths.way(1, state(7), Path::default()).is_some_and(|way| way.is_of_path));
        assert!(paths.bytes() < 16 << 10, "{}", paths.bytes());
        let mut trail = Trail::default();
        rounds.iter().for_each(|(at, target)| trail.went(state(*at), *target));
        assert_eq!(trail.steps.len(), STEPS_MAX);
        let mut joined = trail.clone();
        joined.join(trail);
        assert_eq!(joined.steps.len(), STEPS_MAX);
    }

    #[test]
    fn a_workflow_is_forgotten_and_the_table_is_bounded() {
        let mut paths = Paths::new(20_000);
        let mut trail = Trail::default();
        trail.went(state(0), Target::Next);
        for workflow in 0..1_000 {
            paths.learn(workflow, &mut trail.clone());
            paths.learn(workflow, &mut trail.clone());
            assert!(paths.bytes() <= 20_000);
        }
        let way = |paths: &Paths, workflow| paths.way(workflow, state(0), Path::default()).is_some();
        assert_eq!([0, 998, 999].map(|workflow| way(&paths, workflow)), [false, true, true]);
        assert!(paths.known().iter().any(|known| known.workflow == "00000000000003e7"));
        paths.forget(999);
        assert_eq!([998, 999].map(|workflow| way(&paths, workflow)), [true, false]);
        while paths.evict() {}
        assert_eq!(paths.bytes(), 0);
    }
}
