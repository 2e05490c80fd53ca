//! A scene as text with box-drawing characters.

use super::compose::texts;
use super::label;
use super::limits::CELLS_MAX;
use super::metrics::Metrics;
use super::scene::{Scene, Wire};
use crate::definition::Definition;

/// Directions of lines in a cell.
const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// Characters by directions, for lines.
const LINES: [char; 16] = [' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼'];

#[derive(Clone, Copy)]
struct Cell {
    /// Directions of lines through it.
    lines: u8,
    /// All lines through it are dashed.
    dashed: bool,
    /// A character that stands on the lines.
    shown: Option<char>,
    /// The right half of a wide character.
    covered: bool,
}

struct Canvas {
    width: usize,
    cells: Vec<Cell>,
}

/// Writes a scene; none if it is too large.
pub(super) fn write(definition: &Definition, scene: &Scene, metrics: &Metrics) -> Option<String> {
    // Lines may run one cell beside boxes.
    let width = usize::try_from(scene.width + 1).ok()?;
    let height = usize::try_from(scene.height + 1).ok()?;
    let count = width.checked_mul(height).filter(|count| *count <= CELLS_MAX)?;
    let blank = Cell { lines: 0, dashed: true, shown: None, covered: false };
    let mut canvas = Canvas { width, cells: vec![blank; count] };
    scene.wires.iter().for_each(|wire| canvas.wire(wire));
    for shape in &scene.shapes {
        let corners = if shape.frame { ['╭', '╮', '╰', '╯'] } else { ['┌', '┐', '└', '┘'] };
        canvas.border((shape.x, shape.y, shape.width, shape.height), corners);
        let Some(state) = definition.state(shape.state) else { continue };
        let (name, about) = texts(state, metrics);
        let text = format!("{name} · {about}");
        if shape.frame {
            canvas.text(shape.x + 2, shape.y, &format!(" {text} "));
        } else {
            let free = shape.width - 2 - label::columns(&text) as i64;
            canvas.text(shape.x + 1 + free / 2, shape.y + 1, &text);
        }
    }
    scene.markers.iter().for_each(|marker| canvas.text(marker.x, marker.y, if marker.end { " (end) " } else { "(start)" }));
    scene.labels.iter().for_each(|label| canvas.text(label.x + 2, label.y, &label.text));
    for wire in scene.wires.iter().filter(|wire| wire.arrow) {
        if let Some((x, y)) = wire.points.last() {
            canvas.show(*x, y - 1, '▼');
        }
    }
    Some(canvas.lines())
}

impl Canvas {
    fn cell(&mut self, x: i64, y: i64) -> Option<&mut Cell> {
        let x = usize::try_from(x).ok().filter(|x| *x < self.width)?;
        let y = usize::try_from(y).ok()?;
        self.cells.get_mut(y.checked_mul(self.width)?.checked_add(x)?)
    }

    fn show(&mut self, x: i64, y: i64, c: char) {
        if let Some(cell) = self.cell(x, y) {
            cell.shown = Some(c);
        }
    }

    fn text(&mut self, mut x: i64, y: i64, text: &str) {
        for c in text.chars() {
            let width = label::width_of(c);
            if width == 0 {
                continue;
            }
            self.show(x, y, c);
            if width == 2
                && let Some(cell) = self.cell(x + 1, y)
            {
                cell.covered = true;
            }
            x += width as i64;
        }
    }

    /// A line with directions on both sides of each step.
    fn wire(&mut self, wire: &Wire) {
        // A line ends in the cell above a box, not in its border.
        let last = wire.points.len().saturating_sub(1);
        for (at, pair) in wire.points.windows(2).enumerate() {
            let [(x1, y1), (x2, y2)] = pair else { continue };
            let y2 = if at + 1 == last { y2 - 1 } else { *y2 };
            if x1 == x2 {
                let (top, bottom) = (*y1.min(&y2), *y1.max(&y2));
                for y in top..=bottom {
                    let lines = if y > top || at == 0 { UP } else { 0 } | if y < bottom || at + 1 == last { DOWN } else { 0 };
                    self.line(*x1, y, lines, wire.dashed);
                }
            } else {
                let (left, right) = (*x1.min(x2), *x1.max(x2));
                for x in left..=right {
                    let lines = if x > left { LEFT } else { 0 } | if x < right { RIGHT } else { 0 };
                    self.line(x, *y1, lines, wire.dashed);
                }
            }
        }
    }

    fn line(&mut self, x: i64, y: i64, lines: u8, dashed: bool) {
        if let Some(cell) = self.cell(x, y) {
            cell.lines |= lines;
            cell.dashed &= dashed;
        }
    }

    fn border(&mut self, (x, y, width, height): (i64, i64, i64, i64), corners: [char; 4]) {
        let (right, bottom) = (x + width - 1, y + height - 1);
        for column in x + 1..right {
            self.show(column, y, '─');
            self.show(column, bottom, '─');
        }
        for row in y + 1..bottom {
            self.show(x, row, '│');
            self.show(right, row, '│');
        }
        let [top_left, top_right, bottom_left, bottom_right] = corners;
        self.show(x, y, top_left);
        self.show(right, y, top_right);
        self.show(x, bottom, bottom_left);
        self.show(right, bottom, bottom_right);
    }

    fn lines(&self) -> String {
        let mut out = String::new();
        for row in self.cells.chunks(self.width.max(1)) {
            let line: String = row.iter().filter(|cell| !cell.covered).map(Cell::char).collect();
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    }
}

impl Cell {
    fn char(&self) -> char {
        let lines = LINES.get(usize::from(self.lines)).copied().unwrap_or(' ');
        self.shown.unwrap_or(match (lines, self.dashed) {
            ('│', true) => '╎',
            ('─', true) => '╌',
            (other, _) => other,
        })
    }
}
