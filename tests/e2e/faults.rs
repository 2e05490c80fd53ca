//! What the system may refuse while a server runs, and what is said and written where it can do harm.

use crate::{encoded, entry};
use nix::libc;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use sledge_tests::admin::Admin;
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::programs;
use sledge_tests::server::Server;
use sledge_tests::traced::refused;
use std::process::Command;
use std::time::{Duration, Instant};

/// A reactor whose standard error is that.
fn says(text: &str) -> Vec<u8> {
    let escaped: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "{escaped}")
            (func (export "sledge_handle") (result i32)
                (i32.store (i32.const 0) (i32.const 64))
                (i32.store (i32.const 4) (i32.const {}))
                (drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
                (i32.const 0)))"#,
        text.len()
    );
    wat::parse_str(text).expect("WAT")
}

/// Neither the operator's terminal nor a reader of the log takes orders from a function.
#[test]
fn what_functions_say_gives_no_orders_to_a_terminal() {
    let server = Server::start(json!({ "functions": [] }));
    let text = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\u{202e}end\n";
    assert_eq!(server.admin().deploy("says", &json!({}), &says(text)).status, 200);
    assert_eq!(server.client().post("/says", "").status, 200);
    server.wait_for_log("end");
    for shown in [server.log(), server.admin().get("/functions/says/logs").text()] {
        assert!(shown.contains("\\u{1b}]0;owned\\u{7}\\u{1b}[2J\\u{9b}31m\\r\\u{202e}end"), "{shown:?}");
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}', '\r', '\u{202e}']), "{shown:?}");
    }
    server.stop();
}

/// A disk of its own, with room for nothing, in a namespace of its own.
#[test]
fn a_full_disk_costs_deployments_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let door = folder.path().join("admin.sock");
    let config = json!({ "listen": "127.0.0.1:0", "admin": door, "cache_dir": disk.join("cache"), "state_dir": disk.join("state"),
        "functions": [entry("echo", "echo.wat")] });
    let file = folder.path().join("sledge.json");
    std::fs::write(&file, config.to_string()).expect("write the configuration");
    let (disk, sledge) = (disk.display(), programs::sledge().display().to_string());
    let script = format!(
        "mount -t tmpfs -o size=512k none {disk} && head -c 1M /dev/zero > {disk}/fill; mkdir {disk}/cache {disk}/state; \
         exec {sledge} serve --config {}",
        file.display()
    );
    let mut command = Command::new("unshare");
    let server = Server::start_with(command.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", &script]));
    let (admin, client) = (Admin::new(door), server.client());
    let component = std::fs::read(encoded::answering("full-disk", "there is room", 1)).expect("a component");
    let functions = [("says", says("there is room\n")), ("component", component)];
    for (name, module) in &functions {
        let refused = admin.deploy(name, &json!({}), module);
        assert!(
            refused.status >= 400 && refused.text().contains("No space left on device"),
            "{} {}",
            refused.status,
            refused.text()
        );
        assert_eq!(client.post(&format!("/{name}"), "").status, 404);
        assert_eq!(client.post("/echo", "x").text(), "x");
    }
    // Room again: from outside, the disk is found through the process.
    std::fs::remove_file(format!("/proc/{}/root{disk}/fill", server.pid())).expect("make room");
    for (name, module) in &functions {
        assert_eq!(admin.deploy(name, &json!({}), module).status, 200);
        assert_eq!(client.post(&format!("/{name}"), "").status, 200);
    }
    server.stop();
}

/// The system refuses address space at whatever a new sandbox takes next: its stack, its memory, the second sandbox's, and so on.
#[test]
fn memory_that_the_system_refuses_costs_those_requests_only() {
    const AT_ONCE: usize = 4;
    let server = Server::start(json!({ "workers": 1, "idle_memory_ms": 50, "functions": [entry("wait", "wait.wat")] }));
    let pid = Pid::from_raw(i32::try_from(server.pid()).expect("a number"));
    let unlimited = Rlimit { current: None, maximum: None };
    // Connected beforehand: what is refused is to be the sandboxes', not the listener's.
    let mut clients: Vec<Raw> = (0..AT_ONCE).map(|_| Raw::connect(server.address)).collect();
    let mut statuses = || -> Vec<u16> {
        let request = post_bytes("/wait", &50_000_000_i64.to_le_bytes(), "");
        clients.iter_mut().for_each(|client| client.send(&request));
        clients.iter_mut().map(|client| client.reply().expect("a reply").status).collect()
    };
    let idle = || {
        let text = server.admin().get("/metrics").text();
        let sample = text.lines().find_map(|line| line.strip_prefix("sledge_idle_sandboxes "));
        sample.expect("how many are idle").parse::<f64>().expect("a number")
    };
    assert_eq!(statuses(), [200; AT_ONCE]);
    let guarded = 8_u64 << 30;
    let small = [0, 4 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
    let rooms = (0..3).flat_map(|sandboxes| small.map(|more| sandboxes * (guarded + (1 << 20)) + more));
    let mut refused = 0;
    for room in rooms {
        let deadline = Instant::now() + TIME_MAX;
        while idle() > 0.0 {
            assert!(Instant::now() < deadline, "sandboxes are kept for ever");
            std::thread::sleep(Duration::from_millis(10));
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("/proc");
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("VmSize");
        let used = line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10;
        prlimit(pid, Resource::As, Rlimit { current: Some(used + room), maximum: None }).expect("prlimit");
        let limited = statuses();
        prlimit(pid, Resource::As, unlimited).expect("prlimit");
        assert!(limited.iter().all(|status| matches!(status, 200 | 503)), "{room}: {limited:?}");
        refused += limited.iter().filter(|status| **status == 503).count();
        assert_eq!(statuses(), [200; AT_ONCE], "after {room}");
    }
    assert!(refused > 0, "there was room for all");
    server.stop();
}

/// One after the other, the system refuses each call by which the pool of sandboxes gets memory: when the first one is made, while it runs, when it
/// is made again what it was, and when what it was is learned.
#[test]
fn each_call_for_memory_that_is_refused_costs_its_request_only() {
    const CALLS: [i64; 4] = [libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_madvise, libc::SYS_mremap];
    const REQUESTS: usize = 3;
    const LEAK_BYTES_MAX: f64 = (8 << 20) as f64;
    let function =
        |name: &str, bounds: &str| json!({ "name": name, "path": programs::function_with("pieces.wat", &["--bounds", bounds]) });
    let functions = json!([function("guarded", "guard"), function("checked", "software")]);
    let server = Server::start(json!({ "workers": 1, "idle_memory_ms": 20, "functions": functions }));
    let worker = server.threads().into_iter().find(|(name, _)| name == "worker-0").expect("the worker").1;
    let gauge = |name: &str| {
        let text = server.admin().get("/metrics").text();
        let sample = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
        sample.unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let unused = gauge("sledge_memory_used_bytes");
    let wait_until_idle = || {
        let deadline = Instant::now() + TIME_MAX;
        // A sandbox is put back after its reply was sent: until then it is not idle, but it has its memory.
        while gauge("sledge_idle_sandboxes") > 0.0 || gauge("sledge_memory_used_bytes") > unused {
            assert!(Instant::now() < deadline, "sandboxes are kept for ever");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut raw = Raw::connect(server.address);
    for path in ["/guarded", "/checked"] {
        let request = post_bytes(path, b"", "");
        let mut ask = || {
            raw.send(&request);
            let reply = raw.reply().expect("a reply");
            let json = || (reply.json()["code"].clone(), reply.json()["reason"].clone());
            match reply.status {
                200 => assert_eq!(reply.text(), "g"),
                503 => assert_eq!(json(), ("unavailable".into(), "no_memory".into())),
                status => panic!("{path}: {status} {}", reply.text()),
            }
            reply.status
        };
        assert_eq!(ask(), 200);
        wait_until_idle();
        let before = ["sledge_process_virtual_bytes", "sledge_memory_used_bytes"].map(gauge);
        let mut failed = 0;
        for nth in 0.. {
            let mut statuses = Vec::new();
            if !refused(worker, &CALLS, nth, || statuses.extend((0..REQUESTS).map(|_| ask()))) {
                assert!(nth >= 8, "{path}: only {nth} calls");
                break;
            }
            assert!(statuses.iter().filter(|status| **status != 200).count() <= 1, "{path}, call {nth}: {statuses:?}");
            failed += statuses.iter().filter(|status| **status != 200).count();
            assert_eq!(ask(), 200, "{path}, after call {nth}");
            wait_until_idle();
        }
        assert!(failed > 0, "{path}: nothing was refused");
        let after = ["sledge_process_virtual_bytes", "sledge_memory_used_bytes"].map(gauge);
        assert!(after[0] <= before[0] + LEAK_BYTES_MAX && after[1] <= before[1], "{path}: {before:?}, {after:?}");
    }
    server.stop();
}
