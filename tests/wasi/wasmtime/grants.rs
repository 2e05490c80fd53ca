//! What programs are given: folders with files in them, and sockets that may do everything.

use std::fs;
use std::net::{Ipv6Addr, TcpListener};
use std::path::Path;

/// Everything that a socket can reach. Of this machine, too, which a larger network does not open.
pub(crate) const SOCKET_HOSTS: [&str; 7] = [
    "0.0.0.0/0:1-65535",
    "127.0.0.0/8:1-65535",
    "[::]/0:1-65535",
    "[::1]:1-65535",
    "localhost:1-65535",
    "*.com:1-65535",
    "*.org:1-65535",
];

/// Everywhere where a socket can be reached.
pub(crate) const SOCKET_LISTEN: [&str; 6] =
    ["0.0.0.0/0:0-65535", "0.0.0.0:0-65535", "127.0.0.0/8:0-65535", "[::]/0:0-65535", "[::]:0-65535", "[::1]:0-65535"];

/// What wasmtime's tests set for programs of this system.
pub(crate) fn environment() -> Vec<(&'static str, &'static str)> {
    let mut variables = vec![("ERRNO_MODE_UNIX", "1")];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        variables.push(("DISABLE_IPV6", "1"));
    }
    variables
}

/// A folder that a program is granted.
#[derive(Clone, Copy)]
pub(crate) struct Folder {
    pub(crate) guest: &'static str,
    pub(crate) writable: bool,
    /// Files with what is in them; a name that ends in `/` is a folder.
    pub(crate) files: &'static [(&'static str, &'static str)],
}

impl Folder {
    pub(crate) const fn empty(guest: &'static str) -> Folder {
        Folder { guest, writable: true, files: &[] }
    }

    pub(crate) const fn with(guest: &'static str, files: &'static [(&'static str, &'static str)]) -> Folder {
        Folder { guest, writable: true, files }
    }

    pub(crate) const fn read_only(guest: &'static str, files: &'static [(&'static str, &'static str)]) -> Folder {
        Folder { guest, writable: false, files }
    }

    /// Makes it at a place of this machine; the option of `sledge run`.
    pub(crate) fn make(&self, host: &Path) -> String {
        fs::create_dir_all(host).expect("a folder");
        for (name, contents) in self.files {
            let path = host.join(name);
            if name.ends_with('/') {
                fs::create_dir_all(path).expect("a folder");
            } else {
                fs::write(path, contents).expect("a file");
            }
        }
        format!("{}::{}{}", host.display(), self.guest, if self.writable { "::rw" } else { "" })
    }
}
