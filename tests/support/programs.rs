//! The programs under test and functions made with them.

use crate::machine;
use crate::process::{self, Finished};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A cold build of both programs.
const BUILD_TIME_MAX: Duration = Duration::from_secs(1200);

/// A function: source to artifact, C's compiler included.
const COMPILE_TIME_MAX: Duration = Duration::from_secs(120);

/// Path of `awsm`.
pub fn awsm() -> &'static Path {
    &programs().awsm
}

/// Path of `sledge`.
pub fn sledge() -> &'static Path {
    &programs().sledge
}

/// The folder of tests that hold files of their own: `tests/`.
#[must_use]
pub fn tests_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A command of `awsm`.
#[must_use]
pub fn awsm_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(awsm());
    // What earlier runs and other tests have compiled is not there.
    command.env("AWSM_NO_CACHE", "1").args(arguments);
    command
}

/// A command of `sledge`.
#[must_use]
pub fn sledge_command(arguments: &[&str]) -> Command {
    let mut command = machine::command(sledge());
    // Neither sockets nor compiled modules go where a user has them.
    command.env("RUNTIME_DIRECTORY", folder()).env("CACHE_DIRECTORY", folder().join("cache"));
    command.args(arguments);
    command
}

/// Runs `awsm` to its end.
pub fn run_awsm(arguments: &[&str]) -> Finished {
    process::run(&mut awsm_command(arguments), b"", COMPILE_TIME_MAX)
}

/// The artifact of a function of `tests/e2e/functions/`, compiled with the real `awsm` once a run, by default options.
///
/// # Panics
/// When it does not compile.
pub fn function(file: &str) -> PathBuf {
    function_with(file, &[])
}

/// The same with more options for `awsm compile`.
///
/// # Panics
/// When it does not compile.
pub fn function_with(file: &str, options: &[&str]) -> PathBuf {
    compiled(&Path::new("e2e/functions").join(file), options)
}

/// The same of any file below `tests/`.
///
/// # Panics
/// When it does not compile.
pub fn compiled(file: &Path, options: &[&str]) -> PathBuf {
    static MADE: LazyLock<Mutex<HashMap<String, Arc<OnceLock<PathBuf>>>>> = LazyLock::new(Mutex::default);
    let key = format!("{}{}", file.display(), options.concat());
    let made = Arc::clone(MADE.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default());
    made.get_or_init(|| {
        let source = tests_folder().join(file);
        // One name for each set of options, since their stems are the names under which files are served.
        let folder = folder().join(key.replace(['/', '.'], "-"));
        std::fs::create_dir_all(&folder).expect("a folder for artifacts");
        let artifact = folder.join(source.with_extension("so").file_name().expect("a file's name"));
        let mut command = awsm_command(&["compile"]);
        command.arg(&source).arg("-o").arg(&artifact).args(machine::compile_arguments()).args(options);
        let done = process::run(&mut command, b"", COMPILE_TIME_MAX);
        assert!(done.status.success(), "{command:?}: {}\n{}", done.code(), done.stderr);
        artifact
    })
    .clone()
}

/// A folder of this process. Under `target`, since artifacts may not lie in a file system that is mounted `noexec`; removed by a later run.
pub fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let all = programs().sledge.with_file_name("tests-tmp");
        let this = all.join(std::process::id().to_string());
        for old in std::fs::read_dir(&all).into_iter().flatten().flatten() {
            let is_running = Path::new("/proc").join(old.file_name()).exists() && old.path() != this;
            if !is_running {
                // Another test may be removing it too.
                let _ = std::fs::remove_dir_all(old.path());
            }
        }
        std::fs::create_dir_all(&this).expect("a folder for artifacts");
        this
    });
    &FOLDER
}

struct Programs {
    awsm: PathBuf,
    sledge: PathBuf,
}

/// Set where programs and tests were built together, as `make test` does.
const BUILT: &str = "PROGRAMS_BUILT";

/// The programs in the target folder of the running test, after a build of what is missing or stale.
fn programs() -> &'static Programs {
    static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| {
        let test = std::env::current_exe().expect("path of the running test");
        // target/PROFILE/deps/test-HASH
        let deps = test.parent().filter(|deps| deps.ends_with("deps")).expect("the test lies in a folder `deps`");
        let folder = deps.parent().expect("deps lies in the profile's folder");
        if std::env::var_os(BUILT).is_none() {
            build(folder);
        }
        Programs { awsm: folder.join("awsm"), sledge: machine::counterpart(&folder.join("sledge")) }
    });
    &PROGRAMS
}

/// Builds what is missing or stale, in the profile and target folder of `folder`.
fn build(folder: &Path) {
    let profile = folder.file_name().and_then(|name| name.to_str()).expect("a profile's name");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    // The whole workspace, as `make build` builds it: with fewer packages, dependencies would be built again with fewer features.
    build.args(["build", "--quiet", "--workspace", "--bins", "--profile"]);
    build.arg(if profile == "debug" { "dev" } else { profile });
    build.arg("--target-dir").arg(folder.parent().expect("the target folder")).current_dir(tests_folder());
    // What cargo tells this test of its package would be another environment than that of `make build`: ring's build script asks for these, and all that
    // depends on ring, the server included, would be compiled again.
    let of_package = |name: &OsString| {
        let name = name.to_string_lossy();
        ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix)) || name == "OUT_DIR"
    };
    std::env::vars_os().map(|(name, _)| name).filter(of_package).for_each(|name| {
        build.env_remove(name);
    });
    let built = process::run(&mut build, b"", BUILD_TIME_MAX);
    assert!(built.status.success(), "{build:?}:\n{}", built.stderr);
}
