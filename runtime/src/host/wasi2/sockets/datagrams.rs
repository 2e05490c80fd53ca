//! `incoming-datagram-stream` and `outgoing-datagram-stream`.
//!
//! A socket that is associated with a peer receives from that peer only. Without one, datagrams from where the function may not send are dropped, unless the
//! socket has an address where the configuration lets others reach it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recvfrom, send as send_connected, sendto};

use super::address::{Address, said};
use super::socket::reaches;
use super::udp::Association;
use super::{ErrorCode, UDP};
use crate::component_trap::ComponentTrap;
use crate::host::Effect::{External, Stream};
use crate::host::canonical::{Look, Resource, Typed, canonical, number};
use crate::host::wasi2::streams::subscribe;
use crate::host::{Call, Flat, HostFunction, Stop};

/// Datagrams that one call gives or takes.
const DATAGRAMS_MAX: usize = 16;
/// Datagrams that one call drops before it gives up.
pub(in crate::host) const DROPPED_MAX: usize = 64;
/// The largest datagram.
pub(in crate::host) const DATAGRAM_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// Where this thread receives a datagram before its length is known.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The methods.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(UDP, "[method]incoming-datagram-stream.receive", &[I32, I32, I64, I32], &[I32], External, receive),
    canonical(
        UDP,
        "[method]incoming-datagram-stream.subscribe",
        &[I32, I32],
        &[I32],
        Stream,
        subscribe::<IncomingDatagramStream>,
    ),
    canonical(UDP, "[method]outgoing-datagram-stream.check-send", &[I32, I32, I32], &[], Stream, check_send),
    canonical(UDP, "[method]outgoing-datagram-stream.send", &[I32, I32, I32, I32, I32], &[], External, send),
    canonical(
        UDP,
        "[method]outgoing-datagram-stream.subscribe",
        &[I32, I32],
        &[I32],
        Stream,
        subscribe::<OutgoingDatagramStream>,
    ),
];

/// An `incoming-datagram-stream`.
#[derive(Debug)]
pub(in crate::host) struct IncomingDatagramStream(pub(in crate::host) Arc<Association>);

impl Resource for IncomingDatagramStream {
    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        Ok(self.0.check().is_err() || self.0.watched.read_ready(look))
    }
}

impl Typed for IncomingDatagramStream {
    const NUMBER: u32 = number(UDP, "incoming-datagram-stream");
}

/// An `outgoing-datagram-stream`.
#[derive(Debug)]
pub(in crate::host) struct OutgoingDatagramStream {
    association: Arc<Association>,
    /// Datagrams of the next call, as `check-send` has said; none where it was not called.
    permitted: usize,
}

impl OutgoingDatagramStream {
    pub(in crate::host) const fn new(association: Arc<Association>) -> OutgoingDatagramStream {
        OutgoingDatagramStream { association, permitted: 0 }
    }
}

impl Resource for OutgoingDatagramStream {
    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        Ok(self.association.check().is_err() || self.association.watched.write_ready(look))
    }
}

impl Typed for OutgoingDatagramStream {
    const NUMBER: u32 = number(UDP, "outgoing-datagram-stream");
}

/// Receives a datagram; none where there is none.
///
/// # Errors
/// What the system says.
pub(in crate::host) fn receive_one(association: &Association) -> Result<Option<(Bytes, SocketAddr)>, ErrorCode> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(DATAGRAM_BYTES_MAX, 0);
        match recvfrom(&*association.watched, &mut buffer[..], RecvFlags::empty()) {
            Ok((count, _, Some(address))) => Ok(Some((Bytes::copy_from_slice(&buffer[..count]), said(address)?))),
            Ok((_, _, None)) => Err(ErrorCode::Unknown),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    })
}

/// Whether the component gets datagrams from there.
pub(in crate::host) fn is_known(call: &mut Call<'_>, association: &Association, address: SocketAddr) -> Result<bool, Stop> {
    Ok(match association.remote {
        // The kernel lets through what it had queued before it was told of the peer.
        Some(remote) => (remote.ip(), remote.port()) == (address.ip(), address.port()),
        None => association.is_open || call.context.ports.sockets()?.is_some_and(|reach| reach.reaches(address)),
    })
}

/// `receive(self, max-results: u64) -> result<list<incoming-datagram>, error-code>`
fn receive(call: &mut Call<'_>) -> Result<Flat, Stop> {
    type Received = Result<Vec<(Bytes, Address)>, ErrorCode>;
    let association = Arc::clone(&call.borrowed::<IncomingDatagramStream>(1)?.0);
    if let Err(code) = association.check() {
        return call.lower::<Received>(3, Err(code));
    }
    let wanted = usize::try_from(call.args.u64(2)).unwrap_or(usize::MAX).min(DATAGRAMS_MAX);
    let mut received = Vec::new();
    let mut dropped = 0;
    while received.len() < wanted && dropped < DROPPED_MAX {
        match receive_one(&association) {
            Ok(Some((bytes, address))) => {
                if is_known(call, &association, address)? {
                    received.push((bytes, Address(address)));
                } else {
                    dropped += 1;
                }
            }
            Ok(None) => break,
            // What came before it is not lost; the next call says what is wrong, if it still is.
            Err(_) if !received.is_empty() => break,
            Err(code) => return call.lower::<Received>(3, Err(code)),
        }
    }
    call.lower::<Received>(3, Ok(received))
}

/// `check-send(self) -> result<u64, error-code>`
fn check_send(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let stream = call.borrowed::<OutgoingDatagramStream>(1)?;
    let result = stream.association.check().map(|()| {
        stream.permitted = if stream.association.watched.can_write() { DATAGRAMS_MAX } else { 0 };
        stream.permitted as u64
    });
    call.lower(2, result)
}

/// A datagram in the component's memory: where it is, how long, and where it is to go.
type Outgoing = ((u32, u32), Option<Address>);

/// `send(self, datagrams: list<outgoing-datagram>) -> result<u64, error-code>`
fn send(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let count = call.args.u32(3) as usize;
    let stream = call.borrowed::<OutgoingDatagramStream>(1)?;
    let association = Arc::clone(&stream.association);
    if count > 0 && count > std::mem::take(&mut stream.permitted) {
        return Err(ComponentTrap::BeyondPermit.into());
    }
    let datagrams = call.list::<Outgoing>(2)?;
    let memory = call.memory.as_ref().ok_or(ComponentTrap::OutOfBounds)?;
    for ((at, length), _) in &datagrams {
        memory.slice((*at).into(), (*length).into()).map_err(|_| ComponentTrap::OutOfBounds)?;
    }
    if let Err(code) = association.check() {
        return call.lower(4, Err::<u64, _>(code));
    }
    let mut sent: u64 = 0;
    for datagram in datagrams {
        match send_one(call, &association, datagram)? {
            Ok(true) => sent += 1,
            Ok(false) => break,
            Err(_) if sent > 0 => break,
            Err(code) => return call.lower(4, Err::<u64, _>(code)),
        }
    }
    call.lower(4, Ok::<_, ErrorCode>(sent))
}

/// Sends a datagram; false where that would have to wait.
fn send_one(
    call: &mut Call<'_>,
    association: &Association,
    ((at, length), address): Outgoing,
) -> Result<Result<bool, ErrorCode>, Stop> {
    let to = match receiver(call, association, address.map(|Address(address)| address))? {
        Ok(to) => to,
        Err(code) => return Ok(Err(code)),
    };
    if length as usize > DATAGRAM_BYTES_MAX {
        return Ok(Err(ErrorCode::DatagramTooLarge));
    }
    let memory = call.memory.as_ref().ok_or(ComponentTrap::OutOfBounds)?;
    // The kernel reads from our buffer, never from the guest's memory.
    let bytes = memory.slice(at.into(), length.into()).map_err(|_| ComponentTrap::OutOfBounds)?.to_vec();
    Ok(send_bytes(association, &bytes, to))
}

/// Where a datagram goes that is to go there: none for the peer with which the socket is associated.
pub(in crate::host) fn receiver(
    call: &mut Call<'_>,
    association: &Association,
    address: Option<SocketAddr>,
) -> Result<Result<Option<SocketAddr>, ErrorCode>, Stop> {
    Ok(match (association.remote, address) {
        (Some(_), None) => Ok(None),
        (Some(remote), Some(address)) if remote == address => Ok(None),
        (None, Some(address)) => match association.family.check_remote(address) {
            Ok(()) => reaches(call, address)?.map(|()| Some(address)),
            Err(code) => Err(code),
        },
        (Some(_), Some(_)) | (None, None) => Err(ErrorCode::InvalidArgument),
    })
}

/// Sends a datagram to where it goes; false where that would have to wait.
///
/// # Errors
/// What the system says.
pub(in crate::host) fn send_bytes(association: &Association, bytes: &[u8], to: Option<SocketAddr>) -> Result<bool, ErrorCode> {
    let sent = match to {
        Some(address) => sendto(&*association.watched, bytes, SendFlags::NOSIGNAL, &address),
        None => send_connected(&*association.watched, bytes, SendFlags::NOSIGNAL),
    };
    match sent {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
