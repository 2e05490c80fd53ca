//! Simulations from seeds, on all cores. Each is played by itself, so that what goes wrong with a seed goes wrong with it alone, too.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::histories::within_runtime;
use crate::txn::mutants::Mutant;

/// Which are played: `SEEDS` of them, from `FROM` on, if the environment says so.
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let from = number("FROM").unwrap_or(0);
    from..from + number("SEEDS").unwrap_or(usual)
}

/// Has the other threads begin nothing more when this one ends by a panic: of a million seeds the first that goes wrong ends the test.
struct Last<'a>(&'a AtomicU64, u64);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(self.1, Ordering::Relaxed);
        }
    }
}

/// Plays all of them, each thread within a runtime of its own. How often things have happened in them, altogether.
pub(crate) fn each<const COUNTS: usize>(seeds: Range<u64>, play: impl Fn(u64) -> [u64; COUNTS] + Sync) -> [u64; COUNTS] {
    let (next, sums) = (AtomicU64::new(seeds.start), Mutex::new([0; COUNTS]));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                within_runtime(|| {
                    let (_last, mut own) = (Last(&next, seeds.end), [0; COUNTS]);
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds.end {
                            break;
                        }
                        own.iter_mut().zip(play(seed)).for_each(|(sum, count)| *sum += count);
                    }
                    let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
                    sums.iter_mut().zip(own).for_each(|(sum, count)| *sum += count);
                });
            });
        }
    });
    sums.into_inner().unwrap()
}

/// Sees that each mistake is noticed by one of these seeds, and that nothing is wrong there without it. `wrong` says what is wrong with a seed; which one notices is shown by `--nocapture`.
pub(crate) fn each_is_noticed(
    mutants: &[Mutant],
    seeds: Range<u64>,
    wrong: impl Fn(u64, Option<Mutant>) -> Option<String> + Sync,
) {
    each(0..mutants.len() as u64, |index| {
        let mutant = mutants[index as usize];
        let found = seeds.clone().find_map(|seed| Some((seed, wrong(seed, Some(mutant))?)));
        let Some((seed, noticed)) = found else { panic!("{mutant:?} is not noticed") };
        assert_eq!(wrong(seed, None), None, "seed {seed} is wrong without {mutant:?}");
        println!("{mutant:?}: seed {seed}: {noticed}");
        []
    });
}
