//! What the phases of a function really need: the profiling of *Microtasks* (III-B), by which an author learns what to declare.
//!
//! It is asked for, for a while, and costs nothing before and after: an invocation that begins looks at a flag. Of one that begins while its function is profiled a [`Tally`]
//! counts for how long it ran and waited in each phase, and its microtasks: the stretches between two waits or phases. When it has ended well, all of that is added to the
//! [`Profile`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::{BEGIN, PhaseConfig, Phases};

/// For how long a function may be profiled, in seconds. Clients wait no longer than a minute for an answer.
pub const PROFILE_SECONDS: RangeInclusive<u64> = 1..=50;
/// For how long it is where that is not said.
pub const PROFILE_SECONDS_DEFAULT: u64 = 5;

/// Phases that are told apart; a function that declares none may name any number of them.
const PHASES_MAX: usize = 32;

/// Whether a function is profiled.
#[derive(Debug, Default)]
pub struct Profiler {
    /// Whether there is a profile: so that requests take no lock where there is none.
    is_on: AtomicBool,
    profile: Mutex<Option<Arc<Profile>>>,
}

/// A function's, and not what is made of it.
impl Clone for Profiler {
    fn clone(&self) -> Profiler {
        Profiler::default()
    }
}

/// While that is there, the function is profiled.
#[derive(Debug)]
pub struct Profiling<'a> {
    profiler: &'a Profiler,
    profile: Arc<Profile>,
}

/// What was measured so far.
#[derive(Debug, Default)]
pub struct Profile(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    requests: u64,
    /// By the phase's id.
    phases: BTreeMap<u32, Sum>,
    /// Whether there were more phases than are told apart.
    is_full: bool,
}

/// Of all requests that were in a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    requests: u64,
    ran: Duration,
    waited: Duration,
    microtasks: u64,
}

/// What one invocation has used so far.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    profile: Arc<Profile>,
    parts: Vec<Part>,
    /// That in which it is; none where there are too many.
    current: Option<usize>,
    /// Whether the microtask that it runs was counted.
    is_counted: bool,
    is_full: bool,
}

/// Its time in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    id: u32,
    ran: Duration,
    waited: Duration,
    microtasks: u64,
}

/// What the phases of a function need, as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Requests that began and ended well meanwhile.
    pub requests: u64,
    /// By id.
    pub phases: Vec<MeasuredPhase>,
    /// Whether there were more, which are not here.
    pub has_more: bool,
}

/// What a phase needs, as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredPhase {
    /// As it would be declared: means of those requests that were in it.
    #[serde(flatten)]
    pub config: PhaseConfig,
    /// How many that were.
    pub requests: u64,
    /// Microtasks of one of them in it.
    pub microtasks: f64,
    /// Processor time of each of these, in microseconds.
    pub microtask_us: f64,
}

impl Profiler {
    /// Profiles the function from now on; none if it is profiled already.
    pub fn begin(&self) -> Option<Profiling<'_>> {
        let mut place = lock(&self.profile);
        if place.is_some() {
            return None;
        }
        let profile = Arc::clone(place.insert(Arc::default()));
        // Relaxed, here and below: it is all the same whether a request that begins at this moment is measured.
        self.is_on.store(true, Ordering::Relaxed);
        Some(Profiling { profiler: self, profile })
    }

    /// To be looked at by every request that begins.
    #[inline]
    #[must_use]
    pub fn profile(&self) -> Option<Arc<Profile>> {
        if self.is_on.load(Ordering::Relaxed) { self.begun() } else { None }
    }

    #[cold]
    fn begun(&self) -> Option<Arc<Profile>> {
        lock(&self.profile).clone()
    }
}

impl Profiling<'_> {
    /// What was measured so far, of a function that declares those phases.
    #[must_use]
    pub fn measured(&self, declared: Option<&Phases>) -> Measured {
        let sums = lock(&self.profile.0);
        let name = |id: u32| {
            let known = declared.and_then(|phases| Some(phases.0[phases.index(id)?].name.clone()));
            known.unwrap_or_else(|| if id == 0 { BEGIN.to_owned() } else { format!("phase-{id}") })
        };
        let phase = |(&id, sum): (&u32, &Sum)| {
            let Sum { requests, ran, waited, microtasks } = *sum;
            let (ran_us, waited_us) = (ran.as_secs_f64() * 1e6, waited.as_secs_f64() * 1e6);
            // At least the least that can be declared.
            let cpu_us = ((ran_us / requests.max(1) as f64).round() as u64).max(1);
            let part = if ran_us + waited_us > 0.0 { ran_us / (ran_us + waited_us) } else { 1.0 };
            MeasuredPhase {
                config: PhaseConfig { id, name: name(id), cpu_us, cpu_percent: ((part * 100.0).round() as u32).clamp(1, 100) },
                requests,
                microtasks: microtasks as f64 / requests.max(1) as f64,
                microtask_us: if microtasks > 0 { ran_us / microtasks as f64 } else { 0.0 },
            }
        };
        Measured { requests: sums.requests, phases: sums.phases.iter().map(phase).collect(), has_more: sums.is_full }
    }
}

impl Drop for Profiling<'_> {
    fn drop(&mut self) {
        self.profiler.is_on.store(false, Ordering::Relaxed);
        lock(&self.profiler.profile).take();
    }
}

impl Tally {
    /// Of an invocation that begins, in phase 0.
    pub(super) fn new(profile: Arc<Profile>) -> Tally {
        Tally { profile, parts: vec![Part::default()], current: Some(0), is_counted: false, is_full: false }
    }

    pub(super) fn ran(&mut self, time: Duration) {
        if time.is_zero() {
            return;
        }
        let is_new = !std::mem::replace(&mut self.is_counted, true);
        if let Some(part) = self.current.map(|index| &mut self.parts[index]) {
            part.ran += time;
            part.microtasks += u64::from(is_new);
        }
    }

    pub(super) fn waited(&mut self, time: Duration) {
        self.is_counted = false;
        if let Some(part) = self.current.map(|index| &mut self.parts[index]) {
            part.waited += time;
        }
    }

    pub(super) fn enter(&mut self, id: u32) {
        self.is_counted = false;
        self.current = self.parts.iter().position(|part| part.id == id);
        if self.current.is_none() && self.parts.len() < PHASES_MAX {
            self.current = Some(self.parts.len());
            self.parts.push(Part { id, ..Part::default() });
        }
        self.is_full |= self.current.is_none();
    }

    /// The invocation has ended well.
    pub(super) fn end(self) {
        let mut sums = lock(&self.profile.0);
        sums.requests += 1;
        sums.is_full |= self.is_full;
        for Part { id, ran, waited, microtasks } in self.parts {
            if sums.phases.len() >= PHASES_MAX && !sums.phases.contains_key(&id) {
                sums.is_full = true;
                continue;
            }
            let sum = sums.phases.entry(id).or_default();
            sum.requests += 1;
            sum.ran += ran;
            sum.waited += waited;
            sum.microtasks += microtasks;
        }
    }
}

impl PartialEq for Tally {
    fn eq(&self, other: &Tally) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Tally {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is done under these locks can panic half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// An invocation that runs, waits and goes on to other phases.
    fn play(profile: &Arc<Profile>, steps: &[(char, u64)]) {
        let mut tally = Tally::new(Arc::clone(profile));
        for (what, number) in steps {
            match what {
                'r' => tally.ran(MS * *number as u32),
                'w' => tally.waited(MS * *number as u32),
                _ => tally.enter(*number as u32),
            }
        }
        tally.end();
    }

    fn shown(measured: &Measured) -> Vec<(u32, &str, u64, u32, u64, f64, f64)> {
        let shown = |phase: &MeasuredPhase| phase.config.name.len();
        assert!(measured.phases.iter().all(|phase| shown(phase) > 0));
        let phases = measured.phases.iter().map(|phase| {
            let PhaseConfig { id, name, cpu_us, cpu_percent } = &phase.config;
            (*id, name.as_str(), *cpu_us, *cpu_percent, phase.requests, phase.microtasks, phase.microtask_us)
        });
        phases.collect()
    }

    #[test]
    fn a_phase_has_its_time_its_waits_and_its_microtasks() {
        let profiler = Profiler::default();
        assert!(profiler.profile().is_none());
        let profiling = profiler.begin().unwrap();
        assert!(profiler.begin().is_none(), "once at a time");
        let profile = profiler.profile().unwrap();
        // Preempted in its second microtask, which goes on; back in phase 4 once more.
        play(&profile, &[('r', 1), ('p', 4), ('r', 2), ('w', 30), ('r', 3), ('r', 3), ('p', 0), ('r', 1), ('p', 4), ('r', 2)]);
        play(&profile, &[('r', 4)]);
        let declared = Phases::new(&[PhaseConfig { id: 4, name: "read".to_owned(), cpu_us: 1, cpu_percent: 1 }]).unwrap();
        let measured = profiling.measured(Some(&declared));
        assert_eq!((measured.requests, measured.has_more), (2, false));
        let expected = [(0, "begin", 3_000, 100, 2, 1.5, 2_000.0), (4, "read", 10_000, 25, 1, 3.0, 10_000.0 / 3.0)];
        assert_eq!(shown(&measured), expected);
        let named = profiling.measured(None);
        assert_eq!(named.phases[1].config.name, "phase-4");
        drop(profiling);
        assert!(profiler.profile().is_none());
        assert_eq!(profiler.begin().unwrap().measured(None).requests, 0, "anew");
    }

    #[test]
    fn what_is_declared_is_in_range_and_phases_are_limited() {
        let profiler = Profiler::default();
        let profiling = profiler.begin().unwrap();
        let profile = profiler.profile().unwrap();
        play(&profile, &[('p', 1), ('w', 500)]);
        let measured = profiling.measured(None);
        assert_eq!(shown(&measured)[1], (1, "phase-1", 1, 1, 1, 0.0, 0.0), "it never ran");
        assert_eq!(shown(&measured)[0].3, 100, "it neither ran nor waited");
        let many: Vec<_> = (0..100).flat_map(|id| [('p', id), ('r', 1)]).collect();
        play(&profile, &many);
        play(&profile, &[('p', 1_000), ('r', 1)]);
        let measured = profiling.measured(None);
        assert!(measured.has_more && measured.phases.len() == PHASES_MAX, "{}", measured.phases.len());
    }
}
