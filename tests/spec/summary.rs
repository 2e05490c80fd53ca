//! What a run came to: per script, per group, in all.

use sledge_tests::spec::{EXCLUDED, Event, Mode};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

/// A directive that did not do what it says.
pub(crate) struct Failure {
    pub(crate) script: String,
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: expected {}; got {}", self.script, self.line, self.what, self.expected, self.got)
    }
}

/// What became of one script.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) script: String,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) expected_failures: usize,
    /// Directives that were repeated on reused sandboxes.
    pub(crate) reused: usize,
    /// Reasons of skipped directives.
    pub(crate) skipped: Vec<String>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) modules: usize,
    pub(crate) compile_ms: u64,
    pub(crate) total_ms: u64,
    /// Whether the script's end was reached.
    pub(crate) done: bool,
    /// What the runner wrote on standard error.
    pub(crate) stderr: String,
    line: usize,
    what: String,
}

impl Report {
    pub(crate) fn new(script: &str) -> Report {
        Report { script: script.to_string(), ..Report::default() }
    }

    pub(crate) fn event(&mut self, event: Event) {
        match event {
            Event::Begin { line, what } => (self.line, self.what) = (line, what),
            Event::Pass => self.passed += 1,
            Event::Fail { expected, got } => self.fail(self.line, &expected, got),
            Event::Skip { reason } => self.skipped.push(reason),
            Event::Reused { directives, .. } => self.reused += directives,
            Event::Done { modules, compile_ms, total_ms } => {
                (self.done, self.modules, self.compile_ms, self.total_ms) = (true, modules, compile_ms, total_ms);
            }
        }
    }

    pub(crate) fn fail(&mut self, line: usize, expected: &str, got: String) {
        self.failed += 1;
        let (script, what) = (self.script.clone(), self.what.clone());
        self.failures.push(Failure { script, line, what, expected: expected.to_string(), got });
    }

    /// The runner ended in the middle of a directive.
    pub(crate) fn broke(&mut self, how: String) {
        self.fail(self.line, "the rest of the script", how);
    }

    /// The end of what the runner wrote on standard error, in one line.
    pub(crate) fn stderr_tail(&self) -> String {
        let lines: Vec<&str> = self.stderr.lines().filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(4)..].join(" / ")
    }
}

/// Sums over reports.
#[derive(Default)]
pub(crate) struct Total {
    pub(crate) files: usize,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) expected_failures: usize,
    pub(crate) skipped: usize,
    pub(crate) reused: usize,
    pub(crate) modules: usize,
}

impl Total {
    pub(crate) fn of<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Total {
        let mut total = Total::default();
        for report in reports {
            total.files += 1;
            total.passed += report.passed;
            total.failed += report.failed;
            total.expected_failures += report.expected_failures;
            total.skipped += report.skipped.len();
            total.reused += report.reused;
            total.modules += report.modules;
        }
        total
    }

    pub(crate) fn directives(&self) -> usize {
        self.passed + self.failed + self.expected_failures + self.skipped
    }
}

/// A table for people: groups, their sum, why directives and files were skipped, the slowest scripts.
pub(crate) fn table(mode: Mode, reports: &[Report], total: &Total, elapsed: Duration) -> String {
    let mut groups: BTreeMap<&str, Vec<&Report>> = BTreeMap::new();
    for report in reports {
        groups.entry(report.script.split('/').next().unwrap_or_default()).or_default().push(report);
    }
    let mut text = format!(
        "\nspecification suite, {mode}\n{:<38} {:>5} {:>7} {:>10} {:>7} {:>6} {:>8} {:>7} {:>7}\n",
        "group", "files", "modules", "directives", "passed", "failed", "expected", "skipped", "reused"
    );
    let mut row = |name: &str, total: &Total| {
        let Total { files, passed, failed, expected_failures, skipped, reused, modules } = total;
        let directives = total.directives();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<38} {files:>5} {modules:>7} {directives:>10} {passed:>7} {failed:>6} {expected_failures:>8} {skipped:>7} {reused:>7}"
        );
    };
    for (name, reports) in &groups {
        row(name, &Total::of(reports.iter().copied()));
    }
    row("all", total);

    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reports.iter().flat_map(|report| &report.skipped) {
        *reasons.entry(reason).or_default() += 1;
    }
    for (reason, count) in reasons {
        let _ = writeln!(text, "skipped {count} directives: {reason}");
    }
    for (file, reason) in EXCLUDED {
        let _ = writeln!(text, "not run: {file}: {reason}");
    }
    let mut slowest: Vec<&Report> = reports.iter().collect();
    slowest.sort_by_key(|report| std::cmp::Reverse(report.total_ms));
    let slowest: Vec<String> = slowest.iter().take(5).map(|r| format!("{} {} ms", r.script, r.total_ms)).collect();
    let compiling: u64 = reports.iter().map(|report| report.compile_ms).sum();
    let _ = writeln!(
        text,
        "time: {:.1} s; compiling {:.1} s of CPU; slowest: {}\n",
        elapsed.as_secs_f64(),
        compiling as f64 / 1e3,
        slowest.join(", ")
    );
    text
}
