//! Tokens of tenants: their clients see and change what belongs to one tenant, and all else is to them as what does not exist.

use crate::deploy::saying;
use crate::entry_with;
use crate::rights::{address, ask, token_file};
use serde_json::{Value, json};
use sledge_tests::http::{Reply, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::Path;

const ADMIN: &str = "a token for everything";
const BLUE: &str = "a token for blue alone";
const BLUE_READER: &str = "a token for reading blue";

/// A server of two tenants, each with a function and a workflow in the configuration; one of the second's is quarantined.
fn config(folder: &Path) -> Value {
    let file = |name: &str, token: &str| token_file(folder, name, token);
    let definition = folder.join("pass.json");
    let pass = json!({ "StartAt": "A", "States": { "A": { "Type": "Pass", "End": true } } });
    fs::write(&definition, pass.to_string()).expect("write a definition");
    let workflow =
        |tenant: &str| json!({ "name": format!("{tenant}-flow"), "tenant": tenant, "path": definition, "type": "standard" });
    json!({
        "admin": "127.0.0.1:0",
        "admin_token": file("admin", ADMIN),
        "admin_tokens": [
            { "tenant": "blue", "token": file("blue", BLUE) },
            { "tenant": "blue", "token": file("blue-reader", BLUE_READER), "read_only": true },
        ],
        "kv": "memory",
        "state_dir": folder.join("state"),
        "workflows": [workflow("blue"), workflow("red")],
        "functions": [
            entry_with("blue-own", "echo.wat", &json!({ "tenant": "blue" })),
            entry_with("red-own", "echo.wat", &json!({ "tenant": "red", "routes": ["/red-own", "/red/*"], "memo": "observe" })),
            { "name": "red-broken", "path": folder.join("absent.so"), "tenant": "red" },
        ],
        "redirects": [{ "route": "/moved", "to": "/blue-own" }],
    })
}

/// Deploys with settings, as a client with that token.
fn deploy(address: &str, name: &str, settings: &Value, token: &str) -> Reply {
    let module = saying("hello");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
    let length = module.len();
    let head = format!(
        "PUT /functions/{name} HTTP/1.1\r\nhost: sledge\r\ncontent-length: {length}\r\nauthorization: Bearer {token}\r\nsledge-settings: {settings}\r\n\r\n"
    );
    let _ = stream.write_all(&[head.as_bytes(), &module].concat());
    sledge_tests::http::read_reply(&mut BufReader::new(stream)).expect("an answer")
}

fn names(list: &Reply) -> Vec<String> {
    let list = list.json();
    list.as_array().expect("a list").iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_token_of_a_tenant_sees_only_what_is_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(config(folder.path()));
    let address = address(&server, "admin API");
    let get = |target: &str, token| ask(&address, &format!("GET {target}"), token, b"");
    assert_eq!([server.client().post("/blue-own", "x").status, server.client().post("/red-own", "x").status], [200, 200]);
    assert_eq!(deploy(&address, "red-deployed", &json!({ "tenant": "red" }), ADMIN).status, 200);

    for token in [BLUE, BLUE_READER] {
        let get = |target: &str| get(target, Some(token));
        assert_eq!(names(&get("/functions")), ["blue-own"]);
        assert_eq!(names(&get("/workflows")), ["blue-flow"]);
        assert_eq!([get("/functions/blue-own").status, get("/functions/blue-own/logs").status], [200, 200]);
        let list = get("/workflows/blue-flow/executions");
        assert_eq!((list.status, list.json()["executions"].clone()), (200, json!([])));
        // What is another's is as what does not exist.
        for part in ["", "/logs", "/phases?seconds=1", "/effects", "/versions", "/diff"] {
            let nothing = get(&format!("/functions/nothing{part}"));
            for name in ["red-own", "red-broken", "red-deployed"] {
                let reply = get(&format!("/functions/{name}{part}"));
                assert_eq!(reply.status, 404, "{name}{part}: {reply:?}");
                assert_eq!(reply.text(), nothing.text().replace("nothing", name), "{name}{part}");
            }
        }
        for target in ["/status", "/nothing", "/", "/drain"] {
            let reply = get(target);
            assert!(reply.status == 403 && reply.text().contains("`blue`"), "{target}: {reply:?}");
        }
        for target in ["/workflows/red-flow/executions", "/workflows/red-flow/queues", "/workflows/red-flow/explain"] {
            let reply = get(&format!("{target}?tenant=red"));
            assert_eq!(reply.status, 403, "{target}: {reply:?}");
            assert!(!get(target).text().contains("\"red"), "{target}");
        }
        let metrics = get("/metrics").text();
        assert!(
            metrics.contains("sledge_requests_total{function=\"blue-own\",tenant=\"blue\"") && metrics.ends_with("# EOF\n"),
            "{metrics}"
        );
        for word in ["\"red", "sledge_memory", "sledge_process", "sledge_problems", "thread="] {
            assert!(!metrics.contains(word), "{word}: {metrics}");
        }
    }
    // The names of what is wrong are for those that see it.
    let ready = [None, Some(BLUE), Some("a token that is none"), Some(ADMIN)].map(|token| get("/readyz", token));
    let shows = ready.each_ref().map(|reply| reply.text().contains("red-broken"));
    assert_eq!((ready.map(|reply| reply.status), shows), ([200; 4], [false, false, false, true]));
    assert_eq!(names(&get("/functions", Some(ADMIN))), ["blue-own", "red-broken", "red-deployed", "red-own"]);
    assert!(get("/metrics", Some(ADMIN)).text().contains("tenant=\"red\""));
    assert_eq!(get("/functions", Some("a token that is none")).status, 401);
    server.stop();
}

#[test]
fn a_token_of_a_tenant_changes_only_what_is_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(config(folder.path()));
    let (address, client) = (address(&server, "admin API"), server.client());
    let send = |request: &str, token| ask(&address, request, Some(token), b"");
    assert_eq!(deploy(&address, "red-deployed", &json!({ "tenant": "red" }), ADMIN).status, 200);

    for request in [
        "DELETE /functions/red-deployed",
        "DELETE /functions/red-own",
        "DELETE /functions/red-broken",
        "POST /functions/red-deployed/rollback",
        "POST /functions/red-deployed/promote",
        "POST /workflows/red-flow/executions",
    ] {
        let (reply, nothing) = (send(request, BLUE), send(&request.replace("red-", "no-"), BLUE));
        assert_eq!((reply.status, nothing.status), (404, 404), "{request}: {reply:?}");
        assert_eq!(reply.text(), nothing.text().replace("no-", "red-"), "{request}");
        assert_eq!(send(request, BLUE_READER).status, 403, "{request}");
    }
    for request in ["POST /workflows/red-flow/executions?tenant=red", "POST /workflows/red-flow/pause?tenant=red", "POST /drain"]
    {
        assert_eq!(send(request, BLUE).status, 403, "{request}");
    }
    for (name, settings, words) in [
        ("red-deployed", json!({}), "the name `red-deployed` is not free"),
        ("red-own", json!({}), "the name `red-own` is not free"),
        ("red-broken", json!({ "tenant": "red" }), "the name `red-broken` is not free"),
        ("new", json!({ "tenant": "red" }), "settings.tenant"),
        ("new", json!({ "route": "/red-own" }), "the route /red-own is not free"),
        ("new", json!({ "route": "/red-broken" }), "the route /red-broken is not free"),
        ("new", json!({ "route": "/red-deployed" }), "the route /red-deployed is not free"),
        // Its requests are the other's now.
        ("new", json!({ "route": "/red/login" }), "the route /red/login is not free"),
        ("new", json!({ "routes": ["/new", "/red/*"] }), "the route /red/* is not free"),
        ("new", json!({ "route": "/*" }), "the route /* is not free"),
        ("new", json!({ "route": "/red-flow" }), "the route /red-flow is not free"),
        ("new", json!({ "route": "/moved" }), "the route /moved is not free"),
        ("new", json!({ "listen": "127.0.0.1:9" }), "settings.listen"),
        ("new", json!({ "allow_unchecked": true, "bounds": "none" }), "settings.allow_unchecked"),
    ] {
        let reply = deploy(&address, name, &settings, BLUE);
        assert!(reply.status == 403 && reply.text().contains(words), "{name} {settings}: {reply:?}");
    }
    assert_eq!(client.post("/red-own", "x").text(), "x");
    assert_eq!(client.post("/red-deployed", "").text(), "hello");

    // What is its own is its tenant's without a word.
    assert_eq!(deploy(&address, "new", &json!({ "route": "/new" }), BLUE_READER).status, 403);
    assert_eq!(deploy(&address, "new", &json!({ "route": "/new" }), BLUE).status, 200);
    assert_eq!(deploy(&address, "new", &json!({ "tenant": null }), BLUE).status, 200);
    assert_eq!(send("GET /functions/new", BLUE).json()["tenant"], "blue");
    assert_eq!(send("PUT /functions/new?reset=true", BLUE).status, 415, "without a module");
    assert_eq!(client.post("/new", "").text(), "hello");
    let reply = send("DELETE /functions/blue-own", BLUE);
    assert!(reply.status == 409 && reply.text().contains("configuration"), "{reply:?}");
    let started = send("POST /workflows/blue-flow/executions?name=one", BLUE);
    assert_eq!((started.status, send("GET /workflows/blue-flow/executions/one", BLUE_READER).status), (202, 200));
    let run = |args: &[&str]| {
        let token = folder.path().join("blue");
        process::run(sledge_command(args).args(["--admin", &address, "--token-file"]).arg(token), b"", TIME_MAX)
    };
    let list = run(&["list"]).text();
    assert!(list.contains("new") && !list.contains("red-"), "{list}");
    assert_eq!(run(&["remove", "new"]).code(), 0);
    assert!(run(&["drain"]).stderr.contains("tenant `blue`"));

    // What a function was as another tenant's stays that tenant's.
    assert_eq!(deploy(&address, "passed-on", &json!({ "tenant": "red", "env": { "KEY": "of red" } }), ADMIN).status, 200);
    assert_eq!(send("GET /functions/passed-on", BLUE).status, 404);
    assert_eq!(deploy(&address, "passed-on", &json!({ "tenant": "blue", "env": {} }), ADMIN).status, 200);
    let versions = send("GET /functions/passed-on/versions", BLUE);
    assert!(versions.status == 200 && versions.json().as_array().is_some_and(|list| list.len() == 1), "{versions:?}");
    for request in [
        "GET /functions/passed-on/diff",
        "GET /functions/passed-on/diff?from=1",
        "POST /functions/passed-on/rollback",
        "POST /functions/passed-on/rollback?to=1",
    ] {
        let reply = send(request, BLUE);
        assert!([404, 409].contains(&reply.status) && !reply.text().contains("red"), "{request}: {reply:?}");
    }
    server.stop();
}

#[test]
fn what_is_wrong_with_tokens_is_said_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = config(folder.path());
    let short = token_file(folder.path(), "short", "short");
    let refused = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut config = good.clone();
        config["listen"] = "127.0.0.1:0".into();
        config["functions"].as_array_mut().expect("a list").pop();
        change(&mut config);
        let file = folder.path().join("refused.json");
        fs::write(&file, config.to_string()).expect("write a configuration");
        let done = process::run(sledge_command(&["config", "check"]).arg(&file), b"", TIME_MAX);
        assert!(done.code() == 1 && words.iter().all(|word| done.stderr.contains(word)), "{words:?}: {}", done.stderr);
    };
    refused(
        &|config| drop(config.as_object_mut().map(|config| config.remove("admin_token"))),
        &["admin_tokens: needs `admin_token`"],
    );
    refused(
        &|config| config["admin_tokens"][1]["token"] = config["admin_token"].clone(),
        &["admin_tokens[1].token: ", "is the same token as that of `admin_token`"],
    );
    refused(&|config| config["admin_tokens"][0]["token"] = short.clone(), &["admin_tokens[0].token: ", "at least 16"]);
    refused(&|config| config["admin_tokens"][0]["tenant"] = "".into(), &["admin_tokens[0].tenant: give 1 to 200 bytes"]);
    refused(
        &|config| config["admin_tokens"][0]["tenants"] = "x".into(),
        &["unknown key `tenants` at admin_tokens[0]; did you mean `tenant`?"],
    );
}
