//! Where the admin door is.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::config::ADMIN_NONE;

/// Where the admin door is.
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
        if is_file { Err(format!("{}: there is a file that is no socket", path.display())) } else { Ok(()) }
    }

    /// Where it is unless told otherwise, for a server that serves on `port`: a folder that belongs to this user. None where there is none.
    #[must_use]
    pub fn default_for(port: u16) -> Option<Address> {
        let of = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let for_root = || rustix::process::geteuid().is_root().then(|| PathBuf::from("/run"));
        let folder = of("RUNTIME_DIRECTORY").or_else(|| of("XDG_RUNTIME_DIR")).or_else(for_root)?;
        Some(Address::Unix(folder.join(format!("sledge-{port}.sock"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_addresses_and_none_are_told_apart() {
        assert_eq!(Address::parse("none"), None);
        assert_eq!(Address::parse("127.0.0.1:9"), Some(Address::Tcp("127.0.0.1:9".parse().unwrap())));
        assert_eq!(Address::parse("/run/x.sock"), Some(Address::Unix("/run/x.sock".into())));
    }
}
