//! The scripts of core modules: the official ones and our own.

use anyhow::Context as _;
use sledge_tests::spec::{Mode, official, ours};

use crate::expected::Expected;
use crate::suite;

/// Runs all scripts of core modules in a mode, by its name.
///
/// # Errors
/// What failed, and what was expected to fail and did not.
pub(crate) fn run(mode: &str) -> anyhow::Result<()> {
    let mode = Mode::parse(mode).with_context(|| format!("{mode} is no mode"))?;
    let expected = Expected::parse(include_str!("expected-failures.txt"), mode)?;
    suite::run(mode, official().into_iter().chain(ours("")?), expected)
}
