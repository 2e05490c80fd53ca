//! Versions of deployed functions: listing them, comparing them, and going back.

use crate::deploy::{command, saying};
use crate::{entry, entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::server::Server;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// What a command prints when it succeeds, line by line.
fn printed(server: &Server, args: &[&str]) -> Vec<String> {
    let done = command(server, args);
    assert_eq!(done.code(), 0, "{args:?}: {}", done.stderr);
    done.text().lines().map(str::to_owned).collect()
}

/// What it says when it fails.
fn refused(server: &Server, args: &[&str]) -> String {
    let done = command(server, args);
    assert_eq!(done.code(), 1, "{args:?}: {}", done.text());
    done.stderr
}

fn deploy(server: &Server, folder: &Path, text: &str, args: &[&str]) {
    let file = folder.join(format!("{text}.wasm"));
    fs::write(&file, saying(text)).expect("write the module");
    printed(server, &[&["deploy", file.to_str().expect("a path"), "--name", "f"], args].concat());
}

/// Numbers of the versions of `f`, the oldest first.
fn numbers(server: &Server) -> Vec<u64> {
    let versions = server.admin().get("/functions/f/versions").json();
    versions.as_array().expect("a list").iter().map(|version| version["version"].as_u64().expect("a number")).collect()
}

fn said(server: &Server, path: &str) -> String {
    server.client().get(path).text()
}

#[test]
fn an_earlier_version_is_served_again_with_its_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "state_dir": folder.path().join("state"), "functions": [] });
    let mut server = Server::start(config.clone());
    deploy(&server, folder.path(), "one", &["--author", "ann", "--set", "route=/old"]);
    deploy(&server, folder.path(), "two", &["--author", "bob\tb", "--set", "route=/new", "--set", "deadline_ms=20700"]);
    deploy(&server, folder.path(), "three", &["--author", "ann"]);
    assert_eq!((said(&server, "/new"), numbers(&server)), ("three".to_owned(), vec![1, 2, 3]));
    assert_eq!(server.admin().function("f").expect("it is there")["version"], 3);

    let table = printed(&server, &["versions", "f"]);
    let columns =
        |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(columns(&table[0]), ["version", "deployed", "author", "module", "bytes", "note"], "{table:#?}");
    let newest = columns(&table[1]);
    assert_eq!((newest[0].as_str(), newest[2].as_str(), newest[5].as_str()), ("3", "ann", "served"), "{table:#?}");
    assert_eq!(newest[4], saying("three").len().to_string());
    assert!(newest[1].len() == 20 && newest[1].ends_with('Z') && newest[3].len() == 16, "{table:#?}");
    assert_eq!((columns(&table[2])[2].as_str(), columns(&table[3])[0].as_str(), table.len()), ("bob\\tb", "1", 4), "{table:#?}");

    let difference = printed(&server, &["diff", "f", "1", "2"]);
    assert_eq!(difference[0], "version 1 -> 2");
    assert!(difference[1].starts_with("module: ") && difference[1].contains(" -> "), "{difference:?}");
    assert_eq!(difference[2..], ["deadline_ms: 30000 -> 20700", "route: /old -> /new"]);
    assert_eq!(printed(&server, &["diff", "f"])[0], "version 2 -> 3");
    assert_eq!(printed(&server, &["diff", "f", "3", "3"]), ["version 3 -> 3", "module: the same"]);

    let back = printed(&server, &["rollback", "f", "--author", "eve"]);
    assert_eq!(back, ["f is version 2 again, as version 4", "code and settings are those of then; data is as it was"]);
    assert_eq!(said(&server, "/new"), "two");
    // Twice goes back further.
    let back = printed(&server, &["rollback", "f"]);
    let expected = ["f is version 1 again, as version 5", "deadline_ms: 20700 -> 30000", "route: /new -> /old"];
    assert_eq!(back[..3], expected);
    assert_eq!((said(&server, "/old").as_str(), server.client().get("/new").status), ("one", 404));
    assert!(refused(&server, &["rollback", "f"]).contains("`f` has no version before the one that is served"));
    assert!(refused(&server, &["rollback", "f", "5"]).contains("version 5 of `f` is the one that is served"));
    let versions = server.admin().get("/functions/f/versions").json();
    let copies: Vec<&Value> = versions.as_array().expect("a list").iter().map(|version| &version["rollback_to"]).collect();
    assert_eq!(copies, [&Value::Null, &Value::Null, &Value::Null, &json!(2), &json!(1)]);
    assert_eq!(versions[3]["author"], "eve");

    // For the next server, too, however this one ends.
    server.signal(Signal::KILL);
    assert!(!server.wait(TIME_MAX).success());
    let server = Server::start(config);
    assert_eq!((numbers(&server), said(&server, "/old").as_str()), (vec![1, 2, 3, 4, 5], "one"));
    assert_eq!(server.admin().function("f").expect("it is there")["version"], 5);
    assert_eq!(printed(&server, &["rollback", "f", "3"])[0], "f is version 3 again, as version 6");
    assert_eq!(
        (said(&server, "/new").as_str(), server.admin().function("f").expect("it is there")["version"].as_u64()),
        ("three", Some(6))
    );
    assert_eq!(printed(&server, &["remove", "f"]), ["removed f"]);
    assert!(refused(&server, &["versions", "f"]).contains("there is no function `f`"));
    assert_eq!(fs::read_dir(folder.path().join("state")).expect("the folder").count(), 0);
    deploy(&server, folder.path(), "one", &[]);
    assert_eq!(numbers(&server), [1]);
    server.stop();
}

#[test]
fn what_cannot_be_gone_back_to_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    deploy(&server, folder.path(), "one", &[]);
    for args in [["versions", "f"], ["diff", "f"], ["rollback", "f"]] {
        let message = refused(&server, &args);
        assert!(message.contains("`state_dir`") && message.contains("--state-dir"), "{message}");
    }
    assert!(refused(&server, &["rollback", "echo"]).contains("`echo` is in the configuration"));
    assert!(refused(&server, &["rollback", "nothing"]).contains("there is no function `nothing`"));
    server.stop();

    let config = json!({ "state_dir": folder.path().join("state"), "versions_max": 2, "functions": [] });
    let server = Server::start(config);
    deploy(&server, folder.path(), "one", &[]);
    assert!(refused(&server, &["diff", "f"]).contains("has no version before"));
    deploy(&server, folder.path(), "two", &[]);
    deploy(&server, folder.path(), "three", &[]);
    assert!(refused(&server, &["rollback", "f", "1"]).contains("`f` has no version 1; it has 2, 3"));
    assert!(refused(&server, &["diff", "f", "9"]).contains("`f` has no version 9; it has 2, 3"));
    // The author is the user of the command, unless it is said.
    let versions = server.admin().get("/functions/f/versions").json();
    assert!(versions[1]["author"].as_str().is_some_and(|author| !author.is_empty()), "{versions}");
    // Settings, versions, and two modules.
    assert_eq!(fs::read_dir(folder.path().join("state")).expect("the folder").count(), 4);
    let admin = server.admin();
    for (method, target, status) in [
        ("POST", "/functions/f/rollback?to=x", 400),
        ("GET", "/functions/f/diff?from=", 400),
        ("POST", "/functions/f/rollback?to=1", 404),
        ("POST", "/functions/f/rollback?to=3", 409),
        ("GET", "/functions/f/rollback", 405),
        ("POST", "/functions/f/versions", 405),
        ("POST", "/functions/f/diff", 405),
    ] {
        assert_eq!(admin.ask(method, target, "", b"").status, status, "{method} {target}");
    }
    // An author is one line of some length.
    let header = format!("sledge-author: {}\r\n", "x".repeat(1_000));
    assert_eq!(admin.ask("POST", "/functions/f/rollback", &header, b"").json()["version"], 4);
    let versions = admin.get("/functions/f/versions").json();
    assert_eq!(versions[1]["author"].as_str().map(str::len), Some(128));
    server.stop();
}

/// Its module is damaged: the version before it is served again. Its versions are damaged: it is served all the same.
#[test]
fn damaged_files_are_one_versions_misfortune() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let config = json!({ "state_dir": state, "functions": [entry_with("other", "echo.wat", &json!({ "route": "/other" }))] });
    let server = Server::start(config.clone());
    deploy(&server, folder.path(), "one", &[]);
    deploy(&server, folder.path(), "two", &[]);
    let digest = server.admin().function("f").expect("it is there")["digest"].as_str().expect("a text").to_owned();
    server.stop();
    fs::write(state.join(format!("f-{digest}.wasm")), b"\0asm").expect("damage the module");

    let server = Server::start(config.clone());
    assert_eq!(server.client().get("/f").status, 503);
    assert_eq!(printed(&server, &["rollback", "f"])[0], "f is version 1 again, as version 3");
    assert_eq!(said(&server, "/f"), "one");
    let message = refused(&server, &["rollback", "f", "2"]);
    assert!(message.contains("damaged: the content does not match the file name"), "{message}");
    assert_eq!((said(&server, "/f").as_str(), numbers(&server)), ("one", vec![1, 2, 3]));
    server.stop();

    fs::write(state.join("f.history"), b"{").expect("damage the versions");
    let server = Server::start(config);
    assert_eq!(said(&server, "/f"), "one");
    let message = refused(&server, &["versions", "f"]);
    assert!(message.contains("f.history: damaged") && message.contains("remove it"), "{message}");
    deploy(&server, folder.path(), "three", &[]);
    assert_eq!(said(&server, "/f"), "three");
    assert!(server.log().contains("this version is not kept"), "{}", server.log());
    fs::remove_file(state.join("f.history")).expect("as it was advised");
    assert_eq!(numbers(&server), [1]);
    server.stop();
}

#[test]
fn going_back_loses_no_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "state_dir": folder.path().join("state"), "versions_max": 100, "functions": [] }));
    deploy(&server, folder.path(), "one", &[]);
    deploy(&server, folder.path(), "two", &[]);
    let (is_over, counts, end) = (AtomicBool::new(false), [(); 2].map(|()| AtomicUsize::new(0)), Instant::now() + TIME_MAX);
    thread::scope(|scope| {
        let asked: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let client = server.client();
                    while !is_over.load(Ordering::Relaxed) {
                        let reply = client.get("/f");
                        let said = ["one", "two"].iter().position(|text| *text == reply.text());
                        counts[said.unwrap_or_else(|| panic!("{reply:?}"))].fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        // As often as it takes until both have been served.
        let are_served = || counts.iter().all(|count| count.load(Ordering::Relaxed) > 0);
        let goes_on = || Instant::now() < end && !asked.iter().any(|asked| asked.is_finished());
        for round in (0..).take_while(|round| goes_on() && (*round < 20 || !are_served())) {
            let reply = server.admin().ask("POST", &format!("/functions/f/rollback?to={}", 1 + round % 2), "", b"");
            assert_eq!(reply.status, 200, "{reply:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        asked.into_iter().for_each(|asked| asked.join().expect("only good replies"));
        assert!(are_served(), "{counts:?}");
    });
    eventually("old versions are gone", || server.admin().function("f").expect("it is there")["retired"] == 0);
    server.stop();
}
