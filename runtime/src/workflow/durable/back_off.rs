//! Pauses before something is tried again that could not be done, each twice as long as the one before.

use std::time::Duration;

/// How long the next pause is, and how long one is at most.
pub(super) struct BackOff {
    next: Duration,
    max: Duration,
}

impl BackOff {
    pub(super) const fn new(first: Duration, max: Duration) -> BackOff {
        BackOff { next: first, max }
    }

    /// Waits before the next attempt.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.next()).await;
    }

    /// How long the pause before the next attempt is.
    pub(super) fn next(&mut self) -> Duration {
        let next = self.next;
        self.next = next.saturating_mul(2).min(self.max);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut back_off = BackOff::new(Duration::from_millis(20), Duration::from_millis(100));
        let pauses: Vec<_> = (0..5).map(|_| back_off.next().as_millis()).collect();
        assert_eq!(pauses, [20, 40, 80, 100, 100]);
    }
}
