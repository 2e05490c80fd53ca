//! Tests of workflows: executions with mocked tasks and virtual time, compared with what is expected.
//!
//! ```text
//!   test file --Suite::parse--> cases --run(Definition)--> CaseResult: problems, trace
//!                                 |  machine::step <--events-- queue by virtual time <-- mocks, timers
//! ```
//!
//! A test file is JSON: `{"workflow": PATH, "cases": [CASE, ...]}`. A case has
//!
//! - `name`; `input` (default `{}`); `start`, a timestamp (2026-01-01T00:00:00Z); `seed` of all that is random (1); `comment`;
//! - `mocks` by state: an object answers all calls, an array one after the other, its last element the rest. A mock is one of `{"return": VALUE}`,
//!   `{"error": NAME, "cause": TEXT}`, `{"never": true}`, and for a task that waits for its token `{"callback": {"return": VALUE}}` or `{"callback": {"error": NAME}}`. With `after_s`
//!   it takes time, with `beat_s` it gives signs of life meanwhile, with `at` it answers calls of one branch or iteration: `[1, 0]` is the first one in the second one. `return` for a
//!   task that waits for its token answers the call only, so that timeouts can be tested. Of a Map: `{"ItemReader": MOCK, "ResultWriter": MOCK}`; results are kept without a mock;
//! - `state`: this state alone. It is given `input` and `variables`, and the case ends when it is left;
//! - `stop_after_s`: the execution is stopped by then, with `stop_error` and `stop_cause`;
//! - `context`: what `execution_id`, `execution`, `role`, `workflow_id` and `workflow` are in the context object;
//! - `expect`: at least one of `output`, `error`, `cause`, `status`, `elapsed_s`, `next` (of a state alone; null for the end), `history` (all types of events), `events` (by branch
//!   and iteration, with states and outputs), `calls` (of tasks, by state). A case that gives none of `status`, `error`, `cause`, `history` and `events` expects success.
//!
//! Invariants: no clock and no I/O; the same file and definition give the same results; no file makes this code panic or go on without bound ([`limits`]).
//!
//! - [`Suite`] and `mock`, `expect`: the file; `place`, `form`, [`Problem`]: its mistakes; `play`: one case; `branch`, `event`: what happens where;
//!   [`record()`]: a test of an execution; `difference`, `trace`: for people.

mod branch;
mod difference;
mod event;
mod expect;
mod form;
pub mod limits;
mod mock;
mod place;
mod play;
mod problem;
mod record;
mod suite;
mod trace;

pub use problem::Problem;
pub use record::{RecordError, Recorded, Recording, record};
pub use suite::Suite;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// What did not come true, a line each; empty if the case passed.
    pub problems: Vec<String>,
    /// One line for each event of the history, with its virtual time.
    pub trace: Vec<String>,
    /// Virtual time at the end, in milliseconds.
    pub elapsed_ms: u64,
    /// Events that were fed into the execution.
    pub steps: usize,
}

impl CaseResult {
    /// Whether all that was expected has come true.
    #[must_use]
    pub const fn passed(&self) -> bool {
        self.problems.is_empty()
    }
}
