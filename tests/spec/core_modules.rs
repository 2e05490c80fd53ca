//! The scripts of core modules: the official ones and our own.

use anyhow::Context as _;
use sledge_tests::spec::{Mode, official, ours};

use crate::expected::Expected;
use crate::suite;

/// Runs scripts of core modules in a mode, by its name: our own, and of the official ones those whose name contains one of `parts`.
///
/// # Errors
/// What failed, and what was expected to fail and did not.
pub(crate) fn run(mode: &str, parts: &[&str]) -> anyhow::Result<()> {
    let mode = Mode::parse(mode).with_context(|| format!("{mode} is no mode"))?;
    let is_wanted = |name: &str| parts.iter().any(|part| name.contains(part));
    let expected = Expected::parse(include_str!("expected-failures.txt"), mode, is_wanted)?;
    suite::run(mode, official().into_iter().filter(|script| is_wanted(&script.name)).chain(ours("")?), expected)
}
