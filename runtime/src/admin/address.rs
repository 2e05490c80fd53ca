//! Where the admin API is.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::config::ADMIN_NONE;

/// Where the sockets of servers that root has started are.
const FOR_ROOT: &str = "/run";
/// Where that of the packaged service is (`RuntimeDirectory` in sledge.service); nothing else is there.
const FOR_SERVICE: &str = "/run/sledge";

/// Where the admin API is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}

impl Address {
    /// What a configuration or a command line says: a path, an address, or `none`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Address> {
        match text.parse() {
            _ if text == ADMIN_NONE => None,
            Ok(address) => Some(Address::Tcp(address)),
            Err(_) => Some(Address::Unix(PathBuf::from(text))),
        }
    }

    /// Checks whether there can be a socket, without making it.
    ///
    /// # Errors
    /// Why there cannot be one.
    pub fn check(&self) -> Result<(), String> {
        let Address::Unix(path) = self else { return Ok(()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match folder.metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(format!("{}: {} is not a folder", path.display(), folder.display())),
            Err(error) => return Err(format!("{}: {}: {error}", path.display(), folder.display())),
        }
        let is_file = path.symlink_metadata().is_ok_and(|metadata| !metadata.file_type().is_socket());
        if is_file { Err(format!("{}: a file that is not a socket exists there", path.display())) } else { Ok(()) }
    }

    /// Where it is unless told otherwise, for a server that serves on `port`: a folder that belongs to this user. None where there is none.
    #[must_use]
    pub fn default_for(port: u16) -> Option<Address> {
        let for_root = || rustix::process::geteuid().is_root().then(|| PathBuf::from(FOR_ROOT));
        Some(Address::Unix(own_folders().next().or_else(for_root)?.join(name(port))))
    }

    /// Where it may be, the likeliest first, for a client that is not told: where a server of this user or of root that serves on `port` has it,
    /// and where the packaged service has it.
    #[must_use]
    pub fn candidates(port: u16) -> Vec<Address> {
        let folders = own_folders().chain([PathBuf::from(FOR_ROOT)]);
        let mut paths: Vec<PathBuf> = folders.map(|folder| folder.join(name(port))).collect();
        paths.push(of_service(Path::new(FOR_SERVICE)).unwrap_or_else(|| Path::new(FOR_SERVICE).join(name(port))));
        paths.into_iter().map(Address::Unix).collect()
    }
}

/// Folders for sockets that belong to this user.
fn own_folders() -> impl Iterator<Item = PathBuf> {
    let variables = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"].into_iter();
    variables.filter_map(std::env::var_os).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn name(port: u16) -> String {
    format!("sledge-{port}.sock")
}

/// The service's socket, whatever port it serves on, if there is one.
fn of_service(folder: &Path) -> Option<PathBuf> {
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sock");
    let mut sockets = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(is_socket);
    sockets.next().filter(|_| sockets.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_services_socket_is_found_on_any_port() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(of_service(&path("absent")), None);
        fs::write(path("sledge-80.sock"), "").unwrap();
        fs::write(path("another"), "").unwrap();
        assert_eq!(of_service(folder.path()), Some(path("sledge-80.sock")));
        fs::write(path("sledge-443.sock"), "").unwrap();
        assert_eq!(of_service(folder.path()), None, "which of them is meant?");
    }

    #[test]
    fn paths_addresses_and_none_are_told_apart() {
        assert_eq!(Address::parse("none"), None);
        assert_eq!(Address::parse("127.0.0.1:9"), Some(Address::Tcp("127.0.0.1:9".parse().unwrap())));
        assert_eq!(Address::parse("/run/x.sock"), Some(Address::Unix("/run/x.sock".into())));
    }
}
