//! `sledge workflow repin`: moves executions to the versions of functions that are served, at the admin API of a running server.

use std::process::ExitCode;

use clap::Args;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};

use super::super::operate::{AskArgs, Door, ask, done, plain};
use super::super::{FAILURE, fail, print_line, say};
use crate::admin::client::ClientError;

/// Executions that are asked for at a time.
const PAGE: usize = 1_000;

#[derive(Debug, Args)]
pub(in crate::cli) struct RepinArgs {
    /// The workflow's name, or fn:NAME for asynchronous calls of a function [default: all of the tenant, with --all]
    #[arg(required_unless_present = "all")]
    workflow: Option<String>,
    /// The execution's name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    execution: Option<String>,
    /// Move all executions that have not ended
    #[arg(long)]
    all: bool,
    /// The workflow's tenant
    #[arg(long, default_value = "default")]
    tenant: String,
    #[command(flatten)]
    ask: AskArgs,
}

/// Executions that were moved, and those that could not be.
#[derive(Default)]
struct Moved {
    count: u64,
    failed: u64,
}

pub(super) fn repin(args: &RepinArgs) -> ExitCode {
    let RepinArgs { workflow, execution, tenant, ask: AskArgs { json, door }, .. } = args;
    if let Some((workflow, execution)) = workflow.as_deref().zip(execution.as_deref()) {
        let moved = post(door, tenant, workflow, execution);
        return done(moved.map(|now| if *json { now.to_string() } else { shown(execution, &now) }));
    }
    let workflows = match workflow {
        Some(workflow) => Ok(vec![workflow.clone()]),
        None => workflows(door, tenant),
    };
    let mut moved = Moved::default();
    let result =
        workflows.and_then(|workflows| workflows.iter().try_for_each(|workflow| all(door, tenant, workflow, &mut moved)));
    if let Err(error) = result {
        return fail(error);
    }
    let Moved { count, failed } = moved;
    let code = print_line(&if *json {
        json!({ "moved": count, "failed": failed }).to_string()
    } else {
        format!("executions moved: {count}")
    });
    if failed > 0 { FAILURE.into() } else { code }
}

/// What an execution that was moved calls now.
fn shown(execution: &str, now: &Value) -> String {
    let version = |version: &Value| {
        let digest = plain(&version["digest"]);
        format!("{} {}", plain(&version["function"]), digest.get(..16).unwrap_or(&digest))
    };
    let versions: Vec<_> = now["functions"].as_array().into_iter().flatten().map(version).collect();
    if versions.is_empty() { format!("{execution} is moved") } else { format!("{execution} calls {}", versions.join(", ")) }
}

fn post(door: &Door, tenant: &str, workflow: &str, execution: &str) -> Result<Value, ClientError> {
    let path = format!("/workflows/{workflow}/executions/{execution}/repin?tenant={tenant}");
    ask(door, Request::post(path).body(Full::default()))
}

/// The workflows of a tenant whose executions are durable, and those of its functions.
fn workflows(door: &Door, tenant: &str) -> Result<Vec<String>, ClientError> {
    let get = |path: &str| ask(door, Request::get(path).body(Full::default()));
    let of_tenant = |all: &Value| -> Vec<Value> {
        all.as_array().into_iter().flatten().filter(|one| one["tenant"] == tenant).cloned().collect()
    };
    let workflows = of_tenant(&get("/workflows")?);
    let durable = workflows.iter().filter(|one| one["type"] == "standard").map(|one| plain(&one["name"]));
    let functions = of_tenant(&get("/functions")?);
    Ok(durable.chain(functions.iter().map(|one| format!("fn:{}", plain(&one["name"])))).collect())
}

/// Moves all executions of a workflow that have not ended. Those that end meanwhile are left out.
fn all(door: &Door, tenant: &str, workflow: &str, moved: &mut Moved) -> Result<(), ClientError> {
    let mut after = String::new();
    loop {
        let path = format!("/workflows/{workflow}/executions?tenant={tenant}&status=running&max={PAGE}{after}");
        let page = ask(door, Request::get(path).body(Full::default()))?;
        for execution in page["executions"].as_array().into_iter().flatten() {
            let name = plain(&execution["name"]);
            match post(door, tenant, workflow, &name) {
                Ok(_) => moved.count += 1,
                Err(ClientError::Refused(why)) if has_ended(door, tenant, workflow, &name) => drop(why),
                Err(ClientError::Refused(why)) => {
                    moved.failed += 1;
                    say(format_args!("{workflow} {name}: {why}"));
                }
                Err(error) => return Err(error),
            }
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(()),
        }
    }
}

fn has_ended(door: &Door, tenant: &str, workflow: &str, execution: &str) -> bool {
    let path = format!("/workflows/{workflow}/executions/{execution}?tenant={tenant}");
    ask(door, Request::get(path).body(Full::default())).is_ok_and(|now| now["status"] != "RUNNING")
}
