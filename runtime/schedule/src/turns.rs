//! Turns by the time that each has used: start-time fair queueing.
//!
//! Every member has a clock that advances by what it has used. Next is always the one whose clock is earliest. A member that comes back after a while of wanting
//! nothing begins where the others are: it is served soon, but nothing is saved up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// One member's part: kept by the owner of the [`Turns`], in any order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// What it has used, in nanoseconds since the common beginning.
    clock: u64,
    /// What it had used when its entry was made. What it is charged for while it waits does not count before its next one.
    start: u64,
    /// Whether it has an entry in the heap: one at most.
    wants: bool,
}

/// What a member has to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Has {
    /// Nothing.
    Nothing,
    /// Nothing that may run now.
    NothingNow,
    /// Something.
    Something,
}

/// What becomes of an entry that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It wants nothing any more.
    Forget,
    /// Others first.
    PassOver,
    /// It is next.
    Take,
}

/// Which of the members is next.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    /// Those that want to run: clock, then number of the entry, so that of equals the one is first that has waited longest.
    heap: BinaryHeap<Reverse<(u64, u64, K)>>,
    /// Where the one was that ran last.
    clock: u64,
    last_entry: u64,
}

impl<K: Ord> Default for Turns<K> {
    fn default() -> Turns<K> {
        Turns { heap: BinaryHeap::new(), clock: 0, last_entry: 0 }
    }
}

impl Turn {
    /// Looks at its entry, where it has so much.
    pub(crate) fn look(&mut self, has: Has) -> Look {
        self.wants = has == Has::NothingNow;
        match has {
            Has::Nothing => Look::Forget,
            Has::NothingNow => Look::PassOver,
            Has::Something => Look::Take,
        }
    }
}

impl<K: Copy + Ord> Turns<K> {
    /// A member has something to run.
    pub(crate) fn wants(&mut self, key: K, turn: &mut Turn) {
        if !turn.wants {
            self.last_entry += 1;
            turn.wants = true;
            turn.clock = turn.clock.max(self.clock);
            turn.start = turn.clock;
            self.heap.push(Reverse((turn.clock, self.last_entry, key)));
        }
    }

    /// The member to run next, if it [runs](Turns::runs). `look` is asked about the members in their order; see [`Turn::look`]. If the member still has
    /// something then, it [wants](Turns::wants) again.
    pub(crate) fn next(&mut self, mut look: impl FnMut(K) -> Look) -> Option<K> {
        let mut passed_over = Vec::new();
        let mut found = None;
        while let Some(Reverse(top)) = self.heap.pop() {
            let (.., key) = top;
            match look(key) {
                Look::Forget => {}
                Look::PassOver => passed_over.push(Reverse(top)),
                Look::Take => {
                    found = Some(key);
                    break;
                }
            }
        }
        self.heap.extend(passed_over);
        found
    }

    /// The member that is next runs: from now on this is where the others are.
    pub(crate) fn runs(&mut self, turn: &Turn) {
        self.clock = self.clock.max(turn.start);
    }

    /// Whether a member would be next if it wanted to run now.
    #[must_use]
    pub(crate) fn would_be_next(&self, turn: &Turn) -> bool {
        self.heap.peek().is_none_or(|Reverse((first, ..))| turn.clock.max(self.clock) <= *first)
    }

    /// A member used so much.
    pub(crate) fn used(&self, turn: &mut Turn, time: Duration) {
        turn.clock = turn.clock.max(self.clock).saturating_add(nanoseconds(time));
    }
}

/// A duration in nanoseconds.
#[must_use]
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Members {
        turns: Turns<usize>,
        members: [Turn; 2],
        has: [Has; 2],
    }

    impl Members {
        fn new(wanting: &[usize]) -> Members {
            let mut all = Members { turns: Turns::default(), members: [Turn::default(); 2], has: [Has::Something; 2] };
            wanting.iter().for_each(|member| all.wants(*member));
            all
        }

        fn wants(&mut self, member: usize) {
            self.turns.wants(member, &mut self.members[member]);
        }

        fn next(&mut self) -> Option<usize> {
            let Members { turns, members, has } = self;
            let next = turns.next(|member| members[member].look(has[member]))?;
            turns.runs(&members[next]);
            Some(next)
        }

        fn serve(&mut self, micros: u64) -> usize {
            let member = self.next().expect("one wants to run");
            self.turns.used(&mut self.members[member], Duration::from_micros(micros));
            self.wants(member);
            member
        }
    }

    #[test]
    fn turns_are_equal_in_time_whatever_each_uses_at_once() {
        let mut all = Members::new(&[0, 1]);
        let mut used = [0, 0];
        for _ in 0..1_000 {
            let member = all.next().unwrap();
            let micros = [500, 7][member];
            used[member] += micros;
            all.turns.used(&mut all.members[member], Duration::from_micros(micros));
            all.wants(member);
        }
        assert!(used[0].abs_diff(used[1]) <= 1_000, "{used:?}");
    }

    #[test]
    fn what_a_member_is_charged_for_while_it_waits_costs_the_others_nothing() {
        let mut all = Members::new(&[0, 1]);
        let mut used = [0_u64, 0];
        for _ in 0..10_000 {
            let member = all.serve(100);
            used[member] += 100;
            // Such as for its connections.
            if member == 1 {
                all.turns.used(&mut all.members[1], Duration::from_micros(2_000));
                used[1] += 2_000;
            }
        }
        assert!(used[0].abs_diff(used[1]) <= 5_000, "{used:?}");
    }

    #[test]
    fn nothing_is_saved_up_and_who_comes_back_is_served_next() {
        let mut all = Members::new(&[0]);
        for _ in 0..100 {
            assert_eq!(all.serve(500), 0);
        }
        assert!(all.turns.would_be_next(&all.members[1]));
        assert!(!all.turns.would_be_next(&Turn { clock: u64::MAX, ..Turn::default() }));
        all.wants(1);
        let first: Vec<_> = (0..6).map(|_| all.serve(500)).collect();
        assert_eq!(first.iter().filter(|member| **member == 1).count(), 3, "{first:?}");
        assert!(first[..2].contains(&1), "{first:?}");
    }

    #[test]
    fn who_has_nothing_is_forgotten_until_it_wants_again() {
        let mut all = Members::new(&[0, 1]);
        all.has[0] = Has::Nothing;
        assert_eq!(all.next(), Some(1));
        assert_eq!(all.next(), None);
        all.has[0] = Has::NothingNow;
        all.wants(0);
        assert_eq!(all.next(), None);
        all.has[0] = Has::Something;
        assert_eq!(all.next(), Some(0), "what was passed over is still there");
    }
}
