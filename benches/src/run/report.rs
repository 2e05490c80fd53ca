//! A run in words: `summary.md`, plots, and the figures as CSV. Made on request from the files in the run's folder.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::compare::{self, Change, Verdict};
use super::figure::{Figure, Raw};
use super::record::Record;
use crate::latency::show;
use crate::measure::served::Served;
use crate::plot::Plot;
use crate::polybench::summary::Summary;
use crate::polybench::variant::Variant;
use crate::promise;
use crate::row::{self, Row};
use crate::scenario::Peer;
use crate::{spread::Spread, tables};

/// The report of `make bench-peers`, if it was run on the same day.
const PEERS_FILE: &str = "peers.md";

/// Writes `summary.md`, `figures.csv` and plots of the run in `folder`; `before` is a run to compare with. Returns the summary.
///
/// # Errors
///
/// If a file in one of the folders is not what it should be, or one cannot be written.
pub fn write(folder: &Path, before: Option<&Path>) -> Result<String> {
    let record = Record::read(folder)?;
    let raw = Raw::read(folder, record.as_ref())?;
    let figures = raw.figures();
    tables::write(&folder.join("figures.csv"), &figures)?;
    let changes = before.map(|before| changes(&figures, before)).transpose()?;
    if let Some(changes) = &changes {
        tables::write(&folder.join("changes.csv"), changes)?;
    }
    let mut text = head(folder, record.as_ref());
    if let (Some(changes), Some(before)) = (&changes, before) {
        compared(&mut text, changes, before);
    }
    applications(&mut text, &raw)?;
    for summary in &raw.kernels {
        kernels(&mut text, folder, summary)?;
    }
    phases(&mut text, folder, &raw)?;
    load(&mut text, folder, &raw.rows)?;
    peers(&mut text, folder)?;
    let file = folder.join("summary.md");
    fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(text)
}

fn changes(figures: &[Figure], before: &Path) -> Result<Vec<Change>> {
    let record = Record::read(before)?;
    Ok(compare::compare(figures, &Raw::read(before, record.as_ref())?.figures()))
}

fn head(folder: &Path, record: Option<&Record>) -> String {
    let mut text = format!("# Benchmarks, {}\n", folder.file_name().unwrap_or_default().display());
    let Some(record) = record else { return text };
    let _ = write!(
        text,
        "\nMade by `{}` on {}, of the files beside this one; `target/release/bench report` makes it again.\n\n\
         | | |\n|---|---|\n| machine | {} |\n| kernel | {} |\n| commit | {} |\n| rustc | {} |\n| clang | {} |\n| awsm | {} |\n",
        if record.is_quick { "make bench BENCH=quick" } else { "make bench" },
        record.date,
        record.machine,
        record.kernel,
        record.commit,
        record.rustc,
        record.clang,
        record.awsm
    );
    if record.is_quick {
        text.push_str("\n**Everything was measured only a little: these numbers show that it can be, and nothing else.**\n");
    }
    let failed: Vec<_> = record.parts.iter().filter_map(|(name, done)| Some((name, done.error.as_ref()?))).collect();
    for (name, error) in &failed {
        let _ = write!(text, "\n**The part `{name}` failed**, and its numbers are missing:\n\n```text\n{error}\n```\n");
    }
    let others: Vec<_> = record.parts.iter().filter(|(_, done)| done.conditions != record.conditions).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|(name, _)| format!("`{name}`")).collect();
        let _ = write!(text, "\n**Measured with other programs than the rest:** {}.\n", names.join(", "));
    }
    let all_s: f64 = record.parts.values().map(|done| done.seconds).sum();
    let parts = record.parts.iter().map(|(name, done)| format!("{name} {:.0} s", done.seconds));
    let _ = writeln!(text, "\nMeasuring took {:.1} min: {}.", all_s / 60.0, parts.collect::<Vec<_>>().join(", "));
    text
}

fn compared(text: &mut String, changes: &[Change], before: &Path) {
    let changed: Vec<_> = changes.iter().filter(|change| change.verdict != Verdict::Same).collect();
    let _ = write!(
        text,
        "\n## Against {}\n\n{} of {} figures have changed by more than noise: that of both runs together, and at least {:.0} %. \
         All are in changes.csv.\n",
        before.file_name().unwrap_or_default().display(),
        changed.len(),
        changes.len(),
        compare::NOISE_MIN * 100.0
    );
    if !changed.is_empty() {
        text.push_str("\n| name | now | before | unit | ratio | noise | |\n|---|---:|---:|---|---:|---:|---|\n");
    }
    for Change { name, unit, now, before, ratio, noise, verdict } in changed {
        let verdict = if *verdict == Verdict::Better { "better" } else { "**worse**" };
        let (now, before) = (number(*now), number(*before));
        let _ = writeln!(text, "| {name} | {now} | {before} | {unit} | {ratio:.2} | {noise:.2} | {verdict} |");
    }
}

/// With three digits, or without fraction.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn applications(text: &mut String, raw: &Raw) -> Result<()> {
    let applications = raw.applications();
    let mut promised: Vec<(String, f64)> = Vec::new();
    if !applications.is_empty() {
        text.push_str("\n## Applications, computing\n\nThe function from its first instruction to its last, at its best, natively and sandboxed.\n\n");
        text.push_str("| application | native us | sandboxed us | sandboxed to native |\n|---|---:|---:|---:|\n");
    }
    for application in &applications {
        let (native_us, sandbox_us, ratio) = (application.native_s * 1e6, application.sandbox_s * 1e6, application.ratio());
        let _ = writeln!(text, "| {} | {native_us:.2} | {sandbox_us:.2} | {ratio:.3} |", application.name);
        promised.push((format!("{}-execution-ratio", application.name), ratio));
    }
    if let Ok(served) = Served::of(&raw.rows) {
        promised.extend(served.promised().map(|(name, value)| (name.to_owned(), value)));
    }
    let promises = promise::read()?;
    let rows: Vec<_> = promised
        .iter()
        .filter_map(|(name, value)| Some((promises.iter().find(|promise| promise.name == *name)?, *value)))
        .collect();
    if !rows.is_empty() {
        text.push_str("\nWhat benches/promises.toml wants of that, and of serving them at 100 clients beside a process for each request:\n\n");
        text.push_str("| promise | measured | bound | |\n|---|---:|---:|---|\n");
    }
    for (promise, value) in rows {
        let verdict = if promise.bound.kept_by(value) { "ok" } else { "**MISS**" };
        let _ = writeln!(text, "| {} | {value:.3} | {} | {verdict} |", promise.name, promise.bound);
    }
    Ok(())
}

fn kernels(text: &mut String, folder: &Path, summary: &Summary) -> Result<()> {
    let size = summary.dataset();
    let _ = write!(
        text,
        "\n## PolyBench, {size}\n\nTime to that of clang -O3, {} kernels.\n\n\
         | variant | geometric mean | worst | within 1.1x |\n|---|---:|---:|---:|\n",
        summary.kernels().count()
    );
    for &variant in summary.variants.iter().filter(|variant| **variant != Variant::Native) {
        let ratios = summary.over(variant, Variant::Native)?;
        let _ = writeln!(text, "| {variant} | {:.3} | {:.2} | {} |", ratios.geometric, ratios.worst, ratios.within);
    }
    let stem = format!("polybench-{}", size.to_lowercase());
    if folder.join(format!("{stem}-summary.md")).is_file() {
        let _ = write!(text, "\n[Each kernel]({stem}-summary.md)\n");
    }
    if folder.join(format!("{stem}-ratios.svg")).is_file() {
        let _ = write!(text, "\n![ratios]({stem}-ratios.svg)\n");
    }
    Ok(())
}

fn phases(text: &mut String, folder: &Path, raw: &Raw) -> Result<()> {
    let known: Vec<_> = raw.phases.iter().filter_map(|phase| Some((phase, phase.each_ns()?))).collect();
    if known.is_empty() {
        return Ok(());
    }
    text.push_str(
        "\n## Phases\n\nMedians and quartiles of criterion's samples.\n\n| phase | median | quartiles |\n|---|---:|---:|\n",
    );
    let shown = |nanoseconds: f64| show(Duration::from_secs_f64(nanoseconds / 1e9));
    for (phase, Spread { low, median, high }) in &known {
        let _ = writeln!(text, "| {} | {} | {} to {} |", phase.name, shown(*median), shown(*low), shown(*high));
    }
    let plot = Plot {
        caption: "What the phases of a request take, in microseconds".to_owned(),
        names: known.iter().map(|(phase, _)| phase.name.clone()).collect(),
        series: vec![("median".to_owned(), known.iter().map(|(_, each)| Some(each.median / 1e3)).collect())],
        lines: Vec::new(),
    };
    draw(text, folder, "phases", &plot)
}

fn load(text: &mut String, folder: &Path, rows: &[Row]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let _ = write!(
        text,
        "\n## Load\n\nServers on one core, clients on another; medians of the turns. Process per request: the native program, started anew for \
         each.\n\n{}",
        row::table(rows)
    );
    let sledge = Peer::Sledge.name();
    let mut names: Vec<String> = Vec::new();
    let (mut throughput, mut p99) = (Vec::new(), Vec::new());
    for Row { scenario, server, .. } in rows.iter().filter(|row| row.server != sledge) {
        let name = format!("{scenario}, {server}");
        if names.contains(&name) {
            continue;
        }
        let ratio = |servers, number| row::ratio(rows, scenario, servers, number).map(|ratio| ratio.median);
        throughput.push(ratio([sledge, server], |row| row.per_second));
        p99.push(ratio([server, sledge], |row| row.p99_us));
        names.push(name);
    }
    if names.is_empty() {
        return Ok(());
    }
    let plot = Plot {
        caption: "sledge to what it is compared with: above 1 it is better".to_owned(),
        names,
        series: vec![("replies a second".to_owned(), throughput), ("1 / 99th percentile of latency".to_owned(), p99)],
        lines: vec![(1.0, 0.8)],
    };
    draw(text, folder, "load", &plot)
}

/// What `make bench-peers` wrote beside it, below a heading of this summary.
fn peers(text: &mut String, folder: &Path) -> Result<()> {
    let file = folder.join(PEERS_FILE);
    if !file.is_file() {
        return Ok(());
    }
    let peers = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let below = peers.split_once('\n').unwrap_or_default().1.trim();
    let _ = write!(text, "\n## Peers\n\n{}\n", below.replace("\n## ", "\n### "));
    Ok(())
}

/// Draws it, and shows it, if it could be drawn.
fn draw(text: &mut String, folder: &Path, name: &str, plot: &Plot) -> Result<()> {
    plot.write(&folder.join(name))?;
    if folder.join(format!("{name}.svg")).is_file() {
        let _ = write!(text, "\n![{name}]({name}.svg)\n");
    }
    Ok(())
}
