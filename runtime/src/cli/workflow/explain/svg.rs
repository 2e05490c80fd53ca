//! What an execution did, as SVG: a row for each run in program order, its bar by what became of it, commits as lines through all rows, and an arrow from what was guessed to what that has begun.
//!
//! One document with its own style, for light and dark. All texts go through [`escaped`]: states, functions and errors are named by others.

use std::fmt::{Result, Write};

use sledge_workflow::draw::escaped;

use super::{comparison, depth, ms, number, summary, text};
use crate::workflow::explained::{Explained, ExplainedRun, RunResult};

const MARGIN: f64 = 20.0;
const HEAD: f64 = 100.0;
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
/// Of all times.
const PLOT: f64 = 640.0;
/// Of what stands right of the bars.
const RESULT: f64 = 170.0;
const CHAR: f64 = 7.0;
const NAME_CHARS_MAX: usize = 32;
const LINE_CHARS_MAX: usize = 150;
/// Lines below the rows that say why runs do not count.
const WHY_MAX: usize = 20;

const STYLE: &str = "\
.se-page{fill:#fff}.se-title{font:600 15px system-ui,sans-serif;fill:#1f2328}.se-text{font:12px system-ui,sans-serif;fill:#1f2328}\
.se-dim{font:11px system-ui,sans-serif;fill:#59636e}.se-grid{stroke:#d1d9e0;stroke-width:1}.se-band{fill:#59636e;fill-opacity:.13}\
.se-commit{stroke:#424a53;stroke-width:1.5}.se-undone{stroke:#c0362c;stroke-width:1.5;stroke-dasharray:4 3}.se-arrow{fill:none;stroke:#59636e;stroke-width:1.2}.se-head{fill:#59636e}\
.se-committed{fill:#0969da}.se-adopted{fill:#1a7f37}.se-skipped{fill:#0a7d8c}.se-carried_out{fill:#8250df}.se-dropped{fill:#cf222e}.se-squashed{fill:#bc6c00}.se-left{fill:#818b98}\
.se-wait{fill-opacity:.28}.se-hatch{stroke:#fff;stroke-width:2;stroke-opacity:.75}.se-right{fill:#fff;stroke:#1f2328;stroke-width:1.5}.se-wrong{fill:#ffce00;stroke:#1f2328;stroke-width:1.5}\
@media(prefers-color-scheme:dark){.se-page{fill:#0f1419}.se-title,.se-text{fill:#eef2f6}.se-dim{fill:#a9b4bf}.se-grid{stroke:#2a323b}.se-band{fill:#b4bec8}\
.se-commit{stroke:#d1d9e0}.se-undone{stroke:#f0716a}.se-arrow{stroke:#a9b4bf}.se-head{fill:#a9b4bf}\
.se-committed{fill:#58a6ff}.se-adopted{fill:#3fb950}.se-skipped{fill:#4fd1df}.se-carried_out{fill:#b392f0}.se-dropped{fill:#f0716a}.se-squashed{fill:#e3a02e}.se-left{fill:#7d8894}\
.se-hatch{stroke:#0f1419}.se-right{fill:#0f1419;stroke:#eef2f6}.se-wrong{fill:#ffce00;stroke:#eef2f6}}";

/// Where everything is.
struct Layout {
    /// The left edge of the bars.
    left: f64,
    us: f64,
    rows: usize,
}

impl Layout {
    fn of(explained: &Explained) -> Layout {
        let columns = |run: &ExplainedRun| run.state.chars().count().min(NAME_CHARS_MAX) as f64 * CHAR + depth(run) as f64 * 14.0;
        let widest = explained.runs.iter().map(columns).fold(80.0, f64::max);
        // Also the last moment of what ended after the last commit is in it.
        let last = explained.runs.iter().map(|run| u64::from(run.over_us)).max().unwrap_or(0).max(explained.took_us).max(1);
        Layout { left: MARGIN + 30.0 + widest + 14.0, us: last as f64, rows: explained.runs.len() }
    }

    fn x(&self, us: u32) -> f64 {
        self.left + f64::from(us) / self.us * PLOT
    }

    fn y(&self, row: usize) -> f64 {
        HEAD + (row as f64 + 0.5) * ROW
    }

    fn bottom(&self) -> f64 {
        HEAD + self.rows as f64 * ROW
    }
}

/// What one execution did.
pub(super) fn svg(explained: &Explained) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = document(&mut out, explained);
    out
}

fn document(out: &mut String, explained: &Explained) -> Result {
    let layout = Layout::of(explained);
    let why = text::why(explained);
    let shown = &why[..why.len().min(WHY_MAX)];
    let (width, legend) = (layout.left + PLOT + RESULT + MARGIN, layout.bottom() + 46.0);
    let height = legend + 34.0 + shown.len() as f64 * 17.0 + if shown.is_empty() { 0.0 } else { 24.0 };
    let title = format!("{} {}", explained.execution, summary(explained));
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>",
        escaped(&title)
    )?;
    writeln!(
        out,
        "<defs><pattern id=\"se-hatches\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <path class=\"se-hatch\" d=\"M0 0V6\"/></pattern><marker id=\"se-point\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" \
         markerHeight=\"6\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"se-head\" d=\"M0 0L8 4L0 8z\"/></marker></defs>"
    )?;
    writeln!(out, "<rect class=\"se-page\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"6\"/>")?;
    label(out, "se-title", (MARGIN, 32.0), &cut(&title, LINE_CHARS_MAX))?;
    label(out, "se-text", (MARGIN, 54.0), &comparison(explained))?;
    axis(out, &layout)?;
    commits(out, explained, &layout)?;
    arrows(out, explained, &layout)?;
    for (at, run) in explained.runs.iter().enumerate() {
        row(out, at, run, &layout)?;
    }
    write_legend(out, explained, (MARGIN, legend))?;
    let mut y = legend + 34.0;
    if !shown.is_empty() {
        label(out, "se-text", (MARGIN, y), "Runs that do not count:")?;
    }
    for line in shown {
        y += 17.0;
        label(out, "se-dim", (MARGIN + 10.0, y), &cut(line, LINE_CHARS_MAX))?;
    }
    writeln!(out, "</svg>")
}

fn label(out: &mut String, class: &str, (x, y): (f64, f64), text: &str) -> Result {
    writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text))
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max - 1).chain(['…']).collect()
}

/// The times, and a line for each.
fn axis(out: &mut String, layout: &Layout) -> Result {
    let step = step(layout.us);
    let (top, bottom) = (HEAD - 6.0, layout.bottom() + 4.0);
    let mut us = 0.0;
    while us <= layout.us {
        let x = layout.left + us / layout.us * PLOT;
        writeln!(out, "<path class=\"se-grid\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>")?;
        let ms = us / 1e3;
        let text = if step < 1_000.0 { format!("{ms:.2}") } else { format!("{ms:.0}") };
        let text = if us == 0.0 { "0 ms".to_owned() } else { text };
        writeln!(out, "<text class=\"se-dim\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>", top - 6.0)?;
        us += step;
    }
    Ok(())
}

/// Microseconds between two lines: 1, 2 or 5 times a power of ten, and not more than ten of them.
fn step(us: f64) -> f64 {
    let power = 10_f64.powf((us / 10.0).max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| us / step <= 10.0).unwrap_or(us)
}

/// Commits, while they were under way and when they were made.
fn commits(out: &mut String, explained: &Explained, layout: &Layout) -> Result {
    let (top, bottom) = (HEAD - 2.0, layout.bottom() + 2.0);
    let mut free = layout.left;
    for (at, commit) in explained.commits.iter().enumerate() {
        let (from, to) = (layout.x(commit.began_us), layout.x(commit.ended_us));
        let class = if commit.undone.is_some() { "se-undone" } else { "se-commit" };
        let became = commit.undone.map_or_else(|| "made".to_owned(), |undone| format!("not made: {}", undone.word()));
        let times = [commit.began_us, commit.ended_us].map(|us| ms(us.into())).join(" to ");
        writeln!(
            out,
            "<g><title>{}</title><rect class=\"se-band\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
             <path class=\"{class}\" d=\"M{to:.1} {top:.1}V{bottom:.1}\"/></g>",
            escaped(&format!("commit {} of {}, {became}, {times} ms", at + 1, number(commit.runs as usize, "run"))),
            to - from,
            bottom - top
        )?;
        let text =
            format!("{} {}", if commit.undone.is_some() { "not made:" } else { "commit:" }, number(commit.runs as usize, "run"));
        let start = to - text.len() as f64 * 5.6;
        if start >= free {
            writeln!(out, "<text class=\"se-dim\" x=\"{to:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", bottom + 14.0)?;
            free = to + 8.0;
        }
    }
    Ok(())
}

/// A run: its name, its bar, and what became of it.
fn row(out: &mut String, at: usize, run: &ExplainedRun, layout: &Layout) -> Result {
    let (y, result) = (layout.y(at), run.result);
    let top = y - BAR / 2.0;
    let (begun, ended) = (layout.x(run.begun_us), layout.x(run.ended_us.unwrap_or(run.over_us)));
    let over = layout.x(run.over_us).max(ended);
    let class = format!("se-{}", result.word());
    writeln!(out, "<g><title>{}</title>", escaped(&about(at, run)))?;
    let number = at + 1;
    writeln!(out, "<text class=\"se-dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>", MARGIN + 20.0, y + 4.0)?;
    label(out, "se-text", (MARGIN + 30.0 + depth(run) as f64 * 14.0, y + 4.0), &cut(&run.state, NAME_CHARS_MAX))?;
    if run.ended_us.is_some() && over > ended {
        let wait = over - ended;
        writeln!(out, "<rect class=\"{class} se-wait\" x=\"{ended:.1}\" y=\"{top:.1}\" width=\"{wait:.1}\" height=\"{BAR}\"/>")?;
        writeln!(out, "<rect fill=\"url(#se-hatches)\" x=\"{ended:.1}\" y=\"{top:.1}\" width=\"{wait:.1}\" height=\"{BAR}\"/>")?;
    }
    let width = (ended - begun).max(2.0);
    writeln!(out, "<rect class=\"{class}\" x=\"{begun:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>")?;
    if let Some(guess) = run.guess {
        let (x, class) =
            (layout.x(guess.at_us.max(run.begun_us)), if guess.right == Some(false) { "se-wrong" } else { "se-right" });
        writeln!(out, "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>", x + 5.0)?;
    }
    let mut became = text::word(result).to_owned();
    if run.error.is_some() {
        became.push_str(", failed");
    }
    label(out, "se-dim", (layout.left + PLOT + 14.0, y + 4.0), &became)?;
    writeln!(out, "</g>")
}

/// All that is known of a run.
fn about(at: usize, run: &ExplainedRun) -> String {
    let mut lines = vec![format!("{} {}: {}", at + 1, run.state, text::word(run.result))];
    lines.extend(run.function.as_ref().map(|function| format!("function {function}")));
    let time = |us: Option<u32>| us.map_or_else(|| "-".to_owned(), |us| ms(us.into()));
    let [begun, ended, over] = [Some(run.begun_us), run.ended_us, Some(run.over_us)].map(time);
    let asked = ms(run.asked_us.into());
    lines.push(format!("asked for at {asked} ms, began at {begun} ms, ended at {ended} ms, over at {over} ms"));
    lines.extend(run.behind.as_ref().map(|behind| format!("began behind {behind}, which had not ended")));
    lines.extend(run.reason.as_ref().map(|reason| reason.text.clone()));
    lines.extend(run.error.as_ref().map(|error| format!("failed with {error}")));
    lines.join("; ")
}

/// From what had not ended to what has begun behind it.
fn arrows(out: &mut String, explained: &Explained, layout: &Layout) -> Result {
    for (at, run) in explained.runs.iter().enumerate() {
        let Some(from) = run.behind_run.map(|from| from as usize).filter(|from| *from < at) else { continue };
        let Some(behind) = explained.runs.get(from) else { continue };
        let (x, start) = (layout.x(run.begun_us), layout.x(behind.begun_us));
        let lane = x - 6.0;
        let begin = if start < lane {
            format!("M{lane:.1} {:.1}", layout.y(from) + BAR / 2.0)
        } else {
            format!("M{start:.1} {:.1}H{lane:.1}", layout.y(from) + 3.0)
        };
        writeln!(out, "<path class=\"se-arrow\" d=\"{begin}V{:.1}H{x:.1}\" marker-end=\"url(#se-point)\"/>", layout.y(at) - 2.0)?;
    }
    Ok(())
}

fn write_legend(out: &mut String, explained: &Explained, (left, y): (f64, f64)) -> Result {
    const RESULTS: [RunResult; 7] = [
        RunResult::Committed,
        RunResult::Adopted,
        RunResult::Skipped,
        RunResult::CarriedOut,
        RunResult::Dropped,
        RunResult::Squashed,
        RunResult::Left,
    ];
    let mut x = left;
    let mut next = |out: &mut String, shape: &str, text: &str| {
        writeln!(out, "<g transform=\"translate({x:.1} {:.1})\">{shape}</g>", y - 9.0)?;
        label(out, "se-dim", (x + 19.0, y), text)?;
        x += 19.0 + text.chars().count() as f64 * 5.9 + 16.0;
        Ok(())
    };
    for result in RESULTS.into_iter().filter(|result| explained.runs.iter().any(|run| run.result == *result)) {
        let shape = format!("<rect class=\"se-{}\" width=\"14\" height=\"11\" rx=\"2\"/>", result.word());
        next(out, &shape, text::word(result))?;
    }
    let wait = "<rect class=\"se-adopted se-wait\" width=\"14\" height=\"11\"/><rect fill=\"url(#se-hatches)\" width=\"14\" height=\"11\"/>";
    next(out, wait, "waits for its commit")?;
    next(out, "<rect class=\"se-band\" width=\"7\" height=\"11\"/><path class=\"se-commit\" d=\"M7 -1V12\"/>", "commit")?;
    next(out, "<circle class=\"se-right\" cx=\"7\" cy=\"5.5\" r=\"3.5\"/>", "guess")?;
    next(out, "<circle class=\"se-wrong\" cx=\"7\" cy=\"5.5\" r=\"3.5\"/>", "wrong guess")
}
