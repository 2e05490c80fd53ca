//! The metrics, as the server describes them to Prometheus.

use std::collections::BTreeSet;

use sledge::kv::ReadCounts;
use sledge::metrics::Metrics;
use sledge::metrics::text::{ExecutionCounts, Gauges, encode};

use super::cell;

/// A table of all metrics.
pub(super) fn chapter() -> String {
    let mut text = String::new();
    let metrics = Metrics::default();
    let _worker = metrics.thread("worker-0");
    // Writing into a string does not fail.
    let _ = encode(&mut text, &metrics, &everything(), None);
    let mut rows = String::from("| metric | kind | labels | meaning |\n|---|---|---|---|\n");
    for line in text.lines() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) else { continue };
        let kind = described(&text, "# TYPE ", name).unwrap_or("unknown");
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        rows += &format!("| `{name}` | {kind} | {} | {} |\n", labels(&text, &name), cell(help.trim_end_matches('.')));
    }
    rows + "\n"
}

/// What a line says of a metric.
fn described<'a>(text: &'a str, what: &str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(name)?.strip_prefix(' '))
}

/// The labels of a metric's samples; those of functions have none here.
fn labels(text: &str, name: &str) -> String {
    let samples = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split_once('}'));
    let pairs = samples.flat_map(|(labels, _)| labels.split(',').filter_map(|pair| pair.split_once('=')));
    let names: BTreeSet<&str> = pairs.map(|(label, _)| label).collect();
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A server that has one of everything.
fn everything() -> Gauges {
    let named = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let pair = || [String::from("f"), String::from("t")];
    Gauges {
        problems: named(&["a"]),
        kv_commits: Some(Default::default()),
        kv_reads: Some(ReadCounts::default()),
        executions: Some(ExecutionCounts::default()),
        execution_bytes: vec![(String::from("t"), 1)],
        ahead: vec![(pair(), 1)],
        spans: Some(Default::default()),
        log_lines_dropped: vec![(pair(), 1)],
        concurrency_limits: vec![(pair(), 1)],
        memo_bytes: vec![(pair(), 1)],
        phases: vec![([String::from("f"), String::from("t"), String::from("p")], Some(1.0), 1.0)],
        ..Gauges::default()
    }
}
