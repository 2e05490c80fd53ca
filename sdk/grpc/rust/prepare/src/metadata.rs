//! Where cargo has the packages that are replaced.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Error;

/// A package as its registry has it.
#[derive(Debug)]
pub struct Original {
    pub version: String,
    /// Where its sources are.
    pub folder: PathBuf,
}

#[derive(Debug, Default)]
pub struct Originals {
    pub tokio: Option<Original>,
    pub tonic: Option<Original>,
}

/// Asks cargo for the packages that the package in `folder` locks.
pub fn originals(folder: &Path) -> Result<Originals, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(folder)
        .output()
        .map_err(|error| Error::Metadata(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::Metadata(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| Error::Metadata(error.to_string()))?;
    Ok(Originals { tokio: find(&metadata, "tokio", "1.")?, tonic: find(&metadata, "tonic", "0.")? })
}

fn find(metadata: &Value, name: &'static str, begin: &str) -> Result<Option<Original>, Error> {
    let packages = metadata["packages"].as_array().map_or(&[][..], |packages| packages);
    let of_registry = |package: &&Value| package["source"].as_str().is_some_and(|source| source.starts_with("registry+"));
    let mut found = packages.iter().filter(|package| package["name"] == name).filter(of_registry);
    let Some(first) = found.next() else { return Ok(None) };
    let version = |package: &Value| package["version"].as_str().unwrap_or_default().to_owned();
    if let Some(second) = found.next() {
        let versions = format!("{} and {}", version(first), version(second));
        return Err(Error::Version { name, version: versions, supported: "applications with one version" });
    }
    let version = version(first);
    if !version.starts_with(begin) {
        return Err(Error::Version { name, version, supported: "others" });
    }
    let manifest = Path::new(first["manifest_path"].as_str().unwrap_or_default());
    Ok(Some(Original { version, folder: manifest.parent().unwrap_or(manifest).to_owned() }))
}
