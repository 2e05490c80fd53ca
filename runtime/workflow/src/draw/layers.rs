//! Layers: each edge leads from a layer to the next one, over bends and its label; and the order of vertices in their layers.

use super::graph::{Graph, Node};
use super::label;
use super::limits::{BENDS_MAX, COMPARED_MAX, ORDER_ROUNDS, PASSED_LAYERS_MAX};
use super::metrics::Metrics;

/// What stands in a layer.
#[derive(Clone, Debug)]
pub(super) enum What {
    Node(Node),
    /// Of an edge.
    Label(String),
    Bend,
}

/// Something in a layer.
#[derive(Clone, Debug)]
pub(super) struct Vertex {
    pub(super) what: What,
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) layer: usize,
    /// The left edge.
    pub(super) x: i64,
    /// The edges in it from above, and out of it to below, from left to right: numbers of pieces.
    pub(super) above: Vec<usize>,
    pub(super) below: Vec<usize>,
    /// Of those above and below: the place of the only one that is neither dashed nor a lane. It meets the vertex in the middle.
    mains: [Option<usize>; 2],
}

/// A piece of an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Which edge.
    pub(super) edge: usize,
    /// It goes around all boxes, and does not lead to the next layer.
    pub(super) lane: bool,
    /// Of a catcher.
    pub(super) dashed: bool,
}

/// The layers of a graph. The first vertices are its nodes.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) vertices: Vec<Vertex>,
    pub(super) pieces: Vec<Piece>,
    pub(super) layers: Vec<Vec<usize>>,
}

impl Vertex {
    /// Where the `at`th edge above or below meets it, from its left edge. The line of a label stands left of its text.
    pub(super) fn port(&self, at: usize, below: bool) -> i64 {
        if !matches!(self.what, What::Node(_)) {
            return 0;
        }
        let count = if below { self.below.len() } else { self.above.len() } as i64;
        let (at, half) = (at as i64, self.width / 2);
        match self.mains[usize::from(below)].map(|main| main as i64) {
            Some(main) if at < main => half * (at + 1) / (main + 1),
            Some(main) => half + (self.width - half) * (at - main) / (count - main),
            None => self.width * (at + 1) / (count + 1),
        }
    }
}

impl Layers {
    /// Layers of a graph; `size` gives the width and height of a node.
    pub(super) fn new(graph: &Graph, metrics: &Metrics, size: impl Fn(usize) -> (i64, i64)) -> Self {
        let mut vertices: Vec<_> =
            graph.nodes.iter().enumerate().map(|(at, node)| vertex(What::Node(*node), size(at), 0)).collect();
        for node in &graph.order {
            let layer = vertices.get(*node).map_or(0, |vertex| vertex.layer);
            // The edges of a node lie near each other, but not in a row: a list by node is not worth its room here.
            for edge in graph.edges.iter().filter(|edge| edge.from == *node && !edge.back) {
                let after = layer + if edge.label.is_empty() { 1 } else { 2 };
                if let Some(to) = vertices.get_mut(edge.to) {
                    to.layer = to.layer.max(after);
                }
            }
        }
        let mut layers = Self { vertices, pieces: Vec::new(), layers: Vec::new() };
        layers.lead(graph, metrics);
        layers.fill(graph);
        layers.order();
        layers
    }

    /// Leads edges from layer to layer.
    fn lead(&mut self, graph: &Graph, metrics: &Metrics) {
        let mut bends = 0;
        for (number, edge) in graph.edges.iter().enumerate() {
            let layer_of = |at: usize| self.vertices.get(at).map_or(0, |vertex| vertex.layer);
            let (first, last) = (layer_of(edge.from), layer_of(edge.to));
            let passed = last.saturating_sub(first + 1);
            let lane = edge.back || passed > PASSED_LAYERS_MAX || bends + passed > BENDS_MAX;
            let mut from = edge.from;
            let mut layer = first;
            if !edge.label.is_empty() {
                layer += 1;
                let text = label::short(&edge.label, metrics.label_chars);
                let width = label::columns(&text) as i64 * metrics.label_char_milli / 1_000 + metrics.label_pad;
                from = self.after(from, (number, edge.dashed), vertex(What::Label(text), (width, metrics.label_height), layer));
            }
            if !lane {
                bends += passed;
                while layer + 1 < last {
                    layer += 1;
                    from = self.after(from, (number, edge.dashed), vertex(What::Bend, (1, 0), layer));
                }
            }
            self.join(from, edge.to, (number, edge.dashed), lane);
        }
    }

    /// Puts a vertex after another one, and gives its number.
    fn after(&mut self, from: usize, edge: (usize, bool), vertex: Vertex) -> usize {
        let at = self.vertices.len();
        self.vertices.push(vertex);
        self.join(from, at, edge, false);
        at
    }

    fn join(&mut self, from: usize, to: usize, (edge, dashed): (usize, bool), lane: bool) {
        let piece = self.pieces.len();
        self.pieces.push(Piece { from, to, edge, lane, dashed });
        if let Some(vertex) = self.vertices.get_mut(from) {
            vertex.below.push(piece);
        }
        if let Some(vertex) = self.vertices.get_mut(to) {
            vertex.above.push(piece);
        }
    }

    /// Puts vertices into layers, nodes in the order in which they are reached.
    fn fill(&mut self, graph: &Graph) {
        let count = self.vertices.iter().map(|vertex| vertex.layer + 1).max().unwrap_or(0);
        self.layers = vec![Vec::new(); count];
        for at in graph.order.iter().copied().chain(graph.nodes.len()..self.vertices.len()) {
            if let Some(layer) = self.vertices.get(at).and_then(|vertex| self.layers.get_mut(vertex.layer)) {
                layer.push(at);
            }
        }
    }

    /// Orders each layer by the mean place of its neighbours, from above and from below in turn, and keeps the order with the fewest crossings.
    fn order(&mut self) {
        for at in 0..self.layers.len() {
            let mut layer = self.layers.get_mut(at).map(std::mem::take).unwrap_or_default();
            layer.sort_by_key(|vertex| self.turns(*vertex));
            if let Some(place) = self.layers.get_mut(at) {
                *place = layer;
            }
        }
        let mut best = (self.crossings(), self.layers.clone());
        for round in 0..ORDER_ROUNDS {
            if best.0 == 0 {
                break;
            }
            let mut places: Vec<f64> = self.places().into_iter().map(|place| place as f64).collect();
            let downwards = round % 2 == 0;
            let count = self.layers.len();
            for step in 0..count {
                let at = if downwards { step } else { count - 1 - step };
                let Some(mut layer) = self.layers.get_mut(at).map(std::mem::take) else { continue };
                let mut keyed: Vec<_> =
                    layer.iter().map(|at| (self.mean(*at, downwards, &places), self.turns(*at), *at)).collect();
                keyed.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
                layer = keyed.into_iter().map(|(.., vertex)| vertex).collect();
                for (place, at) in layer.iter().enumerate() {
                    if let Some(own) = places.get_mut(*at) {
                        *own = place as f64;
                    }
                }
                if let Some(place) = self.layers.get_mut(at) {
                    *place = layer;
                }
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
        self.sort_ports();
    }

    /// Whether an edge goes on from a label to the lanes: it stands right of its neighbours.
    fn turns(&self, at: usize) -> bool {
        let below = self.vertices.get(at).filter(|vertex| !matches!(vertex.what, What::Node(_))).map(|vertex| &vertex.below);
        below.and_then(|below| below.first()).and_then(|piece| self.pieces.get(*piece)).is_some_and(|piece| piece.lane)
    }

    /// The mean place of the neighbours above or below; its own without any.
    fn mean(&self, vertex: usize, above: bool, places: &[f64]) -> f64 {
        let own = places.get(vertex).copied().unwrap_or(0.0);
        let Some(it) = self.vertices.get(vertex) else { return own };
        let pieces = if above { &it.above } else { &it.below };
        let neighbours = pieces.iter().filter_map(|piece| self.pieces.get(*piece)).filter(|piece| !piece.lane);
        let (sum, count) = neighbours.fold((0.0, 0.0), |(sum, count), piece| {
            let other = if above { piece.from } else { piece.to };
            (sum + places.get(other).copied().unwrap_or(0.0), count + 1.0)
        });
        if count > 0.0 { sum / count } else { own }
    }

    /// By vertex: its place in its layer.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.vertices.len()];
        for (place, at) in self.layers.iter().flat_map(|layer| layer.iter().enumerate()) {
            if let Some(own) = places.get_mut(*at) {
                *own = place;
            }
        }
        places
    }

    /// How often pieces cross; of gaps with very many pieces nothing is said.
    fn crossings(&self) -> usize {
        let places = self.places();
        let mut sum = 0;
        for layer in &self.layers {
            let pieces: Vec<_> = layer
                .iter()
                .filter_map(|at| self.vertices.get(*at))
                .flat_map(|vertex| &vertex.below)
                .filter_map(|piece| self.pieces.get(*piece))
                .filter(|piece| !piece.lane)
                .filter_map(|piece| Some((*places.get(piece.from)?, *places.get(piece.to)?)))
                .collect();
            if pieces.len() > COMPARED_MAX {
                continue;
            }
            for (at, left) in pieces.iter().enumerate() {
                let crossed =
                    |right: &&(usize, usize)| (left.0 < right.0 && left.1 > right.1) || (left.0 > right.0 && left.1 < right.1);
                sum += pieces.iter().skip(at + 1).filter(crossed).count();
            }
        }
        sum
    }

    /// Orders the pieces of each vertex as their other ends lie. Lanes lie on the right.
    fn sort_ports(&mut self) {
        let places = self.places();
        let pieces = &self.pieces;
        let key = |piece: &usize, below: bool| {
            let piece = pieces.get(*piece).copied();
            piece.map_or((true, 0), |it| (it.lane, places.get(if below { it.to } else { it.from }).copied().unwrap_or(0)))
        };
        for vertex in &mut self.vertices {
            vertex.below.sort_by_key(|piece| key(piece, true));
            vertex.above.sort_by_key(|piece| key(piece, false));
            vertex.mains = [&vertex.above, &vertex.below].map(|own| {
                let mut plain = own
                    .iter()
                    .enumerate()
                    .filter(|(_, piece)| pieces.get(**piece).is_some_and(|piece| !piece.lane && !piece.dashed));
                plain.next().filter(|_| plain.next().is_none()).map(|(at, _)| at)
            });
        }
    }
}

const fn vertex(what: What, (width, height): (i64, i64), layer: usize) -> Vertex {
    Vertex { what, width, height, layer, x: 0, above: Vec::new(), below: Vec::new(), mains: [None; 2] }
}
