//! Calls of functions (`fn:NAME`), and many of them.

use super::*;
use crate::config::AsynchronousConfig;

fn named(name: &str, settings: &Value) -> Arc<Function> {
    let mut function = Function::new(by_hand::loaded(&FunctionConfig::new(name, "f.wasm")), Home::alone());
    function.asynchronous = Some(serde_json::from_value::<AsynchronousConfig>(settings.clone()).unwrap());
    Arc::new(function)
}

fn asynchronous(settings: &Value) -> Arc<Function> {
    named("f", settings)
}

#[test]
fn the_workflow_of_a_function_is_made_once_and_anew_when_its_settings_change() {
    let served = Served::start_pinned(&Disk::default(), &[], &json!({}), (&[asynchronous(&json!({ "retries": 1 }))], None));
    let workflow = |name: &str| served.executions.workflow(TENANT, name).unwrap();
    let first = workflow("fn:f");
    assert!(Arc::ptr_eq(&first, &workflow("fn:f")));
    // A deployment with the same settings.
    served.replace(&asynchronous(&json!({ "retries": 1 })));
    assert!(Arc::ptr_eq(&first, &workflow("fn:f")));
    served.replace(&asynchronous(&json!({ "retries": 1, "running_max": 3 })));
    assert_eq!(workflow("fn:f").config.limits.as_ref().and_then(|limits| limits.running_max), Some(3));
    assert!(first.config.limits.as_ref().is_none_or(|limits| limits.running_max.is_none()));
    served.replace(&played());
    assert!(workflow("fn:f").config.limits.is_none());
    assert!(!Arc::ptr_eq(&workflow("fn:none"), &workflow("fn:none")), "what is no function takes no room");
    served.stop();
}

/// A call that has told `on_failure` has ended in a state that only fails; the function is called again all the same.
#[test]
fn a_redriven_call_calls_its_function_again_also_where_its_failure_was_told() {
    let functions = [asynchronous(&json!({ "retries": 0, "on_failure": "f" }))];
    let served = Served::start_pinned(&Disk::default(), &[], &json!({}), (&functions, None));
    let workflow = served.executions.workflow(TENANT, "fn:f").unwrap();
    let input = json!({ "do": "flaky", "key": "a", "times": 2 });
    wait(served.executions.start(&workflow, Some("one".into()), input.clone())).unwrap();
    let place = workflow.place("one");
    let end = || wait(served.executions.wait(place.clone())).unwrap();
    // The call, and the one that tells of it.
    assert_eq!((end().status, end().error.as_deref(), served.runs.load(Ordering::Relaxed)), (Status::Failed, Some("Flaky"), 2));
    wait(served.executions.redrive(place.clone())).unwrap();
    assert_eq!((end().status, served.number("a"), served.runs.load(Ordering::Relaxed)), (Status::Failed, 2, 4));
    wait(served.executions.redrive(place.clone())).unwrap();
    let ended = end();
    assert_eq!((ended.status, ended.redrives, ended.output.as_deref()), (Status::Succeeded, 2, Some(&input)));
    assert_eq!((served.number("a"), served.runs.load(Ordering::Relaxed)), (3, 5));
    served.stop();
}

/// With a thousand workflows and a thousand functions, each answers once: no look at one of them costs more for there being others.
#[test]
fn a_thousand_workflows_and_a_thousand_functions_answer_once_each() {
    let names: Vec<_> = (0..1_000).map(|number| format!("n{number}")).collect();
    let functions: Vec<_> = names.iter().map(|name| named(name, &json!({ "running_max": 4 }))).collect();
    let state = |name| json!({ "Type": "Task", "Resource": format!("fn:{name}"), "End": true });
    let workflows: Vec<_> = names.iter().map(|name| (&**name, machine("A", &json!({ "A": state(name) })))).collect();
    let served = Served::start_pinned(&Disk::default(), &workflows, &json!({}), (&functions, None));
    wait(async {
        for name in &names {
            let call = served.executions.workflow(TENANT, &format!("fn:{name}")).unwrap();
            for workflow in [&served.workflows[name], &call] {
                let input = json!({ "do": "add", "key": name });
                served.executions.start(workflow, Some("one".into()), input.clone()).await.unwrap();
            }
        }
        for name in &names {
            for workflow in [name.clone(), format!("fn:{name}")] {
                let place = Place { tenant: TENANT.into(), workflow: workflow.into(), name: "one".into() };
                assert_eq!(served.executions.wait(place).await.unwrap().status, Status::Succeeded, "{name}");
            }
        }
    });
    assert!(names.iter().all(|name| served.number(name) == 2));
    assert_eq!((served.runs.load(Ordering::Relaxed), served.executions.counted().open), (2_000, 0));
    served.stop();
}
