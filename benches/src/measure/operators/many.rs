//! The group `operators`, many functions: what a request costs the server in processor time, and what a function costs its start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::load::{self, Load};
use crate::measure::Bench;
use crate::server::Server;
use crate::{checkout, compiler};

/// Functions that are asked in turn.
const ROTATION: usize = 1_000;
/// Requests of which the mean counts.
const REQUESTS: u64 = 20_000;
const CLIENTS: usize = 8;
const TURNS: usize = 5;
const TIME_MAX: Duration = Duration::from_secs(60);

/// What requests cost the server, in microseconds of processor time each, turn by turn.
#[derive(Debug, Clone, Default)]
pub(in crate::measure) struct Many {
    /// Of one function, before any other was asked.
    alone: Vec<f64>,
    /// Of a thousand in rotation.
    rotation: Vec<f64>,
    /// Of the first one again, after those.
    after: Vec<f64>,
}

/// In each turn a new server is asked for one function, for all, and for the first one again.
pub(in crate::measure) fn measured(folder: &Path) -> Result<Many> {
    let folder = folder.join("many");
    fs::create_dir_all(&folder)?;
    let artifact = folder.join("ping.so");
    compiler::compile(&ping(), &artifact)?;
    let config = config((0..ROTATION).map(|_| artifact.clone()));
    let mut many = Many::default();
    for turn in 0..TURNS {
        let server = Server::start_config(&folder, &config)?;
        let names: Vec<String> = (0..ROTATION).map(|number| format!("/f{number}")).collect();
        let each = |paths: &[String], requests: u64| -> Result<f64> {
            let load =
                Load { requests_max: requests, more_paths: paths[1..].to_vec(), ..Load::new(CLIENTS, &paths[0], Vec::new(), 1) };
            let before = server.processor_time()?;
            let answered = load::run(server.address(), &[load], Duration::ZERO, TIME_MAX)?[0].latencies.len();
            ensure!(answered == requests, "{answered} of {requests} requests were answered");
            Ok((server.processor_time()? - before).as_secs_f64() * 1e6 / requests as f64)
        };
        each(&names[..1], REQUESTS / 4)?;
        many.alone.push(each(&names[..1], REQUESTS)?);
        // What is new is learned from.
        each(&names, 3 * ROTATION as u64)?;
        many.rotation.push(each(&names, REQUESTS)?);
        each(&names[..1], REQUESTS / 100)?;
        many.after.push(each(&names[..1], REQUESTS)?);
        let of = |times: &[f64]| times.last().copied().unwrap_or(f64::NAN);
        let (alone, rotation, after) = (of(&many.alone), of(&many.rotation), of(&many.after));
        eprintln!("turn {turn}: {alone:.2} us alone, {rotation:.2} us in rotation, {after:.2} us afterwards");
        server.stop()?;
    }
    Ok(many)
}

/// A thousand functions in rotation, to one alone.
pub(in crate::measure) fn many_functions_cpu_ratio(bench: &mut Bench) -> Result<f64> {
    let many = bench.many()?;
    Ok(ratio(&many.rotation, &many.alone))
}

/// One alone after those, to the same before.
pub(in crate::measure) fn hot_after_scan_cpu_ratio(bench: &mut Bench) -> Result<f64> {
    let many = bench.many()?;
    Ok(ratio(&many.after, &many.alone))
}

/// The median of the turns' ratios.
fn ratio(over: &[f64], under: &[f64]) -> f64 {
    let mut ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Functions with which a server starts.
const STARTED: [usize; 2] = [500, 4_000];

/// What starting costs, in microseconds of processor time a function, with few and with many.
#[derive(Debug, Clone, Copy)]
pub(in crate::measure) struct Starts([f64; 2]);

/// Different modules, all in the cache of artifacts, on disk and in memory.
pub(in crate::measure) fn starts(folder: &Path) -> Result<Starts> {
    let folder = folder.join("starts");
    let programs = folder.join("bin");
    fs::create_dir_all(&programs)?;
    let artifact = folder.join("ping.so");
    compiler::compile_with(&ping(), &artifact, &["--cpu", "native"])?;
    // A compiler that has the artifact already: thousands of modules are in the cache after seconds instead of minutes.
    let sledge = programs.join("sledge");
    fs::copy(checkout::program("sledge")?, &sledge).context("a copy of sledge")?;
    let script = format!("#!/bin/sh\nfor output; do :; done\nexec cp '{}' \"$output\"\n", artifact.display());
    write_program(&programs.join("awsm"), &script)?;
    let modules = modules(&folder, STARTED[1])?;
    let cache = toml::Value::String(folder.join("cache").display().to_string());
    let time = |functions: usize| -> Result<Duration> {
        let text = format!("cache_dir = {cache}\n{}", config(modules[..functions].iter().cloned()));
        let server = Server::start_by(&sledge, &folder, &text)?;
        let time = server.processor_time()?;
        server.stop()?;
        Ok(time)
    };
    // Fills the cache.
    time(STARTED[1])?;
    let least = |functions: usize| -> Result<Duration> {
        let times = (0..TURNS).map(|_| time(functions)).collect::<Result<Vec<_>>>()?;
        times.into_iter().min().context("some turns")
    };
    let base = least(1)?;
    let mut each = [f64::NAN; 2];
    for (each, functions) in each.iter_mut().zip(STARTED) {
        *each = least(functions)?.saturating_sub(base).as_secs_f64() * 1e6 / (functions - 1) as f64;
        eprintln!("{functions} functions: {each:.1} us each");
    }
    Ok(Starts(each))
}

/// Of many functions.
pub(in crate::measure) fn start_us_per_function(bench: &mut Bench) -> Result<f64> {
    Ok(bench.starts()?.0[1])
}

/// Of many functions, to few.
pub(in crate::measure) fn start_growth_ratio(bench: &mut Bench) -> Result<f64> {
    let Starts([few, many]) = bench.starts()?;
    Ok(many / few)
}

fn ping() -> PathBuf {
    checkout::root().join("benches/functions/ping.wat")
}

/// Modules that differ: in a section that means nothing.
fn modules(folder: &Path, count: usize) -> Result<Vec<PathBuf>> {
    let module = wat::parse_file(ping())?;
    let path = |number: usize| folder.join(format!("{number}.wasm"));
    for number in 0..count {
        let number_bytes = (number as u32).to_le_bytes();
        // Section 0, of six bytes: a name of one, and the number.
        let bytes = [&module[..], &[0, 6, 1, b'n'], &number_bytes].concat();
        fs::write(path(number), bytes).with_context(|| format!("cannot write {}", path(number).display()))?;
    }
    Ok((0..count).map(path).collect())
}

fn write_program(path: &Path, script: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, script).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context("an executable script")
}

/// A server of one worker with a function for each file: f0, f1, and so on.
fn config(files: impl Iterator<Item = PathBuf>) -> String {
    let mut config = "listen = \"127.0.0.1:0\"\nadmin = \"none\"\nworkers = 1\n".to_owned();
    for (number, file) in files.enumerate() {
        let path = toml::Value::String(file.display().to_string());
        config.push_str(&format!("[[functions]]\nname = \"f{number}\"\npath = {path}\n"));
    }
    config
}
