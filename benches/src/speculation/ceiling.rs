//! How fast executions could be at best: the critical path with perfect prediction, of what was measured without speculation in the same run.
//!
//! All functions of an execution begin at once. Each takes as long as it took alone: its reads, one after the other, and its processor time. What cannot be had earlier is
//! waited for: a value that an earlier function of the execution writes, and the reply of a function that is called. At the end there is one commit. And all of it takes
//! the cores for as long as an execution did.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use speculation::Step;

use super::counts::{Counts, Used};

/// When a function computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Computes {
    /// When it has read, called and written.
    Last,
    /// When it has read, before it calls and writes.
    BeforeCalls,
}

/// What things cost, without speculation, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Costs {
    /// Processor time of a run, by function.
    pub run_cpu_ms: BTreeMap<String, f64>,
    /// A wait for the store.
    pub wait_ms: f64,
    /// Processor time of the server for an execution.
    pub execution_cpu_ms: f64,
}

/// A function's reads of different keys, without those that it has written itself. Each is a wait.
fn reads(step: &Step) -> usize {
    step.reads.iter().collect::<HashSet<_>>().len()
}

/// Whether a function ends with a commit for which it waits: a called one is a part of its caller's, a store in the server compares versions at once, and where only one key was read there is nothing to compare.
fn commits(step: &Step, is_remote: bool) -> bool {
    step.depth == 0 && (!step.writes.is_empty() || (is_remote && reads(step) >= 2))
}

impl Costs {
    /// From what functions took while these executions ran, one at a time, for which the server took `cpu_ms`.
    pub fn of(executions: &[&[Step]], counts: &Counts, cpu_ms: f64, is_remote: bool) -> Costs {
        let steps = || executions.iter().copied().flatten();
        let mut waits: HashMap<&str, usize> = HashMap::new();
        for step in steps() {
            *waits.entry(&step.function).or_default() += reads(step) + usize::from(commits(step, is_remote));
        }
        // One that calls others waits for these, too.
        let callers: HashSet<&str> = executions
            .iter()
            .flat_map(|steps| steps.windows(2))
            .filter(|pair| pair[1].depth > pair[0].depth)
            .map(|pair| pair[0].function.as_str())
            .collect();
        let leaves = || waits.iter().filter(|(name, _)| !callers.contains(*name));
        let blocked_s: f64 = leaves().filter_map(|(name, _)| counts.functions.get(*name)).map(|used| used.blocked_s).sum();
        let count: usize = leaves().map(|(_, count)| *count).sum();
        let cpu = |(name, Used { runs, running_s, .. }): (&String, &Used)| (name.clone(), running_s * 1e3 / runs.max(1.0));
        Costs {
            run_cpu_ms: counts.functions.iter().map(cpu).collect(),
            wait_ms: if count == 0 { 0.0 } else { blocked_s * 1e3 / count as f64 },
            execution_cpu_ms: cpu_ms / executions.len().max(1) as f64,
        }
    }

    /// What an execution takes at best, on so many cores.
    pub fn ideal_ms(&self, steps: &[Step], computes: Computes, cores: usize, is_remote: bool) -> f64 {
        let mut path = Path { costs: self, computes, written: HashMap::new(), steps };
        let (mut at, mut end_ms) = (0, 0.0_f64);
        while at < steps.len() {
            let ended = path.run(&mut at);
            end_ms = end_ms.max(ended);
        }
        // One group: it has what would be a commit of any of them.
        let has_commit = steps.iter().any(|step| !step.writes.is_empty() || (is_remote && !step.reads.is_empty()));
        let commit_ms = if has_commit { self.wait_ms } else { 0.0 };
        (end_ms + commit_ms).max(self.execution_cpu_ms / cores as f64)
    }
}

/// What is known of an execution, in the order of its program.
struct Path<'a> {
    costs: &'a Costs,
    computes: Computes,
    /// When what is under a key is there.
    written: HashMap<&'a str, f64>,
    steps: &'a [Step],
}

impl<'a> Path<'a> {
    /// When the function at `at` ends, and those that it calls; `at` is behind them then.
    fn run(&mut self, at: &mut usize) -> f64 {
        let step = &self.steps[*at];
        *at += 1;
        let (mut now, mut known) = (0.0_f64, HashSet::new());
        for key in step.reads.iter().filter(|key| known.insert(key.as_str())) {
            now = match self.written.get(key.as_str()) {
                Some(written) => now.max(*written),
                None => now + self.costs.wait_ms,
            };
        }
        let cpu_ms = self.costs.run_cpu_ms.get(&step.function).copied().unwrap_or_default();
        if self.computes == Computes::BeforeCalls {
            now += cpu_ms;
        }
        while self.steps.get(*at).is_some_and(|callee| callee.depth > step.depth) {
            now = now.max(self.run(at));
        }
        for key in &step.writes {
            self.written.insert(key, now);
        }
        if self.computes == Computes::Last { now + cpu_ms } else { now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(function: &str, depth: usize, reads: &[&str], writes: &[&str]) -> Step {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        Step { function: function.to_owned(), depth, reads: keys(reads), writes: keys(writes) }
    }

    fn costs(execution_cpu_ms: f64) -> Costs {
        let run_cpu_ms = [("a", 1.0), ("b", 2.0), ("c", 4.0)].map(|(name, ms)| (name.to_owned(), ms));
        Costs { run_cpu_ms: run_cpu_ms.into(), wait_ms: 10.0, execution_cpu_ms }
    }

    fn ideal(steps: &[Step], computes: Computes) -> f64 {
        costs(0.0).ideal_ms(steps, computes, 1, true)
    }

    #[test]
    fn functions_run_at_once_and_are_committed_once() {
        let steps = [step("a", 0, &["k"], &[]), step("b", 0, &["l", "m"], &[]), step("c", 0, &["k"], &["x"])];
        // The longest has two reads and 2 ms, and then there is a commit.
        assert_eq!(ideal(&steps, Computes::Last), 20.0 + 2.0 + 10.0);
        // Read twice, it is read once.
        assert_eq!(ideal(&[step("a", 0, &["k", "k"], &[])], Computes::Last), 10.0 + 1.0 + 10.0);
        assert_eq!(ideal(&[step("a", 0, &[], &[])], Computes::Last), 1.0);
    }

    #[test]
    fn a_reader_waits_for_the_writer_and_not_for_the_store() {
        let steps = [step("a", 0, &["k", "l"], &["x"]), step("b", 0, &["x", "m"], &[])];
        // `x` is written after two reads, before `a` computes; then `b` reads `m`.
        assert_eq!(ideal(&steps, Computes::Last), 20.0 + 10.0 + 2.0 + 10.0);
        // What a later function writes is not waited for.
        let steps = [step("b", 0, &["x"], &[]), step("a", 0, &["k", "l"], &["x"])];
        assert_eq!(ideal(&steps, Computes::Last), 21.0 + 10.0);
    }

    #[test]
    fn a_caller_waits_for_its_callees() {
        let steps =
            [step("a", 0, &["k"], &["x"]), step("b", 1, &["l", "m"], &[]), step("c", 2, &["n"], &[]), step("c", 1, &[], &[])];
        // `b`: two reads and 2 ms; the caller goes on for 1 ms.
        assert_eq!(ideal(&steps, Computes::Last), 22.0 + 1.0 + 10.0);
        // Where it computes first, it only hands over what its callees reply.
        assert_eq!(ideal(&steps, Computes::BeforeCalls), 22.0 + 10.0);
    }

    #[test]
    fn the_cores_are_a_bound_too() {
        let steps = [step("a", 0, &["k"], &[])];
        assert_eq!(costs(90.0).ideal_ms(&steps, Computes::Last, 1, true), 90.0);
        assert_eq!(costs(90.0).ideal_ms(&steps, Computes::Last, 2, true), 45.0);
        assert_eq!(costs(90.0).ideal_ms(&steps, Computes::Last, 8, true), 21.0);
    }

    #[test]
    fn costs_are_those_of_the_run_without_speculation() {
        let steps = vec![step("a", 0, &["k"], &["x"]), step("b", 1, &["l", "m"], &[])];
        let used = |runs, running_s, blocked_s| Used { runs, running_s, blocked_s };
        let functions = [("a".to_owned(), used(2.0, 0.004, 0.5)), ("b".to_owned(), used(2.0, 0.006, 0.04))];
        let counts = Counts { functions: functions.into(), ..Counts::default() };
        let costs = Costs::of(&[&steps, &steps], &counts, 30.0, true);
        // `a` waits for `b`, too, so only `b` says what a wait takes: two for each run, and no commit of its own.
        assert_eq!(costs.wait_ms, 10.0);
        assert_eq!((costs.run_cpu_ms["a"], costs.run_cpu_ms["b"], costs.execution_cpu_ms), (2.0, 3.0, 15.0));
        // In a workflow each commits, on a store in the server only what writes.
        let steps = vec![step("a", 0, &["k"], &["x"]), step("b", 0, &["l", "m"], &[])];
        let wait = |is_remote| Costs::of(&[&steps, &steps], &counts, 30.0, is_remote).wait_ms;
        assert_eq!((wait(true), wait(false)), (540.0 / 10.0, 540.0 / 8.0));
        // Of one key there is nothing to compare.
        let steps = vec![step("a", 0, &["k"], &[]), step("b", 0, &["l", "m"], &[])];
        assert_eq!(Costs::of(&[&steps, &steps], &counts, 30.0, true).wait_ms, 540.0 / 8.0);
    }
}
