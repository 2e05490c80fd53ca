//! `sledge workflow start`, `list`, `show`, `history`, `stop`, `redrive`, `restart`, `pause`, `resume`, `queues`, `callback`: durable executions, at the admin API of a running server.

use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

use clap::Args;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};
use sledge_workflow::data::Timestamp;

use super::super::operate::{AskArgs, Door, ask, cell, done, plain, rows_of};
use super::super::{FAILURE, fail, print_line};
use crate::admin::client::ClientError;

/// How often it is looked whether an execution has ended.
const LOOK: Duration = Duration::from_millis(200);

/// The workflow of an execution.
#[derive(Debug, Args)]
pub(in crate::cli) struct Of {
    /// The workflow's name
    workflow: String,
    /// The workflow's tenant
    #[arg(long, default_value = "default")]
    tenant: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StartArgs {
    #[command(flatten)]
    of: Of,
    /// The input, in JSON; `@FILE` reads a file, `-` standard input [default: {}]
    input: Option<String>,
    /// The execution's name; a name is one execution, however often it is started [default: a new one]
    #[arg(long)]
    name: Option<String>,
    /// Wait until it has ended, and print its output
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    /// The workflow's name [default: all workflows are listed, without executions]
    workflow: Option<String>,
    /// The workflow's tenant
    #[arg(long, default_value = "default")]
    tenant: String,
    /// Only executions of this status: queued, running, succeeded, failed, timed_out, aborted
    #[arg(long)]
    status: Option<String>,
    /// The newest so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    max: usize,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct OneArgs {
    #[command(flatten)]
    of: Of,
    /// The execution's name
    execution: String,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StopArgs {
    #[command(flatten)]
    one: OneArgs,
    /// The name of the error with which it ends
    #[arg(long)]
    error: Option<String>,
    /// Why
    #[arg(long)]
    cause: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct QueuesArgs {
    #[command(flatten)]
    of: Of,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RestartArgs {
    #[command(flatten)]
    one: OneArgs,
    /// The state at which it goes on
    #[arg(long, value_name = "STATE")]
    from: String,
    /// The state's input, in JSON; `@FILE` reads a file, `-` standard input [default: the one that it had last]
    #[arg(long)]
    input: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PauseArgs {
    #[command(flatten)]
    of: Of,
    /// The execution's name [default: all of the workflow, and those that begin]
    execution: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CallbackArgs {
    /// The token that the task was given
    token: String,
    /// The task's result, in JSON; `@FILE` reads a file, `-` standard input
    #[arg(long, conflicts_with_all = ["error", "cause", "heartbeat"], required_unless_present_any = ["error", "heartbeat"])]
    output: Option<String>,
    /// The task has failed: the error's name
    #[arg(long)]
    error: Option<String>,
    /// What happened
    #[arg(long, requires = "error")]
    cause: Option<String>,
    /// The task is alive
    #[arg(long, conflicts_with_all = ["error", "cause"])]
    heartbeat: bool,
    #[command(flatten)]
    door: Door,
}

type Asked = Result<Value, ClientError>;

impl Of {
    fn path(&self, below: &str) -> String {
        format!("/workflows/{}/executions{below}?tenant={}", self.workflow, self.tenant)
    }
}

impl OneArgs {
    fn path(&self, below: &str) -> String {
        self.of.path(&format!("/{}{below}", self.execution))
    }

    /// The execution's name.
    pub(in crate::cli) fn execution(&self) -> &str {
        &self.execution
    }

    /// What the server tells of it.
    pub(in crate::cli) fn get(&self, below: &str, more: &str) -> Asked {
        ask(&self.ask.door, Request::get(self.path(below) + more).body(Full::default()))
    }
}

/// JSON that was given, or is read from standard input.
fn document(given: &str) -> Result<Value, ClientError> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        io::stdin().read_to_string(&mut text)?;
    } else if let Some(file) = given.strip_prefix('@') {
        text = fs::read_to_string(file)?;
    }
    serde_json::from_str(&text).map_err(|error| ClientError::Refused(format!("the JSON that was given is wrong: {error}")))
}

fn post(door: &Door, path: String, body: &Value) -> Asked {
    ask(door, Request::post(path).body(Full::from(body.to_string())))
}

pub(super) fn start(args: &StartArgs) -> ExitCode {
    let StartArgs { of, input, name, wait, ask: AskArgs { json, door } } = args;
    let named = name.as_ref().map(|name| format!("&name={name}")).unwrap_or_default();
    let started = input.as_deref().map_or_else(|| Ok(json!({})), document);
    let started = match started.and_then(|input| post(door, of.path("") + &named, &input)) {
        Ok(started) => started,
        Err(error) => return fail(error),
    };
    let execution = plain(&started["name"]);
    if !wait {
        return print_line(&if *json { started.to_string() } else { execution });
    }
    let one = of.path(&format!("/{execution}"));
    loop {
        match ask(door, Request::get(&one).body(Full::default())) {
            Ok(now) if now["status"] == "RUNNING" || now["status"] == "QUEUED" => std::thread::sleep(LOOK),
            Ok(ended) if ended["status"] == "SUCCEEDED" => {
                return print_line(&if *json { ended.to_string() } else { ended["output"].to_string() });
            }
            Ok(ended) => {
                if *json {
                    print_line(&ended.to_string());
                    return FAILURE.into();
                }
                let (error, cause) = (plain(&ended["error"]), plain(&ended["cause"]));
                return fail(format_args!("{execution} ended as {}: {error}: {cause}", plain(&ended["status"])));
            }
            Err(error) => return fail(error),
        }
    }
}

pub(super) fn list(args: &ListArgs) -> ExitCode {
    let ListArgs { workflow, tenant, status, max, ask: AskArgs { json, door } } = args;
    let Some(workflow) = workflow else {
        let all = ask(door, Request::get("/workflows").body(Full::default()));
        return done(all.map(|all| {
            if *json { all.to_string() } else { table(&all, ["name", "tenant", "type", "route", "paused", "problem"]) }
        }));
    };
    let status = status.as_ref().map(|status| format!("&status={status}")).unwrap_or_default();
    let path = format!("/workflows/{workflow}/executions?tenant={tenant}&max={max}{status}");
    let found = ask(door, Request::get(path).body(Full::default()));
    done(found.map(|mut found| {
        if *json {
            return found.to_string();
        }
        for execution in found["executions"].as_array_mut().into_iter().flatten() {
            if execution["paused"] == true {
                execution["status"] = "RUNNING (paused)".into();
            }
            execution["started"] = time(&execution["started_ms"]);
            execution["stopped"] = time(&execution["stopped_ms"]);
        }
        table(&found["executions"], ["name", "status", "started", "stopped", "redrives"])
    }))
}

/// Rows of objects, below their keys.
fn table<const COLUMNS: usize>(rows: &Value, keys: [&str; COLUMNS]) -> String {
    let rows = rows.as_array().into_iter().flatten().map(|row| keys.map(|key| cell(&row[key])));
    rows_of(std::iter::once(keys.map(str::to_owned)).chain(rows).collect())
}

/// A time in RFC 3339; null where there is none.
fn time(ms: &Value) -> Value {
    ms.as_i64().and_then(|ms| Timestamp::from_unix_ms(ms).ok()).map_or(Value::Null, |time| time.to_string().into())
}

pub(super) fn show(args: &OneArgs) -> ExitCode {
    let shown = args.get("", "");
    done(shown.map(|one| if args.ask.json { one.to_string() } else { format!("{one:#}") }))
}

pub(super) fn history(args: &OneArgs) -> ExitCode {
    let mut after = String::new();
    loop {
        let page = match args.get("/history", &after) {
            Ok(page) => page,
            Err(error) => return fail(error),
        };
        for event in page["events"].as_array().into_iter().flatten() {
            print_line(&if args.ask.json { event.to_string() } else { line(event) });
        }
        match page["next"].as_u64() {
            Some(next) => after = format!("&after={next}"),
            None => return ExitCode::SUCCESS,
        }
    }
}

/// An event of a history on one line: its number, its time, its type, and what it tells in short.
fn line(event: &Value) -> String {
    let details = event.as_object().into_iter().flatten().find(|(key, _)| key.ends_with("EventDetails"));
    let told = details.map(|(_, details)| {
        let keys = ["name", "resource", "error", "cause", "input", "parameters", "output"];
        let told = keys.into_iter().filter_map(|key| Some(format!("{key}={}", plain(details.get(key)?))));
        told.collect::<Vec<_>>().join(" ")
    });
    let at_ms = event["timestamp"].as_f64().unwrap_or_default() * 1_000.0;
    // Milliseconds of this age are whole in a float.
    let at = plain(&time(&json!(at_ms.round() as i64)));
    format!("{:>5}  {at}  {}  {}", event["id"], plain(&event["type"]), told.unwrap_or_default()).trim_end().to_owned()
}

pub(super) fn stop(StopArgs { one, error, cause }: &StopArgs) -> ExitCode {
    let stopped = post(&one.ask.door, one.path("/stop"), &json!({ "error": error, "cause": cause }));
    done(stopped.map(|stopped| {
        if one.ask.json { stopped.to_string() } else { format!("{} is {}", one.execution, plain(&stopped["status"])) }
    }))
}

pub(super) fn redrive(one: &OneArgs) -> ExitCode {
    let driven = post(&one.ask.door, one.path("/redrive"), &Value::Null);
    done(driven.map(|driven| if one.ask.json { driven.to_string() } else { format!("{} goes on", one.execution) }))
}

pub(super) fn queues(QueuesArgs { of, ask: AskArgs { json, door } }: &QueuesArgs) -> ExitCode {
    let found = ask(door, Request::get(format!("/workflows/{}/queues?tenant={}", of.workflow, of.tenant)).body(Full::default()));
    done(found.map(|found| if *json { found.to_string() } else { table(&found["queues"], ["key", "running", "queued"]) }))
}

pub(super) fn restart(RestartArgs { one, from, input }: &RestartArgs) -> ExitCode {
    let from = percent_encoding::utf8_percent_encode(from, percent_encoding::NON_ALPHANUMERIC);
    let body = match input.as_deref().map(document).transpose() {
        Ok(input) => input.map(|input| input.to_string()).unwrap_or_default(),
        Err(error) => return fail(error),
    };
    let path = format!("{}&from={from}", one.path("/restart"));
    let driven = ask(&one.ask.door, Request::post(path).body(Full::from(body)));
    done(driven.map(|driven| if one.ask.json { driven.to_string() } else { format!("{} goes on", one.execution) }))
}

/// Pauses an execution or a workflow, or lets it go on.
pub(super) fn pause(PauseArgs { of, execution, ask: AskArgs { json, door } }: &PauseArgs, paused: bool) -> ExitCode {
    let verb = if paused { "pause" } else { "resume" };
    let (name, path) = match execution {
        Some(name) => (name, of.path(&format!("/{name}/{verb}"))),
        None => (&of.workflow, format!("/workflows/{}/{verb}?tenant={}", of.workflow, of.tenant)),
    };
    let told = post(door, path, &Value::Null);
    let word = if paused { "is paused" } else { "goes on" };
    done(told.map(|told| if *json { told.to_string() } else { format!("{name} {word}") }))
}

pub(super) fn callback(args: &CallbackArgs) -> ExitCode {
    let CallbackArgs { token, output, error, cause, heartbeat: _, door } = args;
    let mut body = json!({ "token": token });
    match output.as_deref().map(document) {
        Some(Ok(output)) => body["output"] = output,
        Some(Err(error)) => return fail(error),
        None => {
            for (key, text) in [("error", error), ("cause", cause)] {
                if let Some(text) = text {
                    body[key] = json!(text);
                }
            }
        }
    }
    done(post(door, "/callbacks".to_owned(), &body).map(|_| "the task was told".to_owned()))
}
