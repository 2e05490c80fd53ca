//! Our gRPC libraries, which are in this program: `sdk/grpc`. A build finds them as files.

use std::fs;
use std::path::{Path, PathBuf};

use super::BuildError;

/// Files by their paths, of each language under its name.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/grpc.rs"));

/// Writes the library of a language to a folder of that name in `libraries`; where it is then.
pub(super) fn unpack(language: &str, libraries: &Path) -> Result<PathBuf, BuildError> {
    let folder = libraries.join(language);
    let files = FILES.iter().filter_map(|(path, bytes)| Some((path.strip_prefix(language)?.strip_prefix('/')?, *bytes)));
    for (path, bytes) in files.clone() {
        write_changed(&folder.join(path), bytes)?;
    }
    // Another version of this program may have had others.
    let is_ours = |path: &Path| files.clone().any(|(ours, _)| Path::new(ours) == path);
    remove_others(&folder, Path::new(""), &is_ours)?;
    Ok(folder)
}

/// Writes a file unless it has those bytes already: what did not change is not built again.
pub(super) fn write_changed(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BuildError::write(folder))?;
    }
    fs::write(path, bytes).map_err(BuildError::write(path))
}

fn remove_others(folder: &Path, inner: &Path, is_ours: &impl Fn(&Path) -> bool) -> Result<(), BuildError> {
    let here = folder.join(inner);
    let Ok(entries) = fs::read_dir(&here) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = inner.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_others(folder, &path, is_ours)?;
        } else if !is_ours(&path) {
            fs::remove_file(entry.path()).map_err(BuildError::write(&entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("go/old/file.go");
        write_changed(&other, b"package old").unwrap();
        let library = unpack("go", folder.path()).unwrap();
        assert!(!other.exists());
        let manifest = library.join("go.mod");
        let when = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let written = when(&manifest);
        unpack("go", folder.path()).unwrap();
        assert_eq!(when(&manifest), written);
    }
}
