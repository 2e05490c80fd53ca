//! The group `applications`, serving: the paper's programs in sandboxes, against a process for each request.
//!
//! `bin/native.rs` starts the native program anew for each request, as runtimes without sandboxes do; its HTTP is the same. Both are asked as
//! `load scenarios` asks them.

use std::path::Path;

use anyhow::{Context, Result};

use super::Bench;
use crate::example::{APPLICATIONS, GPS_EKF};
use crate::row::{self, Row};
use crate::scenario::{self, Peer};

const TURNS: usize = 3;

/// The applications, sandboxes to processes: medians of the turns.
#[derive(Debug, Clone)]
pub struct Served(Vec<One>);

#[derive(Debug, Clone, Copy)]
struct One {
    name: &'static str,
    throughput: f64,
    mean: f64,
    p99: f64,
}

/// All applications, one after the other.
pub(super) fn measured(folder: &Path) -> Result<Served> {
    let rows = scenario::run(&scenario::applications()?, TURNS, folder)?;
    eprint!("{}", row::table(&rows));
    Served::of(&rows)
}

impl Served {
    /// What a run's rows say.
    ///
    /// # Errors
    ///
    /// If an application is not among them.
    pub fn of(rows: &[Row]) -> Result<Served> {
        let one = |name: &'static str| {
            let ratio = |number| {
                let servers = [Peer::Sledge.name(), Peer::Process.name()];
                row::ratio(rows, name, servers, number).map(|ratio| ratio.median)
            };
            let (throughput, mean) = (ratio(|row| row.per_second)?, ratio(|row| row.mean_us)?);
            Some(One { name, throughput, mean, p99: ratio(|row| row.p99_us)? })
        };
        let all =
            APPLICATIONS.iter().map(|example| one(example.name).with_context(|| format!("{} was not served", example.name)));
        all.collect::<Result<_>>().map(Served)
    }

    /// The numbers by the names of their promises; of all applications those of the worst.
    pub fn promised(&self) -> [(&'static str, f64); 4] {
        let Served(all) = self;
        let worst = |number: fn(&One) -> f64, worse: fn(f64, f64) -> f64| all.iter().map(number).fold(f64::NAN, worse);
        let gps_ekf = all.iter().find(|one| one.name == GPS_EKF.name).map_or(f64::NAN, |one| one.throughput);
        [
            ("gps-ekf-served-throughput-ratio", gps_ekf),
            ("applications-served-throughput-least-ratio", worst(|one| one.throughput, f64::min)),
            ("applications-served-mean-worst-ratio", worst(|one| one.mean, f64::max)),
            ("applications-served-p99-worst-ratio", worst(|one| one.p99, f64::max)),
        ]
    }
}

/// The promise's number.
fn promised(bench: &mut Bench, name: &str) -> Result<f64> {
    let promised = bench.served()?.promised();
    let (_, number) = promised.iter().find(|(known, _)| *known == name).context("it is one of them")?;
    Ok(*number)
}

/// Throughput of the filter.
pub(super) fn gps_ekf(bench: &mut Bench) -> Result<f64> {
    promised(bench, "gps-ekf-served-throughput-ratio")
}

/// The least throughput.
pub(super) fn throughput(bench: &mut Bench) -> Result<f64> {
    promised(bench, "applications-served-throughput-least-ratio")
}

/// The longest mean.
pub(super) fn mean(bench: &mut Bench) -> Result<f64> {
    promised(bench, "applications-served-mean-worst-ratio")
}

/// The longest 99th percentile.
pub(super) fn p99(bench: &mut Bench) -> Result<f64> {
    promised(bench, "applications-served-p99-worst-ratio")
}
