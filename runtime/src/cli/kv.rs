//! `sledge kv`: a key-value store's file, while no server uses it.

use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{FAILURE, fail, print_line, written};
use crate::kv::embedded::tool::{self, ToolError};

/// What is done with a store's file.
#[derive(Debug, Subcommand)]
pub(super) enum KvCommand {
    /// Check a file, and count the entries of each tenant
    Check(FileArgs),
    /// Write all entries to standard output, one line of JSON each
    Export(FileArgs),
    /// Create a file from exported entries on standard input
    Import(NewArgs),
    /// Copy the readable entries of a damaged file to a new file, and report what is lost
    Salvage(SalvageArgs),
}

#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// The file that `kv` names in the configuration
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The file to create
    new: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct SalvageArgs {
    /// The damaged file; it is not changed
    file: PathBuf,
    /// The file to create
    new: PathBuf,
}

pub(super) fn kv(command: &KvCommand) -> ExitCode {
    // redb panics over some damaged files; what is caught says so itself.
    std::panic::set_hook(Box::new(|_| {}));
    match command {
        KvCommand::Check(FileArgs { file }) => {
            tool::check(file).map_or_else(fail, |report| print_line(&format!("{report}: good")))
        }
        KvCommand::Export(FileArgs { file }) => match tool::export(file, &mut BufWriter::new(io::stdout().lock())) {
            Err(ToolError::Out(error)) => written(Err(error)),
            exported => exported.map_or_else(fail, |()| ExitCode::SUCCESS),
        },
        KvCommand::Import(NewArgs { new }) => {
            tool::import(new, io::stdin().lock()).map_or_else(fail, |report| print_line(&report.to_string()))
        }
        KvCommand::Salvage(SalvageArgs { file, new }) => match tool::rescue(file, new) {
            Ok(report) => {
                let printed = print_line(&report.to_string());
                if report.lost.is_empty() { printed } else { FAILURE.into() }
            }
            Err(error) => fail(error),
        },
    }
}
