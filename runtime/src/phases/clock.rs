//! In which phase an invocation is, and for how long it ran in each.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::profile::{Profile, Tally};
use super::{Phase, Phases};

/// In which phase an invocation is, and for how long it ran in each: of one whose function declares phases, or is profiled.
#[derive(Clone, PartialEq, Eq)]
pub struct PhaseClock {
    declared: Option<Declared>,
    /// Where its function is profiled.
    tally: Option<Tally>,
    /// Until when its time is counted.
    counted: Instant,
}

/// Of the phases that the function declares.
#[derive(Clone, PartialEq, Eq)]
struct Declared {
    phases: Arc<Phases>,
    current: usize,
    /// As the phases; none of those that it was not in.
    times: Box<[Option<Duration>]>,
}

impl PhaseClock {
    /// Of an invocation that begins; none where its time need not be counted.
    #[inline]
    #[must_use]
    pub fn new(phases: Option<&Arc<Phases>>, profile: Option<Arc<Profile>>) -> Option<Box<PhaseClock>> {
        if phases.is_none() && profile.is_none() { None } else { Some(PhaseClock::counting(phases, profile)) }
    }

    #[cold]
    fn counting(phases: Option<&Arc<Phases>>, profile: Option<Arc<Profile>>) -> Box<PhaseClock> {
        let declared = phases.map(|phases| {
            let mut times = vec![None; phases.0.len()].into_boxed_slice();
            times[0] = Some(Duration::ZERO);
            Declared { phases: Arc::clone(phases), current: 0, times }
        });
        Box::new(PhaseClock { declared, tally: profile.map(Tally::new), counted: Instant::now() })
    }

    /// What its function declares of the phase in which it is.
    #[must_use]
    pub fn current(&self) -> Option<&Phase> {
        self.declared.as_ref().map(|declared| &declared.phases.0[declared.current])
    }

    /// The invocation runs from that time on.
    pub const fn start(&mut self, now: Instant) {
        self.counted = now;
    }

    /// Until that time it ran.
    pub fn count(&mut self, now: Instant) {
        let ran = now.saturating_duration_since(self.counted);
        self.counted = now;
        if let Some(Declared { current, times, .. }) = &mut self.declared {
            *times[*current].get_or_insert_default() += ran;
        }
        if let Some(tally) = &mut self.tally {
            tally.ran(ran);
        }
    }

    /// For so long it waited for something else than its turn, in the phase in which it is.
    pub fn wait(&mut self, time: Duration) {
        if let Some(tally) = &mut self.tally {
            tally.waited(time);
        }
    }

    /// From now on it is in another phase; false, and it is not, where its function declares phases and that is none.
    pub fn enter(&mut self, id: u32) -> bool {
        let next = match &self.declared {
            Some(declared) => match declared.phases.index(id) {
                Some(next) => next,
                None => return false,
            },
            None => 0,
        };
        self.count(Instant::now());
        if let Some(Declared { current, times, .. }) = &mut self.declared {
            *current = next;
            times[next].get_or_insert_default();
        }
        if let Some(tally) = &mut self.tally {
            tally.enter(id);
        }
        true
    }

    /// The invocation is over: if all went well, its function's profile has it. What its function declares remains.
    #[must_use]
    pub fn end(mut self: Box<Self>, is_ok: bool) -> Option<Box<PhaseClock>> {
        if let Some(tally) = self.tally.take().filter(|_| is_ok) {
            tally.end();
        }
        self.declared.is_some().then_some(self)
    }

    /// The declared phases in which it was, each with its place among all and the time for which it ran in it.
    pub fn times(&self) -> impl Iterator<Item = (usize, &Phase, Duration)> {
        let declared = self.declared.iter();
        let times = declared.flat_map(|declared| declared.phases.0.iter().zip(&declared.times).enumerate());
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
    use crate::phases::PhaseConfig;

    fn declared(id: u32, name: &str) -> PhaseConfig {
        PhaseConfig { id, name: name.to_owned(), cpu_us: 5, cpu_percent: 10 }
    }

    #[test]
    fn time_belongs_to_the_phase_in_which_it_ran() {
        let phases = Phases::new(&[declared(1, "read"), declared(2, "work"), declared(3, "never")]).unwrap();
        let mut clock = PhaseClock::new(Some(&phases), None).unwrap();
        let begin = Instant::now();
        clock.start(begin);
        clock.count(begin + Duration::from_millis(2));
        assert!(clock.enter(1) && clock.enter(2) && clock.enter(1), "declared");
        assert!(!clock.enter(4), "not declared");
        assert_eq!(clock.current().unwrap().name, "read");
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

    #[test]
    fn without_phases_and_without_a_profile_there_is_no_clock() {
        assert!(PhaseClock::new(None, None).is_none());
        let clock = PhaseClock::new(None, Some(Arc::default())).unwrap();
        assert!(clock.current().is_none() && clock.times().next().is_none());
        assert_eq!(clock.end(true), None, "nothing of it is declared");
    }
}
