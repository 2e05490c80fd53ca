//! The group `runtime`, in process: what a fresh sandbox costs when everything is warm.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sledge::config::{Config, FunctionConfig};
use sledge::execution::{Execution, Progress};
use sledge::host::{Body, Context, Input, LogLines, Output, ReplyBytes};
use sledge::load;
use sledge_sandbox::{Pool, PoolLimits, WorkerThread, affinity};

use super::Bench;
use crate::latency::Latencies;
use crate::{checkout, compiler};

/// Requests that are timed, and those before them that are not.
const REQUESTS: usize = 50_000;
const WARM_UP: usize = 2_000;

const HELLO: &[u8] = b"Hello, world! 7\n";

/// A sandbox, an empty function, the reset.
pub(super) fn empty_median_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "empty.wat", b"")?.median().as_secs_f64() * 1e6)
}

/// The same at the 99th percentile.
pub(super) fn empty_p99_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "empty.wat", b"")?.p99().as_secs_f64() * 1e6)
}

/// A sandbox, a libc command with 200 KB of data, the reset.
pub(super) fn hello_median_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "hello.c", HELLO)?.median().as_secs_f64() * 1e6)
}

/// The same at the 99th percentile.
pub(super) fn hello_p99_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "hello.c", HELLO)?.p99().as_secs_f64() * 1e6)
}

/// Times requests from taking a sandbox to having reset it, on one pinned core.
fn warm(bench: &Bench, file: &str, expected: &'static [u8]) -> Result<Latencies> {
    let artifact = bench.folder.path().join(file).with_extension("so");
    compiler::compile(&checkout::root().join("benches/functions").join(file), &artifact)?;
    // A worker's thread has signal handling of its own.
    let measured = thread::spawn(move || measure(&artifact, expected)).join();
    measured.ok().context("the measurement panicked")?
}

fn measure(artifact: &Path, expected: &[u8]) -> Result<Latencies> {
    let worker = WorkerThread::enter(Duration::from_micros(500)).context("cannot make this thread a worker")?;
    worker.pin(*affinity()?.last().context("no core")?)?;
    let function = Arc::new(load::function(&FunctionConfig::new("measured", artifact), &load::compiler(&Config::default()))?);
    let mut pool = Pool::new(PoolLimits::default());
    let mut times = Vec::with_capacity(REQUESTS);
    for request in 0..WARM_UP + REQUESTS {
        let start = Instant::now();
        let sandbox = pool.take(&function.template)?;
        let output = Output::Reply { bytes: ReplyBytes::default(), bytes_max: 1 << 20 };
        let errors = Output::Log(LogLines::new(Arc::clone(&function.process), Arc::clone(&function.log)));
        let context = Context::new(Arc::clone(&function.process), Input::Body(Body::default()), output, errors);
        let mut execution = Execution::new(Arc::clone(&function), sandbox, context);
        let progress = execution.run();
        let remains = execution.finish();
        pool.put(remains.sandbox);
        let time = start.elapsed();
        ensure!(matches!(progress, Progress::Ended(Ok(()))), "request {request} came to {progress:?}");
        ensure!(remains.reply == expected, "request {request} was answered with {:?}", remains.reply);
        if request >= WARM_UP {
            times.push(time);
        }
    }
    Ok(times.into_iter().collect())
}

/// Suspending a guest by a signal and resuming it, against a signal that suspends nothing, as the bench of single steps prints them.
pub(super) fn preemption_ratio(_: &mut Bench) -> Result<f64> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["bench", "--quiet", "-p", "sledge-sandbox", "--bench", "costs"]).current_dir(checkout::root());
    let output = command.output().context("cannot run cargo bench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "cargo bench failed ({}):\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    let suspended = nanoseconds(&text, "signal, suspension, resumption, return from the signal")?;
    Ok(suspended / nanoseconds(&text, "signal that suspends nothing")?)
}

/// The median in the line that begins with `name`: `NAME   1867 ns  p99   1904 ns`.
fn nanoseconds(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no line for '{name}'"))?;
    let number = line.split_whitespace().next().with_context(|| format!("nothing behind '{name}'"))?;
    number.parse().with_context(|| format!("'{number}' is no number"))
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn the_median_is_found_in_its_line() {
        let text = "other                       5 ns\nsignal that suspends nothing    1867 ns  p99       1904 ns\n";
        assert_eq!(nanoseconds(text, "signal that suspends nothing").unwrap(), 1867.0);
        assert!(nanoseconds(text, "missing").is_err());
    }
}
