//! What sockets of TCP and UDP have in common: making one, binding it, its addresses.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::{self, Errno};
use rustix::net::sockopt::{
    set_ipv6_v6only, set_socket_recv_buffer_size, set_socket_reuseaddr, set_socket_send_buffer_size, set_tcp_nodelay,
};
use rustix::net::{SocketFlags, SocketType, bind, getsockname, socket_with};
use tracing::Level;

use super::address::{Address, Family, is_unicast, said};
use super::network::Network;
use super::reach::Share;
use super::watched::{Descriptor, Waiting, Watched};
use super::{ErrorCode, Form, answer};
use crate::host::canonical::Typed;
use crate::host::{Call, Flat, Stop};

/// The size of each buffer, of which the kernel keeps twice as much. What was not set would grow with the traffic, up to megabytes.
const BUFFER_BYTES: usize = 128 << 10;

/// A socket.
#[derive(Debug)]
pub(in crate::host) struct Socket {
    /// Whether its addresses are of IPv4 or IPv6.
    pub(in crate::host) family: Family,
    /// Whether it has an address.
    pub(in crate::host) binding: Binding,
    descriptor: Arc<Descriptor>,
    /// None before its first use.
    watched: Option<Arc<Watched>>,
}

/// Whether a socket has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Binding {
    /// It has none.
    None,
    /// `start-bind` was called with this address.
    Started(SocketAddr),
    /// It has one; whether others may reach it there.
    Bound { is_open: bool },
}

/// A resource that is a socket.
pub(in crate::host) trait SocketResource: Typed {
    /// The version whose it is.
    type Form: Form;
    /// Whether its address has to be one machine's.
    const IS_UNICAST: bool;

    /// The socket that it is.
    fn socket(&mut self) -> &mut Socket;

    /// Whether it may be bound, as far as what it has begun beside that says.
    ///
    /// # Errors
    /// What `start-bind` says otherwise.
    fn check_bind(&self) -> Result<(), ErrorCode> {
        Ok(())
    }
}

impl Socket {
    /// Makes one.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::host) fn new(family: Family, ty: SocketType, share: Share) -> Result<Socket, ErrorCode> {
        let fd = socket_with(family.system(), ty, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        if family == Family::Ipv6 {
            set_ipv6_v6only(&fd, true)?;
        }
        if ty == SocketType::STREAM {
            // Connections that are over keep their port for minutes.
            set_socket_reuseaddr(&fd, true)?;
            // WASI has no option for it: without, a program that writes little by little would wait for the other end's delayed acknowledgements.
            set_tcp_nodelay(&fd, true)?;
        }
        set_socket_recv_buffer_size(&fd, BUFFER_BYTES)?;
        set_socket_send_buffer_size(&fd, BUFFER_BYTES)?;
        let descriptor = Arc::new(Descriptor::new(fd, share)?);
        Ok(Socket { family, binding: Binding::None, descriptor, watched: None })
    }

    /// The one of a connection that a socket of that family has accepted.
    pub(in crate::host) const fn accepted(family: Family, descriptor: Arc<Descriptor>, watched: Option<Arc<Watched>>) -> Socket {
        Socket { family, binding: Binding::Bound { is_open: false }, descriptor, watched }
    }

    /// Sets the size of a buffer, and counts what the kernel made of it.
    pub(in crate::host) fn resize(&self, set: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
        set(self.as_fd())?;
        self.descriptor.count_buffers()
    }

    /// Bytes that wait until it takes them.
    pub(in crate::host) fn keep(&self, bytes: Vec<u8>) -> Waiting {
        Waiting::new(bytes, Arc::clone(&self.descriptor))
    }

    /// Its address.
    ///
    /// # Errors
    /// `invalid-state` where it has none.
    pub(in crate::host) fn local(&self) -> Result<SocketAddr, ErrorCode> {
        match self.binding {
            Binding::Bound { .. } => said(getsockname(self)?),
            Binding::None | Binding::Started(_) => Err(ErrorCode::InvalidState),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Makes a socket for the component, if there may be one.
pub(in crate::host) fn open(call: &mut Call<'_>, family: Family, ty: SocketType) -> Result<Result<Socket, ErrorCode>, Stop> {
    let Some(reach) = call.context.ports.sockets()? else { return Ok(Err(ErrorCode::AccessDenied)) };
    Ok(reach.open().and_then(|share| Socket::new(family, ty, share)))
}

/// Whether the sockets of the invocation may reach that address; if not, the log says so.
pub(in crate::host) fn reaches(call: &mut Call<'_>, address: SocketAddr) -> Result<Result<(), ErrorCode>, Stop> {
    if call.context.ports.sockets()?.is_some_and(|reach| reach.reaches(address)) {
        return Ok(Ok(()));
    }
    call.say(Level::WARN, &format!("wasi:sockets: {address} is not in the function's `socket_hosts`"))?;
    Ok(Err(ErrorCode::AccessDenied))
}

/// Goes on when the runtime watches the socket.
///
/// # Errors
/// Those of `then`, or the wait.
pub(in crate::host) fn watched_then<T: SocketResource>(
    call: &mut Call<'_>,
    representation: u32,
    then: impl FnOnce(&mut Call<'_>, Result<Arc<Watched>, ErrorCode>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let socket = call.context.ports.resource::<T>(representation)?.socket();
    if let Some(watched) = &socket.watched {
        let watched = Arc::clone(watched);
        return then(call, Ok(watched));
    }
    let descriptor = Arc::clone(&socket.descriptor);
    Err(call.wait(async move { Watched::new(descriptor) }, move |call, watched| {
        let known = &mut call.context.ports.resource::<T>(representation)?.socket().watched;
        // Another operation may have been faster: then the runtime refuses to watch it twice.
        if known.is_none() {
            *known = watched.ok().map(Arc::new);
        }
        let watched = known.clone().ok_or(ErrorCode::OutOfMemory);
        then(call, watched)
    }))
}

/// `start-bind(self, network: borrow<network>, local-address: ip-socket-address) -> result<_, error-code>`
pub(in crate::host) fn start_bind<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<Network>(2)?;
    let address = call.address(3)?;
    let result = match begin_bind(call.borrowed::<T>(1)?, address) {
        Ok(()) => check_place(call, address)?,
        error => error,
    };
    if result.is_ok() {
        call.borrowed::<T>(1)?.socket().binding = Binding::Started(address);
    }
    answer::<T::Form, _>(call, 15, result)
}

/// Whether a socket may be bound to that address, as far as its state and the address say.
///
/// # Errors
/// What the component is told otherwise.
pub(in crate::host) fn begin_bind<T: SocketResource>(resource: &mut T, address: SocketAddr) -> Result<(), ErrorCode> {
    resource.check_bind()?;
    let socket = resource.socket();
    match socket.binding {
        Binding::None => socket.family.check(address)?,
        Binding::Started(_) => return Err(ErrorCode::ConcurrencyConflict),
        Binding::Bound { .. } => return Err(ErrorCode::InvalidState),
    }
    if T::IS_UNICAST && !is_unicast(address) { Err(ErrorCode::InvalidArgument) } else { Ok(()) }
}

/// Whether a socket may have that address. One with a port that the system chooses may always be had: until it may be reached there, nothing comes of it.
pub(in crate::host) fn check_place(call: &mut Call<'_>, address: SocketAddr) -> Result<Result<(), ErrorCode>, Stop> {
    let Some(reach) = call.context.ports.sockets()? else { return Ok(Err(ErrorCode::AccessDenied)) };
    if address.port() == 0 || reach.may_listen(address) {
        return Ok(Ok(()));
    }
    refuse_place(call, address).map(Err)
}

/// `finish-bind(self) -> result<_, error-code>`
pub(in crate::host) fn finish_bind<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let Binding::Started(address) = call.borrowed::<T>(1)?.socket().binding else {
        return answer::<T::Form, ()>(call, 2, Err(ErrorCode::NotInProgress));
    };
    let bound = bind_now::<T>(call, address)?;
    answer::<T::Form, _>(call, 2, bound)
}

/// Binds the socket of argument 1 to an address that it may have.
pub(in crate::host) fn bind_now<T: SocketResource>(
    call: &mut Call<'_>,
    address: SocketAddr,
) -> Result<Result<(), ErrorCode>, Stop> {
    let is_open = may_listen(call, address)?;
    let socket = call.borrowed::<T>(1)?.socket();
    let bound = bind(&*socket, &address);
    socket.binding = if bound.is_ok() { Binding::Bound { is_open } } else { Binding::None };
    if bound == Err(Errno::PERM) {
        let why = "wasi:sockets: the server was started when no function had sockets, and cannot bind any: restart it";
        call.say(Level::WARN, why)?;
    }
    Ok(bound.map_err(ErrorCode::from))
}

/// Whether others may reach a socket at that address.
pub(in crate::host) fn may_listen(call: &mut Call<'_>, address: SocketAddr) -> Result<bool, Stop> {
    Ok(call.context.ports.sockets()?.is_some_and(|reach| reach.may_listen(address)))
}

/// Others may not reach a socket at that address: the log says so.
pub(in crate::host) fn refuse_place(call: &mut Call<'_>, address: impl fmt::Display) -> Result<ErrorCode, Stop> {
    call.say(Level::WARN, &format!("wasi:sockets: {address} is not in the function's `socket_listen`"))?;
    Ok(ErrorCode::AccessDenied)
}

/// `local-address(self) -> result<ip-socket-address, error-code>`
pub(in crate::host) fn local_address<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let address = call.borrowed::<T>(1)?.socket().local();
    answer::<T::Form, _>(call, 2, address.map(Address))
}

/// `address-family(self) -> ip-address-family`
pub(in crate::host) fn address_family<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::from(call.borrowed::<T>(1)?.socket().family as u32))
}
