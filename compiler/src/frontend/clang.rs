//! A clang for WebAssembly: Debian's with wasi-libc, or that of a wasi-sdk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FrontendError, tool};

/// Where Debian's package wasi-libc keeps its headers and libraries; a clang of wasi-sdk brings its own.
pub(super) const DEBIAN_HEADERS: &str = "/usr/include/wasm32-wasi";

/// A clang for WebAssembly, and what it must be told to find wasi-libc.
pub(super) struct Clang {
    program: PathBuf,
    pub(super) sysroot: Option<PathBuf>,
}

impl Clang {
    /// wasi-sdk if the user names one, otherwise Debian's.
    pub(super) fn find() -> Result<Clang, FrontendError> {
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
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Under the target's newer name clang does not find Debian's wasi-libc; it says so in a warning that is not for the user.
        command.args(["--target=wasm32-wasi", "-Wno-deprecated"]);
        command
    }

    /// Assembles something of awsm's own: apart from the user's sources, so that none of the user's options is for it.
    pub(super) fn assemble(&self, folder: &Path, name: &str, text: &str) -> Result<PathBuf, FrontendError> {
        let source = folder.join(name).with_extension("s");
        let object = source.with_extension("o");
        fs::write(&source, text).map_err(FrontendError::Scratch)?;
        tool::run_in(folder, self.command().arg("-c").arg(&source).arg("-o").arg(&object), Path::new(name))?;
        Ok(object)
    }
}
