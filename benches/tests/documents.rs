//! What documents show is there: every file that they link, and every table that they quote.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use sledge_benches::checkout;
use sledge_benches::run::document;

/// Documents at the root, in docs/ and in docs/internals/.
fn documents() -> Vec<PathBuf> {
    let root = checkout::root();
    let in_folder = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let all = [root.clone(), root.join("docs"), root.join("docs/internals")]
        .iter()
        .flat_map(|folder| in_folder(folder))
        .collect::<Vec<_>>();
    all.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// What a text links that is a file: `](path)`, without what stands behind `#`.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    files.map(|target| target.split('#').next().unwrap_or(target)).collect()
}

#[test]
fn every_file_that_a_document_links_is_there() {
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let linked = document.parent().unwrap().join(link);
            assert!(linked.exists(), "{} links {link}, which is not there", document.display());
            count += 1;
        }
    }
    assert!(count > 10, "only {count} links were found");
}

#[test]
fn every_table_is_that_of_the_run_that_is_named() {
    let text = fs::read_to_string(document::file()).unwrap();
    let (quoted, _) = document::quoting(&text, &checkout::root(), None).unwrap();
    assert!(text == quoted, "docs/benchmarks.md differs from the summary it quotes: target/release/bench report --document");
}

#[test]
fn a_quotation_is_replaced_with_links_that_lead_to_the_run() {
    let root = tempfile::tempdir().unwrap();
    for (run, number) in [("runs/old", 1), ("runs/new", 2)] {
        fs::create_dir_all(root.path().join(run)).unwrap();
        let summary =
            format!("# Run {number}\n\ncommit {number}\n\n## Load\n\n{number} a second\n\n![p](p.svg)\n\n## Other\n\nno\n");
        fs::write(root.path().join(run).join("summary.md"), summary).unwrap();
    }
    let text = "a\n<!-- run: runs/old -->\n<!-- quoted: Load -->\nwhat was there\n<!-- end -->\n<!-- quoted: machine -->\n<!-- end -->\n\
                <!-- quoted: Phases -->\n<!-- end -->\nb\n";
    let (old, missing) = document::quoting(text, root.path(), None).unwrap();
    let expected = |run: &str, number: i32| {
        format!(
            "a\n<!-- run: {run} -->\n<!-- quoted: Load -->\n\n{number} a second\n\n![p](../{run}/p.svg)\n\n<!-- end -->\n<!-- quoted: machine -->\n\n\
             commit {number}\n\n<!-- end -->\n<!-- quoted: Phases -->\n\nThis run has none of that.\n\n<!-- end -->\nb\n"
        )
    };
    assert_eq!((old.as_str(), missing), (expected("runs/old", 1).as_str(), vec!["Phases".to_owned()]));
    assert_eq!(document::quoting(&old, root.path(), Some("runs/new")).unwrap().0, expected("runs/new", 2));
    for wrong in [
        "<!-- quoted: Load -->\n",
        "<!-- run: runs/none -->\n",
        "<!-- run: runs/old -->\n<!-- quoted: Load -->\n<!-- quoted: Other -->\n",
    ] {
        assert!(document::quoting(wrong, root.path(), None).is_err(), "{wrong}");
    }
}
