//! `wasi:sockets`, on this machine only.

use std::fmt::Debug;

use wasip2::io::streams::{InputStream, OutputStream};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;
use wasip2::sockets::network::{ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress};
use wasip2::sockets::tcp::{ShutdownType, TcpSocket};
use wasip2::sockets::tcp_create_socket::create_tcp_socket;
use wasip2::sockets::udp::{OutgoingDatagram, UdpSocket};
use wasip2::sockets::udp_create_socket::create_udp_socket;

/// Prints what came of a call, an error by its name.
fn say<T: Debug>(what: &str, result: Result<T, ErrorCode>) {
    match result {
        Ok(value) => println!("{what}: {value:?}"),
        Err(code) => println!("{what}: {}", code.name()),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, port: u16) -> IpSocketAddress {
    IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (a, b, c, d) })
}

const LOOPBACK: IpSocketAddress = v4(127, 0, 0, 1, 0);

const fn v6(last: u16, port: u16) -> IpSocketAddress {
    IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info: 0, address: (0, 0, 0, 0, 0, 0, 0, last), scope_id: 0 })
}

fn port(address: IpSocketAddress) -> u16 {
    match address {
        IpSocketAddress::Ipv4(address) => address.port,
        IpSocketAddress::Ipv6(address) => address.port,
    }
}

/// An address without what differs from run to run.
fn shown(address: IpSocketAddress) -> String {
    let ip = match address {
        IpSocketAddress::Ipv4(address) => format!("{:?}", address.address),
        IpSocketAddress::Ipv6(address) => format!("{:?}", address.address),
    };
    format!("{ip} {}", if port(address) == 0 { "without a port" } else { "with a port" })
}

fn tcp() -> TcpSocket {
    create_tcp_socket(IpAddressFamily::Ipv4).expect("a socket")
}

fn udp() -> UdpSocket {
    create_udp_socket(IpAddressFamily::Ipv4).expect("a socket")
}

fn wait<T>(finish: impl Fn() -> Result<T, ErrorCode>, ready: impl Fn()) -> Result<T, ErrorCode> {
    loop {
        match finish() {
            Err(ErrorCode::WouldBlock) => ready(),
            other => return other,
        }
    }
}

fn bind(socket: &TcpSocket, address: IpSocketAddress) -> Result<(), ErrorCode> {
    socket.start_bind(&instance_network(), address)?;
    wait(|| socket.finish_bind(), || socket.subscribe().block())
}

fn listen(socket: &TcpSocket) -> Result<(), ErrorCode> {
    socket.start_listen()?;
    wait(|| socket.finish_listen(), || socket.subscribe().block())
}

fn connect(socket: &TcpSocket, address: IpSocketAddress) -> Result<(InputStream, OutputStream), ErrorCode> {
    socket.start_connect(&instance_network(), address)?;
    wait(|| socket.finish_connect(), || socket.subscribe().block())
}

fn bind_udp(socket: &UdpSocket, address: IpSocketAddress) -> Result<(), ErrorCode> {
    socket.start_bind(&instance_network(), address)?;
    wait(|| socket.finish_bind(), || socket.subscribe().block())
}

type End = (TcpSocket, InputStream, OutputStream);

/// Both ends of a connection: that which connected, and that which accepted.
pub(crate) fn pair() -> Option<(End, End)> {
    let listener = tcp();
    bind(&listener, LOOPBACK).and_then(|()| listen(&listener)).ok()?;
    let client = tcp();
    let (input, output) = connect(&client, listener.local_address().ok()?).ok()?;
    let accepted = wait(|| listener.accept(), || listener.subscribe().block()).ok()?;
    Some(((client, input, output), accepted))
}

pub(crate) fn all() {
    lookups();
    states();
    connections();
    options();
    datagrams();
}

fn lookups() {
    let network = instance_network();
    let names = [
        "localhost",
        "127.0.0.1",
        "::1",
        "[::1]",
        "0.0.0.0",
        "",
        " ",
        "a b",
        "127.0.0.1:80",
        "[::1]:80",
        "http://x/",
        "dead:BEEF::",
    ];
    for name in names {
        let looked_up = resolve_addresses(&network, name).and_then(|stream| {
            let first = wait(|| stream.resolve_next_address(), || stream.subscribe().block())?;
            // Which addresses a name has is the system's matter.
            Ok(if name == "localhost" { first.map(|_| IpAddress::Ipv4((127, 0, 0, 1))) } else { first })
        });
        say(&format!("resolve-addresses {name:?}"), looked_up);
    }
}

fn states() {
    let network = instance_network();
    let socket = tcp();
    say("address-family", Ok(socket.address_family()));
    say("is-listening", Ok(socket.is_listening()));
    say("local-address unbound", socket.local_address().map(shown));
    say("remote-address unbound", socket.remote_address().map(shown));
    say("finish-bind before it began", socket.finish_bind());
    say("finish-listen before it began", socket.finish_listen());
    say("finish-connect before it began", socket.finish_connect().map(drop));
    say("start-listen unbound", socket.start_listen());
    say("accept unbound", socket.accept().map(drop));
    say("shutdown unbound", socket.shutdown(ShutdownType::Both));
    say("start-bind with the other family", socket.start_bind(&network, v6(1, 0)));
    say("start-bind elsewhere", socket.start_bind(&network, v4(192, 0, 2, 1, 0)).and_then(|()| socket.finish_bind()));
    let socket = tcp();
    say("bind", bind(&socket, LOOPBACK));
    say("bind again", bind(&socket, LOOPBACK));
    say("local-address bound", socket.local_address().map(shown));
    say("accept bound", socket.accept().map(drop));
    let other = tcp();
    say("listen", listen(&socket));
    say("bind where another listens", bind(&other, socket.local_address().expect("an address")));
    say("is-listening", Ok(socket.is_listening()));
    say("listen again", listen(&socket));
    say("bind listening", bind(&socket, LOOPBACK));
    say("connect listening", connect(&socket, LOOPBACK).map(drop));
    say("shutdown listening", socket.shutdown(ShutdownType::Both));
    say("accept without a connection", socket.accept().map(drop));
    say("remote-address listening", socket.remote_address().map(shown));
    say("set-listen-backlog-size listening", socket.set_listen_backlog_size(10));
    for (what, address) in [
        ("nowhere", v4(127, 0, 0, 1, 0)),
        ("any address", v4(0, 0, 0, 0, 80)),
        ("a group", v4(224, 0, 0, 1, 80)),
        ("everybody", v4(255, 255, 255, 255, 80)),
        ("the other family", v6(1, 80)),
    ] {
        say(&format!("connect to {what}"), connect(&tcp(), address).map(drop));
    }
    let closed = {
        let socket = tcp();
        bind(&socket, LOOPBACK).expect("an address");
        socket.local_address().expect("an address")
    };
    let socket = tcp();
    say("connect to a closed port", connect(&socket, closed).map(drop));
    say("connect again after that", connect(&socket, closed).map(drop));
    say("local-address after that", socket.local_address().map(|_| ()));
}

fn connections() {
    let Some((one, other)) = pair() else { return println!("no connection") };
    say("local-address connected", one.0.local_address().map(shown));
    say("remote-address connected", one.0.remote_address().map(shown));
    let addresses = (one.0.local_address().map(port), other.0.remote_address().map(port));
    println!("both ends agree: {}", addresses.0 == addresses.1);
    say("address-family accepted", Ok(other.0.address_family()));
    say("is-listening accepted", Ok(other.0.is_listening()));
    say("bind connected", bind(&one.0, LOOPBACK));
    say("listen connected", listen(&one.0));
    say("connect connected", connect(&one.0, LOOPBACK).map(drop));
    say("accept connected", one.0.accept().map(drop));
    say("finish-connect connected", one.0.finish_connect().map(drop));
    say("shutdown of sending", one.0.shutdown(ShutdownType::Send));
    println!("write after that fails: {}", one.2.write(b"x").is_err());
    println!("check-write after that fails: {}", one.2.check_write().is_err());
    println!("the other end reads the end: {}", other.1.blocking_read(1).is_err());
    println!("the other end still writes: {}", other.2.blocking_write_and_flush(b"x").is_ok());
    println!("this end still reads: {:?}", one.1.blocking_read(1).map_err(|_| ()));
    say("shutdown of sending again", one.0.shutdown(ShutdownType::Send));
    say("shutdown of receiving", one.0.shutdown(ShutdownType::Receive));
    println!("read after that fails: {}", one.1.read(1).is_err());
    say("shutdown of both", one.0.shutdown(ShutdownType::Both));
}

fn options() {
    let socket = tcp();
    say("keep-alive-enabled", socket.keep_alive_enabled());
    say("set-keep-alive-enabled", socket.set_keep_alive_enabled(true).and_then(|()| socket.keep_alive_enabled()));
    say("set-keep-alive-idle-time nothing", socket.set_keep_alive_idle_time(0));
    say("set-keep-alive-idle-time", socket.set_keep_alive_idle_time(5_000_000_000).and_then(|()| socket.keep_alive_idle_time()));
    say(
        "set-keep-alive-idle-time tiny",
        socket.set_keep_alive_idle_time(1).map(|()| socket.keep_alive_idle_time().is_ok_and(|time| time > 0)),
    );
    say(
        "set-keep-alive-idle-time huge",
        socket.set_keep_alive_idle_time(u64::MAX).map(|()| socket.keep_alive_idle_time().is_ok_and(|time| time > 0)),
    );
    say("set-keep-alive-interval nothing", socket.set_keep_alive_interval(0));
    say("set-keep-alive-interval", socket.set_keep_alive_interval(5_000_000_000).and_then(|()| socket.keep_alive_interval()));
    say("set-keep-alive-count nothing", socket.set_keep_alive_count(0));
    say("set-keep-alive-count", socket.set_keep_alive_count(3).and_then(|()| socket.keep_alive_count()));
    say(
        "set-keep-alive-count huge",
        socket.set_keep_alive_count(u32::MAX).map(|()| socket.keep_alive_count().is_ok_and(|count| count > 0)),
    );
    say("set-hop-limit nothing", socket.set_hop_limit(0));
    say("set-hop-limit", socket.set_hop_limit(42).and_then(|()| socket.hop_limit()));
    say("set-hop-limit most", socket.set_hop_limit(255).and_then(|()| socket.hop_limit()));
    say("set-receive-buffer-size nothing", socket.set_receive_buffer_size(0));
    say(
        "set-receive-buffer-size",
        socket.set_receive_buffer_size(64 << 10).map(|()| socket.receive_buffer_size().is_ok_and(|size| size >= 64 << 10)),
    );
    say(
        "set-receive-buffer-size huge",
        socket.set_receive_buffer_size(u64::MAX).map(|()| socket.receive_buffer_size().is_ok_and(|size| size > 0)),
    );
    say("set-send-buffer-size nothing", socket.set_send_buffer_size(0));
    say(
        "set-send-buffer-size",
        socket.set_send_buffer_size(64 << 10).map(|()| socket.send_buffer_size().is_ok_and(|size| size >= 64 << 10)),
    );
    say("set-listen-backlog-size nothing", socket.set_listen_backlog_size(0));
    say("set-listen-backlog-size", socket.set_listen_backlog_size(10));
    let socket = udp();
    say("unicast-hop-limit", socket.set_unicast_hop_limit(42).and_then(|()| socket.unicast_hop_limit()));
    say("set-unicast-hop-limit nothing", socket.set_unicast_hop_limit(0));
    say("udp set-receive-buffer-size nothing", socket.set_receive_buffer_size(0));
    say(
        "udp set-receive-buffer-size",
        socket.set_receive_buffer_size(64 << 10).map(|()| socket.receive_buffer_size().is_ok_and(|size| size >= 64 << 10)),
    );
    say("udp set-send-buffer-size nothing", socket.set_send_buffer_size(0));
    say(
        "udp set-send-buffer-size",
        socket.set_send_buffer_size(64 << 10).map(|()| socket.send_buffer_size().is_ok_and(|size| size >= 64 << 10)),
    );
}

fn datagrams() {
    let (one, other) = (udp(), udp());
    say("udp address-family", Ok(one.address_family()));
    say("udp local-address unbound", one.local_address().map(shown));
    say("udp remote-address unbound", one.remote_address().map(shown));
    say("udp stream unbound", one.stream(None).map(drop));
    say("udp finish-bind before it began", one.finish_bind());
    say("udp bind with the other family", bind_udp(&one, v6(1, 0)));
    say("udp bind", bind_udp(&one, LOOPBACK));
    say("udp bind again", bind_udp(&one, LOOPBACK));
    say("udp local-address", one.local_address().map(shown));
    bind_udp(&other, LOOPBACK).expect("an address");
    let to_other = other.local_address().expect("an address");
    let (one_in, one_out) = one.stream(None).expect("streams");
    let (other_in, other_out) = other.stream(None).expect("streams");
    say("udp remote-address without a peer", one.remote_address().map(shown));
    println!("udp check-send gives room: {}", one_out.check_send().is_ok_and(|count| count > 0));
    println!("udp ready to send: {}", one_out.subscribe().ready());
    say("udp receive where nothing is", other_in.receive(10).map(|datagrams| datagrams.len()));
    say("udp send nothing", one_out.send(&[]));
    let datagram = |data: &[u8], remote_address| OutgoingDatagram { data: data.to_vec(), remote_address };
    say("udp send without a peer", one_out.check_send().and_then(|_| one_out.send(&[datagram(b"x", None)])));
    say("udp send to the other family", one_out.check_send().and_then(|_| one_out.send(&[datagram(b"x", Some(v6(1, 9)))])));
    say("udp send to no port", one_out.check_send().and_then(|_| one_out.send(&[datagram(b"x", Some(LOOPBACK))])));
    say("udp send", one_out.check_send().and_then(|_| one_out.send(&[datagram(b"hello", Some(to_other))])));
    other_in.subscribe().block();
    say("udp receive none", other_in.receive(0).map(|datagrams| datagrams.len()));
    let came = other_in.receive(10).expect("a datagram");
    println!(
        "udp receive: {:?}",
        came.iter().map(|datagram| String::from_utf8_lossy(&datagram.data).into_owned()).collect::<Vec<_>>()
    );
    let back = came[0].remote_address;
    println!("udp the sender is known: {}", Ok(port(back)) == one.local_address().map(port));
    say("udp send empty", other_out.check_send().and_then(|_| other_out.send(&[datagram(b"", Some(back))])));
    one_in.subscribe().block();
    say(
        "udp receive empty",
        one_in.receive(10).map(|datagrams| datagrams.iter().map(|datagram| datagram.data.len()).collect::<Vec<_>>()),
    );
    say("udp send too much", one_out.check_send().and_then(|_| one_out.send(&[datagram(&[0; 70_000], Some(to_other))])));
    drop((one_in, one_out));
    let (one_in, one_out) = one.stream(Some(to_other)).expect("streams");
    say("udp remote-address with a peer", one.remote_address().map(shown));
    say("udp send to the peer", one_out.check_send().and_then(|_| one_out.send(&[datagram(b"peer", None)])));
    say(
        "udp send to the peer by its address",
        one_out.check_send().and_then(|_| one_out.send(&[datagram(b"peer", Some(to_other))])),
    );
    say(
        "udp send to another than the peer",
        one_out.check_send().and_then(|_| one_out.send(&[datagram(b"x", Some(v4(127, 0, 0, 1, 9)))])),
    );
    other_in.subscribe().block();
    println!("udp receive from the peer: {}", other_in.receive(1).is_ok_and(|datagrams| datagrams.len() == 1));
    drop((one_in, one_out));
    say("udp stream to no port", one.stream(Some(LOOPBACK)).map(drop));
    say("udp stream to any address", one.stream(Some(v4(0, 0, 0, 0, 9))).map(drop));
    say("udp stream to the other family", one.stream(Some(v6(1, 9))).map(drop));
    say("udp stream without a peer again", one.stream(None).map(drop));
    say("udp remote-address after that", one.remote_address().map(shown));
}
