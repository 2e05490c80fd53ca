//! C through clang and wasi-libc.

use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FrontendError, ProducerOptions, read, scratch, tool};

/// Where Debian's package wasi-libc keeps its headers and libraries; a clang of wasi-sdk brings its own.
const DEBIAN_HEADERS: &str = "/usr/include/wasm32-wasi";

/// Functions of the C library that awsm has better ones of.
const MINMAX: &str = include_str!("minmax.s");

/// A clang for WebAssembly, and what it must be told to find wasi-libc.
struct Clang {
    program: PathBuf,
    sysroot: Option<PathBuf>,
}

impl Clang {
    /// wasi-sdk if the user names one, otherwise Debian's.
    fn find() -> Result<Clang, FrontendError> {
        let advice = "On Debian: apt install clang-22 lld-22 wasi-libc libclang-rt-22-dev-wasm32. Elsewhere: install wasi-sdk and set \
                      WASI_SDK_PATH to its folder";
        if let Some(sdk) = std::env::var_os("WASI_SDK_PATH").map(PathBuf::from) {
            let program = sdk.join("bin/clang");
            let sysroot = sdk.join("share/wasi-sysroot");
            return if program.is_file() && sysroot.is_dir() {
                Ok(Clang { program, sysroot: Some(sysroot) })
            } else {
                let looked_for = format!("{} and {} (from WASI_SDK_PATH)", program.display(), sysroot.display());
                Err(FrontendError::ToolMissing { what: "wasi-sdk", looked_for, advice })
            };
        }
        let looked_for = || "clang-22 and clang in PATH".to_owned();
        let program = tool::find(["clang-22", "clang"]).ok_or_else(|| FrontendError::ToolMissing {
            what: "clang",
            looked_for: looked_for(),
            advice,
        })?;
        if !Path::new(DEBIAN_HEADERS).is_dir() {
            let looked_for = DEBIAN_HEADERS.to_owned();
            return Err(FrontendError::ToolMissing { what: "wasi-libc", looked_for, advice });
        }
        Ok(Clang { program, sysroot: None })
    }

    /// A command of it for WebAssembly.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Under the target's newer name clang does not find Debian's wasi-libc; it says so in a warning that is not for the user.
        command.args(["--target=wasm32-wasi", "-Wno-deprecated"]);
        command
    }

    /// Assembles [`MINMAX`]: apart from the user's sources, so that none of the user's options is for it.
    fn minmax(&self, folder: &Path) -> Result<PathBuf, FrontendError> {
        let (source, object) = (folder.join("minmax.s"), folder.join("minmax.o"));
        fs::write(&source, MINMAX).map_err(FrontendError::Scratch)?;
        tool::run_in(folder, self.command().arg("-c").arg(&source).arg("-o").arg(&object), Path::new("minmax.s"))?;
        Ok(object)
    }
}

/// Compiles and links one C file; further sources and flags come with the options.
pub(super) fn compile(input: &Path, options: &ProducerOptions) -> Result<Vec<u8>, FrontendError> {
    let clang = Clang::find()?;
    let folder = scratch()?;
    // The linker names the module after its file.
    let output = folder.path().join(input.file_stem().unwrap_or("module".as_ref())).with_extension("wasm");
    let mut command = clang.command();
    command.arg("-Wdeprecated-declarations");
    command.arg(format!("-O{}", options.opt_level));
    // Unrolled by clang's WebAssembly back end, a loop reaches awsm with several wrapping 32-bit indices that LLVM cannot relate to each
    // other, so that it never vectorises; awsm's own LLVM unrolls it afterwards, for the real machine.
    command.arg("-fno-unroll-loops");
    if std::io::stderr().is_terminal() {
        command.arg("-fcolor-diagnostics");
    }
    match &clang.sysroot {
        Some(sysroot) => drop(command.arg(format!("--sysroot={}", sysroot.display()))),
        None if options.arguments.iter().any(|argument| argument.starts_with("--sysroot")) => {}
        // By itself clang looks into this machine's own headers, too, whose libraries are no WebAssembly.
        None => drop(command.args(["-nostdlibinc", "-isystem", DEBIAN_HEADERS])),
    }
    // Below the stack is nothing, so that what overflows traps and overwrites nothing.
    command.arg("-Wl,--stack-first");
    // The object is for memories with 32-bit addresses.
    if !options.arguments.iter().any(|argument| argument == "-m64" || argument.contains("wasm64")) {
        command.arg(clang.minmax(folder.path())?);
    }
    command.arg(input).args(&options.arguments).arg("-o").arg(&output);
    tool::run_in(folder.path(), &mut command, input)?;
    read(&output)
}
