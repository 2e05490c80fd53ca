//! Rust through rustc (one file) or cargo (a package), for the target `wasm32-wasip1`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FrontendError, ProducerOptions, read, scratch, tool};

const TARGET: &str = "wasm32-wasip1";

/// A Rust toolchain that has the target's standard library.
struct Toolchain {
    rustc: PathBuf,
    cargo: PathBuf,
    /// Linker to name; none where the toolchain brings its own.
    linker: Option<PathBuf>,
}

impl Toolchain {
    /// The user's own toolchain if it has the target, otherwise the system's. `folder` is where it will run: a toolchain file there counts.
    fn find(folder: &Path) -> Result<Toolchain, FrontendError> {
        let pairs = [("rustc", "cargo"), ("/usr/bin/rustc", "/usr/bin/cargo")];
        pairs
            .into_iter()
            .filter_map(|(rustc, cargo)| Some((tool::find([rustc])?, tool::find([cargo])?)))
            .find_map(|(rustc, cargo)| Toolchain::with_target(rustc, cargo, folder))
            .ok_or_else(|| FrontendError::ToolMissing {
                what: "a Rust toolchain for wasm32-wasip1",
                looked_for: "rustc in PATH and /usr/bin/rustc, with that target's standard library".to_owned(),
                advice: "Run: rustup target add wasm32-wasip1. Where rustup cannot fetch it, on Debian: scripts/setup builds it from the \
                         packages rustc-web, cargo-web and rust-web-src",
            })
    }

    /// This toolchain, if it has the target.
    fn with_target(rustc: PathBuf, cargo: PathBuf, folder: &Path) -> Option<Toolchain> {
        let question = |words: &[&str]| tool::ask(Command::new(&rustc).args(words).current_dir(folder));
        let libraries = PathBuf::from(question(&["--print", "target-libdir", "--target", TARGET])?);
        let has_std =
            std::fs::read_dir(libraries).ok()?.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"));
        if !has_std {
            return None;
        }
        let own_linker = question(&["--print", "sysroot"])
            .and_then(|sysroot| {
                let hosts = std::fs::read_dir(Path::new(&sysroot).join("lib/rustlib")).ok()?;
                hosts.flatten().map(|host| host.path().join("bin/rust-lld")).find(|linker| linker.is_file())
            })
            .is_some();
        let linker = if own_linker { None } else { tool::find(["wasm-ld-22", "wasm-ld"]) };
        Some(Toolchain { rustc, cargo, linker })
    }
}

/// Compiles one Rust file.
pub(super) fn compile_file(input: &Path, options: &ProducerOptions) -> Result<Vec<u8>, FrontendError> {
    let toolchain = Toolchain::find(Path::new("."))?;
    let folder = scratch()?;
    let output = folder.path().join("module.wasm");
    let mut command = Command::new(&toolchain.rustc);
    command.args(["--target", TARGET, "--edition", "2024", "-C", "panic=abort", "-C"]);
    command.arg(format!("opt-level={}", options.opt_level));
    if let Some(linker) = &toolchain.linker {
        command.arg("-C").arg(format!("linker={}", linker.display()));
    }
    if std::io::stderr().is_terminal() {
        command.arg("--color=always");
    }
    command.arg(input).args(&options.arguments).arg("-o").arg(&output);
    tool::run_in(folder.path(), &mut command, input)?;
    read(&output)
}

/// Builds a cargo package's release profile and takes the one module that comes out.
pub(super) fn compile_package(package: &Path, options: &ProducerOptions) -> Result<Vec<u8>, FrontendError> {
    let toolchain = Toolchain::find(package)?;
    let mut command = Command::new(&toolchain.cargo);
    command.current_dir(package).env("RUSTC", &toolchain.rustc);
    if let Some(linker) = &toolchain.linker {
        command.env("CARGO_TARGET_WASM32_WASIP1_LINKER", linker);
    }
    command.args(["build", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"]);
    command.args(&options.arguments);
    let messages = tool::run(&mut command, package)?;
    let modules = built_modules(&String::from_utf8_lossy(&messages));
    match modules.as_slice() {
        [module] => read(module),
        [] => Err(FrontendError::Modules {
            package: package.to_owned(),
            found: "no WebAssembly module".to_owned(),
            advice: "it needs a binary target, or a library with crate-type = [\"cdylib\"]",
        }),
        several => Err(FrontendError::Modules {
            package: package.to_owned(),
            found: several.iter().map(|module| module.display().to_string()).collect::<Vec<_>>().join(", "),
            advice: "choose one by its target: awsm compile FOLDER -- --bin NAME",
        }),
    }
}

/// The `.wasm` files that cargo's messages name, dependencies' (there are none in practice) included.
fn built_modules(messages: &str) -> Vec<PathBuf> {
    let mut modules: Vec<PathBuf> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    modules.sort();
    modules.dedup();
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_taken_from_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","filenames":["/t/deps/libx.rlib"]}
not json
{"reason":"compiler-artifact","filenames":["/t/x.wasm"]}
{"reason":"build-finished","success":true}"#;
        assert_eq!(built_modules(messages), [PathBuf::from("/t/x.wasm")]);
    }
}
