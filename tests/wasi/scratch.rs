//! Folders with `write = "scratch"`: a request changes them for itself, and nothing of that is left.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sledge_tests::process;
use sledge_tests::programs::{self, awsm_command, sledge_command};
use sledge_tests::server::Server;
use tempfile::TempDir;

use crate::program;

/// All that is below a folder, links not followed: type, contents, times of modification and change, numbers.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, [i64; 4], u64)> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).expect("metadata");
        let contents = if metadata.is_dir() {
            left.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).expect("a file")
        };
        let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        all.insert(path, (contents, times, metadata.ino()));
    }
    all
}

/// The host's folder: files, a folder with files, a link.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("sub/inner")).expect("a folder");
    for (name, text) in [("kept", "kept"), ("other", "other"), ("sub/one", "one"), ("sub/two", "two"), ("sub/inner/deep", "deep")]
    {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    std::os::unix::fs::symlink("sub/one", folder.path().join("link")).expect("a link");
    folder
}

/// The program as a component of WASI 0.2.
fn component() -> &'static Path {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        let file = |name: &str| programs::folder().join(name);
        let (core, component) = (file("scratch-core.wasm"), file("scratch-component.wasm"));
        let (source, artifact) = (programs::tests_folder().join("wasi/programs/scratch.c"), file("scratch-component.so"));
        for (arguments, from, to) in [
            (&["compile", "--emit", "wasm"][..], &source, &core),
            (&["componentize"], &core, &component),
            (&["compile"], &component, &artifact),
        ] {
            let done = process::run(awsm_command(arguments).arg(from).arg("-o").arg(to), b"", Duration::from_secs(120));
            assert_eq!(done.code(), 0, "{arguments:?}: {}", done.stderr);
        }
        artifact
    });
    &MADE
}

/// A server with the program as a module and as a component over that folder.
fn server(folder: &Path, more: &Value) -> Server {
    let function = |name: &str, path: &Path| {
        let dirs = json!([{ "host": folder, "guest": "/w", "write": "scratch" }]);
        let mut function = json!({ "name": name, "path": path, "dirs": dirs });
        for (key, value) in more.as_object().expect("an object") {
            function[key] = value.clone();
        }
        function
    };
    Server::start(json!({ "workers": 2, "functions": [
        function("module", &program("scratch.c")),
        function("component", component()),
    ] }))
}

fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not among\n{metrics}")).parse().expect("a number")
}

#[track_caller]
fn ask(server: &Server, function: &str, lines: &[&str]) -> Vec<String> {
    let reply = server.client().post(&format!("/{function}"), lines.join("\n"));
    assert_eq!(reply.status, 200, "{function}: {reply:?}");
    reply.text().lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_lines(server: &Server, function: &str, lines: &[(&str, &str)]) {
    let (asked, wanted): (Vec<&str>, Vec<&str>) = lines.iter().copied().unzip();
    let told = ask(server, function, &asked);
    let shown: Vec<_> = asked.iter().zip(&told).map(|(asked, told)| (*asked, told.trim_end())).collect();
    let wanted: Vec<_> = asked.iter().zip(wanted).map(|(asked, wanted)| (*asked, wanted)).collect();
    assert_eq!(shown, wanted, "{function}");
}

/// What a request does, as one that starts with what the host has.
const CHANGES: &[(&str, &str)] = &[
    ("get kept", "kept"),
    // Other descriptors of the same file see what is written, whether they were opened before or after the copy was made.
    ("over kept KE", "kept -> KEpt"),
    ("append kept !", "KEpt -> KEpt!"),
    ("get kept", "KEpt!"),
    ("stat kept", "5 bytes, 1 names, file"),
    ("set new made here", " -> made here"),
    ("get new", "made here"),
    ("set other x", "other -> x"),
    ("size other 3", "ok"),
    ("stat other", "3 bytes, 1 names, file"),
    ("remove sub/one", "ok"),
    ("remove sub/one", "No such file or directory"),
    ("get sub/one", "No such file or directory"),
    ("get link", "No such file or directory"),
    ("list sub", "inner/ two"),
    ("set sub/one again", " -> again"),
    ("get link", "again"),
    ("list sub", "inner/ one two"),
    ("rename sub/two moved", "ok"),
    ("get moved", "two"),
    ("list sub", "inner/ one"),
    // A folder of the host with what is in it.
    ("rename sub/inner elsewhere", "ok"),
    ("get elsewhere/deep", "deep"),
    ("append elsewhere/deep er", "deep -> deeper"),
    ("get sub/inner/deep", "No such file or directory"),
    ("rmdir elsewhere", "Directory not empty"),
    ("remove elsewhere/deep", "ok"),
    ("rmdir elsewhere", "ok"),
    ("mkdir elsewhere", "ok"),
    ("list elsewhere", ""),
    ("rmdir sub", "Directory not empty"),
    ("rename new kept", "ok"),
    ("get kept", "made here"),
    ("link kept same", "ok"),
    ("append same s", "made here -> made heres"),
    ("get kept", "made heres"),
    ("stat kept", "10 bytes, 2 names, file"),
    ("symlink short same", "ok"),
    ("get short", "made heres"),
    ("list .", "elsewhere/ kept link moved other same short sub/"),
    ("get ../outside", "Operation not permitted"),
];

#[test]
fn a_request_sees_its_own_changes_and_nothing_else_does() {
    let folder = folder();
    let before = everything(folder.path());
    let server = server(folder.path(), &json!({}));
    let open = || fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("/proc").count();
    for function in ["module", "component"] {
        let mut changes = CHANGES.to_vec();
        let last = changes.len() - 1;
        // As elsewhere below a granted folder: the C library of a module knows no more of it.
        if function == "module" {
            changes[last].1 = "Capabilities insufficient";
        }
        assert_lines(&server, function, &changes);
        let descriptors = open();
        // Consecutive requests, in slots that were used before.
        for _ in 0..50 {
            assert_lines(&server, function, &changes);
        }
        assert!(open() <= descriptors + 3, "{function}: {descriptors} descriptors, then {}", open());
    }
    assert_eq!(everything(folder.path()), before);
    wait_for(|| metric(&server, "sledge_scratch_bytes") == 0);
    // kept and elsewhere/deep of each request; of other nothing was left to copy.
    assert_eq!(metric(&server, "sledge_scratch_copies_total"), 2 * 51 * 2);
    assert_eq!(metric(&server, "sledge_scratch_refusals_total"), 0);
    server.stop();
}

#[test]
fn requests_at_the_same_time_see_only_their_own() {
    let folder = folder();
    let before = everything(folder.path());
    let server = server(folder.path(), &json!({}));
    thread::scope(|scope| {
        for turn in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let (own, function) = (format!("own-{turn}"), if turn % 2 == 0 { "module" } else { "component" });
                let (set, append, got) = (format!("set {own} {turn}"), format!("over kept {turn}"), format!("{turn}ept"));
                for _ in 0..20 {
                    assert_lines(
                        server,
                        function,
                        &[
                            (&*append, &*format!("kept -> {got}")),
                            (&*set, &*format!(" -> {turn}")),
                            ("sleep 5", "ok"),
                            ("get kept", &*got),
                            ("list .", &*format!("kept link other {own} sub/")),
                        ],
                    );
                }
            });
        }
    });
    assert_eq!(everything(folder.path()), before);
    wait_for(|| metric(&server, "sledge_scratch_bytes") == 0);
    server.stop();
}

/// A request that is killed leaves nothing either: not in the folder, not in memory, no descriptor.
#[test]
fn what_a_killed_request_changed_is_gone() {
    let folder = folder();
    let before = everything(folder.path());
    let server = server(folder.path(), &json!({ "deadline_ms": 1000 }));
    let open = || fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("/proc").count();
    assert_lines(&server, "module", &[("get kept", "kept")]);
    let descriptors = open();
    for (function, end) in [("module", "loop"), ("module", "sleep 100000"), ("component", "loop"), ("component", "sleep 100000")]
    {
        for _ in 0..2 {
            let lines = format!("fill big 1000000\nover kept X\nremove other\n{end}");
            thread::scope(|scope| {
                let asked = scope.spawn(|| server.client().post(&format!("/{function}"), &lines));
                wait_for(|| metric(&server, "sledge_scratch_bytes") > 1_000_000);
                let reply = asked.join().expect("no panic");
                assert_eq!((reply.status, reply.json()["code"].as_str()), (504, Some("deadline")), "{reply:?}");
            });
            wait_for(|| metric(&server, "sledge_scratch_bytes") == 0);
        }
        assert_lines(
            &server,
            function,
            &[("get kept", "kept"), ("get big", "No such file or directory"), ("get other", "other")],
        );
    }
    assert!(open() <= descriptors + 3, "{descriptors} descriptors, then {}", open());
    assert_eq!(everything(folder.path()), before);
    server.stop();
}

#[track_caller]
fn wait_for(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "it never is");
        thread::yield_now();
    }
}

/// Beyond `scratch_bytes_max` there is no space; what is given back can be used again.
#[test]
fn a_request_keeps_no_more_than_it_may() {
    let folder = folder();
    fs::write(folder.path().join("large"), vec![b'l'; 300_000]).expect("a file");
    let server = server(folder.path(), &json!({ "scratch_bytes_max": 200_000 }));
    for function in ["module", "component"] {
        // 200,000 bytes are 48 pages and something; a name takes part of a page.
        assert_lines(
            &server,
            function,
            &[
                ("fill a 100000", "100000 ok"),
                ("fill b 200000", "94208 No space left on device"),
                ("set c x", "No space left on device"),
                ("get a", &*"x".repeat(65_535)),
                ("size a 1000000000", "No space left on device"),
                ("remove a", "ok"),
                ("fill c 50000", "50000 ok"),
                ("over kept K", "kept -> Kept"),
                // A file that is larger than all there is can be read, not copied; but it can be made anew.
                ("over large L", "No space left on device"),
                ("set large L", &*format!("{} -> L", "l".repeat(63))),
            ],
        );
        let many: Vec<String> = (0..1000).map(|number| format!("mkdir folder-{number}")).collect();
        let told = ask(&server, function, &many.iter().map(String::as_str).collect::<Vec<_>>());
        let made = told.iter().take_while(|line| *line == "ok").count();
        assert!((700..800).contains(&made) && told[made] == "No space left on device", "{made}: {}", told[made]);
    }
    assert!(metric(&server, "sledge_scratch_refusals_total") > 4);
    wait_for(|| metric(&server, "sledge_scratch_bytes") == 0);
    assert_eq!(fs::read(folder.path().join("large")).expect("a file"), vec![b'l'; 300_000]);
    server.stop();

    // It is memory of the request.
    let server = self::server(folder.path(), &json!({ "memory_bytes_max": 2 << 20 }));
    let reply = server.client().post("/module", "fill a 4000000");
    assert_eq!((reply.status, reply.json()["reason"].as_str()), (500, Some("memory_limit")), "{reply:?}");
    server.stop();
}

/// An instance that is kept finds the folder as it is at each call; an initialisation that is done once changes nothing.
#[test]
fn changes_live_as_long_as_a_request_also_where_the_instance_is_kept() {
    let folder = folder();
    let before = everything(folder.path());
    let dirs = json!([{ "host": folder.path(), "guest": "/w", "write": "scratch" }]);
    let config = |more: &Value| {
        let mut function = json!({ "name": "f", "path": program("scratch-reactor.wat"), "dirs": dirs });
        for (key, value) in more.as_object().expect("an object") {
            function[key] = value.clone();
        }
        json!({ "admin": "none", "listen": "127.0.0.1:0", "functions": [function] })
    };
    let server = Server::start(config(&json!({ "instance": "application" })));
    for turn in 1..5 {
        assert_eq!(server.client().post("/f", "").text(), format!("{turn}l"), "its memory is kept, its changes are not");
    }
    server.stop();
    // In each request, the initialisation belongs to it.
    let server = Server::start(config(&json!({ "init": "init", "snapshot": "off" })));
    assert_eq!([(); 2].map(|()| server.client().post("/f", "").text()), ["1m", "1m"]);
    server.stop();
    let file = folder.path().with_extension("json");
    fs::write(&file, config(&json!({ "init": "init", "snapshot": "shared-seed" })).to_string()).expect("the configuration");
    let done = process::run(sledge_command(&["serve", "--config"]).arg(&file), b"", Duration::from_secs(60));
    fs::remove_file(&file).expect("remove a file");
    let words = "called `fd_pwrite`, which changes a private copy of files, which no request would find";
    assert!(done.code() == 1 && done.stderr.contains(words), "{}: {}", done.code(), done.stderr);
    assert_eq!(everything(folder.path()), before);
}

/// Programs that check everything themselves do so as in a folder for writing, and the folder stays as it is.
#[test]
fn a_scratch_folder_is_as_one_for_writing() {
    for (file, name) in [("files.c", "files"), ("folders.c", "folders"), ("refused.c", "refused"), ("std_fs.rs", "std_fs")] {
        let folders = crate::Folders::new();
        fs::create_dir(folders.path("w/below")).expect("a folder");
        std::os::unix::fs::symlink("..", folders.path("w/below/up")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(folders.path("w/pipe")).status().expect("mkfifo");
        assert!(made.success());
        let names = |folder: &str| {
            let mut names: Vec<_> =
                fs::read_dir(folders.path(folder)).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
            names.sort();
            names
        };
        let before = (names("w"), names("w/below"), names("w2"));
        let mut command = sledge_command(&["run"]);
        for (name, rest) in [("w", "::/w::scratch"), ("r", "::/r"), ("w2", "::/w2::scratch")] {
            command.arg("--dir").arg(format!("{}{rest}", folders.path(name).display()));
        }
        command.arg(program(file));
        let done = process::run(&mut command, b"", Duration::from_secs(120));
        assert_eq!((done.code(), done.text().as_str()), (0, format!("{name}\n").as_str()), "{file}: {}", done.stderr);
        assert_eq!((names("w"), names("w/below"), names("w2")), before, "{file}");
        folders.assert_untouched();
    }
}

#[test]
fn what_write_may_be_is_said() {
    let folder = folder();
    let check = |write: Value, more: Value| {
        let dirs = json!([{ "host": folder.path(), "guest": "/w", "write": write }]);
        let mut function = json!({ "name": "f", "path": program("scratch.c"), "dirs": dirs });
        function["scratch_bytes_max"] = more;
        let file = folder.path().join("sledge.json");
        fs::write(&file, json!({ "functions": [function] }).to_string()).expect("the configuration");
        let done = process::run(sledge_command(&["config", "check"]).arg(&file), b"", Duration::from_secs(60));
        (done.code(), done.stderr)
    };
    for good in [json!("scratch"), json!(true), json!(false)] {
        let (code, stderr) = check(good, json!(4096));
        assert_eq!(code, 0, "{stderr}");
    }
    for wrong in [json!("scrach"), json!(1), json!("true")] {
        let (code, stderr) = check(wrong.clone(), json!(4096));
        let words = r#"expected false, true or "scratch""#;
        assert!(code != 0 && stderr.contains(words) && stderr.contains("dirs[0].write"), "{wrong}: {code}: {stderr}");
    }
    let (code, stderr) = check(json!("scratch"), json!(100));
    assert!(code != 0 && stderr.contains("functions[0].scratch_bytes_max"), "{code}: {stderr}");
}
