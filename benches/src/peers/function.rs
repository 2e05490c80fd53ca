//! What is asked for: an example, and what its one source is made into.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::example::{ECHO, Example, FIBONACCI, GPS_EKF, IMAGE_CLASSIFY, IMAGE_RESIZE, OCR, PING, PLATE_DETECT};
use crate::{applications, checkout, compiler, steps};

const CLANG: &str = "clang-22";
/// Clients of the loads that are about throughput.
const CLIENTS: usize = 100;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Whether `native` has a handler for it; the others are programs, which nothing but a process can run unsandboxed.
    pub is_handled: bool,
    /// How it is asked for.
    pub asked: &'static [Asked],
    example: &'static Example,
}

/// A way to ask for a function.
#[derive(Debug)]
pub struct Asked {
    /// What tables add to the function's name.
    pub suffix: &'static str,
    /// How many clients ask at a time.
    pub clients: usize,
    body: Body,
}

/// What is sent.
#[derive(Debug)]
enum Body {
    Empty,
    /// So many bytes.
    Bytes(usize),
    /// What lies beside the example.
    Example,
}

const fn asked(suffix: &'static str, clients: usize, body: Body) -> Asked {
    Asked { suffix, clients, body }
}

/// From one client, with which nothing waits, to a hundred.
const MORE_AND_MORE_CLIENTS: &[Asked] =
    &[asked("-1", 1, Body::Empty), asked("-10", 10, Body::Empty), asked("-50", 50, Body::Empty), asked("", CLIENTS, Body::Empty)];
const LARGER_AND_LARGER_BODIES: &[Asked] = &[
    asked("-1k", CLIENTS, Body::Bytes(1_000)),
    asked("", CLIENTS, Body::Bytes(10_000)),
    asked("-100k", CLIENTS, Body::Bytes(100_000)),
    asked("-1m", CLIENTS, Body::Bytes(1_000_000)),
];
const ITS_INPUT: &[Asked] = &[asked("", CLIENTS, Body::Example)];

const fn handled(example: &'static Example, asked: &'static [Asked]) -> Function {
    Function { name: example.name, is_handled: true, asked, example }
}

const fn program(example: &'static Example) -> Function {
    Function { name: example.name, is_handled: false, asked: ITS_INPUT, example }
}

/// All of them: those of the Sledge paper's Figures 6 (ping), 7 (echo) and 8 (the applications), and one that computes without input or output.
pub const FUNCTIONS: [Function; 8] = [
    handled(&PING, MORE_AND_MORE_CLIENTS),
    handled(&ECHO, LARGER_AND_LARGER_BODIES),
    program(&GPS_EKF),
    handled(&FIBONACCI, ITS_INPUT),
    program(&OCR),
    program(&IMAGE_CLASSIFY),
    program(&IMAGE_RESIZE),
    program(&PLATE_DETECT),
];

/// What peers take.
#[derive(Debug, Clone)]
pub struct Built {
    /// Which function it is.
    pub function: &'static Function,
    /// As WebAssembly, a WASI command, with WebAssembly's vectors: what runs it makes none itself.
    pub module: PathBuf,
    /// As a shared object for `sledge`; vectors are LLVM's affair there.
    pub artifact: PathBuf,
    /// As a program for this machine's processor.
    pub program: PathBuf,
}

impl Function {
    /// The body of a request that asks so.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn body(&self, asked: &Asked) -> Result<Vec<u8>> {
        match asked.body {
            Body::Empty => Ok(Vec::new()),
            Body::Bytes(count) => Ok((0..count).map(|index| b'a' + (index % 26) as u8).collect()),
            Body::Example => self.example.input(),
        }
    }

    /// Whether its source is one file in C, not a cargo package.
    pub fn is_c(&self) -> bool {
        !self.example.is_package()
    }

    /// Its source.
    pub fn source(&self) -> PathBuf {
        self.example.source()
    }

    /// Judges a reply.
    ///
    /// # Errors
    ///
    /// If it is not the right one; the error says what is wrong with it.
    pub fn judge(&self, request: &[u8], reply: &[u8]) -> Result<()> {
        self.example.judge(request, reply).map(drop)
    }

    /// Makes everything of it.
    ///
    /// # Errors
    ///
    /// If a tool is missing or fails.
    pub fn build(&'static self, folder: &Path) -> Result<Built> {
        steps::step(self.name, || {
            let module = folder.join(format!("{}.wasm", self.name));
            let options = self.vectorised()?;
            compiler::compile_with(&self.source(), &module, &options.iter().map(String::as_str).collect::<Vec<_>>())?;
            let artifact = folder.join(format!("{}.so", self.name));
            let bytes = compiler::compile(&self.source(), &artifact)?.bytes;
            let program = applications::native(self.example, false, folder)?;
            Ok((Built { function: self, module, artifact, program }, format!("compiled, {bytes} bytes")))
        })
    }

    /// What `awsm compile` is told so that the module has WebAssembly's vectors.
    fn vectorised(&self) -> Result<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        if self.is_c() {
            return Ok(words(&["--emit", "wasm", "--", "-msimd128"]));
        }
        // In a folder of its own: cargo builds everything again where flags differ.
        let target = checkout::output_folder("peers-wasm")?;
        let target = target.to_str().context("the path of this checkout is not UTF-8")?;
        let flags = "target.wasm32-wasip1.rustflags=[\"-Ctarget-feature=+simd128\"]";
        Ok(words(&["--emit", "wasm", "--", "--locked", "--target-dir", target, "--config", flags]))
    }

    /// Makes a component of wasi:http of it, with `encoder`: `peer-component`. Its source must be in C.
    ///
    /// # Errors
    ///
    /// If a tool is missing or fails.
    pub fn component(&self, encoder: &Path, folder: &Path) -> Result<PathBuf> {
        let sources = checkout::root().join("benches/peers");
        let module = folder.join(format!("{}.handler.wasm", self.name));
        let mut clang = Command::new(CLANG);
        clang.args(["--target=wasm32-wasi", "-Wno-deprecated", "-mexec-model=reactor", "-O3", "-msimd128"]);
        run(clang.arg(sources.join("component.c")).arg(self.source()).arg("-o").arg(&module))?;
        let component = folder.join(format!("{}.component.wasm", self.name));
        run(Command::new(encoder).arg(sources.join("component.wit")).arg(&module).arg(&component))?;
        Ok(component)
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{command:?} failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}
