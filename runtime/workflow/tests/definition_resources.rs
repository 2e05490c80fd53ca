//! What a Task's `Resource` may name.

use sledge_workflow::definition::Resource;
use sledge_workflow::definition::resource::{KeyValueOperation, WorkflowMode, function_name, workflow_name};

fn function(name: &str, qualifier: Option<&str>, callback: bool) -> Resource {
    Resource::Function { name: name.into(), qualifier: qualifier.map(Into::into), callback }
}

#[test]
fn every_form_is_read() {
    let workflow = |mode| Resource::Workflow { name: "w".into(), mode };
    let start = |mode| Resource::StartExecution { mode };
    for (text, resource) in [
        ("fn:f", function("f", None, false)),
        ("fn:a.b-c_d:2", function("a.b-c_d", Some("2"), false)),
        ("fn:f.waitForTaskToken", function("f", None, true)),
        ("fn:f:live.waitForTaskToken", function("f", Some("live"), true)),
        ("arn:aws:lambda:us-east-1:123456789012:function:f", function("f", None, false)),
        ("arn:aws:lambda:us-east-1:123456789012:function:f:$LATEST", function("f", Some("$LATEST"), false)),
        ("arn:aws-cn:lambda:cn-north-1:123456789012:function:f:7", function("f", Some("7"), false)),
        ("arn:aws:states:::lambda:invoke", Resource::LambdaInvoke { callback: false }),
        ("arn:aws:states:::lambda:invoke.waitForTaskToken", Resource::LambdaInvoke { callback: true }),
        ("arn:aws:states:::http:invoke", Resource::HttpInvoke),
        ("http://h:8080/p?q#f", Resource::Http { url: "http://h:8080/p?q#f".into() }),
        ("https://h", Resource::Http { url: "https://h".into() }),
        ("kv:get", Resource::KeyValue { operation: KeyValueOperation::Get }),
        ("kv:set", Resource::KeyValue { operation: KeyValueOperation::Set }),
        ("kv:add", Resource::KeyValue { operation: KeyValueOperation::Add }),
        ("kv:delete", Resource::KeyValue { operation: KeyValueOperation::Delete }),
        ("kv:list", Resource::KeyValue { operation: KeyValueOperation::List }),
        ("kv:scan", Resource::KeyValue { operation: KeyValueOperation::Scan }),
        ("workflow:w", workflow(WorkflowMode::SyncJson)),
        ("workflow:w.start", workflow(WorkflowMode::Start)),
        ("workflow:w.sync", workflow(WorkflowMode::Sync)),
        ("workflow:w.sync:2", workflow(WorkflowMode::SyncJson)),
        ("workflow:w.waitForTaskToken", workflow(WorkflowMode::Callback)),
        ("arn:aws:states:::states:startExecution", start(WorkflowMode::Start)),
        ("arn:aws:states:::states:startExecution.sync", start(WorkflowMode::Sync)),
        ("arn:aws:states:::states:startExecution.sync:2", start(WorkflowMode::SyncJson)),
        ("arn:aws-us-gov:states:::states:startExecution.waitForTaskToken", start(WorkflowMode::Callback)),
    ] {
        let read = Resource::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read, resource, "{text}");
        assert_eq!(Resource::parse(&read.to_string()).as_ref(), Ok(&read), "{text}: what is written is read again");
        let is_callback = text.ends_with(".waitForTaskToken");
        assert_eq!(read.has_callback(), is_callback, "{text}");
        assert_eq!(read.service().1.ends_with(".waitForTaskToken"), is_callback, "{text}");
    }
}

#[test]
fn other_forms_are_refused() {
    for text in [
        "",
        "f",
        "fn:",
        "fn:.f",
        "fn:f:",
        "fn:f:a:b",
        "fn:f.sync",
        "fn:f/g",
        "FN:f",
        "kv:",
        "kv:GET",
        "workflow:",
        "workflow:a b",
        "http://",
        "https:///p",
        "http://a b/",
        "http://user@h/",
        "arn:aws:lambda:r:1:function:f.waitForTaskToken",
        "arn:aws:lambda:r:1:layer:f",
        "arn:aws:states:::lambda:invoke.sync",
        "arn:aws:states:::sqs:sendMessage",
        "arn:aws:states:::aws-sdk:sfn:startExecution",
        "arn:aws:states:r:1:activity:a",
        "arn:azure:states:::http:invoke",
        "arn:aws:states:::states:startExecution.sync:3",
    ] {
        let error = Resource::parse(text).expect_err(text);
        assert!(!error.message.is_empty() && !error.help.is_empty(), "{text}");
    }
    assert!(Resource::parse(&format!("fn:{}", "f".repeat(201))).is_err());
}

#[test]
fn names_in_arguments() {
    for (text, name, qualifier) in [
        ("f", "f", None),
        ("f:2", "f", Some("2")),
        ("123456789012:function:f", "f", None),
        ("arn:aws:lambda:us-east-1:123456789012:function:f", "f", None),
        ("arn:aws:lambda:us-east-1:123456789012:function:f:$LATEST", "f", Some("$LATEST")),
    ] {
        let (found, of) = function_name(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((&*found, of.as_deref()), (name, qualifier), "{text}");
    }
    for text in ["", "a b", "f:1:2", "arn:aws:lambda:r:1:function", "arn:aws:s3:::f", "f:"] {
        assert!(function_name(text).is_err(), "{text}");
    }
    for text in
        ["w", "arn:aws:states:us-east-1:123456789012:stateMachine:w", "arn:aws:states:us-east-1:123456789012:stateMachine:w:3"]
    {
        assert_eq!(workflow_name(text).as_deref(), Ok("w"), "{text}");
    }
    for text in ["", "a:b", "arn:aws:states:us-east-1:1:execution:w:x"] {
        assert!(workflow_name(text).is_err(), "{text}");
    }
}
