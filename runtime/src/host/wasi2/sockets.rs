//! `wasi:sockets`: offered, and refused. A function's connections are the server's.
//!
//! There is never a socket, so no handle of one is known.

use awsm_abi::component::Violation;
use awsm_abi::types::ValType::{I32, I64};

use super::error::IoError;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::{External, Safe, Stream};
use crate::host::canonical::{Own, Resource, Typed, canonical, enums, number};
use crate::host::{Call, Flat, HostFunction, Stop};

const NETWORK: &str = "wasi:sockets/network@0.2";
const INSTANCE: &str = "wasi:sockets/instance-network@0.2";
const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.2";
const TCP: &str = "wasi:sockets/tcp@0.2";
const TCP_CREATE: &str = "wasi:sockets/tcp-create-socket@0.2";
const UDP: &str = "wasi:sockets/udp@0.2";
const UDP_CREATE: &str = "wasi:sockets/udp-create-socket@0.2";

/// The longest name of a host (RFC 1035).
const NAME_BYTES_MAX: u64 = 255;

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(NETWORK, "network-error-code", &[I32, I32, I32], &[], Safe, network_error_code),
    canonical(INSTANCE, "instance-network", &[I32], &[I32], Stream, instance_network),
    canonical(
        LOOKUP,
        "[method]resolve-address-stream.resolve-next-address",
        &[I32, I32, I32],
        &[],
        Stream,
        none::<ResolveAddressStream>,
    ),
    canonical(LOOKUP, "[method]resolve-address-stream.subscribe", &[I32, I32], &[I32], Stream, none::<ResolveAddressStream>),
    canonical(LOOKUP, "resolve-addresses", &[I32, I32, I32, I32, I32], &[], External, resolve_addresses),
    canonical(
        TCP,
        "[method]tcp-socket.start-bind",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        Stream,
        none::<TcpSocket>,
    ),
    canonical(TCP, "[method]tcp-socket.finish-bind", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(
        TCP,
        "[method]tcp-socket.start-connect",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        Stream,
        none::<TcpSocket>,
    ),
    canonical(TCP, "[method]tcp-socket.finish-connect", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.start-listen", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.finish-listen", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.accept", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.local-address", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.remote-address", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.is-listening", &[I32, I32], &[I32], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.address-family", &[I32, I32], &[I32], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-listen-backlog-size", &[I32, I32, I64, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.keep-alive-enabled", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-keep-alive-enabled", &[I32, I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.keep-alive-idle-time", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-keep-alive-idle-time", &[I32, I32, I64, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.keep-alive-interval", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-keep-alive-interval", &[I32, I32, I64, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.keep-alive-count", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-keep-alive-count", &[I32, I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.hop-limit", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-hop-limit", &[I32, I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.receive-buffer-size", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-receive-buffer-size", &[I32, I32, I64, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.send-buffer-size", &[I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.set-send-buffer-size", &[I32, I32, I64, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.subscribe", &[I32, I32], &[I32], Stream, none::<TcpSocket>),
    canonical(TCP, "[method]tcp-socket.shutdown", &[I32, I32, I32, I32], &[], Stream, none::<TcpSocket>),
    canonical(TCP_CREATE, "create-tcp-socket", &[I32, I32, I32], &[], External, create_socket),
    canonical(
        UDP,
        "[method]udp-socket.start-bind",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        Stream,
        none::<UdpSocket>,
    ),
    canonical(UDP, "[method]udp-socket.finish-bind", &[I32, I32, I32], &[], Stream, none::<UdpSocket>),
    canonical(
        UDP,
        "[method]udp-socket.stream",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        Stream,
        none::<UdpSocket>,
    ),
    canonical(UDP, "[method]udp-socket.local-address", &[I32, I32, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.remote-address", &[I32, I32, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.address-family", &[I32, I32], &[I32], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.unicast-hop-limit", &[I32, I32, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.set-unicast-hop-limit", &[I32, I32, I32, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.receive-buffer-size", &[I32, I32, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.set-receive-buffer-size", &[I32, I32, I64, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.send-buffer-size", &[I32, I32, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.set-send-buffer-size", &[I32, I32, I64, I32], &[], Stream, none::<UdpSocket>),
    canonical(UDP, "[method]udp-socket.subscribe", &[I32, I32], &[I32], Stream, none::<UdpSocket>),
    canonical(
        UDP,
        "[method]incoming-datagram-stream.receive",
        &[I32, I32, I64, I32],
        &[I32],
        Stream,
        none::<IncomingDatagramStream>,
    ),
    canonical(UDP, "[method]incoming-datagram-stream.subscribe", &[I32, I32], &[I32], Stream, none::<IncomingDatagramStream>),
    canonical(UDP, "[method]outgoing-datagram-stream.check-send", &[I32, I32, I32], &[], Stream, none::<OutgoingDatagramStream>),
    canonical(
        UDP,
        "[method]outgoing-datagram-stream.send",
        &[I32, I32, I32, I32, I32],
        &[],
        Stream,
        none::<OutgoingDatagramStream>,
    ),
    canonical(UDP, "[method]outgoing-datagram-stream.subscribe", &[I32, I32], &[I32], Stream, none::<OutgoingDatagramStream>),
    canonical(UDP_CREATE, "create-udp-socket", &[I32, I32, I32], &[], External, create_socket),
];

/// An `error-code`, as far as it is needed.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum ErrorCode {
    AccessDenied = 1,
}

enums! { ErrorCode }

/// A `network`.
#[derive(Debug)]
struct Network;

/// A `resolve-address-stream`.
#[derive(Debug)]
struct ResolveAddressStream;

/// A `tcp-socket`.
#[derive(Debug)]
struct TcpSocket;

/// A `udp-socket`.
#[derive(Debug)]
struct UdpSocket;

/// An `incoming-datagram-stream`.
#[derive(Debug)]
struct IncomingDatagramStream;

/// An `outgoing-datagram-stream`.
#[derive(Debug)]
struct OutgoingDatagramStream;

macro_rules! resources {
    ($($ty:ty, $module:ident, $name:literal;)*) => {
        $(
            impl Resource for $ty {}

            impl Typed for $ty {
                const NUMBER: u32 = number($module, $name);
            }
        )*
    };
}

resources! {
    Network, NETWORK, "network";
    ResolveAddressStream, LOOKUP, "resolve-address-stream";
    TcpSocket, TCP, "tcp-socket";
    UdpSocket, UDP, "udp-socket";
    IncomingDatagramStream, UDP, "incoming-datagram-stream";
    OutgoingDatagramStream, UDP, "outgoing-datagram-stream";
}

/// A method of what is never made.
fn none<T: Typed>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<T>(1)?;
    Err(ComponentTrap::Violation(Violation::UnknownHandle).into())
}

/// `network-error-code(err: borrow<error>) -> option<error-code>`: none has to do with the network.
fn network_error_code(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<IoError>(1)?;
    call.lower(2, None::<ErrorCode>)
}

/// `instance-network() -> network`
fn instance_network(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(Network).map(|own| Flat::from(own.0))
}

/// `resolve-addresses(network: borrow<network>, name: string) -> result<resolve-address-stream, error-code>`
fn resolve_addresses(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<Network>(1)?;
    call.text_within(2, NAME_BYTES_MAX)?;
    call.lower(4, Err::<Own, _>(ErrorCode::AccessDenied))
}

/// `create-tcp-socket(address-family) -> result<tcp-socket, error-code>`, and of UDP
fn create_socket(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.case(1, 2)?;
    call.lower(2, Err::<Own, _>(ErrorCode::AccessDenied))
}
