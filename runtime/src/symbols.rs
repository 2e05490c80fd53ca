//! Where the code of functions lies, for perf(1) and gdb(1).
//!
//! Both know code by the file that it is mapped from, and that of functions is mapped from none: it was copied, so that nothing that happens to a file
//! changes what runs. perf looks for such code's names in `/tmp/perf-PID.map`, a line for each function: address and size in hexadecimal, name. gdb takes
//! names and lines from the artifact when it is told where that lies.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use sledge_sandbox::{Artifact, WeakArtifact};

/// Perf's map of this process, if it is wanted.
static MAP: OnceLock<Mutex<Map>> = OnceLock::new();

struct Map {
    file: File,
    /// What was loaded, with its lines. The code of what is gone may lie where that of something else lay before.
    loaded: Vec<(WeakArtifact, String)>,
}

impl Map {
    /// Adds lines, and takes away those of what is gone.
    fn add(&mut self, artifact: &Artifact, lines: String) -> io::Result<()> {
        self.loaded.retain(|(artifact, _)| artifact.is_loaded());
        self.loaded.push((artifact.downgrade(), lines));
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.loaded.iter().try_for_each(|(_, lines)| self.file.write_all(lines.as_bytes()))
    }
}

/// From now on, tells of all that is loaded.
///
/// # Errors
/// Names the file that cannot be made.
pub fn tell() -> io::Result<()> {
    let path = PathBuf::from(format!("/tmp/perf-{}.map", process::id()));
    // One of an earlier process of this number. If it is another user's, the next step says so: a link is not followed.
    let _ = fs::remove_file(&path);
    // Other users are not to know where code lies.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(|error| {
        let what =
            format!("--symbols: cannot make {}: {error}; remove what is there, or start without --symbols", path.display());
        io::Error::new(error.kind(), what)
    })?;
    let _ = MAP.set(Mutex::new(Map { file, loaded: Vec::new() }));
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
    if let Err(error) = map.lock().unwrap_or_else(PoisonError::into_inner).add(artifact, lines.collect()) {
        tracing::warn!(file = %given.display(), %error, "perf will not know the names of its functions");
    }
    if given.extension().is_some_and(|extension| extension == "so") {
        tracing::info!("for gdb: add-symbol-file {} -o {:#x}", given.display(), artifact.address());
    } else {
        tracing::info!("for gdb, which needs a file with the names: compile {} with awsm", given.display());
    }
}
