//! A scene as SVG: one document with its own style, for light and dark.

use std::fmt::Write;

use super::compose::texts;
use super::label;
use super::limits::TITLE_CHARS_MAX;
use super::metrics::Metrics;
use super::scene::{Scene, Wire};
use crate::definition::{Definition, Kind, State};

/// Around all.
const MARGIN: i64 = 16;
/// Of corners of lines.
const RADIUS: i64 = 6;

const STYLE: &str = "\
.sw-page{fill:#fff}\
.sw-box{fill:#f6f8fa;stroke:#57606a;stroke-width:1.3}\
.sw-task{fill:#ddf0ff;stroke:#0a69b8}.sw-choice{fill:#fff4d6;stroke:#9a6700}.sw-wait{fill:#f3e8ff;stroke:#7a4fc4}\
.sw-succeed{fill:#dcf6e3;stroke:#1a7f37}.sw-fail{fill:#ffe3e1;stroke:#c0362c}.sw-frame{fill:#8191a1;fill-opacity:.09;stroke:#7d8894}.sw-behind{fill:none;stroke:#7d8894}\
.sw-name{font:600 13px system-ui,sans-serif;fill:#1f2328}.sw-about,.sw-label{font:11px system-ui,sans-serif;fill:#4c5661}\
.sw-wire{fill:none;stroke:#57606a;stroke-width:1.4}.sw-catch{stroke:#c0362c;stroke-dasharray:5 3}.sw-caught{fill:#a8281f}\
.sw-dot{fill:#57606a}.sw-ring{fill:none;stroke:#57606a;stroke-width:1.6}.sw-head{fill:#57606a}.sw-head-catch{fill:#c0362c}\
@media(prefers-color-scheme:dark){.sw-page{fill:#0f1419}.sw-box{fill:#1d242c;stroke:#9aa6b2}\
.sw-task{fill:#10304a;stroke:#58a6e8}.sw-choice{fill:#3b2f0c;stroke:#d9a520}.sw-wait{fill:#2b2043;stroke:#a98ae8}\
.sw-succeed{fill:#12351f;stroke:#4fc36f}.sw-fail{fill:#46191a;stroke:#f0716a}.sw-frame{fill:#8191a1;fill-opacity:.12;stroke:#77828e}.sw-behind{fill:none;stroke:#77828e}\
.sw-name{fill:#eef2f6}.sw-about,.sw-label{fill:#b4bec8}.sw-wire{stroke:#9aa6b2}.sw-catch{stroke:#f0716a}.sw-caught{fill:#f59a94}\
.sw-dot{fill:#9aa6b2}.sw-ring{stroke:#9aa6b2}.sw-head{fill:#9aa6b2}.sw-head-catch{fill:#f0716a}}";

/// Writes a scene.
pub(super) fn write(definition: &Definition, scene: &Scene, metrics: &Metrics) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_document(&mut out, definition, scene, metrics);
    out
}

/// A document that says one sentence.
pub(super) fn sentence(text: &str) -> String {
    let width = 24 + 8 * label::columns(text);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} 48\" width=\"{width}\" height=\"48\" role=\"img\"><style>{STYLE}</style>\
         <rect class=\"sw-page\" width=\"{width}\" height=\"48\" rx=\"6\"/><text class=\"sw-name\" x=\"12\" y=\"29\">{}</text></svg>\n",
        escaped(text)
    )
}

fn write_document(out: &mut String, definition: &Definition, scene: &Scene, metrics: &Metrics) -> std::fmt::Result {
    let (width, height) = (scene.width + 2 * MARGIN, scene.height + 2 * MARGIN);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">"
    )?;
    if let Some(comment) = &definition.comment {
        writeln!(out, "<title>{}</title>", escaped(&label::short(comment, TITLE_CHARS_MAX)))?;
    }
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(out, "<defs>")?;
    for (id, class) in [("sw-arrow", "sw-head"), ("sw-arrow-catch", "sw-head-catch")] {
        writeln!(
            out,
            "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" \
             orient=\"auto\"><path class=\"{class}\" d=\"M0 0L8 4L0 8z\"/></marker>"
        )?;
    }
    writeln!(out, "</defs>")?;
    writeln!(out, "<rect class=\"sw-page\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>")?;
    writeln!(out, "<g transform=\"translate({MARGIN} {MARGIN})\">")?;
    // Frames first, then lines, then what stands on them.
    for shape in scene.shapes.iter().filter(|shape| shape.frame) {
        if let Some(state) = definition.state(shape.state) {
            write_shape(out, state, (shape.x, shape.y, shape.width, shape.height), true, metrics)?;
        }
    }
    scene.wires.iter().try_for_each(|wire| write_wire(out, wire))?;
    for shape in scene.shapes.iter().filter(|shape| !shape.frame) {
        if let Some(state) = definition.state(shape.state) {
            write_shape(out, state, (shape.x, shape.y, shape.width, shape.height), false, metrics)?;
        }
    }
    for marker in &scene.markers {
        let (x, y) = (marker.x + metrics.marker.0 / 2, marker.y + metrics.marker.1 / 2);
        let (dot, ring) = if marker.end { (6, true) } else { (8, false) };
        writeln!(out, "<g><title>{}</title>", if marker.end { "end" } else { "start" })?;
        if ring {
            writeln!(out, "<circle class=\"sw-ring\" cx=\"{x}\" cy=\"{y}\" r=\"10\"/>")?;
        }
        writeln!(out, "<circle class=\"sw-dot\" cx=\"{x}\" cy=\"{y}\" r=\"{dot}\"/></g>")?;
    }
    for label in &scene.labels {
        let class = if label.dashed { "sw-label sw-caught" } else { "sw-label" };
        let (x, y) = (label.x + 6, label.y + 13);
        writeln!(
            out,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"><title>{}</title>{}</text>",
            escaped(&label.title),
            escaped(&label.text)
        )?;
    }
    writeln!(out, "</g>\n</svg>")
}

fn write_shape(
    out: &mut String,
    state: &State,
    (x, y, width, height): (i64, i64, i64, i64),
    frame: bool,
    metrics: &Metrics,
) -> std::fmt::Result {
    let class = match &state.kind {
        Kind::Task(_) => "sw-task",
        Kind::Choice { .. } => "sw-choice",
        Kind::Wait(_) => "sw-wait",
        Kind::Succeed => "sw-succeed",
        Kind::Fail { .. } => "sw-fail",
        Kind::Parallel { .. } | Kind::Map(_) => "sw-frame",
        Kind::Pass { .. } => "",
    };
    let (name, about) = texts(state, metrics);
    let title = format!("{}: {}", state.name, label::about(state));
    writeln!(out, "<g><title>{}</title>", escaped(&label::short(&title, TITLE_CHARS_MAX)))?;
    let corner = if frame { 12 } else { 7 };
    if matches!(state.kind, Kind::Map(_)) {
        // A second one behind it: there are many.
        writeln!(
            out,
            "<rect class=\"sw-box sw-behind\" x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" rx=\"{corner}\"/>",
            x + 4,
            y + 4
        )?;
    }
    writeln!(out, "<rect class=\"sw-box {class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{corner}\"/>")?;
    let middle = x + width / 2;
    writeln!(out, "<text class=\"sw-name\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>", y + 20, escaped(&name))?;
    writeln!(
        out,
        "<text class=\"sw-about\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>",
        y + 36,
        escaped(&about)
    )
}

/// A line with round corners.
fn write_wire(out: &mut String, wire: &Wire) -> std::fmt::Result {
    let (class, head) = if wire.dashed { ("sw-wire sw-catch", "sw-arrow-catch") } else { ("sw-wire", "sw-arrow") };
    write!(out, "<path class=\"{class}\" d=\"")?;
    for (at, point) in wire.points.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| wire.points.get(at));
        match (before, wire.points.get(at + 1)) {
            (None, _) => write!(out, "M{} {}", point.0, point.1)?,
            (Some(_), None) => write!(out, "L{} {}", point.0, point.1)?,
            (Some(before), Some(after)) => {
                let (from, to) = (towards(*point, *before), towards(*point, *after));
                write!(out, "L{} {}Q{} {} {} {}", from.0, from.1, point.0, point.1, to.0, to.1)?;
            }
        }
    }
    if wire.arrow { writeln!(out, "\" marker-end=\"url(#{head})\"/>") } else { writeln!(out, "\"/>") }
}

/// A point a little from a corner to another one, at most half of the way.
fn towards((x, y): (i64, i64), (to_x, to_y): (i64, i64)) -> (i64, i64) {
    let part = |from: i64, to: i64| from + (to - from).signum() * ((to - from).abs() / 2).min(RADIUS);
    (part(x, to_x), part(y, to_y))
}

/// Text for XML, between tags and in quotes. Characters that XML has not are replaced.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
