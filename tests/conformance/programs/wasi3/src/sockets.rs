//! `wasi:sockets`, on this machine only.

use std::fmt::Debug;

use futures::join;
use wasip3::sockets::ip_name_lookup::resolve_addresses;
use wasip3::sockets::types::{
    ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress, TcpSocket, UdpSocket,
};
use wasip3::wit_bindgen::StreamResult;
use wasip3::wit_stream;

/// Prints what came of a call.
fn say<T: Debug>(what: &str, result: Result<T, ErrorCode>) {
    match result {
        Ok(value) => println!("{what}: {value:?}"),
        Err(code) => println!("{what}: {code:?}"),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, port: u16) -> IpSocketAddress {
    IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (a, b, c, d) })
}

const LOOPBACK: IpSocketAddress = v4(127, 0, 0, 1, 0);

const fn v6(last: u16, port: u16) -> IpSocketAddress {
    IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info: 0, address: (0, 0, 0, 0, 0, 0, 0, last), scope_id: 0 })
}

fn port(address: &IpSocketAddress) -> u16 {
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
    format!("{ip} {}", if port(&address) == 0 { "without a port" } else { "with a port" })
}

fn tcp() -> TcpSocket {
    TcpSocket::create(IpAddressFamily::Ipv4).expect("a socket")
}

fn udp() -> UdpSocket {
    UdpSocket::create(IpAddressFamily::Ipv4).expect("a socket")
}

pub(crate) async fn all() {
    lookups().await;
    states().await;
    connections().await;
    options();
    datagrams().await;
}

async fn lookups() {
    for name in ["localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0", "", " ", "a b", "127.0.0.1:80", "http://x/", "dead:BEEF::"]
    {
        match resolve_addresses(name.to_owned()).await {
            // Which addresses a name has is the system's matter.
            Ok(addresses) if name == "localhost" => println!("resolve-addresses {name:?}: {}", addresses.is_empty()),
            Ok(addresses) => println!("resolve-addresses {name:?}: {addresses:?}"),
            Err(code) => println!("resolve-addresses {name:?}: {code:?}"),
        }
    }
}

async fn states() {
    let socket = tcp();
    say("get-address-family", Ok(socket.get_address_family()));
    say("get-is-listening", Ok(socket.get_is_listening()));
    say("get-local-address unbound", socket.get_local_address().map(shown));
    say("get-remote-address unbound", socket.get_remote_address().map(shown));
    let (mut stream, told) = socket.receive();
    println!("receive unbound: {}", matches!(stream.read(Vec::with_capacity(1)).await.0, StreamResult::Dropped));
    say("receive unbound, result", told.await);
    let (writer, reader) = wit_stream::new();
    drop(writer);
    say("send unbound", socket.send(reader).await);
    say("bind with the other family", socket.bind(v6(1, 0)));
    say("bind elsewhere", socket.bind(v4(192, 0, 2, 1, 0)));
    let socket = tcp();
    say("bind", socket.bind(LOOPBACK));
    say("bind again", socket.bind(LOOPBACK));
    say("get-local-address bound", socket.get_local_address().map(shown));
    let _connections = socket.listen();
    say("listen", _connections.as_ref().map(|_| ()).map_err(Clone::clone));
    say("get-is-listening", Ok(socket.get_is_listening()));
    say("listen again", socket.listen().map(|_| ()));
    say("bind listening", socket.bind(LOOPBACK));
    say("connect listening", socket.connect(LOOPBACK).await);
    let used = socket.get_local_address().expect("an address");
    say("bind where another listens", tcp().bind(used));
    for (what, address) in [
        ("nowhere", v4(127, 0, 0, 1, 0)),
        ("any address", v4(0, 0, 0, 0, 80)),
        ("a group", v4(224, 0, 0, 1, 80)),
        ("everybody", v4(255, 255, 255, 255, 80)),
        ("the other family", v6(1, 80)),
    ] {
        say(&format!("connect to {what}"), tcp().connect(address).await);
    }
    let closed = {
        let socket = tcp();
        socket.bind(LOOPBACK).expect("an address");
        socket.get_local_address().expect("an address")
    };
    let socket = tcp();
    say("connect to a closed port", socket.connect(closed).await);
    say("connect again after that", socket.connect(closed).await);
    say("listen after that", socket.listen().map(|_| ()));
}

async fn connections() {
    let listener = tcp();
    listener.bind(LOOPBACK).expect("an address");
    let mut accepting = listener.listen().expect("connections");
    let address = listener.get_local_address().expect("an address");
    let client = tcp();
    let (connected, accepted) = join!(client.connect(address), async { accepting.next().await.expect("a connection") });
    say("connect", connected);
    say("get-local-address connected", client.get_local_address().map(shown));
    say("get-remote-address connected", client.get_remote_address().map(shown));
    let agree = client.get_local_address().map(|address| port(&address)).ok()
        == accepted.get_remote_address().map(|address| port(&address)).ok();
    println!("both ends agree: {agree}");
    say("get-is-listening accepted", Ok(accepted.get_is_listening()));
    say("bind connected", client.bind(LOOPBACK));
    say("listen connected", client.listen().map(|_| ()));
    say("connect connected", client.connect(address).await);
    let (mut writer, reader) = wit_stream::new();
    let sent = client.send(reader);
    let (mut received, told) = accepted.receive();
    let ((), bytes) = join!(
        async {
            assert!(writer.write_all(b"hello".to_vec()).await.is_empty());
            drop(writer);
        },
        async {
            let mut all = Vec::new();
            loop {
                let (status, bytes) = received.read(Vec::with_capacity(100)).await;
                all.extend(bytes);
                if matches!(status, StreamResult::Dropped) {
                    return all;
                }
            }
        }
    );
    println!("received: {:?}", String::from_utf8_lossy(&bytes));
    say("receive, result", told.await);
    say("send, result", sent.await);
    let (mut again, told) = accepted.receive();
    println!("receive again: {}", matches!(again.read(Vec::with_capacity(1)).await.0, StreamResult::Dropped));
    say("receive again, result", told.await);
    let (writer, reader) = wit_stream::new();
    drop(writer);
    say("send again", client.send(reader).await);
    drop(accepted);
    let (mut received, told) = client.receive();
    println!(
        "receive when the other end is gone: {}",
        matches!(received.read(Vec::with_capacity(1)).await.0, StreamResult::Dropped)
    );
    say("receive when the other end is gone, result", told.await);
}

fn options() {
    let socket = tcp();
    say("get-keep-alive-enabled", socket.get_keep_alive_enabled());
    say("set-keep-alive-enabled", socket.set_keep_alive_enabled(true).and_then(|()| socket.get_keep_alive_enabled()));
    say("set-keep-alive-idle-time nothing", socket.set_keep_alive_idle_time(0));
    say(
        "set-keep-alive-idle-time",
        socket.set_keep_alive_idle_time(5_000_000_000).and_then(|()| socket.get_keep_alive_idle_time()),
    );
    say("set-keep-alive-interval nothing", socket.set_keep_alive_interval(0));
    say("set-keep-alive-interval", socket.set_keep_alive_interval(5_000_000_000).and_then(|()| socket.get_keep_alive_interval()));
    say("set-keep-alive-count nothing", socket.set_keep_alive_count(0));
    say("set-keep-alive-count", socket.set_keep_alive_count(3).and_then(|()| socket.get_keep_alive_count()));
    say("set-hop-limit nothing", socket.set_hop_limit(0));
    say("set-hop-limit", socket.set_hop_limit(42).and_then(|()| socket.get_hop_limit()));
    say("set-receive-buffer-size nothing", socket.set_receive_buffer_size(0));
    say(
        "set-receive-buffer-size",
        socket.set_receive_buffer_size(64 << 10).map(|()| socket.get_receive_buffer_size().is_ok_and(|size| size >= 64 << 10)),
    );
    say("set-send-buffer-size nothing", socket.set_send_buffer_size(0));
    say(
        "set-send-buffer-size",
        socket.set_send_buffer_size(64 << 10).map(|()| socket.get_send_buffer_size().is_ok_and(|size| size >= 64 << 10)),
    );
    say("set-listen-backlog-size nothing", socket.set_listen_backlog_size(0));
    say("set-listen-backlog-size", socket.set_listen_backlog_size(10));
    let socket = udp();
    say("set-unicast-hop-limit nothing", socket.set_unicast_hop_limit(0));
    say("set-unicast-hop-limit", socket.set_unicast_hop_limit(42).and_then(|()| socket.get_unicast_hop_limit()));
    say("udp set-receive-buffer-size nothing", socket.set_receive_buffer_size(0));
    say("udp set-send-buffer-size nothing", socket.set_send_buffer_size(0));
}

async fn datagrams() {
    let (one, other) = (udp(), udp());
    say("udp get-address-family", Ok(one.get_address_family()));
    say("udp get-local-address unbound", one.get_local_address().map(shown));
    say("udp get-remote-address unbound", one.get_remote_address().map(shown));
    say("udp receive unbound", one.receive().await.map(|_| ()));
    say("udp disconnect unconnected", one.disconnect());
    say("udp send without a peer", one.send(b"x".to_vec(), None).await);
    say("udp bind with the other family", one.bind(v6(1, 0)));
    let one = udp();
    say("udp bind", one.bind(LOOPBACK));
    say("udp bind again", one.bind(LOOPBACK));
    say("udp get-local-address", one.get_local_address().map(shown));
    other.bind(LOOPBACK).expect("an address");
    let to_other = other.get_local_address().expect("an address");
    say("udp send to the other family", one.send(b"x".to_vec(), Some(v6(1, 9))).await);
    say("udp send to no port", one.send(b"x".to_vec(), Some(LOOPBACK)).await);
    say("udp send too much", one.send(vec![0; 70_000], Some(to_other)).await);
    say("udp send", one.send(b"hello".to_vec(), Some(to_other)).await);
    let received = other.receive().await;
    let back = received.as_ref().ok().map(|(_, from)| *from);
    say("udp receive", received.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned()));
    println!("udp the sender is known: {}", back.as_ref().map(port) == one.get_local_address().ok().as_ref().map(port));
    say("udp send empty", other.send(Vec::new(), back).await);
    say("udp receive empty", one.receive().await.map(|(bytes, _)| bytes));
    say("udp connect to no port", one.connect(LOOPBACK));
    say("udp connect to any address", one.connect(v4(0, 0, 0, 0, 9)));
    say("udp connect to the other family", one.connect(v6(1, 9)));
    say("udp connect", one.connect(to_other));
    say("udp get-remote-address", one.get_remote_address().map(shown));
    say("udp send to the peer", one.send(b"peer".to_vec(), None).await);
    say("udp receive from the peer", other.receive().await.map(|(bytes, _)| bytes));
    say("udp send to the peer by its address", one.send(b"peer".to_vec(), Some(to_other)).await);
    say("udp send to another than the peer", one.send(b"x".to_vec(), Some(v4(127, 0, 0, 1, 9))).await);
    say("udp connect again", one.connect(to_other));
    say("udp disconnect", one.disconnect());
    say("udp get-remote-address after that", one.get_remote_address().map(shown));
}
