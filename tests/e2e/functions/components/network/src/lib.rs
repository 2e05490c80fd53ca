//! What WASI 0.3 offers of sockets to a command.
//!
//! A command a line, in standard input or the arguments; an answer a line. What fails is answered with the error's name.

use std::net::SocketAddr;
use std::pin::pin;

use futures::future::{Either, join_all, select};
use wasip3::clocks::monotonic_clock::wait_for;
use wasip3::exports::cli::run::Guest;
use wasip3::sockets::ip_name_lookup::resolve_addresses;
use wasip3::sockets::types::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress, TcpSocket, UdpSocket,
};
use wasip3::wit_bindgen::rt::async_support::StreamReader;
use wasip3::wit_stream;

wasip3::cli::command::export!(Command);

struct Command;

impl Guest for Command {
    async fn run() -> Result<(), ()> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if arguments.is_empty() {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                answer(&line).await;
            }
        }
        for line in arguments {
            answer(&line).await;
        }
        Ok(())
    }
}

async fn answer(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let done = match *words {
        ["echo", to, text] => echo(address(to), text).await,
        ["large", to, count] => large(address(to), count.parse().unwrap()).await,
        ["wait", to] => wait(address(to)).await,
        ["listen", at, count] => listen(address(at), count.parse().unwrap()).await,
        ["anywhere"] => anywhere(),
        ["pass", at] => pass(address(at)).await,
        ["send", from, to, text] => send(address(from), address(to), text).await,
        ["shout", to, text] => shout(address(to), text).await,
        ["receive", at] => receive(address(at)).await,
        ["late", at, text] => late(address(at), text).await,
        ["lookup", name] => lookup(name).await,
        ["options", to] => options(address(to)).await,
        _ => Ok(format!("what is {line}?")),
    };
    println!("{}", done.unwrap_or_else(|code| format!("{code:?}")));
}

fn address(text: &str) -> IpSocketAddress {
    match text.parse().unwrap() {
        SocketAddr::V4(address) => {
            let [a, b, c, d] = address.ip().octets();
            IpSocketAddress::Ipv4(Ipv4SocketAddress { port: address.port(), address: (a, b, c, d) })
        }
        SocketAddr::V6(address) => {
            let [a, b, c, d, e, f, g, h] = address.ip().segments();
            let (flow_info, scope_id) = (address.flowinfo(), address.scope_id());
            let address = Ipv6SocketAddress { port: address.port(), flow_info, address: (a, b, c, d, e, f, g, h), scope_id };
            IpSocketAddress::Ipv6(address)
        }
    }
}

fn text_of(address: IpSocketAddress) -> String {
    let ip = match address {
        IpSocketAddress::Ipv4(address) => IpAddress::Ipv4(address.address),
        IpSocketAddress::Ipv6(address) => IpAddress::Ipv6(address.address),
    };
    let (IpSocketAddress::Ipv4(Ipv4SocketAddress { port, .. }) | IpSocketAddress::Ipv6(Ipv6SocketAddress { port, .. })) = address;
    SocketAddr::new(ip_of(ip), port).to_string()
}

fn ip_of(address: IpAddress) -> std::net::IpAddr {
    match address {
        IpAddress::Ipv4((a, b, c, d)) => [a, b, c, d].into(),
        IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => [a, b, c, d, e, f, g, h].into(),
    }
}

fn family(address: &IpSocketAddress) -> IpAddressFamily {
    match address {
        IpSocketAddress::Ipv4(_) => IpAddressFamily::Ipv4,
        IpSocketAddress::Ipv6(_) => IpAddressFamily::Ipv6,
    }
}

async fn connected(to: IpSocketAddress) -> Result<TcpSocket, ErrorCode> {
    let socket = TcpSocket::create(family(&to))?;
    socket.connect(to).await?;
    Ok(socket)
}

/// Sends all of it, and says that no more comes.
async fn send_all(socket: &TcpSocket, bytes: Vec<u8>) -> Result<(), ErrorCode> {
    let (mut writer, reader) = wit_stream::new();
    let sent = socket.send(reader);
    let left = writer.write_all(bytes).await;
    drop(writer);
    sent.await?;
    assert!(left.is_empty(), "what is not sent is told");
    Ok(())
}

/// Receives until the peer says that no more comes.
async fn receive_all(socket: &TcpSocket) -> Result<Vec<u8>, ErrorCode> {
    let (reader, ended) = socket.receive();
    let bytes = reader.collect().await;
    ended.await?;
    Ok(bytes)
}

/// Says something to a server that says it again.
async fn echo(to: IpSocketAddress, text: &str) -> Result<String, ErrorCode> {
    let socket = connected(to).await?;
    send_all(&socket, text.as_bytes().to_vec()).await?;
    let all = receive_all(&socket).await?;
    Ok(format!("{} {}", text_of(socket.get_remote_address()?), String::from_utf8_lossy(&all)))
}

/// Sends many bytes to a server that sends them back.
async fn large(to: IpSocketAddress, count: usize) -> Result<String, ErrorCode> {
    let socket = connected(to).await?;
    let bytes: Vec<u8> = (0..count).map(|at| (at % 251) as u8).collect();
    let (sent, all) = futures::join!(send_all(&socket, bytes.clone()), receive_all(&socket));
    sent?;
    let all = all?;
    Ok(format!("{} {}", all.len(), all == bytes))
}

/// Waits for a server that says nothing.
async fn wait(to: IpSocketAddress) -> Result<String, ErrorCode> {
    let socket = connected(to).await?;
    println!("waits");
    Ok(receive_all(&socket).await?.len().to_string())
}

/// A socket that listens there, and where its connections come.
fn listening(at: IpSocketAddress) -> Result<(TcpSocket, StreamReader<TcpSocket>), ErrorCode> {
    let socket = TcpSocket::create(family(&at))?;
    socket.bind(at)?;
    let connections = socket.listen()?;
    eprintln!("listens at {}", text_of(socket.get_local_address()?));
    Ok((socket, connections))
}

/// Waits for so many clients, and then serves all of them at once: each is answered in capitals when it has said all.
async fn listen(at: IpSocketAddress, count: usize) -> Result<String, ErrorCode> {
    let (socket, mut connections) = listening(at)?;
    let mut clients = Vec::new();
    while clients.len() < count {
        clients.push(connections.next().await.expect("it ends never"));
    }
    drop((socket, connections));
    let served = join_all(clients.iter().map(async |client| {
        let all = receive_all(client).await?;
        send_all(client, all.to_ascii_uppercase()).await?;
        Ok(String::from_utf8_lossy(&all).into_owned())
    }));
    let mut said = served.await.into_iter().collect::<Result<Vec<_>, ErrorCode>>()?;
    said.sort();
    Ok(said.join(" "))
}

/// Listens at an address that the system chooses.
fn anywhere() -> Result<String, ErrorCode> {
    let socket = TcpSocket::create(IpAddressFamily::Ipv4)?;
    let _connections = socket.listen()?;
    Ok(socket.get_is_listening().to_string())
}

/// Serves one client: what comes goes back, without having been seen.
async fn pass(at: IpSocketAddress) -> Result<String, ErrorCode> {
    let (_socket, mut connections) = listening(at)?;
    let client = connections.next().await.expect("it ends never");
    let (data, ended) = client.receive();
    client.send(data).await?;
    ended.await?;
    Ok("passed".to_owned())
}

/// Sends a datagram, both ways of naming its receiver, and waits for the answers.
async fn send(from: IpSocketAddress, to: IpSocketAddress, text: &str) -> Result<String, ErrorCode> {
    let socket = UdpSocket::create(family(&from))?;
    socket.bind(from)?;
    socket.send(text.as_bytes().to_vec(), Some(to)).await?;
    let (first, peer) = socket.receive().await?;
    socket.connect(to)?;
    socket.send(text.as_bytes().to_vec(), None).await?;
    let (second, _) = socket.receive().await?;
    socket.disconnect()?;
    let told = socket.send(text.as_bytes().to_vec(), None).await;
    let (first, second) = (String::from_utf8_lossy(&first), String::from_utf8_lossy(&second));
    Ok(format!("{} {first} {second} {told:?}", text_of(peer)))
}

/// The same with a socket that has no address before, and two datagrams at once.
async fn shout(to: IpSocketAddress, text: &str) -> Result<String, ErrorCode> {
    let socket = UdpSocket::create(family(&to))?;
    let early = socket.receive().await.err();
    let bytes = || text.as_bytes().to_vec();
    let (first, second) = futures::join!(socket.send(bytes(), Some(to)), socket.send(bytes(), Some(to)));
    first.and(second)?;
    let (first, second) = futures::join!(socket.receive(), socket.receive());
    let (first, second) = (first?.0, second?.0);
    Ok(format!("{early:?} {} {}", String::from_utf8_lossy(&first), first == second))
}

/// Waits for a datagram from anywhere.
async fn receive(at: IpSocketAddress) -> Result<String, ErrorCode> {
    let socket = UdpSocket::create(family(&at))?;
    socket.bind(at)?;
    eprintln!("receives at {}", text_of(socket.get_local_address()?));
    let (bytes, _) = socket.receive().await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Gives up to wait for a datagram and for a connection, and sends itself one then.
async fn late(at: IpSocketAddress, text: &str) -> Result<String, ErrorCode> {
    let socket = UdpSocket::create(family(&at))?;
    socket.bind(at)?;
    let given_up = matches!(select(pin!(socket.receive()), pin!(wait_for(50_000_000))).await, Either::Right(_));
    let (_listener, mut connections) = listening(at)?;
    let no_client = matches!(select(pin!(connections.next()), pin!(wait_for(50_000_000))).await, Either::Right(_));
    let sent = UdpSocket::create(family(&at))?.send(text.as_bytes().to_vec(), Some(socket.get_local_address()?)).await;
    let (bytes, _) = match sent {
        Ok(()) => socket.receive().await?,
        Err(code) => return Ok(format!("{given_up} {no_client} {code:?}")),
    };
    Ok(format!("{given_up} {no_client} {}", String::from_utf8_lossy(&bytes)))
}

async fn lookup(name: &str) -> Result<String, ErrorCode> {
    Ok(match resolve_addresses(name.to_owned()).await {
        Ok(found) => {
            let mut found: Vec<String> = found.into_iter().map(|address| ip_of(address).to_string()).collect();
            found.sort();
            found.join(" ")
        }
        Err(code) => format!("{code:?}"),
    })
}

async fn options(to: IpSocketAddress) -> Result<String, ErrorCode> {
    let socket = connected(to).await?;
    socket.set_hop_limit(9)?;
    let zero = socket.set_hop_limit(0);
    socket.set_keep_alive_enabled(true)?;
    socket.set_keep_alive_idle_time(5_000_000_000)?;
    let (hops, time) = (socket.get_hop_limit()?, socket.get_keep_alive_idle_time()?);
    Ok(format!("{hops} {zero:?} {} {time}", socket.get_keep_alive_enabled()?))
}
