//! Shows how far a run has come: spinners and bars on a terminal, below each other if there are several; plain lines elsewhere.

use std::io::IsTerminal as _;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// All of this process.
static ALL: LazyLock<MultiProgress> = LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));

/// Does one step of a run and shows it: a spinner while it runs, then a line with what came of it. An error is
/// returned as it is.
///
/// # Errors
///
/// Whatever `work` fails with.
pub fn step<T>(doing: &str, work: impl FnOnce() -> Result<(T, String)>) -> Result<T> {
    let spinner = ALL.add(ProgressBar::no_length());
    spinner.set_style(style("{spinner} {msg} ({elapsed})"));
    spinner.set_message(doing.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    spinner.finish_and_clear();
    let (value, outcome) = result?;
    say(&format!("{doing}: {outcome}"));
    Ok(value)
}

/// A bar for `count` similar things; invisible where there is no terminal.
pub fn bar(doing: &str, count: u64) -> ProgressBar {
    let bar = ALL.add(ProgressBar::new(count));
    bar.set_style(style("{msg} {bar:40} {pos}/{len}"));
    bar.set_message(doing.to_owned());
    bar
}

/// A bar for work of about so many seconds, above all others.
pub fn whole(seconds: u64) -> ProgressBar {
    let bar = ALL.insert(0, ProgressBar::new(seconds));
    bar.set_style(style("{bar:40} {elapsed} of about {msg}"));
    bar
}

/// A line, above spinners and bars.
pub fn say(line: &str) {
    ALL.suspend(|| println!("{line}"));
}

/// Whether bars can be seen. Where not, lines tell how far things are.
pub fn are_visible() -> bool {
    std::io::stderr().is_terminal()
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
