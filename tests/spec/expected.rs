//! Lists of expected failures: `expected-failures.txt`, and that of scripts of components.

use crate::summary::{Failure, Report};
use anyhow::{Context, bail};
use sledge_tests::spec::Mode;

/// The lines for one mode.
pub(crate) struct Expected {
    lines: Vec<Line>,
}

struct Line {
    script: String,
    line: usize,
    used: bool,
}

impl Expected {
    /// Those of a list that are about scripts which are run.
    ///
    /// # Errors
    /// When a line is not one of such a list.
    pub(crate) fn parse(text: &str, mode: Mode, is_run: impl Fn(&str) -> bool) -> anyhow::Result<Expected> {
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let (Some(modes), Some(place), Some(_reason)) = (words.next(), words.next(), words.next()) else {
                bail!("expected-failures.txt: not `MODE SCRIPT:LINE why`: {line}");
            };
            let (script, number) = place.rsplit_once(':').with_context(|| format!("no line number: {line}"))?;
            if is_run(script) && (modes == "*" || modes == mode.to_string()) {
                let number = number.parse().with_context(|| format!("no line number: {line}"))?;
                lines.push(Line { script: script.to_string(), line: number, used: false });
            }
        }
        Ok(Expected { lines })
    }

    /// Takes what was expected out of a report's failures, and adds what was expected and did not happen.
    pub(crate) fn apply(&mut self, report: &mut Report) {
        for line in self.lines.iter_mut().filter(|line| line.script == report.script) {
            line.used = true;
            let before = report.failures.len();
            report.failures.retain(|failure| failure.line != line.line);
            let expected = before - report.failures.len();
            report.failed -= expected;
            report.expected_failures += expected;
            if expected == 0 {
                report.failed += 1;
                report.failures.push(Failure {
                    script: report.script.clone(),
                    line: line.line,
                    what: "expected-failures.txt".to_string(),
                    expected: "a failure, as listed".to_string(),
                    got: "it passed: remove the line".to_string(),
                });
            }
        }
    }

    /// Lines that name no script that was run.
    pub(crate) fn unused(&self) -> impl Iterator<Item = String> {
        self.lines
            .iter()
            .filter(|line| !line.used)
            .map(|line| format!("expected-failures.txt: no script {} was run", line.script))
    }
}

#[test]
fn a_listed_directive_that_passes_is_a_failure() {
    let mode = Mode::parse("guard-O3").unwrap();
    let list = "# comment\n* g/a.wast:3 because\nsoftware-O0 g/a.wast:4 because\nguard-O3 g/a.wast:5 because\n";
    let mut expected = Expected::parse(list, mode, |_| true).unwrap();
    let mut report = Report::new("g/a.wast");
    report.fail(3, "x", "y".to_string());
    expected.apply(&mut report);
    assert_eq!((report.expected_failures, report.failed), (1, 1));
    assert_eq!(report.failures[0].line, 5);
    assert!(Expected::parse("* g/a.wast:3", mode, |_| true).is_err(), "a line without a reason");
    let others = Expected::parse(list, mode, |script| script != "g/a.wast").unwrap();
    assert_eq!(others.unused().count(), 0, "a script that is not run is not missed");
}
