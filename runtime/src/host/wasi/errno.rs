//! Error numbers of WASI preview 1 (`errno` in wasi_snapshot_preview1.witx), and from the system's to them.

use std::io;

use rustix::io::Errno as System;

/// An error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub u16);

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $number:literal $(= $system:ident)?;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Errno = Errno($number);)*

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => stringify!($name),)*
                    _ => "unknown",
                }
            }
        }

        impl From<System> for Errno {
            fn from(system: System) -> Errno {
                match system {
                    $($(System::$system => Errno::$name,)?)*
                    // Nothing else comes from what is called here; the guest learns that it failed.
                    _ => Errno::IO,
                }
            }
        }
    };
}

errnos! {
    /// No error.
    SUCCESS = 0;
    /// More than may be.
    TOOBIG = 1 = TOOBIG;
    /// Permission denied.
    ACCES = 2 = ACCESS;
    /// Nothing there now, try again.
    AGAIN = 6 = AGAIN;
    /// It has begun already.
    ALREADY = 7 = ALREADY;
    /// No such file descriptor, or not open for this.
    BADF = 8 = BADF;
    /// In use.
    BUSY = 10 = BUSY;
    /// Whom it called failed.
    CHILD = 12 = CHILD;
    /// The disk quota is used up.
    DQUOT = 19 = DQUOT;
    /// It exists already.
    EXIST = 20 = EXIST;
    /// A bad address.
    FAULT = 21 = FAULT;
    /// The file would be too large.
    FBIG = 22 = FBIG;
    /// Not in UTF-8.
    ILSEQ = 25 = ILSEQ;
    /// Interrupted.
    INTR = 27 = INTR;
    /// An invalid argument.
    INVAL = 28 = INVAL;
    /// Input or output failed.
    IO = 29 = IO;
    /// A folder.
    ISDIR = 31 = ISDIR;
    /// Too many symbolic links, or one where none is followed.
    LOOP = 32 = LOOP;
    /// The sandbox has as many file descriptors as it may.
    MFILE = 33 = MFILE;
    /// The file has as many names as it may.
    MLINK = 34 = MLINK;
    /// The name is too long.
    NAMETOOLONG = 37 = NAMETOOLONG;
    /// The server has as many file descriptors as it may.
    NFILE = 41 = NFILE;
    /// No such device.
    NODEV = 43 = NODEV;
    /// It does not exist.
    NOENT = 44 = NOENT;
    /// Out of memory.
    NOMEM = 48 = NOMEM;
    /// No space left.
    NOSPC = 51 = NOSPC;
    /// Not implemented.
    NOSYS = 52 = NOSYS;
    /// Not a folder.
    NOTDIR = 54 = NOTDIR;
    /// The folder is not empty.
    NOTEMPTY = 55 = NOTEMPTY;
    /// It is not served until an operator has put it right.
    NOTRECOVERABLE = 56;
    /// Not a socket.
    NOTSOCK = 57 = NOTSOCK;
    /// Not supported.
    NOTSUP = 58 = OPNOTSUPP;
    /// No such device or address.
    NXIO = 60 = NXIO;
    /// Too large for its type.
    OVERFLOW = 61 = OVERFLOW;
    /// Not permitted.
    PERM = 63 = PERM;
    /// The other end is not read any more.
    PIPE = 64 = PIPE;
    /// The room for a result is too small.
    RANGE = 68 = RANGE;
    /// The folder was granted for reading only.
    ROFS = 69 = ROFS;
    /// The stream cannot seek.
    SPIPE = 70 = SPIPE;
    /// The file is no longer there.
    STALE = 72 = STALE;
    /// It took too long.
    TIMEDOUT = 73 = TIMEDOUT;
    /// The program is running.
    TXTBSY = 74 = TXTBSY;
    /// Not within one granted folder.
    XDEV = 75 = XDEV;
    /// More than the descriptor's rights allow, or outside of the granted folder.
    NOTCAPABLE = 76;
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        if let Some(system) = System::from_io_error(&error) {
            return system.into();
        }
        match error.kind() {
            // cap-std's own refusal: a path that leads out of its folder.
            io::ErrorKind::PermissionDenied => Errno::NOTCAPABLE,
            io::ErrorKind::InvalidInput => Errno::INVAL,
            io::ErrorKind::NotFound => Errno::NOENT,
            _ => Errno::IO,
        }
    }
}
