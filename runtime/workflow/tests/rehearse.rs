//! Tests of workflows: what passes, what fails and with which message, and which files are refused.

mod driver;

use std::sync::Arc;

use driver::{definition, generate};
use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::rehearse::{CaseResult, Suite};

fn order() -> Arc<Definition> {
    definition(&json!({
        "StartAt": "Charge",
        "TimeoutSeconds": 99_999_999,
        "States": {
            "Charge": { "Type": "Task", "Resource": "fn:charge", "TimeoutSeconds": 30, "ResultPath": "$.charge",
                "Retry": [{ "ErrorEquals": ["Timeout"], "IntervalSeconds": 10, "MaxAttempts": 2, "BackoffRate": 2.0 }],
                "Catch": [{ "ErrorEquals": ["States.ALL"], "Next": "Refused", "ResultPath": "$.error" }], "Next": "Season" },
            "Season": { "Type": "Wait", "Seconds": 31_536_000, "Next": "Big" },
            "Big": { "Type": "Choice", "Choices": [{ "Variable": "$.amount", "NumericGreaterThan": 100, "Next": "Approve" }], "Default": "Ship" },
            "Approve": { "Type": "Task", "Resource": "fn:approve.waitForTaskToken", "TimeoutSeconds": 3600, "Next": "Ship" },
            "Ship": { "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": { "StartAt": "Pack", "States": {
                "Pack": { "Type": "Task", "Resource": "fn:pack", "End": true } } }, "End": true },
            "Refused": { "Type": "Fail", "Error": "Refused", "Cause": "no money" },
        },
    }))
}

fn run(definition: &Definition, case: Value) -> CaseResult {
    let suite = json!({ "workflow": "order.asl.json", "cases": [case] }).to_string();
    let suite = Suite::parse(&suite).unwrap_or_else(|problems| panic!("{problems:?}"));
    suite.run(definition).pop().expect("a result")
}

fn case(more: Value) -> Value {
    let mut case = json!({
        "name": "a case", "input": { "amount": 5, "items": [1, 2] },
        "mocks": { "Charge": { "return": { "ok": true } }, "Pack": [{ "return": "a" }, { "return": "b", "after_s": 2 }] },
    });
    for (key, value) in more.as_object().expect("members") {
        case[key] = value.clone();
    }
    case
}

#[test]
fn a_year_takes_no_time() {
    let result = run(
        &order(),
        case(
            json!({ "expect": { "output": ["a", "b"], "status": "SUCCEEDED", "elapsed_s": 31_536_002, "calls": { "Charge": 1, "Pack": 2, "Approve": 0 } } }),
        ),
    );
    assert_eq!(result.problems, Vec::<String>::new());
    assert!(result.passed());
    assert_eq!(result.elapsed_ms, 31_536_002_000);
    assert!(result.trace[0].starts_with("00:00:00.000 ExecutionStarted input {\"amount\":5"), "{}", result.trace[0]);
    assert!(result.trace.iter().any(|line| line == "365d 00:00:00.000 MapStateStarted of 2 items"), "{:#?}", result.trace);
}

#[test]
fn mocks_answer_one_after_the_other_and_the_last_again() {
    let mocks = |list: Value| json!({ "Charge": list, "Pack": { "return": 1 } });
    let twice = json!([{ "error": "Timeout", "cause": "slow" }, { "error": "Timeout" }, { "return": 1 }]);
    let result =
        run(&order(), case(json!({ "mocks": mocks(twice), "expect": { "elapsed_s": 31_536_030, "calls": { "Charge": 3 } } })));
    assert!(result.passed(), "{:?}", result.problems);
    let always = json!({ "error": "Timeout", "after_s": 1.5 });
    let expect =
        json!({ "error": "Refused", "cause": "no money", "status": "FAILED", "elapsed_s": 34.5, "calls": { "Charge": 3 } });
    let result = run(&order(), case(json!({ "mocks": mocks(always), "expect": expect })));
    assert!(result.passed(), "{:?}", result.problems);
    // A mock that takes longer than TimeoutSeconds: the machine's own timeout.
    let late = json!({ "return": 1, "after_s": 31 });
    let result = run(&order(), case(json!({ "mocks": mocks(late), "expect": { "error": "Refused", "elapsed_s": 30 } })));
    assert!(result.passed(), "{:?}", result.problems);
}

#[test]
fn callbacks_are_mocked() {
    let approve = |mock: Value, expect: Value| {
        let mocks = json!({ "Charge": { "return": 1 }, "Approve": mock, "Pack": { "return": 1 } });
        run(&order(), case(json!({ "input": { "amount": 500, "items": [] }, "mocks": mocks, "expect": expect })))
    };
    let result = approve(
        json!({ "callback": { "return": { "items": [7] }, "after_s": 60 }, "after_s": 1 }),
        json!({ "output": [1], "elapsed_s": 31_536_061 }),
    );
    assert!(result.passed(), "{:?}", result.problems);
    let result = approve(json!({ "callback": { "error": "No", "cause": "why" } }), json!({ "error": "No", "cause": "why" }));
    assert!(result.passed(), "{:?}", result.problems);
    // The call is answered and the callback never comes.
    let result = approve(json!({ "return": 1 }), json!({ "error": "States.Timeout", "elapsed_s": 31_539_600 }));
    assert!(result.passed(), "{:?}", result.problems);
    let endless = definition(
        &json!({ "StartAt": "A", "States": { "A": { "Type": "Task", "Resource": "fn:f.waitForTaskToken", "End": true } } }),
    );
    let result = run(&endless, json!({ "name": "n", "mocks": { "A": { "return": 1 } }, "expect": { "output": 1 } }));
    assert_eq!(result.problems.len(), 1);
    assert!(
        result.problems[0].starts_with("the execution waits for ever for the callback of \"A\": give"),
        "{:?}",
        result.problems
    );
}

/// Cases that fail: each with its messages.
#[test]
fn failures_say_what_was_expected_and_found() {
    let table = [
        (json!({ "expect": { "output": ["a", "c"] } }), vec!["output: $[1]: expected \"c\", found \"b\""]),
        (
            json!({ "expect": { "output": [1], "elapsed_s": 3 } }),
            vec![
                "output: $: expected 1 element, found 2 elements",
                "output: $[0]: expected 1, found \"a\"",
                "expected 3 s of virtual time, found 31536002 s",
            ],
        ),
        (json!({ "expect": { "error": "Refused" } }), vec!["expected the error \"Refused\", found the output [\"a\",\"b\"]"]),
        (
            json!({ "input": { "amount": 5 }, "expect": { "calls": { "Charge": 2 } } }),
            vec![
                "expected the status SUCCEEDED, found FAILED: States.Runtime: An error occurred while executing the state 'Ship' (entered at the event id #11). Invalid path '$.items' : No results for path: $['items']",
                "expected 2 calls of the task of \"Charge\", found 1",
            ],
        ),
        (
            json!({ "mocks": { "Charge": { "error": "Boom" } }, "expect": { "error": "Boom", "cause": "x", "status": "TIMED_OUT" } }),
            vec![
                "expected the status TIMED_OUT, found FAILED: Refused: no money",
                "expected the error \"Boom\", found \"Refused\"",
                "expected the cause \"x\", found \"no money\"",
            ],
        ),
        (
            json!({ "mocks": { "Charge": { "return": 1 } }, "expect": { "status": "FAILED" } }),
            vec!["the task of \"Pack\" (fn:pack) at [0] has no mock: add \"Pack\": {\"return\": ...} to \"mocks\""],
        ),
        (
            json!({ "mocks": { "Charge": { "error": "Boom" } }, "expect": { "history": ["ExecutionStarted", "TaskStateEntered", "PassStateEntered"] } }),
            vec!["history[2]: expected PassStateEntered, found LambdaFunctionScheduled"],
        ),
    ];
    for (more, expected) in table {
        let found = run(&order(), case(more.clone())).problems;
        let found: Vec<_> = found.iter().map(|line| line.replace("TaskScheduled", "LambdaFunctionScheduled")).collect();
        assert_eq!(found, expected, "{more}");
    }
}

#[test]
fn a_state_alone_ends_when_it_is_left() {
    let alone = |state: &str, more: Value| {
        let mut case = json!({ "name": "n", "state": state });
        more.as_object().expect("members").iter().for_each(|(key, value)| case[key] = value.clone());
        run(&order(), case)
    };
    let mocks = json!({ "Charge": { "return": 7 }, "Pack": { "return": 2 } });
    let table = [
        (
            "Charge",
            json!({ "mocks": mocks, "expect": { "next": "Season", "output": { "charge": 7 }, "elapsed_s": 0,
            "history": ["TaskStateEntered", "TaskScheduled", "TaskStarted", "TaskSucceeded", "TaskStateExited"] } }),
        ),
        (
            "Charge",
            json!({ "mocks": { "Charge": { "error": "Boom" } },
            "expect": { "next": "Refused", "output": { "error": { "Error": "Boom", "Cause": null } }, "calls": { "Charge": 1 } } }),
        ),
        ("Big", json!({ "input": { "amount": 101 }, "expect": { "next": "Approve" } })),
        ("Big", json!({ "input": { "amount": 100 }, "expect": { "next": "Ship" } })),
        ("Big", json!({ "expect": { "error": "States.Runtime" } })),
        ("Season", json!({ "expect": { "next": "Big", "elapsed_s": 31_536_000 } })),
        (
            "Ship",
            json!({ "input": { "items": [1, 2, 3] }, "mocks": mocks, "expect": { "next": null, "output": [2, 2, 2], "calls": { "Pack": 3 } } }),
        ),
        ("Pack", json!({ "input": "x", "mocks": mocks, "expect": { "next": null, "output": 2 } })),
        ("Refused", json!({ "expect": { "error": "Refused", "next": null } })),
    ];
    for (state, more) in table {
        let mut more = more;
        if let Some(history) = more["expect"].get_mut("history") {
            *history = serde_json::from_str(
                &history.to_string().replace("TaskS", "LambdaFunctionS").replace("LambdaFunctionState", "TaskState"),
            )
            .expect("an array");
        }
        let result = alone(state, more.clone());
        assert!(result.passed(), "{state} {more}: {:#?}\n{:#?}", result.problems, result.trace);
    }
    let result = alone("Big", json!({ "input": { "amount": 1 }, "expect": { "next": "Approve" } }));
    assert_eq!(result.problems, ["expected \"Approve\" to be next, found \"Ship\""]);
    let variables = definition(&json!({ "QueryLanguage": "JSONata", "StartAt": "A", "States": {
        "A": { "Type": "Pass", "Assign": { "x": 1 }, "Next": "B" }, "B": { "Type": "Pass", "Output": "{% $x + $states.input.y %}", "Next": "A" } } }));
    let result = run(
        &variables,
        json!({ "name": "n", "state": "B", "variables": { "x": 40 }, "input": { "y": 2 }, "expect": { "output": 42, "next": "A" } }),
    );
    assert!(result.passed(), "{:?}", result.problems);
}

#[test]
fn executions_are_stopped_time_out_and_do_not_loop_for_ever() {
    let result = run(&order(), case(json!({ "stop_after_s": 5, "expect": { "status": "ABORTED", "elapsed_s": 5 } })));
    assert!(result.passed(), "{:?}", result.problems);
    let slow = definition(
        &json!({ "StartAt": "A", "TimeoutSeconds": 5, "States": { "A": { "Type": "Wait", "Seconds": 9, "End": true } } }),
    );
    let result =
        run(&slow, json!({ "name": "n", "expect": { "status": "TIMED_OUT", "error": "States.Timeout", "elapsed_s": 5 } }));
    assert!(result.passed(), "{:?}", result.problems);
    let endless = definition(&json!({ "StartAt": "A", "States": { "A": { "Type": "Wait", "Seconds": 1, "Next": "A" } } }));
    let result = run(&endless, json!({ "name": "n", "expect": { "status": "SUCCEEDED" } }));
    assert_eq!(result.problems.len(), 1, "{:?}", result.problems);
    assert!(result.problems[0].contains("maximum number of history events"), "{:?}", result.problems);
}

#[test]
fn a_case_gives_the_same_again() {
    let jitter = definition(&json!({ "StartAt": "A", "States": { "A": { "Type": "Task", "Resource": "fn:f", "End": true,
        "Retry": [{ "ErrorEquals": ["States.ALL"], "JitterStrategy": "FULL", "IntervalSeconds": 100 }] } } }));
    let case = |seed: u64| json!({ "name": "n", "seed": seed, "mocks": { "A": [{ "error": "E" }, { "return": 1 }] }, "expect": { "output": 1.0 } });
    let (first, again, other) = (run(&jitter, case(7)), run(&jitter, case(7)), run(&jitter, case(8)));
    assert!(first.passed(), "{:?}", first.problems);
    assert_eq!(first, again);
    assert_ne!(first.elapsed_ms, other.elapsed_ms);
    let wait = definition(
        &json!({ "StartAt": "A", "States": { "A": { "Type": "Wait", "Timestamp": "2030-01-01T00:00:10Z", "End": true } } }),
    );
    let result = run(&wait, json!({ "name": "n", "start": "2030-01-01T00:00:00Z", "expect": { "elapsed_s": 10 } }));
    assert!(result.passed(), "{:?}", result.problems);
}

#[test]
fn at_most_ten_differences_are_told() {
    let pass = definition(&json!({ "StartAt": "A", "States": { "A": { "Type": "Pass", "End": true } } }));
    let found: Vec<_> = (0..50).collect();
    let expected: Vec<_> = (1..51).collect();
    let result = run(&pass, json!({ "name": "n", "input": found, "expect": { "output": expected } }));
    assert_eq!(result.problems.len(), 11);
    assert_eq!(result.problems[10], "output: there are more differences");
    let result = run(
        &pass,
        json!({ "name": "n", "input": { "a b": 1, "c": { "d": [1.0, null] } }, "expect": { "output": { "a b": 2, "c": { "d": [1, 0], "e": [] } } } }),
    );
    let told = [
        "output: $[\"a b\"]: expected 2, found 1",
        "output: $.c.d[1]: expected 0, found null",
        "output: $.c.e: expected [], found nothing",
    ];
    assert_eq!(result.problems, told);
}

/// Files that are refused: all problems, each with its place.
#[test]
fn files_are_refused_with_all_their_problems() {
    let table: [(&str, &[&str]); 9] = [
        ("{", &["1:1: not valid JSON: EOF while parsing an object"]),
        ("[]", &["1:1: expected an object, found an array"]),
        (
            r#"{"cases": []}"#,
            &[
                "1:1: \"workflow\" is missing; give the path of the definition",
                "1:2: cases: there are no cases; give at least one",
            ],
        ),
        (
            "{\"workflow\": 1,\n \"cases\": [\n  {\"name\": \"a\", \"expekt\": {}, \"seed\": -1}, 3]}",
            &[
                "1:2: workflow: expected a string, found 1",
                "3:3: cases[0]: the case expects nothing: it cannot fail; give \"expect\" with at least one of output, error, cause, status, elapsed_s, next, history, events, calls",
                "3:17: cases[0].expekt: there is no such key here; did you mean \"expect\"?",
                "3:31: cases[0].seed: expected a whole number from 0, found -1",
                "3:44: cases[1]: expected an object, found 3",
            ],
        ),
        (
            r#"{"workflow": "w", "cases": [{"name": "a", "expect": {}}, {"name": "a", "expect": {"output": 1, "error": "E"}}]}"#,
            &[
                "1:43: cases[0].expect: nothing is expected: the case cannot fail; give at least one of output, error, cause, status, elapsed_s, next, history, events, calls",
                "1:59: cases[1].name: another case is named \"a\"; rename one of them",
                "1:96: cases[1].expect.error: an error beside an output; an execution gives one or the other: remove one of them",
            ],
        ),
        (
            r#"{"workflow": "w", "cases": [{"name": "a", "name": "b", "mocks": {"A b": [], "B": {}, "C": {"return": 1, "error": 2}, "D": [{"return": 1}, {"retrun": 1}]}, "expect": {"output": 1}}]}"#,
            &[
                "1:43: cases[0].name: the key occurs twice; rename or remove one of them",
                "1:66: cases[0].mocks[\"A b\"]: the list of mocks is empty; give at least one, or remove the state",
                "1:77: cases[0].mocks.B: the mock says nothing; give one of return, error, callback, never",
                "1:86: cases[0].mocks.C: the mock says several things; give one of return, error, callback, never",
                "1:139: cases[0].mocks.D[1]: the mock says nothing; give one of return, error, callback, never",
                "1:140: cases[0].mocks.D[1].retrun: there is no such key here; did you mean \"return\"?",
            ],
        ),
        (
            r#"{"workflow": "w", "cases": [{"name": "a", "mocks": {"A": {"error": 1, "after_s": -1}, "B": {"return": 1, "cause": "c"}, "C": {"callback": {"callback": {}}}}, "expect": {"calls": {"A": "x"}}}]}"#,
            &[
                "1:59: cases[0].mocks.A.error: expected a string, found 1",
                "1:71: cases[0].mocks.A.after_s: expected seconds from 0 to 2147483647, found -1",
                "1:106: cases[0].mocks.B.cause: a cause without an error; add \"error\"",
                "1:127: cases[0].mocks.C.callback: the mock says nothing; give one of return, error",
                "1:140: cases[0].mocks.C.callback.callback: there is no such key here; give one of return, error, cause, after_s",
                "1:180: cases[0].expect.calls.A: expected a whole number from 0, found \"x\"",
            ],
        ),
        (
            r#"{"workflow": "w", "cases": [{"name": "a", "start": "now", "variables": [], "expect": {"next": "B", "status": "OK", "history": 1, "calls": {}}}]}"#,
            &[
                "1:43: cases[0].start: `now` is not a timestamp like 2016-03-14T01:59:00.123Z or 2016-03-14T01:59:00+01:00",
                "1:59: cases[0].variables: variables are given to a state alone; add \"state\", or let a state assign them",
                "1:59: cases[0].variables: expected an object of variables by name, found an array",
                "1:87: cases[0].expect.next: \"next\" is about a state alone; give \"state\" in the case, or compare \"output\" or \"history\"",
                "1:100: cases[0].expect.status: expected one of SUCCEEDED, FAILED, TIMED_OUT, ABORTED, found \"OK\"",
                "1:116: cases[0].expect.history: expected an array of types of events, found 1",
            ],
        ),
        (
            r#"{"workflow": "w", "cases": [{"name": "a", "expect": {"calls": {}}}]}"#,
            &[
                "1:43: cases[0].expect: nothing is expected: the case cannot fail; give at least one of output, error, cause, status, elapsed_s, next, history, events, calls",
            ],
        ),
    ];
    for (text, expected) in table {
        let found = Suite::parse(text).expect_err(text);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn states_that_are_not_there_fail_their_case_alone() {
    let suite = Suite::parse(
        r#"{"workflow": "w", "cases": [
 {"name": "a", "state": "Chrage", "mocks": {"Pak": {"return": 1}, "Big": {"return": 1}, "Pack": {"callback": {"return": 1}}}, "expect": {"next": "Bigg", "calls": {"X": 1}}},
 {"name": "b", "state": "Season", "expect": {"next": "Big"}}]}"#,
    )
    .expect("a suite");
    assert_eq!(suite.workflow(), "w");
    assert_eq!(suite.cases().collect::<Vec<_>>(), ["a", "b"]);
    let expected = [
        "2:16: cases[0].state: the workflow has no state \"Chrage\"; did you mean \"Charge\"?",
        "2:45: cases[0].mocks.Pak: the workflow has no state \"Pak\"; did you mean \"Pack\"?",
        "2:67: cases[0].mocks.Big: the state \"Big\" asks for nothing that could be mocked: it is a Choice; remove the mock",
        "2:89: cases[0].mocks.Pack: the task of \"Pack\" does not wait for a callback; use \"return\" or \"error\" alone, or a resource with .waitForTaskToken",
        "2:138: cases[0].expect.next: the workflow has no state \"Bigg\"; did you mean \"Big\"?",
        "2:164: cases[0].expect.calls.X: the workflow has no state \"X\"",
    ];
    assert_eq!(suite.check(&order()).iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    let results = suite.run(&order());
    assert_eq!(results[0].problems, expected);
    assert!(results[1].passed(), "{:?}", results[1].problems);
}

/// Random definitions with mocks for all tasks: each whole and each state alone ends, and gives the same again. Mutated files do not panic.
#[test]
fn random_workflows_and_files_are_tested() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..300 {
        let definition = definition(&generate::definition(&mut rng));
        let mocks: serde_json::Map<_, _> = definition
            .resources()
            .map(|(state, resource)| {
                let reply = match rng.u8(..4) {
                    0 => json!({ "error": "Boom", "after_s": 1 }),
                    1 if resource.has_callback() => json!([{ "callback": { "return": [1] } }, { "callback": { "error": "E" } }]),
                    _ if resource.has_callback() => {
                        json!({ "callback": { "return": generate::document(&mut rng, 2), "after_s": 3 } })
                    }
                    _ => json!({ "return": generate::document(&mut rng, 2), "after_s": rng.u8(..9) }),
                };
                (state.to_owned(), reply)
            })
            .collect();
        let mut cases =
            vec![json!({ "name": "whole", "input": [1, { "a": 2 }], "mocks": mocks, "expect": { "elapsed_s": 0, "calls": {} } })];
        for state in definition.states() {
            cases.push(json!({ "name": &*state.name, "state": &*state.name, "input": [1, 2], "mocks": mocks, "expect": { "next": null } }));
        }
        let text = json!({ "workflow": "w", "cases": cases }).to_string();
        let suite = Suite::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let results = suite.run(&definition);
        assert_eq!(results, suite.run(&definition), "seed {seed}");
        for result in &results {
            let bad = |line: &String| {
                line.contains("bug")
                    || line.contains("does not end")
                    || line.contains("waits for ever")
                    || line.contains("no mock")
            };
            assert!(!result.problems.iter().any(bad), "seed {seed}: {:?}", result.problems);
        }
        for _ in 0..10 {
            match Suite::parse(&generate::mutate(&mut rng, &text)) {
                Ok(suite) => drop(suite.run(&definition)),
                Err(problems) => assert!(!problems.is_empty(), "seed {seed}"),
            }
        }
    }
}
