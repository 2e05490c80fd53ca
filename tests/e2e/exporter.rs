//! What becomes of spans: collectors that take them late, in part or not at all, and servers that stop.

use crate::collector::{Collector, Conduct};
use crate::entry;
use crate::telemetry::{metric, server};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::{Server, free_address};
use std::time::{Duration, Instant};

#[test]
fn a_server_that_stops_delivers_what_it_has() {
    // One that takes its time, and is waited for.
    let collector = Collector::with(|_| {
        std::thread::sleep(Duration::from_millis(100));
        Conduct::Take
    });
    let server = server(&collector, json!([entry("echo", "echo.wat")]), json!({}), json!({}));
    for _ in 0..300 {
        assert_eq!(server.client().post("/echo", "x").status, 200);
    }
    server.stop();
    assert_eq!(collector.spans().len(), 4 * 300);
}

#[test]
fn a_collector_that_asks_for_a_later_retry_gets_every_span_once() {
    const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
    let collector = Collector::with(|number| if number < 2 { Conduct::Answer(BUSY) } else { Conduct::Take });
    let server = server(&collector, json!([entry("echo", "echo.wat")]), json!({}), json!({}));
    let begin = Instant::now();
    assert_eq!(server.client().post("/echo", "x").status, 200);
    collector.wait_for(|spans| !spans.is_empty());
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
    let end = Instant::now() + TIME_MAX;
    while metric(&server, "delivered") != 4 {
        assert!(Instant::now() < end, "not counted");
    }
    assert_eq!((metric(&server, "refused"), metric(&server, "dropped")), (0, 0));
    let log = server.stop_for_log();
    assert!(!log.contains("cannot be delivered"), "{log}");
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn spans_that_a_collector_rejects_are_counted() {
    let garbage = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n\x08garbage\n";
    let bad = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    let collector = Collector::with(move |number| match number {
        0 => Conduct::Reject(3),
        1 => Conduct::Answer(bad),
        2 => Conduct::Answer(garbage),
        _ => Conduct::Take,
    });
    let server = server(&collector, json!([entry("echo", "echo.wat")]), json!({}), json!({}));
    for (delivered, refused) in [(1, 3), (1, 7), (5, 7), (9, 7)] {
        assert_eq!(server.client().post("/echo", "x").status, 200);
        let end = Instant::now() + TIME_MAX;
        while (metric(&server, "delivered"), metric(&server, "refused")) != (delivered, refused) {
            assert!(Instant::now() < end, "{} {}", metric(&server, "delivered"), metric(&server, "refused"));
        }
    }
    // Said once, not for each batch.
    server.wait_for_log("delivered again");
    let log = server.log();
    assert_eq!((log.matches("cannot be delivered").count(), log.matches("delivered again").count()), (1, 1), "{log}");
    assert!(log.contains("too many") && log.contains("lost=7"), "{log}");
    server.stop();
}

/// Neither a collector that is down nor one that never answers holds anybody up, and the queue has its end.
#[test]
fn collectors_that_do_nothing_harm_no_request() {
    let closed = free_address();
    let slow = Collector::with(|_| Conduct::Ignore);
    for address in [closed, slow.address] {
        let telemetry = json!({ "endpoint": format!("http://{address}") });
        let mut server = Server::start(json!({ "workers": 1, "functions": [entry("echo", "echo.wat")], "telemetry": telemetry }));
        let client = server.client();
        let (begin, mut slowest) = (Instant::now(), Duration::ZERO);
        // Of each, four spans: more than the queue and the batch on its way hold.
        for _ in 0..3_000 {
            let asked = Instant::now();
            assert_eq!(client.post("/echo", "x").text(), "x");
            slowest = slowest.max(asked.elapsed());
        }
        assert!(slowest < Duration::from_secs(5), "{slowest:?}");
        eprintln!("{address}: {:?}, the slowest {slowest:?}", begin.elapsed());
        // All but the queue and two batches: the one that waits for its end, and the one that is put together.
        let (dropped, refused) = (metric(&server, "dropped"), metric(&server, "refused"));
        assert!(dropped > 0 && dropped + refused >= 12_000 - 4_096 - 2 * 512, "{dropped} dropped, {refused} given up");
        assert_eq!(metric(&server, "delivered"), 0);
        let stopping = Instant::now();
        server.signal(Signal::TERM);
        assert!(server.wait(TIME_MAX).success());
        assert!(stopping.elapsed() < Duration::from_secs(20), "{:?}", stopping.elapsed());
        let log = server.whole_log();
        assert!(log.matches("cannot be delivered").count() <= 1, "{log}");
        assert!(log.contains("cannot be delivered") || log.contains("were not delivered in time"), "{log}");
    }
}

#[test]
fn a_wrong_endpoint_is_refused() {
    let path = programs::folder().join("telemetry.json");
    let check = |telemetry: Value, words: &[&str]| {
        let config = json!({ "listen": "127.0.0.1:0", "functions": [entry("echo", "echo.wat")], "telemetry": telemetry });
        std::fs::write(&path, config.to_string()).expect("write a file");
        for command in [["config", "check"], ["serve", "--config"]] {
            let done = process::run(sledge_command(&command).arg(&path), b"", TIME_MAX);
            assert_eq!(done.code(), 1, "{command:?}: {}{}", done.text(), done.stderr);
            for word in words {
                assert!(done.stderr.contains(word), "{command:?}: {word:?} is missing in: {}", done.stderr);
            }
        }
    };
    let good = "http://127.0.0.1:4318";
    check(json!({ "endpoint": "127.0.0.1:4318" }), &["telemetry.json: telemetry.endpoint: `127.0.0.1:4318`", good]);
    check(json!({ "endpoint": "ftp://x" }), &["telemetry.endpoint: `ftp://x` does not begin with http:// or https://"]);
    check(json!({ "endpont": good }), &["unknown key `endpont` at telemetry; did you mean `endpoint`?"]);
    check(json!({}), &["telemetry: missing field `endpoint`"]);
    check(json!({ "endpoint": good, "sample_ratio": 1.5 }), &["telemetry.sample_ratio: 1.5 is out of range"]);
    check(json!({ "endpoint": good, "timeout_ms": 0 }), &["telemetry.timeout_ms: 0 is out of range"]);
    check(json!({ "endpoint": good, "service_name": "" }), &["telemetry.service_name: is empty"]);
    check(
        json!({ "endpoint": good, "headers": { "host": "x", "a b": "y" } }),
        &["telemetry.headers: `host`", "telemetry.headers: `a b`"],
    );
    let nowhere = json!({ "api-key": { "env": "SLEDGE_TEST_NO_SUCH_VARIABLE" } });
    check(json!({ "endpoint": good, "headers": nowhere }), &["telemetry.headers.api-key: environment variable", "is not set"]);
}
