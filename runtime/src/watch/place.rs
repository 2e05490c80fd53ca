//! One worker, as the watcher sees it: where it stands, its epoll, and the signals that it is sent.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sledge_sandbox::Alarm;

use super::PAUSE;
use super::state::State;

/// One worker.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) state: State,
    worker: OnceLock<(OwnedFd, Alarm)>,
    /// When it was last sent a signal, in nanoseconds.
    rang: AtomicU64,
    /// Whether it is to be sent one as soon as that is [`PAUSE`] ago.
    is_due: AtomicBool,
}

impl Place {
    /// Takes in its worker, once.
    pub(super) fn take_in(&self, epoll: OwnedFd, alarm: Alarm) {
        let _ = self.worker.set((epoll, alarm));
    }

    /// The epoll of its runtime.
    pub(super) fn epoll(&self) -> Option<&OwnedFd> {
        self.worker.get().map(|(epoll, _)| epoll)
    }

    /// Sends the signal, unless the last one was sent a moment ago: false then, and it is [due](Place::due).
    pub(super) fn ring(&self, now: Duration) -> bool {
        let now = nanoseconds(now);
        // Relaxed, here and below: times that order nothing; two signals at once do no harm.
        if now.saturating_sub(self.rang.load(Ordering::Relaxed)) < nanoseconds(PAUSE) {
            self.is_due.store(true, Ordering::Release);
            return false;
        }
        self.rang.store(now, Ordering::Relaxed);
        if let Some((_, alarm)) = self.worker.get() {
            alarm.ring();
        }
        true
    }

    /// When the signal that could not be sent is to be sent, if there is one.
    pub(super) fn due(&self) -> Option<Duration> {
        let is_due = self.is_due.load(Ordering::Acquire);
        is_due.then(|| Duration::from_nanos(self.rang.load(Ordering::Relaxed)) + PAUSE)
    }

    /// Sends it if it is time, and still wanted: the guest has not stopped meanwhile.
    pub(super) fn ring_late(&self, now: Duration) {
        if self.due().is_some_and(|due| due <= now) {
            self.is_due.store(false, Ordering::Relaxed);
            if self.state.has_fired() {
                self.ring(now);
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_keep_their_distance_and_one_that_is_late_is_sent_only_if_it_is_wanted() {
        let place = Place::default();
        let begin = Duration::from_secs(1);
        place.state.arm();
        place.state.enter();
        place.state.fired();
        assert!(place.ring(begin));
        assert_eq!(place.due(), None);
        assert!(!place.ring(begin + PAUSE / 2));
        assert_eq!(place.due(), Some(begin + PAUSE));
        place.ring_late(begin + PAUSE / 2);
        assert!(place.due().is_some(), "too early");
        place.ring_late(begin + PAUSE);
        assert_eq!(place.due(), None);
        assert_eq!(place.rang.load(Ordering::Relaxed), nanoseconds(begin + PAUSE), "sent");
        place.ring(begin + PAUSE);
        place.state.arm();
        place.ring_late(begin + 3 * PAUSE);
        assert_eq!(
            (place.due(), place.rang.load(Ordering::Relaxed)),
            (None, nanoseconds(begin + PAUSE)),
            "the guest has stopped"
        );
    }
}
