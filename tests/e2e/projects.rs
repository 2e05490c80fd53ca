//! From `sledge new` to a function that answers, in every language, and `sledge dev` while files change.

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
    let created = format!("created {name}; next: cd {name} && sledge dev\n");
    assert!(done.code() == 0 && done.text().starts_with(&created), "{}{}", done.text(), done.stderr);
    let needs = done.text()[created.len()..].to_owned();
    assert_eq!(needs.contains("the first build installs"), ["python", "js"].contains(&language), "{needs}");
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
#[ignore = "builds for minutes: make test-projects"]
fn a_new_project_in_go_answers() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("sledge new --lang go: NOT CHECKED: it needs go");
        return;
    }
    answers("go", &["go", "test"], "Ada\n", "Hello, Ada!\n", "text/plain");
}

/// Tests and builds a new project whose function is a component that has an interpreter in it, and serves it as its README says.
fn component_answers(language: &str, tests: &[&str]) {
    let name = format!("hello-{language}");
    let folder = project(&name, language);
    succeeds(tests[0], &tests[1..], &folder);
    build(&folder);
    let (component, artifact) = (format!("{name}.wasm"), format!("{name}.so"));
    succeeds("awsm", &["compile", "-O", "0", &component, "-o", &artifact], &folder);
    let server = Server::start(
        json!({ "workers": 1, "functions": [{ "name": name, "path": folder.join(&artifact), "deadline_ms": 20_000 }] }),
    );
    let target = format!("/{name}?x=1");
    let answer = server.client().post(&target, "Ada\n");
    assert_eq!((answer.status, answer.text()), (200, format!("Hello, Ada!\nYou sent POST to {target}.\n")), "{}", server.log());
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    server.wait_for_log(&format!("POST {target}"));
    // More than is read and written at a time.
    let long = "a".repeat(200_000);
    let answer = server.client().post(&target, &long);
    assert_eq!((answer.status, answer.text()), (200, format!("Hello, {long}!\nYou sent POST to {target}.\n")));
    let nameless = server.client().post(&target, "");
    assert_eq!((nameless.status, nameless.text().as_str()), (400, "Send a name in the body.\n"));
    server.stop();
}

#[test]
#[ignore = "builds for minutes: make test-projects"]
fn a_new_project_in_python_answers() {
    component_answers("python", &["python3", "-m", "unittest"]);
}

#[test]
#[ignore = "builds for minutes: make test-projects"]
fn a_new_project_in_javascript_answers() {
    component_answers("js", &["npm", "test"]);
}

#[test]
fn a_project_is_refused_where_it_cannot_be() {
    let folder = project("there", "c");
    fs::write(folder.join("function.c"), "mine").expect("write");
    let above = folder.parent().expect("a folder");
    let run = |arguments: &[&str]| process::run(sledge_command(arguments).current_dir(above), b"", TIME_MAX);
    let again = run(&["new", "there", "--lang", "c"]);
    assert_eq!((again.code(), again.stderr.as_str()), (1, "sledge: there: already exists; nothing was changed\n"));
    assert_eq!(fs::read_to_string(folder.join("function.c")).expect("read"), "mine");
    let bad = run(&["new", "../out", "--lang", "c"]);
    assert!(bad.code() == 2 && bad.stderr.contains("has to start with a letter"), "{}", bad.stderr);
    let nowhere = run(&["dev"]);
    assert!(nowhere.code() == 2 && nowhere.stderr.contains("sledge.toml: no such file"), "{}", nowhere.stderr);
}

fn replace(file: &Path, before: &str, after: &str) {
    let text = fs::read_to_string(file).expect("read");
    assert!(text.contains(before), "{text}");
    write_at_once(file, &text.replace(before, after));
}

/// Writes a file of a project as editors do: no build sees a part of it.
fn write_at_once(file: &Path, text: &str) {
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let new =
        programs::folder().join(format!("new-{}-{name}", file.parent().and_then(Path::file_name).expect("a project").display()));
    fs::write(&new, text).and_then(|()| fs::rename(&new, file)).expect("write");
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
    let waits = "worked-on: the build failed: awsm: exit status: 1; waiting for the next change";
    let server = Server::start_waiting(&mut dev, waits, || replace(&source, " oops", ""));
    assert!(server.log().contains("function.c:"), "the compiler's own message");
    wait_for_reply(&server, "/worked-on", "Hello, Ada!\n");
    server.wait_for_log("sending a greeting");

    replace(&source, "Hello, %", "Good morning, %");
    wait_for_reply(&server, "/worked-on", "Good morning, Ada!\n");

    replace(&source, "SLEDGE_HANDLE {", "SLEDGE_HANDLE {{");
    server.wait_for_log("the last good version stays in service");
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

/// A server of the project in that folder, which is built there.
fn dev(folder: &Path) -> Server {
    let mut dev = sledge_command(&["dev", "--listen", "127.0.0.1:0"]);
    let builds = command("", &[], folder);
    dev.current_dir(folder).envs(builds.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Server::start_with(&mut dev)
}

fn line_of(file: &Path, words: &str) -> usize {
    let text = fs::read_to_string(file).expect("read");
    1 + text.lines().position(|line| line.contains(words)).expect("a line with these words")
}

/// Waits for a line of a backtrace that names this place.
#[track_caller]
fn wait_for_frame(server: &Server, place: &str) {
    let is_frame = |line: &str| line.contains(" at wasm offset ") && line.contains(place);
    crate::eventually(place, || server.log().lines().any(is_frame));
}

#[test]
fn a_trap_of_c_names_its_line_while_it_is_developed() {
    let folder = project("trapping-c", "c");
    let source = folder.join("function.c");
    replace(&source, "    while (length > 0", "    if (length == 3) __builtin_trap();\n    while (length > 0");
    let server = dev(&folder);
    assert_eq!(server.client().post("/trapping-c", "Ada").status, 500);
    wait_for_frame(&server, &format!("function.c:{}", line_of(&source, "__builtin_trap")));
    server.stop();
}

#[test]
fn a_trap_of_rust_names_its_line_while_it_is_developed() {
    let folder = project("trapping-rust", "rust");
    let source = folder.join("src/lib.rs");
    replace(&source, "    Json(Answer {", "    assert!(ask.name.len() > 3, \"short\");\n    Json(Answer {");
    // Projects may share a target folder (CARGO_TARGET_DIR), as they do here: of one that is built meanwhile the output has another name.
    let output = programs::awsm().with_file_name("tests-projects/wasm32-wasip1/release/trapping_rust.wasm");
    // That of an earlier run.
    let _ = fs::remove_file(&output);
    build(&folder);
    assert!(output.is_file(), "{}", output.display());
    let server = dev(&folder);
    assert_eq!(server.client().post("/trapping-rust", r#"{"name": "Ada"}"#).status, 500);
    wait_for_frame(&server, &format!("src/lib.rs:{}", line_of(&source, "short")));
    server.stop();
}

/// Go's linker writes no debug information for WebAssembly; its runtime has lines of its own, and says them.
#[test]
fn a_panic_of_go_names_its_line_while_it_is_developed() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("sledge dev of Go: NOT CHECKED: it needs go");
        return;
    }
    let folder = project("trapping-go", "go");
    let source = folder.join("main.go");
    replace(&source, "\tbody, err :=", "\tprintln([]int{1, 2}[len(r.Target)+1])\n\tbody, err :=");
    build(&folder);
    let server = dev(&folder);
    assert_eq!(server.client().post("/trapping-go", "Ada").status, 500);
    server.wait_for_log(&format!("main.go:{}", line_of(&source, "len(r.Target)")));
    server.stop();
}

/// The project's function, built by a script that has this line before it.
fn build_with(folder: &Path, line: &str) {
    let compile = "awsm compile function.c --emit wasm -o building.wasm -- -mexec-model=reactor";
    fs::write(folder.join("build.sh"), format!("{line}\n{compile}\n")).expect("write");
    let config = fs::read_to_string(folder.join("sledge.toml")).expect("a configuration");
    let before = config.lines().find(|line| line.starts_with("build = ")).expect("a build");
    replace(&folder.join("sledge.toml"), before, "build = [\"sh\", \"-e\", \"build.sh\"]");
}

/// Files that a build creates or changes, files that are no function's source, and a log in the same folder.
#[test]
fn a_build_that_writes_files_is_not_built_for_ever() {
    let folder = project("building", "c");
    let source = folder.join("function.c");
    build_with(&folder, "date +%N | tee made.txt > there.txt; mkdir -p out; date +%N > out/a.c");
    fs::write(folder.join("there.txt"), "from an earlier build").expect("write");
    fs::write(folder.join(".gitignore"), "out/\n").expect("write");
    let log = folder.join("dev.log");
    let mut dev = command("sh", &["-c", "exec \"$0\" dev --listen 127.0.0.1:0 2> dev.log"], &folder);
    dev.arg(programs::sledge()).env("CACHE_DIRECTORY", programs::folder().join("cache"));
    let server = Server::start_with(&mut dev);
    let builds = || fs::read_to_string(&log).expect("a log").lines().filter(|line| line.contains(" building function=")).count();
    // there.txt may have been edited meanwhile, until it is seen that all builds change it.
    assert_eq!(builds(), 3, "{}", fs::read_to_string(&log).expect("a log"));
    for (i, greeting) in ["Good morning", "Good day", "Good evening", "Good night"].into_iter().enumerate() {
        let before = fs::read_to_string(&source).expect("read");
        write_at_once(&source, &before.replace(["Hello", "Good morning", "Good day", "Good evening"][i], greeting));
        wait_for_reply(&server, "/building", &format!("{greeting}, Ada!\n"));
        assert_eq!(builds(), 4 + i, "{}", fs::read_to_string(&log).expect("a log"));
    }
    assert!(fs::read_to_string(&log).expect("a log").contains("there.txt"));
    server.stop();
}

#[test]
fn what_is_edited_during_a_build_is_built() {
    let folder = project("building-on", "c");
    let source = folder.join("function.c");
    let (began, go) = (folder.join("began.so"), folder.join("go.so"));
    build_with(&folder, "");
    replace(&folder.join("build.sh"), "building.wasm", "building-on.wasm");
    let server = dev(&folder);
    let script = "if ! test -e go.so; then touch began.so; until test -e go.so; do sleep 0.02; done; fi\n";
    let build = folder.join("build.sh");
    write_at_once(&build, &(fs::read_to_string(&build).expect("read") + script));
    let end = Instant::now() + TIME_MAX;
    while !began.exists() {
        assert!(Instant::now() < end, "{}", server.log());
        std::thread::sleep(Duration::from_millis(5));
    }
    // Compiled already, and not yet built.
    replace(&source, "Hello, %", "Good morning, %");
    fs::write(go, "").expect("write");
    wait_for_reply(&server, "/building-on", "Good morning, Ada!\n");
    server.stop();
}
