//! `tcp-socket`: connecting, and the two streams of a connection. Either may be had once.

use std::sync::Arc;

use super::{ErrorCode, Tcp, Wasi3};
use crate::host::canonical::Subject;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::sockets::socket::watched_then;
use crate::host::wasi2::sockets::tcp::{State, connect_then};
use crate::host::wasi2::sockets::{self, Connection, answer};
use crate::host::wasi2::streams::{InputStream, OutputStream};
use crate::host::wasi3::ends::{Source, begin};
use crate::host::wasi3::pump;
use crate::host::{Call, Flat, Stop};

/// `connect(self, remote-address: ip-socket-address) -> result<_, error-code>`
pub(super) fn connect(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<Tcp>(1)?;
    let address = call.address(2)?;
    connect_then::<Wasi3>(call, address, move |call, begun| match begun {
        Ok(()) => finish(call, representation),
        Err(code) => answer::<Wasi3, ()>(call, 14, Err(code)),
    })
}

/// Says what became of a connection when that is known.
fn finish(call: &mut Call<'_>, representation: u32) -> Result<Flat, Stop> {
    match call.context.ports.resource::<Tcp>(representation)?.connected() {
        Err(sockets::ErrorCode::WouldBlock) => {
            Err(call.until_ready(&[Subject::Of(representation)], move |call| finish(call, representation)))
        }
        connected => answer::<Wasi3, _>(call, 14, connected.map(|_| ())),
    }
}

/// Goes on with the connection of the socket that is argument 1, if it has one and `may` says that the component may still have that stream of it. The runtime watches
/// one that was accepted from its first use on.
fn connection_then(
    call: &mut Call<'_>,
    may: fn(&mut Tcp) -> bool,
    then: impl FnOnce(&mut Call<'_>, Result<Arc<Connection>, Fault>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let representation = call.representation::<Tcp>(1)?;
    let tcp = call.borrowed::<Tcp>(1)?;
    let remote = match &tcp.state {
        State::Connected(connection) => {
            let connection = Arc::clone(connection);
            let invalid = Fault::Network(sockets::ErrorCode::InvalidState);
            let connection = if may(tcp) { Ok(connection) } else { Err(invalid) };
            return then(call, connection);
        }
        State::Accepted(remote) => *remote,
        _ => return then(call, Err(Fault::Network(sockets::ErrorCode::InvalidState))),
    };
    watched_then::<Tcp>(call, representation, move |call, watched| match watched {
        Ok(watched) => {
            let connection = Arc::new(Connection::new(watched, remote));
            call.context.ports.resource::<Tcp>(representation)?.state = State::Connected(connection);
            connection_then(call, may, then)
        }
        Err(code) => then(call, Err(Fault::Network(code))),
    })
}

/// `send(self, data: stream<u8>) -> future<result<_, error-code>>`: the peer is told that no more comes when the stream is closed.
pub(super) fn send(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let may_send = |tcp: &mut Tcp| std::mem::take(&mut tcp.may_send);
    connection_then(call, may_send, |call, connection| {
        let stream = connection.map(OutputStream::Socket);
        let (stream, outcome) = begin::<ErrorCode, _>(call, 3, stream, OutputStream::Failed)?;
        pump::take(call, call.args.u32(2), stream, outcome)?;
        Ok(Flat::NONE)
    })
}

/// `receive(self) -> tuple<stream<u8>, future<result<_, error-code>>>`: nothing is received any more when the stream is dropped.
pub(super) fn receive(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let may_receive = |tcp: &mut Tcp| std::mem::take(&mut tcp.may_receive);
    connection_then(call, may_receive, |call, connection| {
        let stream = connection.map(|connection| {
            connection.end_with_input();
            InputStream::Socket(connection)
        });
        let (stream, outcome) = begin::<ErrorCode, _>(call, 3, stream, InputStream::Failed)?;
        call.share(call.args.u32(2), Arc::new(Source { stream, outcome }))?;
        Ok(Flat::NONE)
    })
}
