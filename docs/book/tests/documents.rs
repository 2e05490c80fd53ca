//! The repository's documents: every link leads to something, every configuration in them is one, and what is to be complete is.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use awsm_abi::trap::TrapCode;
use sledge::config;
use sledge::outcome::Failure;
use sledge_book::links::{anchors, links};
use sledge_book::summary::{self, Summary};
use sledge_book::{normal, repository};

/// Folders whose documents are not ours, or made.
const LEFT_OUT: [&str; 6] = ["target", "node_modules", ".git", ".venv", ".sledge", "runs"];

/// Documents, by their paths in the repository.
fn documents() -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() && !LEFT_OUT.contains(&&*name) {
                collect(&path, found);
            } else if path.is_file() && name.ends_with(".md") {
                found.push(path.strip_prefix(repository()).expect("below it").to_owned());
            }
        }
    }
    let mut found = Vec::new();
    collect(&repository(), &mut found);
    found.sort();
    assert!(found.len() > 50, "only {} documents were found", found.len());
    found
}

fn text(document: &Path) -> String {
    fs::read_to_string(repository().join(document)).expect("a document")
}

/// What of a document's links leads to nothing.
fn wrong_links(document: &Path) -> Vec<String> {
    let text = text(document);
    let folder = document.parent().expect("a folder");
    let mut wrong = Vec::new();
    for link in links(&text) {
        let Some((path, anchor)) = link.local(&text) else { continue };
        let target = if path.is_empty() { document.to_owned() } else { normal(&folder.join(path)) };
        if !repository().join(&target).exists() {
            wrong.push(format!("{}: {path}: is not there", document.display()));
        }
        let Some(anchor) = anchor else { continue };
        if target.extension().is_none_or(|extension| extension != "md") {
            wrong.push(format!("{}: {path}#{anchor}: is no document", document.display()));
        } else if repository().join(&target).exists() && !anchors(&self::text(&target)).iter().any(|known| known == anchor) {
            wrong.push(format!("{}: {path}#{anchor}: no heading there has this anchor", document.display()));
        }
    }
    wrong
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let wrong: Vec<String> = documents().iter().flat_map(|document| wrong_links(document)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Documents that need no place in the site: what `sledge new` fills in.
fn is_a_chapter(document: &Path) -> bool {
    !document.starts_with("templates") && document != Path::new(summary::FILE)
}

#[test]
fn every_document_is_a_chapter_once() {
    let summary = Summary::parse(&text(Path::new(summary::FILE)));
    let chapters: BTreeSet<PathBuf> = summary.chapters.iter().cloned().collect();
    assert_eq!(chapters.len(), summary.chapters.len(), "a chapter is listed twice");
    assert_eq!(chapters, documents().into_iter().filter(|document| is_a_chapter(document)).collect());
}

/// Blocks of TOML, each with its first line's number.
fn blocks_of_toml(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        match line.trim_start() {
            "```toml" => {
                is_inside = true;
                blocks.push((number + 1, String::new()));
            }
            "```" => is_inside = false,
            _ if is_inside => blocks.last_mut().expect("a block").1 += &format!("{line}\n"),
            _ => {}
        }
    }
    blocks
}

/// A part of a configuration, made whole: `[functions.cors]` belongs to a function. None where it is TOML for something else.
fn whole(block: &str) -> Option<String> {
    const FUNCTION: &str = "[[functions]]\nname = \"f\"\npath = \"f.so\"\n";
    let table: toml::Table = block.parse().unwrap_or_else(|error| panic!("{error}:\n{block}"));
    let is_other = ["package", "dependencies", "instances", "exports"].iter().any(|key| table.contains_key(*key));
    let head = if block.contains("[functions.") || block.contains("[[functions.") { FUNCTION } else { "" };
    let head = if block.contains("[[functions]]") { "" } else { head };
    (!is_other).then(|| format!("{head}{block}"))
}

#[test]
fn every_configuration_in_a_document_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sledge.toml");
    let mut count = 0;
    for document in documents() {
        for (line, block) in blocks_of_toml(&text(&document)) {
            // Comments show keys, too: both what is set and what could be.
            let uncommented: String = block.lines().map(|line| uncommented(line).to_owned() + "\n").collect();
            for block in [block, uncommented] {
                let Some(config) = whole(&block) else { continue };
                fs::write(&file, &config).expect("write");
                if let Err(error) = config::read(&file) {
                    panic!("{}:{line}: {error}\n{config}", document.display());
                }
                count += 1;
            }
        }
    }
    assert!(count > 20, "only {count} configurations were found");
}

/// A line whose key is given as a comment, `# key = value`, as if it were set.
fn uncommented(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("# ") else { return line };
    let is_key = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || b"_.".contains(&byte));
    let is_setting = rest.split_once(" = ").is_some_and(|(key, _)| is_key(key));
    let is_table = rest.starts_with('[') && rest.split(']').next().is_some_and(|name| is_key(name.trim_start_matches('[')));
    if is_setting || is_table { rest } else { line }
}

#[test]
fn the_table_of_errors_has_every_code_and_every_trap() {
    let document = text(Path::new("docs/reference/errors.md"));
    let rows: Vec<Vec<&str>> =
        document.lines().filter(|line| line.starts_with("| ")).map(|line| line.split(" | ").collect()).collect();
    for code in Failure::CODES {
        assert!(rows.iter().any(|row| row[1] == format!("`{code}`")), "{code} is missing");
    }
    for trap in TrapCode::ALL {
        let reason = format!("`{}`", trap.identifier());
        assert!(rows.iter().any(|row| row[1] == "`trap`" && row[2].contains(&reason)), "trap {reason} is missing");
    }
    // What needs no argument to be made.
    let failures = [
        Failure::NotFound,
        Failure::MethodNotAllowed,
        Failure::PathTooLong,
        Failure::BodyTooLarge,
        Failure::BodyBroken,
        Failure::BodyTimeout,
        Failure::Busy,
        Failure::FunctionBusy,
        Failure::Overload,
        Failure::Shed,
        Failure::Stopping,
        Failure::Quarantined,
        Failure::NoMemory,
        Failure::NoStore,
        Failure::Deadline,
        Failure::CpuLimit,
        Failure::MemoryLimit,
        Failure::Exit(1),
        Failure::ReplyTooLarge,
        Failure::ReplyIncomplete,
        Failure::ReplyUnfinished,
        Failure::ReplyMissing,
        Failure::Conflict,
        Failure::OutcomeUnknown,
        Failure::Cancelled,
        Failure::Internal,
    ];
    for failure in failures {
        let [status, code, reason] =
            [failure.status().as_str().to_owned(), format!("`{}`", failure.code()), format!("`{}`", failure.reason())];
        let row = rows.iter().find(|row| row[0] == format!("| {status}") && row[1] == code && row[2].contains(&reason));
        let Some(row) = row else { panic!("{status} {code} {reason} is missing") };
        if row.len() == 5 {
            assert_eq!(row[3] == "yes", failure.is_temporary(), "{status} {code} {reason}: again");
        } else {
            assert!(!failure.is_temporary(), "{status} {code} {reason}: may succeed again");
        }
    }
}
