//! `sledge workflow explain`: what is told of executions that went ahead of themselves.

use crate::ahead::chain;
use crate::collector::{Collector, Span};
use crate::durable::{printed, sledge};
use crate::telemetry;
use crate::transactions::function;
use serde_json::{Value, json};
use sledge_tests::http::{Reply, TIME_MAX};
use sledge_tests::server::Server;
use sledge_tests::xml;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Executions that are kept of a workflow.
const KEPT: usize = 64;

/// Four steps of which the third one is left out where the second one fails to find a key: as a workflow that goes ahead of itself, as one that does not, and as one of another tenant.
fn workflows(folder: &Path) -> Value {
    let path = folder.join("workflow.asl.json");
    fs::write(&path, chain().to_string()).expect("write a definition");
    let workflow = |name: &str, more: Value| {
        let mut workflow =
            json!({ "name": name, "path": path, "type": "express", "speculation": "paths", "deadline_ms": 60_000 });
        workflow.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        workflow
    };
    json!([
        workflow("ahead", json!({})),
        workflow("plain", json!({ "speculation": "off" })),
        workflow("theirs", json!({ "tenant": "other" })),
        workflow("ahead", json!({ "tenant": "other", "route": "/same" })),
        workflow("durable", json!({ "type": "standard", "speculation": "off" })),
    ])
}

fn serve(folder: &Path) -> Server {
    let functions = [function("t", json!({})), function("u", json!({ "tenant": "other" }))];
    Server::start(json!({ "kv": "memory", "workers": 2, "functions": functions, "workflows": workflows(folder) }))
}

/// Has a workflow executed with these lines. The execution's name.
fn execute(server: &Server, route: &str, lines: [&str; 4]) -> String {
    let reply = server.client().post(&format!("/{route}"), json!({ "lines": lines }).to_string());
    name(&reply).unwrap_or_else(|| panic!("{reply:?}"))
}

fn name(reply: &Reply) -> Option<String> {
    reply.header("sledge-execution").map(str::to_owned)
}

fn explained(server: &Server, execution: &str) -> Value {
    let told = printed(server, &["workflow", "explain", "ahead", execution, "--json"]);
    serde_json::from_str(&told).expect("JSON")
}

/// The runs of a state.
fn runs<'e>(explained: &'e Value, state: &str) -> Vec<&'e Value> {
    explained["runs"].as_array().expect("runs").iter().filter(|run| run["state"] == state).collect()
}

/// The first execution that is as wanted.
#[track_caller]
fn until(execute: impl Fn() -> String, is_wanted: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + TIME_MAX;
    loop {
        let execution = execute();
        if is_wanted(&execution) {
            return execution;
        }
        assert!(Instant::now() < end, "no execution is as wanted");
    }
}

/// What the run of the third state came to; empty where there is none.
fn result_of_third(server: &Server, execution: &str) -> String {
    let told = explained(server, execution);
    runs(&told, "S2").first().and_then(|run| run["result"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn right_and_wrong_guesses_are_told_as_text_as_json_and_as_a_drawing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let learn = || execute(&server, "ahead", ["set a 1", "get a\npause 200", "get c", "get d"]);
    (0..4).for_each(|_| drop(learn()));
    // Where the machine is busy nothing is begun ahead for a while.
    let right = until(learn, |execution| result_of_third(&server, execution) == "adopted");
    let told = explained(&server, &right);
    assert_eq!((&told["execution"], &told["outcome"], &told["workflow"]), (&json!(right), &json!("succeeded"), &json!("ahead")));
    let third = runs(&told, "S2");
    assert_eq!((third.len(), &third[0]["behind"]), (1, &json!("S1")), "{told:#}");
    let way = json!({ "state": "Which", "guessed": "S2", "went": "S2", "right": true });
    assert_eq!(without_times(&told["ways"][0]), way, "{told:#}");

    let err = || {
        learn();
        execute(&server, "ahead", ["get a", "get b\npause 500", "get c", "get d"])
    };
    let wrong = until(err, |execution| result_of_third(&server, execution) == "dropped");
    let told = explained(&server, &wrong);
    let third = runs(&told, "S2");
    assert_eq!((third.len(), &third[0]["reason"]["code"]), (1, &json!("not_asked")), "{told:#}");
    assert_eq!(third[0]["reason"]["state"], "Which");
    let way = json!({ "state": "Which", "guessed": "S2", "went": "S3", "right": false });
    assert_eq!(without_times(&told["ways"][0]), way, "{told:#}");

    // The last one, as text.
    let text = printed(&server, &["workflow", "explain", "ahead"]);
    assert!(text.starts_with(&format!("{wrong} succeeded in ")), "{text}");
    for words in [
        "one after the other at most",
        "S2 was dropped: its state is not asked for any more: the way at Which was guessed wrong",
        "Which leads to S2: wrong, it went to S3",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let drawing = folder.path().join("drawing.svg");
    let shown = drawing.to_str().expect("UTF-8");
    assert_eq!(printed(&server, &["workflow", "explain", "ahead", &wrong, "--svg", shown]), "");
    let elements = xml::elements(&fs::read_to_string(&drawing).expect("a drawing")).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(elements[0] == "svg" && elements.iter().filter(|name| *name == "rect").count() > 4, "{elements:?}");
    server.stop();
}

fn without_times(value: &Value) -> Value {
    let mut value = value.clone();
    value.as_object_mut().expect("an object").retain(|key, _| !key.ends_with("_us"));
    value
}

/// The second step reads a key which the first one writes at its end.
#[test]
fn a_squash_names_the_key_and_the_state_that_has_written_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    // How long the first one takes is learned first.
    execute(&server, "ahead", ["pause 1000\nset k 0\nset x 1", "get k", "get x", "get x"]);
    let value = Cell::new(0);
    let again = || {
        value.set(value.get() + 1);
        execute(&server, "ahead", [&format!("pause 1000\nset k {}", value.get()), "get k", "get x", "get x"])
    };
    again();
    let squashed = until(again, |execution| runs(&explained(&server, execution), "S1")[0]["result"] == "squashed");
    let told = explained(&server, &squashed);
    let second = runs(&told, "S1");
    let results: Vec<&Value> = second.iter().map(|run| &run["result"]).collect();
    assert!(["committed", "adopted"].iter().any(|result| results.last() == Some(&&json!(result))), "{told:#}");
    let reason = &second[0]["reason"];
    assert_eq!((&reason["code"], &reason["state"]), (&json!("read_too_early"), &json!("S0")), "{told:#}");
    assert!(reason["key"].as_str().is_some_and(|key| key.ends_with("/k")), "{told:#}");
    let text = printed(&server, &["workflow", "explain", "ahead", &squashed]);
    assert!(text.contains("S1 was squashed: it had read ") && text.contains("/k before S0 wrote it"), "{text}");
    server.stop();
}

#[test]
fn what_cannot_be_explained_is_said_clearly() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let refused = |arguments: &[&str], words: &str| {
        let done = sledge(&server, &[&["workflow", "explain"], arguments].concat());
        assert_ne!(done.code(), 0, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(words), "{arguments:?}: {done:?}");
    };
    refused(&["ahead"], "no execution of `ahead` has ended since the server began");
    let steps = ["set a 1", "get a", "get a", "get a"];
    let first = execute(&server, "ahead", steps);
    refused(&["ahead", "nothing"], "nothing is kept of an execution `nothing` of `ahead`");
    refused(&["plain"], "set `speculation` for it");
    refused(&["durable"], "`sledge workflow history`");
    refused(&["unknown"], "there is no workflow of that name");
    assert_eq!(name(&server.client().post("/plain", json!({ "lines": steps }).to_string())), None);
    let elsewhere = folder.path().join("none/drawing.svg");
    refused(&["ahead", "--svg", elsewhere.to_str().expect("UTF-8")], "the drawing cannot be written to");

    // Each tenant has its own.
    refused(&["theirs"], "there is no workflow of that name");
    refused(&["ahead", &first, "--tenant", "other"], "nothing is kept of an execution");
    let theirs = execute(&server, "theirs", steps);
    refused(&["ahead", &theirs], "nothing is kept of an execution");
    let told = printed(&server, &["workflow", "explain", "theirs", "--tenant", "other"]);
    assert!(told.starts_with(&format!("{theirs} failed")), "{told}");
    // By its ARN, too.
    let arn = explained(&server, &first)["arn"].as_str().expect("an ARN").to_owned();
    assert_eq!(explained(&server, &arn)["execution"], first);
    server.stop();
}

#[test]
fn the_last_executions_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    // They wait, so that to go ahead pays all the time.
    let names: Vec<String> =
        (0..KEPT + 2).map(|_| execute(&server, "ahead", ["pause 20\nset a 1", "pause 20", "pause 20", "get a"])).collect();
    let listed: Value =
        serde_json::from_str(&printed(&server, &["workflow", "explain", "ahead", "--list", "--json"])).expect("JSON");
    let listed: Vec<&str> =
        listed["executions"].as_array().expect("a list").iter().filter_map(|one| one["execution"].as_str()).collect();
    assert_eq!(listed, names[2..].iter().rev().map(String::as_str).collect::<Vec<_>>());
    let table = printed(&server, &["workflow", "explain", "ahead", "--list"]);
    assert!(table.lines().count() == KEPT + 1 && table.starts_with("execution"), "{table}");
    let gone = sledge(&server, &["workflow", "explain", "ahead", &names[1]]);
    assert!(gone.code() != 0 && gone.stderr.contains("the last ones are listed with --list"), "{gone:?}");
    server.stop();
}

#[test]
fn runs_and_commits_are_spans_of_the_request() {
    let (folder, collector) = (tempfile::tempdir().expect("a folder"), Collector::start());
    let more = json!({ "kv": "memory", "workers": 2, "workflows": [workflows(folder.path())[0]] });
    let server = telemetry::server(&collector, json!([function("t", json!({}))]), json!({}), more);
    let learn = || execute(&server, "ahead", ["set a 1", "get a\npause 200", "get c", "get d"]);
    (0..3).for_each(|_| drop(learn()));
    let last = || {
        learn();
        execute(&server, "ahead", ["get a", "get b\npause 500", "get c", "get d"])
    };
    let last = until(last, |execution| result_of_third(&server, execution) == "dropped");
    let of_last = |span: &&Span| span.get("sledge.execution") == last;
    let has_all = |spans: &[Span]| {
        let of_last: Vec<&Span> = spans.iter().filter(of_last).collect();
        of_last.len() >= 4 && spans.iter().any(|span| span.id == of_last[0].parent)
    };
    let spans = collector.wait_for(has_all);
    let states: Vec<&Span> = spans.iter().filter(of_last).collect();
    let dropped = states.iter().find(|span| span.name == "state S2").unwrap_or_else(|| panic!("{states:#?}"));
    let told = ["sledge.speculative", "sledge.result", "sledge.behind", "sledge.reason"].map(|name| dropped.get(name));
    assert_eq!(told, ["true", "dropped", "S1", "not_asked"]);
    let first = states.iter().find(|span| span.name == "state S0").expect("the first state");
    assert_eq!((first.get("sledge.result"), first.get("faas.invoked_name")), ("committed", "t"));
    let request = spans.iter().find(|span| span.id == first.parent).expect("the request");
    let is_within = request.begin_ns <= dropped.begin_ns && dropped.end_ns <= request.end_ns;
    assert!(request.name.starts_with("POST") && is_within, "{request:?} {dropped:?}");
    // The executions before it have written something.
    assert!(spans.iter().any(|span| span.name == "commit" && span.get("sledge.result") == "made"), "{spans:#?}");
    server.stop();
}
