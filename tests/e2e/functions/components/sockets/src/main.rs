//! Sockets as any program has them: the standard library's, and nothing of Sledge's.
//!
//! A command a line, in standard input or the arguments; an answer a line. What fails is answered with the kind of the error.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        io::stdin().lines().map_while(Result::ok).for_each(|line| answer(&line));
    } else {
        arguments.iter().for_each(|line| answer(line));
    }
}

fn answer(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let done = match *words {
        ["echo", address, text] => echo(address, text),
        ["large", address, count] => large(address, count.parse().unwrap()),
        ["wait", address] => wait(address),
        ["listen", address] => listen(address),
        ["send", from, to, text] => send(from, to, text),
        ["receive", address] => receive(address),
        ["lookup", host] => lookup(host),
        ["options", address] => options(address),
        _ => Ok(format!("what is {line}?")),
    };
    let text = done.unwrap_or_else(|error| format!("{:?}", error.kind()));
    println!("{text}");
}

/// Says something to a server that says it again, and hears both ends of the connection end.
fn echo(address: &str, text: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut all = String::new();
    stream.read_to_string(&mut all)?;
    Ok(format!("{} {all}", stream.peer_addr()?))
}

/// Sends many bytes to a server that sends them back only then.
fn large(address: &str, count: usize) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let bytes: Vec<u8> = (0..count).map(|at| (at % 251) as u8).collect();
    stream.write_all(&bytes)?;
    stream.shutdown(Shutdown::Write)?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all)?;
    Ok(format!("{} {}", all.len(), all == bytes))
}

/// Waits for a server that says nothing.
fn wait(address: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    println!("waits");
    let count = stream.read(&mut [0; 1])?;
    Ok(count.to_string())
}

/// Serves one client, which says where to go on at the end of a line.
fn listen(address: &str) -> io::Result<String> {
    let listener = TcpListener::bind(address)?;
    eprintln!("listens at {}", listener.local_addr()?);
    let (stream, _) = listener.accept()?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    (&stream).write_all(line.to_uppercase().as_bytes())?;
    Ok(line.trim_end().to_owned())
}

/// Sends a datagram, both ways of naming its receiver, and waits for the answers.
fn send(from: &str, to: &str, text: &str) -> io::Result<String> {
    let socket = UdpSocket::bind(from)?;
    let mut bytes = [0; 100];
    socket.send_to(text.as_bytes(), to)?;
    let (first, peer) = socket.recv_from(&mut bytes)?;
    let first = String::from_utf8_lossy(&bytes[..first]).into_owned();
    socket.connect(to)?;
    socket.send(text.as_bytes())?;
    let second = socket.recv(&mut bytes)?;
    Ok(format!("{peer} {first} {}", String::from_utf8_lossy(&bytes[..second])))
}

/// Waits for a datagram from anybody.
fn receive(address: &str) -> io::Result<String> {
    let socket = UdpSocket::bind(address)?;
    eprintln!("receives at {}", socket.local_addr()?);
    let mut bytes = [0; 100];
    let (count, _) = socket.recv_from(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

fn lookup(host: &str) -> io::Result<String> {
    let mut found: Vec<String> = host.to_socket_addrs()?.map(|address| address.to_string()).collect();
    found.sort();
    found.dedup();
    Ok(found.join(" "))
}

fn options(address: &str) -> io::Result<String> {
    let stream = TcpStream::connect(address)?;
    stream.set_ttl(9)?;
    stream.set_nonblocking(true)?;
    let kind = (&stream).read(&mut [0; 1]).map_err(|error| error.kind());
    Ok(format!("{} {kind:?}", stream.ttl()?))
}
