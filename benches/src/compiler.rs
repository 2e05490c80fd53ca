//! `awsm compile` as a child process, timed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::checkout;

/// A shared object that `awsm` has just made.
#[derive(Debug)]
pub struct Artifact {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Wall-clock time of the whole `awsm compile`, producing wasm from the source included.
    pub elapsed: Duration,
}

/// Compiles `source` (whatever `awsm compile` takes) to `output`.
///
/// # Errors
///
/// If `awsm` is not built or fails; the error carries what it printed.
pub fn compile(source: &Path, output: &Path) -> Result<Artifact> {
    compile_with(source, output, &[])
}

/// Like [`compile`], with more options for `awsm compile`.
///
/// # Errors
///
/// As for [`compile`].
pub fn compile_with(source: &Path, output: &Path, options: &[&str]) -> Result<Artifact> {
    let mut command = Command::new(checkout::program("awsm")?);
    command.args(["compile", "--no-cache"]).arg(source).arg("-o").arg(output).args(options);
    let start = Instant::now();
    let run = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let elapsed = start.elapsed();
    if !run.status.success() {
        bail!("awsm compile {} failed ({}):\n{}", source.display(), run.status, String::from_utf8_lossy(&run.stderr).trim_end());
    }
    let bytes =
        std::fs::metadata(output).with_context(|| format!("awsm compile succeeded, but there is no {}", output.display()))?.len();
    Ok(Artifact { path: output.to_path_buf(), bytes, elapsed })
}
