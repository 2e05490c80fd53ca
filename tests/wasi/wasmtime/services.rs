//! Programs that answer requests, with `sledge serve`.

use std::net::SocketAddr;
use std::thread;

use serde_json::{Value, json};
use sledge_tests::http::Raw;
use sledge_tests::server::Server;

use crate::commands::Check;
use crate::http::Request;
use crate::{Program, upstream};

/// How a program is served, if it is a service.
pub(crate) fn of(name: &str) -> Option<Check> {
    let check: fn(&Program) -> Result<(), String> = match name {
        "p2_cli_serve_hello_world" | "p3_cli_serve_hello_world" => hello,
        "p2_cli_serve_echo_env" => echo_env,
        "p2_cli_serve_with_print" => prints,
        "p2_cli_serve_authority_and_scheme" => authority,
        "p2_cli_serve_config" => config,
        "p2_cli_serve_keyvalue" => keyvalue,
        "p2_cli_serve_return_before_set" | "p2_cli_serve_trap_before_set" => no_response,
        "p2_cli_serve_sleep" | "p3_cli_serve_sleep" => sleeps,
        "p3_cli_serve_post_return" => after_its_response,
        "p2_api_proxy" | "p3_api_proxy" => greets,
        "p2_api_proxy_streaming" => streaming,
        "p2_api_proxy_forward_request" => forwards,
        "p3_http_echo" => echo,
        "p3_http_proxy" => proxy,
        _ => return None,
    };
    Some(Box::new(check))
}

/// A server with the program as `/`, and more keys for it and for the server.
fn serve(program: &Program, more: &Value, config: &Value) -> Server {
    let methods = ["GET", "POST"];
    let mut function = json!({ "name": "service", "path": program.artifact, "route": "/*", "methods": methods, "body": "stream", "deadline_ms": 30_000 });
    for (key, value) in more.as_object().expect("an object") {
        function[key] = value.clone();
    }
    let mut config = config.clone();
    (config["workers"], config["functions"]) = (json!(2), json!([function]));
    Server::start(config)
}

fn plain(program: &Program) -> Server {
    serve(program, &json!({}), &json!({}))
}

/// So many connections at a time, with so many requests each.
const CONNECTIONS: usize = 20;
const REQUESTS: usize = 5;

fn many(address: SocketAddr, check: impl Fn(&Request<'_>, &mut Raw) -> Result<(), String> + Sync) -> Result<(), String> {
    thread::scope(|scope| {
        let ask = || {
            let mut raw = Raw::connect(address);
            (0..REQUESTS).try_for_each(|_| check(&Request::new("GET", "/"), &mut raw))
        };
        let connections: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(ask)).collect();
        connections.into_iter().try_for_each(|connection| connection.join().unwrap_or_else(|_| Err("no response".to_owned())))
    })
}

fn hello(program: &Program) -> Result<(), String> {
    let server = plain(program);
    many(server.address, |request, raw| {
        let response = request.send_over(raw);
        response.expect(response.status == 200 && response.text() == "Hello, WASI!", "greeted")
    })
}

fn echo_env(program: &Program) -> Result<(), String> {
    let server = serve(program, &json!({ "env": { "FOO": "bar" } }), &json!({}));
    for (name, value) in [("FOO", Some("bar")), ("BAR", None)] {
        let response = Request::new("GET", "/").header("env", name).send(server.address);
        response.expect(response.status == 200 && response.body.is_empty() && response.header("env") == value, "the variable")?;
    }
    let twice = Request::new("GET", "/").header("env", "FOO").header("env", "BAR").header("expect-env-count", "2");
    let response = twice.send(server.address);
    response.expect(response.status == 200 && response.header("env") == Some("bar"), "the first of two")
}

fn prints(program: &Program) -> Result<(), String> {
    let server = plain(program);
    for _ in 0..2 {
        let response = Request::new("GET", "/").send(server.address);
        response.expect(response.status == 200, "answered")?;
    }
    let log = server.stop_for_log();
    let words = ["this is half a print to stdout", "this is half a print to stderr", "after empty", "start a print 1234"];
    let counts = words.map(|words| log.matches(words).count());
    if counts == [2, 2, 4, 2] { Ok(()) } else { Err(format!("{counts:?} times {words:?}: {log}")) }
}

/// Also where the target is absolute. wasmtime's test does that with CONNECT, which no function is asked with here.
fn authority(program: &Program) -> Result<(), String> {
    let server = plain(program);
    for request in [Request::new("GET", "/"), Request::new("GET", "http://localhost/")] {
        let response = request.send(server.address);
        response.expect(response.status == 200, "answered")?;
    }
    Ok(())
}

fn config(program: &Program) -> Result<(), String> {
    let server = serve(program, &json!({ "env": { "hello": "world" } }), &json!({}));
    let response = Request::new("GET", "/").send(server.address);
    response.expect(response.status == 200 && response.text() == "world", "the value")
}

fn keyvalue(program: &Program) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kv.redb");
    crate::outbound::entries(&file, &[("hello", "d29ybGQ=")])?;
    let server = serve(program, &json!({}), &json!({ "kv": file }));
    let response = Request::new("GET", "/").send(server.address);
    response.expect(response.status == 200 && response.text() == "world", "the value")
}

fn no_response(program: &Program) -> Result<(), String> {
    let server = plain(program);
    for _ in 0..2 {
        let response = Request::new("GET", "/").send(server.address);
        response.expect(response.status == 500, "a failure")?;
    }
    Ok(())
}

fn sleeps(program: &Program) -> Result<(), String> {
    let server = serve(program, &json!({ "deadline_ms": 1 }), &json!({}));
    many(server.address, |request, raw| {
        let response = request.send_over(raw);
        response.expect(response.status == 504, "its time is over")
    })
}

fn after_its_response(program: &Program) -> Result<(), String> {
    let server = plain(program);
    let response = Request::new("GET", "/").send(server.address);
    response.expect(response.status == 200 && response.body.is_empty(), "answered")?;
    server.wait_for_log("please see me");
    Ok(())
}

fn greets(program: &Program) -> Result<(), String> {
    let server = plain(program);
    let response = Request::new("GET", "/test-path").send(server.address);
    response.expect(response.status == 200 && response.text() == "hello, world!", "greeted")
}

/// A mebibyte that is not all the same.
fn mebibyte() -> Vec<Vec<u8>> {
    let bytes: Vec<u8> = (0..1 << 20).map(|index: u32| index.wrapping_mul(251) as u8).collect();
    bytes.chunks(16 << 10).map(<[u8]>::to_vec).collect()
}

fn streaming(program: &Program) -> Result<(), String> {
    let mirror = upstream::mirror();
    let other = format!("http://{mirror}/echo");
    let server = serve(program, &json!({ "http_hosts": [mirror.to_string()] }), &json!({}));
    let body = mebibyte();
    for target in ["/echo", "/double-echo"] {
        let request = Request::new("POST", target).header("content-type", "application/octet-stream").header("url", &other);
        let response = request.body(body.clone()).send(server.address);
        let same = response.body == body.concat();
        let kind = response.header("content-type") == Some("application/octet-stream");
        if response.status != 200 || !same || !kind {
            return Err(format!("{target}: {} {same} {kind} {:?}\n{}", response.status, response.headers, server.log()));
        }
    }
    // A host that may be asked, and one that may not.
    let request =
        Request::new("GET", "/hash-all").header("url", format!("http://{mirror}/a")).header("url", "http://forbidden.example/");
    let response = request.send(server.address);
    let hash = format!("http://{mirror}/a: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU");
    let text = response.text();
    response.expect(response.status == 200 && text.contains(&hash) && text.contains("HttpRequestDenied"), "two results")
}

fn forwards(program: &Program) -> Result<(), String> {
    let mirror = upstream::mirror();
    let server = serve(program, &json!({ "http_hosts": [mirror.to_string()] }), &json!({}));
    let mut request = Request::new("GET", "/get");
    request.headers = vec![("host", mirror.to_string())];
    let response = request.send(server.address);
    response.expect(response.status == 200 && response.header("x-wasmtime-test-uri") == Some("/get"), "forwarded")
}

fn echo(program: &Program) -> Result<(), String> {
    let server = plain(program);
    let body = b"And the mome raths outgrabe";
    for host_to_host in [false, true] {
        let mut request = Request::new("GET", "/")
            .header("foo", "bar")
            .header("trailer", "fizz")
            .body(vec![body.to_vec()])
            .trailer("fizz", "buzz");
        if host_to_host {
            request = request.header("x-host-to-host", "true");
        }
        let response = request.send(server.address);
        let same = response.status == 200 && response.body == body && response.header("foo") == Some("bar");
        response.expect(same && response.trailers == ["fizz: buzz"], "the same")?;
    }
    let request = Request::new("GET", "/").body(vec![b"hello ".to_vec(), b"world".to_vec()]);
    let response = request.send(server.address);
    response.expect(response.body == b"hello world", "both")
}

/// The bytes as a stored block of DEFLATE (RFC 1951).
fn stored(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("few");
    [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), bytes].concat()
}

/// What stands before an echo takes compressed bodies, and compresses what comes back where that is accepted.
pub(crate) fn middleware(program: &Program) -> Result<(), String> {
    let server = plain(program);
    let body = b"And the mome raths outgrabe";
    let request = Request::new("POST", "/").header("foo", "bar").header("content-encoding", "deflate").header("trailer", "fizz");
    let response = request.body(vec![stored(body)]).trailer("fizz", "buzz").send(server.address);
    let same = response.status == 200 && response.body == body && response.header("foo") == Some("bar");
    response.expect(same && response.trailers == ["fizz: buzz"], "the same, inflated")?;
    let request = Request::new("POST", "/").header("accept-encoding", "nonexistent-encoding, deflate").body(vec![body.to_vec()]);
    let response = request.send(server.address);
    response.expect(response.status == 200 && response.header("content-encoding") == Some("deflate"), "deflated")
}

fn proxy(program: &Program) -> Result<(), String> {
    let mirror = upstream::mirror();
    let server = serve(program, &json!({ "http_hosts": [mirror.to_string()] }), &json!({}));
    let request =
        Request::new("POST", "/").header("url", format!("http://{mirror}/")).body(vec![b"And the mome raths outgrabe".to_vec()]);
    let response = request.send(server.address);
    response.expect(response.status == 200 && response.text() == "And the mome raths outgrabe", "passed on")?;
    let response = Request::new("GET", "/").send(server.address);
    response.expect(response.status == 400, "refused")
}
