//! The table of contents, `docs/SUMMARY.md`.
//!
//! It is a document like any other: its links lead to the chapters from where it stands. mdBook wants them relative to the folder of all chapters, which is the repository's.

use std::path::{Path, PathBuf};

use crate::links::links;
use crate::normal;

/// Where it stands.
pub const FILE: &str = "docs/SUMMARY.md";

/// The table of contents.
#[derive(Debug)]
pub struct Summary {
    /// Documents in their order, by their paths in the repository.
    pub chapters: Vec<PathBuf>,
    /// The text for mdBook.
    pub text: String,
}

impl Summary {
    /// Reads the text of [`FILE`].
    #[must_use]
    pub fn parse(document: &str) -> Summary {
        let folder = Path::new(FILE).parent().unwrap_or(Path::new(""));
        let (mut chapters, mut text, mut copied) = (Vec::new(), String::new(), 0);
        for link in links(document) {
            let chapter = normal(&folder.join(&document[link.target.clone()]));
            text += &document[copied..link.target.start];
            text += &in_site(&chapter).display().to_string();
            copied = link.target.end;
            chapters.push(chapter);
        }
        text += &document[copied..];
        Summary { chapters, text }
    }
}

/// Where a chapter lies in the site's sources: mdBook makes a folder's page of `index.md`.
#[must_use]
pub fn in_site(chapter: &Path) -> PathBuf {
    if chapter.ends_with("README.md") { chapter.with_file_name("index.md") } else { chapter.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_are_named_from_the_repository() {
        let summary =
            Summary::parse("# Summary\n\n[Sledge](../README.md)\n\n- [State](guides/state.md)\n  - [C](../sdk/c/README.md)\n");
        assert_eq!(summary.chapters, ["README.md", "docs/guides/state.md", "sdk/c/README.md"].map(PathBuf::from));
        assert_eq!(summary.text, "# Summary\n\n[Sledge](index.md)\n\n- [State](docs/guides/state.md)\n  - [C](sdk/c/index.md)\n");
    }
}
