//! Puts the chapters of the site together, and checks the site that mdBook has made of them.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Parser;
use sledge_book::{Site, assemble, html, repository};

/// Puts the documentation together for mdBook
#[derive(Debug, Parser)]
enum Arguments {
    /// Write the chapters into a folder from which mdBook makes the site
    Assemble {
        /// The folder; its `src` is made anew
        folder: PathBuf,
        /// Where the repository's files can be seen, for links to files that are no chapters. Default: such links become text
        #[arg(long, value_name = "URL")]
        source: Option<String>,
    },
    /// Check that every link of a site leads to something
    Check {
        /// The folder with the site
        folder: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse() {
        Arguments::Assemble { folder, source } => {
            let book = std::env::current_exe().context("the folder of the programs")?;
            let programs = book.parent().context("the folder of the programs")?.to_owned();
            assemble(&Site { root: repository(), programs, source }, &folder)
        }
        Arguments::Check { folder } => {
            let wrong = html::check(&folder)?;
            ensure!(wrong.is_empty(), "{} links lead to nothing:\n{}", wrong.len(), wrong.join("\n"));
            Ok(())
        }
    }
}
