//! Limits of drawings, in one place.

/// States of a definition that is drawn. The drawing of a larger one says so instead.
pub const STATES_MAX: usize = 1_000;
/// Edges of one machine that is drawn; the last ones are left out.
pub const EDGES_MAX: usize = 5_000;
/// Layers that an edge passes between boxes. A longer one goes around all boxes, as one that goes back.
pub const PASSED_LAYERS_MAX: usize = 8;
/// Bends of one machine's edges. Edges beyond go around all boxes.
pub const BENDS_MAX: usize = 4_000;
/// Lanes beside one machine, and tracks between two layers. Edges beyond share them.
pub const LANES_MAX: usize = 40;
/// Edges between two layers of which crossings and overlaps are looked for; the work grows with the square.
pub const COMPARED_MAX: usize = 300;
/// Rounds of ordering.
pub const ORDER_ROUNDS: usize = 8;
/// Rounds of placing.
pub const PLACE_ROUNDS: usize = 16;
/// Cells of a drawing as text.
pub const CELLS_MAX: usize = 4_000_000;
/// Columns in which a drawing as text fits, if it can.
pub const TEXT_COLUMNS: i64 = 100;
/// Characters of a tooltip.
pub const TITLE_CHARS_MAX: usize = 400;
