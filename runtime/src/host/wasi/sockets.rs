//! Sockets, of which there are none: a function's connections are the server's.

use super::Errno;
use crate::host::{Call, Stop};

/// `sock_accept`, `sock_recv`, `sock_send` and `sock_shutdown`: whatever is open is no socket.
pub(super) fn no_socket(call: &mut Call<'_>) -> Result<(), Stop> {
    call.context.ports.descriptors()?.get(call.args.u32(0))?;
    Err(Errno::NOTSOCK.into())
}
