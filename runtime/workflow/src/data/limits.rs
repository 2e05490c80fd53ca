//! Every limit of the data part, in one place.
//!
//! Two of them are defaults that the caller may change for a step: see [`Limits`](super::Limits).

/// Bytes of JSON of a value that a step makes, by default: what AWS Step Functions allows for a state's input or output.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// What the evaluation of one template may build in all, intermediate values included, as a multiple of the bytes of its output.
pub const WORK_FACTOR: usize = 4;
/// Nodes of documents that the evaluation of one path, template or rule may visit, by default: well below a tenth of a second.
pub const VISITS_MAX: usize = 500_000;
/// Bytes of text that cost a visit when a filter or a function compares or searches them.
pub const BYTES_A_VISIT: usize = 64;
/// Bytes of the JSON of a value that cost a visit when a path copies it on the way: about as much as one of its nodes has.
pub const COPIED_BYTES_A_VISIT: usize = 8;
/// How deep values may be nested that are made here. `serde_json` reads back 127 levels; the rest is left for what the caller wraps around a value.
pub const VALUE_DEPTH_MAX: usize = 100;

/// Bytes of the text of a path.
pub const PATH_BYTES_MAX: usize = 10_000;
/// Steps of a path.
pub const PATH_STEPS_MAX: usize = 256;
/// How deep parentheses, negations, lists, and paths with filters may be nested in a path.
pub const PATH_NESTING_MAX: usize = 16;
/// Bytes of a string that may be equal to a number in a filter.
pub const NUMBER_BYTES_MAX: usize = 64;
/// Bytes of a regular expression in a filter.
pub const REGEX_BYTES_MAX: usize = 1_000;
/// Bytes of memory of the smallest, the middle and the largest program that a regular expression may compile to. The larger the program, the more visits a match costs.
pub const REGEX_PROGRAM_BYTES: [usize; 3] = [2 * 1024, 16 * 1024, 128 * 1024];
/// How much more a match costs with a program of the next limit.
pub const REGEX_WEIGHT_FACTOR: usize = 8;

/// Bytes of the text of an intrinsic function, arguments included.
pub const INTRINSIC_BYTES_MAX: usize = 64 * 1024;
/// How deep intrinsic functions may be nested.
pub const INTRINSIC_DEPTH_MAX: usize = 10;
/// Intrinsic functions in one field.
pub const INTRINSIC_CALLS_MAX: usize = 100;
/// Characters that `States.Base64Encode`, `States.Base64Decode` and `States.Hash` take.
pub const INTRINSIC_TEXT_CHARS_MAX: usize = 10_000;
/// Items of an array that `States.ArrayRange` makes.
pub const ARRAY_RANGE_ITEMS_MAX: usize = 1_000;

/// How deep `And`, `Or` and `Not` may be nested in a rule of a Choice state.
pub const RULE_DEPTH_MAX: usize = 32;
/// Comparisons in one rule of a Choice state.
pub const RULE_COMPARISONS_MAX: usize = 1_000;

/// Bytes of a document that the cause of an error shows.
pub const CAUSE_DOCUMENT_BYTES_MAX: usize = 2 * 1024;
/// Characters of a name of a variable.
pub const VARIABLE_NAME_CHARS_MAX: usize = 80;
