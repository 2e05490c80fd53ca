//! WebAssembly modules that the server compiles: the compiler as a child with limits, and the cache of what it made.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::machine;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A module in a file of its own.
fn module(folder: &Path) -> PathBuf {
    let path = folder.join("echo.wasm");
    let wat = programs::tests_folder().join("e2e/functions/echo.wat");
    fs::write(&path, wat::parse_file(wat).expect("WAT")).expect("write the module");
    path
}

/// A module that keeps the compiler busy for longer than any of these tests takes: one function of very many operators.
fn endless(folder: &Path) -> PathBuf {
    let step = "(local.set 0 (i32.add (i32.load (local.get 0)) (i32.mul (local.get 0) (local.get 1))))".repeat(300_000);
    let text = format!("(module (memory 1) (func (export \"_start\") (local i32 i32) {step}))");
    let path = folder.join("endless.wasm");
    fs::write(&path, wat::parse_str(text).expect("WAT")).expect("write the module");
    path
}

/// A configuration with a cache of its own and these keys besides.
fn config(folder: &Path, module: &Path, more: &Value) -> Value {
    let mut config = json!({ "cache_dir": folder.join("cache"), "functions": [{ "name": "echo", "path": module }] });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    config
}

fn refused(folder: &Path, config: &Value) -> Finished {
    let file = folder.join("refused.json");
    fs::write(&file, config.to_string()).expect("write a configuration");
    let done = process::run(sledge_command(&["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file), b"", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    done
}

fn artifacts(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("cache")).expect("the cache").map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "artifact")).collect()
}

/// Starts a server with that configuration; whether it found its function in the cache.
fn is_cached(config: &Value) -> (bool, String) {
    let mut server = Server::start(config.clone());
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.signal(Signal::TERM);
    assert!(server.wait(TIME_MAX).success());
    let log = server.whole_log();
    assert_ne!(log.contains("cached=true"), log.contains("cached=false"), "{log}");
    (log.contains("cached=true"), log)
}

/// As on kernels with few bits of addresses, or in a container with such a limit: less than one guarded memory reserves.
#[test]
fn where_address_space_is_narrow_modules_get_checks_and_artifacts_without_are_refused_with_advice() {
    const ADDRESSES_KIB: u64 = 7 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let run = |file: &Path| {
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"ulimit -v "$0" && exec "$@""#, &ADDRESSES_KIB.to_string()])
            .arg(programs::sledge())
            .arg("run")
            .arg(file);
        process::run(command.env("CACHE_DIRECTORY", folder.path().join("cache")), b"echoed", TIME_MAX)
    };
    let done = run(&module(folder.path()));
    assert_eq!((done.code(), done.text().as_str()), (0, "echoed"), "{}", done.stderr);
    let done = run(&programs::function_with("echo.wat", &["--bounds", "software"]));
    assert_eq!((done.code(), done.text().as_str()), (0, "echoed"), "{}", done.stderr);
    let done = run(&programs::function_with("echo.wat", &["--bounds", "guard"]));
    assert!(done.code() != 0 && done.stderr.contains("`--bounds software`"), "{}: {}", done.code(), done.stderr);
}

#[test]
fn a_module_is_compiled_once_for_each_way_to_compile_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = module(folder.path());
    let with = |more: &Value| config(folder.path(), &module, more);
    assert!(!is_cached(&with(&json!({}))).0);
    assert!(is_cached(&with(&json!({}))).0);
    let software = with(&json!({ "functions": [{ "name": "echo", "path": module, "bounds": "software" }] }));
    assert!(!is_cached(&software).0);
    let baseline = with(&json!({ "functions": [{ "name": "echo", "path": module, "cpu": "baseline" }] }));
    assert!(!is_cached(&baseline).0);
    let quickly = with(&json!({ "functions": [{ "name": "echo", "path": module, "opt_level": 0 }] }));
    assert!(!is_cached(&quickly).0);
    assert_eq!(artifacts(folder.path()).len(), 4);
    assert!(is_cached(&software).0 && is_cached(&baseline).0 && is_cached(&quickly).0);
    let too_much = with(&json!({ "functions": [{ "name": "echo", "path": module, "opt_level": 4 }] }));
    assert!(refused(folder.path(), &too_much).stderr.contains("functions[0].opt_level"));
    // What is refused of an artifact is refused of a module.
    let none = with(&json!({ "functions": [{ "name": "echo", "path": module, "bounds": "none" }] }));
    assert!(refused(folder.path(), &none).stderr.contains("--allow-unchecked"));
}

/// What the code of a level does is the compiler's affair: that it was asked for shows in what is kept.
#[test]
fn modules_are_optimised_as_the_command_line_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = module(folder.path());
    let cache = folder.path().join("cache");
    let run = |options: &[&str]| {
        let mut command = sledge_command(&["run"]);
        command.args(options).arg(&module).env("CACHE_DIRECTORY", &cache);
        process::run(&mut command, b"echoed", TIME_MAX)
    };
    let kept = || artifacts(folder.path()).len();
    for (options, count) in [(&[][..], 1), (&["-O", "3"], 1), (&["-O0"], 2), (&["-O", "0"], 2)] {
        let done = run(options);
        assert_eq!((done.code(), done.text().as_str(), kept()), (0, "echoed", count), "{options:?} {}", done.stderr);
    }
    assert_eq!(run(&["-O", "4"]).code(), 2);
    let mut serve = sledge_command(&["serve", "--listen", "127.0.0.1:0", "--admin", "none", "-O", "0"]);
    let server = Server::start_with(serve.arg(&module).env("CACHE_DIRECTORY", &cache));
    assert_eq!((server.client().post("/echo", "x").text().as_str(), kept()), ("x", 2));
    server.stop();
}

#[test]
fn an_artifact_that_was_tampered_with_is_compiled_again_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = module(folder.path());
    let config = config(folder.path(), &module, &json!({}));
    assert!(!is_cached(&config).0);
    let artifact = artifacts(folder.path()).pop().expect("an artifact");
    let good = fs::read(&artifact).expect("the artifact");
    let mut bytes = good.clone();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&artifact, bytes).expect("tamper");
    let (cached, log) = is_cached(&config);
    assert!(!cached && log.contains("its digest is wrong"), "{log}");
    assert!(is_cached(&config).0, "it was made anew");
    // A good artifact of something else in its place.
    let other = json!({ "name": "echo", "path": module, "cpu": "baseline" });
    let mut other_config = config.clone();
    other_config["functions"] = json!([other]);
    assert!(!is_cached(&other_config).0);
    let other = artifacts(folder.path()).into_iter().find(|path| *path != artifact).expect("another one");
    fs::copy(other, &artifact).expect("exchange");
    let (cached, log) = is_cached(&config);
    assert!(!cached && log.contains("its digest is wrong"), "{log}");
}

#[test]
fn without_a_place_for_the_cache_modules_are_compiled_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("cache"), "a file, no folder").expect("write a file");
    let (cached, log) = is_cached(&config(folder.path(), &module(folder.path()), &json!({})));
    assert!(!cached && log.contains("compiled modules are not kept"), "{log}");
}

#[test]
fn a_compilation_that_takes_too_long_is_ended_and_says_which_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = endless(folder.path());
    // Built before the clock runs.
    programs::sledge();
    let start = Instant::now();
    let done = refused(folder.path(), &config(folder.path(), &module, &json!({ "compile_ms_max": 1_500 })));
    assert!(done.stderr.contains("longer than 1500 ms") && done.stderr.contains("compile_ms_max"), "{}", done.stderr);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    crate::eventually("nothing of it is left", || compilers_of(folder.path()).is_empty());
}

/// The compiler, and whatever it starts, runs under the limits, as a shell in its place says.
#[test]
fn compilers_take_their_limits_upon_themselves() {
    let ulimits = "ulimit -v; ulimit -t; ulimit -Ht; ulimit -n; ulimit -c; sh -c 'ulimit -v'; nice";
    let limited = ["limited", "1500", "2147483648", "10", "/bin/sh", "-c", ulimits];
    let done = process::run(&mut sledge_command(&limited), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let lines: Vec<String> = done.text().lines().map(str::to_string).collect();
    assert_eq!(lines[..6], ["2097152", "2", "3", "256", "0", "2097152"], "{lines:?}");
    // On top of the test's own.
    assert!(lines[6].parse::<i32>().expect("a number") >= 10, "{lines:?}");
}

/// Processes that compile in a folder below the one of that test, by where they work and their command line.
fn compilers_of(folder: &Path) -> Vec<i32> {
    let folder = folder.canonicalize().expect("the folder");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let is_one = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let works = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        works.starts_with(&folder) && String::from_utf8_lossy(&line).contains("--bounds")
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_one).collect()
}

#[test]
fn a_compiler_that_is_killed_in_the_middle_costs_that_deployment_only() {
    let folder = tempfile::tempdir().expect("a folder");
    // The compiler's temporary files lie where this test finds them.
    let file = folder.path().join("sledge.json");
    let admin = folder.path().join("admin.sock");
    let mut config = config(folder.path(), &module(folder.path()), &json!({ "admin": admin }));
    config["listen"] = "127.0.0.1:0".into();
    fs::write(&file, config.to_string()).expect("write the configuration");
    let server = Server::start_with(sledge_command(&["serve", "--config"]).arg(&file).env("TMPDIR", folder.path()));
    let module = fs::read(endless(folder.path())).expect("the module");
    let door = sledge_tests::admin::Admin::new(admin);
    let deployment = std::thread::spawn(move || (door.deploy("endless", &json!({}), &module), door));
    let deadline = Instant::now() + TIME_MAX;
    let compiler = loop {
        if let Some(pid) = compilers_of(folder.path()).first() {
            break *pid;
        }
        assert!(Instant::now() < deadline, "no compiler:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    kill_process(Pid::from_raw(compiler).expect("a process"), Signal::KILL).expect("kill");
    let (reply, door) = deployment.join().expect("the deployment");
    assert_eq!(reply.status, 422, "{}", reply.text());
    assert!(reply.text().contains("signal 9"), "{}", reply.text());
    assert!(door.function("endless").is_none());
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.stop();
}

/// A module of which the header is good, that has an import which is not offered, and that is no module otherwise.
fn foreign(folder: &Path) -> PathBuf {
    let path = folder.join("foreign.wasm");
    let text = r#"(module (import "rb-js-abi-host" "eval-js" (func (param i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_wrte" (func)) (func (export "_start")))"#;
    let mut module = wat::parse_str(text).expect("WAT");
    module.extend_from_slice(b"\xff\xff\xff no section");
    fs::write(&path, module).expect("write the module");
    path
}

#[test]
fn imports_are_looked_at_before_anything_is_compiled() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = foreign(folder.path());
    let path = module.to_str().expect("UTF-8");
    let words = [
        "2 of its imports are not offered",
        "`rb-js-abi-host` `eval-js`: it needs a JavaScript host",
        "the nearest is `fd_write`",
    ];
    let server = Server::start(json!({ "functions": [] }));
    let bytes = fs::read(&module).expect("the module");
    let reply = server.admin().deploy("foreign", &json!({}), &bytes);
    assert_eq!(reply.status, 422, "{}", reply.text());
    let answer = reply.json()["error"].as_str().expect("an error").to_owned();
    server.stop();
    let run = process::run(&mut sledge_command(&["run", path]), b"", TIME_MAX);
    // There is no server that could look at it.
    let deploy = process::run(&mut sledge_command(&["deploy", path, "--admin", "/nonexistent/door"]), b"", TIME_MAX);
    let serve = refused(folder.path(), &config(folder.path(), &module, &json!({})));
    for (command, said) in [("server", &answer), ("run", &run.stderr), ("deploy", &deploy.stderr), ("serve", &serve.stderr)] {
        assert!(words.iter().all(|words| said.contains(words)), "{command}: {said}");
    }
    assert_eq!((run.code(), deploy.code()), (1, 1));
    // A build that links modules compiles them nevertheless.
    let awsm = programs::run_awsm(&["compile", path, "--allow-unknown-imports"]);
    assert!(awsm.code() == 1 && awsm.stderr.contains("invalid module"), "{}", awsm.stderr);
}

#[test]
fn what_is_no_module_is_named_for_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes, words) in [
        ("app.py", b"print()".as_slice(), "app.py: this is Python: componentize-py makes a component of it"),
        ("app.c", b"int main", "app.c: this is C: `awsm compile` makes a function of it"),
        ("app", b"nothing", "app: neither an artifact (.so, made by `awsm compile`) nor a WebAssembly module (.wasm)"),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, bytes).expect("write a file");
        let path = file.to_str().expect("UTF-8");
        for arguments in [["run", path].as_slice(), &["deploy", path, "--admin", "/nonexistent/door"]] {
            let done = process::run(&mut sledge_command(arguments), b"", TIME_MAX);
            assert!(done.code() == 1 && done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
        }
    }
}

/// The compiler works in a temporary folder. No message names it.
#[test]
fn what_the_compiler_refuses_is_called_by_its_own_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = folder.path().join("app.wasm");
    fs::write(&module, wat::parse_str("(module (func (export \"_start\") (result i32) (i64.const 1)))").expect("WAT"))
        .expect("write");
    let done = process::run(sledge_command(&["run", "app.wasm"]).current_dir(folder.path()), b"", TIME_MAX);
    let said = "sledge: app.wasm: awsm could not compile it (exit status: 1): invalid module at offset";
    // Progress, where the machine is busy, comes before it.
    let is_said = done.stderr.lines().any(|line| line.starts_with(said));
    assert!(done.code() == 1 && is_said && !done.stderr.contains("sledge-"), "{}", done.stderr);
}

#[test]
fn a_build_that_takes_long_and_says_nothing_is_spoken_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = "[[functions]]\nname = \"slow\"\npath = \"slow.wasm\"\nbuild = [\"sleep\", \"20\"]\n";
    fs::write(folder.path().join("sledge.toml"), config).expect("write a configuration");
    says(sledge_command(&["dev", "--listen", "127.0.0.1:0"]).current_dir(folder.path()), "sleep builds slow, ");
}

/// Starts a command, and waits for a line of its standard error with these words; then ends it.
fn says(command: &mut Command, words: &str) -> String {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut said = Vec::new();
    for line in lines {
        said.push(line);
        if said.last().is_some_and(|line| line.contains(words)) {
            break;
        }
    }
    process::kill(&mut child);
    assert!(said.last().is_some_and(|line| line.contains(words)), "{words:?}: {said:?}");
    said.pop().unwrap_or_default()
}

#[test]
fn a_client_that_waits_for_a_compiler_sees_its_progress() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = endless(folder.path());
    let path = module.to_str().expect("UTF-8");
    let run = says(&mut sledge_command(&["run", path]), "sledge: compiling endless.wasm: ");
    assert!(run.ends_with(" s"), "{run}");
    let file = folder.path().join("sledge.json");
    fs::write(&file, config(folder.path(), &module, &json!({})).to_string()).expect("write a configuration");
    says(sledge_command(&["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file), "compiling endless.wasm: ");
    // The server's log says so, and the client's terminal.
    let server = Server::start(json!({ "cache_dir": folder.path().join("cache"), "functions": [] }));
    let door = server.admin().path().to_str().expect("UTF-8").to_owned();
    says(&mut sledge_command(&["deploy", path, "--admin", &door]), "sledge: the server compiles endless, ");
    server.wait_for_log("compiling endless.wasm: ");
}

/// As on a machine for which there is no compiler.
#[test]
fn without_a_compiler_a_deployment_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, door) = (folder.path().join("sledge"), folder.path().join("admin.sock"));
    fs::copy(programs::sledge(), &program).expect("copy");
    let sledge = |arguments: &[&str]| {
        let mut command = machine::command(&program);
        command.args(arguments).arg("--admin").arg(&door).env("PATH", folder.path());
        command
    };
    let server = Server::start_with(&mut sledge(&["serve", "--listen", "127.0.0.1:0"]));
    let what_to_do = [
        "there is no `awsm`",
        "-unknown-linux-gnu --cpu baseline",
        "`path` of a function in the server's configuration",
        "kill -HUP",
    ];
    server.wait_for_log("functions cannot be deployed");
    let path = module(folder.path());
    let done = process::run(sledge(&["deploy"]).arg(&path), b"", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.text());
    for words in what_to_do {
        assert!(server.log().contains(words), "{words} is missing in:\n{}", server.log());
        assert!(done.stderr.contains(words), "{words} is missing in:\n{}", done.stderr);
    }
    // What was compiled elsewhere is not taken here either.
    let done = process::run(sledge(&["deploy"]).arg(programs::function("echo.wat")), b"", TIME_MAX);
    assert!(done.code() == 1 && done.stderr.contains("`path` of a function"), "{}", done.stderr);
    server.stop();
}
