//! Sockets of WASI 0.3 as a component's wrapper uses them: real ones, on this machine, without a guest.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use awsm_abi::component::{CANONICAL, CLOSE, COPY, EXCHANGE, Violation, WAIT};
use socket2::{Domain, Socket, Type};

use super::{ErrorCode, TYPES, lookup};
use crate::component_trap::ComponentTrap;
use crate::host::canonical::{Lower, World};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::sockets;
use crate::host::wasi2::sockets::tests::{RESULT, flat, local, world};
use crate::host::wasi3::ends::FaultCode as _;
use crate::host::{Code, Stop, offered_to_components};

const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.3";
/// Where what is read goes, and what is written is.
const BUFFER: u64 = 0x2000;
/// What is told of a stream that has ended.
const DROPPED: u64 = 1;
/// Numbers of streams and futures: of what is sent, and what becomes of it; of what is received, and what becomes of it; of connections.
const DATA: u64 = 1;
const SENT: u64 = 2;
const RECEIVED: u64 = 3;
const ENDED: u64 = 4;
const CONNECTIONS: u64 = 5;

const fn error<T>(code: ErrorCode) -> Result<T, u8> {
    Err(code as u8)
}

impl World {
    /// Calls a method whose error begins at `payload`; the error's case.
    fn method(&mut self, name: &str, args: &[u64], payload: u64) -> Result<(), u8> {
        self.result(TYPES, &format!("[method]{name}"), args, payload)
    }

    fn new_socket(&mut self, resource: &str) -> Result<u64, u8> {
        self.result(TYPES, &format!("[static]{resource}.create"), &[0], 4)?;
        Ok(self.u32(RESULT + 4).into())
    }

    /// Calls a method with an address.
    fn to(&mut self, name: &str, socket: u64, address: SocketAddr) -> Result<(), u8> {
        let args: Vec<u64> = std::iter::once(socket).chain(flat(address)).collect();
        self.method(name, &args, 4)
    }

    /// The port of an address that a method gives.
    fn port_of(&mut self, name: &str, socket: u64) -> Result<u16, u8> {
        self.method(name, &[socket], 4)?;
        let bytes = self.bytes(RESULT + 8, 2);
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// Sends by a socket, and receives.
    fn streams_of(&mut self, socket: u64) {
        self.perform(TYPES, "[method]tcp-socket.send", &[socket, DATA, SENT]).unwrap();
        self.perform(TYPES, "[method]tcp-socket.receive", &[socket, RECEIVED, ENDED]).unwrap();
    }

    /// Calls a function of the glue that gets no handle table.
    fn plain(&mut self, name: &str, args: &[u64]) -> u64 {
        let is_it = |function: &&crate::host::HostFunction| (function.module, function.name) == (CANONICAL, name);
        let function = offered_to_components().find(is_it).unwrap();
        let Code::Canonical(code) = function.code else { panic!("{name}") };
        self.run(function.effect, args, code).unwrap().0
    }

    /// Reads bytes; none at the end.
    fn bytes_of(&mut self, stream: u64) -> Option<Vec<u8>> {
        let packed = self.plain(COPY, &[0, BUFFER, 100, 0, stream]);
        (packed != DROPPED).then(|| self.bytes(BUFFER, packed >> 4))
    }

    /// Writes bytes; how many, none where that has failed.
    fn put(&mut self, stream: u64, bytes: &[u8]) -> Option<u64> {
        self.memory().write(BUFFER, bytes).unwrap();
        let packed = self.plain(COPY, &[0, BUFFER, bytes.len() as u64, 1, stream]);
        (packed != DROPPED).then_some(packed >> 4)
    }

    /// What a future tells.
    fn told(&mut self, future: u64) -> Result<(), u8> {
        self.memory().write(RESULT, &[0xaa; 20]).unwrap();
        assert_eq!(self.plain(COPY, &[0, RESULT, 1, 0, future]), 1 << 4);
        if self.bytes(RESULT, 1)[0] == 0 { Ok(()) } else { Err(self.bytes(RESULT + 4, 1)[0]) }
    }

    fn close(&mut self, end: u64) {
        self.plain(CLOSE, &[end]);
    }

    fn listen(&mut self, socket: u64) -> Result<(), u8> {
        self.perform(TYPES, "[method]tcp-socket.listen", &[socket, RESULT, CONNECTIONS]).unwrap();
        if self.bytes(RESULT, 1)[0] == 0 { Ok(()) } else { Err(self.bytes(RESULT + 4, 1)[0]) }
    }

    /// Sockets of the next connections, at most so many.
    fn accept(&mut self, count_max: u64) -> Vec<u64> {
        let packed = self.perform(CANONICAL, EXCHANGE, &[BUFFER, count_max, 0, CONNECTIONS]).unwrap();
        assert_eq!(packed & 15, 0);
        (0..packed >> 4).map(|index| self.u32(BUFFER + 4 * index).into()).collect()
    }

    fn send_to(&mut self, socket: u64, bytes: &[u8], address: Option<SocketAddr>) -> Result<(), u8> {
        self.memory().write(BUFFER, bytes).unwrap();
        let mut args = vec![socket, BUFFER, bytes.len() as u64, u64::from(address.is_some())];
        args.extend(address.map_or_else(|| vec![0; 12], flat));
        self.method("udp-socket.send", &args, 4)
    }

    /// A datagram, and the port that it came from.
    fn datagram(&mut self, socket: u64) -> Result<(Vec<u8>, u16), u8> {
        self.method("udp-socket.receive", &[socket], 4)?;
        let port = self.bytes(RESULT + 16, 2);
        Ok((self.list(RESULT + 4), u16::from_le_bytes([port[0], port[1]])))
    }
}

/// A connection between a component and a peer.
fn connected() -> (World, u64, TcpStream) {
    let server = TcpListener::bind(local(0)).unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(&[&address.to_string()], &[]);
    let socket = world.new_socket("tcp-socket").unwrap();
    world.to("tcp-socket.connect", socket, address).unwrap();
    let (peer, _) = server.accept().unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    (world, socket, peer)
}

#[test]
fn errors_are_those_of_this_version() {
    assert_eq!((ErrorCode::SIZE, ErrorCode::ALIGN), (16, 4));
    assert_eq!(<Result<(), ErrorCode>>::SIZE, 20);
    for (code, case) in [
        (sockets::ErrorCode::AccessDenied, 0),
        (sockets::ErrorCode::InvalidArgument, 2),
        (sockets::ErrorCode::ConcurrencyConflict, 5),
        (sockets::ErrorCode::NotInProgress, 5),
        (sockets::ErrorCode::AddressNotBindable, 6),
        (sockets::ErrorCode::ConnectionRefused, 9),
        (sockets::ErrorCode::ConnectionReset, 11),
        (sockets::ErrorCode::DatagramTooLarge, 13),
        (sockets::ErrorCode::NewSocketLimit, 14),
    ] {
        assert_eq!(ErrorCode::from(code) as u8, case, "{code:?}");
    }
    assert_eq!(ErrorCode::of(Fault::Closed) as u8, 10, "connection-broken");
    assert_eq!(lookup::ErrorCode::from(sockets::ErrorCode::NameUnresolvable) as u8, 2);
    assert_eq!(lookup::ErrorCode::from(sockets::ErrorCode::OutOfMemory) as u8, 5);
}

#[test]
fn without_a_grant_there_are_no_sockets() {
    let mut world = world(&[], &[]);
    assert_eq!(world.new_socket("tcp-socket"), error(ErrorCode::AccessDenied));
    assert_eq!(world.new_socket("udp-socket"), error(ErrorCode::AccessDenied));
    world.memory().write(0x100, b"localhost").unwrap();
    assert_eq!(world.result(LOOKUP, "resolve-addresses", &[0x100, 9], 4), Err(0));
}

#[test]
fn a_connection_goes_where_it_may_and_nowhere_else() {
    let server = TcpListener::bind(local(0)).unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(&[&address.to_string()], &[]);
    let socket = world.new_socket("tcp-socket").unwrap();
    assert_eq!(world.port_of("tcp-socket.get-local-address", socket), error(ErrorCode::InvalidState));
    assert_eq!(world.to("tcp-socket.connect", socket, local(address.port() ^ 1)), error(ErrorCode::AccessDenied));
    for wrong in ["127.0.0.1:0", "0.0.0.0:80", "224.0.0.1:80"] {
        let wrong = wrong.parse().unwrap();
        assert_eq!(world.to("tcp-socket.connect", socket, wrong), error(ErrorCode::InvalidArgument), "{wrong}");
    }
    world.streams_of(socket);
    assert_eq!((world.told(SENT), world.told(ENDED)), (error(ErrorCode::InvalidState), error(ErrorCode::InvalidState)));
    assert_eq!(world.put(DATA, b"lost"), None);
    assert_eq!(world.bytes_of(RECEIVED), None);
    // It is still of use.
    assert_eq!(world.to("tcp-socket.connect", socket, address), Ok(()));
    assert_eq!(world.to("tcp-socket.connect", socket, address), error(ErrorCode::InvalidState));
    assert_eq!(world.to("tcp-socket.bind", socket, local(0)), error(ErrorCode::InvalidState));
    assert_eq!(world.listen(socket), error(ErrorCode::InvalidState));
    assert_eq!(world.port_of("tcp-socket.get-remote-address", socket), Ok(address.port()));
    let (_, from) = server.accept().unwrap();
    assert_eq!(world.port_of("tcp-socket.get-local-address", socket), Ok(from.port()));
}

#[test]
fn a_connection_has_two_streams_and_says_what_became_of_them() {
    let (mut world, socket, mut peer) = connected();
    world.streams_of(socket);
    assert_eq!(world.put(DATA, b"ping"), Some(4));
    let mut bytes = [0; 4];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"ping");
    peer.write_all(b"pong").unwrap();
    assert_eq!(world.bytes_of(RECEIVED), Some(b"pong".to_vec()));
    // Either may be had once.
    world.perform(TYPES, "[method]tcp-socket.send", &[socket, 11, 12]).unwrap();
    world.perform(TYPES, "[method]tcp-socket.receive", &[socket, 13, 14]).unwrap();
    assert_eq!((world.told(12), world.told(14)), (error(ErrorCode::InvalidState), error(ErrorCode::InvalidState)));
    assert_eq!((world.put(11, b"more"), world.bytes_of(13)), (None, None));
    for end in 11..=14 {
        world.close(end);
    }
    // The peer learns that no more comes, though the socket is there.
    world.close(DATA);
    assert_eq!(world.told(SENT), Ok(()));
    assert_eq!(peer.read(&mut bytes).unwrap(), 0);
    peer.write_all(b"last").unwrap();
    drop(peer);
    assert_eq!(world.bytes_of(RECEIVED), Some(b"last".to_vec()));
    assert_eq!(world.bytes_of(RECEIVED), None);
    assert_eq!(world.told(ENDED), Ok(()));
}

#[test]
fn streams_go_on_without_their_socket() {
    let (mut world, socket, mut peer) = connected();
    world.streams_of(socket);
    world.drop_handle(socket);
    assert_eq!(world.put(DATA, b"ping"), Some(4));
    let mut bytes = [0; 4];
    peer.read_exact(&mut bytes).unwrap();
    peer.set_nonblocking(true).unwrap();
    assert_eq!(peer.read(&mut bytes).unwrap_err().kind(), ErrorKind::WouldBlock);
    peer.set_nonblocking(false).unwrap();
    peer.write_all(b"pong").unwrap();
    assert_eq!(world.bytes_of(RECEIVED), Some(b"pong".to_vec()));
    assert!(world.context.kept_bytes() > 400_000, "a stream has it open");
    world.close(RECEIVED);
    assert_eq!(world.told(ENDED), Ok(()));
    world.close(DATA);
    assert_eq!(peer.read(&mut bytes).unwrap(), 0);
    assert!(world.context.kept_bytes() < 100_000);
}

#[test]
fn a_connection_to_which_nothing_can_be_written_is_ended_and_still_read() {
    let (mut world, socket, mut peer) = connected();
    world.perform(TYPES, "[method]tcp-socket.receive", &[socket, RECEIVED, ENDED]).unwrap();
    world.drop_handle(socket);
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    peer.write_all(b"still").unwrap();
    assert_eq!(world.bytes_of(RECEIVED), Some(b"still".to_vec()));
}

#[test]
fn what_is_written_to_a_broken_connection_is_told() {
    let (mut world, socket, peer) = connected();
    world.streams_of(socket);
    socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    assert_eq!(world.bytes_of(RECEIVED), None);
    assert_eq!(world.told(ENDED), error(ErrorCode::ConnectionReset));
    assert_eq!(world.put(DATA, b"lost"), None);
    assert_eq!(world.told(SENT), error(ErrorCode::ConnectionBroken));
}

#[test]
fn what_is_received_can_be_what_is_sent() {
    let (mut world, socket, mut peer) = connected();
    world.perform(TYPES, "[method]tcp-socket.receive", &[socket, RECEIVED, ENDED]).unwrap();
    world.perform(TYPES, "[method]tcp-socket.send", &[socket, RECEIVED, SENT]).unwrap();
    peer.write_all(b"echo").unwrap();
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    while world.plain(WAIT, &[]) != 0 {}
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"echo");
    assert_eq!((world.told(ENDED), world.told(SENT)), (Ok(()), Ok(())));
}

#[test]
fn a_connection_that_is_not_made_says_why_once() {
    // Nothing listens there, and it is this test's until it ends.
    let taken = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    taken.bind(&local(0).into()).unwrap();
    let address = taken.local_addr().unwrap().as_socket().unwrap();
    let mut world = world(&["127.0.0.1:1-65535"], &[]);
    let socket = world.new_socket("tcp-socket").unwrap();
    assert_eq!(world.to("tcp-socket.connect", socket, address), error(ErrorCode::ConnectionRefused));
    assert_eq!(world.to("tcp-socket.connect", socket, address), error(ErrorCode::InvalidState));
    assert_eq!(world.to("tcp-socket.bind", socket, local(0)), error(ErrorCode::InvalidState));
}

#[test]
fn a_socket_listens_where_it_may_and_gives_connections() {
    let mut world = world(&[], &["127.0.0.1:0"]);
    let socket = world.new_socket("tcp-socket").unwrap();
    assert_eq!(world.to("tcp-socket.bind", socket, local(9)), error(ErrorCode::AccessDenied));
    assert_eq!(world.listen(socket), error(ErrorCode::AccessDenied), "anywhere");
    assert_eq!(world.to("tcp-socket.bind", socket, local(0)), Ok(()));
    assert_eq!(world.to("tcp-socket.bind", socket, local(0)), error(ErrorCode::InvalidState));
    assert_eq!(world.perform(TYPES, "[method]tcp-socket.get-is-listening", &[socket]), Ok(0));
    assert_eq!(world.listen(socket), Ok(()));
    assert_eq!(world.perform(TYPES, "[method]tcp-socket.get-is-listening", &[socket]), Ok(1));
    assert_eq!(world.method("tcp-socket.set-listen-backlog-size", &[socket, 0], 4), error(ErrorCode::InvalidArgument));
    assert_eq!(world.method("tcp-socket.set-listen-backlog-size", &[socket, 3], 4), Ok(()));
    let address = local(world.port_of("tcp-socket.get-local-address", socket).unwrap());
    let mut peers: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(world.accept(0), [0; 0], "there are some");
    let before = world.context.kept_bytes();
    let mut accepted = world.accept(2);
    assert_eq!(accepted.len(), 2);
    assert!(world.context.kept_bytes() > before + 800_000, "their buffers count");
    // Without its handle it listens as long as the stream is there.
    world.drop_handle(socket);
    accepted.extend(world.accept(70));
    assert_eq!(accepted.len(), 3);
    for (peer, socket) in peers.iter_mut().zip(accepted) {
        let port = peer.local_addr().unwrap().port();
        assert_eq!(world.port_of("tcp-socket.get-remote-address", socket), Ok(port));
        assert_eq!(world.port_of("tcp-socket.get-local-address", socket), Ok(address.port()));
        world.streams_of(socket);
        peer.write_all(b"to it").unwrap();
        assert_eq!(world.bytes_of(RECEIVED), Some(b"to it".to_vec()));
        assert_eq!(world.put(DATA, b"from it"), Some(7));
        let mut bytes = [0; 7];
        peer.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"from it");
        for end in [DATA, SENT, RECEIVED, ENDED] {
            world.close(end);
        }
    }
    world.close(CONNECTIONS);
    // All of it is closed with the invocation.
    drop(world);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_socket_without_an_address_gets_one_where_it_listens() {
    let mut world = world(&[], &["0.0.0.0:0"]);
    let socket = world.new_socket("tcp-socket").unwrap();
    assert_eq!(world.listen(socket), Ok(()));
    let address = local(world.port_of("tcp-socket.get-local-address", socket).unwrap());
    let _peer = TcpStream::connect(address).unwrap();
    assert_eq!(world.accept(1).len(), 1);
}

#[test]
fn datagrams_go_and_come_where_they_may() {
    let (peer, stranger) = (UdpSocket::bind(local(0)).unwrap(), UdpSocket::bind(local(0)).unwrap());
    let (address, elsewhere) = (peer.local_addr().unwrap(), stranger.local_addr().unwrap());
    let mut world = world(&[&address.to_string()], &[]);
    let socket = world.new_socket("udp-socket").unwrap();
    assert_eq!(world.datagram(socket), error(ErrorCode::InvalidState), "it has no address");
    assert_eq!(world.send_to(socket, b"out", Some(elsewhere)), error(ErrorCode::AccessDenied));
    assert_eq!(world.send_to(socket, b"out", None), error(ErrorCode::InvalidArgument));
    assert_eq!(world.send_to(socket, &[0; (64 << 10) + 1], Some(address)), error(ErrorCode::DatagramTooLarge));
    assert_eq!(world.port_of("udp-socket.get-local-address", socket), error(ErrorCode::InvalidState));
    let kept = world.context.kept_bytes();
    assert_eq!(world.send_to(socket, b"out", Some(address)), Ok(()));
    assert_eq!(world.context.kept_bytes(), kept, "it waits no more");
    let own = local(world.port_of("udp-socket.get-local-address", socket).unwrap());
    let mut bytes = [0; 16];
    assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, own));
    assert_eq!(world.to("udp-socket.bind", socket, local(0)), error(ErrorCode::InvalidState));
    stranger.send_to(b"no", own).unwrap();
    peer.send_to(b"in", own).unwrap();
    assert_eq!(world.datagram(socket), Ok((b"in".to_vec(), address.port())), "the stranger's is dropped");
    // To one only, and back to all.
    assert_eq!(world.method("udp-socket.disconnect", &[socket], 4), error(ErrorCode::InvalidState));
    assert_eq!(world.to("udp-socket.connect", socket, elsewhere), error(ErrorCode::AccessDenied));
    assert_eq!(world.port_of("udp-socket.get-remote-address", socket), error(ErrorCode::InvalidState));
    assert_eq!(world.to("udp-socket.connect", socket, address), Ok(()));
    assert_eq!(world.port_of("udp-socket.get-remote-address", socket), Ok(address.port()));
    assert_eq!(world.send_to(socket, b"one", None), Ok(()));
    assert_eq!(world.send_to(socket, b"one", Some(address)), Ok(()));
    assert_eq!(world.send_to(socket, b"one", Some(local(1))), error(ErrorCode::InvalidArgument));
    assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, own));
    assert_eq!(world.method("udp-socket.disconnect", &[socket], 4), Ok(()));
    assert_eq!(world.port_of("udp-socket.get-local-address", socket), Ok(own.port()), "the port stays");
    assert_eq!(world.send_to(socket, b"one", None), error(ErrorCode::InvalidArgument));
}

#[test]
fn a_socket_that_others_may_reach_receives_from_all() {
    let mut world = world(&["127.0.0.1:1"], &["127.0.0.1:0"]);
    let socket = world.new_socket("udp-socket").unwrap();
    // What was tried before it had its address changes nothing.
    assert_eq!(world.send_to(socket, b"no", Some(local(2))), error(ErrorCode::AccessDenied));
    assert_eq!(world.to("udp-socket.bind", socket, local(0)), Ok(()));
    let own = local(world.port_of("udp-socket.get-local-address", socket).unwrap());
    let stranger = UdpSocket::bind(local(0)).unwrap();
    stranger.send_to(b"hello", own).unwrap();
    assert_eq!(world.datagram(socket), Ok((b"hello".to_vec(), stranger.local_addr().unwrap().port())));
}

#[test]
fn options_are_kept_and_zero_is_none() {
    let mut world = world(&["127.0.0.1:80"], &[]);
    let tcp = world.new_socket("tcp-socket").unwrap();
    for (option, value) in [("keep-alive-idle-time", 5_000_000_000), ("hop-limit", 7), ("send-buffer-size", 8_192)] {
        let set = format!("tcp-socket.set-{option}");
        assert_eq!(world.method(&set, &[tcp, 0], 4), error(ErrorCode::InvalidArgument), "{option}");
        assert_eq!(world.method(&set, &[tcp, value], 4), Ok(()), "{option}");
    }
    world.method("tcp-socket.get-keep-alive-idle-time", &[tcp], 8).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 8), 5_000_000_000_u64.to_le_bytes());
    world.method("tcp-socket.get-hop-limit", &[tcp], 4).unwrap();
    assert_eq!(world.bytes(RESULT + 4, 1), [7]);
}

#[test]
fn listed_names_are_looked_up_and_open_no_private_address() {
    let server = TcpListener::bind(local(0)).unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(&[&format!("localhost:{}", address.port())], &[]);
    let ask = |world: &mut World, name: &str| -> Result<Vec<u8>, u8> {
        world.memory().write(0x100, name.as_bytes()).unwrap();
        world.result(LOOKUP, "resolve-addresses", &[0x100, name.len() as u64], 4)?;
        let (list, count) = (world.u32(RESULT + 4), world.u32(RESULT + 8));
        assert!(count > 0);
        Ok(world.bytes(list.into(), 8))
    };
    assert_eq!(ask(&mut world, "example.org"), Err(0), "access-denied");
    for wrong in ["", "a..b", "http://a"] {
        assert_eq!(ask(&mut world, wrong), Err(1), "{wrong}: invalid-argument");
    }
    assert_eq!(ask(&mut world, "10.1.2.3"), Ok(vec![0, 0, 10, 1, 2, 3, 0, 0]));
    assert!(ask(&mut world, "LocalHost").is_ok());
    let socket = world.new_socket("tcp-socket").unwrap();
    let refused = world.to("tcp-socket.connect", socket, address);
    assert_eq!(refused, error(ErrorCode::AccessDenied), "the address is not listed");
}

#[test]
fn a_socket_of_another_version_is_another_type() {
    let mut world = world(&["127.0.0.1:80"], &[]);
    let own = world.new_socket("tcp-socket").unwrap();
    world.result("wasi:sockets/tcp-create-socket@0.2", "create-tcp-socket", &[0], 4).unwrap();
    let other = u64::from(world.u32(RESULT + 4));
    let calls =
        [(TYPES, "[method]tcp-socket.get-hop-limit", other), ("wasi:sockets/tcp@0.2", "[method]tcp-socket.hop-limit", own)];
    for (module, name, handle) in calls {
        let called = world.perform(module, name, &[handle, RESULT]);
        let handle = handle as u32;
        assert_eq!(called, Err(Stop::Trap(ComponentTrap::Handle { handle, violation: Violation::HandleType })));
    }
}
