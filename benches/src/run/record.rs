//! What was measured, with what, and how long that took: `run.toml` in a run's folder.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::checkout;
use crate::polybench::machine;

const FILE: &str = "run.toml";

/// Of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The day, in UTC.
    pub date: String,
    /// Processor and cores.
    pub machine: String,
    /// The operating system's.
    pub kernel: String,
    /// Of this checkout.
    pub commit: String,
    /// What compiled both programs.
    pub rustc: String,
    /// What compiles C, natively and to WebAssembly.
    pub clang: String,
    /// awsm, and LLVM in it.
    pub awsm: String,
    /// Whether only a little of everything was measured.
    pub is_quick: bool,
    /// Digests of the programs that are measured and that measure: with others, a part is measured again.
    pub conditions: String,
    /// By name.
    #[serde(default)]
    pub parts: BTreeMap<String, Done>,
}

/// Of a part that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// As in [`Record`], then.
    pub conditions: String,
    /// How long it took.
    pub seconds: f64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Record {
    /// Today, on this machine, with these programs, before anything was measured.
    ///
    /// # Errors
    ///
    /// If a program is not built, or does not run.
    pub fn now(is_quick: bool) -> Result<Record> {
        let version = |program: &Path| machine::said(Command::new(program).arg("--version"));
        let (awsm, sledge) = (checkout::program("awsm")?, checkout::program("sledge")?);
        let own = std::env::current_exe().context("where is the running program?")?;
        let llvm = machine::said(Command::new("llvm-config-22").arg("--version")).unwrap_or_else(|_| "22".to_owned());
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("which kernel is this?")?;
        let size = if is_quick { "quick" } else { "whole" };
        Ok(Record {
            date: machine::today()?,
            machine: machine::description(),
            kernel: format!("Linux {}", kernel.trim()),
            commit: machine::commit(),
            rustc: version(Path::new("rustc"))?,
            clang: version(Path::new("clang-22"))?,
            awsm: format!("{} with LLVM {llvm}", version(&awsm)?),
            is_quick,
            conditions: format!(
                "{size}; {}; awsm {}, sledge {}, bench {}",
                machine::description(),
                digest(&awsm)?,
                digest(&sledge)?,
                digest(&own)?
            ),
            parts: BTreeMap::new(),
        })
    }

    /// What is written down in `folder`, if anything is.
    ///
    /// # Errors
    ///
    /// If it is no record.
    pub fn read(folder: &Path) -> Result<Option<Record>> {
        let file = folder.join(FILE);
        if !file.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        toml::from_str(&text).map(Some).with_context(|| file.display().to_string())
    }

    /// Writes it down.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join(FILE);
        fs::write(&file, toml::to_string(self)?).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Whether a part was measured, under these conditions.
    pub fn has(&self, part: &Part) -> bool {
        self.parts.get(part.name).is_some_and(|done| done.error.is_none() && done.conditions == self.conditions)
    }

    /// Whether the numbers of the part that is named so are this run's.
    pub fn is_good(&self, part: &str) -> bool {
        self.parts.get(part).is_some_and(|done| done.error.is_none())
    }
}

fn digest(program: &Path) -> Result<String> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let mut digest = DefaultHasher::new();
    bytes.hash(&mut digest);
    Ok(format!("{:016x}", digest.finish()))
}
