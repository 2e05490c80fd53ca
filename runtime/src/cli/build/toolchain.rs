//! A toolchain as a child: what it says goes to the user, as it says it.

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use super::Job;
use crate::notice;

/// Why a toolchain made nothing.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ToolchainError {
    /// It cannot be started.
    #[error("cannot start {program}: {source}; {advice}")]
    Start {
        /// Which.
        program: &'static str,
        /// Why not.
        source: io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// It failed, and said why.
    #[error("the build failed: {program}: {status}{advice}")]
    Failed {
        /// Which.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What to do.
        advice: String,
    },
    /// What it said, where it was asked, is not understood.
    #[error("the build failed: {program}: {what}")]
    Strange {
        /// Which.
        program: &'static str,
        /// What it said.
        what: String,
    },
    /// The program wants a library in a version for which there is no replacement.
    #[error("{}: {library} {version} is not supported; supported: {supported}", manifest.display())]
    Version {
        /// What says so.
        manifest: PathBuf,
        /// Which.
        library: &'static str,
        /// In which version.
        version: String,
        /// Versions that are.
        supported: String,
    },
    /// The program does not use gRPC.
    #[error("{}: {library} is not among its dependencies; a function of an application is a gRPC server", manifest.display())]
    NotUsed {
        /// What should say so.
        manifest: PathBuf,
        /// Which.
        library: &'static str,
    },
    /// What takes the place of its libraries cannot be written.
    #[error("{0}")]
    Prepare(sledge_grpc_prepare::Error),
    /// There is no manifest.
    #[error("source: no {name} in {} or above", folder.display())]
    NoManifest {
        /// Which.
        name: &'static str,
        /// Where it was looked for.
        folder: PathBuf,
    },
}

/// A program of a toolchain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool {
    pub program: &'static str,
    /// What to do where there is none.
    pub advice: &'static str,
}

impl Tool {
    /// Runs it for a job, and tells the user that it works. What it prints goes to standard error.
    pub(super) fn run(self, job: &Job<'_>, command: &mut Command) -> Result<ExitStatus, ToolchainError> {
        let Tool { program, advice } = self;
        command.stdin(Stdio::null());
        let run = || command.stdout(io::stderr().as_fd().try_clone_to_owned()?).status();
        let status = notice::during(job.to, || format!("{program} builds {}", job.name), run);
        status.map_err(|source| ToolchainError::Start { program, source, advice })
    }

    /// Asks it for something; what it answers.
    pub(super) fn ask(self, command: &mut Command) -> Result<Vec<u8>, ToolchainError> {
        let Tool { program, advice } = self;
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|source| ToolchainError::Start { program, source, advice })?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(ToolchainError::Failed { program, status: output.status, advice: String::new() })
        }
    }
}
