//! The day, the machine and the tools, as the results name them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::checkout;

/// Today in UTC, as 2026-01-31.
///
/// # Errors
///
/// If date(1) does not run.
pub fn today() -> Result<String> {
    said(Command::new("date").args(["-u", "+%F"]))
}

/// The processor's name and the number of its cores.
pub fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores", processor())
}

/// The same, fit for a file's name.
pub fn slug() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let words: Vec<_> = processor().to_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect();
    format!("{}-{cores}-cores", words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-"))
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// The commit that this checkout is at, with `-dirty` if there are changes.
pub fn commit() -> String {
    said(Command::new("git").arg("-C").arg(checkout::root()).args(["describe", "--always", "--dirty"]))
        .unwrap_or_else(|_| "no commit".to_owned())
}

/// The first line of what a command prints.
pub(crate) fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_owned();
    let output = command.output().with_context(|| format!("cannot run {}", name.display()))?;
    ensure!(output.status.success(), "{} failed ({})", name.display(), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

/// Keeps this thread, and what it starts, on one core as long as it lives.
#[derive(Debug)]
pub struct Pinned {
    /// The core.
    pub core: usize,
    before: CpuSet,
}

impl Pinned {
    /// To the last core that it may use.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn new() -> Result<Pinned> {
        let before = sched_getaffinity(None).context("cannot ask for the allowed cores")?;
        let core = (0..CpuSet::MAX_CPU).rev().find(|core| before.is_set(*core)).context("no core is allowed")?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).with_context(|| format!("cannot stay on core {core}"))?;
        Ok(Pinned { core, before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What was allowed before is allowed again; if not, the rest of the process runs on one core.
        let _ = sched_setaffinity(None, &self.before);
    }
}
