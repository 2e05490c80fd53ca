//! The API of AWS Step Functions: signed requests, as SDKs send them, for every operation.

use crate::{entry_with, eventually};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Client, Reply, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

const SECRETS: [(&str, &str); 3] = [
    ("FULL", "made-up/secret+for=everything"),
    ("LOOK", "made-up/secret+for=looking"),
    ("OTHER", "made-up/secret+for=another+tenant"),
];
const OPERATIONS: [&str; 13] = [
    "StartExecution",
    "StartSyncExecution",
    "DescribeExecution",
    "GetExecutionHistory",
    "StopExecution",
    "ListExecutions",
    "RedriveExecution",
    "SendTaskSuccess",
    "SendTaskFailure",
    "SendTaskHeartbeat",
    "DescribeStateMachine",
    "ListStateMachines",
    "DescribeStateMachineForExecution",
];

/// Where the server's log says that the API is.
fn address(server: &Server) -> String {
    let what = "API of AWS Step Functions address=";
    server.wait_for_log(what);
    let log = server.log();
    log.split(what).nth(1).and_then(|rest| rest.lines().next()).expect("an address").to_owned()
}

fn machine(first: &str, states: &Value) -> Value {
    json!({ "StartAt": first, "States": states })
}

fn definitions() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let task = |resource: &str, more: &Value| {
        let mut state = json!({ "Type": "Task", "Resource": resource, "End": true });
        state.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        state
    };
    let pass = json!({ "Type": "Pass", "End": true });
    let two = json!({ "A": { "Type": "Pass", "Next": "B" }, "B": pass });
    let ask = task("fn:task.waitForTaskToken", &json!({ "Parameters": { "token.$": "$$.Task.Token" }, "HeartbeatSeconds": 600 }));
    let wait = json!({ "Type": "Wait", "Seconds": 3_600, "End": true });
    let named = json!({ "Type": "Pass", "Parameters": { "id.$": "$$.Execution.Id", "name.$": "$$.Execution.Name", "input.$": "$" }, "End": true });
    let soon = json!({ "Type": "Wait", "Seconds": 4, "Next": "Add" });
    let add = task("kv:add", &json!({ "Parameters": { "Key": "stayed" } }));
    let peek = task("kv:get", &json!({ "Parameters": { "Key": "stayed" } }));
    vec![
        ("leave", "express", "default", machine("Soon", &json!({ "Soon": soon, "Add": add }))),
        ("peek", "express", "default", machine("Peek", &json!({ "Peek": peek }))),
        ("ask", "standard", "default", machine("Ask", &json!({ "Ask": ask }))),
        (
            "fails",
            "express",
            "default",
            machine("F", &json!({ "F": { "Type": "Fail", "Error": "Broken", "Cause": "by design" } })),
        ),
        ("flaky", "standard", "default", machine("Try", &json!({ "Try": task("fn:task", &json!({})) }))),
        ("long", "standard", "default", machine("Wait", &json!({ "Wait": wait }))),
        ("quick", "express", "default", machine("Named", &json!({ "Named": named }))),
        ("slow", "express", "default", machine("Wait", &json!({ "Wait": wait }))),
        ("two", "standard", "default", machine("A", &two)),
        ("two", "standard", "other", machine("A", &two)),
        ("wrong", "standard", "default", json!({ "StartAt": "A", "States": {} })),
    ]
}

/// A server with workflows, and keys for the API. All of it is in a folder, from which it starts again.
struct Served {
    folder: tempfile::TempDir,
    server: Server,
    address: String,
}

impl Served {
    fn start() -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        let workflows = definitions().into_iter().map(|(name, kind, tenant, definition)| {
            let path = folder.path().join(format!("{tenant}-{name}.json"));
            fs::write(&path, definition.to_string()).expect("write a definition");
            json!({ "name": name, "path": path, "type": kind, "tenant": tenant, "route": format!("/{tenant}/{name}"),
                    "executions_max": if name == "long" { 2 } else { 1_000 }, "deadline_ms": if name == "slow" { 500 } else { 30_000 } })
        });
        let keys = SECRETS.map(|(id, secret)| {
            let path = folder.path().join(id);
            fs::write(&path, format!("{secret}\n")).expect("write a secret");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set the mode");
            let tenant = if id == "OTHER" { "other" } else { "default" };
            json!({ "id": id, "secret": { "file": path }, "tenant": tenant, "read_only": id == "LOOK" })
        });
        let config = json!({
            "listen": "127.0.0.1:0", "admin": "none", "kv": folder.path().join("kv.redb"), "workers": 2,
            "aws_api": { "listen": "127.0.0.1:0", "keys": keys },
            "functions": [entry_with("task", "task.c", &json!({ "route": "/task" }))], "workflows": workflows.collect::<Vec<_>>(),
        });
        fs::write(folder.path().join("sledge.json"), config.to_string()).expect("write the configuration");
        let server = serve(folder.path());
        let address = address(&server);
        Served { folder, server, address }
    }

    /// The server goes, and another one comes.
    fn again(self) -> Served {
        self.server.stop();
        let server = serve(self.folder.path());
        let address = address(&server);
        Served { server, address, ..self }
    }

    fn client(&self, key: usize) -> Signed {
        let (id, secret) = SECRETS[key];
        Signed { address: self.address.clone(), id: id.to_owned(), secret: secret.to_owned(), region: "eu-central-1".to_owned() }
    }
}

fn serve(folder: &Path) -> Server {
    Server::start_with(sledge_command(&["serve", "--config"]).arg(folder.join("sledge.json")))
}

/// A client with a key.
#[derive(Clone)]
struct Signed {
    address: String,
    id: String,
    secret: String,
    region: String,
}

impl Signed {
    /// The headers of a request that was signed so many seconds ago.
    fn headers(&self, operation: &str, body: &str, age_s: u64) -> Vec<(String, String)> {
        let mut headers = vec![
            ("host".to_owned(), self.address.clone()),
            ("content-type".to_owned(), "application/x-amz-json-1.0".to_owned()),
            ("x-amz-target".to_owned(), format!("AWSStepFunctions.{operation}")),
        ];
        let identity = Credentials::new(&self.id, &self.secret, None, None, "test").into();
        let parameters = v4::SigningParams::builder().identity(&identity).region(&self.region).name("states");
        let time = SystemTime::now() - Duration::from_secs(age_s);
        let parameters = parameters.time(time).settings(SigningSettings::default()).build().expect("all that a signature needs");
        let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let request =
            SignableRequest::new("POST", format!("http://{}/", self.address), pairs, SignableBody::Bytes(body.as_bytes()));
        let (instructions, _) = sign(request.expect("a request"), &parameters.into()).expect("a signature").into_parts();
        headers.extend(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())));
        headers
    }

    fn send(&self, path: &str, headers: &[(String, String)], body: &str) -> Reply {
        let headers: Vec<_> =
            headers.iter().filter(|(name, _)| name != "host").map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let client = Client::new(self.address.parse().expect("an address"), TIME_MAX);
        client.try_post(path, body.as_bytes(), &headers).expect("an answer")
    }

    fn ask(&self, operation: &str, input: &Value) -> Reply {
        let body = input.to_string();
        self.send("/", &self.headers(operation, &body, 0), &body)
    }

    #[track_caller]
    fn ok(&self, operation: &str, input: &Value) -> Value {
        let reply = self.ask(operation, input);
        assert_eq!(reply.status, 200, "{operation} {input}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/x-amz-json-1.0"));
        assert!(reply.header("x-amzn-requestid").is_some_and(|id| id.len() == 36), "{reply:?}");
        reply.json()
    }

    /// The code of the error, and its message.
    #[track_caller]
    fn error(&self, operation: &str, input: &Value) -> (String, String) {
        error(&self.ask(operation, input))
    }

    #[track_caller]
    fn code(&self, operation: &str, input: &Value) -> String {
        self.error(operation, input).0
    }

    #[track_caller]
    fn start(&self, machine: &str, name: &str, input: &Value) -> String {
        let started = self
            .ok("StartExecution", &json!({ "stateMachineArn": machine_arn(machine), "name": name, "input": input.to_string() }));
        started["executionArn"].as_str().expect("an ARN").to_owned()
    }

    /// Waits until an execution stands so.
    #[track_caller]
    fn until(&self, execution: &str, status: &str) -> Value {
        let describe = || self.ok("DescribeExecution", &json!({ "executionArn": execution }));
        eventually(status, || describe()["status"] == status);
        describe()
    }

    /// The token of the task for which an execution waits.
    fn token(&self, execution: &str) -> String {
        let find = || {
            let history = self.ok("GetExecutionHistory", &json!({ "executionArn": execution, "reverseOrder": true }));
            let events = history["events"].as_array().expect("events").clone();
            if !events.iter().any(|event| event["type"] == "TaskSubmitted") {
                return None;
            }
            let scheduled = events.iter().find_map(|event| event.get("taskScheduledEventDetails"))?;
            assert_eq!(scheduled["region"], "local");
            let parameters: Value = serde_json::from_str(scheduled["parameters"].as_str()?).ok()?;
            Some(parameters["token"].as_str()?.to_owned())
        };
        eventually("a token", || find().is_some());
        find().expect("a token")
    }
}

#[track_caller]
fn error(reply: &Reply) -> (String, String) {
    let told = reply.json();
    let code = told["__type"].as_str().and_then(|name| name.split('#').nth(1)).unwrap_or_default().to_owned();
    assert_eq!(reply.header("x-amzn-errortype"), Some(code.as_str()), "{}", reply.text());
    assert!(reply.status >= 400, "{}", reply.text());
    (code, told["message"].as_str().unwrap_or_default().to_owned())
}

fn machine_arn(name: &str) -> String {
    format!("arn:aws:states:local:default:stateMachine:{name}")
}

fn execution_arn(machine: &str, name: &str) -> String {
    format!("arn:aws:states:local:default:execution:{machine}:{name}")
}

#[test]
fn executions_begin_and_are_described() {
    let served = Served::start();
    let client = served.client(0);
    let machines = client.ok("ListStateMachines", &json!({}));
    let names: Vec<_> = machines["stateMachines"].as_array().unwrap().iter().map(|machine| machine["name"].clone()).collect();
    assert_eq!(
        json!(names),
        json!(["ask", "fails", "flaky", "leave", "long", "peek", "quick", "slow", "two"]),
        "without the one that is wrong"
    );
    let described = client.ok("DescribeStateMachine", &json!({ "stateMachineArn": machine_arn("quick") }));
    assert_eq!((&described["type"], &described["status"]), (&json!("EXPRESS"), &json!("ACTIVE")));
    let definition: Value = serde_json::from_str(described["definition"].as_str().unwrap()).unwrap();
    assert_eq!(definition["StartAt"], "Named");
    assert_eq!(
        client.code("DescribeStateMachine", &json!({ "stateMachineArn": machine_arn("wrong") })),
        "StateMachineDoesNotExist"
    );

    // Written for another region, and signed for a third one.
    let elsewhere = machine_arn("two").replace("local", "us-east-1");
    let start = json!({ "stateMachineArn": elsewhere, "name": "one", "input": "{\"b\": 1, \"a\": 2}" });
    let started = client.ok("StartExecution", &start);
    assert_eq!(started["executionArn"], execution_arn("two", "one"));
    let described = client.until(&execution_arn("two", "one"), "SUCCEEDED");
    assert_eq!(described["startDate"], started["startDate"]);
    assert_eq!((&described["input"], &described["output"]), (&json!(r#"{"b":1,"a":2}"#), &json!(r#"{"b":1,"a":2}"#)));
    assert_eq!(
        (&described["redriveStatus"], &described["stateMachineArn"]),
        (&json!("NOT_REDRIVABLE"), &json!(machine_arn("two")))
    );
    let metadata =
        client.ok("DescribeExecution", &json!({ "executionArn": execution_arn("two", "one"), "includedData": "METADATA_ONLY" }));
    assert_eq!((metadata.get("input"), metadata["inputDetails"]["included"].as_bool()), (None, Some(false)));
    let of = client.ok("DescribeStateMachineForExecution", &json!({ "executionArn": execution_arn("two", "one") }));
    assert_eq!((&of["name"], of["definition"].as_str().is_some_and(|text| text.contains("Pass"))), (&json!("two"), true));

    assert_eq!(client.code("StartExecution", &start), "ExecutionAlreadyExists");
    let begin = |machine: &str, name: &str, input: &str| {
        client.code("StartExecution", &json!({ "stateMachineArn": machine_arn(machine), "name": name, "input": input }))
    };
    assert_eq!(begin("absent", "a", "{}"), "StateMachineDoesNotExist");
    assert_eq!(begin("quick", "a", "{}"), "StateMachineTypeNotSupported");
    assert_eq!([begin("two", "a b", "{}"), begin("two", "é", "{}")], ["InvalidName", "InvalidName"]);
    assert_eq!(begin("two", "a", "{"), "InvalidExecutionInput");
    // The same once more, while it runs, is the same.
    let long = client.start("long", "one", &json!({ "a": 1 }));
    assert_eq!(client.start("long", "one", &json!({ "a": 1 })), long);
    assert_eq!(begin("long", "one", "{}"), "ExecutionAlreadyExists");
    client.start("long", "two", &json!({}));
    assert_eq!(begin("long", "three", "{}"), "ExecutionLimitExceeded");
    assert_eq!(
        client.code("DescribeExecution", &json!({ "executionArn": execution_arn("two", "none") })),
        "ExecutionDoesNotExist"
    );
    assert_eq!(client.code("DescribeExecution", &json!({ "executionArn": "nonsense" })), "InvalidArn");

    let stop = json!({ "executionArn": long, "error": "Enough", "cause": "of it" });
    let stopped = client.ok("StopExecution", &stop);
    let described = client.until(&long, "ABORTED");
    assert_eq!(
        (&described["error"], &described["cause"], &described["stopDate"]),
        (&json!("Enough"), &json!("of it"), &stopped["stopDate"])
    );
    assert_eq!(client.ok("StopExecution", &stop), stopped, "it has ended");
    assert_eq!(client.code("StopExecution", &json!({ "executionArn": execution_arn("two", "none") })), "ExecutionDoesNotExist");
    served.server.stop();
}

#[test]
fn express_executions_are_waited_for() {
    let served = Served::start();
    let client = served.client(0);
    let sync = |machine: &str, more: &Value| {
        let mut input = json!({ "stateMachineArn": machine_arn(machine) });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.ask("StartSyncExecution", &input)
    };
    let ended = sync("quick", &json!({ "name": "mine", "input": "[1]", "traceHeader": "Root=1" })).json();
    let output: Value = serde_json::from_str(ended["output"].as_str().unwrap()).unwrap();
    assert_eq!((&ended["status"], &output["name"], &output["input"]), (&json!("SUCCEEDED"), &json!("mine"), &json!([1])));
    assert_eq!((&output["id"], &ended["traceHeader"]), (&ended["executionArn"], &json!("Root=1")));
    assert!(ended["executionArn"].as_str().unwrap().starts_with("arn:aws:states:local:default:express:quick:mine:"), "{ended}");
    let failed = sync("fails", &json!({})).json();
    assert_eq!(
        (&failed["status"], &failed["error"], &failed["cause"]),
        (&json!("FAILED"), &json!("Broken"), &json!("by design"))
    );
    let late = sync("slow", &json!({ "includedData": "METADATA_ONLY" })).json();
    assert_eq!((&late["status"], &late["error"], late.get("input")), (&json!("TIMED_OUT"), &json!("States.Timeout"), None));
    // A client that does not wait for its end ends it.
    let body = json!({ "stateMachineArn": machine_arn("leave") }).to_string();
    let headers = client.headers("StartSyncExecution", &body, 0);
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut leaves = TcpStream::connect(&served.address).expect("a connection");
    let request = format!("POST / HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
    leaves.write_all(request.as_bytes()).expect("send a request");
    thread::sleep(Duration::from_millis(300));
    drop(leaves);
    thread::sleep(Duration::from_millis(5_000));
    assert_eq!(sync("peek", &json!({})).json()["output"], r#"{"Value":null,"Found":false}"#);
    assert_eq!(sync("leave", &json!({})).json()["output"], r#"{"Value":1}"#);
    assert_eq!(sync("peek", &json!({})).json()["output"], r#"{"Value":1,"Found":true}"#);
    assert_eq!(error(&sync("two", &json!({}))).0, "StateMachineTypeNotSupported");
    let express = json!({ "executionArn": ended["executionArn"] });
    assert_eq!(client.code("DescribeExecution", &express), "InvalidArn", "they are not kept");
    assert_eq!(
        client.code("ListExecutions", &json!({ "stateMachineArn": machine_arn("quick") })),
        "StateMachineTypeNotSupported"
    );
    served.server.stop();
}

#[test]
fn tasks_are_told_by_their_tokens_also_after_a_restart() {
    let served = Served::start();
    let client = served.client(0);
    let executions = ["good", "bad", "late"].map(|name| client.start("ask", name, &json!({})));
    let tokens = [0, 1, 2].map(|index| client.token(&executions[index]));
    let served = served.again();
    let (client, other) = (served.client(0), served.client(2));
    let success = |token: &str| json!({ "taskToken": token, "output": "{\"paid\":true}" });
    // Tokens are the tenant's.
    assert_eq!(other.code("SendTaskSuccess", &success(&tokens[0])), "TaskTimedOut");
    assert_eq!(other.code("SendTaskHeartbeat", &json!({ "taskToken": tokens[0] })), "TaskTimedOut");
    assert_eq!(client.ok("SendTaskHeartbeat", &json!({ "taskToken": tokens[0] })), json!({}));
    assert_eq!(client.ok("SendTaskSuccess", &success(&tokens[0])), json!({}));
    assert_eq!(client.until(&executions[0], "SUCCEEDED")["output"], "{\"paid\":true}");
    assert_eq!(client.code("SendTaskSuccess", &success(&tokens[0])), "TaskTimedOut", "once");
    client.ok("SendTaskFailure", &json!({ "taskToken": tokens[1], "error": "Refused", "cause": "no" }));
    let failed = client.until(&executions[1], "FAILED");
    assert_eq!((&failed["error"], &failed["cause"]), (&json!("Refused"), &json!("no")));
    client.ok("StopExecution", &json!({ "executionArn": executions[2] }));
    assert_eq!(client.code("SendTaskSuccess", &success(&tokens[2])), "TaskTimedOut");
    for nonsense in ["nonsense", "1-1", "1-1.1", &format!("{}0", tokens[2]), &tokens[2].to_uppercase().replace('-', "_")] {
        assert_eq!(client.code("SendTaskSuccess", &success(nonsense)), "InvalidToken", "{nonsense}");
    }
    assert_eq!(client.code("SendTaskSuccess", &json!({ "taskToken": tokens[2], "output": "{" })), "InvalidOutput");
    served.server.stop();
}

#[test]
fn what_failed_is_redriven_once_for_each_token() {
    let served = Served::start();
    let client = served.client(0);
    let execution = client.start("flaky", "one", &json!("flaky"));
    let failed = client.until(&execution, "FAILED");
    assert_eq!(
        (&failed["error"], &failed["redriveStatus"], &failed["redriveCount"]),
        (&json!("Flaky"), &json!("REDRIVABLE"), &json!(0))
    );
    let redrive = |token: &str| json!({ "executionArn": execution, "clientToken": token });
    let first = client.ok("RedriveExecution", &redrive("first"));
    assert_eq!(client.ok("RedriveExecution", &redrive("first")), first, "the answer may have been lost");
    let failed = client.until(&execution, "FAILED");
    assert_eq!((&failed["redriveCount"], &failed["redriveDate"]), (&json!(1), &first["redriveDate"]));
    client.ok("RedriveExecution", &redrive("second"));
    let ended = client.until(&execution, "SUCCEEDED");
    assert_eq!((&ended["redriveCount"], &ended["output"]), (&json!(2), &json!("{\"times\":3}")));
    let (code, message) = client.error("RedriveExecution", &redrive("third"));
    assert_eq!((code.as_str(), message.as_str()), ("ExecutionNotRedrivable", "Execution is SUCCEEDED and cannot be redriven"));
    let history = client.ok("GetExecutionHistory", &json!({ "executionArn": execution }));
    let redriven = history["events"].as_array().unwrap().iter().filter(|event| event["type"] == "ExecutionRedriven").count();
    assert_eq!(redriven, 2);
    client.start("flaky", "two", &json!({}));
    let list =
        |filter: &str| client.ok("ListExecutions", &json!({ "stateMachineArn": machine_arn("flaky"), "redriveFilter": filter }));
    let names = |list: &Value| list["executions"].as_array().unwrap().iter().map(|item| item["name"].clone()).collect::<Vec<_>>();
    assert_eq!((names(&list("REDRIVEN")), names(&list("NOT_REDRIVEN"))), (vec![json!("one")], vec![json!("two")]));
    served.server.stop();
}

/// All items of all pages, in their order, and how many pages there were.
#[track_caller]
fn pages(client: &Signed, operation: &str, list: &str, input: &Value) -> (Vec<Value>, usize) {
    let (mut input, mut items, mut count) = (input.clone(), Vec::new(), 0);
    loop {
        let page = client.ok(operation, &input);
        items.extend(page[list].as_array().expect("a list").iter().cloned());
        count += 1;
        let Some(token) = page.get("nextToken") else { return (items, count) };
        input["nextToken"] = token.clone();
    }
}

#[test]
fn lists_and_histories_have_pages() {
    let served = Served::start();
    let client = served.client(0);
    let names: Vec<_> = (0..70).map(|number| format!("n{number:02}")).collect();
    let executions: Vec<_> = names.iter().map(|name| client.start("two", name, &json!({ "n": name }))).collect();
    let stays = client.start("long", "stays", &json!({}));
    for execution in &executions {
        client.until(execution, "SUCCEEDED");
    }
    let served = served.again();
    let client = served.client(1);
    let of_two = json!({ "stateMachineArn": machine_arn("two") });
    let listed = |more: &Value| {
        let mut input = of_two.clone();
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (items, count) = pages(&client, "ListExecutions", "executions", &input);
        (items.iter().rev().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), count)
    };
    assert_eq!(listed(&json!({})), (names.clone(), 1), "the latest first");
    assert_eq!(listed(&json!({ "maxResults": 7 })), (names.clone(), 10));
    assert_eq!(listed(&json!({ "maxResults": 40, "statusFilter": "SUCCEEDED" })), (names.clone(), 2));
    assert_eq!(listed(&json!({ "statusFilter": "FAILED" })), (Vec::new(), 1));
    assert_eq!(listed(&json!({ "statusFilter": "PENDING_REDRIVE" })), (Vec::new(), 1));
    let long = client.ok("ListExecutions", &json!({ "stateMachineArn": machine_arn("long"), "statusFilter": "RUNNING" }));
    assert_eq!((&long["executions"][0]["executionArn"], long["executions"][0].get("stopDate")), (&json!(stays), None));

    let (machines, count) = pages(&client, "ListStateMachines", "stateMachines", &json!({ "maxResults": 3 }));
    assert_eq!((machines.len(), count), (9, 3));
    let history = |more: &Value| {
        let mut input = json!({ "executionArn": executions[0] });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (events, count) = pages(&client, "GetExecutionHistory", "events", &input);
        (events.iter().map(|event| event["id"].as_u64().unwrap()).collect::<Vec<_>>(), count)
    };
    assert_eq!(history(&json!({})), (vec![1, 2, 3, 4, 5, 6], 1));
    assert_eq!(history(&json!({ "maxResults": 4 })), (vec![1, 2, 3, 4, 5, 6], 2));
    assert_eq!(history(&json!({ "maxResults": 1, "reverseOrder": true })), (vec![6, 5, 4, 3, 2, 1], 6));
    let events = |data: bool| {
        client.ok("GetExecutionHistory", &json!({ "executionArn": executions[0], "includeExecutionData": data }))["events"][0]
            .clone()
    };
    assert_eq!(events(true)["executionStartedEventDetails"]["input"], "{\"n\":\"n00\"}");
    assert_eq!(events(false)["executionStartedEventDetails"].get("input"), None);

    // Tokens are for the list that gave them.
    let token = client.ok("GetExecutionHistory", &json!({ "executionArn": executions[0], "maxResults": 1 }))["nextToken"].clone();
    for (operation, input) in [
        ("GetExecutionHistory", json!({ "executionArn": executions[1], "nextToken": token })),
        ("GetExecutionHistory", json!({ "executionArn": executions[0], "nextToken": token, "reverseOrder": true })),
        ("GetExecutionHistory", json!({ "executionArn": executions[0], "nextToken": "h" })),
        ("ListExecutions", json!({ "stateMachineArn": machine_arn("two"), "nextToken": token })),
        ("ListStateMachines", json!({ "nextToken": token })),
    ] {
        assert_eq!(client.code(operation, &input), "InvalidToken", "{operation} {input}");
    }
    served.server.stop();
}

#[test]
fn keys_and_signatures_say_who_may_what() {
    let served = Served::start();
    let (client, looks, other) = (served.client(0), served.client(1), served.client(2));
    let execution = client.start("long", "one", &json!({}));
    // Another tenant sees nothing of this one.
    for (operation, code) in [
        ("DescribeExecution", "ExecutionDoesNotExist"),
        ("GetExecutionHistory", "ExecutionDoesNotExist"),
        ("StopExecution", "ExecutionDoesNotExist"),
        ("RedriveExecution", "ExecutionDoesNotExist"),
        ("DescribeStateMachineForExecution", "ExecutionDoesNotExist"),
        ("StartExecution", "StateMachineDoesNotExist"),
        ("StartSyncExecution", "StateMachineDoesNotExist"),
        ("ListExecutions", "StateMachineDoesNotExist"),
        ("DescribeStateMachine", "StateMachineDoesNotExist"),
    ] {
        let input = json!({ "executionArn": execution, "stateMachineArn": machine_arn("two") });
        assert_eq!(other.code(operation, &input), code, "{operation}");
    }
    let machines = other.ok("ListStateMachines", &json!({}));
    assert_eq!(machines["stateMachines"].as_array().unwrap().len(), 1);
    assert_eq!(machines["stateMachines"][0]["stateMachineArn"], "arn:aws:states:local:other:stateMachine:two");
    let own =
        other.ok("StartExecution", &json!({ "stateMachineArn": "arn:aws:states:local:other:stateMachine:two", "name": "one" }));
    assert_eq!(other.until(own["executionArn"].as_str().unwrap(), "SUCCEEDED")["output"], "{}");
    client.until(&client.start("two", "one", &json!({})), "SUCCEEDED");
    assert_eq!(client.code("DescribeExecution", &own), "ExecutionDoesNotExist", "though there is one of that name");

    for operation in OPERATIONS {
        let may = ["Describe", "List", "Get"].iter().any(|prefix| operation.starts_with(prefix));
        let (code, message) =
            error(&looks.ask(operation, &json!({ "executionArn": 1, "maxResults": "x", "stateMachineArn": 1 })));
        assert_eq!(code == "AccessDeniedException", !may, "{operation}: {code}");
        assert!(may || message.contains(&format!("states:{operation}")), "{message}");
    }
    assert_eq!(looks.ok("DescribeExecution", &json!({ "executionArn": execution }))["status"], "RUNNING");

    // Signatures.
    let body = json!({ "executionArn": execution }).to_string();
    let headers = client.headers("DescribeExecution", &body, 0);
    assert_eq!(client.send("/", &headers, &body).status, 200);
    let refused = |headers: &[(String, String)], body: &str| error(&client.send("/", headers, body)).0;
    assert_eq!(refused(&headers, &body.replace("one", "two")), "InvalidSignatureException");
    let of = |name: &str, value: &str| {
        let mut changed = headers.clone();
        changed.iter_mut().filter(|(known, _)| known == name).for_each(|(_, old)| value.clone_into(old));
        changed
    };
    assert_eq!(refused(&of("x-amz-target", "AWSStepFunctions.StopExecution"), &body), "InvalidSignatureException");
    assert_eq!(refused(&of("authorization", "AWS4-HMAC-SHA256 Credential=FULL"), &body), "IncompleteSignatureException");
    let without: Vec<_> = headers.iter().filter(|(name, _)| name != "authorization").cloned().collect();
    assert_eq!(refused(&without, &body), "MissingAuthenticationTokenException");
    assert_eq!(refused(&client.headers("DescribeExecution", &body, 400), &body), "InvalidSignatureException");
    let stranger = Signed { id: "STRANGER".to_owned(), ..client.clone() };
    assert_eq!(stranger.code("ListStateMachines", &json!({})), "UnrecognizedClientException");
    let guesses = Signed { secret: SECRETS[1].1.to_owned(), ..client.clone() };
    assert_eq!(guesses.code("ListStateMachines", &json!({})), "InvalidSignatureException");
    assert_eq!(client.code("CreateStateMachine", &json!({})), "UnknownOperationException");
    let large = " ".repeat((1 << 20) + 1);
    let reply = client.send("/", &client.headers("ListStateMachines", &large, 0), &large);
    assert_eq!((reply.status, error(&reply).0.as_str()), (413, "RequestEntityTooLargeException"));
    // The admin API is not there.
    assert_eq!(Client::new(served.address.parse().unwrap(), TIME_MAX).get("/metrics").status, 400);
    served.server.stop();
}

#[test]
fn a_server_that_is_killed_goes_on_and_what_is_wrong_with_keys_is_said_at_the_start() {
    let served = Served::start();
    let client = served.client(0);
    let execution = client.start("ask", "one", &json!({}));
    let token = client.token(&execution);
    let Served { folder, mut server, .. } = served;
    server.signal(Signal::KILL);
    server.wait(TIME_MAX);
    let server = serve(folder.path());
    let client = Signed { address: address(&server), ..client };
    client.ok("SendTaskSuccess", &json!({ "taskToken": token, "output": "7" }));
    assert_eq!(client.until(&execution, "SUCCEEDED")["output"], "7");
    server.stop();

    let path = folder.path().join("sledge.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    fs::write(folder.path().join("FULL"), "short").unwrap();
    fs::set_permissions(folder.path().join("LOOK"), fs::Permissions::from_mode(0o644)).unwrap();
    config["aws_api"]["listen"] = json!("everywhere");
    fs::write(&path, config.to_string()).unwrap();
    let done = process::run(sledge_command(&["serve", "--config"]).arg(&path), b"", TIME_MAX);
    for words in
        ["aws_api.listen: `everywhere`", "aws_api.keys[0].secret", "holds 5 bytes", "aws_api.keys[1].secret", "chmod 600"]
    {
        assert!(done.code() == 1 && done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    assert!(!done.stderr.contains("short;"), "{}", done.stderr);
}
