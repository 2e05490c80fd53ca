//! A drawing without its form: boxes, lines and labels at their places.

use crate::definition::StateIndex;

/// A box: a state.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) state: StateIndex,
    /// It holds other boxes.
    pub(super) frame: bool,
}

/// A marker of the start or of the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marker {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) end: bool,
}

/// A line of vertical and horizontal parts.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) points: Vec<(i64, i64)>,
    pub(super) dashed: bool,
    /// It ends with an arrow.
    pub(super) arrow: bool,
}

/// What is said of a line, right of it.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) text: String,
    /// The whole text.
    pub(super) title: String,
    pub(super) dashed: bool,
}

/// All of a machine, or of several. Frames come before what is in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) shapes: Vec<Shape>,
    pub(super) markers: Vec<Marker>,
    pub(super) wires: Vec<Wire>,
    pub(super) labels: Vec<Label>,
}

impl Scene {
    /// Puts another scene into this one, moved.
    pub(super) fn put(&mut self, other: Scene, dx: i64, dy: i64) {
        self.shapes.extend(other.shapes.into_iter().map(|it| Shape { x: it.x + dx, y: it.y + dy, ..it }));
        self.markers.extend(other.markers.into_iter().map(|it| Marker { x: it.x + dx, y: it.y + dy, ..it }));
        self.labels.extend(other.labels.into_iter().map(|it| Label { x: it.x + dx, y: it.y + dy, ..it }));
        let moved = |wire: Wire| Wire { points: wire.points.iter().map(|(x, y)| (x + dx, y + dy)).collect(), ..wire };
        self.wires.extend(other.wires.into_iter().map(moved));
    }
}
