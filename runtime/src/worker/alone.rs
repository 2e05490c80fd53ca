//! When a guest runs on without ticks.
//!
//! A tick costs an interrupt and a signal, on virtual machines tens of microseconds, and most ticks find that nothing else waits. So a guest that has run for a
//! whole quantum, and is all that its worker has to run, *runs alone*: ticks become rare, and the [`Watcher`] interrupts it when something comes.
//!
//! The worker gets there in steps, so that nothing is missed:
//!
//! 1. A run ends by a tick or by an interruption: [`Alone::follows`] keeps in mind that its guest may run alone next. The turn ends.
//! 2. The next turn finds that nothing else waits, arms the watch and ends ([`Alone::prepare`]). So all tasks of the runtime run once more that were ready then, and those
//!    that they wake. What comes meanwhile fires the watch.
//! 3. The turn after that finds the watch armed still, and the guest [runs alone](Alone::enter). Where it has fired, step 2 is done once more.
//!
//! If nothing came, the watch stays armed after a run alone, and steps 1 and 3 are all there is.
//!
//! A host call may give others something to do that the watch does not see: tasks of the same thread. So it ends a run alone, and a guest that made calls in its last
//! quantum after one of its calls ended a run alone does not get another one before it has been quiet for a quantum.

use std::sync::Arc;
use std::time::Duration;

use crate::schedule::TaskId;
use crate::watch::Watcher;

/// Turns in a row that end with the watch armed anew. If something comes in each, more will come to interrupt the guest.
const LOOKS_MAX: u8 = 2;

/// A worker's part in it.
#[derive(Debug, Default)]
pub struct Alone {
    /// None where each quantum ends by a tick.
    watch: Option<Watch>,
    /// The guest that may run alone.
    next: Option<TaskId>,
    /// Turns that ended with the watch armed anew since a guest ran alone.
    looks: u8,
    /// The last guest whose run alone was ended by a host call, within a quantum.
    breaks: Option<TaskId>,
    /// Whether a run alone is over, and tasks of the runtime come first.
    is_over: bool,
}

#[derive(Debug)]
struct Watch {
    watcher: Arc<Watcher>,
    /// The worker's.
    index: usize,
    quantum: Duration,
    /// Between two ticks of a guest that runs alone.
    tick_max: Duration,
}

impl Alone {
    /// That of the watcher's worker with this index.
    #[must_use]
    pub fn new(watcher: Arc<Watcher>, index: usize, quantum: Duration, tick_max: Duration) -> Alone {
        Alone { watch: Some(Watch { watcher, index, quantum, tick_max }), ..Alone::default() }
    }

    /// Whether there is a guest that may run alone.
    #[must_use]
    pub const fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// In a turn in which that guest is all there is to run: arms the watch where it is not. Whether the turn is to end for that.
    pub fn prepare(&mut self) -> bool {
        let Some(Watch { watcher, index, .. }) = &self.watch else { return false };
        if watcher.is_armed(*index) {
            return false;
        }
        if !watcher.arm(*index) {
            self.next = None;
            return false;
        }
        // A guest that another worker has taken is never run here: as many turns as there are may look for it.
        self.looks = self.looks.saturating_add(1);
        self.looks <= LOOKS_MAX
    }

    /// A guest is about to run: whether it may do so alone, for all that is known here. It is asked once.
    pub fn is_next(&mut self, id: TaskId) -> bool {
        self.next.take_if(|next| *next == id).is_some()
    }

    /// A guest is about to run alone which has that much time left, and that much processor time. After how long the first tick comes, and how far apart the
    /// others are; none if it is to run as usual. `is_alone` looks once more whether there is something to do.
    pub fn enter(&mut self, time: Duration, cpu: Duration, is_alone: impl FnOnce() -> bool) -> Option<(Duration, Duration)> {
        let Watch { watcher, index, quantum, tick_max } = self.watch.as_ref()?;
        self.looks = 0;
        let first = first_tick(*quantum, *tick_max, time, cpu)?;
        if !watcher.enter(*index) {
            return None;
        }
        if !is_alone() {
            watcher.leave(*index);
            return None;
        }
        Some((first, *tick_max))
    }

    /// A guest that ran alone has stopped.
    pub fn leave(&mut self) {
        if let Some(Watch { watcher, index, .. }) = &self.watch {
            watcher.leave(*index);
        }
        self.is_over = true;
    }

    /// Whether a run alone was over since that was last asked.
    pub const fn take_over(&mut self) -> bool {
        std::mem::replace(&mut self.is_over, false)
    }

    /// A host call ended a guest's run alone within a quantum.
    pub const fn broke(&mut self, id: TaskId) {
        self.breaks = Some(id);
    }

    /// A guest was preempted. `is_quiet` says that it made no host calls in that run.
    pub fn follows(&mut self, id: TaskId, is_quiet: bool) {
        if self.watch.is_some() {
            self.breaks.take_if(|breaks| *breaks == id && is_quiet);
            self.next = (self.breaks != Some(id)).then_some(id);
        }
    }
}

/// After how long the first tick of a guest comes that runs alone: by the time that it has left, and its processor time. None where that is shorter than a quantum: ticks are
/// as usual then.
fn first_tick(quantum: Duration, tick_max: Duration, time: Duration, cpu: Duration) -> Option<Duration> {
    let first = tick_max.min(time).min(cpu);
    (first >= quantum).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const QUANTUM: Duration = Duration::from_micros(500);

    #[test]
    fn the_first_tick_comes_at_the_deadline_or_when_the_budget_is_used_up_and_is_usual_shortly_before() {
        let first = |time, cpu| first_tick(QUANTUM, 5 * MS, time, cpu);
        assert_eq!(first(60 * MS, 60 * MS), Some(5 * MS));
        assert_eq!(first(3 * MS, 60 * MS), Some(3 * MS));
        assert_eq!(first(60 * MS, 2 * MS), Some(2 * MS));
        assert_eq!(first(QUANTUM, Duration::MAX), Some(QUANTUM));
        assert_eq!(first(QUANTUM - Duration::from_nanos(1), Duration::MAX), None);
        assert_eq!(first(Duration::ZERO, Duration::ZERO), None);
        // A quantum that was made longer than the ticks.
        assert_eq!(first_tick(10 * MS, 5 * MS, 60 * MS, 60 * MS), None);
    }

    #[test]
    fn a_guest_whose_host_calls_break_its_runs_off_has_to_be_quiet_first() {
        let watcher = Watcher::start(1).unwrap();
        let mut alone = Alone::new(watcher, 0, QUANTUM, 5 * MS);
        let (first, other) = (TaskId(1), TaskId(2));
        assert!(!alone.is_next(first), "it has not run yet");
        alone.follows(first, false);
        assert!(!alone.is_next(other));
        assert!(alone.is_next(first), "no call has broken a run off yet");
        assert!(!alone.is_next(first), "once");
        alone.broke(first);
        alone.follows(first, false);
        assert!(!alone.is_next(first));
        alone.follows(other, false);
        assert!(alone.is_next(other));
        alone.follows(first, true);
        assert!(alone.is_next(first));
    }

    #[test]
    fn without_a_watch_no_guest_runs_alone() {
        let mut alone = Alone::default();
        alone.follows(TaskId(1), true);
        assert!(!alone.has_next() && !alone.prepare());
        assert_eq!(alone.enter(60 * MS, 60 * MS, || true), None);
        // There is one, but the worker was not taken in.
        let mut alone = Alone::new(Watcher::start(1).unwrap(), 0, QUANTUM, 5 * MS);
        alone.follows(TaskId(1), true);
        assert!(alone.has_next() && !alone.prepare() && !alone.has_next());
    }
}
