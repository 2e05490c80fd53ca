//! Spans of requests: what a collector gets to know, and how traces go from server to server.

use crate::collector::{Collector, Span};
use crate::{entry, entry_with};
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply, TIME_MAX, post_bytes};
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const INTERNAL: i32 = 1;
const SERVER: i32 = 2;
const CLIENT: i32 = 3;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SENDER: &str = "b7ad6b7169203331";

/// A server that tells a collector.
pub(crate) fn server(collector: &Collector, functions: Value, telemetry: Value, more: Value) -> Server {
    let mut config = json!({ "workers": 1, "functions": functions, "telemetry": telemetry });
    // By its name, so that it has to be looked up.
    config["telemetry"]["endpoint"] = format!("http://localhost:{}", collector.address.port()).into();
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    Server::start(config)
}

fn ask(server: &Server, path: &str, body: &str, headers: &[(&str, &str)]) -> Reply {
    server.client().try_post(path, body.as_bytes(), headers).expect("a reply")
}

/// `traceparent` of a trace whose number ends like that.
fn parent(trace: u32, flags: &str) -> (String, String) {
    let trace = format!("{}{trace:08x}", &TRACE[..24]);
    (format!("00-{trace}-{SENDER}-{flags}"), trace)
}

fn children<'a>(spans: &'a [Span], of: &Span) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.parent == of.id).collect()
}

fn names(spans: &[&Span]) -> BTreeSet<String> {
    spans.iter().map(|span| span.name.clone()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

pub(crate) fn metric(server: &Server, result: &str) -> u64 {
    let text = server.admin().get("/metrics").text();
    let sample = format!("sledge_spans_total{{result=\"{result}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&sample)).expect(&sample).parse().expect("a number")
}

#[test]
fn a_request_is_a_span_and_so_are_its_parts() {
    for listeners in crate::LISTENERS {
        let collector = Collector::start();
        let functions = json!([entry_with("echo", "echo.wat", &json!({ "route": "/some/*", "tenant": "ours" }))]);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sledge.json");
        let config = json!({
            "listen": "127.0.0.1:0",
            "admin": "none",
            "listeners": listeners,
            "metrics": false,
            "functions": functions,
            "telemetry": {
                "endpoint": format!("http://{}/below/", collector.address),
                "headers": { "authorization": { "env": "SLEDGE_TEST_SECRET" }, "x-team": "edge" },
                "service_name": "front",
                "resource": { "deployment.environment.name": "test" },
            },
        });
        std::fs::write(&file, config.to_string()).expect("write the configuration");
        let mut command = sledge_command(&["serve", "--config"]);
        let server = Server::start_with(command.arg(&file).env("SLEDGE_TEST_SECRET", "hunter2"));
        let before = now_ns();
        let reply = ask(&server, "/some/thing?secret=1", "hello", &[("user-agent", "test/1")]);
        assert_eq!(reply.text(), "hello");
        let spans = collector.wait_for(|spans| spans.len() >= 4);
        // The reply may be here before the server looks at its clock.
        let after = now_ns();
        let span = spans.iter().find(|span| span.kind == SERVER).expect("a span of the request").clone();
        assert_eq!((span.name.as_str(), span.parent.as_str(), span.error.as_deref()), ("POST /some/*", "", None), "{listeners}");
        assert!(before <= span.begin_ns && span.begin_ns < span.end_ns && span.end_ns <= after, "{before} {after} {span:?}");
        let expected = json!({
            "faas.name": "echo",
            "faas.trigger": "http",
            "http.request.method": "POST",
            "http.response.status_code": "200",
            "http.route": "/some/*",
            "network.protocol.version": "1.1",
            "server.address": "127.0.0.1",
            "server.port": server.address.port().to_string(),
            "sledge.tenant": "ours",
            "url.path": "/some/thing",
            "url.scheme": "http",
            "user_agent.original": "test/1",
        });
        assert_eq!(json!(span.attributes), expected);
        let resource = json!(span.resource);
        assert_eq!((&resource["service.name"], &resource["deployment.environment.name"]), (&json!("front"), &json!("test")));

        let parts = children(&spans, &span);
        assert_eq!((names(&parts), spans.len()), (set(&["queue", "instantiate", "run"]), 4), "{spans:#?}");
        for part in &parts {
            assert_eq!((part.kind, &part.trace), (INTERNAL, &span.trace));
            assert!(
                span.begin_ns <= part.begin_ns && part.begin_ns <= part.end_ns && part.end_ns <= span.end_ns,
                "{part:?} {span:?}"
            );
        }
        let part = |name: &str| parts.iter().find(|part| part.name == name).expect("a part");
        assert!(part("queue").end_ns <= part("instantiate").begin_ns && part("instantiate").end_ns <= part("run").begin_ns);
        // Also where nothing is counted and timed otherwise.
        assert!(part("instantiate").begin_ns < part("instantiate").end_ns && part("run").begin_ns < part("run").end_ns);
        assert_eq!((part("run").get("faas.invocation_id"), part("run").get("faas.name")), ("1", "echo"));
        assert!(part("run").get("sledge.host_calls").parse::<u32>().expect("a number") >= 2, "{:?}", part("run"));

        let head = collector.heads().remove(0);
        for words in
            ["post /below/v1/traces http/1.1", "authorization: hunter2", "x-team: edge", "content-type: application/x-protobuf"]
        {
            assert!(head.contains(words), "{words}: {head}");
        }
        let log = server.stop_for_log();
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[test]
fn what_no_function_answers_is_a_span_too() {
    let collector = Collector::start();
    let post = json!([entry_with("echo", "echo.wat", &json!({ "methods": ["POST"] }))]);
    let server = server(&collector, post, json!({}), json!({ "body_bytes_max": 10 }));
    assert_eq!(server.client().get("/nowhere").status, 404);
    assert_eq!(server.client().get("/echo").status, 405);
    assert_eq!(ask(&server, "/echo", "more than ten bytes", &[]).status, 413);
    let mut raw = Raw::connect(server.address);
    raw.send(format!("BREW /echo HTTP/1.1\r\nhost: pot:{}\r\ncontent-length: 0\r\n\r\n", u16::MAX));
    assert_eq!(raw.reply().expect("a reply").status, 405);
    let spans = collector.wait_for(|spans| spans.len() >= 4);
    let mut got: Vec<_> = spans
        .iter()
        .map(|span| {
            assert_eq!(
                (span.kind, &span.error),
                (SERVER, &None),
                "the client's mistakes are no errors of the server's: {span:?}"
            );
            (span.name.as_str(), span.get("http.response.status_code"), span.get("http.request.method"))
        })
        .collect();
    got.sort_unstable();
    let expected =
        [("GET", "404", "GET"), ("GET /echo", "405", "GET"), ("HTTP /echo", "405", "_OTHER"), ("POST /echo", "413", "POST")];
    assert_eq!(got, expected);
    let strange = spans.iter().find(|span| span.name.starts_with("HTTP")).expect("it is there");
    let of = |name: &str| strange.get(name).to_owned();
    assert_eq!([of("http.request.method_original"), of("server.address"), of("server.port")], ["BREW", "pot", "65535"]);
    server.stop();
}

#[test]
fn a_trace_that_began_elsewhere_goes_on() {
    let collector = Collector::start();
    let echo = json!([entry("echo", "echo.wat")]);
    // Of the traces that begin here, none; of the others, those whose beginner wants them.
    let none = server(&collector, echo.clone(), json!({ "sample_ratio": 0.0 }), json!({}));
    let (wanted, trace) = parent(1, "01");
    let (unwanted, silent) = parent(2, "00");
    for headers in
        [vec![], vec![("traceparent", unwanted.as_str())], vec![("traceparent", wanted.as_str()), ("tracestate", "a=1,b@c=2")]]
    {
        assert_eq!(ask(&none, "/echo", "x", &headers).status, 200);
    }
    let (span, spans) = collector.span(&trace, "POST /echo");
    assert_eq!((span.parent.as_str(), span.state.as_str()), (SENDER, "a=1,b@c=2"));
    none.stop();
    assert_eq!((collector.spans().len(), spans.len()), (4, 4), "{:#?}", collector.spans());

    // Of those that begin here, all.
    let all = server(&collector, echo, json!({}), json!({}));
    let long = format!("{wanted}-more");
    let malformed =
        [wanted.replace("00-", "ff-"), long, wanted.to_uppercase(), wanted.replace(SENDER, "0000000000000000"), "x".to_owned()];
    for header in &malformed {
        assert_eq!(ask(&all, "/echo", "x", &[("traceparent", header), ("tracestate", "a=1")]).status, 200);
    }
    assert_eq!(ask(&all, "/echo", "x", &[("traceparent", &unwanted)]).status, 200);
    assert_eq!(ask(&all, "/echo", "x", &[]).status, 200);
    all.stop();
    let roots: Vec<Span> = collector.spans().into_iter().filter(|span| span.kind == SERVER && span.parent.is_empty()).collect();
    assert_eq!(roots.len(), malformed.len() + 1, "{roots:#?}");
    assert_eq!(roots.iter().map(|span| span.trace.as_str()).collect::<BTreeSet<_>>().len(), roots.len());
    assert!(roots.iter().all(|span| span.state.is_empty() && span.trace != trace));
    assert!(collector.spans().iter().all(|span| span.trace != silent));
}

#[test]
fn what_goes_wrong_is_an_error_with_its_reason() {
    let collector = Collector::start();
    let functions = json!([
        entry("traps", "traps.wat"),
        entry_with("spin", "spin.wat", &json!({ "deadline_ms": 1_500 })),
        entry_with("dear", "spin.wat", &json!({ "cpu_ms_max": 20 })),
        entry_with("exit", "exit.c", &json!({ "args": ["7"] })),
        entry_with("wait", "wait.wat", &json!({ "deadline_ms": 60_000 })),
        entry("head", "head.c"),
    ]);
    let server = server(&collector, functions, json!({}), json!({}));
    let mut number = 0;
    let mut told = |path: &str, body: &str, status: u16, kind: &str, words: &str| {
        number += 1;
        let (header, trace) = parent(number, "01");
        assert_eq!(ask(&server, path, body, &[("traceparent", &header)]).status, status);
        let (span, _) = collector.span(&trace, &format!("POST {path}"));
        let (run, _) = collector.span(&trace, "run");
        for span in [&span, &run] {
            assert_eq!(span.get("error.type"), kind, "{span:?}");
            assert!(span.error.as_ref().is_some_and(|error| error.contains(words)), "{words}: {span:?}");
        }
        assert_eq!((span.get("http.response.status_code"), &run.parent), (status.to_string().as_str(), &span.id));
    };
    told("/traps", "u", 500, "trap", "unreachable");
    told("/spin", "", 504, "deadline", "deadline_exceeded");
    told("/dear", "", 500, "cpu_limit", "cpu_limit");
    told("/exit", "", 500, "exit", "exit status 7");

    // What a function says is wrong is so without further words.
    let (header, trace) = parent(77, "01");
    assert_eq!(ask(&server, "/head", "status 503", &[("traceparent", &header)]).status, 503);
    let (span, spans) = collector.span(&trace, "POST /head");
    assert_eq!((span.error.as_deref(), span.get("error.type")), (Some(""), "503"));
    assert!(children(&spans, &span).iter().all(|part| part.error.is_none()), "{spans:#?}");

    // A client that has gone gets no status.
    let (header, trace) = parent(78, "01");
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/wait", &(-1_i64).to_le_bytes(), &format!("traceparent: {header}\r\n")));
    let end = Instant::now() + TIME_MAX;
    while server.admin().get("/status").json()["requests"] != 1 {
        assert!(Instant::now() < end, "the request is not there");
    }
    drop(raw);
    let (span, _) = collector.span(&trace, "POST /wait");
    assert_eq!((span.get("error.type"), span.get("http.response.status_code"), span.get("faas.name")), ("cancelled", "", "wait"));
    server.stop();
}

#[test]
fn a_call_of_a_function_is_a_part_of_its_caller() {
    let collector = Collector::start();
    let functions = json!([entry("caller", "caller.c"), entry("echo", "echo.wat"), entry("traps", "traps.wat")]);
    let server = server(&collector, functions, json!({}), json!({}));
    let (header, trace) = parent(1, "01");
    let body = "invoke echo hello\ninvoke traps u\ninvoke missing x\ninvoke caller invoke echo again";
    let reply = ask(&server, "/caller", body, &[("traceparent", &header)]);
    assert_eq!(reply.text(), "5 hello\nerror 12\nerror 44\n8 7 again\n".replace("8 7 again", "8 5 again\n"), "{reply:?}");
    let (span, spans) = collector.span(&trace, "POST /caller");
    let parts = children(&spans, &span);
    let expected = ["queue", "instantiate", "run", "call echo", "call traps", "call missing", "call caller"];
    assert_eq!((names(&parts), parts.len()), (set(&expected), expected.len()), "{spans:#?}");
    let part = |name: &str| (*parts.iter().find(|part| part.name == name).expect("a part")).clone();
    let echo = part("call echo");
    assert_eq!((echo.kind, echo.get("faas.name"), echo.get("faas.trigger"), &echo.error), (INTERNAL, "echo", "other", &None));
    assert_eq!(names(&children(&spans, &echo)), set(&["queue", "instantiate", "run"]));
    assert!(part("run").begin_ns <= echo.begin_ns && echo.end_ns <= part("run").end_ns, "{echo:?}");
    let traps = part("call traps");
    assert_eq!((traps.get("error.type"), traps.error.is_some()), ("trap", true));
    assert_eq!((part("call missing").get("error.type"), span.error.as_deref()), ("not_found", None));
    let again = part("call caller");
    assert_eq!(names(&children(&spans, &again)), set(&["queue", "instantiate", "run", "call echo"]), "{spans:#?}");
    server.stop();
}

#[test]
fn what_a_function_asks_of_other_servers_belongs_to_its_trace() {
    let collector = Collector::start();
    let there = server(&collector, json!([entry("echo", "echo.wat")]), json!({ "service_name": "there" }), json!({}));
    let hosts = [there.address.to_string(), "127.0.0.1:1".to_owned()];
    let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": hosts }));
    let here = server(&collector, json!([fetch]), json!({ "service_name": "here" }), json!({}));
    let url = format!("http://{}/echo", there.address);

    let (header, trace) = parent(1, "01");
    let headers = [("traceparent", header.as_str()), ("tracestate", "a=1")];
    let body = format!("POST {url}?secret=1 hello\nPOST {url}/nowhere x\nPOST http://127.0.0.1:1/ x");
    assert_eq!(ask(&here, "/fetch", &body, &headers).text().lines().next(), Some("200 5 hello"));
    collector.span(&trace, "POST /fetch");
    let (remote, _) = collector.span(&trace, "POST /echo");
    let spans: Vec<Span> = collector.spans().into_iter().filter(|span| span.trace == trace).collect();
    let server_here = spans.iter().find(|span| span.name == "POST /fetch").expect("it is there");
    let asked: Vec<&Span> = spans.iter().filter(|span| span.kind == CLIENT).collect();
    assert_eq!(asked.len(), 3, "{spans:#?}");
    assert!(asked.iter().all(|span| span.parent == server_here.id && span.name == "POST" && span.state == "a=1"));
    let good = asked.iter().find(|span| span.get("http.response.status_code") == "200").expect("one that was answered");
    assert_eq!((good.get("url.full"), good.get("server.port"), &good.error), (&*url, &*there.address.port().to_string(), &None));
    assert_eq!((&remote.parent, &*remote.resource["service.name"], &*remote.state), (&good.id, "there", "a=1"));
    assert!(good.begin_ns <= remote.begin_ns && remote.end_ns <= good.end_ns, "{good:?} {remote:?}");
    let lost = asked.iter().find(|span| span.get("http.response.status_code") == "404").expect("one that was refused");
    assert_eq!((lost.get("error.type"), lost.error.is_some()), ("404", true));
    let broken = asked.iter().find(|span| span.get("server.port") == "1").expect("one that reached no server");
    assert!(broken.get("error.type") == "unreachable" && broken.error.as_ref().is_some_and(|why| why.contains("127.0.0.1:1")));

    // A trace that is not sampled here is not sampled there either.
    let (unwanted, silent) = parent(2, "00");
    assert_eq!(ask(&here, "/fetch", &format!("POST {url} hello"), &[("traceparent", &unwanted)]).status, 200);
    here.stop();
    there.stop();
    assert!(collector.spans().iter().all(|span| span.trace != silent));
}

/// What a function sends itself: where it has spans of its own, they stand between.
#[test]
fn spans_of_functions_have_their_place() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let address = listener.local_addr().expect("an address");
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let head = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            let parents: Vec<String> = head.filter_map(|line| line.strip_prefix("traceparent: ").map(str::to_owned)).collect();
            let _ = sender.send(parents);
            let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    let collector = Collector::start();
    let fetch = entry_with("fetch", "fetch.c", &json!({ "http_hosts": [address.to_string()] }));
    let server = server(&collector, json!([fetch, entry("head", "head.c")]), json!({}), json!({}));
    let own = "00f067aa0ba902b7";
    for (number, of_function, expected) in [(1, None, None), (2, Some(2), Some(own)), (3, Some(99), None)] {
        let (header, trace) = parent(number, "01");
        let own_header =
            of_function.map(|number| format!("header traceparent {}\n", parent(number, "01").0.replace(SENDER, own)));
        let body = format!("{}GET http://{address}/ ", own_header.unwrap_or_default());
        assert_eq!(ask(&server, "/fetch", &body, &[("traceparent", &header)]).status, 200);
        let sent = lines.recv_timeout(TIME_MAX).expect("a request");
        let (asked, _) = collector.span(&trace, "GET");
        let (span, _) = collector.span(&trace, "POST /fetch");
        assert_eq!(sent, [format!("00-{trace}-{}-01", asked.id)]);
        assert_eq!(asked.parent, expected.unwrap_or(&span.id));
    }
    // And it is told which span it is in.
    let (header, trace) = parent(4, "01");
    let told = ask(&server, "/head", "header traceparent", &[("traceparent", &header), ("tracestate", "a=1")]).text();
    let (span, _) = collector.span(&trace, "POST /head");
    assert_eq!(told.trim_end(), format!("00-{trace}-{}-01", span.id));
    server.stop();
}

#[test]
fn the_access_log_names_the_trace() {
    let collector = Collector::start();
    let more = json!({ "access_log": true });
    let server = server(&collector, json!([entry("echo", "echo.wat")]), json!({ "sample_ratio": 0.0 }), more);
    let (header, trace) = parent(1, "00");
    assert_eq!(ask(&server, "/echo", "x", &[("traceparent", &header)]).status, 200);
    server.wait_for_log(&format!("trace_id={trace}"));
    server.stop();
    let server = Server::start(json!({ "access_log": true, "functions": [entry("echo", "echo.wat")] }));
    assert_eq!(ask(&server, "/echo", "x", &[("traceparent", &header)]).status, 200);
    server.wait_for_log("/echo");
    assert!(!server.admin().get("/metrics").text().contains("sledge_spans"));
    assert!(server.threads().iter().all(|(name, _)| name != "telemetry"));
    let log = server.stop_for_log();
    assert!(!log.contains("trace_id"), "{log}");
}

/// What is there when a server stops is delivered, however young it is.
#[test]
fn a_reply_that_goes_out_while_it_is_written_is_over_when_it_is_sent() {
    let collector = Collector::start();
    let server = server(&collector, json!([entry("stream", "stream.c")]), json!({}), json!({}));
    let cases = [
        ("stream -1 0\nsay one\nsleep 80\nsay two", None),
        ("stream 8 0\nsay one\nsleep 80\nsay two", None),
        ("stream -1 0\nsay one\nsleep 80\nexit 3", Some("3")),
    ];
    for (number, (lines, error)) in cases.into_iter().enumerate() {
        let (parent, trace) = parent(number as u32, "01");
        let _ = server.client().try_post("/stream", lines.as_bytes(), &[("traceparent", &parent)]);
        let is_its = |span: &&Span| span.trace == trace && span.kind == SERVER;
        let spans = collector.wait_for(|spans| spans.iter().any(|span| is_its(&span)));
        let span = spans.iter().find(is_its).expect("its span");
        assert_eq!(span.get("http.response.status_code"), "200", "{lines}: {span:?}");
        assert!(span.end_ns - span.begin_ns >= 80_000_000, "{lines}: {span:?}");
        let told = span.error.as_deref();
        assert!(
            told.is_some() == error.is_some() && told.unwrap_or_default().contains(error.unwrap_or_default()),
            "{lines}: {span:?}"
        );
    }
}
