//! The tables that documents quote are those of the runs that they name.
#![forbid(unsafe_code)]

use std::fs;

use sledge_benches::checkout;
use sledge_benches::run::document;

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
