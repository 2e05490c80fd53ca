//! Moves: an execution that has not ended goes on by another definition.
//!
//! An execution stands at places: the state of each frame, and what that state waits for. It is moved only if the new definition has all of them: states of the same name and type, in the same
//! branch or processor, with whatever has begun there: a task's resource, branches, the reader and writer of a Map, retriers that were used. All else of the new definition may be different.
//! What was decided when a state was entered stays: when timers run out, how many iterations run at once and how many may fail, when the whole times out.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::event::Purpose;
use super::execution::{Execution, Status};
use super::frame::{Branches, Frame, Phase};
use super::limits::MISFITS_MAX;
use crate::definition::{Assigned, Definition, Kind, MachineIndex, Resource, State, StateIndex, followers, shown};

/// What keeps an execution from going on by another definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It has ended.
    #[error("the execution has ended")]
    Ended,
    /// It was started with another definition than was said, or written in another form.
    #[error("the execution is of another version of the workflow")]
    OtherDefinition,
    /// The state in which it is does not exist.
    #[error("the execution is in the state \"{}\", which the new definition does not have", shown(.0))]
    NoState(Arc<str>),
    /// The state in which it is has another type.
    #[error("the state \"{}\", in which the execution is, is a {was}, and a {is} in the new definition", shown(.state))]
    OtherType {
        /// The state.
        state: Arc<str>,
        /// Its type.
        was: &'static str,
        /// Its type in the new definition.
        is: &'static str,
    },
    /// The state in which it is lies in another branch or processor, or in none.
    #[error("the state \"{}\", in which the execution is, lies {was}, and {is} in the new definition", shown(.state))]
    Elsewhere {
        /// The state.
        state: Arc<str>,
        /// Where it lies.
        was: Place,
        /// Where it lies in the new definition.
        is: Place,
    },
    /// Branches run of a Parallel that has more or fewer of them.
    #[error("the branches of \"{}\" run; they are {was}, and {is} in the new definition", shown(.state))]
    Branches {
        /// The Parallel.
        state: Arc<str>,
        /// How many there are.
        was: usize,
        /// How many there are in the new definition.
        is: usize,
    },
    /// A task is under way that would end in another way.
    #[error("a task of the state \"{}\" is under way; it is {was}, and {is} in the new definition", shown(.state))]
    Task {
        /// The state.
        state: Arc<str>,
        /// What it asks for.
        was: String,
        /// What it asks for in the new definition.
        is: String,
    },
    /// A field of a Map is missing, new or different that has begun to be used.
    #[error("the Map \"{}\" is under way, and its {field} is not the same in the new definition", shown(.state))]
    Field {
        /// The Map.
        state: Arc<str>,
        /// The field.
        field: &'static str,
    },
    /// A retrier that was used does not exist.
    #[error("the state \"{}\" is tried again by its retrier for {errors}, which the new definition does not have", shown(.state))]
    Retrier {
        /// The state.
        state: Arc<str>,
        /// `ErrorEquals` of the retrier.
        errors: String,
    },
    /// A state that may come reads a variable that is not there, and will not be.
    #[error("the state \"{}\" of the new definition reads the variable ${}, which the execution does not have", shown(.state), shown(.name))]
    Variable {
        /// The state.
        state: Arc<str>,
        /// The variable.
        name: Arc<str>,
    },
}

/// Where a state lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In no other state.
    Top,
    /// In the processor of a Map.
    Processor(Arc<str>),
    /// In a branch of a Parallel, with its number from 1.
    Branch(Arc<str>, usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => f.write_str("at the top level"),
            Self::Processor(map) => write!(f, "in the Map \"{}\"", shown(map)),
            Self::Branch(parallel, number) => write!(f, "in branch {number} of \"{}\"", shown(parallel)),
        }
    }
}

impl Place {
    fn of(definition: &Definition, machine: MachineIndex) -> Self {
        let owner = definition.machine(machine).and_then(|machine| definition.state(machine.owner?));
        match owner {
            None => Self::Top,
            Some(State { name, kind: Kind::Parallel { branches, .. }, .. }) => {
                let number = branches.iter().position(|branch| *branch == machine).map_or(0, |at| at + 1);
                Self::Branch(Arc::clone(name), number)
            }
            Some(State { name, .. }) => Self::Processor(Arc::clone(name)),
        }
    }
}

impl Execution {
    /// The same execution, which goes on by the definition `to` from its next transition on. `from` is the one with which it was started, or to which it was moved last. Nothing has to be done for
    /// that: its tasks and timers are the same.
    ///
    /// # Errors
    /// What keeps it from that: each difference once, at most [`MISFITS_MAX`], at least one.
    pub fn moved(&self, from: &Definition, to: &Definition) -> Result<Self, Vec<Misfit>> {
        if !self.fits(from) {
            return Err(vec![Misfit::OtherDefinition]);
        }
        if !matches!(self.status, Status::New | Status::Running) {
            return Err(vec![Misfit::Ended]);
        }
        if from.fingerprint() == to.fingerprint() {
            return Ok(self.clone());
        }
        let names = (0..).zip(to.states()).map(|(at, state)| (&*state.name, StateIndex(at)));
        let mut moving = Moving { execution: self, from, to, names: names.collect(), misfits: Vec::new() };
        let frames = self.frames.map(|frame| moving.frame(frame));
        moving.check_variables();
        if moving.misfits.is_empty() {
            Ok(Self { definition: to.fingerprint(), frames, halted: None, ..self.clone() })
        } else {
            Err(moving.misfits)
        }
    }
}

struct Moving<'a> {
    execution: &'a Execution,
    from: &'a Definition,
    to: &'a Definition,
    /// The states of the new definition.
    names: HashMap<&'a str, StateIndex>,
    misfits: Vec<Misfit>,
}

impl<'a> Moving<'a> {
    /// Many iterations may stand in the same state.
    fn note(&mut self, misfit: Misfit) {
        if self.misfits.len() < MISFITS_MAX && !self.misfits.contains(&misfit) {
            self.misfits.push(misfit);
        }
    }

    /// The state of that name in the new definition.
    fn find(&self, name: &str) -> Option<(StateIndex, &'a State)> {
        let index = *self.names.get(name)?;
        Some((index, self.to.state(index)?))
    }

    /// A frame at the same place of the new definition. It is as before where it has no such place.
    fn frame(&mut self, frame: &Frame) -> Frame {
        let Some(was) = self.from.state(frame.state) else {
            self.note(Misfit::OtherDefinition);
            return frame.clone();
        };
        let state = || Arc::clone(&was.name);
        let Some((index, is)) = self.find(&was.name) else {
            self.note(Misfit::NoState(state()));
            return frame.clone();
        };
        if was.kind.name() != is.kind.name() {
            self.note(Misfit::OtherType { state: state(), was: was.kind.name(), is: is.kind.name() });
            return frame.clone();
        }
        if self.machine_of(frame).is_some_and(|machine| machine != is.machine) {
            let (was, is) = (Place::of(self.from, was.machine), Place::of(self.to, is.machine));
            self.note(Misfit::Elsewhere { state: state(), was, is });
        }
        self.check_phase(&frame.phase, was, is);
        Frame { machine: is.machine, state: index, retries: self.retries(frame, was, is), ..frame.clone() }
    }

    /// The machine of the new definition in which a frame has to lie; none where what is around it has no place, which is told of that.
    fn machine_of(&self, frame: &Frame) -> Option<MachineIndex> {
        let Some(parent) = frame.parent else { return Some(Definition::top()) };
        let around = self.from.state(self.execution.frames.get(parent)?.state)?;
        match &self.find(&around.name)?.1.kind {
            Kind::Parallel { branches, .. } => branches.get(frame.number as usize).copied(),
            Kind::Map(map) => Some(map.processor),
            _ => None,
        }
    }

    /// Notes what a state has begun that the new one would not take in, or not in the same way. Both have the same type.
    fn check_phase(&mut self, phase: &Phase, was: &State, is: &State) {
        let state = || Arc::clone(&was.name);
        match (phase, &was.kind, &is.kind) {
            (Phase::Task(_), Kind::Task(own), Kind::Task(other)) => {
                // Which function or server is asked may change: its answer is one all the same.
                let (own, other) = (&*own.resource, &*other.resource);
                let ends = |resource: &Resource| {
                    (resource.service(), resource.is_lambda(), resource.has_callback(), resource.takes_callback())
                };
                if ends(own) != ends(other) {
                    self.note(Misfit::Task { state: state(), was: own.to_string(), is: other.to_string() });
                }
            }
            (Phase::Task(pending), Kind::Map(own), Kind::Map(other)) => {
                let has_changed = match pending.purpose {
                    Purpose::Read => {
                        own.reader.as_ref().map(|reader| &reader.resource) != other.reader.as_ref().map(|reader| &reader.resource)
                    }
                    Purpose::Write | Purpose::Work => other.writer.is_none(),
                };
                if has_changed {
                    let field = if pending.purpose == Purpose::Read { "ItemReader" } else { "ResultWriter" };
                    self.note(Misfit::Field { state: state(), field });
                }
            }
            (Phase::Map(_) | Phase::Ended(_), Kind::Map(own), Kind::Map(other)) => {
                // Failures are kept apart for a writer only, and inputs are those of the items where there is no selector.
                if own.writer.is_some() != other.writer.is_some() {
                    self.note(Misfit::Field { state: state(), field: "ResultWriter" });
                } else if own.writer.is_some() && own.item_selector.is_some() != other.item_selector.is_some() {
                    self.note(Misfit::Field { state: state(), field: "ItemSelector" });
                }
            }
            (Phase::Parallel(Branches { results, .. }), _, Kind::Parallel { branches, .. }) => {
                let (was, is) = (results.values.len(), branches.len());
                if was != is {
                    self.note(Misfit::Branches { state: state(), was, is });
                }
            }
            _ => {}
        }
    }

    /// How often each retrier of the new state was used: retriers are the same that are for the same errors.
    fn retries(&mut self, frame: &Frame, was: &State, is: &State) -> Vec<u32> {
        let mut retries: Vec<u32> = Vec::new();
        // What is left of the state before counts for nothing.
        if matches!(frame.phase, Phase::Ready) {
            return retries;
        }
        let mut taken = HashSet::new();
        let used = was.kind.retriers().iter().zip(&frame.retries).filter(|(_, count)| **count > 0);
        for (retrier, count) in used {
            let mut same = (0..).zip(is.kind.retriers()).filter(|(_, other)| other.errors == retrier.errors);
            let Some((at, _)) = same.find(|(at, _)| !taken.contains(at)) else {
                self.note(Misfit::Retrier { state: Arc::clone(&was.name), errors: retrier.errors.join(", ") });
                continue;
            };
            taken.insert(at);
            if retries.len() <= at {
                retries.resize(at + 1, 0);
            }
            retries.iter_mut().skip(at).take(1).for_each(|own| *own = *count);
        }
        retries
    }

    /// Notes the states that may come and read a variable that is not there, and that none of them assigns.
    fn check_variables(&mut self) {
        // One that has not begun begins with the new definition, which has no such mistakes.
        let Some(top) = self.execution.frames.get(0) else { return };
        let Some((start, _)) = self.from.state(top.state).and_then(|state| self.find(&state.name)) else { return };
        let reached = self.reached(start);
        let mut known: HashSet<&str> =
            self.execution.frames.alive().flat_map(|frame| &frame.variables).map(|(name, _)| &**name).collect();
        for state in &reached {
            match state.assigns() {
                Assigned::Names(names) => known.extend(names),
                Assigned::Any => return,
            }
        }
        for state in reached {
            if let Some(name) = state.reads().into_iter().find(|name| !known.contains(name)) {
                self.note(Misfit::Variable { state: Arc::clone(&state.name), name: name.into() });
            }
        }
    }

    /// The states of the new definition that may come, that one among them, with those inside of them.
    fn reached(&self, start: StateIndex) -> Vec<&'a State> {
        let (mut seen, mut pending, mut reached) = (HashSet::new(), vec![start], Vec::new());
        while let Some(index) = pending.pop() {
            let Some(state) = self.to.state(index).filter(|_| seen.insert(index)) else { continue };
            reached.push(state);
            pending.extend(followers(state.next, &state.kind));
            let inner = match &state.kind {
                Kind::Parallel { branches, .. } => &branches[..],
                Kind::Map(map) => std::slice::from_ref(&map.processor),
                _ => &[],
            };
            pending.extend(inner.iter().filter_map(|machine| Some(self.to.machine(*machine)?.start)));
        }
        // In the order of the text.
        reached.sort_unstable_by_key(|state| self.names.get(&*state.name));
        reached
    }
}
