//! From `sledge new` to a function that answers, in every language, and `sledge dev` while somebody works.

use serde_json::json;
use sledge_tests::http::TIME_MAX;
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Dependencies of a cold build in Rust, on a machine that does other things too.
const BUILD_TIME_MAX: Duration = Duration::from_secs(600);

/// A new project of that name and language, in a folder of its own.
fn project(name: &str, language: &str) -> PathBuf {
    let folder = programs::folder().join(format!("projects-{name}"));
    fs::create_dir_all(&folder).expect("a folder");
    let done = process::run(sledge_command(&["new", name, "--lang", language]).current_dir(&folder), b"", TIME_MAX);
    assert_eq!((done.code(), done.text()), (0, format!("made {name}; next: cd {name} && sledge dev\n")), "{}", done.stderr);
    folder.join(name)
}

/// A command as a developer gives it in a project, with our programs in PATH.
fn command(program: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").expect("PATH");
    let own = programs::awsm().parent().expect("a folder").display().to_string();
    command.args(arguments).current_dir(folder).env("PATH", format!("{own}:{path}"));
    // What cargo has built for one test is there for the next.
    command.env("CARGO_TARGET_DIR", programs::awsm().with_file_name("tests-projects"));
    command
}

fn succeeds(program: &str, arguments: &[&str], folder: &Path) {
    let done = process::run(&mut command(program, arguments, folder), b"", BUILD_TIME_MAX);
    assert!(done.status.success(), "{program} {arguments:?}: {}\n{}", done.text(), done.stderr);
}

/// The configuration's `build`, as `sledge dev` runs it.
fn build(folder: &Path) {
    let config = fs::read_to_string(folder.join("sledge.toml")).expect("a configuration");
    let line = config.lines().find_map(|line| line.strip_prefix("build = ")).expect("a build");
    let words: Vec<String> = serde_json::from_str(line).expect("a list");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    succeeds(words[0], &words[1..], folder);
}

/// Tests, builds and serves a new project; deploys it, too.
fn answers(language: &str, tests: &[&str], body: &str, reply: &str, content_type: &str) {
    let name = format!("hello-{language}");
    let folder = project(&name, language);
    succeeds(tests[0], &tests[1..], &folder);
    build(&folder);
    // Compiles it, which takes longer than a server may to start; that one then finds what was made.
    let mut check = sledge_command(&["config", "check", "sledge.toml"]);
    let checked = process::run(check.current_dir(&folder), b"", BUILD_TIME_MAX);
    assert_eq!(checked.code(), 0, "{}", checked.stderr);

    let mut serve = sledge_command(&["serve", "--listen", "127.0.0.1:0", "--admin", "none", "--config", "sledge.toml"]);
    let server = Server::start_with(serve.current_dir(&folder));
    let answer = server.client().post(&format!("/{name}"), body);
    assert_eq!((answer.status, answer.text().as_str()), (200, reply));
    assert_eq!(answer.header("content-type"), Some(content_type));
    server.stop();

    let server = Server::start(json!({ "functions": [] }));
    let door = server.folder().join("admin.sock");
    let module = folder.join(format!("{name}.wasm"));
    let mut deploy = sledge_command(&["deploy", "--admin"]);
    let done = process::run(deploy.arg(door).arg(module), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert_eq!(server.client().post(&format!("/{name}"), body).text(), reply);
    server.stop();
}

#[test]
fn a_new_project_in_rust_answers() {
    answers("rust", &["cargo", "test"], r#"{"name": "Ada"}"#, r#"{"greeting":"Hello, Ada!"}"#, "application/json");
}

#[test]
fn a_new_project_in_c_answers() {
    answers("c", &["make", "test"], "Ada\n", "Hello, Ada!\n", "text/plain");
}

#[test]
fn a_new_project_in_go_answers() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("sledge new --lang go: NOT CHECKED: it needs go");
        return;
    }
    answers("go", &["go", "test"], "Ada\n", "Hello, Ada!\n", "text/plain");
}

#[test]
fn a_project_is_refused_where_it_cannot_be() {
    let folder = project("there", "c");
    fs::write(folder.join("function.c"), "mine").expect("write");
    let above = folder.parent().expect("a folder");
    let run = |arguments: &[&str]| process::run(sledge_command(arguments).current_dir(above), b"", TIME_MAX);
    let again = run(&["new", "there", "--lang", "c"]);
    assert_eq!((again.code(), again.stderr.as_str()), (1, "sledge: there: exists already; nothing was changed\n"));
    assert_eq!(fs::read_to_string(folder.join("function.c")).expect("read"), "mine");
    let bad = run(&["new", "../out", "--lang", "c"]);
    assert!(bad.code() == 2 && bad.stderr.contains("has to begin with a letter"), "{}", bad.stderr);
    let nowhere = run(&["dev"]);
    assert!(nowhere.code() == 2 && nowhere.stderr.contains("sledge.toml: no such file"), "{}", nowhere.stderr);
}

fn replace(file: &Path, before: &str, after: &str) {
    let text = fs::read_to_string(file).expect("read");
    assert!(text.contains(before), "{text}");
    fs::write(file, text.replace(before, after)).expect("write");
}

/// Asks until the reply is that one: a change is served when it is built and loaded.
#[track_caller]
fn wait_for_reply(server: &Server, path: &str, expected: &str) {
    let end = Instant::now() + TIME_MAX;
    let mut reply = server.client().post(path, "Ada");
    while reply.text() != expected {
        assert!(Instant::now() < end, "{reply:?} instead of {expected:?}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
        reply = server.client().post(path, "Ada");
    }
}

/// A change, a mistake, its correction; a mistake in the configuration; never without an answer.
#[test]
fn a_project_is_built_and_swapped_as_it_changes() {
    let folder = project("worked-on", "c");
    let source = folder.join("function.c");
    // Broken from the start: it waits.
    replace(&source, "\"Hello, %.*s!\\n\"", "\"Hello, %.*s!\\n\" oops");
    let mut dev = sledge_command(&["dev", "--listen", "127.0.0.1:0"]);
    dev.current_dir(&folder);
    let waits = "worked-on: building failed: awsm: exit status: 1; waiting for the next change";
    let server = Server::start_waiting(&mut dev, waits, || replace(&source, " oops", ""));
    assert!(server.log().contains("function.c:"), "the compiler's own message");
    wait_for_reply(&server, "/worked-on", "Hello, Ada!\n");
    server.wait_for_log("greeting somebody");

    replace(&source, "Hello, %", "Good morning, %");
    wait_for_reply(&server, "/worked-on", "Good morning, Ada!\n");

    replace(&source, "SLEDGE_HANDLE {", "SLEDGE_HANDLE {{");
    server.wait_for_log("what was built before is still served");
    assert_eq!(server.client().post("/worked-on", "Ada").text(), "Good morning, Ada!\n");
    replace(&source, "SLEDGE_HANDLE {{", "SLEDGE_HANDLE {");
    replace(&source, "Good morning, %", "Good evening, %");
    wait_for_reply(&server, "/worked-on", "Good evening, Ada!\n");

    replace(&folder.join("sledge.toml"), "text/plain", "text/\\u0000");
    server.wait_for_log("text/");
    assert_eq!(server.client().post("/worked-on", "Ada").text(), "Good evening, Ada!\n");
    replace(&folder.join("sledge.toml"), "text/\\u0000", "text/markdown");
    let end = Instant::now() + TIME_MAX;
    while server.client().post("/worked-on", "Ada").header("content-type") != Some("text/markdown") {
        assert!(Instant::now() < end, "{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    server.stop();
}
