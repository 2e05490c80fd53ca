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
/// Turns of each program, for a promise.
pub const TURNS: usize = 7;

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

/// Where an application runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a process, as native code.
    Native,
    /// In a sandbox, as WebAssembly.
    Sandbox,
}

/// An application that times itself, built for both places.
#[derive(Debug)]
pub struct Timed {
    example: &'static Example,
    program: PathBuf,
    artifact: PathBuf,
    sledge: PathBuf,
    body: Vec<u8>,
}

/// What each turn of an application took in both places, in seconds.
pub type Turn = (f64, f64);

impl Timed {
    /// Builds it into `folder`.
    ///
    /// # Errors
    ///
    /// If something does not build.
    pub fn build(example: &'static Example, folder: &Path) -> Result<Timed> {
        let program = native(example, true, folder)?;
        let artifact = function(example, folder)?;
        Ok(Timed { example, program, artifact, sledge: checkout::program("sledge")?, body: example.input()? })
    }

    /// The seconds that a call takes at best: the function is called again and again, for about 0.3 s, and its last reply is judged.
    ///
    /// # Errors
    ///
    /// If it fails or gives a wrong reply.
    pub fn seconds(&self, place: Place) -> Result<f64> {
        let mut command = match place {
            Place::Native => Command::new(&self.program),
            Place::Sandbox => Command::new(&self.sledge),
        };
        if place == Place::Sandbox {
            command.arg("run").arg(&self.artifact);
        }
        let (reply, said) = said(&mut command, &self.body)?;
        self.example.judge(&self.body, &reply)?;
        let last = said.lines().last().unwrap_or_default();
        last.parse().with_context(|| format!("{}: expected are seconds, not {last:?}", self.example.name))
    }
}

/// Builds an application and measures it in turns on one core: natively, then in a sandbox.
///
/// # Errors
///
/// If something does not build, fails or gives a wrong reply.
pub fn turns(example: &'static Example, folder: &Path, count: usize) -> Result<Vec<Turn>> {
    let timed = Timed::build(example, folder)?;
    let _pinned = Pinned::new()?;
    (0..count).map(|_| Ok((timed.seconds(Place::Native)?, timed.seconds(Place::Sandbox)?))).collect()
}

/// How much longer the function takes than native code, both at their best.
///
/// # Errors
///
/// As for [`turns`].
pub fn ratio(example: &'static Example, folder: &Path) -> Result<f64> {
    let (native, sandbox) = best(&turns(example, folder, TURNS)?);
    eprintln!("{}: {:.3} us natively, {:.3} us sandboxed", example.name, native * 1e6, sandbox * 1e6);
    Ok(sandbox / native)
}

/// The quickest turn of each place.
pub fn best(turns: &[Turn]) -> Turn {
    turns.iter().fold((f64::INFINITY, f64::INFINITY), |best, turn| (best.0.min(turn.0), best.1.min(turn.1)))
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
