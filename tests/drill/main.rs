//! Documents that are run: each command in a block of `console` as it stands there, and its output compared with the document's.
//!
//! `docs/operations.md` is a drill for operators; the tutorials, the guides and the README show how functions are written. The commands of a document run in one
//! shell, in namespaces of their own (`machine.sh`): processes, network and mounts. So a document may install to /usr/local, listen on port 8080 and fill a disk, and
//! leaves nothing behind. As root or, where the kernel lets users make namespaces, as any user.
//!
//! `BLESS=1 cargo test -p sledge-tests --test drill` writes the outputs into the documents. What differs from run to run (times, sizes, digests) is
//! compared as a word in capitals, and stays in the document as it was seen.

mod document;
mod shell;
mod varying;

use document::{Document, Part};
use shell::Shell;
use sledge_tests::sources::has_go;
use sledge_tests::{golden, process, programs};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Every document that has commands.
const DOCUMENTS: [&str; 15] = [
    "README.md",
    "docs/guides/calls.md",
    "docs/guides/components.md",
    "docs/guides/observing.md",
    "docs/guides/raspberry-pi.md",
    "docs/guides/security.md",
    "docs/guides/speculation.md",
    "docs/guides/state.md",
    "docs/operations.md",
    "docs/tutorials/c.md",
    "docs/tutorials/go.md",
    "docs/tutorials/javascript.md",
    "docs/tutorials/python.md",
    "docs/tutorials/rust.md",
    "docs/tutorials/wat.md",
];

/// Fetching what a package depends on.
const FETCH_TIME_MAX: Duration = Duration::from_secs(300);

fn repository() -> &'static Path {
    programs::tests_folder().parent().expect("the repository")
}

/// Runs a document's commands.
fn follow(document: &str, mut shell: Shell) {
    assert!(DOCUMENTS.contains(&document), "{document} is to be one of DOCUMENTS");
    let file = repository().join(document);
    let text = fs::read_to_string(&file).expect(document);
    let mut parsed = Document::parse(&text);
    let mut differences = Vec::new();
    for part in &mut parsed.parts {
        let Part::Command { line, command, output } = part else { continue };
        let seen = shell.run(command);
        if varying::erased(output) != varying::erased(&seen) {
            let difference = golden::difference(&varying::erased(output), &varying::erased(&seen));
            differences.push(format!("line {line}: {command}{difference}"));
            *output = seen;
        }
    }
    if golden::is_blessing() {
        fs::write(&file, parsed.text()).expect("write the document");
    } else {
        assert!(differences.is_empty(), "{document} differs (BLESS=1 takes it over):\n{}", differences.join("\n"));
    }
}

/// A project `hello`, as a tutorial begins, in a folder of its own. There is no network where commands run: what they need of it is fetched with this one before.
fn project(language: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    succeeds(Command::new(programs::sledge()).args(["new", "hello", "--lang", language]).current_dir(folder.path()));
    folder
}

fn succeeds(command: &mut Command) {
    let done = process::run(command, b"", FETCH_TIME_MAX);
    assert!(done.status.success(), "{command:?}: {}{}", done.text(), done.stderr);
}

#[test]
fn every_command_of_the_operations_manual_says_what_stands_there() {
    follow("docs/operations.md", Shell::of_an_operator());
}

#[test]
fn the_first_function_of_the_readme_answers() {
    follow("README.md", Shell::of_an_author());
}

#[test]
fn the_tutorial_for_c_leads_to_a_deployed_function() {
    follow("docs/tutorials/c.md", Shell::of_an_author());
}

#[test]
fn the_tutorial_for_rust_leads_to_a_deployed_function() {
    let folder = project("rust");
    succeeds(Command::new("cargo").args(["fetch", "--locked"]).current_dir(folder.path().join("hello")));
    follow("docs/tutorials/rust.md", Shell::of_an_author());
}

#[test]
fn the_tutorial_for_go_leads_to_a_deployed_function() {
    if has_go() {
        follow("docs/tutorials/go.md", Shell::of_an_author());
    }
}

#[test]
#[ignore = "builds for minutes: make test-projects"]
fn the_tutorial_for_python_leads_to_a_deployed_function() {
    // What the build installs is fetched before. It is asked for as there, since some packages are given by the machine.
    let folder = project("python");
    let build = fs::read_to_string(folder.path().join("hello/build.sh")).expect("build.sh");
    let spin = build.split_whitespace().find(|word| word.starts_with("spin-sdk==")).expect("a package");
    let wheels = folder.path().join("wheels");
    let download = |arguments: &[&str]| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--dest"]).arg(&wheels).args(arguments).current_dir(folder.path());
        pip
    };
    succeeds(&mut download(&["--requirement", "hello/requirements.txt"]));
    succeeds(&mut download(&["--no-deps", spin]));
    follow(
        "docs/tutorials/python.md",
        Shell::of_an_author_with(&[("PIP_NO_INDEX", "1".as_ref()), ("PIP_FIND_LINKS", wheels.as_ref())]),
    );
}

#[test]
#[ignore = "builds for minutes: make test-projects"]
fn the_tutorial_for_javascript_leads_to_a_deployed_function() {
    let folder = project("js");
    let packages = folder.path().join("packages");
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--cache"]).arg(&packages).current_dir(folder.path().join("hello"));
    succeeds(&mut npm);
    follow(
        "docs/tutorials/javascript.md",
        Shell::of_an_author_with(&[("npm_config_offline", "true".as_ref()), ("npm_config_cache", packages.as_ref())]),
    );
}

#[test]
fn the_tutorial_for_webassembly_text_leads_to_a_deployed_function() {
    follow("docs/tutorials/wat.md", Shell::of_an_author());
}

#[test]
fn the_guide_to_state_holds() {
    follow("docs/guides/state.md", Shell::of_an_author());
}

#[test]
fn the_guide_to_calls_holds() {
    follow("docs/guides/calls.md", Shell::of_an_author());
}

#[test]
fn the_guide_to_components_holds() {
    follow("docs/guides/components.md", Shell::of_an_author());
}

#[test]
fn the_guide_to_speculation_holds() {
    follow("docs/guides/speculation.md", Shell::of_an_author());
}

#[test]
fn the_guide_to_logs_and_metrics_holds() {
    follow("docs/guides/observing.md", Shell::of_an_author());
}

#[test]
fn the_guide_to_raspberry_pis_holds() {
    follow("docs/guides/raspberry-pi.md", Shell::of_an_author());
}

#[test]
fn the_guide_to_security_holds() {
    follow("docs/guides/security.md", Shell::of_an_author());
}

/// Documents below a folder, and the README.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.extension() {
            _ if path.is_dir() => documents(&path, found),
            Some(extension) if extension == "md" => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn every_document_with_commands_is_run() {
    let mut all = vec![repository().join("README.md")];
    documents(&repository().join("docs"), &mut all);
    let has_commands = |path: &&PathBuf| {
        let document = Document::parse(&fs::read_to_string(path).expect("a document"));
        document.parts.iter().any(|part| matches!(part, Part::Command { .. }))
    };
    let name = |path: &PathBuf| path.strip_prefix(repository()).expect("below it").display().to_string();
    let found: BTreeSet<String> = all.iter().filter(has_commands).map(name).collect();
    assert_eq!(found, DOCUMENTS.iter().map(ToString::to_string).collect());
    // Each is named twice here: in the list, and in the test that runs it.
    let tests = include_str!("main.rs");
    for document in DOCUMENTS {
        assert!(tests.matches(&format!("\"{document}\"")).count() >= 2, "{document} is run by no test");
    }
}
