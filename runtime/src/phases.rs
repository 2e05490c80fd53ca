//! Phases: parts of a function's work, each with what it needs of the processor.
//!
//! The annotation of *Microtasks* (III-B): a function's author measures what its parts need and declares that, here in the configuration;
//! `sledge:note`'s `phase(id)` says where a part begins. What is declared is [`Phases`], where an invocation is and how long it was in each
//! phase is its [`PhaseClock`]. Where microtasks have classes, what a phase declares is a first guess at [how long](Phase::burst) it computes at a time.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::classes::BOUNDS;

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
}

/// In which phase an invocation is, and for how long it ran in each.
#[derive(Clone, PartialEq, Eq)]
pub struct PhaseClock {
    phases: Arc<Phases>,
    current: usize,
    /// Until when its time is counted.
    counted: Instant,
    /// As the phases; none of those that it was not in.
    times: Box<[Option<Duration>]>,
}

impl PhaseClock {
    /// Of an invocation that begins.
    #[must_use]
    pub fn new(phases: &Arc<Phases>) -> PhaseClock {
        let mut times = vec![None; phases.0.len()].into_boxed_slice();
        times[0] = Some(Duration::ZERO);
        PhaseClock { phases: Arc::clone(phases), current: 0, counted: Instant::now(), times }
    }

    /// The phase in which it is.
    #[must_use]
    pub fn current(&self) -> &Phase {
        &self.phases.0[self.current]
    }

    /// The invocation runs from that time on.
    pub const fn start(&mut self, now: Instant) {
        self.counted = now;
    }

    /// Until that time it ran.
    pub fn count(&mut self, now: Instant) {
        *self.times[self.current].get_or_insert_default() += now.saturating_duration_since(self.counted);
        self.counted = now;
    }

    /// From now on it is in another phase; false, and it is not, where that is none.
    pub fn enter(&mut self, id: u32) -> bool {
        let Ok(next) = self.phases.0.binary_search_by_key(&id, |phase| phase.id) else { return false };
        self.count(Instant::now());
        self.current = next;
        self.times[next].get_or_insert_default();
        true
    }

    /// The phases in which it was, each with its place among all and the time for which it ran in it.
    pub fn times(&self) -> impl Iterator<Item = (usize, &Phase, Duration)> {
        let times = self.phases.0.iter().zip(&self.times).enumerate();
        times.filter_map(|(index, (phase, time))| Some((index, phase, (*time)?)))
    }
}

impl fmt::Debug for PhaseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.times().map(|(_, phase, time)| (&phase.name, time))).finish()
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

    #[test]
    fn time_belongs_to_the_phase_in_which_it_ran() {
        let phases = Phases::new(&[declared(1, "read"), declared(2, "work"), declared(3, "never")]).unwrap();
        let mut clock = PhaseClock::new(&phases);
        let begin = Instant::now();
        clock.start(begin);
        clock.count(begin + Duration::from_millis(2));
        assert!(clock.enter(1) && clock.enter(2) && clock.enter(1), "declared");
        assert!(!clock.enter(4), "not declared");
        assert_eq!(clock.current().name, "read");
        // Time that passes while it does not run belongs to no phase.
        clock.start(begin + Duration::from_secs(10));
        clock.count(begin + Duration::from_secs(15));
        let times: Vec<_> = clock.times().map(|(index, phase, time)| (index, phase.name.as_str(), time)).collect();
        assert_eq!(
            times.iter().map(|(index, name, _)| (*index, *name)).collect::<Vec<_>>(),
            [(0, "begin"), (1, "read"), (2, "work")]
        );
        assert_eq!(times[0].2, Duration::from_millis(2), "the clock never goes back");
        assert!(times[1].2 >= Duration::from_secs(5) && times[2].2 < Duration::from_secs(1), "{times:?}");
    }
}
