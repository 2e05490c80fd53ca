//! How many functions of an execution may run ahead, by how busy the workers are (speculation.md, S11): what runs ahead may be in vain, and is to take only time that nothing else needs.

use std::time::Duration;

/// Up to which load of the workers, in percent, so many functions run ahead. Below all of them it is as many as are configured.
const STEPS: [(u32, u32); 3] = [(60, u32::MAX), (70, 6), (81, 5)];
/// How many run ahead above that.
const DEPTH_MIN: u32 = 4;
/// The load from which nothing runs ahead.
const SATURATED_PERCENT: u32 = 95;
/// The time over which the load is averaged.
const WINDOW: Duration = Duration::from_millis(100);

/// How busy the workers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The part of the workers' time that was used lately, in percent.
    pub percent: u32,
    /// What is no speculation, can run, and waits for a worker.
    pub waiting: usize,
    /// How many workers there are.
    pub workers: usize,
}

impl Load {
    /// Whether there is no time left: what runs ahead would delay something else.
    #[must_use]
    pub const fn is_saturated(self) -> bool {
        self.percent >= SATURATED_PERCENT || self.waiting >= self.workers
    }
}

/// How many functions may run ahead of what is committed. Never more than `depth_max`.
#[must_use]
pub fn depth(load: Load, depth_max: u32) -> u32 {
    if load.is_saturated() {
        return 0;
    }
    let step = STEPS.iter().find(|(below, _)| load.percent < *below);
    step.map_or(DEPTH_MIN, |(_, depth)| *depth).min(depth_max)
}

/// Averages how many workers are busy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    mean: f64,
    /// What was told last, and when.
    last: Option<(f64, Duration)>,
}

impl Meter {
    /// From that time on so many workers of all are busy. Times are counted from any moment; one that lies before the last one counts as that.
    pub fn observe(&mut self, now: Duration, busy: usize, workers: usize) {
        self.mean = self.at(now);
        let at = self.last.map_or(now, |(_, at)| at.max(now));
        self.last = Some(((busy as f64 / workers.max(1) as f64).min(1.0), at));
    }

    /// The part of the workers' time that was used lately, in percent.
    #[must_use]
    pub fn percent(&self, now: Duration) -> u32 {
        (self.at(now) * 100.0).round() as u32
    }

    fn at(&self, now: Duration) -> f64 {
        let Some((share, at)) = self.last else { return 0.0 };
        let passed = now.saturating_sub(at).as_secs_f64();
        self.mean + (share - self.mean) * (1.0 - (-passed / WINDOW.as_secs_f64()).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(percent: u32) -> Load {
        Load { percent, waiting: 0, workers: 2 }
    }

    #[test]
    fn fewer_run_ahead_the_busier_the_workers_are() {
        let depths = [0, 59, 60, 69, 70, 80, 81, 94, 95, 100, 300].map(|percent| depth(at(percent), 16));
        assert_eq!(depths, [16, 16, 6, 6, 5, 5, 4, 4, 0, 0, 0]);
        for depth_max in 0..=16 {
            assert!((0..=120).all(|percent| depth(at(percent), depth_max) <= depth_max));
        }
        assert_eq!(depth(Load { waiting: 1, ..at(50) }, 6), 6);
        assert_eq!(depth(Load { waiting: 2, ..at(50) }, 6), 0, "as many wait as there are workers");
    }

    #[test]
    fn the_load_is_that_of_the_last_tenth_of_a_second() {
        let (mut meter, ms) = (Meter::default(), Duration::from_millis);
        assert_eq!(meter.percent(ms(5)), 0);
        meter.observe(ms(1_000), 2, 2);
        assert_eq!((meter.percent(ms(1_000)), meter.percent(ms(1_070)), meter.percent(ms(2_000))), (0, 50, 100));
        meter.observe(ms(2_000), 0, 2);
        assert_eq!((meter.percent(ms(1_900)), meter.percent(ms(2_070)), meter.percent(ms(9_000))), (100, 50, 0));
        // Half of the time, in turns: it does not depend on how often that is told.
        for step in 0..1_000 {
            meter.observe(ms(10_000 + 2 * step), usize::from(step % 2 == 0), 1);
        }
        assert!((48..=52).contains(&meter.percent(ms(12_000))), "{}", meter.percent(ms(12_000)));
        meter.observe(ms(100_000), 7, 0);
        assert_eq!(meter.percent(ms(200_000)), 100);
    }
}
