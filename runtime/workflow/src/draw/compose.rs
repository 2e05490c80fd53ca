//! A definition as a scene: each machine is laid out, then put into the frame of its Parallel or Map.

use super::graph::{Graph, Node};
use super::label;
use super::layers::{Layers, What};
use super::metrics::Metrics;
use super::route::Routes;
use super::scene::{Label, Marker, Scene, Shape, Wire};
use super::{columns, limits::TITLE_CHARS_MAX};
use crate::definition::{Definition, Kind, MachineIndex, State, StateIndex};

/// A definition and its states by machine.
pub(super) struct Composer<'d> {
    definition: &'d Definition,
    metrics: Metrics,
    states: Vec<Vec<StateIndex>>,
}

impl<'d> Composer<'d> {
    pub(super) fn new(definition: &'d Definition, metrics: Metrics) -> Self {
        let mut states: Vec<Vec<StateIndex>> = Vec::new();
        for (state, number) in definition.states().iter().zip(0..) {
            let machine = state.machine.0 as usize;
            if states.len() <= machine {
                states.resize(machine + 1, Vec::new());
            }
            if let Some(list) = states.get_mut(machine) {
                list.push(StateIndex(number));
            }
        }
        Self { definition, metrics, states }
    }

    /// The whole.
    pub(super) fn scene(&self) -> Scene {
        self.machine(Definition::top(), true)
    }

    /// One machine. Recurses as deep as Parallel and Map lie in each other, which the definition bounds.
    fn machine(&self, index: MachineIndex, markers: bool) -> Scene {
        let Some(machine) = self.definition.machine(index) else { return Scene::default() };
        let own = self.states.get(index.0 as usize).map_or(&[][..], Vec::as_slice);
        let graph = Graph::new(self.definition, machine, own, markers);
        let mut inner: Vec<_> = graph.nodes.iter().map(|node| self.inner(*node)).collect();
        let size = |at: usize| inner.get(at).map_or((0, 0), |(width, height, _)| (*width, *height));
        let mut layers = Layers::new(&graph, &self.metrics, size);
        let width = columns::place(&mut layers, &self.metrics);
        let routes = Routes::new(&layers, &self.metrics, width);
        let mut scene = Scene { width: routes.width, height: routes.height, ..Scene::default() };
        // Upper and lower edge of a vertex: in the middle of its layer. A bend is as high as its layer.
        let edges = |at: usize| {
            let Some(vertex) = layers.vertices.get(at) else { return (0, 0) };
            let top = routes.tops.get(vertex.layer).copied().unwrap_or(0);
            let height = routes.heights.get(vertex.layer).copied().unwrap_or(0);
            match vertex.what {
                What::Node(_) => {
                    let free = (height - vertex.height) / 2;
                    (top + free, top + free + vertex.height)
                }
                What::Label(_) | What::Bend => (top, top + height),
            }
        };
        for (number, piece) in layers.pieces.iter().enumerate() {
            let ends = layers.vertices.get(piece.to).is_some_and(|vertex| matches!(vertex.what, What::Node(_)));
            let dashed = graph.edges.get(piece.edge).is_some_and(|edge| edge.dashed);
            scene.wires.push(Wire { points: routes.points(&layers, number, edges), dashed, arrow: ends });
        }
        for (at, vertex) in layers.vertices.iter().enumerate() {
            let (y, bottom) = edges(at);
            match &vertex.what {
                What::Bend => scene.wires.push(self.through(&layers, &graph, at, (y, bottom))),
                What::Label(text) => {
                    scene.wires.push(self.through(&layers, &graph, at, (y, bottom)));
                    let edge = vertex.above.first().and_then(|piece| layers.pieces.get(*piece));
                    let edge = edge.and_then(|piece| graph.edges.get(piece.edge));
                    let title = edge.map(|edge| label::short(&edge.label, TITLE_CHARS_MAX)).unwrap_or_default();
                    let y = y + (bottom - y - vertex.height) / 2;
                    let dashed = edge.is_some_and(|edge| edge.dashed);
                    scene.labels.push(Label { x: vertex.x, y, text: text.clone(), title, dashed });
                }
                What::Node(node @ (Node::Start | Node::End)) => {
                    scene.markers.push(Marker { x: vertex.x, y, end: *node == Node::End });
                }
                What::Node(Node::State(state)) => {
                    let content = inner.get_mut(at).and_then(|(_, _, content)| content.take());
                    let frame = content.is_some();
                    let shape = Shape { x: vertex.x, y, width: vertex.width, height: vertex.height, state: *state, frame };
                    scene.shapes.push(shape);
                    if let Some(content) = content {
                        // A title may be wider than what is in the frame.
                        scene.put(content, vertex.x, y);
                    }
                }
            }
        }
        scene
    }

    /// The line through a label or bend.
    fn through(&self, layers: &Layers, graph: &Graph, at: usize, (top, bottom): (i64, i64)) -> Wire {
        let x = layers.vertices.get(at).map_or(0, |vertex| vertex.x);
        let piece = layers.vertices.get(at).and_then(|vertex| vertex.above.first()).and_then(|piece| layers.pieces.get(*piece));
        let dashed = piece.and_then(|piece| graph.edges.get(piece.edge)).is_some_and(|edge| edge.dashed);
        Wire { points: vec![(x, top), (x, bottom)], dashed, arrow: false }
    }

    /// The size of a node, and what is in its frame.
    fn inner(&self, node: Node) -> (i64, i64, Option<Scene>) {
        let metrics = &self.metrics;
        let Node::State(index) = node else { return (metrics.marker.0, metrics.marker.1, None) };
        let Some(state) = self.definition.state(index) else { return (metrics.box_min, metrics.box_height, None) };
        let width = self.text_width(state);
        let machines: Vec<_> = match &state.kind {
            Kind::Parallel { branches, .. } => branches.clone(),
            Kind::Map(map) => vec![map.processor],
            _ => return (width, metrics.box_height, None),
        };
        let scenes: Vec<_> = machines.iter().map(|machine| self.machine(*machine, false)).collect();
        let (side, above, below) = metrics.frame_pad;
        let between = metrics.branches * (scenes.len() as i64 - 1).max(0);
        let sum = |size: fn(&Scene) -> i64| scenes.iter().map(size).sum::<i64>() + between;
        let most = |size: fn(&Scene) -> i64| scenes.iter().map(size).max().unwrap_or(0);
        let (inner_width, inner_height) =
            if metrics.stacked { (most(|it| it.width), sum(|it| it.height)) } else { (sum(|it| it.width), most(|it| it.height)) };
        let full = (inner_width + 2 * side).max(width);
        let mut content = Scene::default();
        let (mut x, mut y) = ((full - inner_width) / 2, above);
        for scene in scenes {
            let (own_width, own_height) = (scene.width, scene.height);
            if metrics.stacked {
                content.put(scene, x + (inner_width - own_width) / 2, y);
                y += own_height + metrics.branches;
            } else {
                content.put(scene, x, y);
                x += own_width + metrics.branches;
            }
        }
        (full, inner_height + above + below, Some(content))
    }

    /// The width of a box for its texts.
    fn text_width(&self, state: &State) -> i64 {
        let metrics = &self.metrics;
        let (name, about) = texts(state, metrics);
        let of = |text: &str, milli: i64| label::columns(text) as i64 * milli / 1_000;
        let text = if metrics.one_line {
            of(&name, metrics.name_char_milli) + of(&about, metrics.name_char_milli) + 3
        } else {
            of(&name, metrics.name_char_milli).max(of(&about, metrics.label_char_milli))
        };
        (text + metrics.box_pad).max(metrics.box_min)
    }
}

/// The name and the type of a state, cut. In one line there is room for the type alone.
pub(super) fn texts(state: &State, metrics: &Metrics) -> (String, String) {
    let name = label::short(&state.name, metrics.name_chars);
    let about =
        if metrics.one_line { state.kind.name().to_owned() } else { label::short(&label::about(state), metrics.label_chars) };
    (name, about)
}
