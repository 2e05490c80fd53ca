//! Where the code of functions lies, for perf(1) and gdb(1).
//!
//! Both know code by the file that it is mapped from, and that of functions is mapped from none: it was copied, so that nothing that happens to a file
//! changes what runs. perf looks for such code's names in `/tmp/perf-PID.map`, a line for each function: address and size in hexadecimal, name. gdb takes
//! names and lines from the artifact when it is told where that lies.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use sledge_sandbox::Artifact;

/// Perf's map of this process, if somebody wants to know.
static MAP: OnceLock<Mutex<File>> = OnceLock::new();

/// From now on, tells of all that is loaded.
///
/// # Errors
/// Names the file that cannot be made.
pub fn tell() -> io::Result<()> {
    let path = PathBuf::from(format!("/tmp/perf-{}.map", process::id()));
    // One of an earlier process of this number. If it is somebody else's, the next step says so: a link is not followed.
    let _ = fs::remove_file(&path);
    let file = File::create_new(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    let _ = MAP.set(Mutex::new(file));
    Ok(())
}

/// Tells of an artifact that was loaded, `given` by its user.
pub(crate) fn loaded(artifact: &Artifact, given: &Path) {
    let Some(map) = MAP.get() else { return };
    let file = given.file_name().unwrap_or_default().display();
    let lines = artifact.functions().map(|(addresses, name)| {
        // Names come from the module: no line of the map is theirs to make.
        format!("{:x} {:x} {} [{file}]\n", addresses.start, addresses.len(), name.escape_debug())
    });
    let written = map.lock().unwrap_or_else(PoisonError::into_inner).write_all(lines.collect::<String>().as_bytes());
    if let Err(error) = written {
        tracing::warn!(file = %given.display(), %error, "perf will not know the names of its functions");
    }
    if given.extension().is_some_and(|extension| extension == "so") {
        tracing::info!("for gdb: add-symbol-file {} -o {:#x}", given.display(), artifact.address());
    } else {
        tracing::info!("for gdb, which needs a file with the names: compile {} with awsm", given.display());
    }
}
