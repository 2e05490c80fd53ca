//! Whether the server schedules by classes: a key of its configuration, which servers have or have not.

use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::checkout;

/// The key of the configuration.
pub const KEY: &str = "classes";

/// From what the server knows the classes of a function's phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Classes {
    /// From nothing: there are no classes.
    Off,
    /// From how long they run between two waits.
    Inferred,
    /// From `phases` in the configuration.
    Declared,
}

impl Classes {
    /// As the configuration names it.
    pub fn name(self) -> &'static str {
        match self {
            Classes::Off => "off",
            Classes::Inferred => "inferred",
            Classes::Declared => "declared",
        }
    }

    /// The line for the configuration; none for a server without the key, which has no classes.
    ///
    /// # Errors
    ///
    /// As for [`known`].
    pub fn line(self) -> Result<String> {
        Ok(if known()? { format!("{KEY} = \"{}\"\n", self.name()) } else { String::new() })
    }
}

/// Whether the server has that key.
///
/// # Errors
///
/// If `sledge` is not built, or does not print its schema.
pub fn known() -> Result<bool> {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let sledge = checkout::program("sledge")?;
    let output = Command::new(sledge).args(["config", "schema"]).output().context("sledge config schema")?;
    ensure!(output.status.success(), "sledge config schema: {}", String::from_utf8_lossy(&output.stderr));
    let schema: Value = serde_json::from_slice(&output.stdout).context("sledge config schema")?;
    Ok(*KNOWN.get_or_init(|| schema["properties"].get(KEY).is_some()))
}

/// The classes to compare with none: those asked for, if the server knows any.
///
/// # Errors
///
/// As for [`known`].
pub fn usable(wanted: Classes) -> Result<Option<Classes>> {
    if wanted == Classes::Off || !known()? {
        return Ok(None);
    }
    Ok(Some(wanted))
}
