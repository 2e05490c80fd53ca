//! What one evaluation may use. Each limit is a count, so the same expression on the same input fails or succeeds everywhere.

/// Evaluation steps: nodes of the expression, elements, and [`BYTES_PER_STEP`] bytes of text. Ten million take about a second.
pub const STEPS_DEFAULT: u64 = 10_000_000;
/// Nested evaluations. A recursive function that is not tail-recursive uses about three for each call. See [`STACK_BYTES`].
pub const DEPTH_DEFAULT: u32 = 512;
/// Bytes that values of one evaluation hold at the same time.
pub const BYTES_DEFAULT: usize = 64 << 20;
/// Characters of one expression's source. Its tree takes up to 300 bytes for each of them.
pub const SOURCE_DEFAULT: usize = 64 << 10;

/// Nesting of an expression's source, and of a regular expression's. It bounds the recursion of parsers and of what walks their trees.
pub const NESTING_MAX: u32 = 256;
/// Nesting of JSON that an expression reads or gives: twice that of `serde_json`'s own parser.
pub const JSON_NESTING_MAX: u32 = 256;
/// Elements of a sequence that the range operator makes (JSONata's own limit).
pub const RANGE_MAX: f64 = 1e7;
/// Bytes of text that count as one step.
pub const BYTES_PER_STEP: usize = 64;

/// Stack that an evaluation of the default depth needs.
pub const STACK_BYTES: usize = if cfg!(debug_assertions) { 32 << 20 } else { 3 << 19 };

/// The limits of one parse or evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Evaluation steps, [`STEPS_DEFAULT`].
    pub steps: u64,
    /// Nested evaluations, [`DEPTH_DEFAULT`].
    pub depth: u32,
    /// Bytes that values hold at the same time, [`BYTES_DEFAULT`]. Unreachable values that refer to themselves (recursive local functions) count until the end.
    pub bytes: usize,
    /// Characters of source, [`SOURCE_DEFAULT`].
    pub source: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: STEPS_DEFAULT, depth: DEPTH_DEFAULT, bytes: BYTES_DEFAULT, source: SOURCE_DEFAULT }
    }
}
