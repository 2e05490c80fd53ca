//! `wasi:sockets`: what differs from [WASI 0.2](crate::host::wasi2::sockets), where the bodies of most functions are. A connection has two streams of which the host has
//! one end, a socket that listens one of sockets, and nothing is begun in one call and finished in another.

mod listen;
pub(super) mod lookup;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use awsm_abi::types::ValType::{I32, I64};

use crate::host::Effect::{External, Stream};
use crate::host::canonical::{canonical, errors};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::sockets::address::Family;
use crate::host::wasi2::sockets::socket::{SocketResource, address_family, begin_bind, bind_now, check_place, local_address};
use crate::host::wasi2::sockets::tcp::TcpSocket;
use crate::host::wasi2::sockets::udp::UdpSocket;
use crate::host::wasi2::sockets::{self, Form, answer, options};
use crate::host::wasi3::ends::FaultCode;
use crate::host::{Call, Flat, HostFunction, Stop};

const TYPES: &str = "wasi:sockets/types@0.3";

/// A `tcp-socket`.
type Tcp = TcpSocket<Wasi3>;
/// A `udp-socket`.
type Udp = UdpSocket<Wasi3>;

/// Methods of `tcp-socket`.
pub(in crate::host) const TCP: &[HostFunction] = &[
    canonical(TYPES, "[static]tcp-socket.create", &[I32, I32, I32], &[], External, sockets::tcp::create::<Wasi3>),
    canonical(
        TYPES,
        "[method]tcp-socket.bind",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        bind::<Tcp>,
    ),
    canonical(
        TYPES,
        "[method]tcp-socket.connect",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        tcp::connect,
    ),
    canonical(TYPES, "[method]tcp-socket.listen", &[I32, I32, I32, I32], &[], External, listen::listen),
    canonical(TYPES, "[method]tcp-socket.send", &[I32, I32, I32, I32], &[], Stream, tcp::send),
    canonical(TYPES, "[method]tcp-socket.receive", &[I32, I32, I32, I32], &[], Stream, tcp::receive),
    canonical(TYPES, "[method]tcp-socket.get-local-address", &[I32, I32, I32], &[], Stream, local_address::<Tcp>),
    canonical(
        TYPES,
        "[method]tcp-socket.get-remote-address",
        &[I32, I32, I32],
        &[],
        Stream,
        sockets::tcp::remote_address::<Wasi3>,
    ),
    canonical(TYPES, "[method]tcp-socket.get-is-listening", &[I32, I32], &[I32], Stream, sockets::listen::is_listening::<Wasi3>),
    canonical(TYPES, "[method]tcp-socket.get-address-family", &[I32, I32], &[I32], Stream, address_family::<Tcp>),
    canonical(
        TYPES,
        "[method]tcp-socket.set-listen-backlog-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        sockets::listen::set_backlog::<Wasi3>,
    ),
    canonical(TYPES, "[method]tcp-socket.get-keep-alive-enabled", &[I32, I32, I32], &[], Stream, options::keep_alive::<Wasi3>),
    canonical(
        TYPES,
        "[method]tcp-socket.set-keep-alive-enabled",
        &[I32, I32, I32, I32],
        &[],
        Stream,
        options::set_keep_alive::<Wasi3>,
    ),
    canonical(
        TYPES,
        "[method]tcp-socket.get-keep-alive-idle-time",
        &[I32, I32, I32],
        &[],
        Stream,
        options::keep_alive_idle::<Wasi3>,
    ),
    canonical(
        TYPES,
        "[method]tcp-socket.set-keep-alive-idle-time",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        options::set_keep_alive_idle::<Wasi3>,
    ),
    canonical(
        TYPES,
        "[method]tcp-socket.get-keep-alive-interval",
        &[I32, I32, I32],
        &[],
        Stream,
        options::keep_alive_interval::<Wasi3>,
    ),
    canonical(
        TYPES,
        "[method]tcp-socket.set-keep-alive-interval",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        options::set_keep_alive_interval::<Wasi3>,
    ),
    canonical(
        TYPES,
        "[method]tcp-socket.get-keep-alive-count",
        &[I32, I32, I32],
        &[],
        Stream,
        options::keep_alive_count::<Wasi3>,
    ),
    canonical(
        TYPES,
        "[method]tcp-socket.set-keep-alive-count",
        &[I32, I32, I32, I32],
        &[],
        Stream,
        options::set_keep_alive_count::<Wasi3>,
    ),
    canonical(TYPES, "[method]tcp-socket.get-hop-limit", &[I32, I32, I32], &[], Stream, options::hop_limit::<Tcp>),
    canonical(TYPES, "[method]tcp-socket.set-hop-limit", &[I32, I32, I32, I32], &[], Stream, options::set_hop_limit::<Tcp>),
    canonical(TYPES, "[method]tcp-socket.get-receive-buffer-size", &[I32, I32, I32], &[], Stream, options::receive_buffer::<Tcp>),
    canonical(
        TYPES,
        "[method]tcp-socket.set-receive-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        options::set_receive_buffer::<Tcp>,
    ),
    canonical(TYPES, "[method]tcp-socket.get-send-buffer-size", &[I32, I32, I32], &[], Stream, options::send_buffer::<Tcp>),
    canonical(
        TYPES,
        "[method]tcp-socket.set-send-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        options::set_send_buffer::<Tcp>,
    ),
];

/// Methods of `udp-socket`.
pub(in crate::host) const UDP: &[HostFunction] = &[
    canonical(TYPES, "[static]udp-socket.create", &[I32, I32, I32], &[], External, sockets::udp::create::<Wasi3>),
    canonical(
        TYPES,
        "[method]udp-socket.bind",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        udp::bind,
    ),
    canonical(
        TYPES,
        "[method]udp-socket.connect",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        udp::connect,
    ),
    canonical(TYPES, "[method]udp-socket.disconnect", &[I32, I32, I32], &[], External, udp::disconnect),
    canonical(
        TYPES,
        "[method]udp-socket.send",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        udp::send,
    ),
    canonical(TYPES, "[method]udp-socket.receive", &[I32, I32, I32], &[I32], External, udp::receive),
    canonical(TYPES, "[method]udp-socket.get-local-address", &[I32, I32, I32], &[], Stream, local_address::<Udp>),
    canonical(
        TYPES,
        "[method]udp-socket.get-remote-address",
        &[I32, I32, I32],
        &[],
        Stream,
        sockets::udp::remote_address::<Wasi3>,
    ),
    canonical(TYPES, "[method]udp-socket.get-address-family", &[I32, I32], &[I32], Stream, address_family::<Udp>),
    canonical(TYPES, "[method]udp-socket.get-unicast-hop-limit", &[I32, I32, I32], &[], Stream, options::hop_limit::<Udp>),
    canonical(
        TYPES,
        "[method]udp-socket.set-unicast-hop-limit",
        &[I32, I32, I32, I32],
        &[],
        Stream,
        options::set_hop_limit::<Udp>,
    ),
    canonical(TYPES, "[method]udp-socket.get-receive-buffer-size", &[I32, I32, I32], &[], Stream, options::receive_buffer::<Udp>),
    canonical(
        TYPES,
        "[method]udp-socket.set-receive-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        options::set_receive_buffer::<Udp>,
    ),
    canonical(TYPES, "[method]udp-socket.get-send-buffer-size", &[I32, I32, I32], &[], Stream, options::send_buffer::<Udp>),
    canonical(
        TYPES,
        "[method]udp-socket.set-send-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        options::set_send_buffer::<Udp>,
    ),
];

/// The form of WASI 0.3.
#[derive(Debug)]
enum Wasi3 {}

impl Form for Wasi3 {
    const TCP: &'static str = TYPES;
    const UDP: &'static str = TYPES;
    type ErrorCode = ErrorCode;
}

/// An `error-code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum ErrorCode {
    AccessDenied,
    NotSupported,
    InvalidArgument,
    OutOfMemory,
    Timeout,
    InvalidState,
    AddressNotBindable,
    AddressInUse,
    RemoteUnreachable,
    ConnectionRefused,
    ConnectionBroken,
    ConnectionReset,
    ConnectionAborted,
    DatagramTooLarge,
    Other,
}

errors! { ErrorCode }

impl From<sockets::ErrorCode> for ErrorCode {
    fn from(code: sockets::ErrorCode) -> ErrorCode {
        match code {
            sockets::ErrorCode::AccessDenied => ErrorCode::AccessDenied,
            sockets::ErrorCode::NotSupported => ErrorCode::NotSupported,
            sockets::ErrorCode::InvalidArgument => ErrorCode::InvalidArgument,
            sockets::ErrorCode::OutOfMemory => ErrorCode::OutOfMemory,
            sockets::ErrorCode::Timeout => ErrorCode::Timeout,
            // What is begun in one call and finished in another is one call here.
            sockets::ErrorCode::ConcurrencyConflict | sockets::ErrorCode::NotInProgress | sockets::ErrorCode::InvalidState => {
                ErrorCode::InvalidState
            }
            sockets::ErrorCode::AddressNotBindable => ErrorCode::AddressNotBindable,
            sockets::ErrorCode::AddressInUse => ErrorCode::AddressInUse,
            sockets::ErrorCode::RemoteUnreachable => ErrorCode::RemoteUnreachable,
            sockets::ErrorCode::ConnectionRefused => ErrorCode::ConnectionRefused,
            sockets::ErrorCode::ConnectionReset => ErrorCode::ConnectionReset,
            sockets::ErrorCode::ConnectionAborted => ErrorCode::ConnectionAborted,
            sockets::ErrorCode::DatagramTooLarge => ErrorCode::DatagramTooLarge,
            sockets::ErrorCode::Unknown
            | sockets::ErrorCode::WouldBlock
            | sockets::ErrorCode::NewSocketLimit
            | sockets::ErrorCode::NameUnresolvable
            | sockets::ErrorCode::TemporaryResolverFailure
            | sockets::ErrorCode::PermanentResolverFailure => ErrorCode::Other,
        }
    }
}

impl FaultCode for ErrorCode {
    /// What is closed cannot be written to; where it is read, that is no fault.
    fn of(fault: Fault) -> ErrorCode {
        match fault {
            Fault::Network(code) => code.into(),
            Fault::Closed => ErrorCode::ConnectionBroken,
            Fault::Failed(..) | Fault::Http(_) => ErrorCode::Other,
        }
    }
}

/// The address that a socket has before it has one: any, with a port that the system chooses.
const fn unspecified(family: Family) -> SocketAddr {
    match family {
        Family::Ipv4 => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        Family::Ipv6 => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

/// `bind(self, local-address: ip-socket-address) -> result<_, error-code>`
fn bind<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let address = call.address(2)?;
    let mut bound = begin_bind(call.borrowed::<T>(1)?, address);
    if bound.is_ok() {
        bound = check_place(call, address)?;
    }
    if bound.is_ok() {
        bound = bind_now::<T>(call, address)?;
    }
    answer::<T::Form, _>(call, 14, bound)
}
