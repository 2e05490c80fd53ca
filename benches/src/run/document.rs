//! `docs/benchmarks.md` quotes the summary of a committed run: between `<!-- quoted: HEADING -->` and `<!-- end -->` stands what the summary
//! has below that heading, with links that lead there; `<!-- run: FOLDER -->` says which run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::checkout;

const RUN: &str = "<!-- run: ";
const QUOTED: &str = "<!-- quoted: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";
/// By this name, what a summary has before its first heading.
const HEAD: &str = "machine";
/// In place of what a run has not.
const NONE: &str = "This run has none of that.";

/// The document.
pub fn file() -> PathBuf {
    checkout::root().join("docs/benchmarks.md")
}

/// Writes the document anew, quoting the run in `folder`, which is in this checkout. Returns the headings that the run has not.
///
/// # Errors
///
/// If it has no summary, or the document is not as it should be.
pub fn write(folder: &Path) -> Result<Vec<String>> {
    let root = checkout::root();
    let inside = fs::canonicalize(folder)?.strip_prefix(fs::canonicalize(&root)?).map(Path::to_owned);
    let inside = inside.ok().and_then(|path| Some(path.to_str()?.to_owned()));
    let inside = inside.with_context(|| format!("{} is not in this checkout", folder.display()))?;
    let text = fs::read_to_string(file()).with_context(|| format!("cannot read {}", file().display()))?;
    let (text, missing) = quoting(&text, &root, Some(&inside)).with_context(|| file().display().to_string())?;
    fs::write(file(), text).with_context(|| format!("cannot write {}", file().display()))?;
    Ok(missing)
}

/// `text` with its quotations from `run`, or from the run that it names, and the headings that the run has not.
///
/// # Errors
///
/// If it names none, that has no summary, or a quotation has no end.
pub fn quoting(text: &str, root: &Path, run: Option<&str>) -> Result<(String, Vec<String>)> {
    let named = |line: &str, what: &str| Some(line.strip_prefix(what)?.strip_suffix(CLOSE)?.to_owned());
    let run = match run {
        Some(run) => run.to_owned(),
        None => text.lines().find_map(|line| named(line, RUN)).with_context(|| format!("no line '{RUN}FOLDER{CLOSE}'"))?,
    };
    let file = root.join(&run).join("summary.md");
    let summary = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let (mut out, mut missing, mut lines) = (String::new(), Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        if line.starts_with(RUN) {
            out.push_str(&format!("{RUN}{run}{CLOSE}\n"));
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if let Some(heading) = named(line, QUOTED) {
            let section = section(&summary, &heading).map(|section| linked(section, &run));
            missing.extend(section.is_none().then_some(heading));
            out.push_str(&format!("\n{}\n\n{END}\n", section.as_deref().unwrap_or(NONE)));
            let end = lines.find(|line| *line == END || line.starts_with(QUOTED));
            ensure!(end == Some(END), "no '{END}' behind '{line}'");
        }
    }
    ensure!(out.lines().any(|line| line.starts_with(RUN)), "no line '{RUN}FOLDER{CLOSE}'");
    Ok((out, missing))
}

/// What a summary has below a heading.
fn section<'a>(summary: &'a str, heading: &str) -> Option<&'a str> {
    let begin = match heading {
        HEAD => summary.find('\n')?,
        _ => {
            let line = format!("\n## {heading}\n");
            summary.find(&line)? + line.len()
        }
    };
    let rest = &summary[begin..];
    let section = rest[..rest.find("\n## ").unwrap_or(rest.len())].trim();
    (!section.is_empty()).then_some(section)
}

/// With links to the run's files.
fn linked(section: &str, run: &str) -> String {
    let mut parts = section.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(&format!("](../{run}/{part}"));
    }
    text
}
