//! What is asked for: an example, and what its one source is made into.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::example::{ECHO, Example, FIBONACCI, GPS_EKF, IMAGE_CLASSIFY, PING};
use crate::{applications, checkout, compiler, steps};

const CLANG: &str = "clang-22";
/// Length of the body for `echo`.
const ECHO_BYTES: usize = 10_000;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Whether it does next to nothing, so that the cost measured is that of the server around it.
    pub is_quick: bool,
    /// Whether `native` has a handler for it; the others are programs in C, which nothing but a process can run unsandboxed.
    pub is_handled: bool,
    body: Body,
    example: &'static Example,
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

/// All of them.
pub const FUNCTIONS: [Function; 5] = [
    Function { name: "ping", is_quick: true, is_handled: true, body: Body::Empty, example: &PING },
    Function { name: "echo", is_quick: false, is_handled: true, body: Body::Bytes(ECHO_BYTES), example: &ECHO },
    Function { name: "gps-ekf", is_quick: false, is_handled: false, body: Body::Example, example: &GPS_EKF },
    Function { name: "fibonacci", is_quick: false, is_handled: true, body: Body::Example, example: &FIBONACCI },
    Function { name: "image-classify", is_quick: false, is_handled: false, body: Body::Example, example: &IMAGE_CLASSIFY },
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
    /// The body of a request.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn body(&self) -> Result<Vec<u8>> {
        match self.body {
            Body::Empty => Ok(Vec::new()),
            Body::Bytes(count) => Ok((0..count).map(|index| b'a' + (index % 26) as u8).collect()),
            Body::Example => self.example.input(),
        }
    }

    /// Its source, in C.
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
        ensure!(!self.example.is_package(), "{}: only examples of one file can be programs and modules alike", self.name);
        steps::step(self.name, || {
            let module = folder.join(format!("{}.wasm", self.name));
            compiler::compile_with(&self.source(), &module, &["--emit", "wasm", "--", "-msimd128"])?;
            let artifact = folder.join(format!("{}.so", self.name));
            let bytes = compiler::compile(&self.source(), &artifact)?.bytes;
            let program = applications::native(self.example, false, folder)?;
            Ok((Built { function: self, module, artifact, program }, format!("compiled, {bytes} bytes")))
        })
    }

    /// Makes a component of wasi:http of it, with `encoder`: `peer-component`.
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
