//! The wall clock is set, forwards and back, while requests run: nothing changes for them.
//!
//! No namespace has a wall clock of its own, so libfaketime stands between the server and its C library. What asks the kernel past that library
//! (`rustix`) names its clock in each call; `clippy.toml` forbids the calls that do not.

use crate::{entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How far the clock is off, in turns.
const OFFSETS: [&str; 3] = ["+3650d", "-3650d", "+0"];
/// How long it stays so.
const PAUSE: Duration = Duration::from_millis(20);
const DEADLINE_MS: u64 = 500;
const WAIT_MS: u64 = 600;
const BODY_MS: u64 = 700;
/// Of a client that is delayed between its connection and its request, too.
const HEAD_MS: u64 = 3_000;
/// Idle connections are looked at with a clock that has such steps.
const STEP: Duration = Duration::from_millis(20);

fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").expect("/usr/lib").filter_map(Result::ok);
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.exists()).expect("libfaketime, of Debian's package of that name (scripts/setup)")
}

/// Sets the clock of the processes that read that file.
fn set(file: &Path, offset: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, offset).and_then(|()| std::fs::rename(&new, file)).expect("set the clock");
}

#[test]
fn when_the_wall_clock_jumps_nothing_ends_early_or_never() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("sledge.json"), folder.path().join("clock"));
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": DEADLINE_MS }));
    let config = json!({ "listen": "127.0.0.1:0", "admin": "none", "workers": 1, "access_log": true, "head_timeout_ms": HEAD_MS,
        "body_timeout_ms": BODY_MS, "functions": [spin, entry("wait", "wait.wat"), entry("echo", "echo.wat")] });
    std::fs::write(&file, config.to_string()).expect("write the configuration");
    set(&clock, OFFSETS[2]);
    let mut command = sledge_command(&["serve", "--config"]);
    command.arg(&file).env("LD_PRELOAD", library()).env("FAKETIME_TIMESTAMP_FILE", &clock);
    let mut server = Server::start_with(command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1"));

    let address = server.address;
    let asked = |bytes: &[u8]| {
        let mut raw = Raw::connect(address);
        let began = Instant::now();
        raw.send(bytes);
        (raw, began)
    };
    // The deadline of what runs, the end of a wait, a body that does not come, a connection on which nothing comes.
    let wait = post_bytes("/wait", &(WAIT_MS * 1_000_000).to_le_bytes(), "");
    let body = b"POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\n\r\n";
    let cases: [(&[u8], u64, u16); 4] = [
        (&post_bytes("/spin", b"", ""), DEADLINE_MS, 504),
        (&wait, WAIT_MS, 200),
        (body, BODY_MS, 408),
        (&post_bytes("/echo", b"x", ""), 0, 200),
    ];
    std::thread::scope(|scope| {
        let cases: Vec<_> = cases
            .into_iter()
            .map(|(request, ms, status)| {
                scope.spawn(move || {
                    let (mut raw, began) = asked(request);
                    assert_eq!(raw.reply().expect("a reply").status, status, "after {:?}", began.elapsed());
                    assert!(began.elapsed() >= Duration::from_millis(ms), "{status} after {:?}", began.elapsed());
                    assert!(raw.is_closed());
                    // The connection of a body that did not come is of no use any more. When the server has answered is not known: not earlier than so long after it was asked.
                    let idle = if status == 408 { Duration::ZERO } else { Duration::from_millis(HEAD_MS) - STEP };
                    let open = began.elapsed();
                    assert!(open >= Duration::from_millis(ms) + idle, "closed {open:?} after {status} was asked for");
                })
            })
            .collect();
        for offset in OFFSETS.iter().cycle() {
            set(&clock, offset);
            std::thread::sleep(PAUSE);
            // The function that is preempted for this request is preempted by a timer, too.
            assert_eq!(server.client().post("/echo", "x").text(), "x");
            if cases.iter().all(|case| case.is_finished()) {
                break;
            }
        }
    });
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait(TIME_MAX).success());
    // It did see these jumps.
    let log = server.whole_log();
    let years: Vec<i32> = log.lines().filter_map(|line| line.split_once('-')?.0.parse().ok()).collect();
    let (first, last) = (years.iter().min().expect("years"), years.iter().max().expect("years"));
    assert!(last - first >= 19, "{log}");
}
