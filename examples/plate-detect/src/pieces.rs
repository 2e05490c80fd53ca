//! Pieces of connected ink that may be characters.

/// Height of a character, in pixels.
const HEIGHT_MIN: usize = 7;
const HEIGHT_MAX: usize = 90;
/// Width of a character over its height, at most.
const WIDTH_MAX: f32 = 1.1;

/// The rectangle round connected ink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) right: usize,
    pub(crate) bottom: usize,
    /// Pixels of ink in it.
    pub(crate) ink: usize,
}

impl Piece {
    /// The share of ink in the rectangle.
    pub(crate) fn fill(&self) -> f32 {
        self.ink as f32 / (self.width() * self.height())
    }

    pub(crate) fn width(&self) -> f32 {
        (self.right - self.left) as f32
    }

    pub(crate) fn height(&self) -> f32 {
        (self.bottom - self.top) as f32
    }

    /// The height of its middle.
    pub(crate) fn middle(&self) -> f32 {
        (self.top + self.bottom) as f32 / 2.0
    }
}

/// All pieces of the size of characters, from left to right. Ink that touches in a corner is connected.
pub(crate) fn find(ink: &[bool], width: usize) -> Vec<Piece> {
    let height = ink.len() / width;
    let mut seen = vec![false; ink.len()];
    let (mut pieces, mut open) = (Vec::new(), Vec::new());
    for start in 0..ink.len() {
        if !ink[start] || seen[start] {
            continue;
        }
        let (x, y) = (start % width, start / width);
        let mut piece = Piece { left: x, top: y, right: x + 1, bottom: y + 1, ink: 0 };
        seen[start] = true;
        open.push((x, y));
        while let Some((x, y)) = open.pop() {
            piece.ink += 1;
            piece.left = piece.left.min(x);
            piece.right = piece.right.max(x + 1);
            piece.bottom = piece.bottom.max(y + 1);
            piece.top = piece.top.min(y);
            for near_y in y.saturating_sub(1)..(y + 2).min(height) {
                for near_x in x.saturating_sub(1)..(x + 2).min(width) {
                    let near = near_y * width + near_x;
                    if ink[near] && !seen[near] {
                        seen[near] = true;
                        open.push((near_x, near_y));
                    }
                }
            }
        }
        let tall = (HEIGHT_MIN..=HEIGHT_MAX).contains(&(piece.bottom - piece.top));
        if tall && piece.width() <= piece.height() * WIDTH_MAX {
            pieces.push(piece);
        }
    }
    pieces.sort_by_key(|piece| (piece.left, piece.top));
    pieces
}
