//! How many functions of an execution may run ahead, by how busy the workers are (speculation.md, S11): what runs ahead may be in vain, and is to take only time that nothing else needs.

/// Up to which load of the workers, in percent, so many functions run ahead. Below all of them it is as many as are configured.
const STEPS: [(u32, u32); 3] = [(60, u32::MAX), (70, 6), (81, 5)];
/// How many run ahead above that.
const DEPTH_MIN: u32 = 4;
/// The load from which nothing runs ahead.
const SATURATED_PERCENT: u32 = 95;

/// How busy the workers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The part of the workers' time that was used lately, in percent.
    pub percent: u32,
    /// Workers that have more than they run now.
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
}
