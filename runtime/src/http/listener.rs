//! Sockets that listen, and the loop that accepts.
//!
//! Per core, every worker has a socket of its own on the same port (SO_REUSEPORT) and the kernel spreads connections over them.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::num::NonZeroU32;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{HttpService, Open, Site, connection};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 4_096;
/// How long connections that a client has begun to make may take to be there, when the server stops.
const HANDSHAKE_TIME: Duration = Duration::from_millis(100);
/// How long to wait after accepting failed, for want of file descriptors or memory.
const PAUSE: Duration = Duration::from_millis(20);

/// Opens `count` sockets that listen on the same address; a port of 0 becomes a free one.
///
/// # Errors
/// When the address cannot be had: also when another process of the same user listens there with SO_REUSEPORT, which alone the kernel
/// would allow.
pub fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<StdListener>> {
    if address.port() != 0 {
        drop(socket(address, false)?);
    }
    let first = socket(address, true)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(socket(address, true)?);
    }
    Ok(listeners)
}

fn socket(address: SocketAddr, reuse_port: bool) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Makes a listening socket take no new connection: from now on it is only for those of a network interface that does not exist, so that the kernel
/// refuses new connections. Connections that it has made or is making stay; closing the socket at once would reset them. Needs no privilege.
fn refuse_new(listener: &TcpListener) -> io::Result<()> {
    // The same option (SO_BINDTOIFINDEX) whatever the family. The kernel does not ask whether there is such an interface; numbers begin with 1.
    SockRef::from(listener).bind_device_by_index_v4(NonZeroU32::new(i32::MAX.unsigned_abs()))
}

/// Accepts connections and serves each in a task of this thread, until `stop` changes. Connections that the kernel has made by then, or is
/// making, are served too, if a request comes with them.
pub async fn accept(service: Rc<HttpService>, site: Site, listener: TcpListener, mut stop: watch::Receiver<bool>) {
    let _open = Open::new(Rc::clone(&service));
    // Open before its task first runs, so that the service is not taken to be closed in between.
    let serve = |stream| connection::serve(Open::new(Rc::clone(&service)), site, stream);
    let mut stopping = pin!(async {
        let _ = stop.wait_for(|stop| *stop).await;
        if service.is_inherited && site.is_none() {
            // A client that connects now waits for the next server.
            return;
        }
        if let Err(error) = refuse_new(&listener) {
            tracing::debug!(%error, "connections that come while the server stops may be reset");
        }
        tokio::time::sleep(HANDSHAKE_TIME).await;
    });
    let mut paused = false;
    loop {
        if service.is_full() {
            // Others wait in the kernel's queue until those that are idle have gone.
            service.connections.shed();
            tokio::select! {
                biased;
                () = stopping.as_mut() => break,
                () = tokio::time::sleep(PAUSE) => continue,
            }
        }
        let accepted = tokio::select! {
            biased;
            () = stopping.as_mut() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                paused = false;
                tokio::task::spawn_local(serve(stream));
            }
            // The client has gone again.
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                if !paused {
                    tracing::error!(%error, "cannot accept connections; trying again");
                }
                paused = true;
                service.connections.shed();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    // Past tokio, which only knows what it was told when the thread last looked.
    let listener = SockRef::from(&listener);
    for _ in 0..BACKLOG {
        match listener.accept() {
            Ok((socket, _)) if socket.set_nonblocking(true).is_ok() => {
                if let Ok(stream) = TcpStream::from_std(socket.into()) {
                    tokio::task::spawn_local(serve(stream));
                }
            }
            Ok(_) => {}
            Err(error) if is_of_connection(&error) => {}
            Err(_) => return,
        }
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_sockets_share_one_free_port() {
        let listeners = bind("127.0.0.1:0".parse().unwrap(), 3).unwrap();
        let ports: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert_ne!(ports[0], 0);
        assert!(ports.iter().all(|port| *port == ports[0]));
    }

    #[test]
    fn a_port_that_is_taken_is_refused_although_it_could_be_shared() {
        let listeners = bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        let error = bind(listeners[0].local_addr().unwrap(), 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
