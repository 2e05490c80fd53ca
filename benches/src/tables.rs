//! Tables as CSV, with a line of names before them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes one: the whole of it, or nothing.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write<T: Serialize>(file: &Path, lines: impl IntoIterator<Item = T>) -> Result<()> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.serialize(line).with_context(|| file.display().to_string())?;
    }
    let text = writer.into_inner().ok().context("writing to memory does not fail")?;
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, text).with_context(|| format!("cannot write {}", unfinished.display()))?;
    fs::rename(&unfinished, file).with_context(|| format!("cannot write {}", file.display()))
}

/// Reads one; lines that begin with `#` are comments.
///
/// # Errors
///
/// If the file cannot be read, or a line is not as it should be; the error says which.
pub fn read<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(file);
    let mut reader = reader.with_context(|| format!("cannot read {}", file.display()))?;
    reader.deserialize().collect::<Result<_, _>>().with_context(|| file.display().to_string())
}
