//! The interfaces in WIT.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Each file of `sdk/wit`.
pub(super) fn chapter(root: &Path) -> Result<String> {
    let folder = root.join("sdk/wit");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wit"));
    files.sort();
    let mut text = String::new();
    for file in files {
        let wit = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        text += &format!("## {name}\n\n```wit\n{}\n```\n\n", wit.trim());
    }
    Ok(text)
}
