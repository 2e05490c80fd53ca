//! Answers and errors as clients get them.

use serde_json::{Value, json};
use sledge_aws::answer::{
    Answer, DataDetails, ExecutionDescription, ExecutionItem, ExecutionMachine, MachineDescription, MachineItem, Redrives,
    SyncExecution, render, without_data,
};
use sledge_aws::{
    ApiError, ErrorCode, ExecutionArn, ExecutionStatus, MachineArn, MachineType, RedriveStatus, RequestId, Timestamp,
};

const ID: RequestId = RequestId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);

fn machine() -> MachineArn {
    MachineArn::new("local", "acme", "order").unwrap()
}

fn execution() -> ExecutionArn {
    ExecutionArn::new(&machine(), "one").unwrap()
}

/// The body of a successful answer.
fn body(answer: Answer) -> Value {
    let response = render(&Ok(answer), ID);
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-amz-json-1.0");
    assert_eq!(response.headers()["x-amzn-requestid"], "01234567-89ab-cdef-0123-456789abcdef");
    serde_json::from_slice(response.body()).unwrap()
}

fn description() -> ExecutionDescription {
    ExecutionDescription {
        execution_arn: execution(),
        state_machine_arn: machine(),
        name: "one".to_owned(),
        status: ExecutionStatus::Succeeded,
        start_date: Timestamp(1_800_000_000_250),
        stop_date: Some(Timestamp(1_800_000_001_000)),
        input: Some("{}".to_owned()),
        input_details: Some(DataDetails { included: true }),
        output: Some("7".to_owned()),
        output_details: Some(DataDetails { included: true }),
        trace_header: None,
        error: None,
        cause: None,
        redrives: Redrives {
            redrive_count: 0,
            redrive_date: None,
            redrive_status: RedriveStatus::NotRedrivable,
            redrive_status_reason: Some("Execution is SUCCEEDED and cannot be redriven".to_owned()),
        },
    }
}

#[test]
fn answers_about_executions_have_the_models_members() {
    let start = Answer::StartExecution { execution_arn: execution(), start_date: Timestamp(1_800_000_000_250) };
    let arn = "arn:aws:states:local:acme:execution:order:one";
    assert_eq!(body(start), json!({ "executionArn": arn, "startDate": 1_800_000_000.25 }));
    assert_eq!(body(Answer::StopExecution { stop_date: Timestamp(1_500) }), json!({ "stopDate": 1.5 }));
    assert_eq!(body(Answer::RedriveExecution { redrive_date: Timestamp(-1_500) }), json!({ "redriveDate": -1.5 }));
    assert_eq!(body(Answer::SendTask {}), json!({}));
    let expected = json!({
        "executionArn": arn,
        "stateMachineArn": "arn:aws:states:local:acme:stateMachine:order",
        "name": "one",
        "status": "SUCCEEDED",
        "startDate": 1_800_000_000.25,
        "stopDate": 1_800_000_001.0,
        "input": "{}",
        "inputDetails": { "included": true },
        "output": "7",
        "outputDetails": { "included": true },
        "redriveCount": 0,
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
    });
    assert_eq!(body(Answer::DescribeExecution(Box::new(description()))), expected);
    let bare = body(Answer::DescribeExecution(Box::new(description().without_data())));
    assert_eq!((&bare["input"], &bare["output"]), (&Value::Null, &Value::Null));
    assert_eq!((&bare["inputDetails"], &bare["outputDetails"]), (&json!({ "included": false }), &json!({ "included": false })));
}

#[test]
fn ends_of_express_executions_have_the_models_members() {
    let express = SyncExecution {
        execution_arn: ExecutionArn::express(&machine(), "one", "7").unwrap(),
        state_machine_arn: machine(),
        name: "one".to_owned(),
        start_date: Timestamp(1_000),
        stop_date: Timestamp(2_000),
        status: ExecutionStatus::Failed,
        error: Some("No".to_owned()),
        cause: Some("because".to_owned()),
        input: Some("{}".to_owned()),
        input_details: Some(DataDetails { included: true }),
        output: None,
        output_details: None,
        trace_header: None,
    };
    let expected = json!({
        "executionArn": "arn:aws:states:local:acme:express:order:one:7",
        "stateMachineArn": "arn:aws:states:local:acme:stateMachine:order",
        "name": "one",
        "startDate": 1.0,
        "stopDate": 2.0,
        "status": "FAILED",
        "error": "No",
        "cause": "because",
        "input": "{}",
        "inputDetails": { "included": true },
    });
    assert_eq!(body(Answer::StartSyncExecution(Box::new(express.clone()))), expected);
    let bare = express.without_data();
    assert_eq!((bare.input, bare.input_details), (None, Some(DataDetails { included: false })));
}

#[test]
fn lists_have_a_token_only_if_there_is_more() {
    let item = ExecutionItem {
        execution_arn: execution(),
        state_machine_arn: machine(),
        name: "one".to_owned(),
        status: ExecutionStatus::Running,
        start_date: Timestamp(0),
        stop_date: None,
        redrive_count: None,
        redrive_date: None,
    };
    let list = body(Answer::ListExecutions { executions: vec![item], next_token: None });
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["executions"]);
    assert_eq!(list["executions"][0]["status"], "RUNNING");
    let list = Answer::ListStateMachines { state_machines: Vec::new(), next_token: Some("more".to_owned()) };
    assert_eq!(body(list), json!({ "stateMachines": [], "nextToken": "more" }));
    let events = Answer::GetExecutionHistory { events: vec![json!({ "id": 1 })], next_token: None };
    assert_eq!(body(events), json!({ "events": [{ "id": 1 }] }));
}

#[test]
fn answers_about_state_machines_have_the_models_members() {
    let arn = "arn:aws:states:local:acme:stateMachine:order";
    let described = MachineDescription {
        state_machine_arn: machine(),
        name: "order".to_owned(),
        status: MachineDescription::ACTIVE,
        definition: "{}".to_owned(),
        role_arn: "arn:aws:iam::acme:role/sledge".to_owned(),
        machine_type: MachineType::Express,
        creation_date: Timestamp(1_000),
        description: None,
        revision_id: Some("r1".to_owned()),
    };
    let mut expected = json!({
        "stateMachineArn": arn,
        "name": "order",
        "status": "ACTIVE",
        "definition": "{}",
        "roleArn": "arn:aws:iam::acme:role/sledge",
        "type": "EXPRESS",
        "creationDate": 1.0,
        "revisionId": "r1",
    });
    assert_eq!(body(Answer::DescribeStateMachine(Box::new(described.clone()))), expected);
    expected["definition"] = json!("");
    assert_eq!(body(Answer::DescribeStateMachine(Box::new(described.without_data()))), expected);
    let item = MachineItem {
        state_machine_arn: machine(),
        name: "order".to_owned(),
        machine_type: MachineType::Standard,
        creation_date: Timestamp(1_000),
    };
    let expected =
        json!({ "stateMachines": [{ "stateMachineArn": arn, "name": "order", "type": "STANDARD", "creationDate": 1.0 }] });
    assert_eq!(body(Answer::ListStateMachines { state_machines: vec![item], next_token: None }), expected);
    let of_execution = ExecutionMachine {
        state_machine_arn: machine(),
        name: "order".to_owned(),
        definition: "{}".to_owned(),
        role_arn: "arn:aws:iam::acme:role/sledge".to_owned(),
        update_date: Timestamp(1_000),
        revision_id: None,
    };
    let expected = json!({
        "stateMachineArn": arn, "name": "order", "definition": "{}", "roleArn": "arn:aws:iam::acme:role/sledge", "updateDate": 1.0,
    });
    assert_eq!(body(Answer::DescribeStateMachineForExecution(Box::new(of_execution))), expected);
}

#[test]
fn errors_name_their_code_and_namespace() {
    let tell = |error: ApiError| {
        let response = render::<Value>(&Err(error), ID);
        assert_eq!(response.headers()["content-type"], "application/x-amz-json-1.0");
        assert_eq!(response.headers()["x-amzn-requestid"], ID.to_string());
        let kind = response.headers()["x-amzn-errortype"].to_str().unwrap().to_owned();
        (response.status().as_u16(), kind, serde_json::from_slice::<Value>(response.body()).unwrap())
    };
    let absent = tell(ApiError::execution_does_not_exist(&execution()));
    let body = json!({
        "__type": "com.amazonaws.swf.service.v2.model#ExecutionDoesNotExist",
        "message": "Execution Does Not Exist: 'arn:aws:states:local:acme:execution:order:one'",
    });
    assert_eq!(absent, (400, "ExecutionDoesNotExist".to_owned(), body));
    let (status, _, body) = tell(ApiError::service_unavailable());
    assert_eq!((status, &body["__type"]), (503, &json!("com.amazon.coral.service#ServiceUnavailable")));
    assert_eq!(tell(ApiError::internal_failure()).0, 500);
    assert_eq!(tell(ApiError::too_large()).0, 413);
    for code in ErrorCode::ALL {
        let (status, kind, body) = tell(ApiError::new(*code, "text"));
        assert!((400..=503).contains(&status));
        assert_eq!((kind.as_str(), body["message"].as_str()), (code.name(), Some("text")));
        assert_eq!(body["__type"], format!("{}#{}", code.namespace(), code.name()));
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_the_servers_fault() {
    struct Never;
    impl serde::Serialize for Never {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("never"))
        }
    }
    let response = render(&Ok(Answer::GetExecutionHistory { events: vec![Never], next_token: None }), ID);
    assert_eq!(response.status(), 500);
}

#[test]
fn events_can_be_told_without_data() {
    let mut event = json!({
        "id": 2,
        "type": "TaskScheduled",
        "taskScheduledEventDetails": { "resource": "invoke", "parameters": "{\"secret\": 1}", "timeoutInSeconds": 3 },
    });
    without_data(&mut event);
    assert_eq!(event["taskScheduledEventDetails"], json!({ "resource": "invoke", "timeoutInSeconds": 3, "parameters": "" }));
    let mut event = json!({
        "id": 3,
        "stateExitedEventDetails": {
            "name": "A", "output": "1", "outputDetails": { "truncated": false }, "assignedVariables": { "x": "1" },
            "assignedVariablesDetails": { "truncated": false },
        },
    });
    without_data(&mut event);
    assert_eq!(event, json!({ "id": 3, "stateExitedEventDetails": { "name": "A" } }));
    let mut other = json!([1]);
    without_data(&mut other);
    assert_eq!(other, json!([1]));
}
