//! Running the linker.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use awsm_abi::cpu::Arch;

use crate::error::{CompileError, LinkerError};

/// Linkers, in the order in which they are tried.
const LINKERS: [&str; 3] = ["ld.lld-22", "ld.lld", RUST_LLD];

/// The linker that comes with Rust; it wants to be told whom to imitate.
const RUST_LLD: &str = "rust-lld";

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
    run(objects, arch, &FLAGS)
}

/// Merges object files into one.
pub(super) fn merge(objects: &[&[u8]], arch: Arch) -> Result<Vec<u8>, CompileError> {
    run(objects, arch, &["--relocatable"])
}

fn run(objects: &[&[u8]], arch: Arch, flags: &[&str]) -> Result<Vec<u8>, CompileError> {
    let folder = tempfile::tempdir().map_err(CompileError::io("making a temporary folder"))?;
    let output = folder.path().join("function.so");
    let mut inputs = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let path = folder.path().join(format!("{index}.o"));
        fs::write(&path, object).map_err(CompileError::io("writing an object file"))?;
        inputs.push(path);
    }
    run_linker(&inputs, &output, arch, flags)?;
    fs::read(&output).map_err(CompileError::io("reading the linked artifact"))
}

fn run_linker(inputs: &[PathBuf], output: &Path, arch: Arch, flags: &[&str]) -> Result<(), CompileError> {
    let emulation = match arch {
        Arch::X86_64 => "-melf_x86_64",
        Arch::Aarch64 => "-maarch64elf",
    };
    for name in LINKERS {
        for program in programs(name) {
            let mut command = Command::new(&program);
            if name == RUST_LLD {
                command.args(["-flavor", "gnu"]);
            }
            command.args(flags).arg(emulation).arg("-o").arg(output).args(inputs);
            match command.output() {
                Ok(done) if done.status.success() => return Ok(()),
                Ok(done) => return Err(failed(name, &done).into()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(CompileError::io("starting the linker")(error)),
            }
        }
    }
    Err(LinkerError::NotFound { looked_for: LINKERS.map(str::to_owned).to_vec() }.into())
}

/// Where a linker may be: in PATH, and Rust's own also inside its toolchain.
fn programs(name: &str) -> Vec<PathBuf> {
    let mut programs = vec![PathBuf::from(name)];
    if name == RUST_LLD
        && let Ok(done) = Command::new("rustc").args(["--print", "sysroot"]).output()
    {
        let sysroot = PathBuf::from(String::from_utf8_lossy(&done.stdout).trim());
        let host = format!("{}-unknown-linux-gnu", Arch::HOST.name());
        programs.push(sysroot.join("lib/rustlib").join(host).join("bin").join(name));
    }
    programs
}

fn failed(linker: &str, done: &Output) -> LinkerError {
    LinkerError::Failed {
        linker: linker.to_owned(),
        status: done.status.to_string(),
        output: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_linker_is_named_with_where_to_get_one() {
        let error = LinkerError::NotFound { looked_for: LINKERS.map(str::to_owned).to_vec() }.to_string();
        assert!(error.contains("ld.lld-22, ld.lld, rust-lld") && error.contains("apt install lld-22"), "{error}");
    }

    #[test]
    fn a_linker_that_fails_is_quoted() {
        let error = link(&[b"not an object"], Arch::HOST).unwrap_err().to_string();
        assert!(error.contains("ld") && error.contains("0.o"), "{error}");
    }
}
