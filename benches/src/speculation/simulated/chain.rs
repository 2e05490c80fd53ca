//! Workflows: what goes ahead of what is committed, and what is committed together. The rules of `runtime/src/workflow/speculative/`, in short.

use super::Ahead;
use super::execution::{Execution, Op, Phase, Role};
use super::server::{Due, Server};
use super::trace::{Run, Way};

/// A commit that is expected to take less or longer than that is not waited with.
const HELD_MS: (f64, f64) = (1.0, 50.0);

impl Server<'_> {
    pub(super) fn advance_chain(&mut self, execution: usize) {
        if self.executions[execution].is_over {
            return;
        }
        self.drop_wrong(execution);
        self.begin_more(execution);
        while self.commit(execution) {}
        let of = &mut self.executions[execution];
        if of.committed == of.phases.len() {
            of.is_over = true;
            self.outcome.adopted += of.was_ahead.iter().filter(|was_ahead| **was_ahead).count();
            return self.over(execution);
        }
        self.begin_more(execution);
    }

    /// Runs on a wrong way are dropped when the run before them has ended.
    fn drop_wrong(&mut self, execution: usize) {
        let of = &mut self.executions[execution];
        let Some((_, tokens)) = of.wrong.take_if(|(at, _)| matches!(of.phases[*at - 1], Phase::Ended(_))) else { return };
        for token in tokens {
            self.outcome.dropped += 1;
            self.drop_task(token);
        }
    }

    /// Whether a commit takes a round trip with that run in it. What goes ahead compares one version, too: its reads may be older than the commits before it.
    fn commits(&self, run: &Run, goes_ahead: bool) -> bool {
        let reads_min = if goes_ahead { 1 } else { 2 };
        run.writes || (self.prices.is_remote && run.reads.len() >= reads_min)
    }

    /// Commits the first runs that have ended. Whether that is done at once.
    fn commit(&mut self, execution: usize) -> bool {
        let of = &self.executions[execution];
        let from = of.committed;
        let end = from + of.phases[from..].iter().take_while(|phase| matches!(phase, Phase::Ended(_))).count();
        if of.is_committing || end == from || self.holds_back(execution) {
            return false;
        }
        let Execution { trace, goes_ahead, .. } = self.executions[execution];
        let waits = trace.runs[from..end].iter().any(|run| self.commits(run, goes_ahead));
        let of = &mut self.executions[execution];
        of.held_since = None;
        if waits {
            of.is_committing = true;
            self.begin(execution, Role::Commit(end), vec![Op::Commit]);
        } else {
            of.committed = end;
        }
        !waits
    }

    /// Whether runs are about to end that would be committed together with what has ended.
    fn holds_back(&mut self, execution: usize) -> bool {
        let of = &self.executions[execution];
        // An answer that stands for a run is there as soon as that is begun: it is in the same group.
        let is_skipped = |(phase, was_skipped): (&Phase, &bool)| matches!(phase, Phase::Running(_)) && *was_skipped;
        if of.phases.iter().zip(&of.was_skipped).any(is_skipped) {
            return true;
        }
        let commit_ms = self.prices.wait_ms + self.prices.event_ms;
        let has_time = self.has_time() && (HELD_MS.0..=HELD_MS.1).contains(&commit_ms);
        let of = &self.executions[execution];
        let is_running = |run: &usize| matches!(of.phases[*run], Phase::Running(_));
        let mut running = (of.committed..of.phases.len()).filter(is_running).peekable();
        if !has_time || running.peek().is_none() {
            return false;
        }
        let remaining = |run: usize| self.expected_ms(execution, &of.trace.runs[run]) - (self.machine.now - of.began[run]);
        if !running.all(|run| remaining(run) < commit_ms) {
            return false;
        }
        let now = self.machine.now;
        let of = &mut self.executions[execution];
        if of.held_since.is_none() {
            of.held_since = Some(now);
            self.machine.later(commit_ms, Due::Held(execution));
        }
        self.executions[execution].held_since.is_some_and(|since| now < since + commit_ms)
    }

    /// How long a run takes that has a core whenever it needs one.
    fn expected_ms(&self, execution: usize, run: &Run) -> f64 {
        let prices = self.prices;
        prices.event_ms + prices.of_run(run) + self.reads(execution, run).count() as f64 * (prices.wait_ms + prices.event_ms)
    }

    /// Begins what is asked for, and what may be ahead of that.
    fn begin_more(&mut self, execution: usize) {
        let depth = self.depth_of_workflows();
        let of = &self.executions[execution];
        let (trace, goes_ahead, first, is_committing) = (of.trace, of.goes_ahead, of.committed, of.is_committing);
        let answers = trace.known && self.setup.ahead >= Ahead::Outputs;
        let wrong = of.wrong.as_ref().map_or(0, |(_, tokens)| tokens.len());
        let is_running = |phase: &&Phase| matches!(phase, Phase::Running(_));
        let mut under_way = of.phases.iter().filter(is_running).count() + wrong;
        // Runs that are asked for ahead and have not ended.
        let mut open = 0;
        for at in first..trace.runs.len() {
            let run = &trace.runs[at];
            let is_asked = at == first && !is_committing;
            if at > first || is_committing {
                if !goes_ahead {
                    return;
                }
                let has_ended = at == 0 || matches!(self.executions[execution].phases[at - 1], Phase::Ended(_));
                if !has_ended {
                    let way = if answers { &run.by_answers } else { &run.by_paths };
                    if open > depth || *way == Way::Unknown {
                        return;
                    }
                    if let Way::Wrong(wrong) = way {
                        return self.begin_wrong(execution, at, wrong, (depth + 1).saturating_sub(under_way));
                    }
                }
            }
            let of = &self.executions[execution];
            let has_hole = !answers && run.needs.iter().any(|need| !matches!(of.phases[*need], Phase::Ended(_)));
            let may_begin = is_asked || (under_way <= depth && !has_hole && self.has_place());
            if of.phases[at] == Phase::Asked && may_begin {
                self.begin_run(execution, at, !is_asked);
                under_way += 1;
            }
            open += usize::from(!matches!(self.executions[execution].phases[at], Phase::Ended(_)));
        }
    }

    fn begin_run(&mut self, execution: usize, at: usize, is_ahead: bool) {
        let of = &self.executions[execution];
        let (trace, run) = (of.trace, &of.trace.runs[at]);
        let is_skipped = self.setup.ahead == Ahead::Skips && of.goes_ahead && trace.known && run.unchanged;
        let ops = if is_skipped { self.ops_of_skip(execution) } else { self.ops(execution, run, &[]) };
        self.outcome.skipped += usize::from(is_skipped);
        let now = self.machine.now;
        let of = &mut self.executions[execution];
        (of.was_ahead[at], of.was_skipped[at], of.began[at]) = (is_ahead && !is_skipped, is_skipped, now);
        let token = self.begin(execution, Role::Run(at), ops);
        self.executions[execution].phases[at] = Phase::Running(token);
    }

    /// Begins so many of the runs on a wrong way.
    fn begin_wrong(&mut self, execution: usize, at: usize, runs: &[Run], most: usize) {
        if self.executions[execution].wrong.is_some() {
            return;
        }
        let mut tokens = Vec::new();
        for run in runs.iter().take(most) {
            if !self.has_place() {
                break;
            }
            let ops = self.ops(execution, run, &[]);
            tokens.push(self.begin(execution, Role::Wrong, ops));
        }
        self.executions[execution].wrong = Some((at, tokens));
    }
}
