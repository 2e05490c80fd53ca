//! Where vertices stand in their layers: near their neighbours, in their order, and apart from each other.

use super::layers::{Layers, What};
use super::limits::PLACE_ROUNDS;
use super::metrics::Metrics;

/// Gives each vertex its `x`, from 0, and the width of all.
pub(super) fn place(layers: &mut Layers, metrics: &Metrics) -> i64 {
    for layer in layers.layers.clone() {
        let mut x = 0;
        for at in layer {
            if let Some(vertex) = layers.vertices.get_mut(at) {
                vertex.x = x;
                x += vertex.width + metrics.between;
            }
        }
    }
    let count = layers.layers.len();
    let mut round = 1;
    loop {
        let before: Vec<_> = layers.vertices.iter().map(|vertex| vertex.x).collect();
        // The last round looks at both sides.
        let last = round == PLACE_ROUNDS;
        sweep(layers, metrics, (0..count).rev().collect(), (last, true));
        sweep(layers, metrics, (0..count).collect(), (true, last));
        if last {
            break;
        }
        let rests = layers.vertices.iter().map(|vertex| vertex.x).eq(before);
        round = if rests { PLACE_ROUNDS } else { round + 1 };
    }
    straighten(layers, metrics.snap / 2);
    let left = layers.vertices.iter().map(|vertex| vertex.x).min().unwrap_or(0);
    layers.vertices.iter_mut().for_each(|vertex| vertex.x -= left);
    layers.vertices.iter().map(|vertex| vertex.x + vertex.width).max().unwrap_or(0)
}

/// Moves bends and labels that stand almost below the one before them. Between two vertices there is more room than that.
fn straighten(layers: &mut Layers, snap: i64) {
    for at in layers.layers.concat() {
        let Some(vertex) = layers.vertices.get(at).filter(|vertex| !matches!(vertex.what, What::Node(_))) else { continue };
        let before =
            vertex.above.first().and_then(|piece| layers.pieces.get(*piece)).and_then(|piece| layers.vertices.get(piece.from));
        let before = before.filter(|before| !matches!(before.what, What::Node(_)) && (before.x - vertex.x).abs() <= snap);
        let Some(x) = before.map(|before| before.x) else { continue };
        if let Some(vertex) = layers.vertices.get_mut(at) {
            vertex.x = x;
        }
    }
}

/// Places layer after layer by the neighbours above, below, or both.
fn sweep(layers: &mut Layers, metrics: &Metrics, order: Vec<usize>, (above, below): (bool, bool)) {
    for at in order {
        let Some(layer) = layers.layers.get(at).cloned() else { continue };
        let wanted: Vec<_> = layer.iter().map(|vertex| wanted(layers, *vertex, above, below)).collect();
        let widths: Vec<_> =
            layer.iter().map(|at| layers.vertices.get(*at).map_or(0, |vertex| vertex.width) + metrics.between).collect();
        for (at, x) in layer.iter().zip(apart(&wanted, &widths)) {
            if let Some(vertex) = layers.vertices.get_mut(*at) {
                vertex.x = x;
            }
        }
    }
}

/// Where a vertex would stand so that its edges are straight, and how much that matters.
fn wanted(layers: &Layers, at: usize, above: bool, below: bool) -> (f64, f64) {
    let Some(vertex) = layers.vertices.get(at) else { return (0.0, 1.0) };
    // A bend follows what is above it: otherwise a long line would go down in many small steps.
    let below = below && (!above || matches!(vertex.what, What::Node(_)));
    let (mut sum, mut weights) = (0.0, 0.0);
    for (side, pieces) in [(above, &vertex.above), (below, &vertex.below)] {
        let upwards = std::ptr::eq(pieces, &vertex.above);
        for (port, number) in pieces.iter().enumerate().filter(|_| side) {
            let Some(piece) = layers.pieces.get(*number).filter(|piece| !piece.lane) else { continue };
            let Some(other) = layers.vertices.get(if upwards { piece.from } else { piece.to }) else { continue };
            let of_other = if upwards { &other.below } else { &other.above };
            let place = of_other.iter().position(|own| own == number).unwrap_or(0);
            let x = other.x + other.port(place, upwards) - vertex.port(port, !upwards);
            let thin = |what: &What| !matches!(what, What::Node(_));
            let weight = match (thin(&vertex.what), thin(&other.what)) {
                (true, true) => 8.0,
                (false, false) => 6.0,
                _ => 3.0,
            };
            // A catcher may bend rather than the way of success.
            let weight = if piece.dashed { weight / 12.0 } else { weight };
            sum += weight * x as f64;
            weights += weight;
        }
    }
    if weights > 0.0 { (sum / weights, weights) } else { (vertex.x as f64, 0.1) }
}

/// Places as near as can be to those that are wanted (by the sum of weighted squares), in the same order, each at least its own width before the next one.
///
/// Without widths this is a monotone regression, which merges neighbours that are out of order into blocks with a common mean (pool adjacent violators; Ayer and others, 1955).
fn apart(wanted: &[(f64, f64)], widths: &[i64]) -> Vec<i64> {
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    let mut before = 0.0;
    for ((x, weight), width) in wanted.iter().zip(widths) {
        let mut block = (x - before, *weight, 1);
        while let Some(last) = blocks.last().copied().filter(|last| last.0 > block.0) {
            blocks.pop();
            let weight = last.1 + block.1;
            block = ((last.0 * last.1 + block.0 * block.1) / weight, weight, last.2 + block.2);
        }
        blocks.push(block);
        before += *width as f64;
    }
    let mut before = 0;
    let places = blocks.iter().flat_map(|(x, _, count)| std::iter::repeat_n(*x, *count));
    places
        .zip(widths)
        .map(|(x, width)| {
            // Rounding the same way keeps whole widths between neighbours.
            let place = (x + 0.5).floor() as i64 + before;
            before += width;
            place
        })
        .collect()
}
