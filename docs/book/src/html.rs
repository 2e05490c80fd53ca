//! The site that mdBook has made: whether its links lead to something.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::normal;

/// Links of the site that lead to no file, or to no place in one, each with the page on which it stands.
///
/// # Errors
/// When the folder cannot be read, or has no pages.
pub fn check(folder: &Path) -> Result<Vec<String>> {
    let mut pages = HashMap::new();
    collect(folder, &mut pages)?;
    ensure!(!pages.is_empty(), "{}: no pages; `mdbook build` makes them", folder.display());
    let places: HashMap<&PathBuf, HashSet<&str>> =
        pages.iter().map(|(page, text)| (page, attributes(text, "id").collect())).collect();
    let mut wrong = Vec::new();
    for (page, text) in &pages {
        // It is made for whatever path there is not.
        if page.ends_with("404.html") {
            continue;
        }
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            if link.contains(':') || link.starts_with("//") {
                continue;
            }
            let (path, place) = link.split_once('#').map_or((link, ""), |(path, place)| (path, place));
            let path = path.split('?').next().unwrap_or(path);
            let base = page.parent().unwrap_or(folder);
            let mut target = if path.is_empty() { page.clone() } else { normal(&base.join(path)) };
            if target.is_dir() {
                target.push("index.html");
            }
            let is_there = match places.get(&target) {
                Some(places) => place.is_empty() || places.contains(place),
                None => target.exists(),
            };
            if !is_there {
                wrong.push(format!("{}: {link}", page.strip_prefix(folder).unwrap_or(page).display()));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    Ok(wrong)
}

/// The pages of a folder, with their text.
fn collect(folder: &Path, pages: &mut HashMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            pages.insert(normal(&path), text);
        }
    }
    Ok(())
}

/// The values of an attribute. What stands as text has its quotation marks escaped.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {name}=\"");
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_once(&begin)?;
        let (value, behind) = behind.split_once('"')?;
        rest = behind;
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_nothing_is_named() {
        let folder = std::env::temp_dir().join(format!("sledge-book-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).unwrap();
        let page = r##"<h1 id="x"><a href="#x"></a><a href="a/b.html#y"></a><img src="c.svg"><a href="https://d.example/"></a><a href="a/"></a>"##;
        fs::write(folder.join("index.html"), page).unwrap();
        fs::write(
            folder.join("a/b.html"),
            r##"<p id="y"><a href="../index.html#z"></a><a href="c.html"></a><a href="../index.html"></a>"##,
        )
        .unwrap();
        let wrong = check(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(wrong, ["a/b.html: ../index.html#z", "a/b.html: c.html", "index.html: a/", "index.html: c.svg"]);
    }
}
