//! Durable executions call the versions of functions with which they began, whatever is served meanwhile.

use crate::deploy::{command, saying};
use crate::eventually;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::programs::{self, run_awsm};
use sledge_tests::server::Server;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Artifacts may lie there.
fn folder() -> TempDir {
    tempfile::tempdir_in(programs::folder()).expect("a folder")
}

/// Compiles a function that says that, and writes it in place, as `cp` does.
fn write(folder: &Path, text: &str) {
    let (module, artifact) = (folder.join(format!("{text}.wasm")), folder.join(format!("{text}.so")));
    fs::write(&module, saying(text)).expect("write the module");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let made = run_awsm(&["compile", "-O", "0", &path(&module), "-o", &path(&artifact)]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    fs::copy(&artifact, folder.join("say.so")).expect("copy");
}

/// Calls `say`, waits as long as the input says, and calls it again.
fn config(folder: &Path, more: &Value) -> Value {
    let say = |result: &str| json!({ "Type": "Task", "Resource": "fn:say", "ResultPath": format!("$.{result}") });
    let mut states = json!({ "First": say("first"), "Wait": { "Type": "Wait", "SecondsPath": "$.wait", "Next": "Second" }, "Second": say("second") });
    (states["First"]["Next"], states["Second"]["End"]) = (json!("Wait"), json!(true));
    let path = folder.join("two.asl.json");
    fs::write(&path, json!({ "StartAt": "First", "States": states }).to_string()).expect("write a definition");
    let functions = json!([{ "name": "say", "path": folder.join("say.so") }]);
    let workflows = json!([{ "name": "two", "path": path, "type": "standard" }]);
    let mut config = json!({ "kv": folder.join("kv.redb"), "functions": functions, "workflows": workflows });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    config
}

fn begin(server: &Server, name: &str, wait: u32) {
    let reply = server.client().post(&format!("/two?name={name}"), json!({ "wait": wait }).to_string());
    assert_eq!(reply.status, 202, "{}", reply.text());
}

fn execution(server: &Server, name: &str) -> Value {
    server.admin().get(&format!("/workflows/two/executions/{name}")).json()
}

/// Waits until the first task of an execution has ended.
fn wait_for_first(server: &Server, name: &str) {
    eventually(name, || {
        server.admin().get(&format!("/workflows/two/executions/{name}/history")).text().contains("WaitStateEntered")
    });
}

/// What both tasks of an execution have said.
#[track_caller]
fn said(server: &Server, name: &str) -> [String; 2] {
    eventually(name, || execution(server, name)["status"] != "RUNNING");
    let ended = execution(server, name);
    assert_eq!(ended["status"], "SUCCEEDED", "{ended}");
    ["first", "second"].map(|task| ended["output"][task].as_str().unwrap_or_default().to_owned())
}

/// Whether each version to which an execution is pinned is served.
fn served(server: &Server, name: &str) -> Vec<bool> {
    let shown = command(server, &["workflow", "show", "two", name]);
    assert_eq!(shown.code(), 0, "{shown:?}");
    let shown: Value = serde_json::from_str(&shown.text()).expect("JSON");
    let functions = shown["functions"].as_array().expect("a list").iter();
    functions
        .map(|version| {
            assert_eq!((&version["function"], version["digest"].as_str().map(str::len)), (&json!("say"), Some(64)), "{shown}");
            version["served"].as_bool().expect("a Boolean")
        })
        .collect()
}

/// Files that are kept for executions.
fn kept(folder: &Path) -> usize {
    fs::read_dir(folder.join("kv.redb.pinned")).map_or(0, Iterator::count)
}

fn reload(server: &Server) {
    server.signal(Signal::HUP);
    server.wait_for_log("replaced say");
}

#[test]
fn a_file_that_changes_is_for_executions_that_begin_later() {
    let folder = folder();
    write(folder.path(), "one");
    let mut server = Server::start(config(folder.path(), &json!({})));
    begin(&server, "here", 8);
    begin(&server, "killed", 20);
    ["here", "killed"].iter().for_each(|name| wait_for_first(&server, name));
    assert_eq!((served(&server, "here"), kept(folder.path())), (vec![true], 1));
    write(folder.path(), "two");
    reload(&server);
    assert_eq!(served(&server, "here"), [false]);
    begin(&server, "new", 0);
    assert_eq!(said(&server, "new"), ["two", "two"]);
    assert_eq!(said(&server, "here"), ["one", "one"]);
    assert_eq!((server.client().post("/say", "").text(), kept(folder.path())), ("two".to_owned(), 2));
    server.signal(Signal::KILL);
    server.wait(TIME_MAX);
    // Another server, which has never had the version; and a third, with which nothing needs it.
    write(folder.path(), "three");
    let server = Server::start(config(folder.path(), &json!({})));
    assert_eq!(said(&server, "killed"), ["one", "one"]);
    begin(&server, "newest", 0);
    assert_eq!(said(&server, "newest"), ["three", "three"]);
    server.stop();
    let server = Server::start(config(folder.path(), &json!({})));
    eventually("what no execution needs is removed", || kept(folder.path()) == 1);
    server.stop();
}

#[test]
fn a_deployed_version_is_there_as_long_as_executions_need_it() {
    let folder = folder();
    let state = json!({ "state_dir": folder.path().join("state"), "versions_max": 2, "functions": [] });
    let server = Server::start(config(folder.path(), &state));
    let deploy = |server: &Server, text: &str| {
        let reply = server.admin().deploy("say", &json!({}), &saying(text));
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    deploy(&server, "one");
    begin(&server, "old", 40);
    begin(&server, "moved", 40);
    ["old", "moved"].iter().for_each(|name| wait_for_first(&server, name));
    for text in ["two", "three", "four"] {
        deploy(&server, text);
    }
    let modules = fs::read_dir(folder.path().join("state"))
        .expect("the folder")
        .filter(|file| file.as_ref().expect("a file").path().extension().is_some_and(|extension| extension == "wasm"));
    assert_eq!(modules.count(), 2, "the version with which they began is not among those that are kept for a rollback");
    let back = command(&server, &["rollback", "say"]);
    assert_eq!(back.code(), 0, "{back:?}");
    let moved = command(&server, &["workflow", "repin", "two", "moved"]);
    assert!(moved.code() == 0 && moved.text().starts_with("moved calls say "), "{moved:?}");
    server.stop();
    let server = Server::start(config(folder.path(), &state));
    assert_eq!((served(&server, "old"), served(&server, "moved")), (vec![false], vec![true]));
    assert_eq!(said(&server, "old"), ["one", "one"]);
    assert_eq!(said(&server, "moved"), ["one", "three"]);
    let late = command(&server, &["workflow", "repin", "two", "moved"]);
    assert!(late.code() == 1 && late.stderr.contains("it has ended"), "{late:?}");
    server.stop();
}

#[test]
fn a_task_whose_version_is_lost_waits_until_its_execution_is_moved() {
    let folder = folder();
    write(folder.path(), "one");
    let server = Server::start(config(folder.path(), &json!({})));
    for name in ["a", "b"] {
        begin(&server, name, 15);
        wait_for_first(&server, name);
    }
    write(folder.path(), "two");
    reload(&server);
    fs::remove_dir_all(folder.path().join("kv.redb.pinned")).expect("remove the folder");
    server.wait_for_log("sledge workflow repin two ");
    eventually("both have waited", || {
        ["a", "b"].iter().all(|name| {
            let history = server.admin().get(&format!("/workflows/two/executions/{name}/history")).text();
            history.matches("LambdaFunctionScheduled\"").count() == 2
        })
    });
    assert!(["a", "b"].iter().all(|name| execution(&server, name)["status"] == "RUNNING"), "no other version is called");
    let moved = command(&server, &["workflow", "repin", "two", "--all"]);
    assert_eq!((moved.code(), moved.text().trim_end()), (0, "executions moved: 2"), "{moved:?}");
    for name in ["a", "b"] {
        assert_eq!(said(&server, name), ["one", "two"]);
    }
    let none = command(&server, &["workflow", "repin", "--all"]);
    assert_eq!((none.code(), none.text().trim_end()), (0, "executions moved: 0"), "{none:?}");
    let wrong = command(&server, &["workflow", "repin", "two"]);
    assert_eq!(wrong.code(), 2, "{wrong:?}");
    server.stop();
}

/// The old code has the settings of today: an operator that tightens them has a reason.
#[test]
fn a_pinned_version_has_the_present_settings_of_its_function() {
    let folder = folder();
    let copy = |level: &str| {
        let artifact = programs::function_with("args.c", &["-O", level]);
        fs::copy(artifact, folder.path().join("say.so")).expect("copy");
    };
    // Both are compiled before the execution begins.
    programs::function_with("args.c", &["-O", "1"]);
    copy("0");
    let mut config = config(folder.path(), &json!({}));
    config["functions"][0]["args"] = json!(["before"]);
    let server = Server::start(config);
    begin(&server, "old", 10);
    wait_for_first(&server, "old");
    copy("1");
    let file = server.folder().join("sledge.json");
    let mut changed: Value = serde_json::from_slice(&fs::read(&file).expect("the configuration")).expect("JSON");
    changed["functions"][0]["args"] = json!(["after"]);
    fs::write(&file, changed.to_string()).expect("write the configuration");
    reload(&server);
    assert_eq!(served(&server, "old"), [false]);
    let [first, second] = said(&server, "old");
    assert!(first.contains("before") && !first.contains("after"), "{first}");
    assert!(second.contains("after") && !second.contains("before"), "{second}");
    server.wait_for_log("loaded beside the version that is served");
    server.stop();
}

/// Calls `say` behind the wait, in a state of that name.
fn redefine(server: &Server, folder: &Path, wait: &str, then: &str) {
    let path = folder.join("two.asl.json");
    let mut definition: Value = serde_json::from_slice(&fs::read(&path).expect("the definition")).expect("JSON");
    let call = json!({ "Type": "Task", "Resource": "fn:say", "ResultPath": format!("$.{then}"), "End": true });
    definition["States"] = json!({ "First": definition["States"]["First"], wait: { "Type": "Wait", "SecondsPath": "$.wait", "Next": then }, then: call });
    definition["States"]["First"]["Next"] = json!(wait);
    fs::write(&path, definition.to_string()).expect("write a definition");
    server.signal(Signal::HUP);
    eventually("the definition is served", || {
        let shown = execution(server, "stays");
        shown["definition"]["served"] == false
    });
}

#[test]
fn an_execution_goes_on_by_the_definition_that_is_served_where_it_can() {
    /// Longer than all that is done meanwhile.
    const WAIT_S: u32 = 25;
    let folder = folder();
    write(folder.path(), "one");
    let server = Server::start(config(folder.path(), &json!({})));
    for name in ["moved", "stays"] {
        begin(&server, name, WAIT_S);
        wait_for_first(&server, name);
    }
    redefine(&server, folder.path(), "Wait", "other");
    let moved = command(&server, &["workflow", "repin", "two", "moved", "--definition"]);
    let says = "moved goes on by the definition that is served, and calls say ";
    assert!(moved.code() == 0 && moved.text().starts_with(says), "{moved:?}");
    assert_eq!(
        (&execution(&server, "moved")["definition"]["served"], &execution(&server, "moved")["definition"]["moves"]),
        (&json!(true), &json!(1))
    );
    redefine(&server, folder.path(), "Pause", "other");
    eventually("another one is served", || execution(&server, "moved")["definition"]["served"] == false);
    let refused = command(&server, &["workflow", "repin", "two", "--all", "--definition"]);
    assert_eq!((refused.code(), refused.text().trim_end()), (1, "executions moved: 0"), "{refused:?}");
    let why = "the execution is in the state \"Wait\", which the new definition does not have";
    assert!(
        ["moved", "stays"].iter().all(|name| refused.stderr.contains(&format!("two {name}: ")) && refused.stderr.contains(why)),
        "{refused:?}"
    );
    let calls = command(&server, &["workflow", "repin", "fn:say", "none", "--definition"]);
    assert_eq!(calls.code(), 1, "{calls:?}");
    eventually("both have ended", || ["moved", "stays"].iter().all(|name| execution(&server, name)["status"] == "SUCCEEDED"));
    let output = |name: &str| execution(&server, name)["output"].clone();
    assert_eq!(output("moved"), json!({ "wait": WAIT_S, "first": "one", "other": "one" }));
    assert_eq!(output("stays"), json!({ "wait": WAIT_S, "first": "one", "second": "one" }));
    let record = command(&server, &["workflow", "record", "two", "moved"]);
    assert!(record.code() == 1 && record.stderr.contains("repin --definition"), "{record:?}");
    let removed = command(&server, &["workflow", "remove", "two", "moved"]);
    assert_eq!((removed.code(), removed.text().trim_end()), (0, "moved is removed"), "{removed:?}");
    assert_eq!(server.admin().get("/workflows/two/executions/moved").status, 404);
    let removed = command(&server, &["workflow", "remove", "two", "--all"]);
    assert_eq!((removed.code(), removed.text().trim_end()), (0, "executions removed: 1"), "{removed:?}");
    server.stop();
}
