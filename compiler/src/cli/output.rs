//! What a command writes: a file, or standard output. The reader of the latter may go before the end, as `head` does: that is no failure of the command's to report.

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Exit status where the reader of standard output has gone: as of programs that the signal SIGPIPE (13) ends, as a shell shows it.
pub(crate) const CLOSED_EXIT_STATUS: u8 = 128 + 13;

/// The permissions of a new file, before the kernel applies the user's umask.
const NEW_FILE_MODE: u32 = 0o666;
/// What stands for standard output.
const STDOUT: &str = "-";

/// The reader of what a command writes has closed it.
#[derive(Debug, thiserror::Error)]
#[error("the reader of the output has closed it")]
pub(crate) struct Closed;

/// Refuses an output that is one of the inputs, by whatever name: it would take the input's place. Of an input that is a folder, the files in it are not looked at.
pub(super) fn check<'p>(output: &Path, inputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
    let identity = |path: &Path| {
        let file = fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some((file.dev(), file.ino()))
    };
    let Some(existing) = identity(output).filter(|_| output != Path::new(STDOUT)) else { return Ok(()) };
    match inputs.into_iter().find(|input| identity(input) == Some(existing)) {
        Some(input) => {
            bail!(
                "{}: the output would replace the input {}: they are one file; give another with -o",
                output.display(),
                input.display()
            )
        }
        None => Ok(()),
    }
}

/// Writes the whole output or, on failure, leaves what stood there: beside it first, then renamed.
pub(super) fn write(output: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("{}: cannot write", output.display());
    if output == Path::new(STDOUT) {
        return print(bytes);
    }
    if fs::symlink_metadata(output).is_ok_and(|existing| !existing.is_file()) {
        return written(fs::write(output, bytes)).with_context(failed); // a device or a link is written through
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Made by ourselves: errors of `tempfile_in` name the temporary file.
    let create = |path: &Path| File::options().write(true).create_new(true).mode(NEW_FILE_MODE).open(path);
    let mut file = tempfile::Builder::new().prefix(".awsm-").make_in(folder, create).with_context(failed)?;
    file.as_file_mut().write_all(bytes).with_context(failed)?;
    file.persist(output).map_err(|error| error.error).with_context(failed)?;
    Ok(())
}

/// Writes to standard output, to the end.
pub(super) fn print(bytes: &[u8]) -> Result<()> {
    let mut output = io::stdout().lock();
    written(output.write_all(bytes).and_then(|()| output.flush())).context("standard output")
}

/// Tells an output that was closed from one that failed.
pub(super) fn written(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        other => Ok(other?),
    }
}
