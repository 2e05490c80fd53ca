//! The key-value store's disk: full, and with room again; a file that is damaged. The server serves what does not need it, says what is wrong, and goes on without a restart.

use crate::{assert_failure, entry};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::{Value, json};
use sledge_tests::admin::Admin;
use sledge_tests::http::TIME_MAX;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;
use tempfile::TempDir;

fn config(kv: &Path) -> Value {
    json!({ "workers": 1, "kv": kv, "functions": [entry("kv", "kv.c"), entry("echo", "echo.wat")] })
}

#[track_caller]
fn ask(server: &Server, lines: &str) -> Vec<String> {
    let reply = server.client().post("/kv", lines);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text().lines().map(str::to_owned).collect()
}

/// Asks until the answer is that one.
#[track_caller]
fn wait_for<T: PartialEq + std::fmt::Debug>(wanted: &T, mut look: impl FnMut() -> T) {
    let end = Instant::now() + TIME_MAX;
    loop {
        let seen = look();
        if seen == *wanted {
            return;
        }
        assert!(Instant::now() < end, "{seen:?} instead of {wanted:?}");
    }
}

fn metric(admin: &Admin, name: &str) -> u64 {
    let metrics = admin.get("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().expect("a number"))
}

/// Writes until the disk is full, frees it, and writes again; returns how many values of half a megabyte there are then.
fn full_and_free(server: &Server, admin: &Admin, fill: impl FnOnce(), free: impl FnOnce(), words: &str) -> usize {
    assert_eq!(ask(server, "set a one"), ["set 0 1"]);
    assert_eq!(admin.get("/readyz").text(), "ready\n");
    fill();
    let made = (0..60).take_while(|index| {
        let answer = ask(server, &format!("fill k{index} 500000"));
        assert!(answer[0].starts_with("fill 0 ") || answer == ["error 29"], "{answer:?}");
        answer != ["error 29"]
    });
    let made = made.count();
    assert!(made < 60, "the disk is never full");
    // It is told in the operator's words, and what was written before is read.
    wait_for(&(200, true), || {
        let ready = admin.get("/readyz");
        (ready.status, ready.text().starts_with("degraded\nkv: ") && ready.text().contains(words))
    });
    wait_for(&1, || metric(admin, "sledge_problems{subject=\"kv\"}"));
    server.wait_for_log(words);
    assert_eq!(ask(server, &format!("set b two\nget a\nexists k{made}")), ["error 29", "1 one", "exists 0 0"]);
    wait_for(&(1 + made as u64), || metric(admin, "sledge_kv_commits_total{outcome=\"ok\"}"));
    wait_for(&2, || metric(admin, "sledge_kv_commits_total{outcome=\"failed\"}"));
    free();
    wait_for(&"ready\n".to_owned(), || admin.get("/readyz").text());
    wait_for(&0, || metric(admin, "sledge_problems{subject=\"kv\"}"));
    assert_eq!(
        ask(server, &format!("set b two\nfill k{made} 500000\nget a")),
        [format!("set 0 {}", made + 2), format!("fill 0 {}", made + 3), "1 one".to_owned()]
    );
    made + 1
}

/// After a kill, all that was acknowledged is there, and nothing else.
fn assert_kept(server: &Server, made: usize) {
    let keys: Vec<String> = (0..made).map(|index| format!("k{index}")).collect();
    let mut sorted = keys;
    sorted.sort();
    assert_eq!(
        ask(server, "get a\nget b\nlist k 4000"),
        ["1 one".to_owned(), format!("{} two", made + 1), format!("keys | {}", sorted.join(" "))]
    );
}

/// A limit on the size of files stands for a full disk wherever nothing can be mounted.
#[test]
fn a_file_that_may_not_grow_fails_writes_until_it_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kv.redb");
    let mut server = Server::start(config(&file));
    let limit = |bytes| {
        let pid = Pid::from_raw(server.pid().cast_signed());
        let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum }).expect("a limit");
    };
    let fill = || limit(Some(fs::metadata(&file).expect("the file").len()));
    let free = || limit(None);
    let made = full_and_free(&server, &server.admin(), fill, free, "is as large as the server's files may be (EFBIG)");
    server.signal(Signal::KILL);
    server.wait(TIME_MAX);
    let again = Server::start(config(&file));
    assert_kept(&again, made);
    again.stop();
}

/// A server whose store is on a file system of a few megabytes, mounted where only the server sees it.
pub(crate) struct Small {
    pub(crate) server: Server,
    pub(crate) admin: Admin,
    /// Where the disk is for the server.
    disk: PathBuf,
    _folder: TempDir,
}

impl Small {
    /// With that configuration but for its store; none where nothing may be mounted.
    pub(crate) fn start(mut config: Value) -> Option<Small> {
        let unshare = |arguments: &[&str]| {
            let mut command = Command::new("unshare");
            command.args(arguments);
            command
        };
        let ways = [&["--mount"][..], &["--mount", "--map-root-user"]];
        let can = |way: &&&[&str]| {
            unshare(way).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output().is_ok_and(|output| output.status.success())
        };
        let way = ways.iter().find(can)?;
        let folder = tempfile::tempdir().expect("a folder");
        let (disk, settings) = (folder.path().join("disk"), folder.path().join("sledge.json"));
        fs::create_dir(&disk).expect("a folder");
        config["kv"] = disk.join("kv.redb").to_string_lossy().into();
        config["listen"] = "127.0.0.1:0".into();
        config["admin"] = folder.path().join("admin.sock").to_string_lossy().into();
        fs::write(&settings, config.to_string()).expect("a file");
        let script = "mount -t tmpfs -o size=8m none \"$0\" && exec \"$@\"";
        let mut command = unshare(way);
        command.args(["sh", "-c", script]).arg(&disk);
        let sledge = sledge_command(&["serve", "--config"]);
        command.arg(sledge.get_program()).args(sledge.get_args()).arg(&settings);
        command.envs(sledge.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let (server, admin) = (Server::start_with(&mut command), Admin::new(folder.path().join("admin.sock")));
        Some(Small { server, admin, disk, _folder: folder })
    }

    /// A file that takes up room, as the server sees it.
    fn filler(&self) -> PathBuf {
        let root = Path::new("/proc").join(self.server.pid().to_string()).join("root");
        root.join(self.disk.strip_prefix("/").expect("a path")).join("filler")
    }

    /// Takes up all room.
    pub(crate) fn fill(&self) {
        let filled = fs::write(self.filler(), vec![1; 64 << 20]);
        assert!(filled.is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull));
    }

    /// Gives it back.
    pub(crate) fn free(&self) {
        fs::remove_file(self.filler()).expect("the filler goes");
    }
}

/// A real full disk.
#[test]
fn a_full_disk_fails_writes_until_there_is_room() {
    let Some(small) = Small::start(config(Path::new("memory"))) else {
        // Here nothing may be mounted; the test before this one goes the same way by a limit.
        return a_file_that_may_not_grow_fails_writes_until_it_may();
    };
    let words = format!("the disk that holds {} is full (ENOSPC)", small.disk.join("kv.redb").display());
    full_and_free(&small.server, &small.admin, || small.fill(), || small.free(), &words);
    small.server.stop();
}

fn kv(arguments: &[&str], file: &Path, more: &[&Path]) -> Output {
    sledge_command(&[&["kv"][..], arguments].concat()).arg(file).args(more).output().expect("sledge")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What does not need the store is served, and the store is back when its file is.
#[test]
fn a_damaged_file_stops_only_the_functions_that_need_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let mut server = Server::start(config(&at("kv.redb")));
    let lines: Vec<String> = (0..200).map(|index| format!("set k{index} value-of-{index}")).collect();
    assert_eq!(ask(&server, &lines.join("\n")).len(), 200);
    // Soon they are in the file, and not in its log alone.
    let is_there = |value: &str| {
        let bytes = fs::read(at("kv.redb")).expect("the file");
        bytes.windows(value.len()).any(|window| window == value.as_bytes())
    };
    wait_for(&true, || is_there("value-of-7") && is_there("value-of-199"));
    server.signal(Signal::KILL);
    server.wait(TIME_MAX);
    let good = text(&kv(&["check"], &at("kv.redb"), &[]).stdout);
    assert!(good.contains("tenant default: 200 entries") && good.trim_end().ends_with("good"), "{good}");
    // Every page that has a value in it.
    let mut bytes = fs::read(at("kv.redb")).expect("the file");
    let place = bytes.windows(10).position(|window| window == b"value-of-7").expect("a value");
    bytes[..512].fill(0x55);
    bytes[place] = b'V';
    fs::write(at("kv.redb"), &bytes).expect("the file");
    let server = Server::start(config(&at("kv.redb")));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    assert_failure(&server.client().post("/kv", "get k1"), 503, "unavailable", "no_kv", Some("kv"));
    let ready = server.admin().get("/readyz").text();
    assert!(ready.contains("is damaged") && ready.contains("sledge kv salvage"), "{ready}");
    assert_eq!(metric(&server.admin(), "sledge_problems{subject=\"kv\"}"), 1);
    let checked = kv(&["check"], &at("kv.redb"), &[]);
    assert!(!checked.status.success() && text(&checked.stderr).contains("is damaged"), "{checked:?}");
    let salvaged = kv(&["salvage"], &at("kv.redb"), &[&at("new.redb")]);
    let said = text(&salvaged.stdout);
    assert_eq!(salvaged.status.code(), Some(1), "{salvaged:?}");
    assert!(said.contains("lost: the root of the tree") && said.contains("200 entries of 1 tenants"), "{said}");
    assert_eq!(fs::read(at("kv.redb")).expect("the file"), bytes, "the damaged file stays as it is");
    fs::rename(at("new.redb"), at("kv.redb")).expect("it takes its place");
    server.signal(Signal::HUP);
    wait_for(&"ready\n".to_owned(), || server.admin().get("/readyz").text());
    let answer = ask(&server, "get k1\nget k199\nset k1 new");
    assert_eq!(answer[..2], ["2 value-of-1", "200 value-of-199"]);
    assert!(answer[2].starts_with("set 0 "), "{answer:?}");
    server.stop();
}

/// Another tenant's activity is not seen in one's versions, and what was exported is imported.
#[test]
fn what_was_exported_is_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let server = Server::start(config(&at("kv.redb")));
    assert_eq!(ask(&server, "set a one\nset a two\nadd n 5"), ["set 0 1", "set 0 2", "sum 5"]);
    assert!(text(&kv(&["export"], &at("kv.redb"), &[]).stderr).contains("is in use"));
    server.stop();
    let exported = kv(&["export"], &at("kv.redb"), &[]).stdout;
    let line = json!({ "tenant": "default", "bucket": "kv", "key": "a", "version": 2, "value": "dHdv" });
    let lines: Vec<Value> = text(&exported).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.contains(&line), "{lines:?}");
    fs::write(at("lines"), &exported).expect("a file");
    let imported = sledge_command(&["kv", "import"]).arg(at("new.redb")).stdin(fs::File::open(at("lines")).expect("it")).output();
    assert!(imported.as_ref().is_ok_and(|output| output.status.success()), "{imported:?}");
    let server = Server::start(config(&at("new.redb")));
    assert_eq!(ask(&server, "get a\nadd n 2\nset a three"), ["2 two", "sum 7", "set 0 5"]);
    server.stop();
}
