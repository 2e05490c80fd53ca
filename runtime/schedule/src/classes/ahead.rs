//! How much work of later classes is on its way, and whether more requests may begin.
//!
//! A request that begins with a short microtask brings work of later classes with it, which it gets to some time after it began: when it has read what it processes. If requests
//! begin as they come, that work piles up where they meet, and each waits there with its memory. If they begin only when none of it waits, the core has nothing to do
//! until the next one has got there. So they begin as long as all such work of the tenant that is on its way, whether its request has got there or not, is less than the core does until a new
//! request gets there, and two quanta. Both times are averages of the function: what its requests use in later classes, and how long they compute and are blocked before that.
//!
//! A worker that has nothing else to do begins one nevertheless, as often as it could do the work that this brings. So nothing waits for a request that is blocked for long.

use std::time::{Duration, Instant};

use crate::task::TenantId;
use crate::turns::nanoseconds;

/// What may wait in any case, in quanta.
const QUANTA: u64 = 2;
/// How many requests an average goes over.
const AVERAGED: u64 = 8;

/// What is known of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learned {
    /// What a request uses in later classes, in nanoseconds.
    later: u64,
    /// How long it computes and is blocked before that, and how many of those have been seen.
    lead: u64,
    ended: u64,
    leads: u64,
}

impl Learned {
    /// What a request is expected to use in later classes.
    pub(super) const fn later(&self) -> u64 {
        self.later
    }

    /// A request has used so much there, and took so long to get there.
    pub(super) fn learn(&mut self, later: u64, lead: Option<u64>) {
        average(&mut self.later, &mut self.ended, later);
        if let Some(lead) = lead {
            average(&mut self.lead, &mut self.leads, lead);
        }
    }
}

fn average(value: &mut u64, count: &mut u64, new: u64) {
    *count = (*count + 1).min(AVERAGED);
    *value = *value - *value / *count + new / *count;
}

/// What is on its way on one worker.
#[derive(Debug)]
pub(super) struct Ahead {
    quantum: u64,
    /// By the number of the tenant, in nanoseconds.
    tenants: Vec<u64>,
    begins_anyway_at: Option<Instant>,
}

impl Ahead {
    pub(super) fn new(quantum: Duration) -> Ahead {
        Ahead { quantum: nanoseconds(quantum), tenants: Vec::new(), begins_anyway_at: None }
    }

    /// A request begins that is expected to use so much in later classes.
    pub(super) fn begins(&mut self, tenant: TenantId, later: u64, now: Instant) {
        self.add(tenant, later);
        if later > 0 {
            self.begins_anyway_at = Some(now + Duration::from_nanos(later));
        }
    }

    /// What began last did not run.
    pub(super) const fn dropped(&mut self) {
        self.begins_anyway_at = None;
    }

    /// There is so much more.
    pub(super) fn add(&mut self, tenant: TenantId, time: u64) {
        let index = tenant.0 as usize;
        if self.tenants.len() <= index {
            self.tenants.resize(index + 1, 0);
        }
        self.tenants[index] = self.tenants[index].saturating_add(time);
    }

    /// So much of it is done, or will not be.
    pub(super) fn remove(&mut self, tenant: TenantId, time: u64) {
        if let Some(of) = self.tenants.get_mut(tenant.0 as usize) {
            *of = of.saturating_sub(time);
        }
    }

    /// Whether a request of such a function would only wait later. Those that bring less than a quantum never do.
    pub(super) fn is_enough(&self, tenant: TenantId, learned: &Learned) -> bool {
        let ahead = self.tenants.get(tenant.0 as usize).copied().unwrap_or(0);
        learned.later >= self.quantum && ahead >= learned.lead.saturating_add(QUANTA * self.quantum)
    }

    /// See [`Microtasks::begins_anyway_at`](super::Microtasks::begins_anyway_at).
    pub(super) const fn begins_anyway_at(&self) -> Option<Instant> {
        self.begins_anyway_at
    }
}
