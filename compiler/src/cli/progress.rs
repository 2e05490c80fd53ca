//! What a user sees while awsm works: a bar on a terminal, nothing elsewhere but what was written at the end.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

use awsm::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// Shows a compilation's progress.
pub(super) struct Report {
    bar: ProgressBar,
    quiet: bool,
    began: Instant,
}

impl Report {
    /// Begins; draws only where standard error is a terminal.
    pub(super) fn new(quiet: bool) -> Report {
        let bar = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            // The template is a constant, and right.
            let style = ProgressStyle::with_template("{spinner} {msg:24} {wide_bar} {pos}/{len} {elapsed}");
            let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
            bar
        };
        Report { bar, quiet, began: Instant::now() }
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
            eprintln!("{}: {} in {seconds:.2} s", output.display(), indicatif::HumanBytes(bytes as u64));
        }
    }
}

impl Progress for Report {
    fn begin(&self, phase: Phase, total: usize) {
        self.bar.set_message(phase.name());
        self.bar.set_position(0);
        self.bar.set_length(total as u64);
    }

    fn advance(&self, done: usize) {
        self.bar.set_position(done as u64);
    }
}
