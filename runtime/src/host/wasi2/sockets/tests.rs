//! Sockets as a component's wrapper uses them: real ones, on this machine, without a guest.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::ErrorCode;
use super::address::Family;
use super::reach::{LOOKUPS_MAX, Reach, SOCKETS_MAX};
use crate::component_trap::ComponentTrap;
use crate::host::canonical::World;
use crate::host::{Body, Process, Stop, offered_to_components};
use crate::upstream::SocketPolicy;

const TCP: &str = "wasi:sockets/tcp@0.2";
const UDP: &str = "wasi:sockets/udp@0.2";
const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.2";
const STREAMS: &str = "wasi:io/streams@0.2";
/// Where results go.
pub(in crate::host) const RESULT: u64 = 16;
/// Where blocks of results go.
const ROOM: u32 = 0x1_0000;

/// An invocation whose sockets may go and be there.
pub(in crate::host) fn world(hosts: &[&str], listen: &[&str]) -> World {
    let list = |entries: &[&str]| entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>();
    let sockets = SocketPolicy::new(&list(hosts), &list(listen)).unwrap().map(Arc::new);
    World::new(Body::default(), Process { sockets, ..Process::default() })
}

/// The flat form of an address of IPv4.
pub(in crate::host) fn flat(address: SocketAddr) -> Vec<u64> {
    let SocketAddr::V4(address) = address else { panic!("{address}") };
    let octets = address.ip().octets().map(u64::from);
    let mut flat = vec![0, address.port().into()];
    flat.extend(octets);
    flat.resize(12, 0);
    flat
}

/// An address of this machine.
pub(in crate::host) fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl World {
    /// Calls a function.
    pub(in crate::host) fn perform(&mut self, module: &str, name: &str, args: &[u64]) -> Result<u64, Stop> {
        let found = offered_to_components().find(|function| function.module == module && function.name == name);
        let function = found.unwrap_or_else(|| panic!("{module} {name}"));
        self.call(function, args, ROOM).map(|flat| flat.0)
    }

    /// Calls a function with a result at [`RESULT`]; the case of its error, which is at `payload`.
    pub(in crate::host) fn result(&mut self, module: &str, name: &str, args: &[u64], payload: u64) -> Result<(), u8> {
        let args: Vec<u64> = args.iter().copied().chain([RESULT]).collect();
        self.perform(module, name, &args).unwrap_or_else(|stop| panic!("{name}: {stop:?}"));
        if self.bytes(RESULT, 1)[0] == 0 { Ok(()) } else { Err(self.bytes(RESULT + payload, 1)[0]) }
    }

    fn network(&mut self) -> u64 {
        self.perform("wasi:sockets/instance-network@0.2", "instance-network", &[]).unwrap()
    }

    fn create(&mut self, what: &str) -> Result<u64, u8> {
        let module = format!("wasi:sockets/{what}-create-socket@0.2");
        self.result(&module, &format!("create-{what}-socket"), &[0], 4)?;
        Ok(self.u32(RESULT + 4).into())
    }

    /// Calls a method of a socket that takes nothing and gives nothing.
    fn tcp(&mut self, method: &str, socket: u64) -> Result<(), u8> {
        self.result(TCP, &format!("[method]tcp-socket.{method}"), &[socket], 1)
    }

    fn at(&mut self, module: &str, method: &str, socket: u64, address: SocketAddr) -> Result<(), u8> {
        let network = self.network();
        let args: Vec<u64> = [socket, network].into_iter().chain(flat(address)).collect();
        self.result(module, method, &args, 1)
    }

    fn connect(&mut self, socket: u64, address: SocketAddr) -> Result<(), u8> {
        self.at(TCP, "[method]tcp-socket.start-connect", socket, address)
    }

    fn bind(&mut self, module: &str, resource: &str, socket: u64, address: SocketAddr) -> Result<(), u8> {
        self.at(module, &format!("[method]{resource}.start-bind"), socket, address)?;
        self.result(module, &format!("[method]{resource}.finish-bind"), &[socket], 1)
    }

    /// Drops a handle as its wrapper does, but for the table's entry.
    pub(in crate::host) fn drop_handle(&mut self, handle: u64) {
        let representation = self.representation(handle as u32);
        self.glue("drop", representation).unwrap();
    }

    /// Waits until a resource is ready.
    fn block(&mut self, module: &str, resource: &str, handle: u64) {
        let pollable = self.perform(module, &format!("[method]{resource}.subscribe"), &[handle]).unwrap();
        self.perform("wasi:io/poll@0.2", "[method]pollable.block", &[pollable]).unwrap();
        self.drop_handle(pollable);
    }

    /// The streams of a connection that is made.
    fn finish(&mut self, socket: u64) -> Result<(u64, u64), u8> {
        self.block(TCP, "tcp-socket", socket);
        self.result(TCP, "[method]tcp-socket.finish-connect", &[socket], 4)?;
        Ok((self.u32(RESULT + 4).into(), self.u32(RESULT + 8).into()))
    }

    fn port(&mut self, module: &str, resource: &str, socket: u64) -> Result<u16, u8> {
        self.result(module, &format!("[method]{resource}.local-address"), &[socket], 4)?;
        let bytes = self.bytes(RESULT + 8, 2);
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn read(&mut self, stream: u64) -> Option<Vec<u8>> {
        self.perform(STREAMS, "[method]input-stream.blocking-read", &[stream, 100, RESULT]).unwrap();
        (self.u32(RESULT) == 0).then(|| self.list(RESULT + 4))
    }

    /// Whether reading zero bytes says that the stream is closed.
    fn is_closed(&mut self, stream: u64) -> bool {
        self.perform(STREAMS, "[method]input-stream.read", &[stream, 0, RESULT]).unwrap();
        self.u32(RESULT) != 0
    }

    fn write(&mut self, stream: u64, bytes: &[u8]) -> bool {
        self.memory().write(0x200, bytes).unwrap();
        let args = [stream, 0x200, bytes.len() as u64, RESULT];
        self.perform(STREAMS, "[method]output-stream.blocking-write-and-flush", &args).unwrap();
        self.bytes(RESULT, 1)[0] == 0
    }
}

const fn error<T>(code: ErrorCode) -> Result<T, u8> {
    Err(code as u8)
}

#[test]
fn without_a_grant_there_are_no_sockets() {
    let mut world = world(&[], &[]);
    assert_eq!(world.create("tcp"), error(ErrorCode::AccessDenied));
    assert_eq!(world.create("udp"), error(ErrorCode::AccessDenied));
    let network = world.network();
    world.memory().write(0x100, b"localhost").unwrap();
    let asked = world.result(LOOKUP, "resolve-addresses", &[network, 0x100, 9], 4);
    assert_eq!(asked, error(ErrorCode::PermanentResolverFailure));
}

#[test]
fn a_connection_goes_where_it_may_and_nowhere_else() {
    let server = TcpListener::bind(local(0)).unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(&[&address.to_string()], &[]);
    let socket = world.create("tcp").unwrap();
    assert_eq!(world.connect(socket, local(address.port() ^ 1)), error(ErrorCode::AccessDenied));
    // It is still of use.
    assert_eq!(world.connect(socket, address), Ok(()));
    assert_eq!(world.connect(socket, address), error(ErrorCode::ConcurrencyConflict));
    assert_eq!(world.bind(TCP, "tcp-socket", socket, local(0)), error(ErrorCode::ConcurrencyConflict));
    let (input, output) = world.finish(socket).unwrap();
    assert_eq!(world.connect(socket, address), error(ErrorCode::InvalidState));
    assert_eq!(world.finish(socket), error(ErrorCode::NotInProgress));
    let (mut peer, from) = server.accept().unwrap();
    assert_eq!(world.port(TCP, "tcp-socket", socket), Ok(from.port()));
    assert!(world.write(output, b"ping"));
    let mut bytes = [0; 4];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"ping");
    // Nothing yet, which is not the end.
    world.perform(STREAMS, "[method]input-stream.read", &[input, 10, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.list(RESULT + 4)), (0, Vec::new()));
    assert!(!world.is_closed(input));
    peer.write_all(b"pong").unwrap();
    world.block(STREAMS, "input-stream", input);
    assert!(!world.is_closed(input), "it takes nothing away");
    assert_eq!(world.read(input), Some(b"pong".to_vec()));
    assert_eq!(world.result(TCP, "[method]tcp-socket.shutdown", &[socket, 1], 1), Ok(()));
    assert!(!world.write(output, b"more"), "it has said that it sends no more");
    assert_eq!(peer.read(&mut bytes).unwrap(), 0);
    drop(peer);
    world.block(STREAMS, "input-stream", input);
    assert!(world.is_closed(input), "before it is read");
    assert_eq!(world.read(input), None, "the end");
    assert!(world.is_closed(input));
    world.result(TCP, "[method]tcp-socket.remote-address", &[socket], 4).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 2), address.port().to_le_bytes(), "known after the end");
}

#[test]
fn a_connection_to_which_nothing_can_be_written_is_ended_and_still_read() {
    let server = TcpListener::bind(local(0)).unwrap();
    let address = server.local_addr().unwrap();
    // The output stream is dropped first, or the socket.
    for order in [[0, 1], [1, 0]] {
        let mut world = world(&[&address.to_string()], &[]);
        let socket = world.create("tcp").unwrap();
        world.connect(socket, address).unwrap();
        let (input, output) = world.finish(socket).unwrap();
        let (mut peer, _) = server.accept().unwrap();
        let [first, second] = order.map(|index| [output, socket][index]);
        world.drop_handle(first);
        peer.set_nonblocking(true).unwrap();
        assert_eq!(peer.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
        world.drop_handle(second);
        peer.set_nonblocking(false).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
        peer.write_all(b"still").unwrap();
        assert_eq!(world.read(input), Some(b"still".to_vec()));
    }
}

#[test]
fn a_connection_that_is_not_made_says_why_once() {
    // Nothing listens there, and it is this test's until it ends.
    let taken = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    taken.bind(&local(0).into()).unwrap();
    let address = taken.local_addr().unwrap().as_socket().unwrap();
    let mut world = world(&["127.0.0.1:1-65535"], &[]);
    let socket = world.create("tcp").unwrap();
    assert_eq!(world.result(TCP, "[method]tcp-socket.finish-connect", &[socket], 4), error(ErrorCode::NotInProgress));
    world.connect(socket, address).unwrap();
    assert_eq!(world.finish(socket), error(ErrorCode::ConnectionRefused));
    assert_eq!(world.finish(socket), error(ErrorCode::NotInProgress));
    assert_eq!(world.connect(socket, address), error(ErrorCode::InvalidState));
    assert_eq!(world.bind(TCP, "tcp-socket", socket, local(0)), error(ErrorCode::InvalidState));
    let socket = world.create("tcp").unwrap();
    for wrong in ["127.0.0.1:0", "0.0.0.0:80", "224.0.0.1:80", "255.255.255.255:80"] {
        assert_eq!(world.connect(socket, wrong.parse().unwrap()), error(ErrorCode::InvalidArgument), "{wrong}");
    }
}

#[test]
fn an_address_of_ipv4_within_ipv6_is_no_socket_s() {
    for (address, is_valid) in [
        ("[::]:1", true),
        ("[::1]:1", true),
        ("[fd00::7f00:1]:1", true),
        ("[::ffff:127.0.0.1]:1", false),
        ("[::127.0.0.1]:1", false),
        ("[::2]:1", false),
        ("127.0.0.1:1", false),
    ] {
        assert_eq!(Family::Ipv6.check(address.parse().unwrap()).is_ok(), is_valid, "{address}");
    }
}

#[test]
fn a_socket_listens_where_it_may() {
    let mut world = world(&[], &["127.0.0.1:0"]);
    let socket = world.create("tcp").unwrap();
    assert_eq!(world.tcp("finish-bind", socket), error(ErrorCode::NotInProgress));
    assert_eq!(world.tcp("start-listen", socket), error(ErrorCode::InvalidState), "it has no address");
    assert_eq!(world.port(TCP, "tcp-socket", socket), error(ErrorCode::InvalidState));
    assert_eq!(world.bind(TCP, "tcp-socket", socket, local(9)), error(ErrorCode::AccessDenied));
    assert_eq!(world.bind(TCP, "tcp-socket", socket, local(0)), Ok(()));
    assert_eq!(world.bind(TCP, "tcp-socket", socket, local(0)), error(ErrorCode::InvalidState));
    let address = local(world.port(TCP, "tcp-socket", socket).unwrap());
    assert_eq!(world.tcp("finish-listen", socket), error(ErrorCode::NotInProgress));
    assert_eq!(world.tcp("start-listen", socket), Ok(()));
    assert_eq!(world.tcp("start-listen", socket), error(ErrorCode::ConcurrencyConflict));
    assert_eq!(world.bind(TCP, "tcp-socket", socket, local(0)), error(ErrorCode::ConcurrencyConflict));
    assert_eq!(world.tcp("finish-listen", socket), Ok(()));
    assert_eq!(world.perform(TCP, "[method]tcp-socket.is-listening", &[socket]), Ok(1));
    assert_eq!(world.result(TCP, "[method]tcp-socket.accept", &[socket], 4), error(ErrorCode::WouldBlock));
    let mut peer = TcpStream::connect(address).unwrap();
    world.block(TCP, "tcp-socket", socket);
    assert_eq!(world.result(TCP, "[method]tcp-socket.accept", &[socket], 4), Ok(()));
    let (input, output): (u64, u64) = (world.u32(RESULT + 8).into(), world.u32(RESULT + 12).into());
    peer.write_all(b"to it").unwrap();
    assert_eq!(world.read(input), Some(b"to it".to_vec()));
    assert!(world.write(output, b"from it"));
    let mut bytes = [0; 7];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"from it");
    // All of it is closed with the invocation.
    drop(world);
    assert_eq!(peer.read(&mut bytes).unwrap(), 0);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn an_address_for_going_out_is_none_for_listening() {
    let mut world = world(&["127.0.0.1:80"], &["127.0.0.2:1-65535"]);
    let socket = world.create("tcp").unwrap();
    assert_eq!(world.bind(TCP, "tcp-socket", socket, local(0)), Ok(()));
    assert_eq!(world.tcp("start-listen", socket), error(ErrorCode::AccessDenied));
}

#[test]
fn options_are_kept_and_zero_is_none() {
    let mut world = world(&["127.0.0.1:80"], &[]);
    let socket = world.create("tcp").unwrap();
    for (option, value) in [
        ("keep-alive-idle-time", 5_000_000_000),
        ("keep-alive-interval", 1),
        ("keep-alive-count", 3),
        ("hop-limit", 7),
        ("send-buffer-size", 8_192),
        ("receive-buffer-size", 8_192),
    ] {
        let set = format!("[method]tcp-socket.set-{option}");
        assert_eq!(world.result(TCP, &set, &[socket, 0], 1), error(ErrorCode::InvalidArgument), "{option}");
        assert_eq!(world.result(TCP, &set, &[socket, value], 1), Ok(()), "{option}");
    }
    world.result(TCP, "[method]tcp-socket.keep-alive-idle-time", &[socket], 8).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 8), 5_000_000_000_u64.to_le_bytes());
    world.result(TCP, "[method]tcp-socket.keep-alive-interval", &[socket], 8).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 8), 1_000_000_000_u64.to_le_bytes(), "the kernel counts in seconds");
    world.result(TCP, "[method]tcp-socket.hop-limit", &[socket], 1).unwrap();
    assert_eq!(world.bytes(RESULT + 1, 1), [7]);
    for buffer in ["send-buffer-size", "receive-buffer-size"] {
        world.result(TCP, &format!("[method]tcp-socket.{buffer}"), &[socket], 8).unwrap();
        assert_eq!(world.bytes(RESULT + 8, 8), 8_192_u64.to_le_bytes(), "{buffer}");
    }
    let backlog = "[method]tcp-socket.set-listen-backlog-size";
    assert_eq!(world.result(TCP, backlog, &[socket, 0], 1), error(ErrorCode::InvalidArgument));
    assert_eq!(world.result(TCP, backlog, &[socket, u64::MAX], 1), Ok(()));
}

#[test]
fn what_the_kernel_keeps_counts_as_long_as_it_is_kept() {
    let listener = TcpListener::bind(local(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let mut world = world(&[&address.to_string()], &[]);
    let socket = world.create("tcp").unwrap();
    assert!(world.context.kept_bytes() > 400_000, "buffers have a size from the start");
    for buffer in ["send-buffer-size", "receive-buffer-size"] {
        world.result(TCP, &format!("[method]tcp-socket.set-{buffer}"), &[socket, 50_000], 1).unwrap();
    }
    assert!((200_000..300_000).contains(&world.context.kept_bytes()), "they are smaller now");
    world.connect(socket, address).unwrap();
    let (input, output) = world.finish(socket).unwrap();
    for handle in [socket, input] {
        world.drop_handle(handle);
        assert!(world.context.kept_bytes() > 200_000, "a stream has it open");
    }
    world.drop_handle(output);
    assert!(world.context.kept_bytes() < 100_000);
}

#[test]
fn an_invocation_has_so_many_sockets_and_lookups() {
    let policy = SocketPolicy::new(&["127.0.0.1:80".to_owned()], &[]).unwrap().unwrap();
    let reach = Reach::new(Arc::new(policy));
    let mut sockets: Vec<_> = (0..SOCKETS_MAX).map(|_| reach.open().unwrap()).collect();
    assert_eq!(reach.open().err(), Some(ErrorCode::NewSocketLimit));
    sockets.pop();
    assert!(reach.open().is_ok(), "one was closed");
    let lookups: Vec<_> = (0..LOOKUPS_MAX).map(|_| reach.look_up().unwrap()).collect();
    assert!(reach.look_up().is_none());
    drop(lookups);
    assert!(reach.look_up().is_some());
}

/// Puts a datagram for `address` into the component's memory, as the only one of a list.
fn datagram(world: &mut World, bytes: &[u8], address: Option<SocketAddr>) {
    let mut row = Vec::new();
    row.extend(0x400_u32.to_le_bytes());
    row.extend((bytes.len() as u32).to_le_bytes());
    if let Some(SocketAddr::V4(address)) = address {
        row.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        row.extend(address.port().to_le_bytes());
        row.extend(address.ip().octets());
    }
    row.resize(44, 0);
    world.memory().write(0x300, &row).unwrap();
    world.memory().write(0x400, bytes).unwrap();
}

fn send(world: &mut World, stream: u64) -> Result<u64, u8> {
    world.result(UDP, "[method]outgoing-datagram-stream.check-send", &[stream], 8)?;
    world.result(UDP, "[method]outgoing-datagram-stream.send", &[stream, 0x300, 1], 8)?;
    Ok(world.u32(RESULT + 8).into())
}

/// The datagrams that are there.
fn receive(world: &mut World, stream: u64) -> Vec<Vec<u8>> {
    world.result(UDP, "[method]incoming-datagram-stream.receive", &[stream, 9], 4).unwrap();
    let (list, count) = (u64::from(world.u32(RESULT + 4)), u64::from(world.u32(RESULT + 8)));
    (0..count).map(|index| world.list(list + 40 * index)).collect()
}

/// The datagrams that come next, once there are any that are not dropped.
fn receive_some(world: &mut World, stream: u64) -> Vec<Vec<u8>> {
    loop {
        world.block(UDP, "incoming-datagram-stream", stream);
        let received = receive(world, stream);
        if !received.is_empty() {
            return received;
        }
    }
}

fn streams(world: &mut World, socket: u64, remote: Option<SocketAddr>) -> Result<(u64, u64), u8> {
    let mut args = vec![socket, u64::from(remote.is_some())];
    args.extend(remote.map_or_else(|| vec![0; 12], flat));
    world.result(UDP, "[method]udp-socket.stream", &args, 4)?;
    Ok((world.u32(RESULT + 4).into(), world.u32(RESULT + 8).into()))
}

#[test]
fn datagrams_go_and_come_where_they_may() {
    let (peer, stranger) = (UdpSocket::bind(local(0)).unwrap(), UdpSocket::bind(local(0)).unwrap());
    let address = peer.local_addr().unwrap();
    let mut world = world(&[&address.to_string()], &[]);
    let socket = world.create("udp").unwrap();
    assert_eq!(streams(&mut world, socket, None), error(ErrorCode::InvalidState), "it has no address");
    assert_eq!(world.bind(UDP, "udp-socket", socket, local(0)), Ok(()));
    let own = local(world.port(UDP, "udp-socket", socket).unwrap());
    let (incoming, outgoing) = streams(&mut world, socket, None).unwrap();
    datagram(&mut world, b"out", Some(address));
    let refused = world.perform(UDP, "[method]outgoing-datagram-stream.send", &[outgoing, 0x300, 1, RESULT]);
    assert_eq!(refused, Err(Stop::Trap(ComponentTrap::BeyondPermit)), "it was not asked");
    assert_eq!(send(&mut world, outgoing), Ok(1));
    let mut bytes = [0; 16];
    assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, own));
    datagram(&mut world, b"out", Some(stranger.local_addr().unwrap()));
    assert_eq!(send(&mut world, outgoing), error(ErrorCode::AccessDenied));
    datagram(&mut world, b"out", None);
    assert_eq!(send(&mut world, outgoing), error(ErrorCode::InvalidArgument));
    assert_eq!(receive(&mut world, incoming), [b""; 0]);
    stranger.send_to(b"no", own).unwrap();
    peer.send_to(b"in", own).unwrap();
    assert_eq!(receive_some(&mut world, incoming), [b"in"], "the stranger's is dropped");
    // To one only, and back to all.
    assert_eq!(streams(&mut world, socket, Some(stranger.local_addr().unwrap())), error(ErrorCode::AccessDenied));
    let (_, connected) = streams(&mut world, socket, Some(address)).unwrap();
    assert_eq!(send(&mut world, outgoing), error(ErrorCode::InvalidState), "the socket has other streams");
    datagram(&mut world, b"one", None);
    assert_eq!(send(&mut world, connected), Ok(1));
    assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, own));
    streams(&mut world, socket, None).unwrap();
    assert_eq!(world.port(UDP, "udp-socket", socket), Ok(own.port()), "the port stays");
}

#[test]
fn what_strangers_sent_before_a_socket_had_a_peer_is_dropped() {
    for listen in [&[][..], &["127.0.0.1:0"]] {
        let (peer, stranger) = (UdpSocket::bind(local(0)).unwrap(), UdpSocket::bind(local(0)).unwrap());
        let address = peer.local_addr().unwrap();
        let mut world = world(&[&address.to_string()], listen);
        let socket = world.create("udp").unwrap();
        world.bind(UDP, "udp-socket", socket, local(0)).unwrap();
        let own = local(world.port(UDP, "udp-socket", socket).unwrap());
        stranger.send_to(b"no", own).unwrap();
        let (incoming, _) = streams(&mut world, socket, Some(address)).unwrap();
        peer.send_to(b"in", own).unwrap();
        assert_eq!(receive_some(&mut world, incoming), [b"in"], "{listen:?}");
    }
}

#[test]
fn a_socket_that_others_may_reach_receives_from_all() {
    let mut world = world(&[], &["127.0.0.1:0"]);
    let socket = world.create("udp").unwrap();
    world.bind(UDP, "udp-socket", socket, local(0)).unwrap();
    let own = local(world.port(UDP, "udp-socket", socket).unwrap());
    let (incoming, _) = streams(&mut world, socket, None).unwrap();
    UdpSocket::bind(local(0)).unwrap().send_to(b"hello", own).unwrap();
    world.block(UDP, "incoming-datagram-stream", incoming);
    assert_eq!(receive(&mut world, incoming), [b"hello"]);
}

#[test]
fn listed_names_are_looked_up_and_open_no_private_address() {
    let server = TcpListener::bind(local(0)).unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(&[&format!("localhost:{}", address.port())], &[]);
    let network = world.network();
    let ask = |world: &mut World, name: &str| -> Result<u64, u8> {
        world.memory().write(0x100, name.as_bytes()).unwrap();
        world.result(LOOKUP, "resolve-addresses", &[network, 0x100, name.len() as u64], 4)?;
        Ok(u64::from(world.u32(RESULT + 4)))
    };
    assert_eq!(ask(&mut world, "example.org"), error(ErrorCode::PermanentResolverFailure));
    for wrong in ["", "a..b", "a b", "http://a", "a:80", "\u{301}"] {
        assert_eq!(ask(&mut world, wrong), error(ErrorCode::InvalidArgument), "{wrong}");
    }
    let next = "[method]resolve-address-stream.resolve-next-address";
    let stream = ask(&mut world, "10.1.2.3").unwrap();
    assert_eq!(world.result(LOOKUP, next, &[stream], 2), Ok(()));
    assert_eq!(world.bytes(RESULT + 2, 8), [1, 0, 0, 0, 10, 1, 2, 3]);
    assert_eq!(world.result(LOOKUP, next, &[stream], 2), Ok(()));
    assert_eq!(world.bytes(RESULT + 2, 1), [0], "no more");
    let stream = ask(&mut world, "LocalHost").unwrap();
    world.block(LOOKUP, "resolve-address-stream", stream);
    assert_eq!(world.result(LOOKUP, next, &[stream], 2), Ok(()));
    assert_eq!(world.bytes(RESULT + 2, 1), [1]);
    let socket = world.create("tcp").unwrap();
    assert_eq!(world.connect(socket, address), error(ErrorCode::AccessDenied), "the address is not listed");
}
