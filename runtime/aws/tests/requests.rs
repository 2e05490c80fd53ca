//! Members of requests: what AWS refuses is refused, in its words.

mod support;

use serde_json::{Value, json};
use sledge_aws::limits::{BODY_MAX, CAUSE_MAX, DATA_MAX, TASK_TOKEN_MAX};
use sledge_aws::{ErrorCode, Operation, Request};
use support::Sample;

const MACHINE: &str = "arn:aws:states:local:acme:stateMachine:order";
const EXECUTION: &str = "arn:aws:states:local:acme:execution:order:one";
const EXPRESS: &str = "arn:aws:states:local:acme:express:order:one:7";

fn read(operation: &str, body: &Value) -> Result<Request, (ErrorCode, String)> {
    refused(&Sample::of(operation, body.to_string()))
}

fn refused(sample: &Sample) -> Result<Request, (ErrorCode, String)> {
    sample.read().map_err(|error| (error.code(), error.message().to_owned()))
}

#[track_caller]
fn refuse(operation: &str, body: &Value, code: ErrorCode, text: &str) {
    assert_eq!(read(operation, body), Err((code, text.to_owned())), "{operation}");
}

#[track_caller]
fn violate(operation: &str, body: &Value, text: &str) {
    refuse(operation, body, ErrorCode::ValidationException, text);
}

#[test]
fn operations_are_known_by_their_target() {
    for operation in Operation::ALL {
        let sample = Sample::of(operation.name(), "{}");
        assert_eq!(Operation::read(&sample.message()), Ok(*operation));
        assert_eq!(operation.action(), format!("states:{}", operation.name()));
    }
    let unknown = |sample: &Sample| {
        let (code, text) = refused(sample).unwrap_err();
        assert_eq!(code, ErrorCode::UnknownOperationException);
        text
    };
    let list = || Sample::of("ListStateMachines", "{}");
    let post = "Requests must be POST to the path '/'";
    assert_eq!(unknown(&Sample { method: http::Method::GET, ..list() }), post);
    assert_eq!(unknown(&Sample { path: "/x".to_owned(), ..list() }), post);
    for content_type in ["application/json", "application/x-amz-json-1.1", ""] {
        let text = unknown(list().set("content-type", content_type));
        assert_eq!(text, "The header Content-Type must be application/x-amz-json-1.0");
    }
    for target in ["", "ListStateMachines", "DynamoDB_20120810.ListTables"] {
        let text = unknown(list().set("x-amz-target", target));
        assert_eq!(text, "The header X-Amz-Target must be AWSStepFunctions.OPERATION, once");
    }
    assert_eq!(unknown(list().set("x-amz-target", "AWSStepFunctions.Nonsense")), "There is no such operation");
    let mut charset = Sample::of("ListStateMachines", "{}");
    charset.set("content-type", "Application/X-Amz-Json-1.0; charset=utf-8");
    assert!(charset.read().is_ok());
}

#[test]
fn bodies_are_json_objects_with_members_of_the_right_types() {
    for body in ["", " ", "[]", "1", "{", "{\"a\":}", "{} {}", "\u{0}", "{\"maxResults\": 1e999}"] {
        assert_eq!(refused(&Sample::of("ListStateMachines", body)).unwrap_err().0, ErrorCode::SerializationException, "{body:?}");
    }
    assert_eq!(refused(&Sample::of("ListStateMachines", [0x7b, 0xff, 0x7d])).unwrap_err().0, ErrorCode::SerializationException);
    for (body, text) in [
        (json!({ "maxResults": "7" }), "STRING_VALUE can not be converted to Integer"),
        (json!({ "maxResults": 1.5 }), "DECIMAL_VALUE can not be converted to Integer"),
        (json!({ "nextToken": 7 }), "NUMBER_VALUE can not be converted to String"),
        (json!({ "nextToken": true }), "TRUE_VALUE can not be converted to String"),
        (json!({ "nextToken": { "a": [1] } }), "Start of structure or map found where not expected"),
        (json!({ "nextToken": [[], {}] }), "Start of list found where not expected"),
    ] {
        refuse("ListStateMachines", &body, ErrorCode::SerializationException, text);
    }
    let body = json!({ "executionArn": EXECUTION, "reverseOrder": "true" });
    refuse("GetExecutionHistory", &body, ErrorCode::SerializationException, "STRING_VALUE can not be converted to Boolean");
    let large = Sample::of("ListStateMachines", " ".repeat(BODY_MAX + 1));
    assert_eq!(refused(&large).unwrap_err().0, ErrorCode::RequestEntityTooLargeException);
}

#[test]
fn unknown_members_and_nulls_are_ignored() {
    let expected = read("ListStateMachines", &json!({}));
    assert!(expected.is_ok());
    assert_eq!(read("ListStateMachines", &json!({ "nextToken": null, "maxResults": 0, "other": { "a": [1, 2] } })), expected);
    let deep = format!("{{\"other\": {}{}}}", "[".repeat(400_000), "]".repeat(400_000));
    assert_eq!(refused(&Sample::of("ListStateMachines", deep)), expected);
    let many = format!("{{{}\"a\":1}}", "\"b\":[],".repeat(100_000));
    assert_eq!(refused(&Sample::of("ListStateMachines", many)), expected);
}

#[test]
fn every_violation_is_told() {
    violate(
        "StartExecution",
        &json!({ "name": "" }),
        "2 validation errors detected: Value at 'stateMachineArn' failed to satisfy constraint: Member must not be null; Value '' at 'name' failed to \
         satisfy constraint: Member must have length greater than or equal to 1",
    );
    let name = "n".repeat(81);
    violate(
        "StartExecution",
        &json!({ "stateMachineArn": MACHINE, "name": name }),
        &format!(
            "1 validation error detected: Value '{name}' at 'name' failed to satisfy constraint: Member must have length less than or equal to 80"
        ),
    );
    violate(
        "StartExecution",
        &json!({ "stateMachineArn": MACHINE, "input": " ".repeat(DATA_MAX + 1) }),
        "1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less than or equal to 262144",
    );
    violate(
        "StartExecution",
        &json!({ "stateMachineArn": MACHINE, "traceHeader": "é" }),
        r"1 validation error detected: Value 'é' at 'traceHeader' failed to satisfy constraint: Member must satisfy regular expression pattern: \p{ASCII}*",
    );
    violate(
        "RedriveExecution",
        &json!({ "executionArn": EXECUTION, "clientToken": "a b" }),
        "1 validation error detected: Value 'a b' at 'clientToken' failed to satisfy constraint: Member must satisfy regular expression pattern: [!-~]+",
    );
    violate(
        "SendTaskSuccess",
        &json!({ "taskToken": "t" }),
        "1 validation error detected: Value at 'output' failed to satisfy constraint: Member must not be null",
    );
    let token = "t".repeat(TASK_TOKEN_MAX + 1);
    violate(
        "SendTaskHeartbeat",
        &json!({ "taskToken": token }),
        "1 validation error detected: Value at 'taskToken' failed to satisfy constraint: Member must have length less than or equal to 2048",
    );
    violate(
        "SendTaskFailure",
        &json!({ "taskToken": "t", "error": "e".repeat(257), "cause": "c".repeat(CAUSE_MAX + 1) }),
        "2 validation errors detected: Value at 'error' failed to satisfy constraint: Member must have length less than or equal to 256; Value at 'cause' \
         failed to satisfy constraint: Member must have length less than or equal to 32768",
    );
}

#[test]
fn pages_have_bounds() {
    for (results, bound) in
        [(1_001_i64, "less than or equal to 1000"), (i64::MAX, "less than or equal to 1000"), (-1, "greater than or equal to 0")]
    {
        let text = format!(
            "1 validation error detected: Value '{results}' at 'maxResults' failed to satisfy constraint: Member must have value {bound}"
        );
        for operation in ["ListStateMachines", "ListExecutions", "GetExecutionHistory"] {
            let body = json!({ "stateMachineArn": MACHINE, "executionArn": EXECUTION, "maxResults": results });
            violate(operation, &body, &text);
        }
    }
    let results = |results: Value| match read("ListStateMachines", &json!({ "maxResults": results })) {
        Ok(Request::ListStateMachines(list)) => list.page.max_results,
        other => panic!("{other:?}"),
    };
    assert_eq!([results(json!(0)), results(json!(1)), results(json!(1_000)), results(Value::Null)], [100, 1, 1_000, 100]);
    for (operation, most) in [("ListStateMachines", 1_024), ("GetExecutionHistory", 1_024), ("ListExecutions", 3_096)] {
        let body =
            |length: usize| json!({ "stateMachineArn": MACHINE, "executionArn": EXECUTION, "nextToken": "t".repeat(length) });
        assert!(read(operation, &body(most)).is_ok());
        let text = format!(
            "1 validation error detected: Value '{}' at 'nextToken' failed to satisfy constraint: Member must have length less than or equal to {most}",
            "t".repeat(most + 1)
        );
        violate(operation, &body(most + 1), &text);
    }
}

#[test]
fn words_are_of_their_sets() {
    violate(
        "ListExecutions",
        &json!({ "stateMachineArn": MACHINE, "statusFilter": "DONE" }),
        "1 validation error detected: Value 'DONE' at 'statusFilter' failed to satisfy constraint: Member must satisfy enum value set: [SUCCEEDED, TIMED_OUT, \
         PENDING_REDRIVE, ABORTED, FAILED, RUNNING]",
    );
    violate(
        "DescribeStateMachine",
        &json!({ "stateMachineArn": MACHINE, "includedData": "all_data" }),
        "1 validation error detected: Value 'all_data' at 'includedData' failed to satisfy constraint: Member must satisfy enum value set: [ALL_DATA, \
         METADATA_ONLY]",
    );
}

#[test]
fn arns_are_of_the_right_kind() {
    let wrong = |text: &str| format!("Invalid Arn: '{text}'");
    for operation in
        ["DescribeExecution", "GetExecutionHistory", "StopExecution", "RedriveExecution", "DescribeStateMachineForExecution"]
    {
        for (arn, text) in [
            ("nonsense", "Invalid ARN prefix: nonsense"),
            (MACHINE, "Resource type not valid in this context: stateMachine"),
            (EXPRESS, "Resource type not valid in this context: express"),
        ] {
            refuse(operation, &json!({ "executionArn": arn }), ErrorCode::InvalidArn, &wrong(text));
        }
    }
    for operation in ["StartExecution", "StartSyncExecution", "ListExecutions", "DescribeStateMachine"] {
        let kind = "Resource type not valid in this context: execution";
        refuse(operation, &json!({ "stateMachineArn": EXECUTION }), ErrorCode::InvalidArn, &wrong(kind));
        let qualified = "Versions and aliases of state machines are not supported: use the ARN without ':3'";
        refuse(operation, &json!({ "stateMachineArn": format!("{MACHINE}:3") }), ErrorCode::InvalidArn, &wrong(qualified));
    }
    violate("ListExecutions", &json!({}), "1 validation error detected: Must provide a StateMachine ARN or MapRun ARN");
    let map_run = "arn:aws:states:local:acme:mapRun:order/label:1";
    let text = format!("Resource not found: '{map_run}'");
    refuse("ListExecutions", &json!({ "mapRunArn": map_run }), ErrorCode::ResourceNotFound, &text);
}

#[test]
fn names_inputs_and_outputs_are_checked() {
    refuse(
        "StartExecution",
        &json!({ "stateMachineArn": MACHINE, "name": "a b" }),
        ErrorCode::InvalidName,
        "Invalid Name: 'a b'",
    );
    let input = |input: &str| match read("StartExecution", &json!({ "stateMachineArn": MACHINE, "input": input })) {
        Ok(Request::StartExecution(start)) => Ok(start.input),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    };
    for value in [json!({ "z": 1, "a": [null, 1.5] }), json!("text"), json!(7), Value::Null] {
        assert_eq!(input(&value.to_string()), Ok(value));
    }
    assert_eq!(
        input(&format!("\"{}\"", "x".repeat(DATA_MAX - 2))).map(|value| value.as_str().map(str::len)),
        Ok(Some(DATA_MAX - 2))
    );
    for text in ["", "not some json", "{'a': 1}", "{} {}", &"[".repeat(100_000)] {
        let (code, message) = input(text).unwrap_err();
        assert_eq!(code, ErrorCode::InvalidExecutionInput);
        assert!(message.starts_with("Invalid State Machine Execution Input: '"), "{message}");
    }
    let (code, message) = input(&format!("\"{}\"", "é".repeat(DATA_MAX / 2))).unwrap_err();
    assert_eq!(code, ErrorCode::InvalidExecutionInput);
    assert!(message.contains("262146 bytes"), "{message}");
    assert_eq!(input("").unwrap_err().1, "Invalid State Machine Execution Input: 'Invalid execution input.'");
    let (code, _) = read("SendTaskSuccess", &json!({ "taskToken": "t", "output": "{" })).unwrap_err();
    assert_eq!(code, ErrorCode::InvalidOutput);
}

#[test]
fn requests_tell_their_operation_and_state_machine() {
    for operation in Operation::ALL {
        let members = match operation.name() {
            "StartExecution" | "StartSyncExecution" | "ListExecutions" | "DescribeStateMachine" => {
                json!({ "stateMachineArn": MACHINE })
            }
            "SendTaskSuccess" | "SendTaskFailure" | "SendTaskHeartbeat" => json!({ "taskToken": "t", "output": "1" }),
            "ListStateMachines" => json!({}),
            _ => json!({ "executionArn": EXECUTION }),
        };
        let request = read(operation.name(), &members).unwrap();
        assert_eq!(request.operation(), *operation);
        let about = members.get("stateMachineArn").or(members.get("executionArn")).map(|_| MACHINE.to_owned());
        assert_eq!(request.machine().map(ToString::to_string), about, "{operation:?}");
    }
}
