//! Error numbers of WASI preview 1 (`errno` in wasi_snapshot_preview1.witx).

/// An error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub u16);

impl Errno {
    /// No error.
    pub const SUCCESS: Errno = Errno(0);
    /// Nothing there now, try again.
    pub const AGAIN: Errno = Errno(6);
    /// No such file descriptor, or not open for this.
    pub const BADF: Errno = Errno(8);
    /// A bad address.
    pub const FAULT: Errno = Errno(21);
    /// An invalid argument.
    pub const INVAL: Errno = Errno(28);
    /// Input or output failed.
    pub const IO: Errno = Errno(29);
    /// No space left.
    pub const NOSPC: Errno = Errno(51);
    /// Not implemented.
    pub const NOSYS: Errno = Errno(52);
    /// Nobody reads the other end.
    pub const PIPE: Errno = Errno(64);
    /// The stream cannot seek.
    pub const SPIPE: Errno = Errno(70);
}
