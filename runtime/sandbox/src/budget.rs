//! A number of bytes that many sandboxes, and whatever else a server keeps for its requests, share.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What may be used altogether, and what of it is reserved. Counts promises, not pages: what is reserved may be used at any time, so that the
/// system never has to take anything away.
#[derive(Debug)]
pub struct Budget {
    max: u64,
    used: AtomicU64,
    reclaim: OnceLock<Weak<dyn Reclaim>>,
    /// Owners that are asked when that one has nothing left, in turns.
    lent: Mutex<VecDeque<Weak<dyn Reclaim>>>,
    made: Instant,
    /// When something was refused last, in milliseconds since it was made, and one more; zero if nothing was.
    refused_ms: AtomicU64,
}

/// An owner of idle things, which can give them back when a budget is exhausted.
pub trait Reclaim: Debug + Send + Sync {
    /// Gives back `bytes`, or what there is; false when that is nothing.
    fn reclaim(&self, bytes: u64) -> bool;
}

/// How often a reservation tries again after something was given back, since others may be faster.
const ATTEMPTS: usize = 4;

impl Budget {
    /// A budget of `bytes_max`.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Budget> {
        Arc::new(Budget {
            max: bytes_max,
            used: AtomicU64::new(0),
            reclaim: OnceLock::new(),
            lent: Mutex::default(),
            made: Instant::now(),
            refused_ms: AtomicU64::new(0),
        })
    }

    /// Sets what gives something back when it is exhausted; only the first counts.
    pub fn set_reclaim(&self, reclaim: Weak<dyn Reclaim>) {
        let _ = self.reclaim.set(reclaim);
    }

    /// One more that gives something back, after what was [set](Self::set_reclaim): what is lost with that is dearer than an idle sandbox. It holds no lock while it claims something.
    pub fn lend(&self, owner: Weak<dyn Reclaim>) {
        let mut lent = self.lent();
        lent.retain(|owner| owner.strong_count() > 0);
        lent.push_back(owner);
    }

    /// Has those that [lend](Self::lend) give back so many bytes, or what they have; false when that is nothing.
    #[must_use]
    pub fn reclaim_lent(&self, bytes: u64) -> bool {
        let owners: Vec<Arc<dyn Reclaim>> = {
            let mut lent = self.lent();
            let owners = lent.iter().filter_map(Weak::upgrade).collect();
            // The next time another one is the first.
            lent.pop_front().into_iter().for_each(|first| lent.push_back(first));
            owners
        };
        let mut given = false;
        for owner in owners {
            given |= owner.reclaim(bytes);
            if self.max.saturating_sub(self.bytes_used()) >= bytes {
                break;
            }
        }
        given
    }

    fn lent(&self) -> MutexGuard<'_, VecDeque<Weak<dyn Reclaim>>> {
        // Single insertions and removals, which cannot be half done.
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be reserved altogether.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.max
    }

    /// What is reserved now.
    #[must_use]
    pub fn bytes_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Something was refused, since nothing was left although all that was idle was given back.
    pub(crate) fn note_refusal(&self) {
        // Relaxed: as below.
        self.refused_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Whether a sandbox, or what was [claimed](Self::claim), was refused in the time before now that is given, since nothing was left.
    #[must_use]
    pub fn has_refused(&self, lately: Duration) -> bool {
        // Relaxed: a number that nothing else depends on.
        let refused_ms = self.refused_ms.load(Ordering::Relaxed);
        refused_ms != 0 && self.now_ms().saturating_sub(refused_ms) <= lately.as_millis() as u64
    }

    /// Milliseconds since it was made, and one more.
    fn now_ms(&self) -> u64 {
        self.made.elapsed().as_millis() as u64 + 1
    }

    /// Reserves `bytes` until the share is dropped; none when there are not so many left.
    #[must_use]
    pub fn reserve(self: &Arc<Budget>, bytes: u64) -> Option<Share> {
        self.add(bytes).then(|| Share { budget: Arc::clone(self), bytes })
    }

    /// The same, after what is idle was given back, if it takes that.
    #[must_use]
    pub fn claim(self: &Arc<Budget>, bytes: u64) -> Option<Share> {
        self.add_or_reclaim(bytes).then(|| Share { budget: Arc::clone(self), bytes })
    }

    // Relaxed: a count that nothing else depends on.
    fn add(&self, bytes: u64) -> bool {
        let sum = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.max);
        bytes == 0 || self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    fn add_or_reclaim(&self, bytes: u64) -> bool {
        if self.add(bytes) {
            return true;
        }
        if bytes > self.max {
            return false;
        }
        let reclaim = self.reclaim.get().and_then(Weak::upgrade);
        let give_back = || reclaim.as_ref().is_some_and(|reclaim| reclaim.reclaim(bytes)) || self.reclaim_lent(bytes);
        let is_there = (0..ATTEMPTS).any(|_| give_back() && self.add(bytes));
        if !is_there {
            self.note_refusal();
        }
        is_there
    }
}

/// Bytes of a [`Budget`], given back on drop.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Share {
    /// How many.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it `bytes`, more or fewer; false, and nothing changed, when there are not so many left, what is idle given back.
    #[must_use]
    pub fn resize(&mut self, bytes: u64) -> bool {
        if bytes > self.bytes {
            if !self.budget.add_or_reclaim(bytes - self.bytes) {
                return false;
            }
        } else if bytes < self.bytes {
            self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }

    /// Makes it `bytes`, which are more; false, and nothing changed, when there are not so many left now. For handlers: what is idle stays, and nothing is
    /// locked.
    pub(crate) fn grow_now(&mut self, bytes: u64) -> bool {
        let grown = self.budget.add(bytes.saturating_sub(self.bytes));
        self.bytes = if grown { self.bytes.max(bytes) } else { self.bytes };
        grown
    }

    /// Whether it is one of that budget.
    pub(crate) fn is_of(&self, budget: &Arc<Budget>) -> bool {
        Arc::ptr_eq(&self.budget, budget)
    }

    /// Takes `bytes` of it away, or as many as it has, as a share of their own.
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> Share {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Share { budget: Arc::clone(&self.budget), bytes }
    }

    /// Adds another one of the same budget; one of another budget is given back.
    pub fn join(&mut self, mut other: Share) {
        if Arc::ptr_eq(&self.budget, &other.budget) {
            self.bytes += std::mem::take(&mut other.bytes);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_never_have_more_than_there_is_and_give_all_of_it_back() {
        let budget = Budget::new(1000);
        std::thread::scope(|scope| {
            for size in [1, 7, 300, 600] {
                let budget = &budget;
                scope.spawn(move || {
                    for _ in 0..2000 {
                        if let Some(mut share) = budget.reserve(size) {
                            assert!(budget.bytes_used() <= 1000);
                            let grown = share.resize(size + 200);
                            assert_eq!(share.bytes(), if grown { size + 200 } else { size });
                            assert!(share.resize(size / 2));
                        }
                    }
                });
            }
        });
        assert_eq!(budget.bytes_used(), 0);
        assert!(budget.reserve(1001).is_none() && budget.reserve(u64::MAX).is_none());
        let all = budget.reserve(1000).unwrap();
        assert!(budget.reserve(1).is_none() && budget.reserve(0).is_some());
        drop(all);
    }

    #[test]
    fn shares_are_split_and_joined_without_asking_the_budget() {
        let (budget, other) = (Budget::new(100), Budget::new(100));
        let mut all = budget.reserve(100).unwrap();
        let part = all.split(30);
        assert_eq!((all.bytes(), part.bytes(), budget.bytes_used()), (70, 30, 100));
        assert_eq!(all.split(1000).bytes(), 70);
        assert_eq!(budget.bytes_used(), 30, "what was split off was dropped");
        all.join(part);
        assert_eq!((all.bytes(), budget.bytes_used()), (30, 30));
        all.join(other.reserve(50).unwrap());
        assert_eq!((all.bytes(), other.bytes_used()), (30, 0));
        drop(all);
        assert_eq!(budget.bytes_used(), 0);
    }

    #[derive(Debug)]
    struct Idle(std::sync::Mutex<Vec<Share>>);

    impl Reclaim for Idle {
        fn reclaim(&self, bytes: u64) -> bool {
            let mut idle = self.0.lock().unwrap();
            let before = idle.len();
            let mut given = 0;
            while given < bytes
                && let Some(share) = idle.pop()
            {
                given += share.bytes();
            }
            idle.len() < before
        }
    }

    #[test]
    fn what_is_idle_is_given_back_when_somebody_claims_it_and_only_as_much() {
        let budget = Budget::new(100);
        let idle: Arc<Idle> = Arc::new(Idle((0..10).map(|_| budget.reserve(10).unwrap()).collect::<Vec<_>>().into()));
        let weak: Weak<Idle> = Arc::downgrade(&idle);
        budget.set_reclaim(weak);
        assert!(budget.reserve(5).is_none(), "reserving leaves it alone");
        let mut claimed = budget.claim(25).unwrap();
        assert_eq!(idle.0.lock().unwrap().len(), 7);
        assert!(claimed.resize(60));
        assert!(budget.claim(101).is_none());
        assert_eq!(idle.0.lock().unwrap().len(), 3, "what cannot be had costs nothing");
        assert!(!claimed.resize(101) && claimed.resize(100));
        drop((idle, claimed));
        assert!(budget.claim(100).is_some());
    }

    #[test]
    fn that_it_has_refused_something_is_known_for_a_while() {
        let budget = Budget::new(100);
        let (hour, ms) = (Duration::from_secs(3_600), Duration::from_millis(1));
        let all = budget.claim(100).unwrap();
        assert!(
            budget.reserve(1).is_none() && budget.claim(101).is_none() && !budget.has_refused(hour),
            "nothing that could be had"
        );
        assert!(budget.claim(1).is_none() && budget.has_refused(hour));
        std::thread::sleep(3 * ms);
        assert!(budget.has_refused(hour) && !budget.has_refused(ms));
        drop(all);
    }

    #[test]
    fn what_others_lend_goes_after_what_is_idle_each_in_its_turn_and_only_as_much() {
        let budget = Budget::new(100);
        let owner = |count| Arc::new(Idle((0..count).map(|_| budget.reserve(10).unwrap()).collect::<Vec<_>>().into()));
        let owners = [owner(2), owner(2), owner(2)];
        let left = || owners.each_ref().map(|owner| owner.0.lock().unwrap().len());
        let weak = |owner: &Arc<Idle>| {
            let weak: Weak<Idle> = Arc::downgrade(owner);
            weak
        };
        budget.lend(weak(&owner(1)));
        budget.lend(weak(&owners[1]));
        budget.lend(weak(&owners[2]));
        budget.set_reclaim(weak(&owners[0]));
        let mut claimed = budget.claim(40).unwrap();
        assert_eq!(left(), [2, 2, 2], "there was room");
        assert!(claimed.resize(60));
        assert_eq!(left(), [0, 2, 2]);
        assert!(claimed.resize(70));
        assert_eq!(left(), [0, 1, 2]);
        assert!(claimed.resize(80));
        assert_eq!(left(), [0, 1, 1], "it is the other one's turn");
        assert!(budget.claim(101).is_none());
        assert_eq!(left(), [0, 1, 1], "what cannot be had costs nothing");
        assert!(claimed.resize(100));
        assert_eq!((left(), budget.reclaim_lent(1)), ([0; 3], false));
    }
}
