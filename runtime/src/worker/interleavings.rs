//! What can happen to a request in which state, and the test that shows what comes of it.
//!
//! A *tick* is the timer's signal; a *kill* is a deadline, a budget used up, a client that has gone, the server's end. A killed sandbox is never
//! resumed and never reused. Tests are in runtime/sandbox/tests/sandbox, schedule/src/core/tests, tests/e2e, tests/stress and tests/wasi; a test below looks
//! them up.
//! What is said of any instruction is tried at each of the guest's, one at a time, and at many of the host's in between.

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Where the request stands.
    pub state: &'static str,
    /// What happens then.
    pub event: &'static str,
    /// What comes of it.
    pub effect: &'static str,
    /// The test's name.
    pub test: &'static str,
}

const fn row(state: &'static str, event: &'static str, effect: &'static str, test: &'static str) -> Row {
    Row { state, event, effect, test }
}

const ANY_INSTRUCTION: &str = "a_tick_at_any_instruction_changes_nothing_and_a_kill_there_leaves_nothing";

/// All of them.
pub const TABLE: &[Row] = &[
    row("waits at its function's gate", "client gone", "its place is given to another", "a_client_that_left_makes_room"),
    row("waits in a queue", "kill", "504, never begun", "what_has_expired_is_not_run"),
    row(
        "waits in a queue",
        "an idle worker wants it",
        "moves there",
        "an_idle_worker_gets_half_of_what_has_not_begun_and_one_started_a_quantum",
    ),
    row(
        "prepared, no instruction run",
        "kill",
        "dropped",
        "sandboxes_may_be_dropped_new_prepared_in_a_host_call_returned_and_trapped",
    ),
    row("guest code", "tick", "suspended there", "an_endless_loop_is_preempted_at_every_quantum_and_can_be_killed"),
    row(
        "guest code, a known instruction",
        "tick",
        "suspended there",
        "a_signal_at_a_known_instruction_suspends_the_guest_right_there",
    ),
    row("guest code, its very first and very last instruction", "tick", "suspended there", ANY_INSTRUCTION),
    row("guest code, its very first and very last instruction", "kill", "dropped, nothing is left of it", ANY_INSTRUCTION),
    row(
        "guest code, very often",
        "tick",
        "results stay the same",
        "real_functions_compute_the_same_however_often_they_are_preempted",
    ),
    row(
        "guest code, without ticks",
        "something arrives",
        "suspended there",
        "what_arrives_interrupts_a_function_that_runs_alone",
    ),
    row("guest code, without ticks", "another thread's news", "suspended there", "what_other_functions_wait_for_interrupts_it"),
    row("guest code, without ticks", "kill", "as with ticks", "its_deadline_and_its_budget_end_it_in_time"),
    row("guest code, without ticks", "client gone", "dropped", "a_client_that_leaves_and_a_server_that_stops_end_it"),
    row("guest code, without ticks", "host call", "ticks again", "what_it_streams_is_not_kept_until_the_next_tick"),
    row(
        "about to go on without ticks",
        "something arrives",
        "does not go on",
        "a_tick_that_comes_before_a_preempted_guest_goes_on_ends_its_run_where_ticks_are_slow",
    ),
    row("memory.fill, memory.copy", "tick", "suspended in the middle", ANY_INSTRUCTION),
    row(
        "memory.fill, memory.copy",
        "kill",
        "as any guest code: within a quantum",
        "a_deadline_inside_a_large_memory_fill_is_kept",
    ),
    row("memory.fill, memory.copy", "kill, then reuse", "discarded", ANY_INSTRUCTION),
    row("memory.grow and other builtins", "tick", "suspended after it", "a_loop_of_builtins_is_preempted_too"),
    row("memory.grow, at any instruction of the host", "tick", "suspended after it", ANY_INSTRUCTION),
    row("memory.grow", "kill, then reuse", "discarded with all its pages", ANY_INSTRUCTION),
    row("host call", "tick", "noted, the call is finished", "ticks_during_host_calls_traps_and_resets_do_no_harm"),
    row("host call", "tick", "suspended when that is answered", "a_loop_of_host_calls_is_preempted_too"),
    row("host call", "kill", "dropped", "sandboxes_may_be_dropped_new_prepared_in_a_host_call_returned_and_trapped"),
    row("host call", "panic of the host", "500, others go on", "a_panic_in_a_host_call_is_a_500_and_the_server_goes_on"),
    row("host call, at any instruction of the host", "tick", "noted, the call is finished", ANY_INSTRUCTION),
    row("the stack grows", "tick", "suspended there", ANY_INSTRUCTION),
    row(
        "stack nearly used up",
        "tick",
        "stack exhausted, wherever that shows",
        "a_stack_without_room_for_the_signal_is_exhausted_wherever_that_shows",
    ),
    row("trapping", "tick", "noted, the trap counts", "ticks_during_host_calls_traps_and_resets_do_no_harm"),
    row("trapping, at any instruction of the host", "tick", "noted, the trap counts", ANY_INSTRUCTION),
    row("suspended", "resumed on another thread", "goes on there", "preempted_guests_move_between_threads"),
    row(
        "suspended",
        "moved, then a fault",
        "the new thread's signal stack",
        "a_guest_that_moved_uses_the_new_threads_signal_stack",
    ),
    row("suspended", "an idle worker wants it", "goes on there", "no_worker_idles_while_another_has_two_sandboxes"),
    row("suspended", "deadline", "504 within a quantum", "a_deadline_that_passes_is_a_504"),
    row("suspended", "budget used up", "500 within a quantum", "processor_time_beyond_the_limit_is_a_500"),
    row("suspended", "client gone", "killed at its next turn", "a_client_that_is_gone_is_not_computed_for"),
    row("suspended", "the server's end", "503 after drain_timeout_ms", "an_endless_loop_does_not_hold_up_the_end"),
    row("waits for its memory", "its time is over", "goes on", "a_guest_that_waits_leaves_the_worker_to_others"),
    row("waits for its memory", "deadline", "504", "a_guest_that_waits_beyond_its_deadline_is_a_504"),
    row("waits for its memory", "the server's end", "503 after drain_timeout_ms", "a_guest_that_waits_does_not_hold_up_the_end"),
    row("waits in a host call", "that is over", "goes on", "a_call_that_waits_is_answered_when_that_is_over"),
    row("begins to wait in a host call", "that is over", "goes on", "no_end_of_a_wait_is_missed"),
    row(
        "waits in a host call",
        "panic of the host",
        "500, others go on",
        "a_call_that_fails_in_its_wait_ends_that_request_and_no_other",
    ),
    row("waits in a host call", "deadline, client gone", "the wait is given up", "a_host_call_ends_with_its_request"),
    row(
        "waits in a host call",
        "others have something to do",
        "they do it",
        "a_thousand_calls_that_wait_leave_the_worker_to_others",
    ),
    row(
        "waits in a host call",
        "that is over, while others run",
        "its turn, as any started one",
        "what_a_blocked_task_waits_for_makes_it_ready",
    ),
    row(
        "waits, without a sandbox, for the store to confirm its answer",
        "deadline, client gone",
        "504, or 500 where the store may change something; the wait is given up",
        "a_request_that_waits_for_the_store_to_confirm_its_answer_ends_with_its_deadline_and_its_client",
    ),
    row(
        "waits, without a sandbox, for the store to confirm its answer",
        "the store says no",
        "runs, as one that has arrived",
        "what_a_run_has_written_is_written_again_with_its_answer",
    ),
    row(
        "waits for the run of an equal request",
        "that is over",
        "answered with what it wrote",
        "equal_requests_at_the_same_time_are_one_run_and_others_are_not",
    ),
    row(
        "waits for the run of an equal request",
        "that traps or is killed",
        "runs",
        "where_the_client_of_a_run_goes_or_it_traps_those_that_waited_run",
    ),
    row("waits for the run of an equal request", "half of its time is over", "runs", "requests_wait_for_half_of_their_time"),
    row(
        "waits for the run of an equal request",
        "client gone",
        "its place is given to another",
        "a_client_that_waits_and_goes_makes_room",
    ),
    row("waits for a function that it called", "deadline, kill", "both end", "a_callee_ends_with_its_caller"),
    row("over, being reset", "tick", "noted", "ticks_during_host_calls_traps_and_resets_do_no_harm"),
    row(
        "over after a trap or a kill",
        "reuse",
        "discarded",
        "what_trapped_was_killed_or_is_in_the_middle_of_something_is_discarded",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_row_has_its_test() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources = String::new();
        for folder in ["sandbox/tests/sandbox", "schedule/src/core/tests", "../tests/e2e", "../tests/stress", "../tests/wasi"] {
            for file in
                std::fs::read_dir(root.join(folder)).expect("a folder with tests").map(|file| file.expect("a file").path())
            {
                if file.extension().is_some_and(|extension| extension == "rs") {
                    sources.push_str(&std::fs::read_to_string(file).expect("a source"));
                }
            }
        }
        for Row { state, event, test, .. } in TABLE {
            assert!(sources.contains(&format!("fn {test}()")), "{state}, {event}: there is no test {test}");
        }
    }
}
