//! Executions that AWS Step Functions has recorded, replayed here: the snapshots of LocalStack's tests, from the checkout that `STATES_SUITE` names.
//!
//! ```text
//!   *.snapshot.json --suite--> executions --scope--> in scope --replay--> our history --compare--> report
//!   STATES_DEFINITIONS (scripts/states-definitions: the definitions that each test hands over)
//! ```
//!
//! **In scope** are executions whose definitions use only what this server has: Task on Lambda functions and `lambda:invoke`, `states:startExecution`, Pass, Choice, Wait, Succeed,
//! Fail, Parallel, Map with inline items, both query languages, variables, Retry, Catch, timeouts, callbacks. They are compared whole. Counted by themselves are
//!
//! - executions with tasks of other services (SQS, DynamoDB ...): stand-ins take their place ([`adapt`]), and resources are not compared;
//! - executions of which no history was recorded, or not all of it, such as Maps in distributed mode, which run inline here: only the end is compared;
//! - definitions that Step Functions refuses: they have to be refused here.
//!
//! The rules of [`scope`] look at the test's file, what was recorded and the definition, never at what our machine makes of it.
//!
//! What the history recorded of each task (its answer, its error, its callback, its timeout) is told to the machine, in that order. Waits take no time.
//!
//! **Compared** are the output, or the error and its cause, and all events in order: types, numbers, previous numbers, details. (Branches of Parallel come without numbers in some
//! recordings, sorted by type: there the order within the branches is not compared.) Placeholders of the snapshots (`<uuid:1>`) match any text, the same
//! one at each place of an execution. Differences that are known stand in `known-differences.txt`, each with its reason: the test fails if an execution differs that does not stand
//! there, or if one that stands there does not differ.
//!
//! `STATES_FILTER` replays executions with that text in their names, and prints both histories.

#![allow(missing_docs)]

mod adapt;
mod compare;
mod replay;
mod report;
mod scope;
mod suite;

use std::path::PathBuf;

use compare::Verdict;

fn main() {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(suite), Some(definitions)) = (variable("STATES_SUITE"), variable("STATES_DEFINITIONS")) else {
        panic!("STATES_SUITE and STATES_DEFINITIONS are not set: use `make test-states SUITE=DIR`");
    };
    let filter = std::env::var("STATES_FILTER").ok();
    let suite = suite::read(&suite, &definitions);
    let mut report = report::Report::new(suite.snapshots);
    for execution in &suite.executions {
        let scope = scope::of(execution);
        if let scope::Scope::Out(rule) = scope {
            report.out_of_scope(rule);
        } else if filter.as_ref().is_none_or(|filter| execution.name.contains(filter.as_str())) {
            let verdict = match replay::replay(execution, suite.start_ms) {
                Ok(_) if matches!(scope, scope::Scope::Refusal) => Verdict::Output("the definition is taken".to_owned()),
                Err(_) if matches!(scope, scope::Scope::Refusal) => Verdict::EqualEnd,
                Ok(replayed) => {
                    if filter.is_some() {
                        show(execution, &replayed);
                    }
                    compare::compare(execution, &scope, &replayed)
                }
                Err(problem) => Verdict::Output(problem),
            };
            report.replayed(execution, &scope, verdict);
        }
    }
    report.print();
    if filter.is_none() {
        report.check(include_str!("known-differences.txt"));
    }
}

fn show(execution: &suite::Execution, replayed: &replay::Replayed) {
    println!("{}\n{}\n  recorded", execution.name, execution.definition);
    execution.events.iter().for_each(|event| println!("    {event}"));
    println!("  here");
    replayed.events.iter().for_each(|event| println!("    {event}"));
}
