//! Running the linker.

use std::fs;
use std::io::ErrorKind;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use awsm_abi::cpu::Arch;
use object::elf::{self, SectionHeader64};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

use crate::error::{CompileError, LinkerError};

/// Linkers, in the order in which they are tried.
const LINKERS: [&str; 3] = ["ld.lld-22", "ld.lld", RUST_LLD];

/// The linker that comes with Rust. It needs an argument with the name of the linker whose options it takes.
const RUST_LLD: &str = "rust-lld";

/// What makes a shared object an artifact: nothing undefined, nothing writable, nothing that wants relocating, no stack that can be
/// executed; symbols of functions for debuggers and profilers.
const FLAGS: [&str; 11] = [
    "-shared",
    "-nostdlib",
    "--no-undefined",
    "-zrodynamic",
    "-znorelro",
    "-znoexecstack",
    "-zdefs",
    "--build-id=none",
    "--hash-style=gnu",
    "--eh-frame-hdr",
    "--fatal-warnings",
];

/// What the linker writes, in a folder of its own.
const OUTPUT: &str = "function.so";

/// Drops the debug sections of generated code: their line table means something else.
const STRIP: &str = "--strip-debug";

/// Links object files into a shared object.
pub(super) fn link(objects: &[&[u8]], arch: Arch) -> Result<Vec<u8>, CompileError> {
    run(objects, arch, &[FLAGS.as_slice(), &[STRIP]].concat())
}

/// Links object files into a shared object that keeps the debug sections of `lines`, and only these.
pub(super) fn link_with_lines(objects: &[&[u8]], lines: &[u8], arch: Arch) -> Result<Vec<u8>, CompileError> {
    let mut excluded: Vec<Vec<u8>> = objects.iter().map(|object| object.to_vec()).collect();
    excluded.iter_mut().try_for_each(|object| exclude_debug_sections(object))?;
    let objects: Vec<&[u8]> = excluded.iter().map(Vec::as_slice).chain([lines]).collect();
    run(&objects, arch, &FLAGS)
}

/// Marks debug sections of an object file as ones that linkers leave out (`SHF_EXCLUDE`).
fn exclude_debug_sections(object: &mut [u8]) -> Result<(), CompileError> {
    let broken = |error: &dyn std::fmt::Display| CompileError::llvm("reading the generated object", error);
    let file = ElfFile64::<LittleEndian>::parse(&*object).map_err(|error| broken(&error))?;
    let debug = file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug_")));
    let headers: Vec<usize> = debug.map(|section| section.index().0).collect();
    let start = file.elf_header().e_shoff.get(LittleEndian) as usize;
    for index in headers {
        let flags =
            start + index * size_of::<SectionHeader64<LittleEndian>>() + offset_of!(SectionHeader64<LittleEndian>, sh_flags);
        let field = object.get_mut(flags..flags + 8).ok_or_else(|| broken(&"a section header outside the file"))?;
        for (byte, bit) in field.iter_mut().zip(elf::SHF_EXCLUDE.0.to_le_bytes()) {
            *byte |= bit;
        }
    }
    Ok(())
}

/// Merges object files into one.
pub(super) fn merge(objects: &[&[u8]], arch: Arch) -> Result<Vec<u8>, CompileError> {
    run(objects, arch, &["--relocatable"])
}

fn run(objects: &[&[u8]], arch: Arch, flags: &[&str]) -> Result<Vec<u8>, CompileError> {
    let folder = tempfile::tempdir().map_err(CompileError::io("making a temporary folder"))?;
    let mut inputs = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let name = format!("{index}.o");
        fs::write(folder.path().join(&name), object).map_err(CompileError::io("writing an object file"))?;
        inputs.push(name);
    }
    run_linker(folder.path(), &inputs, arch, flags)?;
    fs::read(folder.path().join(OUTPUT)).map_err(CompileError::io("reading the linked artifact"))
}

/// Runs it in that folder, so that what it says names no temporary paths.
fn run_linker(folder: &Path, inputs: &[String], arch: Arch, flags: &[&str]) -> Result<(), CompileError> {
    // Segments never share a page in memory. In the file they may: it is copied, not mapped, and with pages of up to 64 KiB, as systems for
    // AArch64 may have, small functions would be mostly padding.
    let layout = match arch {
        Arch::X86_64 => ["-melf_x86_64", "-zseparate-code"],
        Arch::Aarch64 => ["-maarch64elf", "-znoseparate-code"],
    };
    for name in LINKERS {
        for program in programs(name) {
            let mut command = Command::new(&program);
            if name == RUST_LLD {
                command.args(["-flavor", "gnu"]);
            }
            command.args(flags).args(layout).args(["-o", OUTPUT]).args(inputs).current_dir(folder);
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
        assert!(error.contains("ld") && error.contains(" 0.o"), "{error}");
        let folder = std::env::temp_dir();
        assert!(!error.contains(folder.to_str().expect("UTF-8")), "{error}");
    }
}
