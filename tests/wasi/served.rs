//! Functions of a server that use files and clocks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;

use crate::{Folders, program};

fn function(name: &str, file: &str, more: &Value) -> Value {
    let mut function = json!({ "name": name, "path": program(file) });
    for (key, value) in more.as_object().expect("an object") {
        function[key] = value.clone();
    }
    function
}

/// Each request has the folder anew, and what it leaves open is closed when it is over.
#[test]
fn a_function_reads_the_folder_that_it_is_granted_and_leaves_nothing_open() {
    let folders = Folders::new();
    let granted = json!({ "dirs": [{ "host": folders.path("r"), "guest": "/data" }] });
    let server = Server::start(json!({ "workers": 2, "functions": [
        function("serve", "serve.c", &granted),
        function("none", "serve.c", &json!({})),
    ] }));
    let open = || std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("/proc").count();
    let client = server.client();
    assert_eq!(client.post("/serve", "kept").text(), "kept");
    let before = open();
    for _ in 0..200 {
        assert_eq!(client.post("/serve", "kept").text(), "kept");
    }
    assert!(open() <= before + 3, "{before} descriptors, then {}", open());
    assert_eq!(client.post("/serve", "none").text(), "No such file or directory");
    assert_eq!(client.post("/serve", "../outside/secret").text(), "Capabilities insufficient");
    // No other function has any of it.
    assert_ne!(client.post("/none", "kept").text(), "kept");
    server.stop();
}

/// What a guest waits for may be done before it has begun to wait: many waits, each so short that both come at the same time.
#[test]
fn no_end_of_a_wait_is_missed() {
    const CLIENTS: usize = 8;
    const REQUESTS: usize = 400;
    let folders = Folders::new();
    let more = json!({ "dirs": [{ "host": folders.path("r"), "guest": "/data" }], "deadline_ms": 20_000 });
    let server = Server::start(json!({ "workers": 1, "functions": [function("serve", "serve.c", &more)] }));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let client = server.client();
                for request in 0..REQUESTS {
                    assert_eq!(client.post("/serve", "kept").text(), "kept", "request {request}");
                }
            });
        }
    });
    server.stop();
}

/// Sandboxes that sleep are in no other's way: many sleep on one worker at the same time, and others are answered meanwhile.
#[test]
fn sleeping_costs_no_worker() {
    const SLEEPERS: usize = 100;
    let server = Server::start(json!({ "workers": 1, "functions": [
        function("sleep", "sleep.c", &json!({})),
        { "name": "echo", "path": programs::function("echo.wat") },
    ] }));
    let begun = Instant::now();
    let mut sleepers: Vec<Raw> = (0..SLEEPERS).map(|_| Raw::connect(server.address)).collect();
    for sleeper in &mut sleepers {
        sleeper.send(post_bytes("/sleep", b"1500", ""));
    }
    let client = server.client();
    let before = server.cpu_time();
    for _ in 0..20 {
        assert_eq!(client.post("/echo", "quick").text(), "quick");
    }
    assert!(begun.elapsed() < Duration::from_millis(1500), "they were held up for {:?}", begun.elapsed());
    for sleeper in &mut sleepers {
        let reply = sleeper.reply().expect("a reply");
        assert_eq!((reply.status, reply.body.as_slice()), (200, b"slept\n".as_slice()), "{reply:?}");
    }
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1500) && took < Duration::from_secs(20), "{took:?}");
    let used = server.cpu_time() - before;
    assert!(used < Duration::from_millis(700), "{used:?} of processor time");
    server.stop();
}

/// A deadline ends a function that sleeps longer.
#[test]
fn a_sleeper_is_ended_by_its_deadline() {
    let server =
        Server::start(json!({ "workers": 1, "functions": [function("sleep", "sleep.c", &json!({ "deadline_ms": 300 }))] }));
    let begun = Instant::now();
    let reply = server.client().post("/sleep", "100000");
    assert_eq!((reply.status, reply.json()["code"].as_str()), (504, Some("deadline")), "{reply:?}");
    assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    server.stop();
}

/// What an initialisation reads of files is the same for all requests: refused, unless that is accepted and nothing is left open. What it
/// would change is refused in any case.
#[test]
fn an_initialisation_reads_files_only_where_that_is_accepted() {
    let folders = Folders::new();
    let granted = |init: &str, snapshot: &str| {
        let dirs = json!([{ "host": folders.path("r"), "guest": "/data", "write": init == "write" }]);
        let more = json!({ "init": init, "snapshot": snapshot, "dirs": dirs });
        json!({ "admin": "none", "listen": "127.0.0.1:0", "functions": [function("f", "initial-file.wat", &more)] })
    };
    for (init, snapshot, words) in [
        ("init", "on", "called `path_open`, which reads files"),
        ("leave", "shared-seed", "it left a file or a folder open"),
        ("write", "shared-seed", "called `path_open`, which changes what lies outside of the function"),
    ] {
        let file = folders.path("sledge.json");
        std::fs::write(&file, granted(init, snapshot).to_string()).expect("write the configuration");
        let done = process::run(sledge_command(&["serve", "--config"]).arg(&file), b"", Duration::from_secs(60));
        assert!(done.code() == 1 && done.stderr.contains(words), "{init}: {}: {}", done.code(), done.stderr);
        std::fs::remove_file(&file).expect("remove a file");
    }
    let server = Server::start(granted("init", "shared-seed"));
    std::fs::write(folders.path("r/kept"), "later").expect("write a file");
    assert_eq!(server.client().post("/f", "").text(), "kept", "as it was at loading");
    server.stop();
    let server = Server::start(granted("init", "off"));
    assert_eq!(server.client().post("/f", "").text(), "later");
    server.stop();
}

/// What is wrong with a folder in the configuration is said with its key; through the admin API none is granted.
#[test]
fn folders_are_checked_and_granted_by_the_configuration_only() {
    let folders = Folders::new();
    let file = folders.path("sledge.json");
    let check = |dirs: Value| {
        let config = json!({ "functions": [function("f", "serve.c", &json!({ "dirs": dirs }))] });
        std::fs::write(&file, config.to_string()).expect("write the configuration");
        let done = process::run(sledge_command(&["config", "check"]).arg(&file), b"", Duration::from_secs(30));
        (done.code(), done.stderr)
    };
    // Relative to the configuration's folder.
    let (code, stderr) = check(json!([{ "host": "r", "guest": "/data" }, { "host": "w", "guest": "/w", "write": true }]));
    assert_eq!(code, 0, "{stderr}");
    for (dirs, words) in [
        (json!([{ "host": "none", "guest": "/data" }]), "functions[0].dirs[0].host"),
        (json!([{ "host": "r/kept", "guest": "/data" }]), "is not a folder"),
        (json!([{ "host": "r", "guest": "" }]), "functions[0].dirs[0].guest"),
        (json!([{ "host": "r", "guest": "/a" }, { "host": "w", "guest": "/a" }]), "is also used by dirs[0]"),
        (json!([{ "host": "r", "guest": "/a", "writ": true }]), "did you mean `write`?"),
        (json!([{ "host": "r" }]), "missing field `guest`"),
    ] {
        let (code, stderr) = check(dirs);
        assert!(code != 0 && stderr.contains(words), "{words}: {code}: {stderr}");
    }
    let server = Server::start(json!({ "functions": [] }));
    let wasm = programs::folder().join("echo-for-dirs.wasm");
    let source = programs::tests_folder().join("e2e/functions/echo.wat");
    let made = programs::run_awsm(&["compile", &source.to_string_lossy(), "--emit", "wasm", "-o", &wasm.to_string_lossy()]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let mut deploy = sledge_command(&["deploy", "--admin"]);
    deploy.arg(server.folder().join("admin.sock")).arg(&wasm).args(["--set", r#"dirs=[{"host": "/", "guest": "/"}]"#]);
    let done = process::run(&mut deploy, b"", Duration::from_secs(60));
    assert!(
        done.code() != 0 && done.stderr.contains("settings.dirs[0].host: `/` is not in a folder that is granted"),
        "{}",
        done.stderr
    );
    server.stop();
}
