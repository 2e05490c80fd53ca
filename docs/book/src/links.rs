//! Links and headings of a Markdown document. What stands in code is neither.

use std::collections::HashMap;
use std::ops::Range;

/// A link of a document, `[text](target)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it stands, from `[`, or from `!` of an image, to behind `)`.
    pub whole: Range<usize>,
    /// Where its text stands.
    pub text: Range<usize>,
    /// Where its target stands.
    pub target: Range<usize>,
}

impl Link {
    /// Its path and what stands behind `#`, if it leads to a file of the repository or to this document.
    #[must_use]
    pub fn local<'a>(&self, document: &'a str) -> Option<(&'a str, Option<&'a str>)> {
        let target = &document[self.target.clone()];
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        Some(target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor))))
    }

    /// Whether it is an image.
    #[must_use]
    pub fn is_image(&self, document: &str) -> bool {
        document[self.whole.clone()].starts_with('!')
    }
}

/// All links of a document.
#[must_use]
pub fn links(document: &str) -> Vec<Link> {
    let mut found = Vec::new();
    // A link's text may begin on a line before that of its target, and images stand in links.
    let mut open: Vec<usize> = Vec::new();
    for (start, line) in prose(document) {
        if line.trim().is_empty() {
            open.clear();
        }
        let bytes = line.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'`' => at = behind_code(bytes, at),
                b'\\' => at += 2,
                b'[' => {
                    open.push(start + at);
                    at += 1;
                }
                b']' => {
                    at += 1;
                    let Some(begin) = open.pop() else { continue };
                    let Some(rest) = line[at..].strip_prefix('(') else { continue };
                    let Some(length) = rest.find(')') else { continue };
                    let target = start + at + 1..start + at + 1 + length;
                    let text = begin + 1..start + at - 1;
                    let is_image = begin > 0 && document.as_bytes()[begin - 1] == b'!';
                    at += length + 2;
                    found.push(Link { whole: begin - usize::from(is_image)..start + at, text, target });
                }
                _ => at += 1,
            }
        }
    }
    found
}

/// The anchors of a document's headings, as mdBook and code hosts name them.
#[must_use]
pub fn anchors(document: &str) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let headings = prose(document).filter_map(|(_, line)| {
        let text = line.trim_start_matches('#');
        let is_heading = text.len() < line.len() && line.len() - text.len() <= 6 && text.starts_with(' ');
        is_heading.then(|| anchor(text.trim()))
    });
    headings
        .map(|anchor| {
            let count = counts.entry(anchor.clone()).or_default();
            *count += 1;
            if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
        })
        .collect()
}

/// The anchor of one heading.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Lines of a document that are not in blocks of code, with where each begins. What is indented is code, unless it is an item of a list in a list.
fn prose(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let mut fence: Option<&str> = None;
    document.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let text = line.trim_end_matches('\n');
        let mark = ["```", "~~~"].into_iter().find(|mark| text.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let is_code = text.starts_with("    ") && !text.trim_start().starts_with("- ");
                return (!is_code).then_some((start, text));
            }
        }
        None
    })
}

/// Where the code ends that begins with the backquotes at `at`; behind these, if it does not end on the line.
fn behind_code(line: &[u8], at: usize) -> usize {
    let length = |from: usize| line[from..].iter().take_while(|byte| **byte == b'`').count();
    let marks = length(at);
    let mut next = at + marks;
    while next < line.len() {
        match length(next) {
            0 => next += 1,
            other if other == marks => return next + marks,
            other => next += other,
        }
    }
    at + marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(document: &str) -> Vec<&str> {
        links(document).into_iter().map(|link| &document[link.target]).collect()
    }

    #[test]
    fn links_are_found_and_code_is_left_alone() {
        assert_eq!(
            targets("a [b](c.md), [d](e.md#f)\n[g\nh](i) `[j](k)` ``[l] ` [m](n)`` ` [o](p)"),
            ["c.md", "e.md#f", "i", "p"]
        );
        assert_eq!(targets("```c\n[a](b)\n```\n\n    [c](d)\n~~~\n```\n[e](f)\n~~~\n[g](h)\n"), ["h"]);
        assert_eq!(targets("- [a](b)\n  - [c](d)\n    - [e](f)\n"), ["b", "d", "f"]);
        assert_eq!(targets("[![a](b.svg)](c) \\[d](e) [f] (g) [h]"), ["b.svg", "c"]);
    }

    #[test]
    fn a_link_says_what_it_consists_of() {
        let document = "an ![image](a.svg) and [`code`](b.md#c)";
        let [image, link] = &links(document)[..] else { panic!("two links") };
        assert_eq!(&document[image.whole.clone()], "![image](a.svg)");
        assert!(image.is_image(document) && !link.is_image(document));
        assert_eq!((&document[link.text.clone()], link.local(document)), ("`code`", Some(("b.md", Some("c")))));
        let away = "[a](https://b.example/c#d)";
        assert_eq!(links(away)[0].local(away), None);
    }

    #[test]
    fn headings_have_the_anchors_of_mdbook() {
        let document = "# `sledge:call`, from call.wit\n## A\n```sh\n# no\n```\n## A\n#no\n### It's _so_: 1-2\n";
        assert_eq!(anchors(document), ["sledgecall-from-callwit", "a", "a-1", "its-_so_-1-2"]);
    }
}
