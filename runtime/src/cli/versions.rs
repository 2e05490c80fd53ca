//! `sledge versions`, `diff`, `rollback`: the versions of a deployed function, at the admin API of a running server.

use std::process::ExitCode;

use clap::Args;
use http_body_util::Full;
use hyper::Request;
use serde_json::Value;

use super::operate::{AskArgs, Author, Door, ask, cell, done, gradually, percent, plain, rows_of, setting_changes};
use crate::admin::api::AUTHOR;
use crate::notice::{self, To};

/// How much of a digest tells modules apart for people.
const DIGEST_CHARS: usize = 16;

/// List the versions of a deployed function.
#[derive(Debug, Args)]
pub(super) struct VersionsArgs {
    /// The function's name
    name: String,
    #[command(flatten)]
    ask: AskArgs,
}

/// Show what differs between two versions of a deployed function.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The function's name
    name: String,
    /// The version to compare with [default: the one before the present one]
    from: Option<u64>,
    /// The version that is compared [default: the present one]
    to: Option<u64>,
    #[command(flatten)]
    ask: AskArgs,
}

/// Serve the version whole that a part of the requests goes to (`sledge deploy --percent`), or let more or fewer go to it.
#[derive(Debug, Args)]
pub(super) struct PromoteArgs {
    /// The function's name
    name: String,
    /// Let so many of a hundred requests go to it [default: all, and it is the version that is served]
    #[arg(long, value_name = "N", value_parser = percent())]
    percent: Option<u8>,
    #[command(flatten)]
    door: Door,
}

/// Serve an earlier version of a deployed function again: its code and its settings, never its data. Or give a version up that only a part of the requests goes to.
#[derive(Debug, Args)]
pub(super) struct RollbackArgs {
    /// The function's name
    name: String,
    /// The version to return to [default: the one before the present one]
    version: Option<u64>,
    #[command(flatten)]
    author: Author,
    #[command(flatten)]
    door: Door,
}

pub(super) fn versions(args: &VersionsArgs) -> ExitCode {
    let VersionsArgs { name, ask: AskArgs { json, door } } = args;
    let answer = ask(door, Request::get(format!("/functions/{name}/versions")).body(Full::default()));
    done(answer.map(|versions| match &versions {
        Value::Array(versions) if !json => table(versions),
        other => other.to_string(),
    }))
}

pub(super) fn diff(args: &DiffArgs) -> ExitCode {
    let DiffArgs { name, from, to, ask: AskArgs { json, door } } = args;
    let number = |key: &str, number: &Option<u64>| number.map(|number| format!("{key}={number}"));
    let query: Vec<String> = [number("from", from), number("to", to)].into_iter().flatten().collect();
    let answer = ask(door, Request::get(format!("/functions/{name}/diff?{}", query.join("&"))).body(Full::default()));
    done(answer.map(|difference| if *json { difference.to_string() } else { differences(&difference) }))
}

pub(super) fn promote(args: &PromoteArgs) -> ExitCode {
    let PromoteArgs { name, percent, door } = args;
    let query = percent.map(|percent| format!("?percent={percent}")).unwrap_or_default();
    let answer = ask(door, Request::post(format!("/functions/{name}/promote{query}")).body(Full::default()));
    done(answer.map(|change| match &change["canary"] {
        Value::Null => {
            let version = change["version"].as_u64().map(|version| format!(" as version {version}")).unwrap_or_default();
            let first = format!("all requests of {name} go to its next version{version}");
            [vec![first], setting_changes(&change["settings"])].concat().join("\n")
        }
        canary => gradually(name, canary),
    }))
}

pub(super) fn rollback(args: &RollbackArgs) -> ExitCode {
    let RollbackArgs { name, version, author, door } = args;
    let query = version.map(|version| format!("?to={version}")).unwrap_or_default();
    let mut request = Request::post(format!("/functions/{name}/rollback{query}"));
    if let Some(author) = author.header() {
        request = request.header(AUTHOR, author);
    }
    let request = request.body(Full::default());
    let answer = notice::during(To::Caller, || format!("the server compiles {name}"), || ask(door, request));
    done(answer.map(|change| {
        if let canary @ Value::Object(_) = &change["given_up"] {
            return format!(
                "version {} of {name} was given up; all requests go to the version before it",
                plain(&canary["version"])
            );
        }
        let number = |key: &str| plain(&change[key]);
        let first = match &change["version"] {
            Value::Null => format!("{name} is version {} again", number("rollback_to")),
            _ => format!("{name} is version {} again, as version {}", number("rollback_to"), number("version")),
        };
        let last = "code and settings are those of then; data is as it was".to_owned();
        [vec![first], setting_changes(&change["settings"]), vec![last]].concat().join("\n")
    }))
}

/// Versions, one a line, the newest first.
fn table(versions: &[Value]) -> String {
    let head = ["version", "deployed", "author", "module", "bytes", "note"].map(str::to_owned);
    let present = versions.len().saturating_sub(1);
    let row = |(index, version): (usize, &Value)| {
        let copy = version["rollback_to"].as_u64().map(|original| format!("copy of {original}"));
        let served = (index == present).then(|| "served".to_owned());
        let notes: Vec<String> = served.into_iter().chain(copy).collect();
        let module: String = plain(&version["digest"]).chars().take(DIGEST_CHARS).collect();
        let [number, deployed, author, bytes] =
            ["version", "deployed_at", "author", "module_bytes"].map(|key| cell(&version[key]));
        [number, deployed, author, module, bytes, notes.join(", ")]
    };
    rows_of(std::iter::once(head).chain(versions.iter().enumerate().rev().map(row)).collect())
}

/// What differs, a line for the module and one for each setting.
fn differences(difference: &Value) -> String {
    let [from, to] = ["from", "to"].map(|side| &difference[side]);
    let first = format!("version {} -> {}", plain(&from["version"]), plain(&to["version"]));
    let module = |side: &Value| {
        let digest: String = plain(&side["digest"]).chars().take(DIGEST_CHARS).collect();
        format!("{digest} ({} bytes)", plain(&side["module_bytes"]))
    };
    let module = match from["digest"] == to["digest"] {
        true => "module: the same".to_owned(),
        false => format!("module: {} -> {}", module(from), module(to)),
    };
    [vec![first, module], setting_changes(&difference["changes"])].concat().join("\n")
}
