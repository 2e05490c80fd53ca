//! Commands that need what only a server's configuration grants: other servers, a key-value store. A server runs each of them for one request.

use std::path::Path;

use serde_json::{Value, json};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;

use crate::commands::Check;
use crate::{Program, TIME_MAX, upstream};

/// How a program is run, if it is a command of that kind.
pub(crate) fn of(name: &str) -> Option<Check> {
    match name {
        "keyvalue_main" => Some(Box::new(keyvalue)),
        name if name.starts_with("p2_http_outbound_request_invalid_")
            || name.starts_with("p3_http_outbound_request_invalid_") =>
        {
            let old = name.ends_with("_version") || name.ends_with("_header");
            Some(Box::new(move |program| asking(program, old)))
        }
        name if name.starts_with("p2_http_outbound") || name.starts_with("p3_http_outbound") => {
            Some(Box::new(|program| asking(program, false)))
        }
        _ => None,
    }
}

/// A command that asks a server, of HTTP/2 where its test has one.
fn asking(program: &Program, http2: bool) -> Result<(), String> {
    let address = if http2 { upstream::mirror2() } else { upstream::mirror() };
    let port = address.port();
    let hosts = [
        format!("localhost:{port}"),
        address.to_string(),
        format!("[::1]:{port}"),
        "localhost:3000".to_owned(),
        "127.0.0.1:3000".to_owned(),
        "[::1]:3000".to_owned(),
        "some.invalid.dnsname:3000".to_owned(),
        "203.0.113.12:80".to_owned(),
        "example.com".to_owned(),
        "www.example.com".to_owned(),
    ];
    let function = json!({
        "name": "asking", "path": program.artifact, "env": { "HTTP_SERVER": format!("localhost:{port}") }, "http_hosts": hosts, "deadline_ms": 30_000,
    });
    answered(function, &json!({}))
}

/// Makes a store's file with entries in the bucket that has no name of its own; values are in base64.
pub(crate) fn entries(file: &Path, entries: &[(&str, &str)]) -> Result<(), String> {
    let line = |(key, value): &(&str, &str)| {
        json!({ "tenant": "default", "bucket": "default", "key": key, "value": value, "version": 1 }).to_string() + "\n"
    };
    let text: String = entries.iter().map(line).collect();
    let done = process::run(sledge_command(&["kv", "import"]).arg(file), text.as_bytes(), TIME_MAX);
    if done.code() == 0 { Ok(()) } else { Err(done.stderr) }
}

/// A command that finds what was in the store before.
fn keyvalue(program: &Program) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kv.redb");
    entries(&file, &[("atomics_key", "NQ==")])?;
    let function = json!({ "name": "keyvalue", "path": program.artifact, "deadline_ms": 30_000 });
    answered(function, &json!({ "kv": file }))
}

/// A server with that function, which has to answer with success.
fn answered(function: Value, config: &Value) -> Result<(), String> {
    let name = function["name"].as_str().expect("a name").to_owned();
    let mut config = config.clone();
    (config["workers"], config["functions"]) = (json!(1), json!([function]));
    let server = Server::start(config);
    let reply = server.client().post(&format!("/{name}"), "");
    if reply.status == 200 { Ok(()) } else { Err(format!("{} {}\n{}", reply.status, reply.text(), server.log())) }
}
