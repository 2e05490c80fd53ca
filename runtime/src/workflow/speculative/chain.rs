//! The guesses that a run rests on: that the execution goes on behind the state before it, and behind each state before that whose run had not ended either. Without any of them the run would not have begun so
//! early, so each of them has saved what the run has saved. Otherwise a guess whose own run saves nothing would be given up, and with it all that comes behind.

use std::collections::VecDeque;
use std::time::Instant;

use sledge_workflow::definition::StateIndex;

/// Runs that are looked back at: more were not ahead of the base.
const LINKS_MAX: usize = 64;

/// What was committed last, in its order.
#[derive(Default)]
pub(super) struct Chain(VecDeque<Link>);

/// A run.
struct Link {
    state: StateIndex,
    /// The state before it, if the run of that had not ended when this one began.
    behind: Option<StateIndex>,
    ended: Instant,
}

impl Chain {
    /// A run of that state is committed. The states behind which it was guessed that the execution goes on, so that the run began when it did: the nearest one is `behind`.
    pub(super) fn add(
        &mut self,
        state: StateIndex,
        behind: Option<StateIndex>,
        (began, ended): (Instant, Instant),
    ) -> Vec<StateIndex> {
        let (mut guesses, mut before, mut next) = (Vec::new(), self.0.iter().rev(), behind);
        while let Some(guess) = next {
            let link = before.find(|link| link.state == guess);
            // That one had not ended is known of the nearest.
            if !guesses.is_empty() && link.is_none_or(|link| link.ended <= began) {
                break;
            }
            guesses.push(guess);
            next = link.and_then(|link| link.behind);
        }
        if self.0.len() >= LINKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Link { state, behind, ended });
        guesses
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn state(number: u32) -> StateIndex {
        serde_json::from_value(number.into()).unwrap()
    }

    /// Runs of the states 0, 1, and so on, one after the other, each with when it began and ended, and whether that was ahead.
    fn guesses(runs: &[(u64, u64, bool)]) -> Vec<Vec<u32>> {
        let (start, mut chain) = (Instant::now(), Chain::default());
        let at = |ms| start + Duration::from_millis(ms);
        let add = |(number, (began, ended, is_ahead)): (u32, &(u64, u64, bool))| {
            let behind = is_ahead.then(|| state(number - 1));
            let all = chain.add(state(number), behind, (at(*began), at(*ended)));
            all.into_iter().map(|guess| (0..).find(|number| state(*number) == guess).unwrap()).collect()
        };
        (0..).zip(runs).map(add).collect()
    }

    #[test]
    fn a_run_rests_on_all_guesses_behind_runs_that_had_not_ended() {
        assert_eq!(
            guesses(&[(0, 5, false), (0, 6, true), (0, 7, true), (0, 8, true)]),
            [vec![], vec![0], vec![1, 0], vec![2, 1, 0]]
        );
        // The first run had ended when the third one began.
        assert_eq!(guesses(&[(0, 5, false), (0, 9, true), (6, 9, true)]), [vec![], vec![0], vec![1]]);
        // The third one began in its turn.
        assert_eq!(guesses(&[(0, 5, false), (0, 6, true), (6, 9, false), (6, 9, true)]), [vec![], vec![0], vec![], vec![2]]);
    }

    /// Of the nearest one it is known that it had not ended, also where nothing else is known of it; of any other that has to be known.
    #[test]
    fn what_is_not_known_of_a_run_says_nothing_of_those_before_it() {
        // It has ended at the very moment at which the next one began.
        assert_eq!(guesses(&[(0, 5, false), (5, 9, true)]), [vec![], vec![0]]);
        let (now, mut chain) = (Instant::now(), Chain::default());
        let later = now + Duration::from_secs(1);
        assert_eq!(chain.add(state(1), Some(state(0)), (now, later)), [state(0)]);
        assert_eq!(chain.add(state(2), Some(state(1)), (now, later)), [state(1)]);
    }

    #[test]
    fn of_a_long_execution_the_last_runs_are_known() {
        let (now, mut chain) = (Instant::now(), Chain::default());
        chain.add(state(0), None, (now, now + Duration::from_secs(1)));
        for number in 1..1_000 {
            let guesses = chain.add(state(number), Some(state(number - 1)), (now, now + Duration::from_secs(1)));
            assert!(guesses.iter().copied().eq((0..number).rev().take(LINKS_MAX).map(state)), "{number}: {guesses:?}");
        }
    }

    #[test]
    fn a_loop_and_a_long_execution_end() {
        let (now, mut chain) = (Instant::now(), Chain::default());
        for _ in 0..10 * LINKS_MAX {
            assert!(chain.add(state(1), Some(state(1)), (now, now + Duration::from_secs(1))).len() <= LINKS_MAX + 1);
        }
        assert_eq!(chain.0.len(), LINKS_MAX);
    }
}
