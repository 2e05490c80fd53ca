//! Whether a function is left out because its answer is known: what that answer rests on, and how often such answers were right (speculation.md, S10).

use std::sync::Arc;

use serde_json::Value;

use crate::memo::callees::Version;
use crate::txn::pipeline::Basis;

/// After the first wrong answer so many runs are made before the next answer is taken.
const PAUSE_MIN: u32 = 4;
/// After several in a row it is twice as many each time, up to so many.
const PAUSE_MAX: u32 = 64;

/// What an answer rests on: it is right as long as all of that is so.
#[derive(Debug)]
pub struct Grounds {
    /// What the run has read, and changed.
    pub basis: Basis,
    /// The functions that it has called, each with its version.
    pub callees: Box<[Version]>,
}

impl Grounds {
    /// Bytes that they keep.
    pub(super) fn bytes(&self) -> usize {
        let callees = self.callees.iter().map(|(name, _)| size_of::<Version>() + name.len());
        size_of::<Grounds>() + self.basis.bytes() + callees.sum::<usize>()
    }
}

/// An answer that may stand for a run.
#[derive(Clone, Debug)]
pub struct Skip {
    /// What the run has answered.
    pub answer: Arc<Value>,
    /// What that rests on.
    pub grounds: Arc<Grounds>,
}

/// How far known answers of a function are taken, or a known value. A wrong one costs an execution more than a right one saves: what comes behind it has perhaps been wrong, too.
#[derive(Debug)]
pub(super) struct Caution {
    /// So many are not taken now.
    pause: u32,
    /// How many that are after the next wrong one.
    next: u32,
}

impl Default for Caution {
    fn default() -> Caution {
        Caution { pause: 0, next: PAUSE_MIN }
    }
}

impl Caution {
    /// Whether an answer is taken now: to be asked for each.
    pub(super) const fn takes(&mut self) -> bool {
        let takes = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        takes
    }

    /// Whether the next one is not taken.
    pub(super) const fn pauses(&self) -> bool {
        self.pause != 0
    }

    /// Whether nothing was wrong for long.
    pub(super) const fn is_new(&self) -> bool {
        self.pause == 0 && self.next == PAUSE_MIN
    }

    pub(super) fn was_right(&mut self) {
        self.next = (self.next / 2).max(PAUSE_MIN);
    }

    pub(super) fn was_wrong(&mut self) {
        self.pause = self.next;
        self.next = (self.next * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many answers are taken of so many, each of which is right or wrong.
    fn taken(caution: &mut Caution, count: usize, is_right: bool) -> usize {
        let mut taken = 0;
        for _ in 0..count {
            if caution.takes() {
                taken += 1;
                if is_right { caution.was_right() } else { caution.was_wrong() }
            }
        }
        taken
    }

    #[test]
    fn answers_that_are_wrong_are_taken_ever_more_seldom_and_right_ones_again() {
        let mut caution = Caution::default();
        assert_eq!(taken(&mut caution, 100, true), 100);
        assert_eq!(taken(&mut caution, 1_000, false), 5 + (1_000 - 65) / 65);
        assert!(taken(&mut caution, 100, true) >= 100 - 64);
        caution.was_wrong();
        assert_eq!(taken(&mut caution, 100, true), 100 - PAUSE_MIN as usize);
    }
}
