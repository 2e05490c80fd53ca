//! tokio: the original under another name, with its waiting and its threads changed, and the package that stands in its place.

use std::path::{Path, PathBuf};

use crate::manifest::{is_for_development, Manifest};
use crate::metadata::Original;
use crate::{changes, copy, kit, read, write as write_file, Error};

/// What is changed in the original: of a file, what stands there and what stands there then.
const CHANGES: [(&str, &str, &str); 4] = [
    // Features that need an operating system are said to be there. Of these only `fs` and `io-std` reach the original.
    (
        "lib.rs",
        "compile_error!(\"Only features sync,macros,io-util,rt,time are supported on wasm.\");",
        "const _: () = ();",
    ),
    // Where a thread would wait for a condition, the function waits for clocks, its request and its calls.
    ("runtime/park.rs", "    fn park(&self) {\n", "    fn park(&self) {\n        sledge_park!(self, None);\n"),
    (
        "runtime/park.rs",
        "    fn park_timeout(&self, dur: Duration) {\n",
        "    fn park_timeout(&self, dur: Duration) {\n        sledge_park!(self, Some(dur));\n",
    ),
    // What would run on another thread runs at once.
    (
        "runtime/blocking/pool.rs",
        "    fn spawn_task(&self, task: Task, rt: &Handle) -> Result<(), SpawnError> {\n",
        "    fn spawn_task(&self, task: Task, rt: &Handle) -> Result<(), SpawnError> {\n        if cfg!(target_family = \"wasm\") {\n            \
         task.run();\n            return Ok(());\n        }\n",
    ),
];

/// In front of the code of `runtime/park.rs`.
const PARK: &str = r#"macro_rules! sledge_park {
    ($parker:expr, $timeout:expr) => {
        if $parker.state.swap(EMPTY, SeqCst) != NOTIFIED {
            sledge_grpc_rt::park::park($timeout);
            $parker.state.swap(EMPTY, SeqCst);
        }
        if cfg!(target_family = "wasm") {
            return;
        }
    };
}

"#;
const PARK_FILE: &str = "runtime/park.rs";
const PARK_BEFORE: &str = "use crate::loom::sync::atomic::AtomicUsize;";

/// Writes both; the folder of the one that stands in its place.
pub fn write(original: &Original, out: &Path) -> Result<PathBuf, Error> {
    let (sources, below) = (original.folder.join("src"), out.join("tokio-original"));
    copy(&sources, &below.join("src"), &|path, bytes| changed(&sources, path, bytes).map(Some))?;

    let manifest = original.folder.join("Cargo.toml");
    let mut tables = Manifest::new(&read(&manifest)?).without(is_for_development);
    let package = tables.table("package").ok_or(Error::Changed { file: manifest, missing: "[package]" })?;
    *package = package.replacen("name = \"tokio\"", "name = \"tokio-original\"", 1);
    tables.push("\n[dependencies.sledge-grpc-rt]\npath = \"../rt\"\n");
    write_file(&below.join("Cargo.toml"), tables.text().as_bytes())?;

    let folder = out.join("tokio");
    let version = format!("version = \"{}\"", original.version);
    kit::write("tokio", &folder, |text| text.replacen("version = \"0.0.0\"", &version, 1))?;
    Ok(folder)
}

/// A file of the original with what is changed in it.
fn changed(sources: &Path, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let mut changes: Vec<_> = CHANGES.iter().filter(|(file, ..)| Path::new(file) == path).copied().collect();
    let macro_use = format!("{PARK}{PARK_BEFORE}");
    if path == Path::new(PARK_FILE) {
        changes.push((PARK_FILE, PARK_BEFORE, &macro_use));
    }
    changes::make(sources, path, bytes, changes.iter().map(|(_, before, after)| (*before, *after)))
}
