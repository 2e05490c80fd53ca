//! A difference that was found: said, its module made smaller, written down.

use crate::check::{self, Difference, Report};
use crate::features::Features;
use crate::generate;
use crate::wit::Kind;
use anyhow::{Context, Result};
use sledge_tests::process;
use sledge_tests::spec::Mode;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// For making one module smaller.
const SHRINK_TIME_MAX: Duration = Duration::from_secs(90);

/// For one attempt at it.
const CHECK_TIME_MAX: Duration = Duration::from_secs(40);

/// Attempts without success after which it is small enough.
const SHRINK_ATTEMPTS: u32 = 400;

/// Exit code of a check that finds a difference.
pub(crate) const DIFFERS: u8 = 3;

/// Where modules are written.
fn folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    // target/release/fuzz
    let target = program.parent().and_then(Path::parent).context("the program lies in no target folder")?;
    let folder = target.join("fuzz");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Describes a difference, with what repeats it.
pub(crate) fn describe(kind: Kind, seed: u64, difference: &Difference) -> String {
    let Difference { mode, at, expected, got } = difference;
    format!(
        "seed {seed}, {mode}, {at}\n  expected: {expected}\n  got:      {got}\n  again:    \
         cargo run --release -p sledge-tests --bin fuzz -- --kind {} --seed {seed} --mode {mode}",
        kind.name()
    )
}

/// Writes a failing module, made smaller if `shrink`, or a failing component; its path.
pub(crate) fn write(kind: Kind, seed: u64, difference: &Difference, features: &Features, shrink: bool) -> Result<PathBuf> {
    let stem = folder()?.join(format!("{}-{seed}-{}", kind.name(), difference.mode));
    let path = stem.with_extension("wat");
    let text = match kind {
        Kind::Modules => {
            let wasm = generate::module(seed, features)?;
            wasmprinter::print_bytes(if shrink { smaller(&wasm, seed, difference, &stem)? } else { wasm })?
        }
        _ => kind.text(seed),
    };
    std::fs::write(&path, format!(";; {}\n{text}", describe(kind, seed, difference).replace('\n', "\n;; ")))?;
    Ok(path)
}

fn smaller(wasm: &[u8], seed: u64, difference: &Difference, stem: &Path) -> Result<Vec<u8>> {
    let deadline = Instant::now() + SHRINK_TIME_MAX;
    let candidate = stem.with_extension("candidate.wasm");
    let differs = |wasm: &[u8]| -> Result<bool> {
        // Out of time: nothing smaller counts any more.
        if Instant::now() > deadline {
            return Ok(false);
        }
        std::fs::write(&candidate, wasm)?;
        check_elsewhere(&candidate, seed, &difference.mode)
    };
    let result = if differs(wasm)? {
        let shrunk = wasm_shrink::WasmShrink::default().attempts(SHRINK_ATTEMPTS).run(wasm.to_vec(), differs);
        shrunk.map_or_else(|_| wasm.to_vec(), |info| info.output)
    } else {
        wasm.to_vec()
    };
    std::fs::remove_file(&candidate)?;
    Ok(result)
}

/// Whether a module in a file still differs, asked in another process: it may crash.
fn check_elsewhere(file: &Path, seed: u64, mode: &str) -> Result<bool> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--check").arg(file).args(["--seed", &seed.to_string(), "--mode", mode]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    match process::wait(&mut child, CHECK_TIME_MAX) {
        Some(status) => Ok(status.signal().is_some() || status.code() == Some(i32::from(DIFFERS))),
        None => {
            process::kill(&mut child);
            Ok(false)
        }
    }
}

/// Runs one module in the given modes, in this process, and says what became of it. Whether it differs.
pub(crate) fn repeat(wasm: &[u8], seed: u64, modes: &[Mode]) -> bool {
    said(&check::module(wasm, seed, modes, &mut |mode| println!("{mode}")), Kind::Modules)
}

/// Says what became of a seed. Whether it differs.
pub(crate) fn said(report: &Report, kind: Kind) -> bool {
    if let Some(why) = &report.unusable {
        println!("unusable: {why}");
    }
    for difference in &report.differences {
        println!("{}", describe(kind, report.seed, difference));
    }
    let runs: u64 = report.runs.values().sum();
    println!(
        "{runs} runs, {} without trap, {} inconclusive, traps {:?}, {} differences",
        report.returned,
        report.inconclusive,
        report.traps,
        report.differences.len()
    );
    !report.differences.is_empty() || (kind != Kind::Modules && report.unusable.is_some())
}
