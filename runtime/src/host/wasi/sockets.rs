//! Sockets, of which there are none but calls: a function's connections are the server's.

use super::descriptors::Kind;
use super::{Errno, rights};
use crate::host::{Call, Stop};

/// `how` of `sock_shutdown`: no more is written.
const SDFLAGS_WR: u32 = 1 << 1;

/// `sock_accept`, `sock_recv` and `sock_send`: whatever is open is no such socket.
pub(super) fn no_socket(call: &mut Call<'_>) -> Result<(), Stop> {
    call.context.ports.descriptors()?.get(call.args.u32(0))?;
    Err(Errno::NOTSOCK.into())
}

/// `sock_shutdown(fd, how)`: ends a call's request.
pub(super) fn sock_shutdown(call: &mut Call<'_>) -> Result<(), Stop> {
    let (fd, how) = (call.args.u32(0), call.args.u32(1));
    let descriptors = call.context.ports.descriptors_mut()?;
    let Kind::Rpc(_) = descriptors.get(fd)?.kind else { return Err(Errno::NOTSOCK.into()) };
    descriptors.with(fd, rights::SOCK_SHUTDOWN)?;
    if how != SDFLAGS_WR {
        return Err(Errno::NOTSUP.into());
    }
    descriptors.with_rpc(fd, |rpc| -> Result<(), Stop> {
        rpc.end_request();
        Ok(())
    })
}
