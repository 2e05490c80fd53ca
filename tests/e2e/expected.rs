//! What users expect of a server in trouble, and the test that shows it over a real socket.

/// A situation, the answer, and its tests.
struct Expected(&'static str, &'static str, &'static [&'static str]);

const TABLE: &[Expected] = &[
    Expected(
        "function at its concurrency limit, queue full",
        "429 with Retry-After and JSON",
        &[
            "a_function_at_its_limits_answers_429_before_the_body_is_read",
            "no_more_run_at_the_same_time_than_the_limit_and_all_are_answered",
        ],
    ),
    Expected(
        "server saturated",
        "503 with Retry-After, before the body is read",
        &[
            "a_saturated_server_answers_503_before_the_body_is_read",
            "with_admission_by_utilisation_what_cannot_be_done_in_time_is_refused",
        ],
    ),
    Expected(
        "more than can be done by the deadline",
        "503 with Retry-After for what cannot be, before it runs",
        &["by_default_what_cannot_be_done_in_time_is_refused_before_it_runs"],
    ),
    Expected(
        "deadline passed, waiting included",
        "504, killed and discarded; what has expired is not run",
        &["a_deadline_that_passes_is_a_504", "what_has_expired_is_not_run", "a_guest_that_waits_beyond_its_deadline_is_a_504"],
    ),
    Expected(
        "trap, processor time, memory, stack",
        "500 with that reason; details and backtrace in the log only",
        &[
            "a_trap_is_a_500_that_names_it_and_harms_no_other_request",
            "a_trap_is_logged_with_a_backtrace",
            "processor_time_beyond_the_limit_is_a_500",
            "memory_ends_at_its_limit",
            "an_exhausted_server_answers_503_and_a_function_at_its_own_limit_500",
            "the_stack_limit_is_configurable",
        ],
    ),
    Expected("body, URL or head too large", "413, 414, 431", &["too_large_a_body_is_a_413", "long_paths_and_heads_are_refused"]),
    Expected(
        "SIGTERM",
        "not ready, nothing new, drain, status 0; a second one ends it at once",
        &[
            "health_and_readiness_are_told_apart",
            "accepted_requests_are_answered_after_sigterm",
            "http2_requests_under_way_are_answered_after_sigterm",
            "sigterm_under_load_breaks_no_reply_off",
            "an_endless_loop_does_not_hold_up_the_end",
            "a_second_sigterm_ends_it_at_once",
        ],
    ),
    Expected(
        "SIGHUP or deployment",
        "prepared aside, swapped; the old one finishes; where it fails nothing changes",
        &[
            "sighup_makes_the_functions_what_the_file_says",
            "a_request_keeps_the_version_to_which_it_was_routed",
            "a_thousand_replacements_under_load_lose_no_request_and_answer_none_wrongly",
            "a_deployment_that_fails_changes_nothing_and_says_why",
        ],
    ),
    Expected(
        "a function that keeps trapping",
        "its requests fail, others never notice",
        &["a_trap_is_a_500_that_names_it_and_harms_no_other_request", "nothing_is_left_of_a_request_that_failed"],
    ),
    Expected(
        "guest output to a terminal or the log",
        "control bytes escaped, lines limited, drops counted",
        &["what_functions_say_gives_no_orders_to_a_terminal", "standard_error_is_kept_for_each_function_and_limited"],
    ),
    Expected(
        "slow heads, bodies, readers; floods; conflicting lengths",
        "closed in time or refused, others are served",
        &[
            "clients_that_are_too_slow_are_not_waited_for",
            "slow_heads_hinder_no_other_client_and_do_not_pile_up",
            "slow_uploads_take_no_more_memory_than_there_is",
            "replies_that_no_client_reads_take_no_more_memory_than_there_is",
            "floods_of_resets_hinder_no_other_client",
            "rapid_resets_of_http2_end_that_connection_only",
            "floods_of_continuations_end_that_connection_only",
            "conflicting_lengths_hide_no_request",
            "twenty_thousand_idle_connections_cost_little_and_hinder_no_client",
        ],
    ),
    Expected("no file descriptors", "idle connections make room", &["a_server_without_file_descriptors_goes_on_serving"]),
    Expected(
        "the system refuses memory",
        "503 for those requests, wherever it was refused",
        &[
            "memory_that_the_system_refuses_costs_those_requests_only",
            "functions_share_address_space_that_suffices_for_few_of_them",
        ],
    ),
    Expected("a full disk", "deployments are refused, with the reason", &["a_full_disk_costs_deployments_and_nothing_else"]),
    Expected(
        "the compiler is killed, or the process that starts it",
        "that deployment fails; serving goes on",
        &[
            "a_compiler_that_is_killed_in_the_middle_costs_that_deployment_only",
            "without_the_process_that_starts_compilers_a_server_serves_what_it_has",
        ],
    ),
    Expected("a bug of the host", "500, that request only", &["a_panic_in_a_host_call_is_a_500_and_the_server_goes_on"]),
];

#[test]
fn every_situation_has_its_tests() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e");
    let files = std::fs::read_dir(folder).expect("the folder of these tests").map(|file| file.expect("a file").path());
    let sources: String = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    for Expected(situation, answer, tests) in TABLE {
        assert!(!tests.is_empty(), "{situation}: {answer}");
        for test in *tests {
            assert!(sources.contains(&format!("#[test]\nfn {test}()")), "{situation}: {answer}: there is no test {test}");
        }
    }
}
