//! The base after a group, before that is committed.

use std::collections::BTreeMap;

use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Event, Execution, StartTask, step_guided};

use super::guides::Watched;
use super::plan::{Answer, Oracle, Outside, Path, is_same};
use crate::speculate::paths::Trail;
use crate::workflow::express::ended;

/// A copy of the base that was told of a group, for when that is committed.
pub(super) struct Next {
    pub(super) base: Execution,
    /// What it waits for.
    pub(super) asked: BTreeMap<Path, StartTask>,
    /// What it asks for beside tasks.
    pub(super) actions: Vec<Action>,
    pub(super) trail: Trail,
    /// The runs that it was told of.
    pub(super) group: Vec<Path>,
}

impl Next {
    /// Tells it of a run that has ended. Whether it asks for that, with the input with which it has run.
    pub(super) fn tell(
        &mut self,
        definition: &Definition,
        path: &Path,
        (task, answer): (&StartTask, &Answer),
        outside: &mut Outside<'_, impl Oracle>,
    ) -> bool {
        let Some(asked) = self.asked.get(path).filter(|asked| is_same(asked, task)) else { return false };
        let task = asked.task;
        self.asked.remove(path);
        self.step(definition, ended(task, answer.clone()), outside);
        self.group.push(path.clone());
        true
    }

    /// Steps it.
    pub(super) fn step(&mut self, definition: &Definition, event: Event, outside: &mut Outside<'_, impl Oracle>) {
        let mut actions = Vec::new();
        let mut watched = Watched(&mut self.trail);
        let (now_ms, random) = (outside.now_ms, &mut *outside.random);
        step_guided(definition, &mut self.base, event, (now_ms, random), &mut watched, &mut actions);
        for action in actions {
            match action {
                Action::StartTask(task) => {
                    if let Some(path) = self.base.path(task.task) {
                        self.asked.insert(path, task);
                    }
                }
                Action::CancelTask { task } => self.asked.retain(|_, asked| asked.task != task),
                action => self.actions.push(action),
            }
        }
    }
}
