//! What needs no server: tokens of pages and tasks, redrives that are remembered, keys, refusals.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use sledge_aws::{ErrorCode, ExecutionArn, MachineArn};
use sledge_workflow::machine::Status;

use super::asked::is_task_token;
use super::redriven::{REMEMBERED_MAX, REMEMBERED_MS, Redriven};
use super::refusal::{self, Subject, why_not_redrivable};
use super::{Keys, only_looks, page};
use crate::config::AwsApiConfig;
use crate::kv::Order;
use crate::workflow::durable::Refused;
use crate::workflow::durable::journal::{Position, Summary};

#[test]
fn tokens_of_pages_are_read_by_the_list_that_gave_them() {
    let history = page::behind_event(0x1f, Order::Rising, 200);
    assert_eq!(page::event(&history, 0x1f, Order::Rising).unwrap(), 200);
    let position = Position { started_ms: 1_700_000_000_123, id: u64::MAX };
    let executions = page::behind_execution(position);
    assert_eq!(page::position(&executions).unwrap(), position);
    let machines = page::behind_machine("a.b.c");
    assert_eq!(page::machine(&machines).unwrap(), "a.b.c");

    assert!(page::event(&history, 0x1e, Order::Rising).is_err(), "another execution");
    assert!(page::event(&history, 0x1f, Order::Falling).is_err(), "another order");
    for other in [
        &executions,
        &machines,
        "",
        ".",
        "h",
        "h.r.1f",
        "h.r.1f.",
        "h.r.1f.x",
        "h.r.1f.+1",
        "h.r.1f.1.1",
        "h.r.1f.11111111111111111",
    ] {
        assert!(page::event(other, 0x1f, Order::Rising).is_err(), "{other}");
    }
    for other in [&history, &machines, "", "e", "e.1", "e.1.1.1", "e.-1.1", "e.1.G"] {
        assert!(page::position(other).is_err(), "{other}");
    }
    for other in [&history, &executions, "", "m", "m.", &format!("m.{}", "x".repeat(81))] {
        assert!(page::machine(other).is_err(), "{other}");
    }
}

#[test]
fn tokens_of_tasks_have_a_form() {
    let random = "0123456789abcdef0123456789abcdef";
    assert!(is_task_token(&format!("1f-a.{random}")));
    for wrong in [
        "",
        "-",
        "1f-a",
        random,
        &format!("1f-a.{random}0"),
        &format!("1F-a.{random}"),
        &format!("-a.{random}"),
        &format!("1f-.{random}"),
        &format!("1f-a-{random}"),
        &format!("{}-a.{random}", "1".repeat(17)),
        &format!("1f-a.{}é", &random[..30]),
    ] {
        assert!(!is_task_token(wrong), "{wrong}");
    }
}

#[test]
fn redrives_are_remembered_for_a_time() {
    let redriven = Redriven::default();
    redriven.remember(1, "a".to_owned(), 1_000);
    assert_eq!(redriven.find(1, "a", 2_000), Some(1_000));
    assert_eq!((redriven.find(2, "a", 2_000), redriven.find(1, "b", 2_000)), (None, None));
    assert_eq!(redriven.find(1, "a", 1_000 + REMEMBERED_MS), None);
    for execution in 0..REMEMBERED_MAX as u64 {
        redriven.remember(execution, "later".to_owned(), 1_000);
    }
    assert_eq!((redriven.find(1, "a", 1_000), redriven.find(0, "later", 1_000)), (None, Some(1_000)));
}

#[test]
fn keys_are_read_with_all_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, secret: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, secret).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        json!({ "file": path })
    };
    let config = |keys| serde_json::from_value::<AwsApiConfig>(json!({ "keys": keys })).unwrap();
    let good = write("good", "made-up/secret+key\n", 0o600);
    let keys = Keys::read(&config(json!([{ "id": "A", "secret": good, "tenant": "t", "read_only": true }]))).unwrap();
    assert!(keys.secret("A").is_some() && keys.secret("B").is_none());
    assert!(keys.caller("A").is_some_and(|caller| &*caller.tenant == "t" && caller.is_read_only));
    assert!(!format!("{keys:?}").contains("made-up"));
    let wrong = [
        json!({ "id": "A", "secret": write("short", "fifteen--bytes!", 0o600) }),
        json!({ "id": "B", "secret": good }),
        json!({ "id": "C", "secret": write("open", "made-up/secret+key", 0o644) }),
    ];
    let errors: Vec<_> = Keys::read(&config(json!(wrong))).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors[0].starts_with("aws_api.keys[0].secret: ") && errors[0].contains("15 bytes") && !errors[0].contains("fifteen")
    );
    assert!(errors[1].starts_with("aws_api.keys[2].secret: ") && errors[1].contains("chmod 600"));
}

fn summary(status: Status, has_parent: bool) -> Summary {
    let parent = has_parent.then(|| json!({ "execution": 7, "task": 1 }));
    let mut summary = json!({ "id": 1, "status": Status::Failed, "definition": 1, "started_ms": 1, "input": {} });
    summary["status"] = serde_json::to_value(status).unwrap();
    summary["parent"] = json!(parent);
    serde_json::from_value(summary).unwrap()
}

#[test]
fn refusals_are_errors_of_aws() {
    let machine = MachineArn::new("local", "t", "m").unwrap();
    let execution = ExecutionArn::new(&machine, "e").unwrap();
    let starts = Subject::Machine(&machine, Some("e"));
    let exists = || Refused::Exists { summary: Box::new(summary(Status::Failed, false)) };
    let quarantined = Refused::Quarantined("/etc/secret.json:1:1: wrong".to_owned());
    for (refused, subject, code, words) in [
        (Refused::NoWorkflow, starts, ErrorCode::StateMachineDoesNotExist, "arn:aws:states:local:t:stateMachine:m"),
        (Refused::NoWorkflow, Subject::Execution(&execution), ErrorCode::StateMachineDoesNotExist, "stateMachine:m"),
        (Refused::NoWorkflow, Subject::Task, ErrorCode::StateMachineDoesNotExist, "Does Not Exist"),
        (quarantined, starts, ErrorCode::StateMachineDoesNotExist, "stateMachine:m'"),
        (exists(), starts, ErrorCode::ExecutionAlreadyExists, "arn:aws:states:local:t:execution:m:e"),
        (exists(), Subject::Task, ErrorCode::InternalFailure, ""),
        (Refused::Name, starts, ErrorCode::InvalidName, "'e'"),
        (Refused::InputTooLarge(262_144), starts, ErrorCode::InvalidExecutionInput, "262144"),
        (Refused::TooMany(7), starts, ErrorCode::ExecutionLimitExceeded, "7 executions"),
        (Refused::NoExecution, Subject::Execution(&execution), ErrorCode::ExecutionDoesNotExist, "execution:m:e"),
        (Refused::NotRedrivable("it runs".into()), Subject::Execution(&execution), ErrorCode::ExecutionNotRedrivable, "it runs"),
        (Refused::NoTask, Subject::Task, ErrorCode::TaskTimedOut, "does not exist anymore"),
        (Refused::Unavailable("disk".to_owned()), starts, ErrorCode::ServiceUnavailable, "unavailable"),
        (Refused::Stopping, starts, ErrorCode::ServiceUnavailable, "unavailable"),
    ] {
        let error = refusal::of(&refused, subject);
        assert_eq!(error.code(), code, "{refused:?}");
        assert!(error.message().contains(words) && !error.message().contains("/etc"), "{error}");
    }
}

#[test]
fn what_has_failed_can_be_redriven_unless_a_task_has_waited_for_it() {
    for status in [Status::Failed, Status::TimedOut, Status::Aborted] {
        assert_eq!(why_not_redrivable(&summary(status, false)), None);
        assert!(why_not_redrivable(&summary(status, true)).is_some_and(|why| why.contains("redrive that one")));
    }
    let why = |status| why_not_redrivable(&summary(status, false));
    assert_eq!(why(Status::Succeeded).as_deref(), Some("Execution is SUCCEEDED and cannot be redriven"));
    assert_eq!(why(Status::Running).as_deref(), Some("Execution is RUNNING and cannot be redriven"));
}

#[test]
fn reading_is_what_it_is_called() {
    for operation in sledge_aws::Operation::ALL {
        let name = operation.name();
        let expected = ["Describe", "List", "Get"].iter().any(|prefix| name.starts_with(prefix));
        assert_eq!(only_looks(*operation), expected, "{name}");
    }
}
