//! In which branch or iteration each event of a history lies.
//!
//! A history says it by numbers only: each event names the one before it. A *place* is the way from the top level to a branch or iteration: `Fork[1]/Each[0]`; the top level itself
//! is `top`. What a state lies in, the definition says; which iteration it is, the event before it.
//!
//! Histories come from servers and files: any numbers, names and orders are taken, and lead to some place.

use std::collections::HashMap;

use crate::definition::{Definition, Kind, MachineIndex, State, StateIndex};
use crate::machine::HistoryKind;

/// The place of the top level.
pub(super) const TOP: &str = "top";

/// What an event says of its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'e> {
    pub(super) id: u64,
    pub(super) previous: u64,
    pub(super) kind: HistoryKind,
    /// The state that it names.
    pub(super) name: Option<&'e str>,
    /// The iteration that it names.
    pub(super) index: Option<u32>,
    /// Of a task: whether a Map asks for items, or has results kept.
    pub(super) of_map: bool,
}

/// Where an event lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The state that it is about.
    pub(super) state: Option<StateIndex>,
    /// Parallels and Maps around it, from the outermost, with the branch or iteration of each.
    pub(super) around: Vec<(StateIndex, u32)>,
}

impl Place {
    /// `Fork[1]/Each[0]`, or [`TOP`].
    pub(super) fn name(&self, definition: &Definition) -> String {
        if self.around.is_empty() {
            return TOP.to_owned();
        }
        let named = |(state, number): &(StateIndex, u32)| {
            format!("{}[{number}]", definition.state(*state).map_or("", |state| &*state.name))
        };
        self.around.iter().map(named).collect::<Vec<_>>().join("/")
    }

    /// The numbers alone, as [`StartTask::position`](crate::machine::StartTask::position) has them.
    pub(super) fn position(&self) -> Vec<u32> {
        self.around.iter().map(|(_, number)| *number).collect()
    }

    /// The branch or iteration around this one, in which its Parallel or Map stands.
    fn outer(&self) -> Place {
        let mut around = self.around.clone();
        let state = around.pop().map(|(state, _)| state);
        Place { state, around }
    }
}

/// Finds the places of the events of one history, in their order.
pub(super) struct Places<'d> {
    definition: &'d Definition,
    known: HashMap<u64, (HistoryKind, Place)>,
}

impl<'d> Places<'d> {
    pub(super) fn new(definition: &'d Definition) -> Self {
        Self { definition, known: HashMap::new() }
    }

    /// The place of the next event.
    pub(super) fn of(&mut self, told: Told<'_>) -> Place {
        let place = self.find(told);
        self.known.insert(told.id, (told.kind, place.clone()));
        place
    }

    fn find(&self, Told { previous, kind, name, index, of_map, .. }: Told<'_>) -> Place {
        use HistoryKind::{
            MapIterationAborted, MapIterationFailed, MapIterationStarted, MapIterationSucceeded, MapStateEntered, MapStateFailed,
            MapStateStarted, MapStateSucceeded, ParallelStateEntered, ParallelStateFailed, ParallelStateStarted,
            ParallelStateSucceeded, TaskFailed, TaskStarted, TaskSucceeded,
        };
        let nothing = (HistoryKind::ExecutionStarted, Place::default());
        let (before_kind, before) = self.known.get(&previous).unwrap_or(&nothing);
        let named = name.and_then(|name| self.definition.find(name)).and_then(|at| Some((at, self.definition.state(at)?)));
        if let Some((at, state)) = named {
            let mut around = self.around(state, before);
            if matches!(kind, MapIterationStarted | MapIterationSucceeded | MapIterationFailed | MapIterationAborted) {
                around.push((at, index.unwrap_or(0)));
                return Place { state: None, around };
            }
            return Place { state: Some(at), around };
        }
        let is_own = match kind {
            ParallelStateStarted | ParallelStateSucceeded | ParallelStateFailed => {
                matches!(before_kind, ParallelStateEntered | ParallelStateStarted)
            }
            MapStateStarted | MapStateSucceeded | MapStateFailed => {
                let of_its_tasks = matches!(before_kind, TaskStarted | TaskSucceeded | TaskFailed) && self.is_map(before);
                of_its_tasks || matches!(before_kind, MapStateEntered | MapStateStarted)
            }
            // Of an ItemReader or a ResultWriter: behind the entering, or behind iterations.
            HistoryKind::TaskScheduled if of_map => {
                let after_own = matches!(before_kind, MapStateEntered | MapStateStarted | TaskFailed | TaskSucceeded);
                after_own && self.is_map(before)
            }
            _ => true,
        };
        if is_own { before.clone() } else { before.outer() }
    }

    fn is_map(&self, place: &Place) -> bool {
        place.state.and_then(|at| self.definition.state(at)).is_some_and(|state| matches!(state.kind, Kind::Map(_)))
    }

    /// What lies around a state, with iterations as the event before says.
    fn around(&self, state: &State, before: &Place) -> Vec<(StateIndex, u32)> {
        let mut machine = Some(state.machine);
        let mut owners: Vec<(StateIndex, MachineIndex)> = Vec::new();
        // A definition nests a few levels.
        while let Some(at) = machine {
            let owner = self.definition.machine(at).and_then(|machine| machine.owner);
            owners.extend(owner.map(|owner| (owner, at)));
            machine = owner.and_then(|owner| self.definition.state(owner)).map(|state| state.machine);
        }
        owners.reverse();
        let number = |level: usize, owner: StateIndex, machine: MachineIndex| {
            if let Some(Kind::Parallel { branches, .. }) = self.definition.state(owner).map(|state| &state.kind) {
                let at = branches.iter().position(|branch| *branch == machine);
                return at.and_then(|at| u32::try_from(at).ok()).unwrap_or(0);
            }
            before.around.get(level).filter(|(own, _)| *own == owner).map_or(0, |(_, number)| *number)
        };
        owners.iter().enumerate().map(|(level, (owner, machine))| (*owner, number(level, *owner, *machine))).collect()
    }
}
