//! The machine whose programs are under test: this one or, with `TEST_MACHINE=aarch64`, one that qemu emulates. Compilers run on this machine in
//! any case.
//!
//! For the other machine `sledge` and `spec-runner` are built beforehand: `make test-aarch64` does that.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the libraries lie that its programs are linked with, as Debian has them.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// Its target triple.
const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// Whether the programs under test are another machine's.
///
/// # Panics
/// When a machine is asked for that is not known.
#[must_use]
pub fn is_emulated() -> bool {
    match std::env::var("TEST_MACHINE").ok().as_deref() {
        None => false,
        Some("aarch64") => true,
        Some(other) => panic!("TEST_MACHINE={other}: there is only aarch64"),
    }
}

/// A command that runs a program of the machine under test.
#[must_use]
pub fn command(program: &Path) -> Command {
    if !is_emulated() {
        return Command::new(program);
    }
    let mut command = Command::new("qemu-aarch64");
    command.args(["-L", LIBRARIES]).arg(program);
    command
}

/// The program of the machine under test that lies beside `program` of this one.
///
/// # Panics
/// When it was not built.
#[must_use]
pub fn counterpart(program: &Path) -> PathBuf {
    if !is_emulated() {
        return program.to_owned();
    }
    // target/PROFILE/program, target/TRIPLE/release/program
    let name = program.file_name().expect("a program has a name");
    let target = program.ancestors().nth(2).expect("a target folder");
    let program = target.join(TRIPLE).join("release").join(name);
    assert!(program.is_file(), "{} is missing: `make test-aarch64` builds it", program.display());
    program
}

/// What `awsm compile` has to be told to compile for the machine under test.
#[must_use]
pub fn compile_arguments() -> &'static [&'static str] {
    if is_emulated() { &["--target", TRIPLE] } else { &[] }
}
