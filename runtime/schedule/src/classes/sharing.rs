//! Shares of classes in the time that a tenant has on a worker: start-time fair queueing, as among tenants.
//!
//! *Dynamic* shares have two parts. One is certain, the more the shorter the class: 8, 4, 2, 2 of 16. The other follows what waits: its number times the mean length of its class,
//! smoothed, up to eight quanta. So a class of which little waits has its turn at once if it uses less than what is certain; one whose backlog grows gets more, until the
//! backlogs are alike; and the longest class always has 2 of 48 at least.

use std::time::Duration;

use super::{CLASSES, Shares};
use crate::turns::{Has, Turn, Turns, nanoseconds};

/// What each class has for certain.
const CERTAIN: [u64; CLASSES] = [8, 4, 2, 2];
/// What a class has more when that many quanta of it wait, or more.
const MORE_MAX: u64 = 16;
const QUANTA_MAX: u64 = 8;
/// Over how many runs what waits is smoothed: a power of two.
const SMOOTHED: u64 = 8;

/// The classes of one tenant on one worker.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    turns: Turns<u8>,
    members: [Member; CLASSES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    turn: Turn,
    waiting: usize,
    /// What waits, in nanoseconds, smoothed.
    backlog: u64,
}

impl Sharing {
    /// One more of that class waits.
    pub(crate) const fn added(&mut self, class: u8) {
        self.members[class as usize].waiting += 1;
    }

    /// One of that class waits no longer.
    pub(crate) const fn removed(&mut self, class: u8) {
        self.members[class as usize].waiting -= 1;
    }

    /// How many of each class wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> [usize; CLASSES] {
        self.members.map(|member| member.waiting)
    }

    /// That class waits for its turn again, if it has anything to run.
    pub(crate) fn wants(&mut self, class: u8) {
        let member = &mut self.members[usize::from(class)];
        if member.waiting > 0 {
            self.turns.wants(class, &mut member.turn);
        }
    }

    /// The class whose turn it is, of those in which `find` finds something that may run, and what it found.
    pub(crate) fn next<T>(&mut self, mut find: impl FnMut(u8) -> Option<T>) -> Option<(u8, T)> {
        let Sharing { turns, members } = self;
        let mut found = None;
        let class = turns.next(|class| {
            let Member { turn, waiting, .. } = &mut members[usize::from(class)];
            if *waiting == 0 {
                return turn.look(Has::Nothing);
            }
            found = find(class);
            turn.look(if found.is_some() { Has::Something } else { Has::NothingNow })
        })?;
        Some((class, found?))
    }

    /// That class runs.
    pub(crate) fn runs(&mut self, class: u8) {
        self.turns.runs(&self.members[usize::from(class)].turn);
    }

    /// Whether that class would be next if it wanted to run now.
    pub(crate) fn would_be_next(&self, class: u8) -> bool {
        self.turns.would_be_next(&self.members[usize::from(class)].turn)
    }

    /// That class used so much.
    pub(crate) fn used(&mut self, class: u8, time: Duration, shares: Shares, means: &[u64; CLASSES], quantum: Duration) {
        for (member, mean) in self.members.iter_mut().zip(means) {
            let waits = mean.saturating_mul(member.waiting as u64);
            member.backlog = member.backlog - member.backlog / SMOOTHED + waits / SMOOTHED;
        }
        let index = usize::from(class);
        let share = match shares {
            Shares::Static(parts) => u64::from(parts[index].max(1)),
            Shares::Dynamic => {
                let most = nanoseconds(quantum).saturating_mul(QUANTA_MAX).max(1);
                CERTAIN[index] + self.members[index].backlog.min(most).saturating_mul(MORE_MAX) / most
            }
        };
        // Shares are small numbers.
        let time = time * 16 / u32::try_from(share).unwrap_or(u32::MAX);
        self.turns.used(&mut self.members[index].turn, time);
    }
}
