//! C and C++ through clang and wasi-libc, C++ also through libc++.

use std::io::IsTerminal as _;
use std::path::Path;

use super::clang::{Clang, DEBIAN_HEADERS};
use super::cpp::{self, Cpp};
use super::{FrontendError, ProducerOptions, read, scratch, tool};

/// Functions of the C library that awsm has better ones of.
const MINMAX: &str = include_str!("minmax.s");
/// What C++ needs that its libraries lack.
const CPP: &str = include_str!("cpp.s");

/// Compiles and links one file of C or C++; further sources and flags come with the options. Each source's own name says which of the two it is.
pub(super) fn compile(input: &Path, options: &ProducerOptions) -> Result<Vec<u8>, FrontendError> {
    let clang = Clang::find()?;
    let has_cpp = cpp::is_among(std::iter::once(input).chain(options.arguments.iter().map(Path::new)));
    let cpp = has_cpp.then(|| Cpp::find(&clang, &options.arguments)).transpose()?;
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
        None if has_cpp => drop(command.arg("-nostdlibinc")),
        None => drop(command.args(["-nostdlibinc", "-isystem", DEBIAN_HEADERS])),
    }
    command.args(cpp.iter().flat_map(|cpp| &cpp.flags));
    // Below the stack is nothing, so that what overflows traps and overwrites nothing.
    command.arg("-Wl,--stack-first");
    // The objects are for memories with 32-bit addresses.
    if !options.arguments.iter().any(|argument| argument == "-m64" || argument.contains("wasm64")) {
        command.arg(clang.assemble(folder.path(), "minmax", MINMAX)?);
        if cpp.as_ref().is_some_and(|cpp| !cpp.libraries.is_empty()) {
            command.arg(clang.assemble(folder.path(), "cpp", CPP)?);
        }
    }
    command.arg(input).args(&options.arguments).args(cpp.iter().flat_map(|cpp| &cpp.libraries)).arg("-o").arg(&output);
    tool::run_in(folder.path(), &mut command, input)?;
    read(&output)
}
