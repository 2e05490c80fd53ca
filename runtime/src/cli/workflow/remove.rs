//! `sledge workflow remove`: removes executions that have ended, at the admin API of a running server.

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
/// How executions end.
const ENDS: [&str; 4] = ["succeeded", "failed", "timed_out", "aborted"];

#[derive(Debug, Args)]
pub(in crate::cli) struct RemoveArgs {
    /// The workflow's name, or fn:NAME for asynchronous calls of a function
    workflow: String,
    /// The execution's name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    execution: Option<String>,
    /// Remove all executions of the workflow that have ended
    #[arg(long)]
    all: bool,
    /// With --all: only those that ended so: succeeded, failed, timed_out, aborted
    #[arg(long, requires = "all", value_parser = ENDS)]
    status: Option<String>,
    /// The workflow's tenant
    #[arg(long, default_value = "default")]
    tenant: String,
    #[command(flatten)]
    ask: AskArgs,
}

pub(super) fn remove(args: &RemoveArgs) -> ExitCode {
    let RemoveArgs { workflow, execution, status, tenant, ask: AskArgs { json, door }, .. } = args;
    let path = |below: &str| format!("/workflows/{workflow}/executions{below}?tenant={tenant}");
    let delete = |name: &str| ask(door, Request::delete(path(&format!("/{name}"))).body(Full::default()));
    if let Some(execution) = execution {
        return done(delete(execution).map(|gone| if *json { gone.to_string() } else { format!("{execution} is removed") }));
    }
    let (mut removed, mut failed) = (0_u64, 0_u64);
    for end in ENDS.into_iter().filter(|end| status.as_deref().is_none_or(|status| status == *end)) {
        let mut after = String::new();
        loop {
            let page = match page(door, &format!("{}&status={end}&max={PAGE}{after}", path(""))) {
                Ok(page) => page,
                Err(error) => return fail(error),
            };
            for execution in page["executions"].as_array().into_iter().flatten() {
                let name = plain(&execution["name"]);
                match delete(&name) {
                    Ok(_) => removed += 1,
                    Err(ClientError::Refused(why)) => {
                        failed += 1;
                        say(format_args!("{workflow} {name}: {why}"));
                    }
                    Err(error) => return fail(error),
                }
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
    }
    let code = print_line(&if *json {
        json!({ "removed": removed, "failed": failed }).to_string()
    } else {
        format!("executions removed: {removed}")
    });
    if failed > 0 { FAILURE.into() } else { code }
}

fn page(door: &Door, path: &str) -> Result<Value, ClientError> {
    ask(door, Request::get(path).body(Full::default()))
}
