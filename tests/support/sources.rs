//! Sources of programs in other languages, and the toolchains that they need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Whether there is a Go. Where there is none, the log says that what needs it is not checked.
#[must_use]
pub fn has_go() -> bool {
    is_there(Command::new("go").arg("version").output().is_ok(), "go")
}

/// Whether there is a protoc, which Rust's generators of gRPC run. Else as for [`has_go`].
#[must_use]
pub fn has_protoc() -> bool {
    is_there(env::var_os("PROTOC").is_some() || Command::new("protoc").arg("--version").output().is_ok(), "protoc")
}

fn is_there(has: bool, name: &str) -> bool {
    if !has {
        eprintln!("an application: NOT CHECKED: it needs {name}");
    }
    has
}

/// All files of a folder.
///
/// # Panics
/// When one cannot be read.
#[must_use]
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(path).expect("a file"));
        }
    }
    all
}

/// Copies all files of a folder.
///
/// # Panics
/// When one cannot be read or written.
pub fn copy(from: &Path, to: &Path) {
    for (path, bytes) in files(from) {
        let path = to.join(path.strip_prefix(from).expect("a path in it"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("write a file");
    }
}
