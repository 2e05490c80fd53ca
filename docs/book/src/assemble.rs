//! From the repository's documents to the folder that mdBook reads.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::links::{Link, links};
use crate::summary::{self, Summary, in_site};
use crate::{generated, normal};

/// What a site is made of.
#[derive(Clone, Debug)]
pub struct Site {
    /// The repository.
    pub root: PathBuf,
    /// The folder with `awsm` and `sledge`.
    pub programs: PathBuf,
    /// Where the repository's files can be seen.
    pub source: Option<String>,
}

/// Files that come along where a chapter shows them.
const IMAGES: [&str; 3] = ["svg", "png", "jpg"];

/// Writes everything that mdBook needs into a folder: `book.toml`, the site's style, and in `src` the chapters.
///
/// # Errors
/// When a chapter or a program is missing, a link leads to nothing, or a file cannot be written.
pub fn assemble(site: &Site, folder: &Path) -> Result<()> {
    let src = folder.join("src");
    if src.exists() {
        fs::remove_dir_all(&src).with_context(|| src.display().to_string())?;
    }
    for file in ["book.toml", "site.css"] {
        write(&folder.join(file), &read(&site.root.join("docs/book").join(file))?)?;
    }
    let summary = Summary::parse(&read(&site.root.join(summary::FILE))?);
    write(&src.join("SUMMARY.md"), &summary.text)?;
    for chapter in &summary.chapters {
        let text = generated::fill(site, &read(&site.root.join(chapter))?).with_context(|| chapter.display().to_string())?;
        write(&src.join(in_site(chapter)), &linked(site, &summary, chapter, &text, &src)?)?;
    }
    // For editors; the site has them, too.
    for (file, schema) in generated::schemas() {
        write(&folder.join(file), &schema)?;
        write(&src.join(file), &schema)?;
    }
    Ok(())
}

/// A chapter whose links hold in the site.
fn linked(site: &Site, summary: &Summary, chapter: &Path, text: &str, src: &Path) -> Result<String> {
    let folder = chapter.parent().unwrap_or(Path::new(""));
    let (mut changed, mut copied) = (String::new(), 0);
    for link in links(text) {
        let Some((path, anchor)) = link.local(text).filter(|(path, _)| !path.is_empty()) else { continue };
        let target = normal(&folder.join(path));
        if !site.root.join(&target).exists() {
            bail!("{} links {path}, which is not there", chapter.display());
        }
        // The page of a folder is its README.
        let page = [target.clone(), target.join("README.md")].into_iter().find(|page| summary.chapters.contains(page));
        let is_image = target.extension().is_some_and(|extension| IMAGES.iter().any(|image| extension == *image));
        let replaced = match page {
            Some(page) => {
                let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
                let to = from_to(folder, &in_site(&page)).display().to_string();
                format!("[{}]({to}{anchor})", &text[link.text.clone()])
            }
            None if is_image => {
                copy(&site.root.join(&target), &src.join(&target))?;
                continue;
            }
            None => elsewhere(site, &target, &link, text),
        };
        changed += &text[copied..link.whole.start];
        changed += &replaced;
        copied = link.whole.end;
    }
    Ok(changed + &text[copied..])
}

/// A link to a file or folder that is no chapter.
fn elsewhere(site: &Site, target: &Path, link: &Link, text: &str) -> String {
    let words = &text[link.text.clone()];
    let path = target.display();
    match &site.source {
        Some(url) => format!("[{words}]({}/{path})", url.trim_end_matches('/')),
        None if words.trim_matches('`') == path.to_string() => format!("`{path}`"),
        None => format!("{words} (`{path}`)"),
    }
}

/// The way from a folder to a file, both below the same one.
fn from_to(folder: &Path, file: &Path) -> PathBuf {
    let common = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| Path::new(".."));
    let down = file.components().skip(common).map(|part| Path::new(part.as_os_str()));
    up.chain(down).collect()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(path: &Path, text: &str) -> Result<()> {
    make_parent(path)?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to).map(|_| ()).with_context(|| from.display().to_string())
}

fn make_parent(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), |parent| fs::create_dir_all(parent).with_context(|| parent.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_up_and_down() {
        let way = |folder: &str, file: &str| from_to(Path::new(folder), Path::new(file)).display().to_string();
        assert_eq!(way("docs/guides", "docs/guides/state.md"), "state.md");
        assert_eq!(way("docs/guides", "sdk/c/index.md"), "../../sdk/c/index.md");
        assert_eq!(way("", "docs/workflows.md"), "docs/workflows.md");
        assert_eq!(way("docs", "index.md"), "../index.md");
    }
}
