//! `udp-socket`: an address, and the peer that it is associated with, if any. What is sent and received goes through [`datagrams`](super::datagrams).

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
use super::{ErrorCode, UDP};
use crate::host::Effect::{External, Stream};
use crate::host::canonical::{Own, Resource, Typed, canonical, number};
use crate::host::wasi2::streams::subscribe;
use crate::host::{Call, Flat, HostFunction, Stop};

/// The interfaces, but for streams and options.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical("wasi:sockets/udp-create-socket@0.2", "create-udp-socket", &[I32, I32, I32], &[], External, create),
    canonical(
        UDP,
        "[method]udp-socket.start-bind",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        start_bind::<UdpSocket>,
    ),
    canonical(UDP, "[method]udp-socket.finish-bind", &[I32, I32, I32], &[], External, finish_bind::<UdpSocket>),
    canonical(
        UDP,
        "[method]udp-socket.stream",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        stream,
    ),
    canonical(UDP, "[method]udp-socket.local-address", &[I32, I32, I32], &[], Stream, local_address::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.remote-address", &[I32, I32, I32], &[], Stream, remote_address),
    canonical(UDP, "[method]udp-socket.address-family", &[I32, I32], &[I32], Stream, address_family::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.subscribe", &[I32, I32], &[I32], Stream, subscribe::<UdpSocket>),
];

/// A `udp-socket`. What waits for it waits for its streams, so it is always ready itself.
#[derive(Debug)]
pub(super) struct UdpSocket {
    socket: Socket,
    /// What its streams have in common, once there are any.
    association: Option<Arc<Association>>,
}

/// What the two streams of a socket have in common.
#[derive(Debug)]
pub(super) struct Association {
    pub(super) watched: Arc<Watched>,
    pub(super) family: Family,
    /// The only one that is sent to and received from, if it is only one.
    pub(super) remote: Option<SocketAddr>,
    /// Whether all datagrams are received where there is no peer, not only those from where the function may send.
    pub(super) is_open: bool,
    /// Whether the socket has made no other since.
    is_current: AtomicBool,
}

impl Association {
    /// Whether its streams may still be used.
    ///
    /// # Errors
    /// `invalid-state` where the socket has others by now.
    pub(super) fn check(&self) -> Result<(), ErrorCode> {
        // Relaxed: one guest, which does one thing after the other.
        if self.is_current.load(Ordering::Relaxed) { Ok(()) } else { Err(ErrorCode::InvalidState) }
    }
}

impl Resource for UdpSocket {}

impl Typed for UdpSocket {
    const NUMBER: u32 = number(UDP, "udp-socket");
}

impl SocketResource for UdpSocket {
    const IS_UNICAST: bool = false;

    fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }
}

impl UdpSocket {
    /// Whether it may have streams to that address, as far as its state and the address say.
    fn check_stream(&self, remote: Option<SocketAddr>) -> Result<(), ErrorCode> {
        if !matches!(self.socket.binding, Binding::Bound { .. }) {
            return Err(ErrorCode::InvalidState);
        }
        remote.map_or(Ok(()), |remote| self.socket.family.check_remote(remote))
    }

    /// Associates it with an address, or with none.
    fn associate(&mut self, watched: Arc<Watched>, remote: Option<SocketAddr>) -> Result<Arc<Association>, ErrorCode> {
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
fn create(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let family = call.family(1)?;
    let socket = match open(call, family, SocketType::DGRAM)? {
        Ok(socket) => Ok(call.give(UdpSocket { socket, association: None })?),
        Err(code) => Err(code),
    };
    call.lower(2, socket)
}

/// What `stream` gives.
type Streams = Result<(Own, Own), ErrorCode>;

/// `stream(self, remote-address: option<ip-socket-address>) -> result<tuple<incoming-datagram-stream, outgoing-datagram-stream>, error-code>`
fn stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<UdpSocket>(1)?;
    let remote = if call.is_some(2)? { Some(call.address(3)?) } else { None };
    let mut allowed = call.borrowed::<UdpSocket>(1)?.check_stream(remote);
    if let (Ok(()), Some(remote)) = (allowed, remote) {
        allowed = reaches(call, remote)?;
    }
    if let Err(code) = allowed {
        return call.lower::<Streams>(15, Err(code));
    }
    watched_then::<UdpSocket>(call, representation, move |call, watched| {
        let socket = call.context.ports.resource::<UdpSocket>(representation)?;
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
fn remote_address(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let association = &call.borrowed::<UdpSocket>(1)?.association;
    let remote = association.as_ref().and_then(|association| association.remote).map(Address);
    call.lower(2, remote.ok_or(ErrorCode::InvalidState))
}
