//! Folders of the host that a function may use, as its configuration grants them; and how a guest learns of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::Errno;
use super::descriptors::{Folder, Kind};
use crate::host::{Call, Stop};

/// `preopentype::dir`
const PREOPENTYPE_DIR: u8 = 0;

/// A folder that every sandbox of a function has open from its start.
#[derive(Clone)]
pub struct Grant {
    /// The folder. Everything below is reached through it, and nothing outside of it.
    pub(super) dir: Arc<Dir>,
    /// Its name for the guest.
    pub(super) guest: String,
    /// What the guest may do with what is in it.
    pub(super) access: Access,
}

/// What a guest may do with what is in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    Read,
    /// Change it, for all.
    Write,
    /// Change it for the invocation alone, which then keeps at most so many bytes of that.
    Scratch {
        /// Bytes that are kept at most, in all folders of the function together.
        bytes_max: u64,
    },
}

/// Why a folder cannot be granted.
#[derive(Debug, thiserror::Error)]
#[error("dirs: {} (for the guest `{guest}`): {}{source}", host.display(), beneath(within.as_deref()))]
pub struct GrantError {
    host: PathBuf,
    within: Option<PathBuf>,
    guest: String,
    source: io::Error,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("guest", &self.guest).field("access", &self.access).finish_non_exhaustive()
    }
}

impl Grant {
    /// Its name for the guest.
    pub(in crate::host) fn name(&self) -> &str {
        &self.guest
    }

    /// Opens the folder `host`, which the guest knows as `guest`. Where it has to lie `within` another one, it is reached through that: whatever links there are, it is not outside.
    ///
    /// # Errors
    /// When that fails.
    pub fn open(host: &Path, within: Option<&Path>, guest: &str, access: Access) -> Result<Grant, GrantError> {
        let failed =
            |source| GrantError { host: host.to_owned(), within: within.map(Path::to_owned), guest: guest.to_owned(), source };
        let dir = match within {
            None => Dir::open_ambient_dir(host, ambient_authority()).map_err(failed)?,
            Some(within) => open_beneath(within, host).map_err(failed)?,
        };
        Ok(Grant { dir: Arc::new(dir), guest: guest.to_owned(), access })
    }
}

/// Opens a folder through the one in which it lies.
fn open_beneath(within: &Path, host: &Path) -> io::Result<Dir> {
    let outside = |_| io::Error::new(io::ErrorKind::InvalidInput, "its path does not begin with that of the other");
    let below = host.strip_prefix(within).map_err(outside)?;
    let base = Dir::open_ambient_dir(within, ambient_authority())?;
    // Of an empty path there is nothing to open.
    if below.as_os_str().is_empty() { Ok(base) } else { base.open_dir(below) }
}

/// Where a folder has to lie, for a message.
fn beneath(within: Option<&Path>) -> String {
    within.map(|within| format!("not a folder within {}, which is granted: ", within.display())).unwrap_or_default()
}

/// The name of the grant that a descriptor stands for. C libraries ask from 3 upwards until they get `EBADF`.
fn name<'a>(call: &'a Call<'_>, fd: u32) -> Result<&'a str, Stop> {
    match &call.context.ports.descriptors()?.get(fd)?.kind {
        Kind::Folder(Folder { granted: true, grant, .. }) => {
            call.context.ports.grants().get(*grant).map(|grant| grant.guest.as_str()).ok_or(Stop::Errno(Errno::BADF))
        }
        Kind::Folder(_) | Kind::File(_) | Kind::Stream(_) | Kind::Rpc(_) => Err(Errno::BADF.into()),
    }
}

/// `fd_prestat_get(fd, prestat: *prestat)`
pub(super) fn fd_prestat_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (fd, at) = (call.args.u32(0), call.args.address(1));
    // Names are far shorter than that.
    let bytes = name(call, fd)?.len() as u32;
    // { tag: u8, pr_name_len: u32 at 4 }
    let mut prestat = [PREOPENTYPE_DIR; 8];
    prestat[4..].copy_from_slice(&bytes.to_le_bytes());
    call.memory_mut()?.write(at, &prestat)?;
    Ok(())
}

/// `fd_prestat_dir_name(fd, path: *u8, bytes: size)`: the name without a zero.
pub(super) fn fd_prestat_dir_name(call: &mut Call<'_>) -> Result<(), Stop> {
    let (fd, at, bytes) = (call.args.u32(0), call.args.address(1), call.args.u32(2) as usize);
    let name = name(call, fd)?.to_owned();
    if bytes < name.len() {
        return Err(Errno::NAMETOOLONG.into());
    }
    call.memory_mut()?.write(at, name.as_bytes())?;
    Ok(())
}
