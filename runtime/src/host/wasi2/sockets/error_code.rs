//! `error-code` of `wasi:sockets`, and from the system's errors to it.

use rustix::io::Errno;

use crate::host::canonical::enums;

/// An `error-code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::host) enum ErrorCode {
    Unknown,
    AccessDenied,
    NotSupported,
    InvalidArgument,
    OutOfMemory,
    Timeout,
    ConcurrencyConflict,
    NotInProgress,
    WouldBlock,
    InvalidState,
    NewSocketLimit,
    AddressNotBindable,
    AddressInUse,
    RemoteUnreachable,
    ConnectionRefused,
    ConnectionReset,
    ConnectionAborted,
    DatagramTooLarge,
    NameUnresolvable,
    TemporaryResolverFailure,
    PermanentResolverFailure,
}

enums! { ErrorCode }

impl ErrorCode {
    /// Its name.
    pub(in crate::host) const fn name(self) -> &'static str {
        match self {
            ErrorCode::Unknown => "unknown",
            ErrorCode::AccessDenied => "access-denied",
            ErrorCode::NotSupported => "not-supported",
            ErrorCode::InvalidArgument => "invalid-argument",
            ErrorCode::OutOfMemory => "out-of-memory",
            ErrorCode::Timeout => "timeout",
            ErrorCode::ConcurrencyConflict => "concurrency-conflict",
            ErrorCode::NotInProgress => "not-in-progress",
            ErrorCode::WouldBlock => "would-block",
            ErrorCode::InvalidState => "invalid-state",
            ErrorCode::NewSocketLimit => "new-socket-limit",
            ErrorCode::AddressNotBindable => "address-not-bindable",
            ErrorCode::AddressInUse => "address-in-use",
            ErrorCode::RemoteUnreachable => "remote-unreachable",
            ErrorCode::ConnectionRefused => "connection-refused",
            ErrorCode::ConnectionReset => "connection-reset",
            ErrorCode::ConnectionAborted => "connection-aborted",
            ErrorCode::DatagramTooLarge => "datagram-too-large",
            ErrorCode::NameUnresolvable => "name-unresolvable",
            ErrorCode::TemporaryResolverFailure => "temporary-resolver-failure",
            ErrorCode::PermanentResolverFailure => "permanent-resolver-failure",
        }
    }
}

impl From<Errno> for ErrorCode {
    fn from(errno: Errno) -> ErrorCode {
        match errno {
            Errno::ACCESS | Errno::PERM => ErrorCode::AccessDenied,
            Errno::OPNOTSUPP
            | Errno::AFNOSUPPORT
            | Errno::PFNOSUPPORT
            | Errno::PROTONOSUPPORT
            | Errno::PROTOTYPE
            | Errno::SOCKTNOSUPPORT
            | Errno::NOPROTOOPT => ErrorCode::NotSupported,
            Errno::INVAL => ErrorCode::InvalidArgument,
            Errno::NOMEM | Errno::NOBUFS => ErrorCode::OutOfMemory,
            Errno::TIMEDOUT => ErrorCode::Timeout,
            Errno::ALREADY => ErrorCode::ConcurrencyConflict,
            Errno::AGAIN | Errno::INTR | Errno::INPROGRESS => ErrorCode::WouldBlock,
            Errno::ISCONN | Errno::NOTCONN | Errno::DESTADDRREQ => ErrorCode::InvalidState,
            Errno::MFILE | Errno::NFILE => ErrorCode::NewSocketLimit,
            Errno::ADDRNOTAVAIL => ErrorCode::AddressNotBindable,
            Errno::ADDRINUSE => ErrorCode::AddressInUse,
            Errno::HOSTUNREACH | Errno::HOSTDOWN | Errno::NETUNREACH | Errno::NETDOWN | Errno::NONET => {
                ErrorCode::RemoteUnreachable
            }
            Errno::CONNREFUSED => ErrorCode::ConnectionRefused,
            Errno::CONNRESET | Errno::NETRESET => ErrorCode::ConnectionReset,
            Errno::CONNABORTED => ErrorCode::ConnectionAborted,
            Errno::MSGSIZE => ErrorCode::DatagramTooLarge,
            _ => ErrorCode::Unknown,
        }
    }
}
