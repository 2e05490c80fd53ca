//! When the timer is stopped: at once when no guest runs any more, or only by a tick that comes in vain.
//!
//! Stopping and starting it costs a system call each; a tick in vain costs an interrupt, a signal and a wait that is broken off. So pauses
//! are taken to be like the last one: if that was longer than a quantum, a tick would have come.

use std::time::{Duration, Instant};

/// The times in which a worker runs nothing.
#[derive(Debug, Default)]
pub struct Pause {
    since: Option<Instant>,
    /// Whether the last one was longer than a quantum.
    was_long: bool,
}

impl Pause {
    /// The worker is about to wait; `ticked` says that a tick came while no guest ran. Whether to stop the timer.
    pub fn begin(&mut self, now: Instant, ticked: bool) -> bool {
        self.since.get_or_insert(now);
        ticked || self.was_long
    }

    /// A guest runs.
    pub fn end(&mut self, now: Instant, quantum: Duration) {
        if let Some(since) = self.since.take() {
            self.was_long = now.saturating_duration_since(since) > quantum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(500);

    #[test]
    fn the_timer_goes_on_in_short_pauses_and_stops_at_once_in_long_ones() {
        let mut pause = Pause::default();
        let mut now = Instant::now();
        let mut pass = |time: Duration, ticked: bool| {
            let stops = pause.begin(now, false);
            // A tick ends the wait, and another begins.
            let stops_later = ticked && pause.begin(now + QUANTUM, true);
            now += time;
            pause.end(now, QUANTUM);
            (stops, stops_later)
        };
        assert_eq!(pass(QUANTUM / 2, false), (false, false));
        assert_eq!(pass(10 * QUANTUM, true), (false, true), "a tick in vain, of a first long pause");
        assert_eq!(pass(10 * QUANTUM, false), (true, false));
        assert_eq!(pass(QUANTUM / 2, false), (true, false));
        assert_eq!(pass(QUANTUM / 2, false), (false, false));
    }
}
