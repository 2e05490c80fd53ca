//! `--dir`: a folder for functions named on the command line.

use std::path::PathBuf;

use crate::config::{DirConfig, DirWrite};

/// Reads `HOST[::GUEST[::ro|rw|scratch]]`.
///
/// # Errors
/// What was expected instead.
pub(super) fn parse(text: &str) -> Result<DirConfig, String> {
    let mut parts = text.split("::");
    let host = parts.next().unwrap_or_default();
    let guest = parts.next().unwrap_or(host);
    let write = match parts.next() {
        None | Some("ro") => DirWrite::No,
        Some("rw") => DirWrite::Yes,
        Some("scratch") => DirWrite::Scratch,
        Some(other) => return Err(format!("`{other}` is none of `ro`, `rw` and `scratch`")),
    };
    if host.is_empty() || guest.is_empty() || parts.next().is_some() {
        return Err("give HOST, HOST::GUEST or HOST::GUEST::rw, such as ./data::/data".to_owned());
    }
    Ok(DirConfig { host: PathBuf::from(host), guest: guest.to_owned(), write, within: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_only_unless_it_says_otherwise() {
        let dir =
            |host: &str, guest: &str, write| Ok(DirConfig { host: host.into(), guest: guest.to_owned(), write, within: None });
        assert_eq!(parse("data"), dir("data", "data", DirWrite::No));
        assert_eq!(parse("./a:b::/data"), dir("./a:b", "/data", DirWrite::No));
        assert_eq!(parse("/x::/data::rw"), dir("/x", "/data", DirWrite::Yes));
        assert_eq!(parse("/x::/data::ro"), dir("/x", "/data", DirWrite::No));
        assert_eq!(parse("/x::/data::scratch"), dir("/x", "/data", DirWrite::Scratch));
        for wrong in ["", "::", "a::", "::b", "a::b::", "a::b::w", "a::b::rw::", "a::b::rw::c"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
