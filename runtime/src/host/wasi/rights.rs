//! Rights of file descriptors (`rights` in wasi_snapshot_preview1.witx), and what a descriptor without one of them answers.

/// To flush a file's contents.
pub(in crate::host) const FD_DATASYNC: u64 = 1 << 0;
/// To read.
pub(in crate::host) const FD_READ: u64 = 1 << 1;
/// To move the position; implies [`FD_TELL`].
pub(in crate::host) const FD_SEEK: u64 = 1 << 2;
/// To change flags.
pub(in crate::host) const FD_FDSTAT_SET_FLAGS: u64 = 1 << 3;
/// To flush a file and what is known about it.
pub(in crate::host) const FD_SYNC: u64 = 1 << 4;
/// To ask for the position.
pub(in crate::host) const FD_TELL: u64 = 1 << 5;
/// To write.
pub(in crate::host) const FD_WRITE: u64 = 1 << 6;
/// To say how a file will be used.
pub(in crate::host) const FD_ADVISE: u64 = 1 << 7;
/// To reserve space.
pub(in crate::host) const FD_ALLOCATE: u64 = 1 << 8;
/// To make folders.
pub(in crate::host) const PATH_CREATE_DIRECTORY: u64 = 1 << 9;
/// To make files.
pub(in crate::host) const PATH_CREATE_FILE: u64 = 1 << 10;
/// To give a file of this folder another name.
pub(in crate::host) const PATH_LINK_SOURCE: u64 = 1 << 11;
/// To make such names in this folder.
pub(in crate::host) const PATH_LINK_TARGET: u64 = 1 << 12;
/// To open.
pub(in crate::host) const PATH_OPEN: u64 = 1 << 13;
/// To list.
pub(in crate::host) const FD_READDIR: u64 = 1 << 14;
/// To read symbolic links.
pub(in crate::host) const PATH_READLINK: u64 = 1 << 15;
/// To rename away.
pub(in crate::host) const PATH_RENAME_SOURCE: u64 = 1 << 16;
/// To rename to.
pub(in crate::host) const PATH_RENAME_TARGET: u64 = 1 << 17;
/// To ask about what a path names.
pub(in crate::host) const PATH_FILESTAT_GET: u64 = 1 << 18;
/// To truncate what a path names.
pub(in crate::host) const PATH_FILESTAT_SET_SIZE: u64 = 1 << 19;
/// To change the times of what a path names.
pub(in crate::host) const PATH_FILESTAT_SET_TIMES: u64 = 1 << 20;
/// To ask about a file.
pub(in crate::host) const FD_FILESTAT_GET: u64 = 1 << 21;
/// To truncate a file.
pub(in crate::host) const FD_FILESTAT_SET_SIZE: u64 = 1 << 22;
/// To change a file's times.
pub(in crate::host) const FD_FILESTAT_SET_TIMES: u64 = 1 << 23;
/// To make symbolic links.
pub(in crate::host) const PATH_SYMLINK: u64 = 1 << 24;
/// To remove folders.
pub(in crate::host) const PATH_REMOVE_DIRECTORY: u64 = 1 << 25;
/// To remove files.
pub(in crate::host) const PATH_UNLINK_FILE: u64 = 1 << 26;
/// To wait for.
pub(in crate::host) const POLL_FD_READWRITE: u64 = 1 << 27;
/// To end one direction of a connection.
pub(in crate::host) const SOCK_SHUTDOWN: u64 = 1 << 28;

/// What can be done with a file.
pub(in crate::host) const FILE: u64 = FD_DATASYNC
    | FD_READ
    | FD_SEEK
    | FD_FDSTAT_SET_FLAGS
    | FD_SYNC
    | FD_TELL
    | FD_WRITE
    | FD_ADVISE
    | FD_ALLOCATE
    | FD_FILESTAT_GET
    | FD_FILESTAT_SET_SIZE
    | FD_FILESTAT_SET_TIMES
    | POLL_FD_READWRITE;

/// What can be done with a folder.
pub(in crate::host) const FOLDER: u64 = FD_FDSTAT_SET_FLAGS
    | FD_SYNC
    | PATH_CREATE_DIRECTORY
    | PATH_CREATE_FILE
    | PATH_LINK_SOURCE
    | PATH_LINK_TARGET
    | PATH_OPEN
    | FD_READDIR
    | PATH_READLINK
    | PATH_RENAME_SOURCE
    | PATH_RENAME_TARGET
    | PATH_FILESTAT_GET
    | PATH_FILESTAT_SET_SIZE
    | PATH_FILESTAT_SET_TIMES
    | FD_FILESTAT_GET
    | FD_FILESTAT_SET_TIMES
    | PATH_SYMLINK
    | PATH_REMOVE_DIRECTORY
    | PATH_UNLINK_FILE;

/// What changes something on the disk: no descriptor has it below a folder that was granted for reading only.
pub(in crate::host) const CHANGING: u64 = FD_WRITE
    | FD_ALLOCATE
    | FD_FILESTAT_SET_SIZE
    | FD_FILESTAT_SET_TIMES
    | PATH_CREATE_DIRECTORY
    | PATH_CREATE_FILE
    | PATH_LINK_SOURCE
    | PATH_LINK_TARGET
    | PATH_RENAME_SOURCE
    | PATH_RENAME_TARGET
    | PATH_FILESTAT_SET_SIZE
    | PATH_FILESTAT_SET_TIMES
    | PATH_SYMLINK
    | PATH_REMOVE_DIRECTORY
    | PATH_UNLINK_FILE;
