//! Of the group `operators`: what it costs to compile an interpreter, whose functions are larger than those of other programs.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::checkout;
use crate::measure::Bench;

/// Ruby as a module of 16.7 MB with 17,825 functions.
const PACKAGE: &str = "@ruby/3.4-wasm-wasi@2.10.1";

/// Runs its arguments, and writes their processor time, that of all children included, as the last line of standard error.
const TIMED: &str = "TIMEFORMAT='%U %S'; time \"$@\"";

/// Processor time of `awsm compile` at `-O 3`, in seconds. The module is made for a JavaScript host, whose imports Sledge does not offer.
pub(in crate::measure) fn compile_cpu_s(bench: &mut Bench) -> Result<f64> {
    let folder = bench.folder.path().join("ruby");
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg(PACKAGE)
        .stdout(Stdio::null());
    ensure!(npm.status().context("cannot run npm, which fetches the module")?.success(), "npm install {PACKAGE} failed");
    let module = folder.join("node_modules/@ruby/3.4-wasm-wasi/dist/ruby.wasm");
    let mut awsm = Command::new("bash");
    awsm.args(["-c", TIMED, "bash"]).arg(checkout::program("awsm")?);
    awsm.args(["compile", "--quiet", "--no-cache", "--allow-unknown-imports", "-j", "1"])
        .arg(&module)
        .arg("-o")
        .arg(folder.join("ruby.so"));
    let done = awsm.stdin(Stdio::null()).output().context("cannot run bash")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "awsm compile failed ({}): {said}", done.status);
    let (times, warnings) = said.trim_end().rsplit_once('\n').map_or((said.trim_end(), ""), |(before, last)| (last, before));
    eprint!("{warnings}");
    let seconds =
        times.split(' ').map(str::parse::<f64>).collect::<Result<Vec<_>, _>>().with_context(|| said.clone().into_owned())?;
    Ok(seconds.iter().sum())
}
