//! What is done when it is known whether a run counts, where not the run's own end decides that: what it has read and written becomes a part of a commit that another makes, of a group of columns or of a
//! step of a durable execution.

use std::fmt;
use std::mem;
use std::sync::Mutex;

use super::column::Stale;
use super::pipeline::Cause;
use super::{Transaction, lock};

/// What has become of what a run has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was there: the commit was made, with what the run has written if it has ended well.
    Committed,
    /// It was not, or is not any more: the run is to be made again.
    Stale,
}

type Then = Box<dyn FnOnce(Verdict, &Transaction) + Send>;

/// What waits for the verdict about one transaction.
#[derive(Default)]
pub(super) struct Verdicts(Mutex<State>);

enum State {
    Waits(Vec<Then>),
    Known(Verdict),
}

impl Default for State {
    fn default() -> State {
        State::Waits(Vec::new())
    }
}

impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdicts").finish_non_exhaustive()
    }
}

impl Transaction {
    /// Does that when it is known what has become of the outermost transaction, with that one. It is never done where that is given up. Gives it back where the run's own end decides.
    pub fn when_decided(&self, then: Then) -> Option<Then> {
        let outermost = self.outermost();
        let Some(verdicts) = &outermost.verdicts else { return Some(then) };
        let verdict = match &mut *lock(&verdicts.0) {
            State::Waits(waiting) => {
                waiting.push(then);
                return None;
            }
            State::Known(verdict) => *verdict,
        };
        then(verdict, outermost);
        None
    }

    /// That has become of it.
    pub fn decided(&self, verdict: Verdict) {
        let Some(verdicts) = &self.verdicts else { return };
        let before = mem::replace(&mut *lock(&verdicts.0), State::Known(verdict));
        if let State::Waits(waiting) = before {
            waiting.into_iter().for_each(|then| then(verdict, self));
        }
    }

    /// Its column was squashed for that reason.
    pub fn squashed(&self, cause: &Cause) {
        if let Cause::Changed(key) = cause {
            *lock(&self.conflicted) = key.clone().map(Stale::Key);
            self.decided(Verdict::Stale);
        }
    }

    /// Whether it was stale before, and is made again.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.outermost().is_repeated
    }
}
