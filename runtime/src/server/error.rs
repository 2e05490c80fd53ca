//! Why a server did not start.

use std::io;

use crate::admin::listener::ListenError;
use crate::telemetry::TelemetryError;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Spans cannot be exported.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// There is no admin API.
    #[error(transparent)]
    Listener(#[from] ListenError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(source))]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The socket that was passed is none.
    #[error("the socket passed by the service manager (LISTEN_FDS) is no TCP socket that listens: {0}")]
    Inherited(#[source] io::Error),
    /// A thread did not start.
    #[error("cannot start {what}: {source}")]
    Thread {
        /// Which one.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop what listens there, or give another address with --listen",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege, give another with --listen",
        _ => "",
    }
}

pub(crate) fn thread_error(what: &str, source: io::Error) -> ServerError {
    ServerError::Thread { what: what.to_owned(), source }
}
