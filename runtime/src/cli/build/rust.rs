//! Programs in Rust with tonic, by cargo.
//!
//! cargo writes the packages that replace tokio and tonic into the lock, so it works in a [copy](super::tree). Programs of one workspace have a copy in
//! common, and what they depend on is built once.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use sledge_grpc_prepare::{Prepared, Replaced, TARGET};

use super::library::write_changed;
use super::toolchain::{Tool, ToolchainError};
use super::{BUILT_FOLDER, BuildError, Job, tree};

const CARGO: Tool = Tool { program: "cargo", advice: "install Rust (https://rustup.rs) and `rustup target add wasm32-wasip1`" };
/// What makes a program a gRPC server.
const TONIC: &str = "tonic";

/// What `cargo metadata` says, as far as it is asked for here.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    /// None for those that are folders.
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    default_run: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Builds one.
pub(super) fn build(job: &Job<'_>) -> Result<(), BuildError> {
    let manifest = job.source.join("Cargo.toml");
    if !manifest.is_file() {
        return Err(ToolchainError::NoManifest { name: "Cargo.toml", folder: job.source.clone() }.into());
    }
    let mut ask = cargo(&job.source);
    let metadata = CARGO.ask(ask.args(["metadata", "--format-version=1", "--locked"]))?;
    let metadata: Metadata = serde_json::from_slice(&metadata).map_err(|error| strange(format!("metadata: {error}")))?;
    let package = metadata.packages.iter().find(|package| package.manifest_path == manifest);
    let package = package.ok_or_else(|| no_package(&manifest, &metadata.packages))?;
    let program = program(package)?;

    let own = metadata.packages.iter().filter(|package| package.source.is_none());
    let mut folders: Vec<PathBuf> = own.filter_map(|package| Some(package.manifest_path.parent()?.to_owned())).collect();
    let work = work(job.libraries, &metadata.workspace_root);
    let base = base(&folders, &metadata.workspace_root, &work);
    folders.sort_unstable();
    let copy = work.join("tree");
    // A workspace that the configuration's folder belongs to has nothing to do with the copy.
    write_changed(&work.join("Cargo.toml"), b"[workspace]\nexclude = [\"tree\", \"libraries\"]\n")?;
    tree::mirror(&base, &folders, &copy)?;
    let copied = copy.join(job.source.strip_prefix(&base).unwrap_or(Path::new("")));

    let made = work.join("target");
    let mut build = cargo(&copied);
    build.args(["build", "--release", "--bin", program]).args(prepare(&copied, &work.join("libraries"))?);
    // What says how to link is an argument, which these would hide.
    build.env("CARGO_TARGET_DIR", &made).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let status = CARGO.run(job, &mut build)?;
    if !status.success() {
        let advice = if has_target(&copied) {
            format!(
                "\nThe program is built with Sledge's tokio and tonic. Whether it builds without says `cargo build` in {}",
                job.source.display()
            )
        } else {
            format!("\nThe toolchain has no standard library for {TARGET}; run `rustup target add {TARGET}`")
        };
        return Err(ToolchainError::Failed { program: CARGO.program, status, advice }.into());
    }
    let module = made.join(TARGET).join("release").join(format!("{program}.wasm"));
    std::fs::copy(module, &job.module).map(drop).map_err(BuildError::write(&job.module))
}

/// Whether the toolchain of a folder can build for it, as far as it says so.
fn has_target(folder: &Path) -> bool {
    let asked = Command::new("rustc").args(["--print=target-libdir", "--target", TARGET]).current_dir(folder).output();
    let library = asked.ok().filter(|asked| asked.status.success()).and_then(|asked| String::from_utf8(asked.stdout).ok());
    library.is_none_or(|library| Path::new(library.trim()).is_dir())
}

/// A cargo that works in a folder.
fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(CARGO.program);
    cargo.current_dir(folder).env("PWD", folder);
    cargo
}

/// The folder of what is made of a workspace, or of a package that is in none: its name says whose it is, for people and for cargo.
fn work(libraries: &Path, root: &Path) -> PathBuf {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    libraries.join("rust").join(format!("{name}-{}", &hash[..16]))
}

/// The program of a package: the one that `cargo run` runs.
fn program(package: &Package) -> Result<&str, ToolchainError> {
    let is_program = |target: &&Target| target.kind.iter().any(|kind| kind == "bin");
    let programs: Vec<&str> = package.targets.iter().filter(is_program).map(|target| &*target.name).collect();
    match (&programs[..], &package.default_run) {
        (_, Some(name)) => Ok(name),
        ([one], None) => Ok(one),
        ([], None) => Err(strange(format!("the package {} has no program (src/main.rs)", package.name))),
        (many, None) => {
            let list = many.join(", ");
            Err(strange(format!("the package {} has several programs ({list}); name one in `default-run`", package.name)))
        }
    }
}

/// A workspace without a package of its own, and those that it has.
fn no_package(manifest: &Path, packages: &[Package]) -> ToolchainError {
    let own = packages.iter().filter(|package| package.source.is_none() && program(package).is_ok());
    let folders: Vec<String> = own.filter_map(|package| Some(package.manifest_path.parent()?.display().to_string())).collect();
    strange(format!("{} is no package; `source` is the folder of one: {}", manifest.display(), folders.join(", ")))
}

/// The folder that is copied: the repository or the configuration's folder, whichever is the larger, if the packages are in there; or else what they
/// have in common, with what is beside that.
fn base(packages: &[PathBuf], root: &Path, work: &Path) -> PathBuf {
    let all = || packages.iter().map(PathBuf::as_path).chain([root]);
    let common = root.ancestors().find(|folder| all().all(|package| package.starts_with(folder))).unwrap_or(root);
    let repository = common.ancestors().find(|folder| folder.join(".git").exists());
    let configuration = work.ancestors().find(|folder| folder.ends_with(BUILT_FOLDER)).and_then(Path::parent);
    let larger = [repository, configuration].into_iter().flatten().filter(|folder| common.starts_with(folder));
    larger.min_by_key(|folder| folder.components().count()).or(common.parent()).unwrap_or(common).to_owned()
}

/// Writes what takes the place of tokio and tonic, of the versions that the package locks; what cargo is to be told.
fn prepare(package: &Path, libraries: &Path) -> Result<Vec<String>, BuildError> {
    // They are written anew each time, and cargo goes by times.
    let new = libraries.with_extension("new");
    let Prepared { mut replaced } = sledge_grpc_prepare::prepare(package, &new).map_err(ToolchainError::Prepare)?;
    if replaced.iter().all(|replaced| replaced.name != TONIC) {
        return Err(ToolchainError::NotUsed { manifest: package.join("Cargo.toml"), library: TONIC }.into());
    }
    tree::mirror(&new, std::slice::from_ref(&new), libraries)?;
    for Replaced { folder, .. } in &mut replaced {
        *folder = libraries.join(folder.strip_prefix(&new).unwrap_or(folder));
    }
    Ok(Prepared { replaced }.cargo_arguments())
}

fn strange(what: String) -> ToolchainError {
    ToolchainError::Strange { program: CARGO.program, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_package() {
        let package = |programs: &[&str], default_run: Option<&str>| Package {
            name: "p".to_owned(),
            source: None,
            manifest_path: PathBuf::new(),
            targets: programs.iter().map(|name| Target { name: (*name).to_owned(), kind: vec!["bin".to_owned()] }).collect(),
            default_run: default_run.map(str::to_owned),
        };
        assert_eq!(program(&package(&["a"], None)).unwrap(), "a");
        assert_eq!(program(&package(&["a", "b"], Some("b"))).unwrap(), "b");
        let error = |programs| program(&package(programs, None)).unwrap_err().to_string();
        assert_eq!(
            error(&["a", "b"]),
            "the build failed: cargo: the package p has several programs (a, b); name one in `default-run`"
        );
        assert_eq!(error(&[]), "the build failed: cargo: the package p has no program (src/main.rs)");
    }

    #[test]
    fn a_workspace_has_a_folder_of_its_own() {
        let of = |root: &str| work(Path::new("x/.sledge/lib"), Path::new(root));
        assert_eq!(of("/a/shop"), of("/a/shop"));
        assert_ne!(of("/a/shop"), of("/b/shop"));
        assert!(of("/a/shop").to_string_lossy().starts_with("x/.sledge/lib/rust/shop-"));
    }

    #[test]
    fn the_folder_that_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("x/.git")).unwrap();
        let based = |packages: &[&str], root: &str, work: &str| {
            base(&packages.iter().map(|path| at(path)).collect::<Vec<_>>(), &at(root), &at(work))
        };
        assert_eq!(based(&["x/y/cart"], "x/y/cart", "x/y/.sledge/shop/work/cart"), at("x"));
        assert_eq!(based(&["z/cart"], "z/cart", "z/.sledge/shop/work/cart"), at("z"));
        assert_eq!(based(&["z/a/cart", "z/a/common"], "z/a/cart", "w/.sledge/shop/work/cart"), at("z"));
    }
}
