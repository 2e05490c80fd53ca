//! The rest of the group `components`: those with an engine in them, which are the projects that `sledge new` makes for Python and JavaScript. They are compared with
//! wasmtime, and what compiling them costs is measured: the first, and another application of the same engine.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;

use super::components::{self, Asked};
use super::{Bench, compile};
use crate::checkout;
use crate::load::{self, Expected, Load};

/// The level at which components are compiled that are compared with wasmtime: the default one.
const LEVEL: &str = "3";
/// How often each server is asked before its memory is looked at.
const REQUESTS: u64 = 200;
/// The text of the template that another application has otherwise.
const GREETING: [&str; 2] = ["Hello, ", "Good day, "];

/// A language whose components have an engine in them.
#[derive(Clone, Copy, Debug)]
enum Language {
    Python,
    JavaScript,
}

/// What compiling the project took at the default level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Processor time with an empty cache.
    first: Duration,
    /// The same of another application.
    again: Duration,
    peak_kb: u64,
}

impl Language {
    /// What `sledge new` calls it.
    const fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::JavaScript => "js",
        }
    }

    /// The file of the template that has the words of the reply.
    const fn greeting(self) -> &'static str {
        match self {
            Language::Python => "greeting.py",
            Language::JavaScript => "greeting.js",
        }
    }
}

/// Throughput beside wasmtime.
pub(super) fn python_wasmtime_ratio(bench: &mut Bench) -> Result<f64> {
    wasmtime_ratio(bench, Language::Python)
}

/// The same of JavaScript.
pub(super) fn js_wasmtime_ratio(bench: &mut Bench) -> Result<f64> {
    wasmtime_ratio(bench, Language::JavaScript)
}

/// Processor time of the first compilation.
pub(super) fn python_compile_cpu_s(bench: &mut Bench) -> Result<f64> {
    Ok(costs(bench, Language::Python)?.first.as_secs_f64())
}

/// The same of JavaScript.
pub(super) fn js_compile_cpu_s(bench: &mut Bench) -> Result<f64> {
    Ok(costs(bench, Language::JavaScript)?.first.as_secs_f64())
}

/// Processor time of compiling another application.
pub(super) fn python_again_cpu_s(bench: &mut Bench) -> Result<f64> {
    Ok(costs(bench, Language::Python)?.again.as_secs_f64())
}

/// The same of JavaScript.
pub(super) fn js_again_cpu_s(bench: &mut Bench) -> Result<f64> {
    Ok(costs(bench, Language::JavaScript)?.again.as_secs_f64())
}

/// Memory of the larger of both compilations.
pub(super) fn compile_peak_gb(bench: &mut Bench) -> Result<f64> {
    let (python, js) = (costs(bench, Language::Python)?, costs(bench, Language::JavaScript)?);
    Ok(python.peak_kb.max(js.peak_kb) as f64 * 1024.0 / 1e9)
}

fn wasmtime_ratio(bench: &Bench, language: Language) -> Result<f64> {
    let component = project(bench, language)?;
    let asked = asked();
    // First replies and memory beside each other are for reading.
    let start = Instant::now();
    let sledge = components::sledge(bench, &component, LEVEL)?;
    let compiled = start.elapsed();
    let load =
        || [Load { expected: asked.expected.clone(), requests_max: REQUESTS, ..Load::new(1, "/ping", asked.body.to_vec(), 0) }];
    let first = |address| -> Result<Duration> {
        let start = Instant::now();
        load::run(address, &[Load { requests_max: 1, ..load()[0].clone() }], Duration::ZERO, Duration::from_secs(60))?;
        Ok(start.elapsed())
    };
    let one = first(sledge.address())?;
    load::run(sledge.address(), &load(), Duration::ZERO, Duration::from_secs(60))?;
    let memory = sledge.resident_bytes()?;
    drop(sledge);
    let start = Instant::now();
    let peer = components::wasmtime(&component)?;
    let loaded = start.elapsed();
    let peer_one = first(peer.address())?;
    load::run(peer.address(), &load(), Duration::ZERO, Duration::from_secs(60))?;
    let peer_memory = peer.resident_bytes()?;
    drop(peer);
    eprintln!(
        "{}: compiled and served after {compiled:.1?}, first reply {one:.1?}, {} MB; wasmtime {loaded:.1?}, {peer_one:.1?}, {} MB",
        language.name(),
        memory / 1_000_000,
        peer_memory / 1_000_000
    );
    components::beside_wasmtime(bench, &component, LEVEL, &asked)
}

fn asked() -> Asked {
    let reply = b"Hello, Ada!\nYou sent POST to /ping.\n";
    Asked { body: b"Ada", expected: Expected::Body(Bytes::from_static(reply)) }
}

/// The component of a new project, built by the command in its `sledge.toml`.
fn project(bench: &Bench, language: Language) -> Result<PathBuf> {
    let name = format!("hello-{}", language.name());
    let folder = bench.folder.path().join(&name);
    if !folder.exists() {
        let mut new = Command::new(checkout::program("sledge")?);
        components::run(new.args(["new", &name, "--lang", language.name()]).current_dir(bench.folder.path()))?;
    }
    let config = fs::read_to_string(folder.join("sledge.toml")).context("the project's sledge.toml")?;
    let config: toml::Table = config.parse().context("the project's sledge.toml")?;
    let function = config.get("functions").and_then(|functions| functions.get(0)).context("the project's function")?;
    let build = function.get("build").and_then(toml::Value::as_array).context("the project's `build`")?;
    let words = build.iter().map(|word| word.as_str().context("the project's `build`")).collect::<Result<Vec<_>>>()?;
    let (program, arguments) = words.split_first().context("the project's `build` is empty")?;
    components::run(Command::new(program).args(arguments).current_dir(&folder))?;
    let path = function.get("path").and_then(toml::Value::as_str).context("the project's `path`")?;
    Ok(folder.join(path))
}

/// What compiling costs; measured once.
fn costs(bench: &mut Bench, language: Language) -> Result<Costs> {
    let known = bench.engines[language as usize];
    if let Some(costs) = known {
        return Ok(costs);
    }
    let (component, cache) = (project(bench, language)?, bench.folder.path().join(format!("cache-{}", language.name())));
    let compile = |component: &PathBuf| -> Result<(Duration, u64)> {
        let mut awsm = Command::new(checkout::program("awsm")?);
        awsm.args(["compile", "--quiet"]).arg(component).arg("-o").arg(component.with_extension("so"));
        awsm.env("XDG_CACHE_HOME", &cache).stdin(Stdio::null());
        let before = children_time()?;
        let peak_kb = compile::peak_kb(awsm)?;
        Ok((children_time()? - before, peak_kb))
    };
    let (first, peak_kb) = compile(&component)?;
    let file = component.with_file_name(language.greeting());
    let text = fs::read_to_string(&file).context("the project's words")?;
    let [old, new] = GREETING;
    ensure!(text.contains(old), "{} does not say {old:?}", file.display());
    fs::write(&file, text.replace(old, new)).context("the project's words")?;
    let again = compile(&project(bench, language)?)?.0;
    fs::write(&file, text).context("the project's words")?;
    let costs = Costs { first, again, peak_kb };
    bench.engines[language as usize] = Some(costs);
    Ok(costs)
}

/// Processor time of all children that have ended, and of theirs (proc(5), `cutime` and `cstime`).
fn children_time() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(13).take(2).map(|field| field.parse::<u64>().context("/proc/self/stat"));
    let ticks = ticks.sum::<Result<u64>>()?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}
