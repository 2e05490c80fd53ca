//! Where things are: the checkout this crate was built from, and the programs built beside it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The folder with the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The release build of one of the workspace's programs (`awsm`, `sledge`).
///
/// It lies in the folder of the running program, or, for a benchmark or a test, in the one above.
///
/// # Errors
///
/// If it has not been built.
pub fn program(name: &str) -> Result<PathBuf> {
    let running = env::current_exe().context("where is the running program?")?;
    let candidates: Vec<_> = running.ancestors().skip(1).take(2).map(|folder| folder.join(name)).collect();
    match candidates.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => bail!(
            "the program {name} is not in {}; build it: make build",
            candidates.iter().filter_map(|path| path.parent()).map(|p| p.display().to_string()).collect::<Vec<_>>().join(" or ")
        ),
    }
}

/// A folder for what a run leaves behind, `target/NAME`, created if it is not there.
///
/// # Errors
///
/// If it cannot be created.
pub fn output_folder(name: &str) -> Result<PathBuf> {
    let folder = root().join("target").join(name);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
