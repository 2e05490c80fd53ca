//! Whether an invocation that was begun ahead is asked for, and where it stands in the workers' queues until then.
//!
//! ```text
//!   what begins it: Stake --ask, or dropped--> Urgency <--looks at it when it picks-- the worker that has the invocation
//! ```
//!
//! As long as it is speculative it runs only where nothing runs that is asked for. What it calls and waits for stands as it does. What holds something that others may wait for is never speculative: a place of a
//! function with a limit is one, and a place of durable executions, from when something waits for one.

use std::sync::Arc;

use crate::schedule::demand::{Changes, Claim};
use crate::schedule::{Demand, Rank};

/// How urgent a run is that was begun ahead.
#[derive(Debug)]
pub struct Urgency {
    claim: Claim,
    rank: Rank,
    /// That of the run that has begun it, if that is itself ahead.
    above: Option<Arc<Urgency>>,
    changes: Arc<Changes>,
}

impl Urgency {
    /// Whether it is asked for. Of a callee that its caller has come to that is so when its caller is.
    #[must_use]
    pub fn demand(&self) -> Demand {
        let above = self.above.as_ref().map_or(Demand::Asked, |above| above.demand());
        match (self.claim.demand(), above) {
            (Demand::Unwanted, _) | (_, Demand::Unwanted) => Demand::Unwanted,
            (Demand::Speculative, _) | (_, Demand::Speculative) => Demand::Speculative,
            (Demand::Asked, Demand::Asked) => Demand::Asked,
        }
    }

    /// Where it stands until it is asked for.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// It is asked for from now on.
    pub fn ask(&self) {
        self.claim.ask(&self.changes);
    }
}

/// On whose behalf runs are begun ahead: the older, the earlier they stand.
#[derive(Clone, Debug, Default)]
pub struct Root {
    /// How many invocations were admitted before.
    pub(super) sequence: u64,
    pub(super) changes: Arc<Changes>,
}

impl Root {
    /// What a run is begun ahead with, at that place in what is done on behalf of this.
    #[must_use]
    pub fn ahead(&self, path: impl IntoIterator<Item = u32>) -> Stake {
        Stake::new(Rank::new(self.sequence, path), None, Arc::clone(&self.changes))
    }
}

/// What has begun a run ahead keeps this as long as the run goes on. Dropping it gives the run up, if it is not asked for. The default is that of a run that is.
#[derive(Debug, Default)]
pub struct Stake(Option<Arc<Urgency>>);

impl Stake {
    fn new(rank: Rank, above: Option<Arc<Urgency>>, changes: Arc<Changes>) -> Stake {
        Stake(Some(Arc::new(Urgency { claim: Claim::default(), rank, above, changes })))
    }

    /// That of a callee which is begun before it is called. Where its caller is ahead itself it stands beside that, and otherwise at that rank.
    pub(crate) fn of_callee(above: Option<&Arc<Urgency>>, rank: impl FnOnce() -> Rank, changes: &Arc<Changes>) -> Stake {
        let rank = above.map_or_else(rank, |above| above.rank);
        Stake::new(rank, above.cloned(), Arc::clone(changes))
    }

    /// What its run is told; none if that is asked for.
    #[must_use]
    pub const fn urgency(&self) -> Option<&Arc<Urgency>> {
        self.0.as_ref()
    }

    /// Its run is asked for from now on.
    pub fn ask(&mut self) {
        if let Some(urgency) = self.0.take() {
            urgency.ask();
        }
    }

    /// Its run has ended.
    pub fn is_over(&mut self) {
        self.0 = None;
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        if let Some(urgency) = self.0.take() {
            urgency.claim.give_up(&urgency.changes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(stake: &Stake) -> Demand {
        stake.urgency().map_or(Demand::Asked, |urgency| urgency.demand())
    }

    #[test]
    fn a_run_is_speculative_until_it_is_asked_for_or_given_up() {
        let root = Root { sequence: 7, ..Root::default() };
        let [mut first, second, mut third] = [1, 2, 3].map(|step| root.ahead([step]));
        assert_eq!([&first, &second, &third].map(demand), [Demand::Speculative; 3]);
        let [one, two, three] = [&first, &second, &third].map(|stake| Arc::clone(stake.urgency().unwrap()));
        assert!(one.rank() < two.rank() && two.rank() < root.ahead([2, 1]).urgency().unwrap().rank());
        let before = root.changes.count();
        first.ask();
        first.ask();
        drop((first, second));
        third.is_over();
        drop(third);
        assert_eq!([one.demand(), two.demand(), three.demand()], [Demand::Asked, Demand::Unwanted, Demand::Speculative]);
        assert_eq!(root.changes.count() - before, 2, "each change is counted once, and that a run has ended is none");
    }

    #[test]
    fn a_callee_is_asked_for_when_its_caller_has_come_to_it_and_is_asked_for() {
        let root = Root::default();
        for caller_comes_first in [true, false] {
            let mut caller = root.ahead([3]);
            let above = Arc::clone(caller.urgency().unwrap());
            let mut callee = Stake::of_callee(Some(&above), || panic!("it stands beside its caller"), &root.changes);
            let urgency = Arc::clone(callee.urgency().unwrap());
            assert_eq!((urgency.demand(), urgency.rank()), (Demand::Speculative, above.rank()));
            if caller_comes_first {
                caller.ask()
            } else {
                callee.ask()
            }
            assert_eq!(urgency.demand(), Demand::Speculative);
            if caller_comes_first {
                callee.ask()
            } else {
                caller.ask()
            }
            assert_eq!(urgency.demand(), Demand::Asked);
        }
        let caller = root.ahead([3]);
        let mut callee = Stake::of_callee(caller.urgency(), Rank::default, &root.changes);
        let urgency = Arc::clone(callee.urgency().unwrap());
        callee.ask();
        drop(caller);
        assert_eq!(urgency.demand(), Demand::Unwanted, "with its caller");
    }
}
