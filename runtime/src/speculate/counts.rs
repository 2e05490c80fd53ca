//! How often each of several outcomes came lately.
//!
//! Counts age by halves: when an outcome makes [`SAMPLES_MAX`] of them, all are halved. So a share is that of the last 32 to 64 outcomes and, with half the weight for each 32 more, of those before.

use smallvec::SmallVec;

/// Outcomes without which nothing is said (speculation.md, C15).
pub(super) const SAMPLES_MIN: u32 = 2;
/// The share that the likeliest outcome needs, in percent (speculation.md, S2).
pub(super) const PERCENT_MIN: u32 = 60;
/// Outcomes that are counted before all are halved.
const SAMPLES_MAX: u32 = 64;
/// Outcomes that are told apart. Of more than so many at most one has a share that counts.
const OUTCOMES_MAX: usize = 8;

/// The counts.
#[derive(Clone, Debug)]
pub(super) struct Counts<T> {
    of: SmallVec<[(T, u32); 2]>,
    /// Those of outcomes that are told apart no more.
    others: u32,
}

/// The likeliest outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Likeliest<T> {
    pub(super) outcome: T,
    pub(super) percent: u32,
    pub(super) samples: u32,
}

impl<T> Default for Counts<T> {
    fn default() -> Counts<T> {
        Counts { of: SmallVec::new(), others: 0 }
    }
}

impl<T: Clone + Eq> Counts<T> {
    /// One more outcome.
    pub(super) fn add(&mut self, outcome: &T) {
        match self.of.iter_mut().find(|(own, _)| own == outcome) {
            Some((_, count)) => *count += 1,
            None => {
                self.make_room();
                self.of.push((outcome.clone(), 1));
            }
        }
        if self.samples() >= SAMPLES_MAX {
            self.of.iter_mut().for_each(|(_, count)| *count /= 2);
            self.of.retain(|(_, count)| *count > 0);
            self.others /= 2;
        }
    }

    fn make_room(&mut self) {
        if self.of.len() < OUTCOMES_MAX {
            return;
        }
        let rarest = (0..self.of.len()).min_by_key(|at| self.of[*at].1);
        if let Some(rarest) = rarest {
            let (_, count) = self.of.remove(rarest);
            self.others += count;
        }
    }

    /// How many outcomes are counted.
    pub(super) fn samples(&self) -> u32 {
        self.of.iter().map(|(_, count)| count).sum::<u32>() + self.others
    }

    /// Whether there are enough to say something.
    pub(super) fn suffice(&self) -> bool {
        self.samples() >= SAMPLES_MIN
    }

    /// The outcome that is to be expected, if one is.
    pub(super) fn likeliest(&self) -> Option<Likeliest<T>> {
        let samples = self.samples();
        let (outcome, count) = self.of.iter().max_by_key(|(_, count)| *count)?;
        let is_likely = samples >= SAMPLES_MIN && count * 100 >= samples * PERCENT_MIN;
        is_likely.then(|| Likeliest { outcome: outcome.clone(), percent: count * 100 / samples, samples })
    }

    /// The outcomes that are told apart, each with its count.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(T, u32)> {
        self.of.iter()
    }

    /// Bytes of them beside themselves.
    pub(super) fn heap_bytes(&self) -> usize {
        if self.of.spilled() { self.of.capacity() * size_of::<(T, u32)>() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(outcomes: &[u32]) -> Counts<u32> {
        let mut counts = Counts::default();
        outcomes.iter().for_each(|outcome| counts.add(outcome));
        counts
    }

    fn likeliest(outcomes: &[u32]) -> Option<u32> {
        counts(outcomes).likeliest().map(|likeliest| likeliest.outcome)
    }

    #[test]
    fn an_outcome_is_expected_with_two_samples_and_three_fifths_of_them() {
        assert_eq!(likeliest(&[]), None);
        assert_eq!(likeliest(&[1]), None, "one sample says nothing");
        assert_eq!(likeliest(&[1, 1]), Some(1));
        assert_eq!(likeliest(&[1, 2]), None);
        assert_eq!(likeliest(&[1, 2, 1, 2, 1]), Some(1), "three fifths are enough");
        assert_eq!(likeliest(&[1, 2, 1, 2, 1, 2, 1]), None, "four of seven are not");
        let expected = Likeliest { outcome: 3, percent: 75, samples: 4 };
        assert_eq!(counts(&[3, 3, 9, 3]).likeliest(), Some(expected));
    }

    #[test]
    fn what_came_lately_counts_more() {
        let mut counts = counts(&[1; 10_000]);
        assert!(counts.samples() < SAMPLES_MAX);
        let mut until = 0;
        while counts.likeliest().is_none_or(|likeliest| likeliest.outcome == 1) {
            counts.add(&2);
            until += 1;
        }
        assert!((20..=60).contains(&until), "{until} outcomes");
    }

    #[test]
    fn the_outcomes_of_a_branch_with_many_ways_are_bounded_and_its_share_is_of_all() {
        let mut counts = Counts::default();
        for round in 0..10_000_u32 {
            counts.add(&if round % 3 == 0 { 0 } else { round });
            assert!(counts.of.len() <= OUTCOMES_MAX && counts.samples() < SAMPLES_MAX);
            assert!(round < 4 || counts.likeliest().is_none(), "a third is not enough, whatever became of the others");
        }
    }
}
