//! Programs in Go with google.golang.org/grpc, by stock Go.
//!
//! `go build -modfile` reads a copy of go.mod, in which google.golang.org/grpc is replaced by our module, and writes its sums beside that: the
//! program's own go.mod and go.sum are not touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::toolchain::{Tool, ToolchainError};
use super::{BuildError, Job, library, signals};

/// The module that is replaced.
const GRPC: &str = "google.golang.org/grpc";
/// Versions of it for whose programs and generated code our module is.
const GRPC_MIN: (u32, u32) = (1, 50);
const GRPC_MAX: (u32, u32) = (1, 85);
/// The first Go that exports functions (`//go:wasmexport`); what our module says that it needs.
const GO_MIN: (u32, u32) = (1, 24);

const GO: Tool = Tool { program: "go", advice: "install Go 1.24 or newer (https://go.dev/dl)" };

/// What `go mod edit -json` says, as far as it is asked for here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Manifest {
    module: Module,
    go: String,
    #[serde(deserialize_with = "or_none")]
    require: Vec<Module>,
    #[serde(deserialize_with = "or_none")]
    replace: Vec<Replace>,
    #[serde(deserialize_with = "or_none")]
    godebug: Vec<Debug>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Debug {
    key: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Module {
    path: String,
    version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Replace {
    old: Module,
}

/// Go writes empty lists as null.
fn or_none<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Builds one.
pub(super) fn build(job: &Job<'_>) -> Result<(), BuildError> {
    let no_manifest = || ToolchainError::NoManifest { name: "go.mod", folder: job.source.clone() };
    let root = job.source.ancestors().find(|folder| folder.join("go.mod").is_file()).ok_or_else(no_manifest)?;
    let manifest = root.join("go.mod");
    let go_root = check_go(job)?;
    let known: Manifest = {
        let text = GO.ask(go(&job.source).args(["mod", "edit", "-json"]).arg(&manifest))?;
        serde_json::from_slice(&text).map_err(|error| strange(&format!("mod edit -json: {error}")))?
    };
    check_grpc(&manifest, &known)?;
    let library = library::unpack("go", job.libraries)?;
    fs::create_dir_all(&job.work).map_err(BuildError::write(&job.work))?;
    let copy = job.work.join("go.mod");
    let sums = job.work.join("go.sum");
    // Their bytes alone: a copy of a file that may not be written may be.
    let unread = |source| BuildError::Source { path: manifest.clone(), source };
    fs::write(&copy, fs::read(&manifest).map_err(unread)?).map_err(BuildError::write(&copy))?;
    if let Ok(known) = fs::read(root.join("go.sum")) {
        fs::write(&sums, known).map_err(BuildError::write(&sums))?;
    }
    let mut edit = go(&job.source);
    edit.args(["mod", "edit"]);
    // One for a version would come before ours.
    for replace in known.replace.iter().filter(|replace| replace.old.path == GRPC) {
        edit.arg(format!("-dropreplace={}", at_version(&replace.old)));
    }
    for (path, folder) in replacements(job, &library)? {
        edit.arg(format!("-replace={path}={}", folder.display()));
    }
    // Our module has the copy say a later Go than the program may; what the program means must not change with it.
    let older = numbers(&known.go).filter(|version| *version < GO_MIN).map(|(major, minor)| format!("go{major}.{minor}"));
    if let Some(older) = older.as_ref().filter(|_| known.godebug.iter().all(|debug| debug.key != "default")) {
        edit.arg(format!("-godebug=default={older}"));
    }
    GO.ask(edit.arg(&copy))?;

    let mut build = go(&job.source);
    build.args(["build", "-mod=mod", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w"]);
    if let Some(older) = older {
        build.arg(format!("-gcflags={}/...=-lang={older}", known.module.path));
    }
    if let Some(overlay) = signals::overlay(&go_root, &job.libraries.join("go-signal"))? {
        build.arg(format!("-overlay={}", overlay.display()));
    }
    build.arg(format!("-modfile={}", copy.display())).arg("-o").arg(&job.module).arg(".");
    build.envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("GOWORK", "off"), ("CGO_ENABLED", "0")]);
    let status = GO.run(job, &mut build)?;
    if status.success() {
        return Ok(());
    }
    let advice = format!(
        "\nThe program is built with Sledge's {GRPC} (docs/applications.md says what it has). Whether it builds without says `go build` in {}",
        job.source.display()
    );
    Err(ToolchainError::Failed { program: GO.program, status, advice }.into())
}

/// A go that works in the program's folder.
fn go(source: &Path) -> Command {
    let mut go = Command::new(GO.program);
    go.current_dir(source).env("PWD", source);
    go
}

fn at_version(module: &Module) -> String {
    if module.version.is_empty() { module.path.clone() } else { format!("{}@{}", module.path, module.version) }
}

/// What stands in the place of modules: ours, and those of a workspace (go.work), which a build with a manifest of its own does not know.
fn replacements(job: &Job<'_>, library: &Path) -> Result<BTreeMap<String, PathBuf>, BuildError> {
    let mut all = BTreeMap::new();
    let workspace = GO.ask(go(&job.source).args(["env", "GOWORK"]))?;
    let workspace = String::from_utf8_lossy(&workspace);
    if !matches!(workspace.trim(), "" | "off") {
        let modules = GO.ask(go(&job.source).args(["list", "-m", "-f", "{{.Path}}\t{{.Dir}}\t{{.GoMod}}"]))?;
        for line in String::from_utf8_lossy(&modules).lines() {
            let mut parts = line.split('\t');
            let (Some(path), Some(folder)) = (parts.next(), parts.next()) else { continue };
            if !job.source.starts_with(folder) {
                all.insert(path.to_owned(), PathBuf::from(folder));
            }
        }
    }
    all.insert(GRPC.to_owned(), library.to_owned());
    Ok(all)
}

/// Whether there is a Go that can do it; the folder that it is in.
fn check_go(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    let known = GO.ask(go(&job.source).args(["env", "GOVERSION", "GOROOT"]))?;
    let known = String::from_utf8_lossy(&known);
    let mut lines = known.lines();
    let (version, root) = (lines.next().unwrap_or_default().trim(), lines.next().unwrap_or_default());
    let numbers = version.strip_prefix("go").and_then(numbers);
    match numbers {
        Some(numbers) if numbers < GO_MIN => Err(strange(&format!("{version}: too old; {}", GO.advice)).into()),
        // One from the sources says no number.
        _ => Ok(PathBuf::from(root)),
    }
}

fn check_grpc(manifest: &Path, known: &Manifest) -> Result<(), ToolchainError> {
    let Some(module) = known.require.iter().find(|module| module.path == GRPC) else {
        return Err(ToolchainError::NotUsed { manifest: manifest.to_owned(), library: GRPC });
    };
    let numbers = module.version.strip_prefix('v').and_then(numbers);
    if numbers.is_some_and(|numbers| (GRPC_MIN..=GRPC_MAX).contains(&numbers)) {
        return Ok(());
    }
    let [min, max] = [GRPC_MIN, GRPC_MAX].map(|(major, minor)| format!("v{major}.{minor}"));
    let supported = format!("{min} to {max}");
    let version = module.version.clone();
    Err(ToolchainError::Version { manifest: manifest.to_owned(), library: GRPC, version, supported })
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    let first = parts.next()?.parse().ok()?;
    let second = parts.next()?;
    let digits = second.find(|c: char| !c.is_ascii_digit()).unwrap_or(second.len());
    Some((first, second[..digits].parse().ok()?))
}

fn strange(what: &str) -> ToolchainError {
    ToolchainError::Strange { program: GO.program, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(numbers("1.24"), Some((1, 24)));
        assert_eq!(numbers("1.25rc1"), Some((1, 25)));
        assert_eq!(numbers("1.64.0-dev.0.2024"), Some((1, 64)));
        assert_eq!(numbers("devel"), None);
        let module = |version: &str| Module { path: GRPC.to_owned(), version: version.to_owned() };
        let checked = |require| check_grpc(Path::new("go.mod"), &Manifest { require, ..Manifest::default() });
        assert!(checked(vec![module("v1.64.0")]).is_ok());
        let error = checked(vec![module("v1.3.0")]).unwrap_err().to_string();
        assert_eq!(error, "go.mod: google.golang.org/grpc v1.3.0 is not supported; supported: v1.50 to v1.85");
        assert!(checked(Vec::new()).unwrap_err().to_string().contains("is not among its dependencies"));
    }
}
