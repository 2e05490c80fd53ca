//! How much is read and written at a time, so that tasks which block use as much of their cores as the paper's did.

use anyhow::Result;

use super::{Bed, Transfers, Variant};
use crate::steps;

/// What blocking tasks are to use of their cores: the paper's gap between 292 and 183 seconds.
pub(super) const UTILISATION: std::ops::RangeInclusive<f64> = 0.60..=0.65;
/// In the middle: waiting, to computing.
const WAITING: f64 = 0.6;
/// Where it begins, and the range.
pub(super) const BEGIN: Transfers = Transfers { bytes: 512 << 10, rounds: 0 };
const BYTES_MIN: usize = 16 << 10;
const BYTES_MAX: usize = 3 << 20;
/// How often that is tried.
const TRIES: usize = 8;
/// Hashing a record once in both stages, about, in seconds; until it is known.
const HASH_S: f64 = 40e-9;

/// Transfers by which blocking tasks use 60 to 65 % of their cores; or, with a message, the ones that come closest.
///
/// Larger transfers wait less often. Where even the largest ones wait too much, tasks compute more.
///
/// # Errors
///
/// If a run fails.
pub(super) fn transfers(bed: &Bed, blocking: Variant) -> Result<Transfers> {
    let mut transfers = BEGIN;
    let mut best: Option<(f64, Transfers)> = None;
    let mut round_s = bed.records() as f64 * HASH_S;
    let mut before: Option<(u64, f64)> = None;
    let bar = steps::bar("calibrating", TRIES as u64);
    for _ in 0..TRIES {
        let run = bed.run(blocking, transfers, || Ok(()))?;
        bar.inc(1);
        let cores_s = run.makespan_s * bed.workers() as f64;
        let utilisation = run.cpu_s / cores_s;
        steps::say(&format!(
            "{} KiB at a time, {} rounds of hashing: blocking tasks use {:.1} % of their cores",
            transfers.bytes >> 10,
            transfers.rounds,
            utilisation * 100.0
        ));
        let off = (utilisation - 0.625).abs();
        if best.is_none_or(|(least, _)| off < least) {
            best = Some((off, transfers));
        }
        if UTILISATION.contains(&utilisation) {
            break;
        }
        if let Some((rounds, cpu_s)) = before.replace((transfers.rounds, run.cpu_s))
            && rounds != transfers.rounds
        {
            let each = (run.cpu_s - cpu_s) / (transfers.rounds as f64 - rounds as f64);
            round_s = if each > 0.0 { each } else { round_s };
        }
        transfers = next(transfers, run.cpu_s, cores_s - run.cpu_s, round_s);
    }
    bar.finish_and_clear();
    Ok(best.map_or(BEGIN, |(_, transfers)| transfers))
}

/// Where to go from transfers with which it took so long to compute and to wait.
fn next(from: Transfers, cpu_s: f64, wait_s: f64, round_s: f64) -> Transfers {
    let too_much = wait_s / (WAITING * cpu_s);
    // The processor time that goes with this wait, in rounds more or less.
    let rounds = ((wait_s / WAITING - cpu_s) / round_s).round() as i64;
    let smaller = |by: f64| ((from.bytes as f64 * by) as usize).clamp(BYTES_MIN, BYTES_MAX);
    if too_much > 1.0 {
        if from.bytes < BYTES_MAX {
            return Transfers { bytes: smaller(too_much.clamp(1.1, 8.0)), ..from };
        }
        return Transfers { rounds: from.rounds.saturating_add_signed(rounds.max(1)), ..from };
    }
    if from.rounds > 0 {
        return Transfers { rounds: from.rounds.saturating_add_signed(rounds.min(-1)), ..from };
    }
    Transfers { bytes: smaller(too_much.clamp(1.0 / 8.0, 1.0 / 1.1)), ..from }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which a transfer waits `delay_s`, and each byte `byte_s`.
    fn calibrated(delay_s: f64, byte_s: f64) -> (f64, Transfers) {
        let (bytes, mut transfers, mut utilisation) = (1.6e9, BEGIN, 0.0);
        for _ in 0..TRIES {
            let cpu_s = 4.0 + transfers.rounds as f64 * 0.15;
            let wait_s = bytes * byte_s + bytes / transfers.bytes as f64 * delay_s;
            utilisation = cpu_s / (cpu_s + wait_s);
            if UTILISATION.contains(&utilisation) {
                break;
            }
            transfers = next(transfers, cpu_s, wait_s, 0.15);
        }
        (utilisation, transfers)
    }

    #[test]
    fn it_ends_where_blocking_tasks_use_as_much_as_the_papers() {
        for (delay_s, byte_s, hashes) in [(1e-3, 0.5e-9, false), (5e-3, 1e-9, true), (1e-4, 0.1e-9, false), (5e-3, 3e-9, true)] {
            let (utilisation, transfers) = calibrated(delay_s, byte_s);
            assert!(UTILISATION.contains(&utilisation), "{delay_s} {byte_s}: {utilisation} {transfers:?}");
            assert_eq!(transfers.rounds > 0, hashes, "{transfers:?}");
        }
    }
}
