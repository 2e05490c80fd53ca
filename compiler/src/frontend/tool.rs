//! Finding and running the programs that producers consist of.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::FrontendError;

/// The first of `names` that is a program in `PATH`, or, given with a slash, a program there.
pub(super) fn find<S: AsRef<OsStr>>(names: impl IntoIterator<Item = S>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    names.into_iter().find_map(|name| {
        let name = Path::new(name.as_ref());
        if name.components().count() > 1 {
            return name.is_file().then(|| name.to_owned());
        }
        env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
    })
}

/// What a command prints on standard output, when it succeeds. Standard error is dropped: this is for questions.
pub(super) fn ask(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a command to its end and returns its standard output; its standard error is the user's.
pub(super) fn run(command: &mut Command) -> Result<Vec<u8>, FrontendError> {
    let failed = |command: &Command, outcome: String| {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        FrontendError::ToolFailed { command: line, outcome }
    };
    let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).output();
    match output {
        Err(error) => Err(failed(command, error.to_string())),
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(failed(command, output.status.to_string())),
    }
}
