//! Places that executions of all tenants share: for tasks that run, and for commits that are being made. Free ones are given to the tenants in turn.
//!
//! What holds: a tenant that asks for thousands at once delays another tenant's first by no more than the places that are taken then. Within a tenant, the first that asked comes first.
//! All is on one thread.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;

use crate::invoke::urgency::Urgency;

/// As many are kept before it is looked which of them are over.
const LENT_MIN: usize = 64;

/// Places, of which there are so many.
#[derive(Debug)]
pub(super) struct Places(RefCell<Turns>);

#[derive(Debug)]
struct Turns {
    free: usize,
    /// What waits, by tenant. None is empty.
    waiting: HashMap<Arc<str>, VecDeque<oneshot::Sender<Held>>>,
    /// The tenants that wait, the next one first.
    order: VecDeque<Arc<str>>,
    /// Runs that are ahead and have places. Those that are over go when there are twice as many as there were then.
    lent: Vec<Weak<Urgency>>,
    lent_max: usize,
}

/// A place that is taken. Dropping it frees it.
#[derive(Debug)]
pub(super) struct Held(Option<Rc<Places>>);

impl Places {
    pub(super) fn new(count: usize) -> Rc<Places> {
        Rc::new(Places(RefCell::new(Turns {
            free: count,
            waiting: HashMap::new(),
            order: VecDeque::new(),
            lent: Vec::new(),
            lent_max: LENT_MIN,
        })))
    }

    /// A place for that tenant, when it has its turn. Dropping the future gives the turn up.
    pub(super) async fn take(self: &Rc<Self>, tenant: Arc<str>) -> Held {
        let turn = {
            let mut turns = self.0.borrow_mut();
            // Where something waits, nothing is free.
            if turns.free > 0 {
                turns.free -= 1;
                return Held(Some(Rc::clone(self)));
            }
            let (sender, turn) = oneshot::channel();
            turns.wait(tenant, sender);
            // What has a place is not to wait behind what waits for one.
            turns.lent.drain(..).filter_map(|lent| lent.upgrade()).for_each(|lent| lent.ask());
            turn
        };
        match turn.await {
            Ok(held) => held,
            // Senders are dropped with the places only, which this future keeps.
            Err(_) => std::future::pending().await,
        }
    }

    /// A place, if one is free.
    pub(super) fn take_free(self: &Rc<Self>) -> Option<Held> {
        let mut turns = self.0.borrow_mut();
        turns.free = turns.free.checked_sub(1)?;
        Some(Held(Some(Rc::clone(self))))
    }

    /// One that was [free](Places::take_free) is used by what runs ahead.
    pub(super) fn lend(&self, urgency: &Arc<Urgency>) {
        let Turns { lent, lent_max, .. } = &mut *self.0.borrow_mut();
        if lent.len() >= *lent_max {
            lent.retain(|lent| lent.strong_count() > 0);
            *lent_max = LENT_MIN.max(2 * lent.len());
        }
        lent.push(Arc::downgrade(urgency));
    }

    /// Gives a place that was freed to what has waited longest of the tenant whose turn it is, or keeps it free.
    fn hand_on(self: &Rc<Self>) {
        loop {
            let next = {
                let mut turns = self.0.borrow_mut();
                let next = turns.next();
                if next.is_none() {
                    turns.free += 1;
                }
                next
            };
            let Some(sender) = next else { return };
            match sender.send(Held(Some(Rc::clone(self)))) {
                Ok(()) => return,
                // It waits no longer. The place is not freed by dropping it, which would come here again, as deep as many have given up.
                Err(mut held) => drop(held.0.take()),
            }
        }
    }
}

impl Turns {
    fn wait(&mut self, tenant: Arc<str>, sender: oneshot::Sender<Held>) {
        let of_tenant = self.waiting.entry(Arc::clone(&tenant)).or_default();
        if of_tenant.is_empty() {
            self.order.push_back(tenant);
        }
        of_tenant.push_back(sender);
    }

    fn next(&mut self) -> Option<oneshot::Sender<Held>> {
        let tenant = self.order.pop_front()?;
        let of_tenant = self.waiting.get_mut(&tenant)?;
        let first = of_tenant.pop_front();
        if of_tenant.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.order.push_back(tenant);
        }
        first
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(places) = self.0.take() {
            places.hand_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures_util::FutureExt as _;
    use tokio::runtime::{Builder, LocalOptions};
    use tokio::task::{spawn_local, yield_now};

    use super::*;
    use crate::invoke::urgency::Root;
    use crate::schedule::Demand;

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().build_local(LocalOptions::default()).unwrap().block_on(test);
    }

    #[test]
    fn what_has_a_place_and_is_ahead_is_asked_for_when_something_waits_for_one() {
        run(async {
            let (places, root) = (Places::new(2), Root::default());
            let stakes = [1, 2].map(|step| root.ahead([step]));
            let urgencies = stakes.each_ref().map(|stake| Arc::clone(stake.urgency().unwrap()));
            let _held = urgencies.each_ref().map(|urgency| {
                places.lend(urgency);
                places.take_free().unwrap()
            });
            assert!(places.take_free().is_none());
            assert_eq!(urgencies.each_ref().map(|urgency| urgency.demand()), [Demand::Speculative; 2]);
            assert!(places.take("a".into()).now_or_never().is_none());
            assert_eq!(urgencies.map(|urgency| urgency.demand()), [Demand::Asked; 2]);
            for step in 0..10 * LENT_MIN as u32 {
                places.lend(root.ahead([step]).urgency().unwrap());
            }
            assert!(places.0.borrow().lent.len() <= LENT_MIN, "those that are over are forgotten");
        });
    }

    #[test]
    fn tenants_take_turns_and_within_one_the_first_comes_first() {
        run(async {
            let (places, given) = (Places::new(1), Rc::new(RefCell::new(Vec::new())));
            let held = places.take("z".into()).await;
            let asked: Vec<(&str, u32)> = (0..5).map(|n| ("a", n)).chain([("b", 0), ("b", 1), ("c", 0)]).collect();
            for &(tenant, number) in &asked {
                let (places, given) = (Rc::clone(&places), Rc::clone(&given));
                spawn_local(async move {
                    let _held = places.take(tenant.into()).await;
                    given.borrow_mut().push((tenant, number));
                });
                yield_now().await;
            }
            drop(held);
            while given.borrow().len() < asked.len() {
                yield_now().await;
            }
            let expected = [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2), ("a", 3), ("a", 4)];
            assert_eq!(*given.borrow(), expected);
        });
    }

    #[test]
    fn what_waits_no_longer_is_passed_over_and_no_place_is_lost() {
        run(async {
            let places = Places::new(2);
            let (one, two) = (places.take("a".into()).await, places.take("a".into()).await);
            let mut waiting: Vec<_> = (0..10_000).map(|_| places.take("a".into()).boxed_local()).collect();
            for waits in &mut waiting {
                assert!(waits.now_or_never().is_none());
            }
            let mut last = places.take("b".into()).boxed_local();
            assert!((&mut last).now_or_never().is_none());
            waiting.clear();
            drop(one);
            let third = last.now_or_never().expect("the place that was freed");
            assert!(places.take("c".into()).now_or_never().is_none());
            drop((two, third));
            assert_eq!(places.0.borrow().free, 2);
            assert!(places.0.borrow().waiting.is_empty());
        });
    }
}
