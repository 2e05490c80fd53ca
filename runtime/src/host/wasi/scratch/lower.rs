//! The host's folder below the private changes: looked at and read, never changed. As everywhere, cap-std keeps each path within the folder.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::{FileType, RawDir, fstat};

use crate::host::wasi::folders::itself;
use crate::host::wasi::stat::Stat;
use crate::host::wasi::{Errno, folders};

/// Bytes of entries that are asked of the kernel at a time.
const ENTRIES_BYTES: usize = 8 << 10;

/// A granted folder of the host.
#[derive(Debug)]
pub(super) struct Lower {
    dir: Arc<Dir>,
}

impl Lower {
    pub(super) const fn new(dir: Arc<Dir>) -> Lower {
        Lower { dir }
    }

    /// What is known of a path, whose last name may be a link; none where there is nothing.
    pub(super) fn find(&self, path: &Path) -> Result<Option<Stat>, Errno> {
        let found = if path.as_os_str().is_empty() { self.dir.dir_metadata() } else { self.dir.symlink_metadata(path) };
        match found {
            Ok(metadata) => Ok(Some(Stat::from(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The same of what has to be there: others may have removed it.
    pub(super) fn stat(&self, path: &Path) -> Result<Stat, Errno> {
        self.find(path)?.ok_or(Errno::NOENT)
    }

    /// What a symbolic link says, wherever that leads.
    pub(super) fn read_link(&self, path: &Path) -> Result<PathBuf, Errno> {
        Ok(self.dir.read_link_contents(path)?)
    }

    /// Opens a file to read it.
    pub(super) fn open(&self, path: &Path) -> Result<fs::File, Errno> {
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No);
        // A pipe that took its place must not hold anything up.
        options.nonblock(true);
        let file = self.dir.open_with(path, &options)?.into_std();
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file),
            _ => Err(Errno::STALE),
        }
    }

    fn folder(&self, path: &Path) -> Result<Dir, Errno> {
        Ok(if path.as_os_str().is_empty() { self.dir.try_clone() } else { self.dir.open_dir(path) }?)
    }

    /// Lists a folder from a cookie on, as [`folders::list`].
    pub(super) fn list(
        &self,
        path: &Path,
        cookie: u64,
        each: impl FnMut(folders::Entry<'_>) -> bool,
    ) -> Result<(u64, bool), Errno> {
        Ok(folders::list(&self.folder(path)?, cookie, each)?)
    }

    /// Whether a folder has nothing but what `is_hidden` says, names that are not UTF-8 included.
    pub(super) fn is_empty(&self, path: &Path, is_hidden: impl Fn(&OsStr) -> bool) -> Result<bool, Errno> {
        let folder = itself(&self.folder(path)?)?;
        let mut entries = Vec::with_capacity(ENTRIES_BYTES);
        let mut entries = RawDir::new(&folder, entries.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." && !is_hidden(name) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
