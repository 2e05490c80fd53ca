//! Which optimised code is to be made: for versions that are served by their first tier, one after the other, in the order in which they came. Pure: knows neither compilers nor threads.
//!
//! ```text
//!   waiting --next--> compiling --ready--> ready --swapped--> (gone)
//!      |                  |  \---failed--->  |  \---failed--> failed, until the version is served no longer
//!      \---------------> superseded <--------/    the version is served no longer, or the server stops
//! ```
//!
//! Versions are known by their [numbers](crate::invoke::function::Function::version), which rise.

use std::collections::{BTreeMap, BTreeSet};

/// How far the optimised code of a version is that is served by its first tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Others come first.
    Waiting,
    /// It is being compiled.
    Compiling,
    /// It is loaded, and is about to take the place of the first tier.
    Ready,
    /// It could not be made, for that reason. It is not tried again.
    Failed(String),
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// By the number of the version.
    of: BTreeMap<u64, State>,
    /// What is being made, also if it is not wanted any more.
    under_way: Option<u64>,
    stopped: bool,
}

impl Jobs {
    /// These versions are served by their first tier now, and no others. Whether what is under way is not wanted any more by that.
    pub(super) fn serve(&mut self, firsts: impl IntoIterator<Item = u64>) -> bool {
        let firsts: BTreeSet<u64> = if self.stopped { BTreeSet::new() } else { firsts.into_iter().collect() };
        let was_wanted = self.is_wanted();
        self.of.retain(|version, _| firsts.contains(version));
        for version in firsts {
            self.of.entry(version).or_insert(State::Waiting);
        }
        was_wanted && !self.is_wanted()
    }

    /// Begins the next one, if there is one and nothing is under way.
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.under_way.is_some() {
            return None;
        }
        let (version, state) = self.of.iter_mut().find(|(_, state)| **state == State::Waiting)?;
        *state = State::Compiling;
        self.under_way = Some(*version);
        self.under_way
    }

    /// What is under way is compiled and loaded. Whether it is to take the place of its first tier.
    pub(super) fn ready(&mut self) -> bool {
        let Some(state) = self.under_way.and_then(|version| self.of.get_mut(&version)) else { return false };
        *state = State::Ready;
        true
    }

    /// What is under way is over: its code is served, or it could not be made for that reason. Whether that concerns anybody: a version that is served.
    pub(super) fn ended(&mut self, result: Result<(), String>) -> bool {
        let Some(version) = self.under_way.take() else { return false };
        match (self.of.get_mut(&version), result) {
            (None, Ok(())) => true,
            (None, Err(_)) => false,
            (Some(_), Ok(())) => {
                self.of.remove(&version);
                true
            }
            (Some(state), Err(why)) => {
                *state = State::Failed(why);
                true
            }
        }
    }

    /// Nothing is made any more. Whether something is under way that was wanted until now.
    pub(super) fn stop(&mut self) -> bool {
        self.stopped = true;
        self.serve([])
    }

    /// Whether one waits that is to be made.
    pub(super) fn has_waiting(&self) -> bool {
        self.of.values().any(|state| *state == State::Waiting)
    }

    /// How far that of a version is, if it is served by its first tier.
    pub(super) fn state(&self, version: u64) -> Option<&State> {
        self.of.get(&version)
    }

    /// Whether what is under way is still wanted.
    fn is_wanted(&self) -> bool {
        self.under_way.is_some_and(|version| self.of.contains_key(&version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(jobs: &Jobs) -> Vec<(u64, &State)> {
        jobs.of.iter().map(|(version, state)| (*version, state)).collect()
    }

    #[test]
    fn one_is_made_after_the_other_in_the_order_in_which_they_came() {
        let mut jobs = Jobs::default();
        assert!(jobs.next().is_none() && !jobs.has_waiting());
        assert!(!jobs.serve([7, 3]) && jobs.has_waiting());
        assert_eq!((jobs.next(), jobs.next()), (Some(3), None));
        assert_eq!(states(&jobs), [(3, &State::Compiling), (7, &State::Waiting)]);
        assert!(!jobs.serve([3, 7, 9]), "what is under way goes on");
        assert!(jobs.ready());
        assert_eq!(jobs.state(3), Some(&State::Ready));
        // It is no first tier any more before it is over.
        jobs.serve([7, 9]);
        assert!(jobs.ended(Ok(())));
        assert_eq!((jobs.next(), jobs.state(3)), (Some(7), None));
    }

    #[test]
    fn what_is_replaced_or_removed_is_not_wanted_any_more() {
        let mut jobs = Jobs::default();
        jobs.serve([1, 2]);
        assert_eq!(jobs.next(), Some(1));
        assert!(jobs.serve([2, 3]), "it is to be ended, and once only");
        assert!(!jobs.serve([2, 3]));
        assert_eq!(jobs.next(), None, "the compiler has not ended yet");
        assert!(!jobs.ready(), "nothing is exchanged");
        assert!(!jobs.ended(Err("cancelled".to_owned())), "it concerns no version that is served");
        assert_eq!(jobs.next(), Some(2));
        // One that waits is forgotten at once.
        assert!(!jobs.serve([2]));
        assert!(jobs.ended(Ok(())));
        assert_eq!((jobs.next(), states(&jobs)), (None, vec![]));
    }

    #[test]
    fn a_failure_is_kept_for_as_long_as_the_version_is_served_and_not_tried_again() {
        let mut jobs = Jobs::default();
        jobs.serve([1, 2]);
        assert_eq!(jobs.next(), Some(1));
        assert!(jobs.ended(Err("killed".to_owned())));
        jobs.serve([1, 2]);
        assert_eq!((jobs.next(), jobs.state(1)), (Some(2), Some(&State::Failed("killed".to_owned()))));
        assert!(jobs.ready());
        assert!(jobs.ended(Err("the secrets have changed".to_owned())));
        assert_eq!(jobs.next(), None);
        jobs.serve([]);
        assert_eq!(states(&jobs), []);
    }

    #[test]
    fn nothing_begins_when_the_server_stops() {
        let mut jobs = Jobs::default();
        jobs.serve([1, 2]);
        assert_eq!(jobs.next(), Some(1));
        assert!(jobs.stop() && !jobs.has_waiting());
        assert!(!jobs.ended(Err("cancelled".to_owned())));
        assert!(!jobs.serve([2, 3]));
        assert_eq!(jobs.next(), None);
    }

    /// Whatever comes in whatever order: at most one is under way, none is made twice, and of what is wanted each has a state.
    #[test]
    fn whatever_happens_each_version_is_made_at_most_once() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut jobs, mut begun, mut served) = (Jobs::default(), BTreeSet::new(), BTreeSet::new());
            let mut last = 0;
            for _ in 0..100 {
                match random.u8(..5) {
                    0 => {
                        last += 1;
                        served.insert(last);
                    }
                    1 => served.retain(|_| random.bool()),
                    2 => {
                        if let Some(version) = jobs.next() {
                            assert!(begun.insert(version) && served.contains(&version), "seed {seed}: {version}");
                        }
                    }
                    3 => {
                        let version = jobs.under_way;
                        let is_made = jobs.ready();
                        assert_eq!(is_made, version.is_some_and(|version| served.contains(&version)), "seed {seed}");
                        jobs.ended(if is_made && random.bool() { Ok(()) } else { Err("why".to_owned()) });
                        if let Some(version) = version.filter(|version| jobs.state(*version).is_none()) {
                            served.remove(&version);
                        }
                    }
                    _ => {}
                }
                jobs.serve(served.iter().copied());
                assert!(served.iter().all(|version| jobs.state(*version).is_some()), "seed {seed}");
            }
        }
    }
}
