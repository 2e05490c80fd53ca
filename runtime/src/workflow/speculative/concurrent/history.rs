//! What has happened, in the order in which it has, and whether that could be what the same executions do without speculation.
//!
//! Each function is one transaction: executions at the same time see each other's functions, and never a part of one. So the check goes through what has happened and does the same one after the other: for
//! each execution there is a machine without a plan, and for all of them one plain map. Where a group was committed, the machine has to ask for its first function with that input; the function runs alone on
//! the map; it has to see the same and to answer the same; the machine is told, and has to ask for the next one. The order is that of the commits. It respects real time, since it is that in which things have
//! happened: what an execution commits stands between its beginning and its reply.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Event, Execution, Limits, Outcome, StartTask, TaskId, step};

use super::functions::{answer, name};
use super::{about, limits};
use crate::kv::BucketKey;
use crate::txn::tests::{Model, Program};
use crate::workflow::express::ended;
use crate::workflow::speculative::plan::{Answer, Path};

/// A function that has run, or whose known answer has stood for a run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) function: String,
    pub(super) path: Path,
    pub(super) input: Arc<Value>,
    /// Its program.
    pub(super) number: u64,
    /// What it has seen; not known where nothing has run.
    pub(super) seen: Option<String>,
    /// Whether it was killed: then it has changed nothing.
    pub(super) is_killed: bool,
    pub(super) answer: Answer,
}

/// What happens, with the number of its execution.
#[derive(Debug)]
pub(super) enum Happened {
    /// A client has asked for an execution.
    Began(usize, Value),
    /// The store has made the commit of a group. Whether its execution hears of the answers: not where the outcome is lost.
    Made(usize, bool, Vec<Ran>),
    /// A transaction by itself: another client's, or a function that does not take part.
    Alone(Ran),
    /// An execution hears how a task has ended, which is in no group; perhaps it does not want to know any more.
    Told(usize, TaskId, Arc<Value>, Answer),
    /// An execution hears of something else, at that time.
    Event(usize, Event, i64),
    /// An execution has come to that, and has replied.
    Ended(usize, Outcome),
    /// The server has died, with an execution of which nothing is kept.
    Gone(usize),
}

/// An execution, one task after the other.
#[derive(Clone)]
struct Sequential<'d> {
    definition: &'d Definition,
    execution: Execution,
    asked: BTreeMap<Path, StartTask>,
    outcome: Option<Outcome>,
    is_over: bool,
}

impl<'d> Sequential<'d> {
    fn new(definition: &'d Definition, limits: Limits) -> Sequential<'d> {
        let execution = Execution::new(definition, about(), limits, false);
        Sequential { definition, execution, asked: BTreeMap::new(), outcome: None, is_over: false }
    }

    fn step(&mut self, event: Event, now_ms: i64) {
        let mut actions = Vec::new();
        step(self.definition, &mut self.execution, event, now_ms, &mut || 7, &mut actions);
        for action in actions {
            match action {
                Action::StartTask(task) => {
                    let path = self.execution.path(task.task).expect("a path");
                    self.asked.insert(path, task);
                }
                Action::CancelTask { task } => self.asked.retain(|_, asked| asked.task != task),
                Action::Ended(outcome) => self.outcome = Some(outcome),
                Action::SetTimer { .. } | Action::CancelTimer { .. } | Action::Yield | Action::History(_) => {}
            }
        }
    }

    /// Does what a run of a group has done, on the map.
    fn run(&mut self, ran: &Ran, plain: &mut Model) -> Result<(), String> {
        let asked = self.asked.remove(&ran.path).ok_or_else(|| format!("{ran:?} is not asked for"))?;
        if name(&asked) != ran.function || asked.input != ran.input {
            return Err(format!("{ran:?} is asked for as {asked:?}"));
        }
        run_alone(ran, plain)?;
        self.step(ended(asked.task, ran.answer.clone()), 0);
        Ok(())
    }
}

/// Runs a function alone, and compares it.
fn run_alone(ran: &Ran, plain: &mut Model) -> Result<(), String> {
    if ran.is_killed {
        return Ok(());
    }
    let mut program = Program::new(ran.number);
    while program.go(plain) {}
    if ran.seen.as_ref().is_some_and(|seen| *seen != program.seen) {
        return Err(format!("{ran:?} has seen what never was, instead of {}", program.seen));
    }
    if answer(&program) != ran.answer {
        return Err(format!("{ran:?} answers {:?} alone", answer(&program)));
    }
    plain.commit(&program.commit()).map_err(|error| error.to_string())?;
    Ok(())
}

/// Whether that could have happened one after the other, and leaves these values. `definitions`: that of each execution, and whether it is durable.
pub(super) fn check(
    history: &[Happened],
    definitions: &[(&Definition, bool)],
    values: &BTreeMap<BucketKey, Bytes>,
) -> Result<(), String> {
    let mut plain = Model::default();
    let mut executions: BTreeMap<usize, Sequential<'_>> = BTreeMap::new();
    for happened in history {
        let of = match happened {
            Happened::Began(execution, input) => {
                let (definition, is_durable) = definitions[*execution];
                let mut sequential = Sequential::new(definition, limits(is_durable));
                sequential.step(Event::Started { input: input.clone() }, 0);
                executions.insert(*execution, sequential);
                continue;
            }
            Happened::Alone(ran) => {
                run_alone(ran, &mut plain)?;
                continue;
            }
            Happened::Made(of, ..)
            | Happened::Told(of, ..)
            | Happened::Event(of, ..)
            | Happened::Ended(of, _)
            | Happened::Gone(of) => of,
        };
        let sequential = executions.get_mut(of).ok_or_else(|| format!("{happened:?} before its beginning"))?;
        if sequential.is_over {
            return Err(format!("{happened:?} after the reply"));
        }
        match happened {
            Happened::Made(_, is_told, runs) => {
                let mut copy = sequential.clone();
                runs.iter().try_for_each(|ran| copy.run(ran, &mut plain))?;
                if *is_told {
                    *sequential = copy;
                }
            }
            Happened::Told(_, task, input, answer) => {
                if let Some(asked) =
                    sequential.asked.extract_if(.., |_, asked| asked.task == *task).next().map(|(_, asked)| asked)
                {
                    if asked.input != *input {
                        return Err(format!("{happened:?} is asked for as {asked:?}"));
                    }
                    sequential.step(ended(asked.task, answer.clone()), 0);
                }
            }
            Happened::Event(_, event, now_ms) => sequential.step(event.clone(), *now_ms),
            Happened::Ended(_, outcome) => {
                sequential.is_over = true;
                if sequential.outcome.as_ref() != Some(outcome) {
                    return Err(format!("execution {of} comes to {:?} alone, and not to {outcome:?}", sequential.outcome));
                }
            }
            Happened::Gone(_) => sequential.is_over = true,
            Happened::Began(..) | Happened::Alone(_) => {}
        }
    }
    if plain.values() == *values { Ok(()) } else { Err(format!("the store holds {values:?}, and not {:?}", plain.values())) }
}
