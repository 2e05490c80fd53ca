//! The life of the process: service managers, sockets that are passed on, limits.

use crate::{LISTENERS, entry};
use rustix::io::FdFlags;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

fn write(folder: &Path, config: &Value) -> std::path::PathBuf {
    let file = folder.join("sledge.json");
    std::fs::write(&file, config.to_string()).expect("write the configuration");
    file
}

/// What sd_notify(3) is for: started means that requests are answered.
#[test]
fn the_service_manager_is_told_how_the_server_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
    socket.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
    let next = || {
        let mut message = [0; 1_000];
        let length = socket.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let config = json!({ "listen": "127.0.0.1:0", "admin": "none", "functions": [entry("echo", "echo.wat")] });
    let mut command = sledge_command(&["serve", "--config"]);
    command.arg(write(folder.path(), &config)).env("NOTIFY_SOCKET", folder.path().join("notify"));
    let mut server = Server::start_with(&mut command);
    let ready = next();
    assert!(ready.contains("READY=1") && ready.contains(&server.address.to_string()), "{ready}");
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.signal(Signal::HUP);
    let reloading = next();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(next().contains("READY=1"));
    server.signal(Signal::TERM);
    assert!(next().contains("STOPPING=1"));
    assert!(server.wait(TIME_MAX).success());
}

/// Socket activation: the manager's socket outlives the server, so that a client that connects meanwhile waits and is not refused.
#[test]
fn a_socket_that_was_passed_on_is_used_by_all_workers_and_outlives_the_server() {
    for listeners in LISTENERS {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        // The address of the configuration does not count then.
        let config = json!({ "listen": "127.0.0.1:1", "admin": "none", "listeners": listeners, "workers": 2,
            "functions": [entry("echo", "echo.wat")] });
        let file = write(folder.path(), &config);
        let start = || {
            rustix::io::fcntl_setfd(&listener, FdFlags::empty()).expect("a descriptor that is passed on");
            // Other shells take no descriptor of two digits.
            let mut command = Command::new("/bin/bash");
            let (fd, sledge) = (listener.as_raw_fd(), programs::sledge().display());
            let serve = format!("exec {sledge} serve --config {}", file.display());
            command.args(["-c", &format!("exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1 {serve}")]);
            let server = Server::start_with(&mut command);
            rustix::io::fcntl_setfd(&listener, FdFlags::CLOEXEC).expect("a descriptor that is not");
            server
        };
        let server = start();
        assert_eq!(server.address, address, "{listeners}");
        for i in 0..40 {
            assert_eq!(server.client().post("/echo", i.to_string()).text(), i.to_string());
        }
        server.stop();
        // In between: the connection waits in the kernel's queue.
        let asking = std::thread::spawn(move || Client::new(address, TIME_MAX).post("/echo", "between").text());
        let again = start();
        assert_eq!(asking.join().expect("a reply"), "between");
        again.stop();
    }
}

#[test]
fn as_many_files_may_be_open_as_the_system_allows() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "listen": "127.0.0.1:0", "admin": "none", "functions": [entry("echo", "echo.wat")] });
    let file = write(folder.path(), &config);
    let mut command = Command::new("/bin/sh");
    let serve = format!("exec {} serve --config {}", programs::sledge().display(), file.display());
    command.args(["-c", &format!("ulimit -Sn 300; ulimit -Hn 900; {serve}")]);
    let server = Server::start_with(&mut command);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).expect("/proc");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the limit");
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers, ["900", "900"]);
    server.stop();
}

/// A process that may use one core has one worker, there.
#[test]
fn workers_are_as_many_as_cores_that_the_process_may_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "listen": "127.0.0.1:0", "admin": "none", "functions": [entry("echo", "echo.wat")] });
    let file = write(folder.path(), &config);
    let cores = rustix::thread::sched_getaffinity(None).expect("this process's cores");
    let core = (0..rustix::thread::CpuSet::MAX_CPU).find(|core| cores.is_set(*core)).expect("a core").to_string();
    let mut command = Command::new("taskset");
    let server = Server::start_with(command.args(["-c", &core]).arg(programs::sledge()).args(["serve", "--config"]).arg(&file));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("/proc");
    // Of a thread that ends meanwhile there is nothing.
    let read = |task: &std::fs::DirEntry, file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
    let workers: Vec<_> =
        tasks.map(|task| task.expect("a task")).filter(|task| read(task, "comm").starts_with("worker-")).collect();
    let on: Vec<_> = workers
        .iter()
        .map(|task| {
            read(task, "status").lines().find_map(|line| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned()))
        })
        .collect();
    assert_eq!(on, [Some(core)]);
    server.stop();
}
