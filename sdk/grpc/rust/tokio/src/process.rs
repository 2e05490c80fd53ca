//! Other processes: a function can start none.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};

/// A program that cannot be started.
#[derive(Debug)]
pub struct Command(());

/// There is none.
#[derive(Debug)]
pub struct Child(());

fn none<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a function starts no other programs"))
}

impl Command {
    #[allow(missing_docs)]
    pub fn new(_: impl AsRef<OsStr>) -> Command {
        Command(())
    }

    #[allow(missing_docs)]
    pub fn arg(&mut self, _: impl AsRef<OsStr>) -> &mut Command {
        self
    }

    #[allow(missing_docs)]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&mut self, _: I) -> &mut Command {
        self
    }

    #[allow(missing_docs)]
    pub fn env(&mut self, _: impl AsRef<OsStr>, _: impl AsRef<OsStr>) -> &mut Command {
        self
    }

    #[allow(missing_docs)]
    pub fn current_dir(&mut self, _: impl AsRef<Path>) -> &mut Command {
        self
    }

    #[allow(missing_docs)]
    pub fn stdin(&mut self, _: impl Into<Stdio>) -> &mut Command {
        self
    }

    #[allow(missing_docs)]
    pub fn stdout(&mut self, _: impl Into<Stdio>) -> &mut Command {
        self
    }

    #[allow(missing_docs)]
    pub fn stderr(&mut self, _: impl Into<Stdio>) -> &mut Command {
        self
    }

    /// # Errors
    /// Always.
    pub fn spawn(&mut self) -> io::Result<Child> {
        none()
    }

    /// # Errors
    /// Always.
    pub async fn output(&mut self) -> io::Result<Output> {
        none()
    }

    /// # Errors
    /// Always.
    pub async fn status(&mut self) -> io::Result<ExitStatus> {
        none()
    }
}

impl Child {
    /// # Errors
    /// Always.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        none()
    }

    /// # Errors
    /// Always.
    pub async fn kill(&mut self) -> io::Result<()> {
        none()
    }
}
