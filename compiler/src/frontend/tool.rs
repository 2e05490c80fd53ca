//! Finding and running the programs that producers consist of.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::FrontendError;
use super::diagnostics::Diagnostics;

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

/// Runs a command to its end and returns its standard output; its standard error is the user's. `input` is what it is run for.
pub(super) fn run(command: &mut Command, input: &Path) -> Result<Vec<u8>, FrontendError> {
    let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).output();
    match output {
        Err(error) => Err(failed(command, input, error, String::new())),
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(failed(command, input, output.status, String::new())),
    }
}

/// Runs a command that works in a temporary folder to its end. The user sees what it says as [`Diagnostics`] has it.
pub(super) fn run_in(folder: &Path, command: &mut Command, input: &Path) -> Result<(), FrontendError> {
    let mut diagnostics = Diagnostics::new(folder);
    // What the command itself keeps in between shall lie there, too.
    command.env("TMPDIR", folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(command, input, error, String::new()))?;
    for line in child.stderr.take().into_iter().flat_map(|errors| BufReader::new(errors).split(b'\n')).map_while(Result::ok) {
        // Where the reader of standard error has gone, the work goes on.
        let _ = writeln!(io::stderr(), "{}", diagnostics.line(&String::from_utf8_lossy(&line)));
    }
    let status = child.wait().map_err(|error| failed(command, input, error, String::new()))?;
    if status.success() { Ok(()) } else { Err(failed(command, input, status, diagnostics.advice())) }
}

fn failed(command: &Command, input: &Path, outcome: impl ToString, advice: String) -> FrontendError {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let program = name.to_string_lossy().into_owned();
    FrontendError::ToolFailed { input: input.to_owned(), program, outcome: outcome.to_string(), advice }
}
