//! What a user sees while awsm works: a bar on a terminal; elsewhere, of a compilation that takes long, a line now and then.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use awsm::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// Between lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Between two states of the file, if there is one.
const FILE_INTERVAL: Duration = Duration::from_millis(100);

/// Shows a compilation's progress.
pub(super) struct Report {
    bar: ProgressBar,
    quiet: bool,
    began: Instant,
    /// What the next line will say, and when the last one was written. None where there is a bar, or nothing is to be shown.
    lines: Option<Mutex<Lines>>,
    /// Where another program reads how far it is.
    file: Option<PathBuf>,
    /// How many parts a cache had, of how many that it may hold.
    cached: Mutex<(usize, usize)>,
}

struct Lines {
    phase: Phase,
    total: usize,
    written: Instant,
}

impl Report {
    /// Begins; draws only where standard error is a terminal.
    pub(super) fn new(quiet: bool, file: Option<PathBuf>) -> Report {
        let is_drawn = !quiet && std::io::stderr().is_terminal();
        let bar = if is_drawn { ProgressBar::new(0).with_style(style(0)) } else { ProgressBar::hidden() };
        if is_drawn {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        let began = Instant::now();
        let lines = Lines { phase: Phase::Validate, total: 0, written: began };
        let needs_lines = file.is_some() || (!quiet && !is_drawn);
        Report { bar, quiet, began, lines: needs_lines.then(|| Mutex::new(lines)), file, cached: Mutex::default() }
    }

    /// Another compiler is at work, whose own messages must stay readable.
    pub(super) fn producing(&self, input: &Path) {
        self.bar.set_message(format!("building {}", input.display()));
    }

    /// Ends with a line that says what was written.
    pub(super) fn done(&self, output: &Path, bytes: usize) {
        self.bar.finish_and_clear();
        if !self.quiet && output != Path::new("-") {
            let seconds = self.began.elapsed().as_secs_f64();
            let cached = match *self.cached.lock().unwrap_or_else(PoisonError::into_inner) {
                (_, 0) => String::new(),
                (found, kept) => format!(", {found} of {kept} parts from the cache"),
            };
            say(format_args!("{}: {} in {seconds:.2} s{cached}", output.display(), indicatif::HumanBytes(bytes as u64)));
        }
    }

    /// Changes what a line would say; says it if the last one is long ago.
    fn line(&self, done: usize, change: impl FnOnce(&mut Lines)) {
        let Some(lines) = &self.lines else { return };
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut lines);
        if let Some(file) = &self.file {
            // A failure is ignored: the compilation does not need the file.
            if done == 0 || lines.written.elapsed() >= FILE_INTERVAL {
                lines.written = Instant::now();
                let _ = std::fs::write(file, format!("{} {done} {}\n", lines.phase.name(), lines.total));
            }
        } else if lines.written.elapsed() >= LINE_INTERVAL {
            lines.written = Instant::now();
            let seconds = self.began.elapsed().as_secs();
            let functions = if lines.total == 0 { String::new() } else { format!(", {done} of {} functions", lines.total) };
            say(format_args!("{}{functions}, after {seconds} s", lines.phase.name()));
        }
    }
}

/// Writes a line to standard error. Where its reader has gone, the work goes on.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// With a bar where it is known how much there is to do. The templates are constants, and right.
fn style(total: usize) -> ProgressStyle {
    let template =
        if total == 0 { "{spinner} {msg} {elapsed}" } else { "{spinner} {msg:10} {wide_bar} {pos}/{len} functions {elapsed}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Report {
    fn begin(&self, phase: Phase, total: usize) {
        self.bar.set_style(style(total));
        self.bar.set_message(phase.name());
        self.bar.set_position(0);
        self.bar.set_length(total as u64);
        self.line(0, |lines| (lines.phase, lines.total) = (phase, total));
    }

    fn advance(&self, done: usize) {
        self.bar.set_position(done as u64);
        self.line(done, |_| {});
    }

    fn cached(&self, found: usize, kept: usize) {
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = (found, kept);
    }

    fn warn(&self, message: &str) {
        self.bar.suspend(|| say(format_args!("awsm: warning: {message}")));
    }
}
