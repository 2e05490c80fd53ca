//! Limits of an execution: named constants, and those that the caller may change.

use serde::{Deserialize, Serialize};

/// Bytes of JSON that a state takes or gives, as Step Functions has it.
pub const DATA_BYTES_MAX: usize = 262_144;
/// Events of a recorded history, as Step Functions has it.
pub const HISTORY_EVENTS_MAX: u64 = 25_000;
/// Transitions that one step carries out before it yields.
pub const TRANSITIONS_PER_STEP: u32 = 1_000;
/// Iterations of a Map that run at once, where `MaxConcurrency` does not say less; as Step Functions has it for inline Maps.
pub const ITERATIONS_AT_ONCE: u32 = 40;
/// Items of one Map.
pub const ITEMS_MAX: usize = 100_000;
/// Branches and iterations of one execution that are alive at once.
pub const FRAMES_MAX: usize = 2_048;
/// Bytes of JSON of all results of one Parallel or Map. They become the state's output only if they are within [`DATA_BYTES_MAX`], or are kept by a `ResultWriter`.
pub const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Bytes of the names under which a `ResultWriter` keeps its files.
pub const PREFIX_BYTES_MAX: usize = 512;
/// Seconds that a Wait may last from now: 68 years, as Step Functions has it.
pub const WAIT_SECONDS_MAX: i64 = 2_147_483_647;
/// Variables of one scope.
pub const VARIABLES_MAX: usize = 1_000;
/// Bytes of JSON of all variables of one execution, as Step Functions has it.
pub const VARIABLES_BYTES_MAX: usize = 10 << 20;
/// Steps of one JSONata expression.
pub const EXPRESSION_STEPS_MAX: u64 = 1_000_000;
/// Nested evaluations of one JSONata expression: some 512 KiB of stack in an optimised build.
pub const EXPRESSION_DEPTH_MAX: u32 = 256;
/// Bytes that the values of one JSONata evaluation hold at the same time.
pub const EXPRESSION_BYTES_MAX: usize = 16 << 20;
/// Bytes of an error's name and of its cause; longer ones are cut, as Step Functions does.
pub const ERROR_BYTES_MAX: usize = 256;
/// See [`ERROR_BYTES_MAX`].
pub const CAUSE_BYTES_MAX: usize = 32_768;
/// Differences that are told of a definition by which an execution cannot go on.
pub const MISFITS_MAX: usize = 10;

/// What the caller may change for an execution. They are part of it: a checkpoint goes on under the same limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// [`DATA_BYTES_MAX`].
    pub data_bytes: usize,
    /// [`HISTORY_EVENTS_MAX`]: for executions whose history is recorded.
    pub history_events: u64,
    /// [`TRANSITIONS_PER_STEP`], at least 1.
    pub transitions_per_step: u32,
    /// [`ITERATIONS_AT_ONCE`], at least 1.
    pub iterations_at_once: u32,
    /// [`ITEMS_MAX`].
    pub items: usize,
    /// [`FRAMES_MAX`].
    pub frames: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            data_bytes: DATA_BYTES_MAX,
            history_events: HISTORY_EVENTS_MAX,
            transitions_per_step: TRANSITIONS_PER_STEP,
            iterations_at_once: ITERATIONS_AT_ONCE,
            items: ITEMS_MAX,
            frames: FRAMES_MAX,
        }
    }
}
