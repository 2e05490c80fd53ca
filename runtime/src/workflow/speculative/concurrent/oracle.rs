//! What an execution is guessed to do: what the tables say, and now and then something made up.

use fastrand::Rng;
use serde_json::{Value, json};
use sledge_workflow::definition::{Definition, StateIndex};
use sledge_workflow::machine::{StartTask, Way};

use super::functions::{Functions, name};
use super::world::Shared;
use crate::speculate::Speculation;
use crate::speculate::paths::{Path, Target};
use crate::workflow::speculative::plan::{Answer, Oracle};

pub(super) struct Guesses<'s> {
    tables: &'s Speculation,
    functions: &'s Functions,
    rng: Rng,
    workflow: u64,
    depth: usize,
    /// Of a hundred guesses, how many are made up.
    wrong: u32,
}

impl<'s> Guesses<'s> {
    pub(super) fn new(shared: &'s mut Shared, (definition, depth, wrong): (&Definition, usize, u32)) -> Guesses<'s> {
        let rng = shared.rng.fork();
        let (tables, functions, workflow) = (&*shared.tables, &shared.functions, definition.fingerprint());
        Guesses { tables, functions, rng, workflow, depth, wrong }
    }

    fn is_made_up(&mut self) -> bool {
        self.rng.u32(..100) < self.wrong
    }
}

impl Oracle for Guesses<'_> {
    fn takes_part(&mut self, task: &StartTask) -> bool {
        name(task) != "real"
    }

    fn depth(&mut self) -> usize {
        self.depth
    }

    fn keeps(&mut self) -> bool {
        self.rng.bool()
    }

    fn answer(&mut self, task: &StartTask) -> Option<Answer> {
        if self.is_made_up() {
            let rng = &mut self.rng;
            return Some(Ok(json!({ "number": rng.u32(..3), "big": rng.bool(), "more": rng.bool() })));
        }
        let answer = self.tables.answer(self.functions.version(name(task)), &self.tables.key(name(task), &task.input))?;
        Some(answer.map(|output| (*output).clone()))
    }

    fn shape(&mut self, task: &StartTask) -> Option<Value> {
        self.tables.last(self.functions.version(name(task))).map(|output| (*output).clone())
    }

    fn way(&mut self, choice: StateIndex, path: Path) -> Way {
        if self.is_made_up() {
            return Way::Rule(self.rng.usize(..3));
        }
        match self.tables.way(self.workflow, choice, path).map(|way| way.target) {
            Some(Target::Rule(rule)) => Way::Rule(rule as usize),
            Some(Target::Default) => Way::Default,
            Some(Target::Next | Target::Catch(_)) | None => Way::Nowhere,
        }
    }
}
