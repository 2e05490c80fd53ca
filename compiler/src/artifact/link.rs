//! Running the linker.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use awsm_abi::cpu::Arch;

use crate::error::{CompileError, LinkerError};

/// Linkers, in the order in which they are tried.
const LINKERS: [&str; 3] = ["ld.lld-22", "ld.lld", "rust-lld"];

/// What makes a shared object an artifact: nothing undefined, nothing writable, nothing that wants relocating, no stack that can be
/// executed; symbols of functions for debuggers and profilers, but no debug sections: their line table meant something else.
const FLAGS: [&str; 13] = [
    "-shared",
    "-nostdlib",
    "--no-undefined",
    "-zrodynamic",
    "-znorelro",
    "-znoexecstack",
    "-zdefs",
    "-zseparate-code",
    "--build-id=none",
    "--hash-style=gnu",
    "--eh-frame-hdr",
    "--strip-debug",
    "--fatal-warnings",
];

/// Links object files into a shared object.
pub(super) fn link(objects: &[&[u8]], arch: Arch) -> Result<Vec<u8>, CompileError> {
    let folder = tempfile::tempdir().map_err(CompileError::io("making a temporary folder"))?;
    let output = folder.path().join("function.so");
    let mut inputs = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let path = folder.path().join(format!("{index}.o"));
        fs::write(&path, object).map_err(CompileError::io("writing an object file"))?;
        inputs.push(path);
    }
    run(&inputs, &output, arch)?;
    fs::read(&output).map_err(CompileError::io("reading the linked artifact"))
}

fn run(inputs: &[PathBuf], output: &Path, arch: Arch) -> Result<(), CompileError> {
    let emulation = match arch {
        Arch::X86_64 => "-melf_x86_64",
        Arch::Aarch64 => "-maarch64elf",
    };
    for name in LINKERS {
        let mut command = Command::new(name);
        if name == "rust-lld" {
            command.args(["-flavor", "gnu"]);
        }
        command.args(FLAGS).arg(emulation).arg("-o").arg(output).args(inputs);
        match command.output() {
            Ok(done) if done.status.success() => return Ok(()),
            Ok(done) => return Err(failed(name, &done).into()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(CompileError::io("starting the linker")(error)),
        }
    }
    Err(LinkerError::NotFound { looked_for: LINKERS.map(str::to_owned).to_vec() }.into())
}

fn failed(linker: &str, done: &Output) -> LinkerError {
    LinkerError::Failed {
        linker: linker.to_owned(),
        status: done.status.to_string(),
        output: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}
