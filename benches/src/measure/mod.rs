//! The measurements behind `promises.toml`: one function a promise, of the promise's name, a file a group.
//!
//! What several of them need (a compiled function, a running server) is made once and kept in a [`Bench`].

mod first_light;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::compiler::{self, Artifact};
use crate::example::{Example, GPS_EKF};
use crate::server::{Function, Server};

/// Measures the number of one promise, in its unit.
pub type Measurement = fn(&mut Bench) -> Result<f64>;

/// All measurements by the names of their promises.
const MEASUREMENTS: &[(&str, Measurement)] = &[
    ("demo-fresh-clone-minutes", first_light::demo_fresh_clone_minutes),
    ("gps-ekf-warm-median-us", first_light::gps_ekf_warm_median_us),
    ("gps-ekf-so-kb", first_light::gps_ekf_so_kb),
    ("sledge-binary-mb", first_light::sledge_binary_mb),
    ("sledge-links-llvm", first_light::sledge_links_llvm),
];

/// The measurement of the promise `name`.
pub fn find(name: &str) -> Option<Measurement> {
    MEASUREMENTS.iter().find(|(known, _)| *known == name).map(|(_, measurement)| *measurement)
}

/// What measurements share during one run.
#[derive(Debug)]
pub struct Bench {
    // In this order: the server goes before the folder that its files are in.
    server: Option<Server>,
    gps_ekf: Option<Artifact>,
    folder: TempDir,
}

impl Bench {
    /// Nothing compiled and nothing running yet.
    ///
    /// # Errors
    ///
    /// If there is no room for temporary files.
    pub fn new() -> Result<Bench> {
        let folder = tempfile::Builder::new().prefix("sledge-promises-").tempdir().context("cannot create a temporary folder")?;
        Ok(Bench { server: None, gps_ekf: None, folder })
    }

    /// gps-ekf, compiled with default options.
    fn gps_ekf(&mut self) -> Result<&Artifact> {
        if self.gps_ekf.is_none() {
            let output = self.folder.path().join("gps-ekf.so");
            self.gps_ekf = Some(compiler::compile(&GPS_EKF.source(), &output)?);
        }
        self.gps_ekf.as_ref().context("gps-ekf was just compiled")
    }

    /// A server that offers gps-ekf.
    fn server(&mut self) -> Result<&Server> {
        if self.server.is_none() {
            let Example { name, content_type, .. } = GPS_EKF;
            let path = self.gps_ekf()?.path.clone();
            self.server = Some(Server::start(self.folder.path(), &[Function { name, path: &path, content_type }])?);
        }
        self.server.as_ref().context("the server was just started")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::promise;

    #[test]
    fn every_promise_has_a_measurement_and_the_other_way_round() {
        let promised: HashSet<_> = promise::read().unwrap().into_iter().map(|promise| promise.name).collect();
        let measured: HashSet<_> = MEASUREMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(promised, measured);
    }
}
