//! What is wrong with a store's file, in the words of the operator that has to mend it.

use std::{fmt, io};

use redb::Error;

/// Why a file cannot be used as a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// redb cannot open, read or write it.
    #[error(transparent)]
    Redb(#[from] Error),
    /// A later sledge has written it.
    #[error("its format has version {found}, and this sledge knows those up to {known}")]
    Newer {
        /// The file's version.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// It is not the file that was open before.
    #[error("it is not the file that this server had open")]
    Another,
    /// It is closed, or has no log.
    #[error("it is not open")]
    NotOpen,
    /// Its log cannot be opened, read or written.
    #[error("its log: {0}")]
    Log(#[source] io::Error),
    /// There is no log, which has to be there.
    #[error("its log is missing, and holds the last commits")]
    NoLog,
    /// There is another file in place of the log.
    #[error("there is a file in place of its log that is none")]
    NotALog,
    /// The log was written beside another state of the file.
    #[error("its log does not belong to it")]
    OtherLog,
    /// A record of the log is missing although later ones are there.
    #[error("record {sequence} of its log is damaged, and later ones are there")]
    LogGap {
        /// Which is missing.
        sequence: u64,
    },
}

macro_rules! from_redb {
    ($($error:ty),*) => {
        $(impl From<$error> for FileError {
            fn from(error: $error) -> FileError {
                FileError::Redb(error.into())
            }
        })*
    };
}

from_redb!(redb::DatabaseError, redb::TransactionError, redb::TableError, redb::StorageError, redb::CommitError, io::Error);

impl FileError {
    /// What is wrong with the file of that name, and what to do.
    #[must_use]
    pub fn words(&self, file: &str) -> String {
        match self {
            FileError::Redb(Error::Io(error)) => io_words(error, file),
            FileError::Redb(Error::DatabaseAlreadyOpen) => {
                format!("{file} is in use: it belongs to one server at a time; stop the other server or command")
            }
            FileError::Redb(error) => damaged(error, file),
            FileError::Newer { found, known } => format!(
                "{file} was written by a later sledge (format {found}; this one knows up to {known}): run that one again, or \
                 carry the entries over with its `sledge kv export` and this one's `sledge kv import`"
            ),
            FileError::Another => format!(
                "{file} is not the file that this server had open: put that one back, or restart the server to use this one"
            ),
            FileError::NotOpen => format!("{file} is not open"),
            FileError::Log(error) => log_words(error, file),
            FileError::NoLog => format!(
                "{file} was not closed in good order, and {file}.log with the last commits is missing: put it back, or make a file \
                 without them with `sledge kv salvage {file} NEW`"
            ),
            FileError::NotALog => {
                format!(
                    "{file}.log is no log of a key-value store, which belongs there: move that file away, or name another one in `kv`"
                )
            }
            FileError::OtherLog => format!(
                "{file}.log does not belong to {file}: one of both is an older copy; put the right one back, or make a file of \
                 what fits with `sledge kv salvage {file} NEW`"
            ),
            FileError::LogGap { sequence } => format!(
                "{file}.log is damaged (record {sequence} is missing, and later ones are there): `sledge kv salvage {file} NEW` makes a \
                 new file of what can be read"
            ),
        }
    }
}

fn damaged(why: impl fmt::Display, file: &str) -> String {
    format!("{file} is damaged ({why}): `sledge kv salvage {file} NEW` makes a new file of what can be read")
}

/// The same for an error of the system with the log. What concerns the whole disk is said as of the file itself.
fn log_words(error: &io::Error, file: &str) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EIO | libc::EROFS) => io_words(error, file),
        _ => io_words(error, &format!("{file}.log")),
    }
}

/// The same for an error of the system.
fn io_words(error: &io::Error, file: &str) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => format!("the disk that holds {file} is full (ENOSPC): free some space"),
        Some(libc::EDQUOT) => {
            format!("the disk quota of the user who owns {file} is used up (EDQUOT): free some space or raise it")
        }
        Some(libc::EFBIG) => {
            format!("{file} is as large as the server's files may be (EFBIG): raise LimitFSIZE= of its unit, or `ulimit -f`")
        }
        Some(libc::EIO) => format!("the disk that holds {file} fails (EIO): see the kernel's log"),
        Some(libc::EROFS) => format!("the file system that holds {file} is mounted read-only (EROFS): see the kernel's log"),
        Some(libc::EACCES) => format!("the server's user may not read and write {file} (EACCES): change its owner or its mode"),
        Some(libc::EPERM) => format!("the server may not change {file} (EPERM): see its attributes with lsattr"),
        Some(libc::ENOENT) => format!("there is no {file}, or not its folder (ENOENT)"),
        Some(libc::EISDIR) => format!("{file} is a folder, where a file is needed (EISDIR)"),
        Some(libc::ENOTDIR) => format!("a part of the path {file} is no folder (ENOTDIR)"),
        Some(libc::EMFILE | libc::ENFILE) => format!("{file} cannot be opened: too many files are open (EMFILE, ENFILE)"),
        _ if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) => damaged(error, file),
        _ => format!("{file} cannot be used: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_told_in_words_with_their_names() {
        let words = |number: i32| FileError::from(io::Error::from_raw_os_error(number)).words("/var/lib/sledge/kv.redb");
        assert!(words(libc::ENOSPC).starts_with("the disk that holds /var/lib/sledge/kv.redb is full (ENOSPC)"));
        for (number, name) in [
            (libc::EIO, "EIO"),
            (libc::EDQUOT, "EDQUOT"),
            (libc::EFBIG, "EFBIG"),
            (libc::EROFS, "EROFS"),
            (libc::EACCES, "EACCES"),
            (libc::ENOENT, "ENOENT"),
        ] {
            assert!(words(number).contains(&format!("({name})")), "{}", words(number));
        }
        assert!(FileError::Newer { found: 3, known: 2 }.words("f").contains("format 3"));
    }
}
