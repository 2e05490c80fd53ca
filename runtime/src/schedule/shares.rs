//! Equal shares of a worker for all tenants that want it: start-time fair queueing.
//!
//! Every tenant has a clock that advances by what it has used. Next is always the one whose clock is earliest. Who comes back after a while
//! of wanting nothing begins where the others are: it is served soon, but nothing is saved up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A tenant, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u32);

#[derive(Clone, Copy, Debug, Default)]
struct Tenant {
    /// What it has used, in nanoseconds since the common beginning.
    clock: u64,
    /// Its valid entry in the heap.
    entry: Option<u64>,
}

/// What a tenant has to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// Nothing.
    Nothing,
    /// Nothing that may run now.
    NothingNow,
    /// Something.
    Something,
}

/// Who is next.
#[derive(Debug, Default)]
pub struct Shares {
    tenants: Vec<Tenant>,
    /// Those that want to run: clock, then number of the entry, so that of equals the one is first that has waited longest.
    heap: BinaryHeap<Reverse<(u64, u64, TenantId)>>,
    /// Where the one was that ran last.
    clock: u64,
    last_entry: u64,
}

impl Shares {
    /// A tenant has something to run.
    pub fn wants(&mut self, tenant: TenantId) {
        let index = tenant.0 as usize;
        if self.tenants.len() <= index {
            self.tenants.resize(index + 1, Tenant::default());
        }
        let entry = &mut self.tenants[index];
        if entry.entry.is_none() {
            self.last_entry += 1;
            entry.entry = Some(self.last_entry);
            entry.clock = entry.clock.max(self.clock);
            self.heap.push(Reverse((entry.clock, self.last_entry, tenant)));
        }
    }

    /// The tenant to run next, of those that `has` something to run. If it still has then, it [wants](Shares::wants) again.
    pub fn next(&mut self, has: impl Fn(TenantId) -> Has) -> Option<TenantId> {
        let mut passed_over = Vec::new();
        let mut found = None;
        while let Some(Reverse(top)) = self.heap.pop() {
            let (clock, number, tenant) = top;
            let entry = &mut self.tenants[tenant.0 as usize];
            if entry.entry != Some(number) {
                continue;
            }
            match has(tenant) {
                Has::Nothing => entry.entry = None,
                Has::NothingNow => passed_over.push(Reverse(top)),
                Has::Something => {
                    entry.entry = None;
                    self.clock = self.clock.max(clock);
                    found = Some(tenant);
                    break;
                }
            }
        }
        self.heap.extend(passed_over);
        found
    }

    /// A tenant ran for so long.
    pub fn ran(&mut self, tenant: TenantId, time: Duration) {
        let used = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(entry) = self.tenants.get_mut(tenant.0 as usize) {
            entry.clock = entry.clock.max(self.clock).saturating_add(used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(0);
    const B: TenantId = TenantId(7);

    fn serve(shares: &mut Shares, micros: u64) -> TenantId {
        let tenant = shares.next(|_| Has::Something).expect("somebody wants to run");
        shares.ran(tenant, Duration::from_micros(micros));
        shares.wants(tenant);
        tenant
    }

    #[test]
    fn shares_are_equal_in_time_whatever_each_uses_at_once() {
        let mut shares = Shares::default();
        shares.wants(A);
        shares.wants(B);
        let mut used = [0, 0];
        for _ in 0..1_000 {
            let (index, micros) = if serve(&mut shares, 0) == A { (0, 500) } else { (1, 7) };
            used[index] += micros;
            shares.ran([A, B][index], Duration::from_micros(micros));
        }
        assert!(used[0].abs_diff(used[1]) <= 1_000, "{used:?}");
    }

    #[test]
    fn nothing_is_saved_up_and_who_comes_back_is_served_next() {
        let mut shares = Shares::default();
        shares.wants(A);
        for _ in 0..100 {
            assert_eq!(serve(&mut shares, 500), A);
        }
        shares.wants(B);
        let first: Vec<_> = (0..6).map(|_| serve(&mut shares, 500)).collect();
        assert_eq!(first.iter().filter(|tenant| **tenant == B).count(), 3, "{first:?}");
        assert!(first[..2].contains(&B), "{first:?}");
    }

    #[test]
    fn who_has_nothing_is_forgotten_until_it_wants_again() {
        let mut shares = Shares::default();
        shares.wants(A);
        shares.wants(B);
        let only_b = |tenant| if tenant == B { Has::Something } else { Has::Nothing };
        assert_eq!(shares.next(only_b), Some(B));
        assert_eq!(shares.next(only_b), None);
        shares.wants(A);
        assert_eq!(shares.next(|_| Has::NothingNow), None);
        assert_eq!(shares.next(|_| Has::Something), Some(A), "who was passed over is still there");
    }
}
