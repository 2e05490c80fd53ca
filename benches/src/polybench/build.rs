//! From kernels to programs, kept in `target/polybench` and made again only when their sources or tools have changed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::machine;
use super::plan::{Plan, sources};
use super::variant::{Bounds, Cpu, Source, Variant};
use crate::{checkout, steps};

const CLANG: &str = "clang-22";
/// What lets `sledge run` take code that nothing isolates.
const FORCE: &str = "--allow-unchecked";

/// Everything that a plan needs, ready to run.
#[derive(Debug)]
pub struct Programs {
    /// The command of each, without arguments.
    commands: HashMap<(String, Variant), Vec<OsString>>,
    /// Which tools, kernels and machine: times may be compared only if this is the same.
    pub conditions: String,
}

impl Programs {
    /// The command that runs `kernel`.
    ///
    /// # Errors
    ///
    /// If the plan did not have it.
    pub fn command(&self, kernel: &str, variant: Variant) -> Result<Command> {
        let words = self.commands.get(&(kernel.to_owned(), variant));
        let words = words.with_context(|| format!("{kernel} as {variant} is not built"))?;
        let (program, arguments) = words.split_first().context("a command has at least one word")?;
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }
}

/// Compiles what is not yet compiled.
///
/// # Errors
///
/// If a tool is missing or fails.
pub fn programs(plan: &Plan) -> Result<Programs> {
    let folder = checkout::output_folder("polybench")?.join(&plan.dataset);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let tools = Tools::find(&folder, plan)?;
    let bar = steps::bar("compiling", (plan.kernels.len() * plan.variants.len()) as u64);
    let mut commands = HashMap::new();
    for kernel in &plan.kernels {
        if !steps::are_visible() {
            println!("compiling {kernel}");
        }
        for &variant in &plan.variants {
            bar.set_message(format!("compiling {kernel} {variant}"));
            commands.insert((kernel.clone(), variant), tools.build(kernel, variant)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let conditions = format!("{}; {}; {}", plan.dataset, machine::description(), tools.stamp);
    Ok(Programs { commands, conditions })
}

struct Tools<'a> {
    folder: &'a Path,
    dataset: &'a str,
    /// Copies, so that a build meanwhile does not change what is measured.
    awsm: PathBuf,
    sledge: PathBuf,
    /// If the plan has it.
    wasmtime: Option<PathBuf>,
    /// Versions and digests of all that makes a program.
    stamp: String,
}

impl<'a> Tools<'a> {
    fn find(folder: &'a Path, plan: &'a Plan) -> Result<Tools<'a>> {
        let clang = machine::said(Command::new(CLANG).arg("--version"))
            .with_context(|| format!("{CLANG} is needed for native code and for wasm; make setup"))?;
        let (awsm, awsm_digest) = copy(&checkout::program("awsm")?, folder)?;
        let (sledge, sledge_digest) = copy(&checkout::program("sledge")?, folder)?;
        let wanted = plan.variants.iter().any(|variant| matches!(variant, Variant::Wasmtime(_)));
        let wasmtime = wanted.then(|| copy(&other_runtime()?, folder)).transpose()?;
        let mut kernels = DefaultHasher::new();
        for source in plan.kernels.iter().map(|kernel| source(kernel)).chain([sources().join("../polybench.h")]) {
            read(&source)?.hash(&mut kernels);
        }
        let unchecked = plan.variants.iter().any(|v| matches!(v, Variant::Function { bounds: Bounds::None, .. }));
        if unchecked {
            let help = Command::new(&sledge).args(["run", "--help"]).output().context("cannot run sledge")?;
            ensure!(
                String::from_utf8_lossy(&help.stdout).contains(FORCE),
                "mode none cannot be measured: sledge run has no option {FORCE}; leave none out of the modes"
            );
        }
        let (wasmtime, version) = wasmtime.unzip();
        let version = version.map_or_else(String::new, |digest| format!("wasmtime {digest}, "));
        let stamp = format!("{clang}; awsm {awsm_digest}, sledge {sledge_digest}, {version}kernels {:016x}", kernels.finish());
        Ok(Tools { folder, dataset: &plan.dataset, awsm, sledge, wasmtime, stamp })
    }

    /// The command that runs the program.
    fn build(&self, kernel: &str, variant: Variant) -> Result<Vec<OsString>> {
        let output = self.folder.join(format!("{kernel}.{variant}"));
        let stamp_file = self.folder.join(format!("{kernel}.{variant}.stamp"));
        let mut digest = DefaultHasher::new();
        (read(&source(kernel))?, read(&sources().join("../polybench.h"))?).hash(&mut digest);
        let stamp = format!("{}; {:016x}", self.stamp_without_kernels(), digest.finish());
        let made = output.is_file() && fs::read_to_string(&stamp_file).is_ok_and(|kept| kept == stamp);
        let define = format!("-D{}_DATASET", self.dataset);
        match variant {
            Variant::Native | Variant::NativeMarch => {
                if !made {
                    let march = (variant == Variant::NativeMarch).then_some("-march=native");
                    let mut clang = Command::new(CLANG);
                    clang.args(["-O3", &define]).args(march).arg("-o").arg(&output).arg(source(kernel)).arg("-lm");
                    run(&mut clang)?;
                }
            }
            Variant::Function { source: from, bounds, cpu } => {
                if !made {
                    self.function(kernel, from, bounds, cpu, &define, &output)?;
                }
            }
            Variant::Wasmtime(from) => {
                if !made {
                    let module = self.module(kernel, from, &define)?;
                    fs::copy(&module, &output).with_context(|| format!("cannot copy {}", module.display()))?;
                }
            }
        }
        fs::write(&stamp_file, stamp).with_context(|| format!("cannot write {}", stamp_file.display()))?;
        Ok(match variant {
            Variant::Native | Variant::NativeMarch => vec![output.into()],
            Variant::Function { bounds, .. } => {
                let mut words = vec![self.sledge.clone().into(), "run".into()];
                words.extend((bounds == Bounds::None).then(|| FORCE.into()));
                words.push(output.into());
                words
            }
            Variant::Wasmtime(_) => {
                let program = self.wasmtime.as_ref().context("the plan did not have wasmtime")?;
                vec![program.clone().into(), output.into()]
            }
        })
    }

    fn function(&self, kernel: &str, from: Source, bounds: Bounds, cpu: Cpu, define: &str, output: &Path) -> Result<()> {
        let mut awsm = Command::new(&self.awsm);
        awsm.args(["compile", "--quiet", "--bounds", bounds.name(), "--cpu", cpu.name(), "-o"]).arg(output);
        match from {
            Source::C => run(awsm.arg(source(kernel)).arg("--").arg(define)),
            Source::Foreign | Source::Simd => run(awsm.arg(self.module(kernel, from, define)?)),
        }
    }

    /// Makes WebAssembly without awsm.
    fn module(&self, kernel: &str, from: Source, define: &str) -> Result<PathBuf> {
        let module = self.folder.join(format!("{kernel}.{}.wasm", from.name()));
        let mut clang = Command::new(CLANG);
        clang
            .args(["--target=wasm32-wasi", "-Wno-deprecated", "-O3", define])
            .args((from == Source::Simd).then_some("-msimd128"));
        run(clang.arg("-o").arg(&module).arg(source(kernel)))?;
        Ok(module)
    }

    fn stamp_without_kernels(&self) -> &str {
        self.stamp.rsplit_once(", kernels ").map_or(self.stamp.as_str(), |(tools, _)| tools)
    }
}

fn source(kernel: &str) -> PathBuf {
    sources().join(format!("{kernel}.c"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The program that runs kernels in wasmtime, which is built on request only.
fn other_runtime() -> Result<PathBuf> {
    checkout::program("polybench-wasmtime").context("wasmtime is built by: make polybench WASMTIME=yes")
}

/// Copies a program to `folder`; returns where it is and a digest of it.
fn copy(program: &Path, folder: &Path) -> Result<(PathBuf, String)> {
    let mut digest = DefaultHasher::new();
    read(program)?.hash(&mut digest);
    let copied = folder.join(program.file_name().context("a program has a name")?);
    fs::copy(program, &copied).with_context(|| format!("cannot copy {} to {}", program.display(), copied.display()))?;
    Ok((copied, format!("{:016x}", digest.finish())))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(())
}
