//! `awsm compile`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use awsm::frontend::{self, Language, ProducerOptions};
use awsm::isolated::{self, Limits};
use awsm::{Arch, CompileOptions, Cpu, Emit, OptLevel, PartCache, Program};
use awsm_abi::importable;
use awsm_abi::types::Bounds;
use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use super::output;
use super::progress::Report;

/// Also when its file was moved or replaced since it began.
pub(super) const THIS_PROGRAM: &str = "/proc/self/exe";

/// Compile INPUT to a native shared object
///
/// INPUT is a .wasm or .wat module, a .c or .cpp file (through clang, wasi-libc and libc++), a .rs file, or the folder of a cargo package (through
/// a Rust toolchain with the target wasm32-wasip1).
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Module, source file or cargo package
    input: PathBuf,
    /// Output file; `-` for standard output [default: in the current folder, INPUT's name with the extension of the output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How memory accesses are checked: guard (guard pages), segment (guard pages, memory in %gs; x86-64), software (comparisons), none
    #[arg(long, value_name = "MODE", default_value = "guard", value_parser = parse_bounds)]
    bounds: Bounds,
    /// Machine to compile for [default: this one]
    #[arg(long, value_name = "TRIPLE", value_parser = parse_target)]
    target: Option<Arch>,
    /// Processor to compile for: native, baseline, or a name (x86-64-v3, znver4, cortex-a76, ...) [default: native; for another machine baseline]
    #[arg(long, value_name = "CPU", value_parser = parse_cpu)]
    cpu: Option<Cpu>,
    /// Optimisation level, 0 to 3
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// Threads for code generation of large modules; the output does not depend on N [default: number of processors]
    #[arg(short, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Memory limit of code generation, in MB
    #[arg(long, value_name = "MB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    memory_max_mb: u64,
    /// Limit on processor time of code generation, in seconds; the limit on elapsed time is 8 times as long
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    time_max_s: u64,
    /// Folder in which code of large modules is kept, so that the same code beside other data is not compiled again [default: awsm/parts in the user's
    /// cache folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Size of that folder, in MB; what was not used for longest is removed
    #[arg(long, value_name = "MB", default_value_t = PartCache::BYTES_MAX_DEFAULT >> 20, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    cache_max_mb: u64,
    /// Neither use nor keep code of large modules
    #[arg(long, env = "AWSM_NO_CACHE", hide_env_values = true, value_parser = FalseyValueParser::new())]
    no_cache: bool,
    /// Keep source lines of a module with debug information, for `awsm explain`, debuggers and profilers
    #[arg(long)]
    debug: bool,
    /// Kind of output
    #[arg(long, value_enum, default_value_t = Kind::So)]
    emit: Kind,
    /// Accept exceptions in the legacy form of older compilers (try, catch, delegate, rethrow)
    #[arg(long)]
    legacy_exceptions: bool,
    /// Let exceptions of other modules pass through a module without tags, so it can be linked with modules that throw
    #[arg(long)]
    foreign_exceptions: bool,
    /// Compile what imports more than `sledge` offers: a component, in which a call of such a function traps, or a module for
    /// programs that link modules themselves
    #[arg(long)]
    allow_unknown_imports: bool,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
    /// Keep in this file how far it has come: phase, functions done and to do
    #[arg(long, value_name = "FILE", hide = true)]
    progress_file: Option<PathBuf>,
    /// Arguments for clang, rustc or cargo, after `--`
    #[arg(last = true, value_name = "ARGUMENT")]
    producer: Vec<String>,
}

impl Arguments {
    /// The cache of parts, if there is to be one.
    fn cache(&self) -> Option<PartCache> {
        let folder = if self.no_cache { None } else { self.cache.clone().or_else(awsm::cache_folder_default) };
        folder.map(|folder| PartCache::new(folder, self.cache_max_mb << 20))
    }
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The WebAssembly module
    Wasm,
    /// LLVM's intermediate representation after optimisation
    LlvmIr,
    /// Assembly
    Asm,
    /// The object file before linking
    Obj,
    /// The shared object
    So,
}

impl Kind {
    const fn extension(self) -> &'static str {
        match self {
            Kind::Wasm => "wasm",
            Kind::LlvmIr => "ll",
            Kind::Asm => "s",
            Kind::Obj => "o",
            Kind::So => "so",
        }
    }

    /// What the library has to produce; none for what exists before it is called.
    const fn emit(self) -> Option<Emit> {
        match self {
            Kind::Wasm => None,
            Kind::LlvmIr => Some(Emit::LlvmIr),
            Kind::Asm => Some(Emit::Asm),
            Kind::Obj => Some(Emit::Obj),
            Kind::So => Some(Emit::So),
        }
    }
}

fn parse_bounds(name: &str) -> Result<Bounds, String> {
    match name {
        "mpx" => Err("MPX was withdrawn by Intel and its support removed in Linux 5.6; use guard or software".to_owned()),
        _ => [Bounds::Guard, Bounds::Segment, Bounds::Software, Bounds::None]
            .into_iter()
            .find(|bounds| bounds.name() == name)
            .ok_or_else(|| "expected guard, segment, software or none".to_owned()),
    }
}

fn parse_target(triple: &str) -> Result<Arch, String> {
    let known = Arch::ALL.into_iter().find(|arch| arch.triple() == triple);
    known.ok_or_else(|| format!("expected {}", Arch::ALL.map(Arch::triple).join(" or ")))
}

/// Any name that some machine's processors have; whether it is this one's is known when all options are.
fn parse_cpu(name: &str) -> Result<Cpu, String> {
    match name {
        "native" => Ok(Cpu::Native),
        "baseline" => Ok(Cpu::Baseline),
        _ if Arch::ALL.into_iter().any(|arch| awsm::cpu_names(arch).contains(&name)) => Ok(Cpu::Named(name.to_owned())),
        _ => {
            let names = Arch::ALL.map(|arch| format!("for {}: {}", arch.name(), awsm::cpu_names(arch).join(", ")));
            Err(format!("expected native, baseline, or a name; {}", names.join("; ")))
        }
    }
}

/// Compiles and writes.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let input = &arguments.input;
    let language = Language::of(input)?;
    if !arguments.producer.is_empty() && !language.has_producer() {
        bail!("{}: arguments after `--` are for clang, rustc or cargo; this input needs none of them", input.display());
    }
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => default_output(input, arguments.emit)?,
    };
    // Further sources are among the arguments for the producer.
    output::check(&output, std::iter::once(input.as_path()).chain(arguments.producer.iter().map(Path::new)))?;
    let arch = arguments.target.unwrap_or(Arch::HOST);
    let options = CompileOptions {
        bounds: arguments.bounds,
        arch,
        cpu: arguments.cpu.clone().unwrap_or(if arch == Arch::HOST { Cpu::Native } else { Cpu::Baseline }),
        opt_level: OptLevel::from_number(arguments.opt_level).context("optimisation levels go from 0 to 3")?,
        emit: arguments.emit.emit().unwrap_or_default(),
        jobs: arguments.jobs,
        legacy_exceptions: arguments.legacy_exceptions,
        foreign_exceptions: arguments.foreign_exceptions,
        unknown_imports: arguments.allow_unknown_imports,
        debug: arguments.debug,
        given_up: false,
    };
    awsm::check(&options)?;
    let report = Report::new(arguments.quiet, arguments.progress_file.clone());
    if language.has_producer() {
        report.producing(input);
    }
    let producer = ProducerOptions { opt_level: arguments.opt_level, arguments: arguments.producer.clone() };
    let wasm = frontend::to_wasm(input, &producer)?;
    let bytes = match arguments.emit {
        Kind::Wasm => wasm,
        kind => {
            check_imports(&wasm, kind, arguments.allow_unknown_imports).with_context(|| input.display().to_string())?;
            let limits =
                Limits { memory_bytes_max: arguments.memory_max_mb << 20, time_max: Duration::from_secs(arguments.time_max_s) };
            let cache = arguments.cache();
            let program = Program::of(&wasm);
            isolated::compile_cached(Path::new(THIS_PROGRAM), &program, &options, &limits, cache.as_ref(), &report)
                .with_context(|| input.display().to_string())?
        }
    };
    output::write(&output, &bytes)?;
    report.done(&output, bytes.len());
    Ok(())
}

/// Refuses at once what could only be refused when it is served. What only people look at may import anything.
fn check_imports(wasm: &[u8], kind: Kind, allow_unknown: bool) -> Result<()> {
    match importable::check(wasm) {
        Err(_) if allow_unknown || kind != Kind::So => Ok(()),
        Err(refused) if refused.is_for_component() => bail!("{refused}"),
        Err(refused) => bail!("{refused}\nto compile it for a program that links modules itself, give --allow-unknown-imports"),
        Ok(()) => Ok(()),
    }
}

/// `examples/fib.c` gives `fib.so` in the current folder, as compilers do.
fn default_output(input: &Path, kind: Kind) -> Result<PathBuf> {
    let full = input.canonicalize().with_context(|| input.display().to_string())?;
    let stem = if full.is_dir() { full.file_name() } else { full.file_stem() };
    let stem = stem.with_context(|| format!("{}: cannot derive the output's name; give -o FILE", input.display()))?;
    let mut name = stem.to_owned();
    name.push(".");
    name.push(kind.extension());
    Ok(PathBuf::from(name))
}
