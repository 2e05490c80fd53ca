//! Phases: parts of a function's work, each with what it needs of the processor.
//!
//! The annotation of *Microtasks* (III-B): a function's author measures what its parts need and declares that, here in the configuration;
//! `sledge:note`'s `phase(id)` says where a part begins. What is declared is [`Phases`], where an invocation is and how long it was in each
//! phase is its [`PhaseClock`]. What phases really need is measured by a [`Profiler`], while that is asked for. Where microtasks have classes, what a phase declares is a first guess at [how long](Phase::burst) it computes at a time.

mod clock;
mod profile;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::classes::BOUNDS;

pub use clock::PhaseClock;
pub use profile::{Measured, PROFILE_SECONDS, PROFILE_SECONDS_DEFAULT, Profiler, Profiling};

/// What a phase is called in which a request begins, where that is not declared. Its id is 0.
pub const BEGIN: &str = "begin";

/// A part of a function's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseConfig {
    /// By which the function says that it begins. A request begins in phase 0, which need not be declared.
    pub id: u32,
    /// Its name, in records and metrics: letters, digits, `.`, `-` and `_`.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Processor time that a request is expected to use in it, in microseconds.
    #[schemars(range(min = 1, max = 86_400_000_000_u64))]
    pub cpu_us: u64,
    /// The part of a core that it uses while it lasts, waiting included: 100 for one that only computes, less for one that mostly waits.
    #[serde(default = "cpu_percent_default")]
    #[schemars(range(min = 1, max = 100))]
    pub cpu_percent: u32,
}

const fn cpu_percent_default() -> u32 {
    100
}

/// A phase that a function declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// By which the function says that it begins.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Processor time that a request is expected to use in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// The part of a core that it uses while it lasts, waiting included.
    pub cpu_percent: u32,
}

/// From so many percent of a core on, a phase is taken to compute without a wait.
const COMPUTES_PERCENT: u32 = 50;

impl Phase {
    /// For how long it computes at a time, if that can be told: one that hardly waits, for all of its time; one that mostly waits, for as long as the shortest class at most.
    #[must_use]
    pub fn burst(&self) -> Option<Duration> {
        let cpu = Duration::from_micros(self.cpu_us?);
        Some(if self.cpu_percent >= COMPUTES_PERCENT { cpu } else { cpu.min(BOUNDS[0]) })
    }
}

/// The phases that a function declares; the first one is that in which a request begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phases(Vec<Phase>);

impl Phases {
    /// Those of a configuration that was checked; none if it declares none.
    #[must_use]
    pub fn new(declared: &[PhaseConfig]) -> Option<Arc<Phases>> {
        if declared.is_empty() {
            return None;
        }
        let phase = |config: &PhaseConfig| {
            let PhaseConfig { id, name, cpu_us, cpu_percent } = config.clone();
            Phase { id, name, cpu_us: Some(cpu_us), cpu_percent }
        };
        let mut phases: Vec<Phase> = declared.iter().map(phase).collect();
        if phases.iter().all(|phase| phase.id != 0) {
            phases.push(Phase { id: 0, name: BEGIN.to_owned(), cpu_us: None, cpu_percent: 100 });
        }
        phases.sort_by_key(|phase| phase.id);
        Some(Arc::new(Phases(phases)))
    }

    /// All of them, by id.
    #[must_use]
    pub fn as_slice(&self) -> &[Phase] {
        &self.0
    }

    /// The place of the one with that id.
    fn index(&self, id: u32) -> Option<usize> {
        self.0.binary_search_by_key(&id, |phase| phase.id).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(id: u32, name: &str) -> PhaseConfig {
        PhaseConfig { id, name: name.to_owned(), cpu_us: 5, cpu_percent: 10 }
    }

    #[test]
    fn a_request_begins_in_phase_0_declared_or_not() {
        assert_eq!(Phases::new(&[]), None);
        let phases = Phases::new(&[declared(7, "write"), declared(3, "read")]).unwrap();
        let names = |phases: &Phases| phases.0.iter().map(|phase| (phase.id, phase.name.clone())).collect::<Vec<_>>();
        assert_eq!(names(&phases), [(0, "begin".to_owned()), (3, "read".to_owned()), (7, "write".to_owned())]);
        let phases = Phases::new(&[declared(7, "write"), declared(0, "read")]).unwrap();
        assert_eq!(names(&phases), [(0, "read".to_owned()), (7, "write".to_owned())]);
    }

    #[test]
    fn a_phase_that_mostly_waits_computes_a_little_at_a_time() {
        let burst = |cpu_us, cpu_percent| Phase { id: 1, name: String::new(), cpu_us, cpu_percent }.burst();
        assert_eq!(burst(None, 100), None);
        assert_eq!(burst(Some(7_000), 50), Some(Duration::from_millis(7)));
        assert_eq!(burst(Some(7_000), 49), Some(BOUNDS[0]));
        assert_eq!(burst(Some(20), 1), Some(Duration::from_micros(20)));
    }
}
