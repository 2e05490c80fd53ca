//! The workloads of *Microtasks* (Talluri et al.): a distributed sort and an online game, the functions in `examples/distributed-sort` and
//! `examples/game`.
//!
//! The server has cores of its own; the driver, Redis and the delay before it have the others.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::{checkout, compiler, cores};

pub mod classes;
pub mod game;
pub mod sort;

// The functions' own sources: what they compute is compared with the same natively.
#[path = "../../../examples/distributed-sort/src/records.rs"]
pub mod records;
#[path = "../../../examples/game/src/world.rs"]
pub mod world;

/// Which cores the server has, and which the driver.
#[derive(Debug, Clone)]
pub struct Cores {
    server: Vec<usize>,
    driver: Vec<usize>,
}

impl Cores {
    /// So many for the server, the first that there are.
    ///
    /// # Errors
    ///
    /// If none is left for the driver.
    pub fn divided(workers: usize) -> Result<Cores> {
        let all = cores::all()?;
        ensure!(
            (1..all.len()).contains(&workers),
            "{workers} workers; with {} cores there can be 1 to {}, since the driver needs one",
            all.len(),
            all.len().saturating_sub(1)
        );
        let (server, driver) = all.split_at(workers);
        Ok(Cores { server: server.to_vec(), driver: driver.to_vec() })
    }

    /// Half of the cores for the server.
    ///
    /// # Errors
    ///
    /// If there is only one.
    pub fn halved() -> Result<Cores> {
        Cores::divided(cores::all()?.len() / 2)
    }

    /// All cores for the server, and all for the driver, too: for a server that is so busy that the driver hardly matters.
    ///
    /// # Errors
    ///
    /// If there are fewer.
    fn shared(workers: usize) -> Result<Cores> {
        let all = cores::all()?;
        ensure!((1..=all.len()).contains(&workers), "{workers} workers on {} cores", all.len());
        Ok(Cores { server: all[..workers].to_vec(), driver: all })
    }

    /// How many workers the server has.
    pub fn workers(&self) -> usize {
        self.server.len()
    }

    /// Starts something on the server's cores; this thread is on the driver's then.
    pub(crate) fn start<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        cores::pin_to(&self.server)?;
        let started = start();
        cores::pin_to(&self.driver)?;
        started
    }
}

/// Compiles an example, once for each folder.
fn artifact(name: &str, folder: &Path) -> Result<PathBuf> {
    let artifact = folder.join(name).with_extension("so");
    if !artifact.exists() {
        compiler::compile(&checkout::root().join("examples").join(name), &artifact)?;
    }
    Ok(artifact)
}

/// The nearest rank of a share, from 0 to 1; NaN of none.
pub(crate) fn quantile(numbers: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// Text as TOML has it.
pub(crate) fn quoted(path: &Path) -> toml::Value {
    toml::Value::String(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        assert_eq!(quantile((1..=200).rev().map(f64::from), 0.99), 198.0);
        assert_eq!(quantile([3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile([7.0], 0.0), 7.0);
        assert!(quantile([], 0.5).is_nan());
    }

    #[test]
    fn the_driver_keeps_a_core() {
        let all = cores::all().unwrap().len();
        assert!(Cores::divided(all).is_err() && Cores::divided(0).is_err());
        if let Ok(cores) = Cores::divided(1) {
            assert_eq!((cores.workers(), cores.driver.len()), (1, all - 1));
        }
    }
}
