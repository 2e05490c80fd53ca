//! `examples/four-languages`: an application whose components are in Rust, Go, Python and JavaScript. They pass records, variants, lists, resources and streams to each other.

use serde_json::json;
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::server::Server;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// For four builds, of which two install what they need.
const BUILD_TIME_MAX: Duration = Duration::from_secs(900);
const TITLE: &str = "Größe, 大きさ & 🦀";

/// The example's application, built in a folder of its own; none without Go.
fn artifact(example: &Path) -> Option<PathBuf> {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("examples/four-languages: NOT CHECKED: it needs go");
        return None;
    }
    let folder = programs::folder().join("four-languages");
    let run = |command: &mut Command| {
        let done = process::run(command, b"", BUILD_TIME_MAX);
        assert!(done.status.success(), "{command:?}: {}{}", done.text(), done.stderr);
    };
    run(Command::new("cp").arg("-r").args([example, &folder]));
    let mut build = Command::new("sh");
    build.arg("build.sh").current_dir(&folder).env("AWSM", programs::awsm());
    run(build.env("CARGO_TARGET_DIR", programs::awsm().with_file_name("tests-components")));
    let (component, artifact) = (folder.join("orders.wasm"), folder.join("orders.so"));
    let mut compile = programs::awsm_command(&["compile", "-O", "0"]);
    run(compile.arg(component).arg("-o").arg(&artifact));
    Some(artifact)
}

#[test]
#[ignore = "builds for minutes: make test-projects"]
fn components_in_four_languages_answer_together() {
    let example = programs::tests_folder().join("../examples/four-languages");
    let Some(artifact) = artifact(&example) else { return };
    let text = |name: &str| fs::read_to_string(example.join(name)).expect("a file of the example");
    let function = json!({ "name": "orders", "path": artifact, "snapshot": "shared-seed", "deadline_ms": 30_000 });
    let server = Server::start(json!({ "functions": [function] }));
    let ask = |query: &str, body: &str| {
        let reply = server.client().post(&format!("/orders{query}"), body);
        (reply.status, reply.text())
    };
    assert_eq!(ask("", &text("input.txt")), (200, text("expected.txt")), "{}", server.log());
    assert_eq!(ask("?language=de", &text("input.txt")), (200, text("expected-de.txt")));
    // The ledger itself and three parts of it were made in Go; JavaScript has dropped the parts, Rust the rest.
    server.wait_for_log(&format!("closed {TITLE:?} with 4 orders; 1 ledgers, then 0"));

    // An error of JavaScript, of Go and of Python, and a stream that Python cannot read to the end.
    assert_eq!(ask("?language=xx", "a;1;-"), (200, String::new()));
    server.wait_for_log("no page: no words in xx");
    let mistakes = "line 2: \"ä\" is order 1 already\nline 3: not a count: 'x'\nline 4: not a mark: 'loud'\n";
    assert_eq!(ask("", "ä;1;-\nä;2;-\nb;x;-\nc;1;1;loud"), (400, mistakes.to_owned()));
    assert_eq!(ask("", ""), (400, "no orders\n".to_owned()));
    let reply = server.client().post("/orders", b"a;1;-\xff");
    assert_eq!((reply.status, reply.text()), (400, "broken: no UTF-8 at byte 5\n".to_owned()));

    // More than a stream takes at once, more than Go's first heap.
    let (orders, page) = many(5000);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(ask("", &orders), (200, page.clone())));
        }
    });
    server.stop();
}

/// So many orders, and the page of them.
fn many(count: u64) -> (String, String) {
    let (mut orders, mut page) = (String::new(), format!("Orders: {TITLE}\n"));
    let (mut pieces, mut cents) = (0, 0);
    for i in 0..count {
        let (number, price, note) = (i % 7 + 1, i * 100 + i % 100, "ж".repeat(i as usize % 150));
        writeln!(orders, "Stück {i}; {number}; {i}.{:02};; {note}", i % 100).expect("to a string");
        let note = if note.is_empty() { note } else { format!(" ({note}, {} characters)", i % 150) };
        writeln!(page, "{number} Stück {i}, each {i}.{:02}{note}", i % 100).expect("to a string");
        (pieces, cents) = (pieces + number, cents + number * price);
    }
    let sum = format!("Σ {count} × {pieces} = {}.{:02} €\n", cents / 100, cents % 100);
    (orders, format!("{page}{sum}of which cents: {sum}end\n"))
}
