//! Functions that call each other: which calls are begun with their caller. The rules of `runtime/src/invoke/ahead/` and `runtime/src/speculate/sequence.rs`, in short.

use super::Ahead;
use super::execution::{Execution, Op, Phase, Role};
use super::server::Server;
use super::trace::Trace;

/// The functions that a run calls, in their order.
fn callees(trace: &Trace, caller: usize) -> Vec<usize> {
    let depth = trace.runs[caller].depth;
    let below = trace.runs.iter().enumerate().skip(caller + 1).take_while(|(_, run)| run.depth > depth);
    below.filter(|(_, run)| run.depth == depth + 1).map(|(at, _)| at).collect()
}

impl Server<'_> {
    pub(super) fn advance_tree(&mut self, execution: usize) {
        let of = &self.executions[execution];
        if of.is_over || of.is_committing {
            return;
        }
        match of.phases[0] {
            Phase::Asked => self.begin_call(execution, 0, false),
            Phase::Running(_) => {}
            Phase::Ended(_) => {
                let runs = &of.trace.runs;
                let reads: usize = runs.iter().map(|run| run.reads.len()).sum();
                let waits = runs.iter().any(|run| run.writes) || (self.prices.is_remote && reads >= 2);
                let of = &mut self.executions[execution];
                if of.committed == 0 && waits {
                    of.is_committing = true;
                    self.begin(execution, Role::Commit(1), vec![Op::Commit]);
                    return;
                }
                of.is_over = true;
                self.outcome.adopted += of.was_ahead.iter().filter(|was_ahead| **was_ahead).count();
                self.over(execution);
            }
        }
    }

    fn begin_call(&mut self, execution: usize, run: usize, is_ahead: bool) {
        let trace = self.executions[execution].trace;
        if !is_ahead && self.is_known(execution, run) {
            self.outcome.skipped += 1;
            // What those behind it read of that they read of the same transaction.
            self.executions[execution].wrote[run..trace.end_of(run)].fill(true);
            let ops = self.ops_of_skip(execution);
            let token = self.begin(execution, Role::Run(run), ops);
            self.executions[execution].phases[run] = Phase::Running(token);
            return;
        }
        let ops = self.ops(execution, &trace.runs[run], &callees(trace, run));
        self.executions[execution].was_ahead[run] = is_ahead;
        let token = self.begin(execution, Role::Run(run), ops);
        self.executions[execution].phases[run] = Phase::Running(token);
        self.begin_expected(execution, run);
    }

    /// Whether a reply stands for a call, with all that is called for it.
    fn is_known(&self, execution: usize, run: usize) -> bool {
        let Execution { trace, goes_ahead, .. } = self.executions[execution];
        let all = &trace.runs[run..trace.end_of(run)];
        let has_level = self.setup.ahead == Ahead::Skips && goes_ahead && trace.known;
        has_level && trace.runs[run].depth > 0 && all.iter().all(|run| run.unchanged)
    }

    /// Begins calls that a run is expected to make: those of an execution that ran before. The first call of a run that reads nothing before it comes too early for that.
    fn begin_expected(&mut self, execution: usize, caller: usize) {
        let of = &self.executions[execution];
        if !of.goes_ahead || !of.trace.known {
            return;
        }
        let all = callees(of.trace, caller);
        let depth = self.depth_of_calls();
        for (ordinal, callee) in all.into_iter().enumerate() {
            let of = &self.executions[execution];
            let is_begun = |run: &usize| of.was_ahead[*run] && !of.was_reached[*run];
            if callees(of.trace, caller).iter().filter(|run| is_begun(run)).count() >= depth || !self.has_place() {
                return;
            }
            let is_worth = ordinal > 0 || !of.trace.runs[caller].reads.is_empty();
            let is_new = of.phases[callee] == Phase::Asked && !of.was_reached[callee] && !of.was_refused[callee];
            if !is_worth || !is_new || self.is_known(execution, callee) {
                continue;
            }
            if self.random.unit() < self.setup.share {
                self.begin_call(execution, callee, true);
            } else {
                self.executions[execution].was_refused[callee] = true;
            }
        }
    }

    /// A run has come to a call. Whether that has ended.
    pub(super) fn call(&mut self, execution: usize, role: Role, callee: usize) -> bool {
        self.executions[execution].was_reached[callee] = true;
        if self.executions[execution].phases[callee] == Phase::Asked {
            self.begin_call(execution, callee, false);
        }
        if let Role::Run(caller) = role {
            self.begin_expected(execution, caller);
        }
        matches!(self.executions[execution].phases[callee], Phase::Ended(_))
    }
}
