//! `udp-socket`: datagrams go and come one by one. The system binds a socket that is used before it is bound.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::{Udp, Wasi3, unspecified};
use crate::host::wasi2::sockets::address::Address;
use crate::host::wasi2::sockets::datagrams::{DATAGRAM_BYTES_MAX, DROPPED_MAX, is_known, receive_one, receiver, send_bytes};
use crate::host::wasi2::sockets::socket::{Binding, may_listen, reaches, watched_then};
use crate::host::wasi2::sockets::udp::Association;
use crate::host::wasi2::sockets::{ErrorCode, Waiting, answer};
use crate::host::{Call, Flat, Stop};

/// `bind(self, local-address: ip-socket-address) -> result<_, error-code>`
pub(super) fn bind(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let udp = call.borrowed::<Udp>(1)?;
    if udp.socket.binding == Binding::None {
        // From where it receives depends on its address.
        udp.association = None;
    }
    super::bind::<Udp>(call)
}

/// `connect(self, remote-address: ip-socket-address) -> result<_, error-code>`
pub(super) fn connect(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<Udp>(1)?;
    let address = call.address(2)?;
    let allowed = match call.borrowed::<Udp>(1)?.socket.family.check_remote(address) {
        Ok(()) => reaches(call, address)?,
        error => error,
    };
    if allowed.is_err() {
        return answer::<Wasi3, _>(call, 14, allowed);
    }
    watched_then::<Udp>(call, representation, move |call, watched| {
        let udp = call.context.ports.resource::<Udp>(representation)?;
        let connected = watched.and_then(|watched| udp.associate(watched, Some(address))).map(|_| ());
        if connected.is_ok() {
            bound_by_use(call, representation)?;
        }
        answer::<Wasi3, _>(call, 14, connected)
    })
}

/// `disconnect(self) -> result<_, error-code>`
pub(super) fn disconnect(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let udp = call.borrowed::<Udp>(1)?;
    let result = match udp.association.clone().filter(|association| association.remote.is_some()) {
        Some(association) => udp.associate(Arc::clone(&association.watched), None).map(|_| ()),
        None => Err(ErrorCode::InvalidState),
    };
    answer::<Wasi3, _>(call, 2, result)
}

/// The system has bound the socket, if it was not, since it has a peer or has sent something.
fn bound_by_use(call: &mut Call<'_>, representation: u32) -> Result<(), Stop> {
    let socket = &call.context.ports.resource::<Udp>(representation)?.socket;
    if socket.binding != Binding::None {
        return Ok(());
    }
    let address = unspecified(socket.family);
    let is_open = may_listen(call, address)?;
    let udp = call.context.ports.resource::<Udp>(representation)?;
    udp.socket.binding = Binding::Bound { is_open };
    udp.association.take_if(|association| association.remote.is_none());
    Ok(())
}

/// Goes on with what a socket receives from and sends to.
fn associated_then(
    call: &mut Call<'_>,
    representation: u32,
    then: impl FnOnce(&mut Call<'_>, Result<Arc<Association>, ErrorCode>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    watched_then::<Udp>(call, representation, move |call, watched| {
        let udp = call.context.ports.resource::<Udp>(representation)?;
        let association = match (&udp.association, watched) {
            (Some(association), _) => Ok(Arc::clone(association)),
            (None, Ok(watched)) => udp.associate(watched, None),
            (None, Err(code)) => Err(code),
        };
        then(call, association)
    })
}

/// `send(self, data: list<u8>, remote-address: option<ip-socket-address>) -> result<_, error-code>`
pub(super) fn send(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<Udp>(1)?;
    let address = if call.is_some(4)? { Some(call.address(5)?) } else { None };
    let bytes = call.bytes(2)?;
    if bytes.len() > DATAGRAM_BYTES_MAX {
        return answer::<Wasi3, ()>(call, 17, Err(ErrorCode::DatagramTooLarge));
    }
    // What the component does with its memory meanwhile changes nothing.
    let bytes = bytes.to_vec();
    let waiting = call.borrowed::<Udp>(1)?.socket.keep(bytes);
    send_waiting(call, representation, waiting, address)
}

/// Sends a datagram as soon as that can be done. Whether and where it may go is looked at each time.
fn send_waiting(call: &mut Call<'_>, representation: u32, waiting: Waiting, address: Option<SocketAddr>) -> Result<Flat, Stop> {
    associated_then(call, representation, move |call, association| {
        let association = match association {
            Ok(association) => association,
            Err(code) => return answer::<Wasi3, ()>(call, 17, Err(code)),
        };
        let sent = match receiver(call, &association, address)? {
            Ok(to) => send_bytes(&association, waiting.bytes(), to),
            Err(code) => Err(code),
        };
        match sent {
            Ok(true) => {
                bound_by_use(call, representation)?;
                answer::<Wasi3, _>(call, 17, Ok(()))
            }
            Ok(false) => {
                let watched = Arc::clone(&association.watched);
                let wait = async move { watched.writable().await };
                Err(call.wait(wait, move |call, ()| send_waiting(call, representation, waiting, address)))
            }
            Err(code) => answer::<Wasi3, ()>(call, 17, Err(code)),
        }
    })
}

/// `receive(self) -> result<tuple<list<u8>, ip-socket-address>, error-code>`
pub(super) fn receive(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<Udp>(1)?;
    match call.borrowed::<Udp>(1)?.socket.binding {
        Binding::Bound { .. } => receive_waiting(call, representation),
        Binding::None | Binding::Started(_) => answer::<Wasi3, Datagram>(call, 2, Err(ErrorCode::InvalidState)),
    }
}

/// A datagram, and where it came from.
type Datagram = (Bytes, Address);

/// Receives a datagram as soon as there is one that the component may get.
fn receive_waiting(call: &mut Call<'_>, representation: u32) -> Result<Flat, Stop> {
    associated_then(call, representation, move |call, association| {
        let association = match association {
            Ok(association) => association,
            Err(code) => return answer::<Wasi3, Datagram>(call, 2, Err(code)),
        };
        for _ in 0..DROPPED_MAX {
            match receive_one(&association) {
                Ok(Some((bytes, address))) => {
                    if is_known(call, &association, address)? {
                        return answer::<Wasi3, Datagram>(call, 2, Ok((bytes, Address(address))));
                    }
                }
                Ok(None) => break,
                Err(code) => return answer::<Wasi3, Datagram>(call, 2, Err(code)),
            }
        }
        let watched = Arc::clone(&association.watched);
        let wait = async move { watched.readable().await };
        Err(call.wait(wait, move |call, ()| receive_waiting(call, representation)))
    })
}
