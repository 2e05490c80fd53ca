//! A copy of a program's packages, for a toolchain that writes beside them.
//!
//! ```text
//! base/proto          tree/proto -> base/proto      linked
//! base/Cargo.toml     tree/Cargo.toml               copied
//! base/cart/src       tree/cart/src                 copied, as all of a package
//! ```
//!
//! What is beside packages and above them, up to `base`, is linked: paths such as `../proto` lead to it. A build that writes into its own folder writes
//! into the copy. Files that did not change keep their times, by which cargo sees what to build.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::library::write_changed;
use super::{BUILT_FOLDER, BuildError};

/// What tools make, and what is not for a build.
const LEFT_OUT: [&str; 4] = ["target", ".git", "node_modules", BUILT_FOLDER];
/// What a toolchain writes, also above the packages.
const COPIED: [&str; 2] = ["Cargo.toml", "Cargo.lock"];

/// Copies packages, which are in `base` or below it, to the same places in `tree`.
///
/// # Errors
/// When something cannot be read or written.
pub(super) fn mirror(base: &Path, packages: &[PathBuf], tree: &Path) -> Result<(), BuildError> {
    folder(base, packages, tree)
}

fn folder(from: &Path, packages: &[PathBuf], to: &Path) -> Result<(), BuildError> {
    let is_package = packages.iter().any(|package| from.starts_with(package));
    fs::create_dir_all(to).map_err(BuildError::write(to))?;
    let unread = |source| BuildError::Source { path: from.to_owned(), source };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(from).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let kind = entry.file_type().map_err(unread)?;
        let (from, to) = (entry.path(), to.join(&name));
        let leads_to_package = packages.iter().any(|package| package.starts_with(&from));
        if kind.is_dir() && (is_package || leads_to_package) {
            make_way(&to, FileType::is_dir)?;
            folder(&from, packages, &to)?;
        } else if kind.is_file() && (is_package || COPIED.iter().any(|copied| name == *copied)) {
            make_way(&to, FileType::is_file)?;
            let bytes = fs::read(&from).map_err(|source| BuildError::Source { path: from.clone(), source })?;
            write_changed(&to, &bytes)?;
        } else {
            link(&from, &to)?;
        }
        names.insert(name);
    }
    remove_all_but(to, &names)
}

/// Links a file or folder as it is found from where it is.
fn link(from: &Path, to: &Path) -> Result<(), BuildError> {
    // One that leads nowhere does so here, too.
    let target = fs::canonicalize(from).unwrap_or_else(|_| from.to_owned());
    if fs::read_link(to).is_ok_and(|present| present == target) {
        return Ok(());
    }
    remove(to)?;
    symlink(target, to).map_err(BuildError::write(to))
}

/// Removes what is there unless it is of that kind.
fn make_way(path: &Path, is_right: impl Fn(&FileType) -> bool) -> Result<(), BuildError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !is_right(&metadata.file_type()) => remove(path),
        _ => Ok(()),
    }
}

fn remove_all_but(folder: &Path, names: &BTreeSet<OsString>) -> Result<(), BuildError> {
    for entry in fs::read_dir(folder).map_err(BuildError::write(folder))?.flatten() {
        // A lock that a program has not is the toolchain's.
        if !names.contains(&entry.file_name()) && entry.file_name() != "Cargo.lock" {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), BuildError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(BuildError::write(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, path: &str, text: &str) {
        write_changed(&folder.join(path), text.as_bytes()).unwrap();
    }

    #[test]
    fn packages_are_copied_and_what_is_beside_them_linked() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        for path in ["proto/a.proto", "Cargo.toml", "cart/Cargo.toml", "cart/src/main.rs", "cart/target/debug/x", "other/y"] {
            write(&base, path, path);
        }
        let (tree, packages) = (folder.path().join("tree"), [base.join("cart")]);
        mirror(&base, &packages, &tree).unwrap();
        let kind = |path: &str| fs::symlink_metadata(tree.join(path)).map(|metadata| metadata.is_symlink()).ok();
        for (path, expected) in [
            ("proto", Some(true)),
            ("other", Some(true)),
            ("Cargo.toml", Some(false)),
            ("cart", Some(false)),
            ("cart/src", Some(false)),
            ("cart/src/main.rs", Some(false)),
            ("cart/target", None),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
        assert_eq!(fs::read(tree.join("cart/../proto/a.proto")).unwrap(), b"proto/a.proto");

        // What a build writes is not in the source; what changes there, and what goes, does so here.
        write(&tree, "cart/src/made.rs", "made");
        fs::remove_dir_all(base.join("other")).unwrap();
        write(&base, "cart/src/main.rs", "new");
        let when = || fs::metadata(tree.join("cart/Cargo.toml")).unwrap().modified().unwrap();
        let before = when();
        mirror(&base, &packages, &tree).unwrap();
        assert_eq!(when(), before);
        assert_eq!((kind("other"), kind("cart/src/made.rs")), (None, None));
        assert_eq!(fs::read(tree.join("cart/src/main.rs")).unwrap(), b"new");
        assert!(!base.join("cart/src/made.rs").exists());
    }
}
