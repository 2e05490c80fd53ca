//! Requests that boto3 1.44.8 sent, recorded, with a made-up key.

mod support;

use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use sledge_aws::operation::{self, Page};
use sledge_aws::{ErrorCode, ExecutionArn, ExecutionStatus, IncludedData, MachineArn, RedriveFilter, Refusal, Request};
use support::Sample;

const KEY: &str = "EXAMPLEKEYACME";
const SECRET: &str = "made-up/secret+of=tests";

struct Recorded {
    name: String,
    time_ms: i64,
    sample: Sample,
}

fn recorded() -> Vec<Recorded> {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("boto.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let read = |request: &Value| {
        let mut sample = Sample::of("", text(&request["body"]));
        sample.method = Method::from_bytes(text(&request["method"]).as_bytes()).unwrap();
        sample.path = text(&request["path"]);
        sample.headers.clear();
        for header in request["headers"].as_array().unwrap() {
            let name = HeaderName::try_from(text(&header[0])).unwrap();
            sample.headers.append(name, HeaderValue::try_from(text(&header[1])).unwrap());
        }
        Recorded { name: text(&request["name"]), time_ms: request["time_ms"].as_i64().unwrap(), sample }
    };
    recorded.iter().map(read).collect()
}

fn request(name: &str) -> Result<Request, sledge_aws::ApiError> {
    recorded().into_iter().find(|recorded| recorded.name == name).unwrap().sample.read()
}

fn machine() -> MachineArn {
    MachineArn::new("local", "acme", "order").unwrap()
}

fn execution() -> ExecutionArn {
    ExecutionArn::new(&machine(), "one").unwrap()
}

#[test]
fn every_recorded_signature_verifies() {
    let all = recorded();
    assert_eq!(all.len(), 14);
    for Recorded { name, time_ms, sample } in all {
        let signer = sample.verify(time_ms, KEY, SECRET).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert_eq!(signer.key_id, KEY);
        assert_eq!(signer.region, if name == "list_executions" { "eu-central-1" } else { "local" });
    }
}

#[test]
fn http2_has_the_host_as_authority() {
    for Recorded { time_ms, mut sample, .. } in recorded() {
        let host = sample.headers.remove("host").unwrap();
        assert!(sample.verify(time_ms, KEY, SECRET).is_err());
        sample.authority = Some(host.to_str().unwrap().to_owned());
        assert!(sample.verify(time_ms, KEY, SECRET).is_ok());
    }
}

#[test]
fn a_recorded_request_does_not_verify_for_another_operation_body_secret_key_or_time() {
    for Recorded { name, time_ms, sample } in recorded() {
        let mismatch = |sample: &Sample| matches!(sample.verify(time_ms, KEY, SECRET), Err(Refusal::Invalid(_)));
        let mut other = sample.clone();
        assert!(mismatch(other.set("x-amz-target", "AWSStepFunctions.SendTaskSuccess")) || name == "send_task_success");
        let mut other = sample.clone();
        other.body.push(b' ');
        assert!(mismatch(&other), "{name}");
        assert!(matches!(sample.verify(time_ms, KEY, "another"), Err(Refusal::Invalid(_))));
        assert_eq!(sample.verify(time_ms, "ANOTHER", SECRET), Err(Refusal::UnknownKey));
        for (skew_s, accepted) in [(-302, false), (-298, true), (298, true), (302, false)] {
            assert_eq!(sample.verify(time_ms + skew_s * 1_000, KEY, SECRET).is_ok(), accepted, "{name}: {skew_s}");
        }
    }
}

#[test]
fn starts_are_read() {
    let start = operation::StartExecution {
        machine: machine(),
        name: Some("one".to_owned()),
        input: json!({ "price": 3, "city": "Köln" }),
        trace_header: None,
    };
    assert_eq!(request("start_execution"), Ok(Request::StartExecution(start.clone())));
    let start = operation::StartExecution { name: None, input: json!({}), ..start };
    let expected = operation::StartSyncExecution { start, included_data: IncludedData::MetadataOnly };
    assert_eq!(request("start_sync_execution"), Ok(Request::StartSyncExecution(expected)));
}

#[test]
fn requests_about_an_execution_are_read() {
    let described = operation::DescribeExecution { execution: execution(), included_data: IncludedData::AllData };
    assert_eq!(request("describe_execution"), Ok(Request::DescribeExecution(described)));
    let history = operation::GetExecutionHistory {
        execution: execution(),
        page: Page { max_results: 7, token: Some("abc".to_owned()) },
        reverse_order: true,
        include_execution_data: false,
    };
    assert_eq!(request("get_execution_history"), Ok(Request::GetExecutionHistory(history)));
    let stop =
        operation::StopExecution { execution: execution(), error: Some("Late".to_owned()), cause: Some("too late".to_owned()) };
    assert_eq!(request("stop_execution"), Ok(Request::StopExecution(stop)));
    let redrive = operation::RedriveExecution { execution: execution(), client_token: Some("token-1".to_owned()) };
    assert_eq!(request("redrive_execution"), Ok(Request::RedriveExecution(redrive)));
    let machine = operation::DescribeStateMachineForExecution { execution: execution(), included_data: IncludedData::AllData };
    assert_eq!(request("describe_state_machine_for_execution"), Ok(Request::DescribeStateMachineForExecution(machine)));
}

#[test]
fn requests_about_state_machines_are_read() {
    let list = operation::ListExecutions {
        machine: machine(),
        status: Some(ExecutionStatus::Failed),
        redrive: Some(RedriveFilter::Redriven),
        page: Page { max_results: 1_000, token: None },
    };
    assert_eq!(request("list_executions"), Ok(Request::ListExecutions(list)));
    let described = operation::DescribeStateMachine { machine: machine(), included_data: IncludedData::AllData };
    assert_eq!(request("describe_state_machine"), Ok(Request::DescribeStateMachine(described)));
    let list = operation::ListStateMachines { page: Page { max_results: 100, token: None } };
    assert_eq!(request("list_state_machines"), Ok(Request::ListStateMachines(list)));
    let refused = request("create_state_machine").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::UnknownOperationException);
    assert_eq!(refused.message(), "CreateStateMachine is not supported by this server: state machines are deployed as files");
}

#[test]
fn requests_about_tasks_are_read() {
    let token = "t".repeat(40);
    let Ok(Request::SendTaskSuccess(success)) = request("send_task_success") else { panic!("no success") };
    assert_eq!((success.token.as_str(), success.output), (token.as_str(), json!([1, 2])));
    let Ok(Request::SendTaskFailure(failure)) = request("send_task_failure") else { panic!("no failure") };
    assert_eq!(
        (failure.token.as_str(), failure.error.as_deref(), failure.cause.as_deref()),
        (token.as_str(), Some("No"), Some("because"))
    );
    let Ok(Request::SendTaskHeartbeat(heartbeat)) = request("send_task_heartbeat") else { panic!("no heartbeat") };
    assert_eq!(heartbeat.token.as_str(), token);
    assert_eq!(format!("{heartbeat:?}"), "SendTaskHeartbeat { token: TaskToken(..) }");
}
