//! Options of sockets: how far packets go, how much the kernel keeps, whether it looks after silent connections.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use awsm_abi::types::ValType::{I32, I64};
use rustix::io;
use rustix::net::sockopt;

use super::address::Family;
use super::socket::{Socket, SocketResource};
use super::tcp::TcpSocket;
use super::udp::UdpSocket;
use super::{ErrorCode, Form, TCP, UDP, Wasi2, answer};
use crate::host::Effect::Stream;
use crate::host::canonical::{Lower, canonical};
use crate::host::{Call, Flat, HostFunction, Stop};

/// The longest times and the most probes that the kernel takes.
const KEEP_ALIVE_MAX: Duration = Duration::from_secs(32_767);
const KEEP_ALIVE_COUNT_MAX: u32 = 127;
/// The largest buffer; the kernel may have a lower limit.
const BUFFER_BYTES_MAX: u64 = 1 << 20;

/// The methods of both resources. What is set is argument 2.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TCP, "[method]tcp-socket.keep-alive-enabled", &[I32, I32, I32], &[], Stream, keep_alive::<Wasi2>),
    canonical(TCP, "[method]tcp-socket.set-keep-alive-enabled", &[I32, I32, I32, I32], &[], Stream, set_keep_alive::<Wasi2>),
    canonical(TCP, "[method]tcp-socket.keep-alive-idle-time", &[I32, I32, I32], &[], Stream, keep_alive_idle::<Wasi2>),
    canonical(
        TCP,
        "[method]tcp-socket.set-keep-alive-idle-time",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        set_keep_alive_idle::<Wasi2>,
    ),
    canonical(TCP, "[method]tcp-socket.keep-alive-interval", &[I32, I32, I32], &[], Stream, keep_alive_interval::<Wasi2>),
    canonical(
        TCP,
        "[method]tcp-socket.set-keep-alive-interval",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        set_keep_alive_interval::<Wasi2>,
    ),
    canonical(TCP, "[method]tcp-socket.keep-alive-count", &[I32, I32, I32], &[], Stream, keep_alive_count::<Wasi2>),
    canonical(TCP, "[method]tcp-socket.set-keep-alive-count", &[I32, I32, I32, I32], &[], Stream, set_keep_alive_count::<Wasi2>),
    canonical(TCP, "[method]tcp-socket.hop-limit", &[I32, I32, I32], &[], Stream, hop_limit::<TcpSocket<Wasi2>>),
    canonical(TCP, "[method]tcp-socket.set-hop-limit", &[I32, I32, I32, I32], &[], Stream, set_hop_limit::<TcpSocket<Wasi2>>),
    canonical(TCP, "[method]tcp-socket.receive-buffer-size", &[I32, I32, I32], &[], Stream, receive_buffer::<TcpSocket<Wasi2>>),
    canonical(
        TCP,
        "[method]tcp-socket.set-receive-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        set_receive_buffer::<TcpSocket<Wasi2>>,
    ),
    canonical(TCP, "[method]tcp-socket.send-buffer-size", &[I32, I32, I32], &[], Stream, send_buffer::<TcpSocket<Wasi2>>),
    canonical(
        TCP,
        "[method]tcp-socket.set-send-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        set_send_buffer::<TcpSocket<Wasi2>>,
    ),
    canonical(UDP, "[method]udp-socket.unicast-hop-limit", &[I32, I32, I32], &[], Stream, hop_limit::<UdpSocket<Wasi2>>),
    canonical(
        UDP,
        "[method]udp-socket.set-unicast-hop-limit",
        &[I32, I32, I32, I32],
        &[],
        Stream,
        set_hop_limit::<UdpSocket<Wasi2>>,
    ),
    canonical(UDP, "[method]udp-socket.receive-buffer-size", &[I32, I32, I32], &[], Stream, receive_buffer::<UdpSocket<Wasi2>>),
    canonical(
        UDP,
        "[method]udp-socket.set-receive-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        set_receive_buffer::<UdpSocket<Wasi2>>,
    ),
    canonical(UDP, "[method]udp-socket.send-buffer-size", &[I32, I32, I32], &[], Stream, send_buffer::<UdpSocket<Wasi2>>),
    canonical(
        UDP,
        "[method]udp-socket.set-send-buffer-size",
        &[I32, I32, I64, I32],
        &[],
        Stream,
        set_send_buffer::<UdpSocket<Wasi2>>,
    ),
];

/// `(self) -> result<V, error-code>`
fn get<T: SocketResource, V: Lower>(call: &mut Call<'_>, of: impl FnOnce(&Socket) -> io::Result<V>) -> Result<Flat, Stop> {
    let value = of(call.borrowed::<T>(1)?.socket());
    answer::<T::Form, _>(call, 2, value.map_err(ErrorCode::from))
}

/// `(self, value) -> result<_, error-code>`, where zero is no value.
fn set<T: SocketResource>(
    call: &mut Call<'_>,
    value: u64,
    to: impl FnOnce(&Socket, u64) -> io::Result<()>,
) -> Result<Flat, Stop> {
    let socket = call.borrowed::<T>(1)?.socket();
    let result = if value == 0 { Err(ErrorCode::InvalidArgument) } else { to(socket, value).map_err(ErrorCode::from) };
    answer::<T::Form, _>(call, 3, result)
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn keep_alive<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    get::<TcpSocket<F>, _>(call, |socket| sockopt::socket_keepalive(socket))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn set_keep_alive<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = call.args.u32(2) != 0;
    let result = sockopt::set_socket_keepalive(&*call.borrowed::<TcpSocket<F>>(1)?.socket(), value);
    answer::<F, _>(call, 3, result.map_err(ErrorCode::from))
}

/// A time, in nanoseconds.
fn time<F: Form>(call: &mut Call<'_>, of: impl FnOnce(&Socket) -> io::Result<Duration>) -> Result<Flat, Stop> {
    get::<TcpSocket<F>, _>(call, |socket| of(socket).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// The kernel counts in seconds, from 1.
fn set_time<F: Form>(call: &mut Call<'_>, to: impl FnOnce(BorrowedFd<'_>, Duration) -> io::Result<()>) -> Result<Flat, Stop> {
    let value = call.args.u64(2);
    set::<TcpSocket<F>>(call, value, |socket, value| {
        let time = Duration::from_secs(value.div_ceil(1_000_000_000));
        to(socket.as_fd(), time.min(KEEP_ALIVE_MAX))
    })
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn keep_alive_idle<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    time::<F>(call, |socket| sockopt::tcp_keepidle(socket))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn set_keep_alive_idle<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    set_time::<F>(call, |fd, time| sockopt::set_tcp_keepidle(fd, time))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn keep_alive_interval<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    time::<F>(call, |socket| sockopt::tcp_keepintvl(socket))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn set_keep_alive_interval<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    set_time::<F>(call, |fd, time| sockopt::set_tcp_keepintvl(fd, time))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn keep_alive_count<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    get::<TcpSocket<F>, _>(call, |socket| sockopt::tcp_keepcnt(socket))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn set_keep_alive_count<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let count = call.args.u32(2).min(KEEP_ALIVE_COUNT_MAX);
    set::<TcpSocket<F>>(call, count.into(), |socket, _| sockopt::set_tcp_keepcnt(socket, count))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn hop_limit<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    get::<T, _>(call, |socket| match socket.family {
        Family::Ipv4 => sockopt::ip_ttl(socket).map(|hops| u8::try_from(hops).unwrap_or(u8::MAX)),
        Family::Ipv6 => sockopt::ipv6_unicast_hops(socket),
    })
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn set_hop_limit<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let hops = call.args.u32(2) as u8;
    set::<T>(call, hops.into(), |socket, _| match socket.family {
        Family::Ipv4 => sockopt::set_ip_ttl(socket, hops.into()),
        Family::Ipv6 => sockopt::set_ipv6_unicast_hops(socket, Some(hops)),
    })
}

/// The size of a buffer as it was set: Linux keeps twice as much, for what it needs itself, and says that.
const fn as_set(bytes: usize) -> u64 {
    bytes as u64 / 2
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn receive_buffer<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    get::<T, _>(call, |socket| sockopt::socket_recv_buffer_size(socket).map(as_set))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn set_receive_buffer<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = call.args.u64(2);
    set::<T>(call, value, |socket, bytes| {
        socket.resize(|fd| sockopt::set_socket_recv_buffer_size(fd, bytes.min(BUFFER_BYTES_MAX) as usize))
    })
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn send_buffer<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    get::<T, _>(call, |socket| sockopt::socket_send_buffer_size(socket).map(as_set))
}

/// See [`FUNCTIONS`].
pub(in crate::host) fn set_send_buffer<T: SocketResource>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = call.args.u64(2);
    set::<T>(call, value, |socket, bytes| {
        socket.resize(|fd| sockopt::set_socket_send_buffer_size(fd, bytes.min(BUFFER_BYTES_MAX) as usize))
    })
}
