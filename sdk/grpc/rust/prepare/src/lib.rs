//! Writes the replacements of tokio and tonic for an application, of the versions that it locks.
//!
//! cargo knows where the originals lie (`cargo metadata`). A replacement of tokio is a package of its name and version, beside the original under
//! another name with a few lines changed ([`tokio`]). One of tonic is the original with other files in its folder `transport` and without
//! the packages that these needed ([`tonic`]). Nothing of the application is changed but, by cargo, its lock: so `package` has to be a copy.

mod changes;
mod direct;
mod error;
mod kit;
mod manifest;
mod metadata;
mod tokio;
mod tonic;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::Error;

/// The target of a function.
pub const TARGET: &str = "wasm32-wasip1";

/// What the linker is told: the exports, and where standard output goes.
pub const LINK_ARGUMENTS: [&str; 4] =
    ["--export=_initialize", "--export=init-component", "--export=sledge_handle", "--wrap=__wasi_fd_write"];

/// Replacements that were written.
#[derive(Debug)]
pub struct Prepared {
    /// Names, versions and folders.
    pub replaced: Vec<Replaced>,
}

/// A package that is replaced.
#[derive(Debug)]
pub struct Replaced {
    /// Its name.
    pub name: &'static str,
    /// The version that the application locks.
    pub version: String,
    /// Where the replacement lies.
    pub folder: PathBuf,
}

impl Prepared {
    /// What cargo has to be told besides `build --release`.
    #[must_use]
    pub fn cargo_arguments(&self) -> Vec<String> {
        let mut arguments = vec![format!("--target={TARGET}")];
        for Replaced { name, folder, .. } in &self.replaced {
            arguments.push(format!("--config=patch.crates-io.{name}.path={:?}", folder.display().to_string()));
        }
        let flags: Vec<String> = LINK_ARGUMENTS.iter().map(|argument| format!("\"-Clink-arg={argument}\"")).collect();
        arguments.push(format!("--config=target.{TARGET}.rustflags=[{}]", flags.join(",")));
        arguments
    }
}

/// Writes the replacements for the package in `package` to `out`.
///
/// # Errors
/// When cargo does not know its packages, a version is not supported, or a file cannot be written.
pub fn prepare(package: &Path, out: &Path) -> Result<Prepared, Error> {
    let originals = metadata::originals(package)?;
    let out = std::path::absolute(out).map_err(|error| Error::File(out.to_owned(), error))?;
    for folder in ["rt", "tokio-macros"] {
        kit::write(folder, &out.join(folder), str::to_owned)?;
    }
    let mut replaced = Vec::new();
    if let Some(original) = originals.tokio {
        let folder = tokio::write(&original, &out)?;
        replaced.push(Replaced { name: "tokio", version: original.version, folder });
    }
    if let Some(original) = originals.tonic {
        let folder = tonic::write(&original, &out)?;
        replaced.push(Replaced { name: "tonic", version: original.version, folder });
    }
    Ok(Prepared { replaced })
}

/// What is written of a file of that path within its folder; nothing to leave it out.
type Change<'a> = dyn Fn(&Path, Vec<u8>) -> Result<Option<Vec<u8>>, Error> + 'a;

/// Copies a folder. `change` says of a file, by its path within the folder, what is written instead, or that it is left out.
fn copy(from: &Path, to: &Path, change: &Change<'_>) -> Result<(), Error> {
    copy_below(from, to, Path::new(""), change)
}

fn copy_below(from: &Path, to: &Path, within: &Path, change: &Change<'_>) -> Result<(), Error> {
    let folder = from.join(within);
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| Error::File(path, error)
    };
    for entry in fs::read_dir(&folder).map_err(at(&folder))? {
        let within = within.join(entry.map_err(at(&folder))?.file_name());
        let source = from.join(&within);
        if source.is_dir() {
            copy_below(from, to, &within, change)?;
        } else if let Some(bytes) = change(&within, fs::read(&source).map_err(at(&source))?)? {
            write(&to.join(&within), &bytes)?;
        }
    }
    Ok(())
}

/// Writes a file, if it does not say that already: cargo builds again what was written.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| Error::File(path.to_owned(), error))
}

/// Reads a file.
fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::File(path.to_owned(), error))
}
