//! Limits of tests, in one place.

/// Bytes of a test file.
pub const SUITE_BYTES_MAX: usize = 16 << 20;
/// Cases of a test file.
pub const CASES_MAX: usize = 10_000;
/// Problems that are reported for one file: the first ones in the order of the text.
pub const PROBLEMS_MAX: usize = 100;
/// Events that one case feeds into its execution. A case that needs more fails.
pub const STEPS_MAX: usize = 100_000;
/// Seconds that a mock may take, and after which an execution may be stopped: some 68 years, as long as a Wait may last.
pub const AFTER_SECONDS_MAX: f64 = 2_147_483_647.0;
/// Differences that are told of one value.
pub const DIFFERENCES_MAX: usize = 10;
/// Characters of a value in a message.
pub const VALUE_CHARS_MAX: usize = 120;
/// Characters of a value in a line of the trace.
pub const TRACE_CHARS_MAX: usize = 200;
/// States that one message names.
pub const NAMED_MAX: usize = 5;
/// Branches and iterations of which differing events are told.
pub const PLACES_TOLD_MAX: usize = 10;
/// Signs of life of one mocked call. One that would give more is a mistake.
pub const BEATS_MAX: i64 = 10_000;
/// Numbers of branches and iterations in `at` of a mock: as deep as definitions nest.
pub const POSITION_MAX: usize = crate::definition::limits::NESTING_MAX;
