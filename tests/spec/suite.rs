//! One run of the suite: scripts to processes, their events to reports, the reports to a verdict.

use crate::expected::Expected;
use crate::summary::{self, Failure, Report, Total};
use anyhow::{Context, bail};
use sledge_tests::machine;
use sledge_tests::spec::{ARTIFACTS, Event, Mode, Script};
use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// For one directive. Guests have a shorter deadline of their own, in the runner; this one is for a runner that hangs.
const DIRECTIVE_TIME_MAX: Duration = Duration::from_secs(60);

/// Runs scripts in a mode. What they are expected to fail in is taken out.
///
/// # Errors
/// What failed, and what was expected to fail and did not.
pub(crate) fn run(mode: Mode, scripts: impl IntoIterator<Item = Script>, mut expected: Expected) -> anyhow::Result<()> {
    let start = Instant::now();
    let filter = std::env::var("SPEC_FILTER").unwrap_or_default();
    let wanted = |script: &Script| filter.split(',').any(|part| script.name.contains(part));
    let mut scripts: Vec<Script> = scripts.into_iter().filter(wanted).collect();
    // The longest first, so that no core waits at the end; but other versions of a script behind it, which have most of their modules in common with it.
    scripts.sort_by_key(|script| std::cmp::Reverse(cost(script)));
    let mut seen = HashSet::new();
    let (firsts, others): (Vec<_>, Vec<_>) = scripts.into_iter().partition(|script| seen.insert(file_name(script)));
    let queue = Mutex::new(firsts.into_iter().chain(others).collect::<VecDeque<_>>());
    let artifacts = tempfile::tempdir()?;
    let reports = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(script) = { queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() } {
                    let report = run_script(&script, mode, artifacts.path());
                    reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.sort_by(|a, b| a.script.cmp(&b.script));
    reports.iter_mut().for_each(|report| expected.apply(report));

    let total = Total::of(&reports);
    // Not through `print!`: what a passing test prints that way is not shown.
    std::io::stdout().lock().write_all(summary::table(mode, &reports, &total, start.elapsed()).as_bytes())?;
    let mut problems: Vec<String> = reports.iter().flat_map(|report| report.failures.iter().map(Failure::to_string)).collect();
    if filter.is_empty() {
        problems.extend(expected.unused());
    }
    if let Some(path) = std::env::var_os("SPEC_FAILURES") {
        let mut file = std::fs::File::options().create(true).append(true).open(&path)?;
        writeln!(file, "{mode}: {} of {} directives failed", total.failed, total.directives())?;
        problems.iter().try_for_each(|problem| writeln!(file, "{mode} {problem}"))?;
    }
    if total.directives() == 0 {
        bail!("no script's name contains {filter:?}");
    }
    if !problems.is_empty() {
        bail!("{} failures:\n{}", problems.len(), problems.join("\n"));
    }
    Ok(())
}

/// An estimate, to start the longest first: modules are what takes time.
fn cost(script: &Script) -> usize {
    script.text.matches("(module").count() * 2_000 + script.text.len() / 10
}

/// The name of a script in its version or proposal.
fn file_name(script: &Script) -> String {
    script.name.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Runs one script in a process of its own. Its artifacts are kept in that folder for the scripts after it.
fn run_script(script: &Script, mode: Mode, artifacts: &Path) -> Report {
    let mut report = Report::new(&script.name);
    let runner = Path::new(env!("CARGO_BIN_EXE_spec-runner"));
    let mut command = machine::command(&machine::counterpart(runner));
    if machine::is_emulated() {
        command.env("SPEC_COMPILER", runner);
    }
    let child = command
        .args([&mode.to_string(), &script.path])
        // Scripts of components are written in the older form, too.
        .env("WAST_STRICT_COMPONENT_INDICES", "0")
        .env(ARTIFACTS, artifacts)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let end = match child {
        Ok(mut child) => {
            let followed = follow(&mut child, &mut report);
            // Whatever happened: it must be gone before the next begins.
            let _ = child.kill();
            followed.and_then(|()| Ok(child.wait()?))
        }
        Err(error) => Err(error.into()),
    };
    match end {
        Ok(_) if report.done => {}
        Ok(status) => {
            let how = match status.signal() {
                Some(signal) => format!("killed by signal {signal}"),
                None => format!("ended with status {:?}", status.code()),
            };
            report.broke(format!("the runner was {how}: {}", report.stderr_tail()));
        }
        Err(error) => report.broke(format!("{error:#}")),
    }
    report
}

/// Reads a runner's events until it closes its output.
fn follow(child: &mut Child, report: &mut Report) -> anyhow::Result<()> {
    let stdout = child.stdout.take().context("no pipe")?;
    let mut stderr = child.stderr.take().context("no pipe")?;
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        // An error ends the text; what came before is shown.
        let _ = std::io::Read::read_to_end(&mut stderr, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    loop {
        match lines.recv_timeout(DIRECTIVE_TIME_MAX) {
            Ok(line) => report.event(serde_json::from_str::<Event>(&line).with_context(|| line.clone())?),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => bail!("nothing happened for {DIRECTIVE_TIME_MAX:?}"),
        }
    }
    report.stderr = errors.join().unwrap_or_default();
    Ok(())
}
