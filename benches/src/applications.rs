//! The paper's applications as native programs and as functions, built from the same source for this machine's processor, and timed in turns.
//!
//! What is timed is neither process nor sandbox but the function from its first instruction to its last: `applications/repeat.h` and the packages'
//! `src/bin/repeat.rs` call it again and again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::example::Example;
use crate::polybench::machine::Pinned;
use crate::{checkout, compiler};

const CLANG: &str = "clang-22";
/// A package's program that times its function.
const REPEATED: [&str; 3] = ["repeat", "--features", "repeat"];
/// Turns of each program.
const ROUNDS: usize = 7;

/// Builds a program in C, or a package's binary or example, for this machine's processor.
///
/// # Errors
///
/// If a tool is missing or fails.
pub fn native(example: &Example, repeated: bool, folder: &Path) -> Result<PathBuf> {
    if example.is_package() {
        return native_package(example, repeated, folder);
    }
    let program = folder.join(format!("{}{}", example.name, if repeated { "-repeat" } else { "" }));
    let mut clang = Command::new(CLANG);
    clang.args(["-O3", "-march=native"]);
    if repeated {
        clang.arg("-include").arg(repeat());
    }
    said(clang.arg(example.source()).arg("-o").arg(&program).arg("-lm"), b"")?;
    Ok(program)
}

fn native_package(example: &Example, repeated: bool, folder: &Path) -> Result<PathBuf> {
    // Kept, since it takes long to build.
    let target = checkout::output_folder("applications")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "--bin"]);
    if repeated {
        cargo.args(REPEATED)
    } else {
        cargo.arg(example.name)
    };
    cargo.current_dir(example.folder()).env("RUSTFLAGS", "-C target-cpu=native").env("CARGO_TARGET_DIR", &target);
    said(&mut cargo, b"")?;
    let built = target.join("release").join(if repeated { "repeat" } else { example.name });
    let program = folder.join(format!("{}{}", example.name, if repeated { "-repeat" } else { "" }));
    std::fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(program)
}

/// Compiles the function that calls another again and again.
fn function(example: &Example, folder: &Path) -> Result<PathBuf> {
    let artifact = folder.join(format!("{}-repeat.so", example.name));
    let header = repeat();
    let header = header.to_str().context("the path of this checkout is not UTF-8")?;
    let options = if example.is_package() {
        ["--", "--bin"].iter().chain(&REPEATED).copied().collect()
    } else {
        vec!["--", "-include", header]
    };
    compiler::compile_with(&example.source(), &artifact, &options)?;
    Ok(artifact)
}

fn repeat() -> PathBuf {
    checkout::root().join("benches/applications/repeat.h")
}

/// How much longer the function takes than native code, both at their best.
///
/// # Errors
///
/// If something does not build, fails or gives a wrong reply.
pub fn ratio(example: &Example, folder: &Path) -> Result<f64> {
    let program = native(example, true, folder)?;
    let artifact = function(example, folder)?;
    let body = example.input()?;
    let sledge = checkout::program("sledge")?;
    let _pinned = Pinned::new()?;
    let (mut natively, mut sandboxed) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        natively = natively.min(seconds(example, &mut Command::new(&program), &body)?);
        sandboxed = sandboxed.min(seconds(example, Command::new(&sledge).arg("run").arg(&artifact), &body)?);
    }
    eprintln!("{}: {:.3} us natively, {:.3} us sandboxed", example.name, natively * 1e6, sandboxed * 1e6);
    Ok(sandboxed / natively)
}

/// Runs a program that calls a function again and again, judges its reply, and returns what it says that a call takes.
fn seconds(example: &Example, command: &mut Command, body: &[u8]) -> Result<f64> {
    let (reply, said) = said(command, body)?;
    example.judge(body, &reply)?;
    let last = said.lines().last().unwrap_or_default();
    last.parse().with_context(|| format!("{}: expected are seconds, not {last:?}", example.name))
}

/// Runs a command: its standard output and its standard error.
fn said(command: &mut Command, input: &[u8]) -> Result<(Vec<u8>, String)> {
    use std::io::Write as _;

    let name = command.get_program().display().to_string();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    // All of these read their input before they write.
    child.stdin.take().context("its input is piped")?.write_all(input).with_context(|| format!("{name} reads no input"))?;
    let output = child.wait_with_output().with_context(|| format!("cannot wait for {name}"))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, errors.trim_end());
    }
    Ok((output.stdout, errors))
}
