//! Shows how far a run has come: spinners and bars on a terminal, plain lines elsewhere.

use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Does one step of a run and shows it: a spinner while it runs, then a line with what came of it. An error is
/// returned as it is.
///
/// # Errors
///
/// Whatever `work` fails with.
pub fn step<T>(doing: &str, work: impl FnOnce() -> Result<(T, String)>) -> Result<T> {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    spinner.set_style(style("{spinner} {msg} ({elapsed})"));
    spinner.set_message(doing.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    spinner.finish_and_clear();
    let (value, outcome) = result?;
    println!("{doing}: {outcome}");
    Ok(value)
}

/// A bar for `count` similar things; invisible where there is no terminal.
pub fn bar(doing: &str, count: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr());
    bar.set_style(style("{msg} {bar:40} {pos}/{len}"));
    bar.set_message(doing.to_owned());
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
