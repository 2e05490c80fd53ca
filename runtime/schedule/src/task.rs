//! What the order knows of an invocation.

use std::time::{Duration, Instant};

/// An invocation of one worker; the worker knows what is behind the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A tenant, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u32);

/// A function, by its number; of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// What there is to know of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// The tenant whose function it calls.
    pub tenant: TenantId,
    /// Which function it calls.
    pub function: FunctionId,
    /// The share of its function among the functions of its tenant: at equal load, a function of weight 2 gets twice the time of one of weight 1. At least 1.
    pub weight: u32,
    /// Its place among all admitted invocations: the smaller, the older.
    pub age: u64,
    /// When the request was complete.
    pub arrived: Instant,
    /// When it must be over.
    pub deadline: Instant,
    /// The processor time it may use.
    pub cpu_max: Duration,
    /// The processor time it has used.
    pub cpu: Duration,
    /// Whether it has started.
    pub started: bool,
    /// How many levels it has dropped for what it has used; only the order writes it.
    pub level: u8,
    /// The class of its microtask; only the order writes it.
    pub class: u8,
    /// Whether it was begun ahead, and is not asked for yet: it runs where nothing else is to be run that is.
    pub is_speculative: bool,
}

/// Where a speculative task stands among those of its tenant: the smaller, the earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    root: u64,
    place: u128,
}

impl Rank {
    /// By the age of the request on whose behalf it runs, then by its place in what that does: a Dewey path. Of the path the first eight steps count, each up to 65,535; what is equal then stands by age.
    #[must_use]
    pub fn new(root: u64, path: impl IntoIterator<Item = u32>) -> Rank {
        let steps = path.into_iter().map(|step| u16::try_from(step).unwrap_or(u16::MAX)).chain(std::iter::repeat(0));
        let place = steps.take(8).fold(0, |place: u128, step| place << 16 | u128::from(step));
        Rank { root, place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_the_order_of_roots_and_of_paths() {
        let path = |steps: &[u32]| Rank::new(5, steps.iter().copied());
        let in_order = [
            Rank::new(4, [9]),
            path(&[]),
            path(&[1]),
            path(&[1, 1]),
            path(&[1, 1, 0, 7]),
            path(&[1, 2]),
            path(&[2]),
            path(&[65_534, 3]),
            path(&[65_535]),
            Rank::new(6, []),
        ];
        assert!(in_order.is_sorted_by(|before, after| before < after), "{in_order:?}");
        assert_eq!(path(&[70_000]), path(&[65_535]), "as far as they are told apart");
        assert_eq!(path(&[1, 1, 1, 1, 1, 1, 1, 1, 2]), path(&[1; 8]));
    }
}
