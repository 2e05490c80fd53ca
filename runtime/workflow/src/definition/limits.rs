//! Limits of a definition, in one place. A definition that is past one is refused when it is read, with the name of the limit.

/// Bytes of a definition's text, as Step Functions has it.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Characters of a state's name (States Language, "States": 80 Unicode characters).
pub const STATE_NAME_CHARS_MAX: usize = 80;
/// Characters of a variable's name, as Step Functions has it.
pub const VARIABLE_NAME_CHARS_MAX: usize = 80;
/// How deep `Parallel` and `Map` lie in each other.
pub const NESTING_MAX: usize = 16;
/// States of a definition, those of branches included.
pub const STATES_MAX: usize = 10_000;
/// Branches of one `Parallel`.
pub const BRANCHES_MAX: usize = 1_000;
/// How deep Choice rules (`And`, `Or`, `Not`), templates and other values lie in each other. The reader of JSON refuses 128 itself.
pub const DEPTH_MAX: usize = 100;
/// Retriers of a state, and catchers.
pub const HANDLERS_MAX: usize = 100;
/// Seconds of `TimeoutSeconds`, `HeartbeatSeconds` and `Wait`, as Step Functions has it.
pub const SECONDS_MAX: u64 = 99_999_999;
/// Most attempts of a retrier (States Language, "Errors": `MaxAttempts`).
pub const ATTEMPTS_MAX: u64 = 99_999_999;
/// Most seconds of a retrier's `MaxDelaySeconds` (a year: 31,622,400), as Step Functions has it.
pub const DELAY_SECONDS_MAX: u64 = 31_622_400;
/// Mistakes that are reported for one definition: the first ones in the order of the text.
pub const MISTAKES_MAX: usize = 100;
/// Bytes of a piece of the definition that a message repeats.
pub const SHOWN_BYTES_MAX: usize = 120;
