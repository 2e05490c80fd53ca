//! What shells and `man` are told of the program: made of the description of its command line.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::output;

/// Print completions of command lines for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell that reads them
    shell: Shell,
}

/// Write a page of the manual for each command; what `make install` does
#[derive(Debug, clap::Args)]
pub(super) struct Manual {
    /// The folder, which has to exist
    folder: PathBuf,
}

pub(super) fn completions(arguments: &Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "awsm", &mut text);
    output::print(&text)
}

pub(super) fn manual(arguments: &Manual) -> Result<()> {
    clap_mangen::generate_to(super::Arguments::command(), &arguments.folder)
        .with_context(|| arguments.folder.display().to_string())
}
