//! Parallel: its branches; and what becomes of a frame's children: of branches, and of iterations.

use std::sync::Arc;

use serde_json::Value;

use super::failure::Fault;
use super::frame::{Branches, Frame, Phase, Results};
use super::history::{Details, HistoryKind};
use super::run::Run;
use super::transition::aborted;
use crate::definition::{Kind, MachineIndex, State};

impl Run<'_> {
    /// Starts all branches of a Parallel.
    pub(super) fn start_branches(&mut self, slot: u32, state: &State, branches: &[MachineIndex]) -> Result<(), Fault> {
        let effective = self.effective_input(slot, state)?;
        let given = self.given(slot, state, &effective)?;
        let last = self.note_in(slot, HistoryKind::ParallelStateStarted, |_, _| Details::default());
        let running = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        if let Some(frame) = self.execution.frames.get_mut(slot) {
            frame.phase = Phase::Parallel(Branches { running, results: Results::new(branches.len()) });
        }
        for (number, branch) in (0..).zip(branches) {
            if !self.spawn(Some(slot), number, *branch, Arc::clone(&given), None, last) {
                self.cancel_children(slot, None);
                return Err(self.too_many_frames());
            }
        }
        Ok(())
    }

    pub(super) fn too_many_frames(&self) -> Fault {
        Fault::runtime(format!(
            "More than {} branches and iterations are alive at once. Lower MaxConcurrency.",
            self.execution.limits.frames
        ))
    }

    /// A branch or an iteration has given its output. Its frame is gone.
    pub(super) fn child_succeeded(&mut self, slot: u32, number: u32, output: Arc<Value>, last: u64) {
        let Some(state) = self.state(slot) else { return };
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        match (&mut frame.phase, &state.kind) {
            (Phase::Parallel(branches), _) => {
                branches.running = branches.running.saturating_sub(1);
                frame.last_event = last;
                if !branches.results.put(number, output) {
                    self.give_up(slot, None, Fault::too_large(&state.name));
                } else if branches.running == 0 {
                    let results = branches.results.take();
                    self.branches_succeeded(slot, state, results);
                }
            }
            (Phase::Map(iterations), Kind::Map(map)) => {
                iterations.running = iterations.running.saturating_sub(1);
                if iterations.results.put(number, output) {
                    self.iteration_succeeded(slot, state, map, number, last);
                } else {
                    frame.last_event = last;
                    self.give_up(slot, Some(&state.name), Fault::too_large(&state.name));
                }
            }
            _ => {}
        }
    }

    /// Gives up all branches or iterations of a state, which has failed.
    pub(super) fn give_up(&mut self, slot: u32, map_name: Option<&Arc<str>>, fault: Fault) {
        self.cancel_children(slot, map_name);
        self.fail(slot, fault);
    }

    fn branches_succeeded(&mut self, slot: u32, state: &State, results: Arc<Value>) {
        let last = self.execution.frames.get(slot).map_or(0, |frame| frame.last_event);
        self.note(last, HistoryKind::ParallelStateSucceeded, |_| Details::default());
        match self.exit_with(slot, state, results) {
            Ok(exit) => self.leave(slot, state, exit, state.next),
            Err(fault) => self.fail(slot, fault),
        }
    }

    /// A branch or an iteration has failed. Its frame is still there.
    pub(super) fn child_failed(&mut self, slot: u32, child: u32, fault: Fault) {
        let Some(state) = self.state(slot) else { return };
        let Some(failed) = self.execution.frames.remove(child) else { return };
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        match (&mut frame.phase, &state.kind) {
            (Phase::Map(iterations), Kind::Map(map)) => {
                iterations.running = iterations.running.saturating_sub(1);
                iterations.failed = iterations.failed.saturating_add(1);
                if map.writer.is_some() {
                    iterations.failures.push(failed.number);
                }
                let fits = iterations.results.put(failed.number, Arc::new(fault.failure.output()));
                frame.last_event = failed.last_event;
                if fits {
                    self.iteration_failed(slot, state, map, &failed, fault);
                } else {
                    self.give_up(slot, Some(&state.name), Fault::too_large(&state.name));
                }
            }
            _ => {
                frame.last_event = failed.last_event;
                self.note_aborted_task(slot, &failed);
                self.give_up(slot, None, fault);
            }
        }
    }

    /// A Task whose error ends the state around it is said to be given up, like those that run beside it. What follows does not follow that event.
    pub(super) fn note_aborted_task(&mut self, slot: u32, failed: &Frame) {
        let previous = self.execution.frames.get(slot).map_or(0, |frame| frame.last_event);
        if matches!(self.definition.state(failed.state).map(|state| &state.kind), Some(Kind::Task(_))) {
            self.note(previous, HistoryKind::TaskStateAborted, |_| Details::default());
        }
    }

    /// Gives up all branches or iterations of a frame. The history says so, with the frame's last event before each.
    pub(super) fn cancel_children(&mut self, slot: u32, map_name: Option<&Arc<str>>) {
        let previous = self.execution.frames.get(slot).map_or(0, |frame| frame.last_event);
        for child in self.execution.frames.below(Some(slot)) {
            self.cancel(child);
            let Some(frame) = self.execution.frames.get(child) else { continue };
            let (parent, number) = (frame.parent, frame.number);
            let kind = self.definition.state(frame.state).and_then(|state| aborted(frame, &state.kind));
            if let Some(name) = map_name.filter(|_| parent == Some(slot)) {
                self.note(previous, HistoryKind::MapIterationAborted, |_| Details {
                    name: Some(Arc::clone(name)),
                    index: Some(number),
                    ..Details::default()
                });
            }
            if let Some(kind) = kind {
                self.note(previous, kind, |_| Details::default());
            }
        }
        // Parents before children would leave children without a way up.
        for child in self.execution.frames.below(Some(slot)).into_iter().rev() {
            self.execution.frames.remove(child);
        }
        if let Some(frame) = self.execution.frames.get_mut(slot) {
            frame.phase = Phase::Ready;
        }
    }
}
