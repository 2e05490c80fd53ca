//! Puts our gRPC library for Go (`sdk/grpc/go`) into the program: a list of files with what is in them. The one for Rust is a package that has its files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What is for this repository, and not for programs that are built with it.
const NOT_FOR_USERS: [&str; 5] = ["testdata", "target", "tests", "compare", "rust"];

fn main() -> io::Result<()> {
    // Where the package is now: a target folder, and with it this program, may have been made for another checkout.
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../sdk/grpc");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut text = "&[\n".to_owned();
    for file in files {
        let Some(path) = file.strip_prefix(&root).ok().and_then(Path::to_str) else { continue };
        let _ = writeln!(text, "    ({path:?}, include_bytes!({:?})),", file.display().to_string());
    }
    text.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("grpc.rs"), text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || NOT_FOR_USERS.contains(&&*name) || name.ends_with("_test.go") {
            continue;
        }
        let path = entry.path();
        if entry.file_type()?.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
