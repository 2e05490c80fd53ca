//! `sledge workflow repin`: moves executions to the versions of functions, and with `--definition` to the definitions, that are served, at the admin API of a running server.

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
    /// Also go on by the workflow's definition that is served now, from the next transition on: it needs the states in which the execution is, with the same types
    #[arg(long)]
    definition: bool,
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
    let RepinArgs { workflow, execution, tenant, definition, ask: AskArgs { json, door }, .. } = args;
    let to = To { door, tenant, with_definition: *definition };
    if let Some((workflow, execution)) = workflow.as_deref().zip(execution.as_deref()) {
        let moved = to.post(workflow, execution);
        return done(moved.map(|now| if *json { now.to_string() } else { to.shown(execution, &now) }));
    }
    let workflows = match workflow {
        Some(workflow) => Ok(vec![workflow.clone()]),
        None => to.workflows(),
    };
    let mut moved = Moved::default();
    let result = workflows.and_then(|workflows| workflows.iter().try_for_each(|workflow| to.all(workflow, &mut moved)));
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

/// To what executions are moved.
struct To<'a> {
    door: &'a Door,
    tenant: &'a str,
    with_definition: bool,
}

impl To<'_> {
    /// What an execution that was moved goes on by, and calls now.
    fn shown(&self, execution: &str, now: &Value) -> String {
        let version = |version: &Value| {
            let digest = plain(&version["digest"]);
            format!("{} {}", plain(&version["function"]), digest.get(..16).unwrap_or(&digest))
        };
        let versions: Vec<_> = now["functions"].as_array().into_iter().flatten().map(version).collect();
        let goes_on = if self.with_definition { "goes on by the definition that is served" } else { "is moved" };
        match (versions.is_empty(), self.with_definition) {
            (true, _) => format!("{execution} {goes_on}"),
            (false, true) => format!("{execution} {goes_on}, and calls {}", versions.join(", ")),
            (false, false) => format!("{execution} calls {}", versions.join(", ")),
        }
    }

    fn get(&self, path: &str) -> Result<Value, ClientError> {
        ask(self.door, Request::get(path).body(Full::default()))
    }

    fn post(&self, workflow: &str, execution: &str) -> Result<Value, ClientError> {
        let definition = if self.with_definition { "&definition=true" } else { "" };
        let path = format!("/workflows/{workflow}/executions/{execution}/repin?tenant={}{definition}", self.tenant);
        ask(self.door, Request::post(path).body(Full::default()))
    }

    /// The workflows of a tenant whose executions are durable, and those of its functions, which have no definitions of their own.
    fn workflows(&self) -> Result<Vec<String>, ClientError> {
        let of_tenant = |all: &Value| -> Vec<Value> {
            all.as_array().into_iter().flatten().filter(|one| one["tenant"] == self.tenant).cloned().collect()
        };
        let workflows = of_tenant(&self.get("/workflows")?);
        let mut names: Vec<_> = workflows.iter().filter(|one| one["type"] == "standard").map(|one| plain(&one["name"])).collect();
        if !self.with_definition {
            let functions = of_tenant(&self.get("/functions")?);
            names.extend(functions.iter().map(|one| format!("fn:{}", plain(&one["name"]))));
        }
        Ok(names)
    }

    /// Moves all executions of a workflow that run or are queued. Those that end meanwhile are left out.
    fn all(&self, workflow: &str, moved: &mut Moved) -> Result<(), ClientError> {
        // What is queued first: it may begin meanwhile.
        ["queued", "running"].into_iter().try_for_each(|status| self.all_that_are(status, workflow, moved))
    }

    fn all_that_are(&self, status: &str, workflow: &str, moved: &mut Moved) -> Result<(), ClientError> {
        let mut after = String::new();
        loop {
            let tenant = self.tenant;
            let page =
                self.get(&format!("/workflows/{workflow}/executions?tenant={tenant}&status={status}&max={PAGE}{after}"))?;
            for execution in page["executions"].as_array().into_iter().flatten() {
                let name = plain(&execution["name"]);
                match self.post(workflow, &name) {
                    Ok(_) => moved.count += 1,
                    Err(ClientError::Refused(why)) if self.has_ended(workflow, &name) => drop(why),
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

    fn has_ended(&self, workflow: &str, execution: &str) -> bool {
        let path = format!("/workflows/{workflow}/executions/{execution}?tenant={}", self.tenant);
        self.get(&path).is_ok_and(|now| now["status"] != "RUNNING" && now["status"] != "QUEUED")
    }
}
