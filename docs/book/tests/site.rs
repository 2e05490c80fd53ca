//! The site as it is put together for mdBook, which need not be there.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use sledge_book::generated::{subcommands, tables};
use sledge_book::links::{anchors, links};
use sledge_book::{Site, assemble, normal, repository};

/// A site without a place where its repository can be seen.
fn site() -> &'static Path {
    static SITE: LazyLock<PathBuf> = LazyLock::new(|| assembled("site", None));
    &SITE
}

/// A site, put together in the folder of that name.
fn assembled(name: &str, source: Option<&str>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let site = Site { root: repository(), programs: programs(), source: source.map(str::to_owned) };
    assemble(&site, &folder).expect("a site");
    folder
}

/// The folder of the programs that were built with this test.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_book")).parent().expect("a folder").to_owned()
}

fn chapters(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            chapters(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_link_of_a_chapter_leads_to_one() {
    let src = site().join("src");
    let mut all = Vec::new();
    chapters(&src, &mut all);
    assert!(all.len() > 50, "{}", all.len());
    let mut count = 0;
    for chapter in &all {
        let text = fs::read_to_string(chapter).expect("a chapter");
        assert!(!text.lines().any(|line| line.starts_with("<!-- generated:")), "{}: a part is missing", chapter.display());
        for link in links(&text) {
            let Some((path, anchor)) = link.local(&text) else { continue };
            let target = if path.is_empty() { chapter.clone() } else { normal(&chapter.parent().expect("a folder").join(path)) };
            assert!(target.is_file(), "{}: {path}", chapter.display());
            let there = || anchors(&fs::read_to_string(&target).expect("a chapter"));
            assert!(
                anchor.is_none_or(|anchor| there().iter().any(|known| known == anchor)),
                "{}: {path}#{anchor:?}",
                chapter.display()
            );
            count += 1;
        }
    }
    assert!(count > 200, "only {count} links were found");
}

#[test]
fn files_that_are_no_chapters_are_linked_where_they_can_be_seen() {
    let chapters = |folder: &Path| {
        ["index.md", "sdk/wit/index.md"].map(|chapter| fs::read_to_string(folder.join("src").join(chapter)).expect("a chapter"))
    };
    let [readme, interfaces] = chapters(site());
    assert!(readme.contains("| know how it works | [ARCHITECTURE.md](ARCHITECTURE.md), `docs/internals`, "), "{readme}");
    assert!(interfaces.contains("](../../docs/internals/grpc.md)"), "{interfaces}");
    let [readme, _] = chapters(&assembled("site-with-source", Some("https://host.example/sledge/main/")));
    assert!(readme.contains("[docs/internals](https://host.example/sledge/main/docs/internals)"), "{readme}");
}

#[test]
fn the_reference_has_every_key_every_command_and_every_metric() {
    let read = |file: &str| fs::read_to_string(site().join("src/docs/reference").join(file)).expect("a chapter");
    let configuration = read("configuration.md");
    let tables = tables();
    let names: Vec<&str> = tables.iter().map(|(path, _)| &**path).collect();
    for name in ["", "[[functions]]", "[functions.cors]", "[[functions.phases]]", "[telemetry]", "[[applications.functions]]"] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    for (path, keys) in &tables {
        let heading = if path.is_empty() { "## The server" } else { &format!("## {path}") };
        let section = configuration.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("{heading} is missing")).1;
        let section = section.split("\n## ").next().expect("a section");
        for key in keys {
            let row =
                section.lines().find(|line| line.starts_with(&format!("| `{key}` | "))).unwrap_or_else(|| panic!("{path} {key}"));
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            assert!(cells.len() == 4 && !cells[1].is_empty() && !cells[3].is_empty(), "{path}: {row}");
        }
    }
    assert!(configuration.contains("| `weight` | integer, 1 to 1000 | `1` |"), "{configuration}");
    assert!(configuration.contains("| `admin_token` | `{ file = ... }` or `{ env = ... }` |"), "{configuration}");
    assert!(configuration.contains("| `policy` | one of | `\"round-robin\"` |") && configuration.contains("<br>`fifo`: "));

    let commands = read("commands.md");
    for heading in
        ["## sledge", "### sledge deploy", "### sledge workflow", "#### sledge workflow explain", "## awsm", "### awsm compile"]
    {
        assert!(commands.lines().any(|line| line == heading), "{heading} is missing");
    }
    for command in subcommands(&commands) {
        assert!(commands.contains(&format!("### sledge {command}\n")), "{command}");
    }
    assert!(commands.contains("--percent <N>"));

    let metrics = read("metrics.md");
    for row in [
        "| `sledge_requests_total` | counter | ",
        "| `sledge_queue_seconds` | histogram | ",
        "| `sledge_connections_total` | counter | `thread` | ",
        "| `sledge_kv_commits_total` | counter | `outcome` | ",
        "| `sledge_speculative_runs_total` | counter | `result`, `tenant` | ",
    ] {
        assert!(metrics.contains(row), "{row} is missing in\n{metrics}");
    }
    assert!(read("wit.md").contains("## keyvalue.wit\n\n```wit\n"));
}

#[test]
fn the_schema_comes_along() {
    for file in ["sledge.schema.json", "src/sledge.schema.json"] {
        let schema = fs::read_to_string(site().join(file)).expect("a schema");
        assert!(schema.contains("\"$id\": \"urn:sledge:schema:configuration\""), "{schema}");
    }
}
