//! The group `first-light`: the first path through the whole system is quick to try and small.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use hyper::StatusCode;

use super::Bench;
use crate::checkout;
use crate::client::{Client, Reply};
use crate::example::GPS_EKF;
use crate::latency::Latencies;

/// Requests that are timed, and those before them that are not.
const REQUESTS: usize = 1000;
const WARM_UP: usize = 100;

/// A string that every program with LLVM inside has, and none without.
const LLVM_MESSAGE: &[u8] = b"LLVM ERROR: ";

/// `make demo` in a clone of the last commit, with nothing of this checkout's build.
pub(super) fn demo_fresh_clone_minutes(bench: &mut Bench) -> Result<f64> {
    let root = checkout::root();
    let clone = bench.folder.path().join("clone");
    if !run(Command::new("git").arg("-C").arg(&root).args(["status", "--porcelain"]), "git status")?.is_empty() {
        eprintln!("demo-fresh-clone-minutes: measuring the last commit; this checkout has changes that are not in it");
    }
    run(Command::new("git").args(["clone", "--quiet", "--no-hardlinks"]).arg(&root).arg(&clone), "git clone")?;
    let log = checkout::output_folder("promises")?.join("demo-fresh-clone.log");
    let mut make = Command::new("make");
    make.arg("-C").arg(&clone).arg("demo").stdin(Stdio::null());
    // The environment may place builds elsewhere, or come from a make with job slots to share. A fresh clone has neither.
    for variable in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS"] {
        make.env_remove(variable);
    }
    let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    make.stderr(output.try_clone().context("cannot share the log")?).stdout(output);
    let start = Instant::now();
    let status = make.status().context("cannot run make")?;
    let elapsed = start.elapsed();
    // Gigabytes that are not needed any more.
    fs::remove_dir_all(&clone).with_context(|| format!("cannot remove {}", clone.display()))?;
    ensure!(status.success(), "make demo failed in the clone ({status}); its output is in {}", log.display());
    Ok(elapsed.as_secs_f64() / 60.0)
}

/// As the server times it, on one connection, every reply checked.
pub(super) fn gps_ekf_warm_median_us(bench: &mut Bench) -> Result<f64> {
    let body = Bytes::from(GPS_EKF.input()?);
    let mut client = Client::connect(bench.server()?.address())?;
    let mut ask = || client.post("/gps-ekf", &body, &[("server-timing-request", "1")]);
    let first = ask()?;
    ensure!(first.status == StatusCode::OK, "status {}: {}", first.status, String::from_utf8_lossy(&first.body).trim_end());
    GPS_EKF.judge(&body, &first.body)?;
    let mut durations = Vec::with_capacity(WARM_UP + REQUESTS);
    for _ in 0..WARM_UP + REQUESTS {
        let reply = ask()?;
        ensure!(reply.body == first.body, "a warm reply differs from the first, which was right");
        durations.push(run_time(&reply)?);
    }
    let warm: Latencies = durations.into_iter().skip(WARM_UP).collect();
    Ok(warm.median().as_secs_f64() * 1e6)
}

/// Size of the artifact.
pub(super) fn gps_ekf_so_kb(bench: &mut Bench) -> Result<f64> {
    Ok(bench.gps_ekf()?.bytes as f64 / 1e3)
}

/// Size of the server.
pub(super) fn sledge_binary_mb(_: &mut Bench) -> Result<f64> {
    let program = checkout::program("sledge")?;
    let bytes = fs::metadata(&program).with_context(|| format!("cannot read {}", program.display()))?.len();
    Ok(bytes as f64 / 1e6)
}

/// Linked dynamically or statically: neither.
pub(super) fn sledge_links_llvm(_: &mut Bench) -> Result<f64> {
    let program = checkout::program("sledge")?;
    let libraries = run(Command::new("ldd").arg(&program), "ldd")?;
    let shared = libraries.lines().filter(|line| line.to_ascii_lowercase().contains("llvm")).count();
    Ok((shared + usize::from(contains(&program, LLVM_MESSAGE)?)) as f64)
}

fn contains(file: &Path, wanted: &[u8]) -> Result<bool> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(bytes.windows(wanted.len()).any(|window| window == wanted))
}

/// What a command prints.
fn run(command: &mut Command, name: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        bail!("{name} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// From dispatch to completion, in the reply's `server-timing` header (W3C Server Timing; milliseconds).
fn run_time(reply: &Reply) -> Result<Duration> {
    let header = reply
        .headers
        .get("server-timing")
        .context("the reply has no header server-timing, though the request asked for it with server-timing-request: 1")?;
    let text = String::from_utf8_lossy(header.as_bytes());
    let milliseconds =
        metric(&text, "run").with_context(|| format!("server-timing: {text}: there is no 'run;dur=MILLISECONDS'"))?;
    Duration::try_from_secs_f64(milliseconds / 1e3).with_context(|| format!("server-timing: {text}: no such time"))
}

/// The duration of the metric `name` in a server-timing header.
fn metric(header: &str, name: &str) -> Option<f64> {
    header.split(',').find_map(|metric| {
        let mut parts = metric.split(';').map(str::trim);
        (parts.next()? == name).then(|| parts.find_map(|part| part.strip_prefix("dur=")))?.and_then(|dur| dur.parse().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_is_found_in_the_header() {
        assert_eq!(metric("run;dur=0.0085", "run"), Some(0.0085));
        assert_eq!(metric("queue;dur=1, run;desc=x; dur=2.5", "run"), Some(2.5));
        assert_eq!(metric("run", "run"), None);
        assert_eq!(metric("running;dur=1", "run"), None);
        assert_eq!(metric("run;dur=soon", "run"), None);
    }
}
