//! Whether it pays to start a state before the one before it has ended: the time that it has saved, less the processor time that it has wasted, as a running average for each edge.
//!
//! Conflicts with transactions outside are no matter of one edge: what is lost by them a whole execution has lost, and a workflow whose executions lose more than they save does not go ahead.
//!
//! An edge whose average is below zero is off. One of [`PROBED`] executions tries it nevertheless, so that it comes on again when it would pay. An edge that has lost [`LOSSES_MAX`] times in a
//! row is off whatever it has saved before: so inputs that are made to mispredict waste so many runs at most, and one in 64 after that.

use std::time::Duration;

use serde::Serialize;
use sledge_workflow::definition::StateIndex;

use super::bounded::{Bounded, Weigh};
use super::shown;

/// One of so many executions tries an edge that is off.
pub const PROBED: u8 = 64;
/// Outcomes without which an edge is not off: the first one may have been bad luck.
pub const SAMPLES_MIN: u8 = 4;
/// Losses in a row after which an edge is off.
pub const LOSSES_MAX: u8 = 16;
/// The most that one outcome counts: a clock that was set, or a function that waited for an hour, must not decide for all times.
const OUTCOME_MAX: Duration = Duration::from_secs(10);
/// The part of all bytes that whole workflows may have.
const WORKFLOWS_PART: usize = 8;
/// The average moves by this part of the difference.
const PART: i64 = 8;

/// From one state of a workflow to the one that is started before that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The fingerprint of the workflow's definition.
    pub workflow: u64,
    /// The state that has not ended.
    pub from: StateIndex,
    /// The one that is started.
    pub to: StateIndex,
}

/// Whether an edge is speculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It pays, or is not known yet.
    Speculate,
    /// It does not pay, and is tried this time.
    Probe,
    /// It does not pay.
    Refrain,
}

impl Verdict {
    /// Whether the state is started.
    #[must_use]
    pub const fn is_started(self) -> bool {
        matches!(self, Verdict::Speculate | Verdict::Probe)
    }
}

/// What edges have saved and wasted, and whole executions of workflows.
#[derive(Debug)]
pub struct Benefits {
    edges: Bounded<Edge, Benefit>,
    /// By the fingerprints of their definitions.
    workflows: Bounded<u64, Benefit>,
}

/// What one has.
#[derive(Debug, Default)]
pub(super) struct Benefit {
    mean_ns: i64,
    samples: u8,
    /// Losses in a row.
    losses: u8,
    /// How often it was asked for since it is off, or since the last probe.
    asked: u8,
}

impl Weigh for Benefit {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Benefit {
    const fn is_off(&self) -> bool {
        self.mean_ns < 0 && self.samples >= SAMPLES_MIN
    }

    /// Whether it is speculated now: to be asked once for each start.
    pub(super) fn verdict(&mut self) -> Verdict {
        if !self.is_off() {
            return Verdict::Speculate;
        }
        self.asked += 1;
        if self.asked < PROBED {
            return Verdict::Refrain;
        }
        self.asked = 0;
        Verdict::Probe
    }

    /// A run that was started so was right, has saved that time, and has cost that.
    pub(super) fn adopted(&mut self, saved: Duration, cost: Duration) {
        match saved.checked_sub(cost) {
            Some(saved) => self.count(nanoseconds(saved)),
            None => self.lost(cost - saved),
        }
    }

    /// A run that was started so was wrong, and has wasted that time.
    pub(super) fn lost(&mut self, wasted: Duration) {
        self.count(-nanoseconds(wasted));
    }

    fn count(&mut self, outcome_ns: i64) {
        self.samples = self.samples.saturating_add(1);
        self.mean_ns += (outcome_ns - self.mean_ns) / PART;
        self.losses = if outcome_ns < 0 { self.losses.saturating_add(1) } else { 0 };
        if self.losses >= LOSSES_MAX {
            self.mean_ns = self.mean_ns.min(outcome_ns);
        }
    }
}

/// At least one nanosecond: a squash is never for nothing.
fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.min(OUTCOME_MAX).as_nanos()).unwrap_or(i64::MAX).max(1)
}

impl Benefits {
    /// Nothing yet, and room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Benefits {
        let workflows_bytes = bytes_max / WORKFLOWS_PART;
        Benefits {
            edges: Bounded::new(bytes_max - workflows_bytes, usize::MAX),
            workflows: Bounded::new(workflows_bytes, usize::MAX),
        }
    }

    /// Whether an edge is speculated now.
    pub fn verdict(&mut self, edge: &Edge) -> Verdict {
        self.edges.get_mut(edge).map_or(Verdict::Speculate, Benefit::verdict)
    }

    /// A run that was started so was right, has saved that time, and has cost that.
    pub fn adopted(&mut self, edge: Edge, saved: Duration, cost: Duration) {
        self.edges.change(edge, Benefit::default, |benefit| benefit.adopted(saved, cost));
    }

    /// A run that was started so was wrong, and has wasted that processor time.
    pub fn squashed(&mut self, edge: Edge, wasted: Duration) {
        self.edges.change(edge, Benefit::default, |benefit| benefit.lost(wasted));
    }

    /// Whether an execution of a workflow goes ahead of itself: to be asked once for each.
    pub fn verdict_of_workflow(&mut self, workflow: u64) -> Verdict {
        self.workflows.get_mut(&workflow).map_or(Verdict::Speculate, Benefit::verdict)
    }

    /// An execution that went ahead of itself has saved and lost so much time.
    pub fn executed(&mut self, workflow: u64, saved: Duration, lost: Duration) {
        self.workflows.change(workflow, Benefit::default, |benefit| benefit.adopted(saved, lost));
    }

    /// Drops what is known of a workflow.
    pub fn forget(&mut self, workflow: u64) {
        self.workflows.remove(&workflow);
        self.edges.retain(|edge| edge.workflow != workflow);
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.edges.bytes() + self.workflows.bytes()
    }

    /// Drops what was not used for longest; false where there is nothing.
    pub fn evict(&mut self) -> bool {
        self.edges.evict() || self.workflows.evict()
    }

    /// All that is known, for people.
    #[must_use]
    pub fn known(&self) -> Vec<KnownEdge> {
        let mut known: Vec<_> = self.edges.iter().collect();
        known.sort_unstable_by_key(|(edge, _)| **edge);
        let known = known.into_iter().map(|(edge, benefit)| KnownEdge {
            workflow: shown(edge.workflow),
            from: edge.from,
            to: edge.to,
            mean_us: benefit.mean_ns / 1_000,
            is_off: benefit.is_off(),
        });
        known.collect()
    }
}

/// What an edge has brought.
#[derive(Clone, Debug, Serialize)]
pub struct KnownEdge {
    /// The fingerprint of the workflow's definition.
    pub workflow: String,
    /// The number of the state that has not ended.
    pub from: StateIndex,
    /// That of the state that is started.
    pub to: StateIndex,
    /// What is saved on average; below zero what is wasted.
    pub mean_us: i64,
    /// Whether it is not speculated.
    pub is_off: bool,
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::*;

    fn edge(to: u32) -> Edge {
        Edge { workflow: 1, from: state(0), to: state(to) }
    }

    const MANY: usize = 1 << 20;
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_edge_is_speculated_until_it_has_wasted_more_than_it_saved_and_again_when_probes_pay() {
        let mut benefits = Benefits::new(MANY);
        (0..3).for_each(|_| benefits.squashed(edge(1), MS));
        assert_eq!(benefits.verdict(&edge(1)), Verdict::Speculate, "too few samples");
        benefits.squashed(edge(1), MS);
        assert_eq!(benefits.verdict(&edge(2)), Verdict::Speculate, "another edge");
        let (mut asked, mut probes) = (0, 0);
        loop {
            asked += 1;
            match benefits.verdict(&edge(1)) {
                Verdict::Refrain => assert!(asked % u32::from(PROBED) != 0, "{asked}"),
                Verdict::Probe => {
                    assert_eq!(asked % u32::from(PROBED), 0);
                    probes += 1;
                    benefits.adopted(edge(1), 2 * MS, MS);
                }
                Verdict::Speculate => break,
            }
        }
        assert!((1..=8).contains(&probes), "{probes} probes");
        assert!(!benefits.known()[0].is_off);
    }

    #[test]
    fn nine_hits_of_ten_stay_on_and_nine_misses_of_ten_go_off() {
        for seed in 0..50 {
            let (mut random, mut benefits) = (fastrand::Rng::with_seed(seed), Benefits::new(MANY));
            for _ in 0..200 {
                for (to, hits) in [(1, 90), (2, 10)] {
                    match random.u8(..100) < hits {
                        true => benefits.adopted(edge(to), 2 * MS, MS),
                        false => benefits.squashed(edge(to), MS),
                    }
                }
            }
            (0..20).for_each(|_| benefits.adopted(edge(1), MS, Duration::ZERO));
            (0..20).for_each(|_| benefits.squashed(edge(2), MS));
            assert!(benefits.verdict(&edge(1)) == Verdict::Speculate && benefits.verdict(&edge(2)) == Verdict::Refrain, "{seed}");
        }
    }

    /// Poison: whatever an edge has saved before, inputs that are made to mispredict turn it off.
    #[test]
    fn an_edge_that_always_loses_is_off_after_so_many_losses_whatever_it_has_saved() {
        for seed in 0..200 {
            let (mut random, mut benefits) = (fastrand::Rng::with_seed(seed), Benefits::new(MANY));
            for _ in 0..random.u32(..50) {
                let saved_us_max = 10_u64.pow(random.u32(..11));
                benefits.adopted(edge(1), Duration::from_micros(random.u64(..saved_us_max)), Duration::ZERO);
            }
            let mut losses = 0;
            while benefits.verdict(&edge(1)) == Verdict::Speculate {
                losses += 1;
                assert!(losses <= LOSSES_MAX, "seed {seed}");
                benefits.squashed(edge(1), Duration::from_nanos(random.u64(..1_000)));
            }
            // From then on one in 64.
            let mut started = 0;
            for _ in 0..6_400 {
                if benefits.verdict(&edge(1)).is_started() {
                    started += 1;
                    benefits.squashed(edge(1), Duration::from_nanos(random.u64(..1_000)));
                }
            }
            assert_eq!(started, 100, "seed {seed}");
        }
    }

    #[test]
    fn an_edge_that_is_always_right_and_costs_more_than_it_saves_goes_off() {
        let mut benefits = Benefits::new(MANY);
        (0..LOSSES_MAX).for_each(|_| benefits.adopted(edge(1), MS, MS + Duration::from_micros(1)));
        assert_eq!((benefits.verdict(&edge(1)), benefits.known()[0].is_off), (Verdict::Refrain, true));
        (0..LOSSES_MAX).for_each(|_| benefits.adopted(edge(2), MS, MS));
        assert_eq!(benefits.verdict(&edge(2)), Verdict::Speculate, "nothing is lost");
    }

    #[test]
    fn one_outcome_counts_only_so_much() {
        let mut benefits = Benefits::new(MANY);
        benefits.adopted(edge(1), Duration::MAX, Duration::ZERO);
        assert_eq!(benefits.known()[0].mean_us, 10_000_000 / 8);
        benefits.squashed(edge(2), Duration::MAX);
        assert_eq!(benefits.known()[1].mean_us, -10_000_000 / 8);
        benefits.forget(2);
        assert_eq!(benefits.known().len(), 2);
        benefits.forget(1);
        assert_eq!(benefits.bytes(), 0);
    }

    #[test]
    fn a_workflow_whose_executions_lose_more_than_they_save_goes_ahead_seldom_until_it_would_pay_again() {
        let mut benefits = Benefits::new(10_000);
        let ms = Duration::from_millis;
        let is_ahead = |benefits: &mut Benefits| benefits.verdict_of_workflow(1).is_started();
        (0..20).for_each(|_| benefits.executed(1, ms(5), ms(1)));
        assert!(is_ahead(&mut benefits));
        (0..20).for_each(|_| benefits.executed(1, ms(1), ms(5)));
        let ahead = (0..640).filter(|_| is_ahead(&mut benefits)).count();
        assert_eq!(ahead, 10);
        assert!(benefits.verdict_of_workflow(2).is_started(), "another workflow");
        (0..20).for_each(|_| benefits.executed(1, ms(5), ms(0)));
        assert!(is_ahead(&mut benefits));
        (0..20).for_each(|_| benefits.executed(1, ms(0), ms(5)));
        benefits.forget(1);
        assert!(is_ahead(&mut benefits));
        assert_eq!(benefits.bytes(), 0);
    }
}
