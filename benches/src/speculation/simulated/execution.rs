//! Executions and their tasks.

use super::machine::Token;
use super::trace::Trace;

/// What a task does next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    Compute(f64),
    /// What the server does beside.
    Event(f64),
    /// A read of what that run writes, if one does.
    Read(Option<usize>),
    Commit,
    Call(usize),
    Wrote,
}

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// That run.
    Run(usize),
    /// A run on a wrong way.
    Wrong,
    /// The commit of all before that run.
    Commit(usize),
    /// Work of nothing that counts.
    Other,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) execution: usize,
    pub(super) role: Role,
    pub(super) ops: Vec<Op>,
    pub(super) at: usize,
    /// What it waits for to be written, or to end.
    pub(super) waits_for: Option<usize>,
    pub(super) took: f64,
    /// Whether something comes of it.
    pub(super) counts: bool,
    pub(super) has_ended: bool,
    pub(super) is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Asked,
    Running(Token),
    Ended(Token),
}

/// What an execution has come to.
#[derive(Debug)]
pub(super) struct Execution<'a> {
    pub(super) trace: &'a Trace,
    pub(super) arrived: f64,
    pub(super) goes_ahead: bool,
    pub(super) phases: Vec<Phase>,
    pub(super) wrote: Vec<bool>,
    pub(super) began: Vec<f64>,
    /// Whether it was begun before it was asked for.
    pub(super) was_ahead: Vec<bool>,
    /// Whether a known answer stands for it.
    pub(super) was_skipped: Vec<bool>,
    /// Calls that were made, and those that are not to be begun before.
    pub(super) was_reached: Vec<bool>,
    pub(super) was_refused: Vec<bool>,
    /// Runs on a wrong way before that run.
    pub(super) wrong: Option<(usize, Vec<Token>)>,
    pub(super) committed: usize,
    pub(super) is_committing: bool,
    pub(super) held_since: Option<f64>,
    pub(super) is_over: bool,
    pub(super) has_begun: bool,
    pub(super) waits: usize,
}

impl<'a> Execution<'a> {
    /// One that has not begun.
    pub(super) fn new(trace: &'a Trace, arrived: f64, goes_ahead: bool) -> Execution<'a> {
        let count = trace.runs.len();
        let none = || vec![false; count];
        Execution {
            trace,
            arrived,
            goes_ahead,
            phases: vec![Phase::Asked; count],
            wrote: none(),
            began: vec![0.0; count],
            was_ahead: none(),
            was_skipped: none(),
            was_reached: none(),
            was_refused: none(),
            wrong: None,
            committed: 0,
            is_committing: false,
            held_since: None,
            is_over: false,
            has_begun: false,
            waits: 0,
        }
    }
}
