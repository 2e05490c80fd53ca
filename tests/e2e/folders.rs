//! Files that the server sends.

use crate::http::{ask as ask_http2, connect, run, speak_http2};
use crate::redirects::reload;
use crate::{assert_failure, entry, entry_with, eventually};
use hyper::Method;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply};
use sledge_tests::server::Server;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A folder `www` with files, beside one that no client may have.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("www/docs/.well-known")).expect("folders");
    fs::create_dir_all(at("www/.git")).expect("folders");
    fs::create_dir_all(at("www/.well-known")).expect("folders");
    for (name, text) in [
        ("www/index.html", "<p>home</p>"),
        ("www/docs/index.html", "<p>docs</p>"),
        ("www/app.js", "let a = 1"),
        ("www/a b.txt", "0123456789"),
        ("www/no-type", "?"),
        ("www/empty.css", ""),
        ("www/.git/config", "secret"),
        ("www/.env", "secret"),
        ("www/.well-known/x", "known"),
        ("secret.txt", "secret"),
    ] {
        fs::write(at(name), text).expect("write a file");
    }
    symlink("../secret.txt", at("www/link.txt")).expect("a link");
    symlink(at("secret.txt"), at("www/absolute.txt")).expect("a link");
    symlink("..", at("www/up")).expect("a link");
    symlink("app.js", at("www/inside.js")).expect("a link");
    symlink("loop", at("www/loop")).expect("a link");
    folder
}

fn config(folder: &Path, more: &Value) -> Value {
    let mut served = json!({ "route": "/files/*", "path": folder.join("www") });
    more.as_object().expect("an object").iter().for_each(|(key, value)| served[key] = value.clone());
    json!({ "workers": 1, "functions": [entry_with("all", "echo.wat", &json!({ "route": "/*" }))], "folders": [served] })
}

/// The reply to a request whose target is sent as it is.
fn ask(server: &Server, method: &str, target: &str, lines: &str) -> Reply {
    let mut raw = Raw::connect(server.address);
    raw.send(format!("{method} {target} HTTP/1.1\r\nhost: here\r\n{lines}\r\n"));
    if method == "HEAD" { raw.head() } else { raw.reply() }.expect("a reply")
}

#[test]
fn files_are_sent_with_their_types() {
    let folder = files();
    let server = Server::start(config(folder.path(), &json!({ "cache_control": "max-age=60" })));
    for (target, ty, text) in [
        ("/files/", "text/html; charset=utf-8", "<p>home</p>"),
        ("/files/index.html?a=b", "text/html; charset=utf-8", "<p>home</p>"),
        ("/files/docs/", "text/html; charset=utf-8", "<p>docs</p>"),
        ("/files/app.js", "text/javascript; charset=utf-8", "let a = 1"),
        ("/files/inside.js", "text/javascript; charset=utf-8", "let a = 1"),
        ("/files/a%20b.txt", "text/plain; charset=utf-8", "0123456789"),
        ("/files/no-type", "application/octet-stream", "?"),
        ("/files/empty.css", "text/css; charset=utf-8", ""),
        ("/files/.well-known/x", "application/octet-stream", "known"),
    ] {
        let reply = ask(&server, "GET", target, "");
        assert_eq!((reply.status, reply.header("content-type"), &*reply.text()), (200, Some(ty), text), "{target}");
        assert_eq!(reply.header("cache-control"), Some("max-age=60"), "{target}");
        let head = ask(&server, "HEAD", target, "");
        assert_eq!((head.status, head.header("content-length")), (200, Some(&*text.len().to_string())), "{target}");
        for name in ["content-type", "etag", "last-modified", "accept-ranges", "content-length"] {
            assert!(
                head.header(name).is_some() && head.header(name) == reply.header(name),
                "{name} of {target}: {head:?} {reply:?}"
            );
        }
    }
    let slashed = ask(&server, "GET", "/files/docs?a=b", "");
    assert_eq!((slashed.status, slashed.header("location")), (308, Some("/files/docs/?a=b")));
    for method in ["POST", "PUT", "DELETE"] {
        let reply = ask(&server, method, "/files/app.js", "");
        assert_failure(&reply, 405, "method_not_allowed", "see_allow", None);
        assert_eq!(reply.header("allow"), Some("GET, HEAD"), "{method}");
    }
    let options = ask(&server, "OPTIONS", "/files/app.js", "");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
    assert_failure(&ask(&server, "GET", "/files/none", ""), 404, "not_found", "no_such_route", None);
    // What is not below the prefix is the function's.
    assert_eq!(server.client().post("/files", "x").text(), "x");
    run(async {
        let client = speak_http2(connect(&server).await).await;
        let reply = ask_http2(&client, Method::GET, "/files/app.js", "").await;
        assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &b"let a = 1"[..]));
    });
    let metrics = server.admin().get("/metrics").text();
    assert!(!metrics.contains("sledge_file_requests_total{thread=\"sledge-0\"} 0"), "{metrics}");
    server.stop();
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let folder = files();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("www/pipe")).status();
    assert!(made.expect("mkfifo").success());
    let server = Server::start(config(folder.path(), &json!({})));
    for target in [
        "/files/../secret.txt",
        "/files/%2e%2e/secret.txt",
        "/files/.%2E/secret.txt",
        "/files/..%2fsecret.txt",
        "/files/..%5csecret.txt",
        "/files/docs/../../secret.txt",
        "/files/docs%2f..%2f..%2fsecret.txt",
        "/files//etc/passwd",
        "/files/%2fetc/passwd",
        "/files/link.txt",
        "/files/absolute.txt",
        "/files/up/secret.txt",
        "/files/up",
        "/files/up/",
        "/files/loop",
        "/files/.git/config",
        "/files/.env",
        "/files/app.js%00",
        "/files/app.js/",
        "/files/app.js/x",
        "/files/pipe",
        "/files/docs/.well-known/",
    ] {
        let reply = ask(&server, "GET", target, "");
        assert_failure(&reply, 404, "not_found", "no_such_route", None);
        assert_eq!(ask(&server, "GET", &format!("{target}{}", "x".repeat(300)), "").status, 404, "{target}");
    }
    server.stop();
}

#[test]
fn clients_ask_for_parts_and_for_what_has_changed() {
    let folder = files();
    let file = folder.path().join("www/a b.txt");
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000_000_500);
    fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(time)).expect("set the time");
    let server = Server::start(config(folder.path(), &json!({})));
    let get = |lines: &str| ask(&server, "GET", "/files/a%20b.txt", lines);
    let whole = get("");
    let (etag, modified) = (whole.header("etag").expect("a tag"), whole.header("last-modified").expect("a time"));
    assert_eq!(modified, "Sun, 09 Sep 2001 01:46:40 GMT");
    for (lines, status, range, text) in [
        ("range: bytes=2-4\r\n".to_owned(), 206, Some("bytes 2-4/10"), "234"),
        ("range: bytes=7-\r\n".to_owned(), 206, Some("bytes 7-9/10"), "789"),
        ("range: bytes=-3\r\n".to_owned(), 206, Some("bytes 7-9/10"), "789"),
        ("range: bytes=-99\r\n".to_owned(), 206, Some("bytes 0-9/10"), "0123456789"),
        ("range: bytes=-0\r\n".to_owned(), 416, Some("bytes */10"), ""),
        ("range: bytes=+1-2\r\n".to_owned(), 200, None, "0123456789"),
        ("range: bytes=0-99\r\n".to_owned(), 206, Some("bytes 0-9/10"), "0123456789"),
        ("range: bytes=10-\r\n".to_owned(), 416, Some("bytes */10"), ""),
        ("range: bytes=0-1,3-4\r\n".to_owned(), 200, None, "0123456789"),
        ("range: bytes=4-2\r\n".to_owned(), 200, None, "0123456789"),
        ("range: lines=1-2\r\n".to_owned(), 200, None, "0123456789"),
        (format!("range: bytes=2-4\r\nif-range: {etag}\r\n"), 206, Some("bytes 2-4/10"), "234"),
        ("range: bytes=2-4\r\nif-range: \"other\"\r\n".to_owned(), 200, None, "0123456789"),
        (format!("if-none-match: {etag}\r\n"), 304, None, ""),
        (format!("if-none-match: \"x\", W/{etag}\r\n"), 304, None, ""),
        ("if-none-match: *\r\n".to_owned(), 304, None, ""),
        (format!("if-none-match: \"x\"\r\nif-modified-since: {modified}\r\n"), 200, None, "0123456789"),
        (format!("if-modified-since: {modified}\r\n"), 304, None, ""),
        ("if-modified-since: Sun, 09 Sep 2001 01:46:39 GMT\r\n".to_owned(), 200, None, "0123456789"),
        ("if-match: \"x\"\r\n".to_owned(), 412, None, ""),
        (format!("if-match: {etag}\r\nrange: bytes=1-1\r\n"), 206, Some("bytes 1-1/10"), "1"),
        (format!("if-unmodified-since: {modified}\r\n"), 200, None, "0123456789"),
        ("if-unmodified-since: Sun, 09 Sep 2001 01:46:39 GMT\r\n".to_owned(), 412, None, ""),
    ] {
        let reply = get(&lines);
        let expected = (status, range, text);
        assert_eq!((reply.status, reply.header("content-range"), &*reply.text()), expected, "{lines} {reply:?}");
        assert_eq!(reply.header("etag"), Some(etag), "{lines}");
    }
    // Ranges are for GET.
    assert_eq!(ask(&server, "HEAD", "/files/a%20b.txt", "range: bytes=2-4\r\n").header("content-length"), Some("10"));
    fs::write(&file, "another").expect("write a file");
    let changed = get(&format!("if-none-match: {etag}\r\n"));
    assert_eq!((changed.status, &*changed.text()), (200, "another"));
    server.stop();
}

#[test]
fn a_large_file_goes_out_piece_by_piece() {
    let folder = files();
    let large: Vec<u8> = (0..30_000_000_u32).map(|at| (at % 251) as u8).collect();
    let file = folder.path().join("www/large.bin");
    fs::write(&file, &large).expect("write a file");
    let server = Server::start(config(folder.path(), &json!({})));
    // A client that reads nothing holds up no other, and no more than a piece of the file is in memory.
    let before = server.private_bytes();
    let mut slow: Vec<Raw> = (0..8)
        .map(|_| {
            let mut raw = Raw::connect(server.address);
            raw.send("GET /files/large.bin HTTP/1.1\r\nhost: a\r\n\r\n");
            assert_eq!(raw.head().expect("a head").header("content-length"), Some("30000000"));
            raw
        })
        .collect();
    assert!(ask(&server, "GET", "/files/large.bin", "").body == large);
    let part = ask(&server, "GET", "/files/large.bin", "range: bytes=1000000-2999999\r\n");
    assert!(part.status == 206 && part.body == large[1_000_000..3_000_000]);
    assert_eq!(ask(&server, "HEAD", "/files/large.bin", "").header("content-length"), Some("30000000"));
    let grown = server.private_bytes().saturating_sub(before);
    assert!(grown < 20_000_000, "{grown} bytes");
    // A file that becomes shorter than was said breaks off.
    fs::File::options().write(true).open(&file).and_then(|file| file.set_len(20_000_000)).expect("cut the file");
    let sent = slow.pop().expect("a client").everything();
    assert!(sent.len() < 30_000_000 && sent[..] == large[..sent.len()], "{}", sent.len());
    assert_eq!(server.client().post("/x", "still there").text(), "still there");
    server.stop();
}

#[test]
fn files_are_compressed_where_that_is_wanted() {
    let folder = files();
    let text = "a line of it\n".repeat(20_000);
    fs::write(folder.path().join("www/large.txt"), &text).expect("write a file");
    let server = Server::start(config(folder.path(), &json!({ "compression": {} })));
    let mut raw = Raw::connect(server.address);
    raw.send("GET /files/large.txt HTTP/1.0\r\nhost: a\r\naccept-encoding: zstd\r\n\r\n");
    let head = raw.head().expect("a head");
    assert_eq!((head.header("content-encoding"), head.header("vary")), (Some("zstd"), Some("accept-encoding")));
    let etag = head.header("etag").expect("a tag");
    assert!(etag.starts_with("W/\""), "{etag}");
    assert!(zstd::decode_all(&*raw.everything()).expect("Zstandard") == text.as_bytes());
    let lines = format!("accept-encoding: zstd\r\nif-none-match: {etag}\r\n");
    assert_eq!(ask(&server, "GET", "/files/large.txt", &lines).status, 304);
    let part = ask(&server, "GET", "/files/large.txt", "accept-encoding: zstd\r\nrange: bytes=0-99999\r\n");
    assert_eq!((part.status, part.header("content-encoding"), part.body.len()), (206, None, 100_000));
    let head = ask(&server, "HEAD", "/files/large.txt", "accept-encoding: zstd\r\n");
    assert_eq!((head.status, head.header("content-length").filter(|length| *length != "260000")), (200, None));
    server.stop();
}

/// It may be on a disk that comes later: it keeps neither the server nor functions from their work.
#[test]
fn a_folder_that_is_not_there_yet_is_served_when_it_is() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("www");
    let server = Server::start(config(parent.path(), &json!({})));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    for _ in 0..2 {
        let refused = ask(&server, "GET", "/files/app.js", "");
        assert_failure(&refused, 503, "quarantined", "quarantined", None);
    }
    let ready = || server.admin().get("/readyz").text();
    eventually("it is said", || ready().contains("folder /files/*") && ready().contains("No such file"));
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("app.js"), "let a = 1").expect("write a file");
    assert_eq!(ask(&server, "GET", "/files/app.js", "").text(), "let a = 1");
    eventually("nothing is wrong", || !ready().contains("folder"));
    server.stop();
}

#[test]
fn folders_change_at_sighup() {
    let folder = files();
    let other = tempfile::tempdir().expect("a folder");
    fs::write(other.path().join("app.js"), "let b = 2").expect("write a file");
    let server = Server::start(config(folder.path(), &json!({})));
    assert_eq!(ask(&server, "GET", "/files/app.js", "").text(), "let a = 1");
    reload(&server, config(folder.path(), &json!({ "path": other.path() })), "folders changed");
    assert_eq!(ask(&server, "GET", "/files/app.js", "").text(), "let b = 2");
    reload(&server, config(folder.path(), &json!({ "path": "/nonexistent" })), "/nonexistent: No such file");
    assert_eq!(ask(&server, "GET", "/files/app.js", "").text(), "let b = 2", "as before");
    eventually("it is said", || server.admin().get("/readyz").text().contains("/nonexistent: No such file"));
    let gone = json!({ "workers": 1, "functions": [entry("echo", "echo.wat")] });
    reload(&server, gone, "removed all");
    assert_eq!(ask(&server, "GET", "/files/app.js", "").status, 404);
    server.stop();
}
