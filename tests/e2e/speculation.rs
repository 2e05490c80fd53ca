//! `examples/speculation` by its own configuration: each workflow and each call graph replies what the same code replies natively, byte for byte, on the
//! embedded store and on Redis, one function after the other and where functions run ahead.

use crate::kv::Redis;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sledge_tests::admin::Admin;
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::server::Server;
use speculation::{Application, Inputs, Memory, Mix, Paths, SETUP, graphs};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Inputs of each workflow, within which each of its functions runs.
const INPUTS: usize = 40;
/// Inputs of each graph.
const CALLS: u64 = 6;

#[test]
fn all_applications_reply_what_they_reply_natively() {
    let source = programs::tests_folder().join("../examples/speculation");
    let folder = tempfile::tempdir_in(programs::folder()).expect("a folder");
    // The example's packages are compiled, too. At the default level they take most of a minute.
    let mut compile = programs::awsm_command(&["compile", "-O", "0"]);
    compile.arg(&source).arg("-o").arg(folder.path().join("speculation.so")).args(["--", "--locked"]);
    let compiled = process::run(&mut compile, b"", Duration::from_secs(600));
    assert!(compiled.status.success(), "{compile:?}: {}", compiled.stderr);
    fs::create_dir(folder.path().join("workflows")).expect("a folder");
    for application in Application::ALL {
        let path = format!("workflows/{}.asl.json", application.name());
        fs::copy(source.join(&path), folder.path().join(&path)).expect("a definition");
    }
    let config = fs::read_to_string(source.join("sledge.toml")).expect("the configuration");
    for level in ["off", "paths", "outputs", "stalls", "skips"] {
        let served = |kv: &str| {
            let config = config.replace("127.0.0.1:8080", "127.0.0.1:0").replace("\"memory\"", &format!("{kv:?}"));
            let config = config.replace("[[workflows]]\n", &format!("[[workflows]]\nspeculation = \"{level}\"\n"));
            let (path, admin) = (folder.path().join("sledge.toml"), folder.path().join("admin.sock"));
            fs::write(&path, format!("admin = {admin:?}\n{config}")).expect("a configuration");
            assert_served(&path, &Admin::new(admin), (level, kv.starts_with("redis")))
        };
        let file = folder.path().join(format!("{level}.redb"));
        let memory = served(file.to_str().expect("UTF-8"));
        let (exported, native) = (exported(&file), native_entries(&memory));
        let different: Vec<_> =
            exported.keys().chain(native.keys()).filter(|key| exported.get(*key) != native.get(*key)).collect();
        assert!(different.is_empty(), "{level}: in the end the store has something else under {different:?}");
        served(&Redis::start().url());
    }
}

/// Keys and values, in base64, of the store's file.
fn exported(file: &Path) -> BTreeMap<String, String> {
    let exported = process::run(programs::sledge_command(&["kv", "export"]).arg(file), b"", TIME_MAX);
    assert!(exported.status.success(), "{exported:?}");
    let entry = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        Some((line["key"].as_str()?.to_owned(), line["value"].as_str()?.to_owned()))
    };
    exported.text().lines().filter_map(entry).collect()
}

fn native_entries(memory: &Memory) -> BTreeMap<String, String> {
    memory.entries().map(|(key, value)| (key.to_owned(), STANDARD.encode(value))).collect()
}

/// Inputs of that seed: each is answered as the library answers it.
fn ask_all(client: &Client, memory: &mut Memory, application: Application, seed: u64) {
    let mix = Mix { paths: Paths::Whole { percent: 30 }, repeats_percent: 10, work: 3 };
    for input in Inputs::new(application, seed, mix).take(INPUTS) {
        let reply = client.post(&format!("/{}", application.name()), &input);
        let native = memory.execute(application, input.as_bytes()).unwrap_or_else(|error| panic!("{input}: {error}"));
        let native = String::from_utf8_lossy(&native).into_owned();
        assert_eq!((reply.status, reply.text()), (200, native), "{application:?} {input}");
    }
}

/// The library's store after all that was asked.
fn assert_served(config: &Path, admin: &Admin, (level, is_far): (&str, bool)) -> Memory {
    let server = Server::start_with(&mut programs::sledge_command(&["serve", "--config", config.to_str().expect("UTF-8")]));
    let client = server.client();
    let mut memory = Memory::new();
    let native = memory.answer(SETUP, b"{}").expect("a native setup");
    let reply = client.post(&format!("/{SETUP}"), "{}");
    assert_eq!((reply.status, reply.body), (200, native));
    for application in Application::ALL {
        memory.take_steps();
        ask_all(&client, &mut memory, application, 11);
        let ran: BTreeSet<String> = memory.take_steps().into_iter().map(|step| step.function).collect();
        assert!(application.functions().all(|function| ran.contains(function)), "{application:?}: only {ran:?}");
    }
    for graph in graphs::five(1) {
        for input in 0..CALLS {
            let body = graph.body(input, graphs::Pace { units_per_ms: 1, common_percent: 50, ..graphs::Pace::default() });
            let reply = client.post(&format!("/{}", graphs::STUBS[0]), &body);
            let native = memory.answer(graphs::STUBS[0], body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error}"));
            assert_eq!((reply.status, reply.text()), (200, String::from_utf8_lossy(&native).into_owned()), "{body}");
        }
    }
    assert_refused(&server);
    // Functions run ahead, of which most are wanted, where that is configured.
    let runs = |result: &str| -> u64 {
        let metrics = admin.get("/metrics").text();
        let name = format!("sledge_speculative_runs_total{{tenant=\"default\",result=\"{result}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
        count.map_or(0, |count| count.parse().expect("a number"))
    };
    // Where the machine is busy nothing runs ahead for a while: they are asked for more then. On a store in the process functions may take too little time for that to be worth it.
    let wanted = match (level, is_far) {
        ("off", _) => None,
        // Of what is left out nothing is ahead.
        ("skips", _) => Some("skipped"),
        (_, true) => Some("adopted"),
        (_, false) => None,
    };
    let (mut seed, end) = (11, Instant::now() + 2 * TIME_MAX);
    while wanted.is_some_and(|result| runs(result) <= 100) {
        assert!(Instant::now() < end, "{level}: {} adopted, {} skipped", runs("adopted"), runs("skipped"));
        seed += 1;
        for application in Application::ALL {
            ask_all(&client, &mut memory, application, seed);
        }
    }
    let (adopted, skipped) = (runs("adopted"), runs("skipped"));
    if level == "skips" {
        assert!(skipped > 100, "{skipped} were left out");
    } else {
        assert_eq!(skipped, 0, "{level}");
    }
    if level == "off" {
        assert_eq!(adopted, 0);
    }
    server.stop();
    memory
}

/// What makes no sense, and what only workflows and functions may call.
fn assert_refused(server: &Server) {
    let client = server.client();
    let failed = |name: &str, input: &str| {
        let reply = client.post(&format!("/{name}"), input);
        let told = reply.json();
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        assert_eq!((reply.status, text("code")), (500, "workflow_failed".to_owned()), "{name} {input}: {}", reply.text());
        (text("error"), text("cause"))
    };
    let (error, cause) = failed("login", r#"{"user": "x", "password": "y", "work": 0}"#);
    assert_eq!((error.as_str(), cause.contains("invalid type: string")), ("InvalidInput", true), "{cause}");
    let (error, cause) = failed("hotel-book", r#"{"city": 99, "date": 1, "work": 0}"#);
    assert_eq!((error.as_str(), cause.contains("`city` is 99")), ("InvalidInput", true), "{cause}");
    let (error, cause) = failed("banking", r#"{"user": 1, "work": 0}"#);
    assert_eq!((error.as_str(), cause.contains("$.password")), ("States.Runtime", true), "{cause}");
    let refused = client.post("/stub-1", r#"{"input": 1}"#);
    assert_eq!((refused.status, refused.text().contains("missing field `node`")), (400, true), "{}", refused.text());
    for inner in ["bank-transfer", "stub-2"] {
        assert_eq!(client.post(&format!("/{inner}"), "{}").status, 404, "{inner}");
    }
}
