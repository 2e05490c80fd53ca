//! The functions in `examples/`, compiled, served, and judged by the same code that judges the demonstration: gps-ekf against an independent
//! computation, image-resize pixel by pixel against a native run, the others by what is on pages and pictures that they never saw.

use serde_json::json;
use sledge_benches::example::{EXAMPLES, Example, IMAGE_CLASSIFY, OCR, PLATE_DETECT};
use sledge_benches::pictures::{self, CLASSES};
use sledge_benches::printed::{self, FONTS, Print};
use sledge_benches::street::{self, Street};
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Compiles an example and has it judged, alone and among many requests of others.
fn serve(example: &Example, options: &[&str]) {
    let artifact = programs::compiled(&example.source(), options);
    let entry = json!({ "name": example.name, "path": artifact, "content_type": example.content_type });
    let server = Server::start(json!({ "functions": [entry] }));
    let body = example.input().expect("the example's input");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = server.client();
                for _ in 0..5 {
                    let reply = client.post(example.route, &body);
                    assert_eq!((reply.status, reply.header("content-type")), (200, Some(example.content_type)), "{options:?}");
                    example.judge(&body, &reply.body).unwrap_or_else(|error| panic!("{} {options:?}: {error:#}", example.name));
                }
            });
        }
    });
    server.stop();
}

#[test]
fn examples_answer_as_they_should() {
    for example in EXAMPLES {
        serve(example, &[]);
    }
}

#[test]
fn gps_ekf_answers_the_same_however_it_is_compiled() {
    for options in [["--bounds", "software", "-O", "0"], ["--bounds", "software", "-O", "3"], ["--cpu", "baseline", "-O", "2"]] {
        serve(&sledge_benches::example::GPS_EKF, &options);
    }
}

/// A server that offers one example.
fn serving(example: &Example) -> Server {
    let artifact = programs::compiled(&example.source(), &[]);
    Server::start(json!({ "functions": [{ "name": example.name, "path": artifact }] }))
}

/// Pages made for this test, in both fonts, three sizes and with dirt.
#[test]
fn ocr_reads_pages_that_it_never_saw() {
    let server = serving(&OCR);
    let client = server.client();
    let (mut shares, mut pages) = (0.0, 0.0);
    for (font, name) in FONTS.iter().enumerate() {
        for em in [32.0, 40.0, 48.0] {
            let seed = 0x0c12 + (em as u64) * 2 + font as u64;
            let text = printed::text(seed, 12, 60);
            let page = printed::print(&text, Print { font, em, noise: 0.005, seed }).expect("a page");
            let reply = client.post("/ocr", &page);
            assert_eq!(reply.status, 200, "{}", reply.text());
            let share = printed::accuracy(&text, &reply.text());
            assert!(share > 0.95, "seed {seed}, {name}, {em} pixels: {share:.4}\n{}", reply.text());
            shares += share;
            pages += 1.0;
        }
    }
    assert!(shares / pages >= 0.98, "{:.4} of the characters are right", shares / pages);
    // Nothing of three dashes says how large letters are, so nothing how far apart.
    let row = |ink: &str| format!("{}\n", ["0".repeat(20), ink.repeat(20)].concat().repeat(3) + &"0".repeat(20));
    let dashes = [row("0").repeat(20), row("1").repeat(6), row("0").repeat(20)].concat();
    let reply = client.post("/ocr", format!("P1 140 46\n{dashes}"));
    assert!(reply.status == 200 && reply.body.len() < 10, "{} {}", reply.status, reply.text());
    // What is no page is refused, with the reason in the log.
    for (body, reason) in
        [(&b"P7"[..], "no portable bitmap"), (b"P4\n99999 1\n", "have to be numbers"), (b"P4 8 2 \xff", "ends before")]
    {
        assert_eq!(client.post("/ocr", body).status, 500);
        server.wait_for_log(reason);
    }
    server.stop();
}

/// Pictures made for this test, as many of each class.
#[test]
fn image_classify_knows_pictures_that_it_never_saw() {
    const SEEDS: std::ops::Range<u64> = 1 << 40..(1 << 40) + 40;
    let server = serving(&IMAGE_CLASSIFY);
    let client = server.client();
    let (mut right, mut all) = (0, 0);
    for (class, name) in CLASSES.iter().enumerate() {
        for seed in SEEDS {
            let reply = client.post("/image-classify", pictures::to_ppm(&pictures::draw(class, seed)));
            assert_eq!(reply.status, 200, "{}", reply.text());
            let label = pictures::label(&reply.body).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error:#}"));
            right += u32::from(label == *name);
            all += 1;
        }
    }
    assert!(right * 10 >= all * 9, "{right} of {all} pictures were told");
    server.stop();
}

/// Streets made for this test; the function's own tests refuse what is no photograph.
#[test]
fn plate_detect_finds_plates_on_streets_that_it_never_saw() {
    const SEEDS: std::ops::Range<u64> = 1 << 40..(1 << 40) + 100;
    let server = serving(&PLATE_DETECT);
    let client = server.client();
    let mut missed = Vec::new();
    for seed in SEEDS {
        let Street { jpeg, plate } = street::draw(seed).expect("a street");
        let reply = client.post("/plate-detect", &jpeg);
        assert_eq!(reply.status, 200, "{}", reply.text());
        if let Err(error) = street::judge(plate, &jpeg, &reply.body) {
            missed.push(format!("seed {seed}: {error:#}"));
        }
    }
    assert!(missed.len() <= 10, "{} of 100 plates were missed:\n{}", missed.len(), missed.join("\n"));
    assert_eq!(client.post("/plate-detect", b"GIF89a").status, 500);
    server.wait_for_log("cannot be decoded as a JPEG");
    server.stop();
}

/// How an example's folder is compiled and its input answered.
fn answers_as_expected(folder: &str, source: &Path, options: &[&str]) -> Server {
    let artifact = programs::compiled(source, options);
    let text = |file: &str| std::fs::read_to_string(example_folder(folder).join(file)).expect("a file");
    let server = Server::start(json!({ "workers": 1, "functions": [{ "name": folder, "path": artifact }] }));
    let reply = server.client().post(&format!("/{folder}"), text("input.txt"));
    assert_eq!((reply.status, reply.text()), (200, text("expected.txt")));
    server
}

fn example_folder(folder: &str) -> PathBuf {
    programs::tests_folder().join("../examples").join(folder)
}

/// The client has the first event long before the last is written.
#[test]
fn events_come_when_they_happen() {
    let sdk = programs::tests_folder().join("../sdk/c");
    let options = ["--", "-mexec-model=reactor", "-I", sdk.to_str().expect("UTF-8")];
    let server = answers_as_expected("events", &example_folder("events").join("events.c"), &options);
    assert_first_comes_early(&server, "/events", "2 3000", b"id: 1\n", b"data: 2 of 2\n\n");
    let refused = server.client().post("/events", "many");
    assert_eq!((refused.status, refused.text().starts_with("give a count")), (400, true), "{refused:?}");
    server.stop();
}

/// What a function in Rust writes to the body of a reply goes out at once, too.
#[test]
fn a_function_in_rust_streams() {
    let artifact = package("sdk/rust", &["--example", "count"]);
    let server = Server::start(json!({ "functions": [{ "name": "count", "path": artifact }] }));
    assert_first_comes_early(&server, "/count", "2 3000", b"1\n", b"2\n");
    assert_eq!(server.client().post("/count", "3 0").text(), "1\n2\n3\n");
    assert_eq!(server.client().post("/count", "x").status, 500);
    server.stop();
}

/// Asks for two pieces that are three seconds apart: what begins with `begin` is there before what ends with `end` is written.
fn assert_first_comes_early(server: &Server, path: &str, body: &str, begin: &[u8], end: &[u8]) {
    let asked = Instant::now();
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes(path, body.as_bytes(), "connection: close\r\n"));
    assert_eq!(raw.head().expect("a head").header("transfer-encoding"), Some("chunked"));
    // The chunk's length stands on a line before it.
    while raw.bytes(1) != b"\n" {}
    assert_eq!(raw.bytes(begin.len()), begin);
    let first = asked.elapsed();
    let rest = raw.everything();
    let all = asked.elapsed();
    assert!(rest.ends_with(&[end, b"\r\n0\r\n\r\n"].concat()), "{:?}", String::from_utf8_lossy(&rest));
    // Only the machine's own slowness may be between writing and reading.
    assert!(all >= Duration::from_millis(2_990) && first < all / 2, "{first:?} of {all:?}");
}

/// Stock Go, with its own tests.
#[test]
fn word_count_in_go_answers() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("examples/word-count: NOT CHECKED: it needs go");
        return;
    }
    let folder = example_folder("word-count");
    let go = |arguments: &[&str], target: &[(&str, &str)]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(&folder).envs(target.iter().copied());
        let done = process::run(&mut command, b"", Duration::from_secs(600));
        assert!(done.status.success(), "{command:?}: {}{}", done.text(), done.stderr);
    };
    go(&["test", "./..."], &[]);
    let module = programs::folder().join("word-count.wasm");
    go(&["build", "-o", module.to_str().expect("UTF-8"), "."], &[("GOOS", "wasip1"), ("GOARCH", "wasm")]);
    // All of Go's runtime takes a minute of processor time at the default level, and five seconds at this one.
    answers_as_expected("word-count", &module, &["-O", "0"]).stop();
}

/// The artifact of a cargo package, built with these options of cargo's.
fn package(folder: &str, options: &[&str]) -> std::path::PathBuf {
    let artifact = programs::folder().join(format!("{}{}.so", folder.replace('/', "-"), options.concat()));
    let source = programs::tests_folder().join("..").join(folder);
    let (source, output) = (source.display().to_string(), artifact.display().to_string());
    let compiled = programs::run_awsm(&[&["compile", &source, "-o", &output, "--"], options].concat());
    assert_eq!(compiled.code(), 0, "{}", compiled.text());
    artifact
}

/// Through the whole Rust SDK: typed JSON, the store, other functions, heads of replies.
#[test]
fn kv_counter_and_fan_out_work_together() {
    let functions = json!([
        { "name": "kv-counter", "path": package("examples/kv-counter", &[]) },
        { "name": "fan-out", "path": package("examples/fan-out", &[]) },
        { "name": "echo", "path": programs::function("echo.wat") },
        { "name": "traps", "path": programs::function("traps.wat") },
    ]);
    let server = Server::start(json!({ "kv": "memory", "functions": functions }));
    let client = server.client();
    let reply = client.post("/kv-counter", r#"{"name": "apples", "by": 40}"#);
    assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"name":"apples","count":40}"#));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let reply = client.post("/kv-counter", r#"{"name": 1}"#);
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("expected a string at line 1 column 10"), "{}", reply.text());

    // Nothing is lost where many count at once.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = server.client();
                (0..25).for_each(|_| assert_eq!(client.post("/kv-counter", r#"{"name": "plums"}"#).status, 200));
            });
        }
    });
    let body = r#"[
        {"function": "kv-counter", "input": "{\"name\": \"plums\", \"by\": 0}"},
        {"function": "echo", "input": "again"},
        {"function": "traps", "input": "u"},
        {"function": "missing"}
    ]"#;
    let expected = json!([
        { "reply": r#"{"name":"plums","count":100}"# },
        { "reply": "again" },
        { "error": "the function failed" },
        { "error": "this tenant has no such function" },
    ]);
    assert_eq!(client.post("/fan-out", body).json(), expected);
    // More than a first buffer holds.
    let long = "long ".repeat(20_000);
    let reply = client.post("/fan-out", json!([{ "function": "echo", "input": long }]).to_string());
    assert_eq!(reply.json(), json!([{ "reply": long }]));
    server.stop();
}

/// What the Rust SDK's tests try natively, in a sandbox.
#[test]
fn the_rust_sdk_does_the_same_in_a_sandbox() {
    let artifact = package("sdk/rust", &["--example", "conformance"]);
    let echo = json!({ "name": "echo", "path": programs::function("echo.wat") });
    let upstream = Server::start(json!({ "functions": [echo] }));
    let function = json!({ "name": "conformance", "path": artifact, "http_hosts": [upstream.address.to_string()] });
    let server = Server::start(json!({ "kv": "memory", "functions": [function] }));
    let reply = server.client().post("/conformance", "");
    assert_eq!((reply.status, reply.text().as_str()), (200, "the same"), "{reply:?}");
    let reply = server.client().post("/conformance", format!("http://{}/echo", upstream.address));
    assert_eq!((reply.status, reply.text().as_str()), (200, "200 1 abc"), "{reply:?}");
    upstream.stop();
    server.stop();
}
