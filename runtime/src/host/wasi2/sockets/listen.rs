//! A `tcp-socket` to which others connect.

use std::sync::Arc;

use awsm_abi::types::ValType::{I32, I64};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with, listen};
use tracing::Level;

use super::address::said;
use super::socket::{Binding, watched_then};
use super::tcp::{State, TcpSocket, give_streams};
use super::watched::{Descriptor, Watched};
use super::{Connection, ErrorCode, TCP};
use crate::host::Effect::{External, Stream};
use crate::host::canonical::{Own, canonical};
use crate::host::{Call, Flat, HostFunction, Stop};

/// Connections that wait for `accept`, at most and where nothing was set. They count for the function only once they are accepted, so there are few.
const BACKLOG_MAX: i32 = 128;

/// The methods.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TCP, "[method]tcp-socket.start-listen", &[I32, I32, I32], &[], External, start_listen),
    canonical(TCP, "[method]tcp-socket.finish-listen", &[I32, I32, I32], &[], External, finish_listen),
    canonical(TCP, "[method]tcp-socket.accept", &[I32, I32, I32], &[], External, accept),
    canonical(TCP, "[method]tcp-socket.is-listening", &[I32, I32], &[I32], Stream, is_listening),
    canonical(TCP, "[method]tcp-socket.set-listen-backlog-size", &[I32, I32, I64, I32], &[], Stream, set_backlog),
];

/// `start-listen(self) -> result<_, error-code>`
fn start_listen(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let tcp = call.borrowed::<TcpSocket>(1)?;
    let result = match (&tcp.state, tcp.socket.binding) {
        (State::None, Binding::Bound { is_open: true }) => {
            tcp.state = State::ListenStarted;
            Ok(())
        }
        (State::None, Binding::Bound { is_open: false }) => {
            let address = tcp.socket.local();
            let address = address.map_or_else(|_| "the socket's address".to_owned(), |address| address.to_string());
            call.say(Level::WARN, &format!("wasi:sockets: {address} is not in the function's `socket_listen`"))?;
            Err(ErrorCode::AccessDenied)
        }
        (State::None, Binding::Started(_)) | (State::Connecting(..) | State::ListenStarted, _) => {
            Err(ErrorCode::ConcurrencyConflict)
        }
        _ => Err(ErrorCode::InvalidState),
    };
    call.lower(2, result)
}

/// `finish-listen(self) -> result<_, error-code>`
fn finish_listen(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<TcpSocket>(1)?;
    let tcp = call.borrowed::<TcpSocket>(1)?;
    if !matches!(tcp.state, State::ListenStarted) {
        return call.lower(2, Err::<(), _>(ErrorCode::NotInProgress));
    }
    if let Err(error) = listen(&tcp.socket, tcp.backlog.unwrap_or(BACKLOG_MAX)) {
        tcp.state = State::None;
        return call.lower(2, Err::<(), _>(ErrorCode::from(error)));
    }
    watched_then::<TcpSocket>(call, representation, move |call, watched| {
        let tcp = call.context.ports.resource::<TcpSocket>(representation)?;
        let result = watched.map(|watched| tcp.state = State::Listening(watched));
        if result.is_err() {
            tcp.state = State::Failed(None);
        }
        call.lower(2, result)
    })
}

/// What `accept` gives.
type Accepted = Result<(Own, Own, Own), ErrorCode>;

/// `accept(self) -> result<tuple<tcp-socket, input-stream, output-stream>, error-code>`
fn accept(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<TcpSocket>(1)?;
    let State::Listening(listener) = &call.borrowed::<TcpSocket>(1)?.state else {
        return call.lower::<Accepted>(2, Err(ErrorCode::InvalidState));
    };
    let listener = Arc::clone(listener);
    // Nothing is taken from the queue for which there is no room.
    let open = match call.context.ports.sockets()? {
        Some(reach) => reach.open(),
        None => Err(ErrorCode::AccessDenied),
    };
    let accepted = open.and_then(|share| match acceptfrom_with(&*listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok((fd, Some(remote))) => Ok((Arc::new(Descriptor::new(fd, share)?), said(remote)?)),
        Ok((_, None)) => Err(ErrorCode::Unknown),
        Err(error) => Err(accept_error(error)),
    });
    let (descriptor, remote) = match accepted {
        Ok(accepted) => accepted,
        Err(code) => return call.lower::<Accepted>(2, Err(code)),
    };
    let watch = Arc::clone(&descriptor);
    Err(call.wait(async move { Watched::new(watch) }, move |call, watched| {
        let Ok(watched) = watched.map(Arc::new) else {
            return call.lower::<Accepted>(2, Err(ErrorCode::OutOfMemory));
        };
        let listener = call.context.ports.resource::<TcpSocket>(representation)?;
        let socket = listener.socket.accepted(descriptor, Arc::clone(&watched));
        let connection = Arc::new(Connection::new(watched, remote));
        let tcp = call.give(TcpSocket::new(socket, State::Connected(Arc::clone(&connection))))?;
        let (input, output) = give_streams(call, &connection)?;
        call.lower::<Accepted>(2, Ok((tcp, input, output)))
    }))
}

/// Why no connection was accepted. Linux says here what has become of the connection meanwhile.
fn accept_error(error: Errno) -> ErrorCode {
    match error {
        Errno::AGAIN | Errno::INTR => ErrorCode::WouldBlock,
        Errno::CONNRESET
        | Errno::NETRESET
        | Errno::NETDOWN
        | Errno::PROTO
        | Errno::NOPROTOOPT
        | Errno::HOSTDOWN
        | Errno::NONET
        | Errno::HOSTUNREACH
        | Errno::OPNOTSUPP
        | Errno::NETUNREACH
        | Errno::TIMEDOUT => ErrorCode::ConnectionAborted,
        other => other.into(),
    }
}

/// `is-listening(self) -> bool`
fn is_listening(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::from(matches!(call.borrowed::<TcpSocket>(1)?.state, State::Listening(_))))
}

/// `set-listen-backlog-size(self, value: u64) -> result<_, error-code>`
fn set_backlog(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = call.args.u64(2);
    let backlog = i32::try_from(value).unwrap_or(BACKLOG_MAX).min(BACKLOG_MAX);
    let tcp = call.borrowed::<TcpSocket>(1)?;
    let result = match &tcp.state {
        _ if value == 0 => Err(ErrorCode::InvalidArgument),
        State::Connecting(..) | State::Connected(_) | State::Failed(_) => Err(ErrorCode::InvalidState),
        State::None | State::ListenStarted => {
            tcp.backlog = Some(backlog);
            Ok(())
        }
        // The system takes another size at any time.
        State::Listening(_) => listen(&tcp.socket, backlog).map_err(ErrorCode::from),
    };
    call.lower(3, result)
}
