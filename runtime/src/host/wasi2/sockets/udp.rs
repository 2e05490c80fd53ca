//! `udp-socket`: an address, and the peer that it is associated with, if any. What is sent and received goes through [`datagrams`](super::datagrams).

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use awsm_abi::types::ValType::I32;
use rustix::io::Errno;
use rustix::net::{SocketType, bind, connect, connect_unspec, getsockname};

use super::address::{Address, Family, said};
use super::datagrams::{IncomingDatagramStream, OutgoingDatagramStream};
use super::socket::{
    Binding, Socket, SocketResource, address_family, finish_bind, local_address, open, reaches, start_bind, watched_then,
};
use super::watched::Watched;
use super::{ErrorCode, Form, UDP, Wasi2, answer};
use crate::host::Effect::{External, Stream};
use crate::host::canonical::{Own, Resource, Typed, canonical, number};
use crate::host::wasi2::streams::subscribe;
use crate::host::{Call, Flat, HostFunction, Stop};

/// The interfaces, but for streams and options.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical("wasi:sockets/udp-create-socket@0.2", "create-udp-socket", &[I32, I32, I32], &[], External, create::<Wasi2>),
    canonical(
        UDP,
        "[method]udp-socket.start-bind",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        start_bind::<UdpSocket<Wasi2>>,
    ),
    canonical(UDP, "[method]udp-socket.finish-bind", &[I32, I32, I32], &[], External, finish_bind::<UdpSocket<Wasi2>>),
    canonical(
        UDP,
        "[method]udp-socket.stream",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        stream,
    ),
    canonical(UDP, "[method]udp-socket.local-address", &[I32, I32, I32], &[], Stream, local_address::<UdpSocket<Wasi2>>),
    canonical(UDP, "[method]udp-socket.remote-address", &[I32, I32, I32], &[], Stream, remote_address::<Wasi2>),
    canonical(UDP, "[method]udp-socket.address-family", &[I32, I32], &[I32], Stream, address_family::<UdpSocket<Wasi2>>),
    canonical(UDP, "[method]udp-socket.subscribe", &[I32, I32], &[I32], Stream, subscribe::<UdpSocket<Wasi2>>),
];

/// A `udp-socket`, in a version's form. What waits for it waits for its streams, so it is always ready itself.
#[derive(Debug)]
pub(in crate::host) struct UdpSocket<F> {
    /// What it has in common with those of TCP.
    pub(in crate::host) socket: Socket,
    /// What it receives from and sends to, once that is used.
    pub(in crate::host) association: Option<Arc<Association>>,
    form: PhantomData<fn() -> F>,
}

/// What the two streams of a socket have in common, or what uses it without streams.
#[derive(Debug)]
pub(in crate::host) struct Association {
    /// Its socket.
    pub(in crate::host) watched: Arc<Watched>,
    /// Its socket's.
    pub(in crate::host) family: Family,
    /// The only one that is sent to and received from, if it is only one.
    pub(in crate::host) remote: Option<SocketAddr>,
    /// Whether all datagrams are received where there is no peer, not only those from where the function may send.
    pub(in crate::host) is_open: bool,
    /// Whether the socket has made no other since.
    is_current: AtomicBool,
}

impl Association {
    /// Whether its streams may still be used.
    ///
    /// # Errors
    /// `invalid-state` where the socket has others by now.
    pub(in crate::host) fn check(&self) -> Result<(), ErrorCode> {
        // Relaxed: one guest, which does one thing after the other.
        if self.is_current.load(Ordering::Relaxed) { Ok(()) } else { Err(ErrorCode::InvalidState) }
    }
}

impl<F: Form> Resource for UdpSocket<F> {}

impl<F: Form> Typed for UdpSocket<F> {
    const NUMBER: u32 = number(F::UDP, "udp-socket");
}

impl<F: Form> SocketResource for UdpSocket<F> {
    type Form = F;
    const IS_UNICAST: bool = false;

    fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }
}

impl<F: Form> UdpSocket<F> {
    /// Whether it may have streams to that address, as far as its state and the address say.
    fn check_stream(&self, remote: Option<SocketAddr>) -> Result<(), ErrorCode> {
        if !matches!(self.socket.binding, Binding::Bound { .. }) {
            return Err(ErrorCode::InvalidState);
        }
        remote.map_or(Ok(()), |remote| self.socket.family.check_remote(remote))
    }

    /// Associates it with an address, or with none.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::host) fn associate(
        &mut self,
        watched: Arc<Watched>,
        remote: Option<SocketAddr>,
    ) -> Result<Arc<Association>, ErrorCode> {
        let before = self.association.take();
        if let Some(before) = &before {
            before.is_current.store(false, Ordering::Relaxed);
        }
        if before.is_some_and(|before| before.remote.is_some()) {
            disconnect(&self.socket)?;
        }
        if let Some(remote) = remote {
            connect(&self.socket, &remote).map_err(|error| match error {
                Errno::ADDRNOTAVAIL => ErrorCode::AddressInUse,
                other => other.into(),
            })?;
        }
        let is_open = self.socket.binding == Binding::Bound { is_open: true };
        let family = self.socket.family;
        let association = Association { watched, family, remote, is_open, is_current: AtomicBool::new(true) };
        let association = Arc::new(association);
        self.association = Some(Arc::clone(&association));
        Ok(association)
    }
}

/// Ends the association of a socket. A port that the system has chosen would be lost by it.
fn disconnect(socket: impl AsFd) -> Result<(), ErrorCode> {
    let before = said(getsockname(&socket)?)?;
    connect_unspec(&socket)?;
    let after = said(getsockname(&socket)?)?;
    if after.port() != before.port() {
        bind(&socket, &SocketAddr::new(after.ip(), before.port()))?;
    }
    Ok(())
}

/// `create-udp-socket(address-family) -> result<udp-socket, error-code>`
pub(in crate::host) fn create<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let family = call.family(1)?;
    let socket = match open(call, family, SocketType::DGRAM)? {
        Ok(socket) => Ok(call.give(UdpSocket::<F> { socket, association: None, form: PhantomData })?),
        Err(code) => Err(code),
    };
    answer::<F, _>(call, 2, socket)
}

/// What `stream` gives.
type Streams = Result<(Own, Own), ErrorCode>;

/// `stream(self, remote-address: option<ip-socket-address>) -> result<tuple<incoming-datagram-stream, outgoing-datagram-stream>, error-code>`
fn stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<UdpSocket<Wasi2>>(1)?;
    let remote = if call.is_some(2)? { Some(call.address(3)?) } else { None };
    let mut allowed = call.borrowed::<UdpSocket<Wasi2>>(1)?.check_stream(remote);
    if let (Ok(()), Some(remote)) = (allowed, remote) {
        allowed = reaches(call, remote)?;
    }
    if let Err(code) = allowed {
        return call.lower::<Streams>(15, Err(code));
    }
    watched_then::<UdpSocket<Wasi2>>(call, representation, move |call, watched| {
        let socket = call.context.ports.resource::<UdpSocket<Wasi2>>(representation)?;
        let streams = match watched.and_then(|watched| socket.associate(watched, remote)) {
            Ok(association) => {
                let incoming = call.give(IncomingDatagramStream(Arc::clone(&association)))?;
                Ok((incoming, call.give(OutgoingDatagramStream::new(association))?))
            }
            Err(code) => Err(code),
        };
        call.lower::<Streams>(15, streams)
    })
}

/// `remote-address(self) -> result<ip-socket-address, error-code>`
pub(in crate::host) fn remote_address<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let association = &call.borrowed::<UdpSocket<F>>(1)?.association;
    let remote = association.as_ref().and_then(|association| association.remote).map(Address);
    answer::<F, _>(call, 2, remote.ok_or(ErrorCode::InvalidState))
}
