//! What shells and `man` are told of the program: made of the description of its command line.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, fail, written};

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell that reads them
    shell: Shell,
}

/// The arguments of `manual`.
#[derive(Debug, Args)]
pub(super) struct ManualArgs {
    /// The folder, which has to exist
    folder: PathBuf,
}

/// Prints what a shell completes of command lines.
pub(super) fn completions(args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sledge", &mut text);
    written(io::stdout().lock().write_all(&text))
}

/// Writes a page of the manual for each command.
pub(super) fn manual(args: &ManualArgs) -> ExitCode {
    match clap_mangen::generate_to(Cli::command(), &args.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format_args!("{}: {error}", args.folder.display())),
    }
}
