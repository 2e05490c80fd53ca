//! Files that are no artifacts, or not for this runtime: a clear error, exit status 1, nothing of them executed.

use awsm_abi::descriptor::{MAGIC, Raw};
use serde_json::json;
use sledge_sandbox::{Artifact, LoadPolicy};
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(120);

/// A good artifact's bytes.
fn good() -> Vec<u8> {
    std::fs::read(programs::function("echo.wat")).expect("the artifact")
}

/// Writes a file for one test.
fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = programs::folder().join(name);
    std::fs::write(&path, bytes).expect("write a file");
    path
}

fn run(path: &Path) -> Finished {
    process::run(sledge_command(&["run"]).arg(path), b"input", TIME_MAX)
}

/// Both ways to load a function refuse it, and say all of `words`.
#[track_caller]
fn assert_refused(path: &Path, words: &[&str]) {
    let serve = process::run(sledge_command(&["serve", "--listen", "127.0.0.1:0"]).arg(path), b"", TIME_MAX);
    for (how, done) in [("run", run(path)), ("serve", serve)] {
        assert_eq!(done.code(), 1, "{how}: {}", done.stderr);
        assert_eq!(done.text(), "", "{how}");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        for word in words.iter().chain([&name]) {
            assert!(done.stderr.contains(word), "{how}: {word:?} is missing in: {}", done.stderr);
        }
        assert!(!done.stderr.contains("panicked"), "{how}: {}", done.stderr);
    }
}

#[test]
fn a_good_one_runs() {
    let done = run(&write("good.so", &good()));
    assert_eq!((done.code(), done.text().as_str()), (0, "input"), "{}", done.stderr);
}

#[test]
fn truncated() {
    let bytes = good();
    for (i, end) in [0, 3, 4, 63, 64, 500, bytes.len() / 2, bytes.len() - 1].into_iter().enumerate() {
        assert_refused(&write(&format!("truncated-{i}.so"), &bytes[..end]), &[]);
    }
    assert_refused(&write("half.so", &bytes[..bytes.len() / 2]), &["truncated"]);
}

#[test]
fn something_else_entirely() {
    assert_refused(&write("text.so", b"#!/bin/sh\necho no\n"), &["ELF"]);
    assert_refused(&write("text.txt", b"hello\n"), &["awsm compile"]);
    assert_refused(&programs::folder().join("missing.so"), &["No such file"]);
    assert_refused(programs::folder(), &[]);
}

#[test]
fn foreign_elf_files() {
    let program = write("program.so", &std::fs::read(programs::sledge()).expect("sledge itself"));
    assert_refused(&program, &["foreign"]);
    let library = write("library.so", &std::fs::read("/lib/x86_64-linux-gnu/libc.so.6").expect("a C library"));
    assert_refused(&library, &["foreign"]);
    let mut other_machine = good();
    // e_machine: AArch64.
    other_machine[18..20].copy_from_slice(&183u16.to_le_bytes());
    assert_refused(&write("other-machine.so", &other_machine), &["foreign"]);
}

#[test]
fn another_abi_version() {
    let mut bytes = good();
    let descriptor = find(&bytes, &MAGIC);
    bytes[descriptor + 8..descriptor + 12].copy_from_slice(&4_000_000u32.to_le_bytes());
    assert_refused(&write("abi.so", &bytes), &["ABI version 4000000", "compile it again"]);
}

#[test]
fn a_processor_feature_that_is_not_there() {
    let path = programs::function_with("echo.wat", &["--cpu", "native"]);
    let mut bytes = std::fs::read(path).expect("the artifact");
    let descriptor = find(&bytes, &MAGIC);
    let raw = Raw::parse(&bytes[descriptor..]).expect("a descriptor");
    let features = raw.decode().expect("a payload").cpu_features;
    let feature = features.first().expect("this machine has more than the baseline");
    // In postcard's format the name's length stands before it.
    let mut needle = vec![u8::try_from(feature.len()).expect("a short name")];
    needle.extend_from_slice(feature.as_bytes());
    let at = descriptor + find(&bytes[descriptor..], &needle);
    let absent = "z".repeat(feature.len());
    bytes[at + 1..at + 1 + absent.len()].copy_from_slice(absent.as_bytes());
    assert_refused(&write("feature.so", &bytes), &["processor feature", &absent, "--cpu baseline"]);
}

#[test]
fn unchecked_code_is_refused() {
    assert_refused(&programs::function_with("echo.wat", &["--bounds", "none"]), &["--bounds none", "--allow-unchecked"]);
}

/// Forced, by a flag or in the configuration, it runs, and every time there is a warning.
#[test]
fn unchecked_code_can_be_forced() {
    let path = programs::function_with("echo.wat", &["--bounds", "none"]);
    let done = process::run(sledge_command(&["run", "--allow-unchecked"]).arg(&path), b"input", TIME_MAX);
    assert_eq!((done.code(), done.text().as_str()), (0, "input"), "{}", done.stderr);
    assert!(done.stderr.contains("--bounds none"), "{}", done.stderr);
    let flag = Server::start_with(sledge_command(&["serve", "--listen", "127.0.0.1:0", "--allow-unchecked"]).arg(&path));
    let forced = json!({ "name": "echo", "path": path, "allow_unchecked": true });
    for server in [flag, Server::start(json!({ "functions": [forced] }))] {
        assert_eq!(server.client().post("/echo", "x").text(), "x");
        server.wait_for_log("--bounds none");
        server.stop();
    }
}

#[test]
fn every_bounds_mode_and_level_that_is_allowed_runs() {
    for bounds in ["guard", "software"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let done = run(&programs::function_with("echo.wat", &["--bounds", bounds, level]));
            assert_eq!((done.code(), done.text().as_str()), (0, "input"), "{bounds} {level}: {}", done.stderr);
        }
    }
    let done = run(&programs::function_with("echo.wat", &["--cpu", "baseline"]));
    assert_eq!((done.code(), done.text().as_str()), (0, "input"), "baseline: {}", done.stderr);
}

#[test]
fn an_unknown_import_is_named_with_what_is_on_offer() {
    let artifact = programs::function_with("import-unknown.wat", &["--allow-unknown-imports"]);
    assert_refused(&artifact, &["env", "launch_missiles", "wasi_snapshot_preview1"]);
}

#[test]
fn a_module_without_an_entry_is_refused() {
    assert_refused(&programs::function("no-entry.wat"), &["_start", "sledge_handle", "compute"]);
}

#[test]
fn more_memory_than_the_limit_allows_is_refused() {
    let config = json!({ "functions": [
        { "name": "state", "path": programs::function("state.wat"), "memory_bytes_max": 65536 },
    ] });
    let file = write("memory.json", config.to_string().as_bytes());
    let done = process::run(sledge_command(&["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file), b"", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("65536"), "{}", done.stderr);
}

/// Whatever bytes are changed: loading says yes or no, and does neither crash nor hang. (Nothing is run.)
#[test]
fn damaged_artifacts_never_crash_the_loader() {
    let good = good();
    let policy = LoadPolicy::default();
    assert!(Artifact::load(&good, &policy).is_ok());
    let mut seed = 0x5eed_0002_u64;
    println!("seed {seed:#x}");
    let mut random = || {
        // SplitMix64.
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let descriptor = find(&good, &MAGIC);
    let mut refused = 0;
    for round in 0..3000 {
        let mut bytes = good.clone();
        // Headers, descriptor, anywhere.
        let (start, length) = match round % 3 {
            0 => (0, 1024),
            1 => (descriptor, 2048),
            _ => (0, bytes.len()),
        };
        for _ in 0..=random() % 4 {
            let at = start + (random() as usize) % length.min(bytes.len() - start);
            bytes[at] = match random() % 4 {
                0 => 0,
                1 => 0xff,
                2 => bytes[at] ^ (1 << (random() % 8)),
                _ => random() as u8,
            };
        }
        if random() % 8 == 0 {
            bytes.truncate(random() as usize % bytes.len());
        }
        refused += usize::from(Artifact::load(&bytes, &policy).is_err());
    }
    assert!(refused > 500, "only {refused} of 3000 damaged artifacts were refused");
}

fn find(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).expect("the bytes are there")
}
