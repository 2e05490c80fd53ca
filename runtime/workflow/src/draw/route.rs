//! Lines between layers: horizontal parts on tracks in the gaps, and lanes right of all boxes for edges that go back or far. No line crosses a box.

use super::graph::Node;
use super::layers::{Layers, Piece, What};
use super::limits::{COMPARED_MAX, LANES_MAX};
use super::metrics::Metrics;

/// A horizontal part in a gap, from the place of its upper end to that of its lower end.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    piece: usize,
    upper: i64,
    lower: i64,
    /// Of a lane: the end at its target.
    arrives: bool,
}

/// Where lines run.
#[derive(Debug)]
pub(super) struct Routes {
    /// Upper edges of layers.
    pub(super) tops: Vec<i64>,
    pub(super) heights: Vec<i64>,
    pub(super) width: i64,
    pub(super) height: i64,
    snap: i64,
    /// By piece: `y` of its horizontal part; of a lane: of the two, and its `x`.
    tracks: Vec<(i64, i64, i64)>,
}

/// Where a piece leaves a vertex below, and enters one above. What is almost straight is straight, where one end is at a box, which has room beside the port.
fn ports(layers: &Layers, number: usize, piece: Piece, snap: i64) -> (i64, i64) {
    let leave = layers.vertices.get(piece.from).map_or(0, |vertex| {
        let at = vertex.below.iter().position(|own| *own == number).unwrap_or(0);
        vertex.x + vertex.port(at, true)
    });
    let enter = layers.vertices.get(piece.to).map_or(0, |vertex| {
        let at = vertex.above.iter().position(|own| *own == number).unwrap_or(0);
        vertex.x + vertex.port(at, false)
    });
    // The end that moves is at a state's box, and moves by less than half of the way to the next port.
    let moves = |at: usize, below: bool| {
        layers.vertices.get(at).filter(|vertex| matches!(vertex.what, What::Node(Node::State(_)))).is_some_and(|vertex| {
            let count = if below { vertex.below.len() } else { vertex.above.len() } as i64;
            (leave - enter).abs() <= snap.min(vertex.width / (count + 1) / 2 - 1)
        })
    };
    match (piece.lane, moves(piece.from, true), moves(piece.to, false)) {
        (false, _, true) => (leave, leave),
        (false, true, false) => (enter, enter),
        _ => (leave, enter),
    }
}

impl Routes {
    /// Finds tracks and lanes for all pieces, and the heights of gaps for them.
    pub(super) fn new(layers: &Layers, metrics: &Metrics, width: i64) -> Self {
        let count = layers.layers.len();
        let layer_of = |at: usize| layers.vertices.get(at).map_or(0, |vertex| vertex.layer);
        let (lanes, lane_count) = lanes(layers, layer_of);
        let lane_x = |lane: usize| width + metrics.lane * (lane as i64 + 1);
        // The gap `n` lies above the layer `n`.
        let mut gaps: Vec<Vec<Crossing>> = vec![Vec::new(); count + 1];
        for (number, piece) in layers.pieces.iter().enumerate() {
            let (leave, enter) = ports(layers, number, *piece, metrics.snap);
            let mut put = |gap: usize, upper, lower, arrives| {
                if let Some(gap) = gaps.get_mut(gap) {
                    gap.push(Crossing { piece: number, upper, lower, arrives });
                }
            };
            if piece.lane {
                let lane = lane_x(lanes.get(number).copied().unwrap_or(0));
                put(layer_of(piece.from) + 1, leave, lane, false);
                put(layer_of(piece.to), lane, enter, true);
            } else if leave != enter {
                put(layer_of(piece.to), leave, enter, false);
            }
        }
        let mut tracks = vec![(0, 0, 0); layers.pieces.len()];
        let (mut tops, mut heights) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut y = 0;
        for (at, gap) in gaps.iter_mut().enumerate() {
            let assigned = assign(gap);
            let used = assigned.iter().map(|track| track + 1).max().unwrap_or(0);
            for (crossing, track) in gap.iter().zip(&assigned) {
                let Some(place) = tracks.get_mut(crossing.piece) else { continue };
                let own = y + metrics.track.0 + metrics.track.1 * *track as i64;
                if crossing.arrives { place.1 = own } else { place.0 = own }
            }
            let inner = at > 0 && at < count;
            if inner || used > 0 {
                y += metrics.track.0 + metrics.track.1 * used as i64 + if at < count { metrics.track.2 } else { 0 };
            }
            if let Some(layer) = layers.layers.get(at) {
                let height = layer.iter().filter_map(|at| layers.vertices.get(*at)).map(|it| it.height).max().unwrap_or(0);
                tops.push(y);
                heights.push(height);
                y += height;
            }
        }
        for (number, place) in tracks.iter_mut().enumerate() {
            place.2 = lane_x(lanes.get(number).copied().unwrap_or(0));
        }
        let width = if lane_count > 0 { lane_x(lane_count - 1) + 1 } else { width };
        Self { tops, heights, width, height: y, snap: metrics.snap, tracks }
    }

    /// The line of a piece, from the lower edge of its first vertex to the upper edge of its second.
    pub(super) fn points(&self, layers: &Layers, number: usize, tops: impl Fn(usize) -> (i64, i64)) -> Vec<(i64, i64)> {
        let Some(piece) = layers.pieces.get(number) else { return Vec::new() };
        let (leave, enter) = ports(layers, number, *piece, self.snap);
        let (_, start) = tops(piece.from);
        let (end, _) = tops(piece.to);
        let (track, arrival, lane) = self.tracks.get(number).copied().unwrap_or_default();
        if piece.lane {
            return vec![(leave, start), (leave, track), (lane, track), (lane, arrival), (enter, arrival), (enter, end)];
        }
        if leave == enter {
            return vec![(leave, start), (enter, end)];
        }
        vec![(leave, start), (leave, track), (enter, track), (enter, end)]
    }
}

/// The lane of each piece that has one, and how many there are. Pieces share a lane where they do not meet.
fn lanes(layers: &Layers, layer_of: impl Fn(usize) -> usize) -> (Vec<usize>, usize) {
    let mut lanes = vec![0; layers.pieces.len()];
    let mut wanted: Vec<_> = layers
        .pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| piece.lane)
        .map(|(number, piece)| {
            let (leave, enter) = (layer_of(piece.from) + 1, layer_of(piece.to));
            (leave.min(enter), leave.max(enter), number)
        })
        .collect();
    // Short ones lie near the boxes.
    wanted.sort_by_key(|(first, last, number)| (last - first, *first, *number));
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    for (first, last, number) in wanted {
        let free = |lane: &Vec<(usize, usize)>| lane.iter().all(|(other, end)| last < *other || *end < first);
        let lane = match taken.iter().position(free) {
            Some(lane) => lane,
            None if taken.len() < LANES_MAX => {
                taken.push(Vec::new());
                taken.len() - 1
            }
            None => number % LANES_MAX,
        };
        if let Some(intervals) = taken.get_mut(lane) {
            intervals.push((first, last));
        }
        if let Some(place) = lanes.get_mut(number) {
            *place = lane;
        }
    }
    (lanes, taken.len())
}

/// Gives each crossing of a gap a track, from above. Those on one track do not meet; where it can be, lines do not cross those that go the same way, and no vertical
/// part lies on another one.
fn assign(gap: &mut [Crossing]) -> Vec<usize> {
    // To the right: those that begin right come first. To the left: those that begin left.
    gap.sort_by_key(|it| if it.lower > it.upper { (0, -it.upper, it.lower) } else { (1, it.upper, it.lower) });
    if gap.len() > COMPARED_MAX {
        return (0..gap.len()).map(|at| at % LANES_MAX).collect();
    }
    let mut tracks: Vec<usize> = Vec::with_capacity(gap.len());
    for (at, it) in gap.iter().enumerate() {
        let (left, right) = (it.upper.min(it.lower), it.upper.max(it.lower));
        let rightwards = it.lower > it.upper;
        let before: Vec<_> = gap.iter().take(at).zip(&tracks).collect();
        let fits = |track: usize| {
            before.iter().all(|(other, taken)| {
                let (start, end) = (other.upper.min(other.lower), other.upper.max(other.lower));
                let apart = right < start || end < left;
                let ordered = (other.lower > other.upper) != rightwards || track > **taken;
                let above = it.lower != other.upper || track > **taken;
                let below = it.upper != other.lower || track < **taken;
                apart || (track != **taken && ordered && above && below)
            })
        };
        let free = |track: usize| {
            before.iter().all(|(other, taken)| {
                let (start, end) = (other.upper.min(other.lower), other.upper.max(other.lower));
                right < start || end < left || track != **taken
            })
        };
        let most = at + 1;
        let track = (0..=most).find(|track| fits(*track)).or_else(|| (0..=most).find(|track| free(*track))).unwrap_or(most);
        tracks.push(track);
    }
    tracks
}
