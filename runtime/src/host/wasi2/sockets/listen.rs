//! A `tcp-socket` to which others connect.

use std::net::SocketAddr;
use std::sync::Arc;

use awsm_abi::types::ValType::{I32, I64};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with, listen};

use super::address::said;
use super::socket::{Binding, Socket, refuse_place, watched_then};
use super::tcp::{State, TcpSocket, give_streams};
use super::watched::{Descriptor, Watched};
use super::{Connection, Door, ErrorCode, Form, TCP, Wasi2, answer};
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
    canonical(TCP, "[method]tcp-socket.is-listening", &[I32, I32], &[I32], Stream, is_listening::<Wasi2>),
    canonical(TCP, "[method]tcp-socket.set-listen-backlog-size", &[I32, I32, I64, I32], &[], Stream, set_backlog::<Wasi2>),
];

/// `start-listen(self) -> result<_, error-code>`
fn start_listen(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let result = check_listen::<Wasi2>(call)?;
    if result.is_ok() {
        call.borrowed::<TcpSocket<Wasi2>>(1)?.state = State::ListenStarted;
    }
    call.lower(2, result)
}

/// Whether the socket of argument 1 may listen.
pub(in crate::host) fn check_listen<F: Form>(call: &mut Call<'_>) -> Result<Result<(), ErrorCode>, Stop> {
    let tcp = call.borrowed::<TcpSocket<F>>(1)?;
    Ok(match (&tcp.state, tcp.socket.binding) {
        (State::None, Binding::Bound { is_open: true }) => Ok(()),
        (State::None, Binding::Bound { is_open: false }) => {
            let address = tcp.socket.local();
            let address = address.map_or_else(|_| "the socket's address".to_owned(), |address| address.to_string());
            Err(refuse_place(call, address)?)
        }
        (State::None, Binding::Started(_)) | (State::ConnectStarted | State::Connecting(..) | State::ListenStarted, _) => {
            Err(ErrorCode::ConcurrencyConflict)
        }
        _ => Err(ErrorCode::InvalidState),
    })
}

/// `finish-listen(self) -> result<_, error-code>`
fn finish_listen(call: &mut Call<'_>) -> Result<Flat, Stop> {
    if !matches!(call.borrowed::<TcpSocket<Wasi2>>(1)?.state, State::ListenStarted) {
        return call.lower(2, Err::<(), _>(ErrorCode::NotInProgress));
    }
    listen_then::<Wasi2>(call, |call, result| call.lower(2, result.map(|_| ())))
}

/// Has the socket of argument 1 listen, which may do so, and goes on with where connections come then.
pub(in crate::host) fn listen_then<F: Form>(
    call: &mut Call<'_>,
    then: impl FnOnce(&mut Call<'_>, Result<Arc<Watched>, ErrorCode>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let representation = call.representation::<TcpSocket<F>>(1)?;
    let tcp = call.borrowed::<TcpSocket<F>>(1)?;
    if let Err(error) = listen(&tcp.socket, tcp.backlog.unwrap_or(BACKLOG_MAX)) {
        tcp.state = State::None;
        return then(call, Err(error.into()));
    }
    watched_then::<TcpSocket<F>>(call, representation, move |call, watched| {
        let tcp = call.context.ports.resource::<TcpSocket<F>>(representation)?;
        tcp.state = match &watched {
            Ok(watched) => State::Listening(Arc::clone(watched)),
            Err(_) => State::Failed(None),
        };
        then(call, watched)
    })
}

/// What `accept` gives.
type Accepted = Result<(Own, Own, Own), ErrorCode>;

/// `accept(self) -> result<tuple<tcp-socket, input-stream, output-stream>, error-code>`
fn accept(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let tcp = call.borrowed::<TcpSocket<Wasi2>>(1)?;
    let family = tcp.socket.family;
    let State::Listening(listener) = &tcp.state else {
        return call.lower::<Accepted>(2, Err(ErrorCode::InvalidState));
    };
    let listener = Arc::clone(listener);
    let accepted = match call.context.ports.sockets()? {
        Some(reach) => accept_one(&listener, &reach.door()),
        None => Err(ErrorCode::AccessDenied),
    };
    let (descriptor, remote) = match accepted {
        Ok(accepted) => accepted,
        Err(code) => return call.lower::<Accepted>(2, Err(code)),
    };
    let watch = Arc::clone(&descriptor);
    Err(call.wait(async move { Watched::new(watch) }, move |call, watched| {
        let Ok(watched) = watched.map(Arc::new) else {
            return call.lower::<Accepted>(2, Err(ErrorCode::OutOfMemory));
        };
        let socket = Socket::accepted(family, descriptor, Some(Arc::clone(&watched)));
        let connection = Arc::new(Connection::new(watched, remote));
        let tcp = call.give(TcpSocket::<Wasi2>::new(socket, State::Connected(Arc::clone(&connection))))?;
        let (input, output) = give_streams(call, &connection)?;
        call.lower::<Accepted>(2, Ok((tcp, input, output)))
    }))
}

/// Takes a connection from the queue, if there may be one more.
///
/// # Errors
/// `would-block` where there is none, or why it could not be had.
pub(in crate::host) fn accept_one(listener: &Watched, door: &Door) -> Result<(Arc<Descriptor>, SocketAddr), ErrorCode> {
    // Nothing is taken from the queue for which there is no room.
    let share = door.open()?;
    match acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok((fd, Some(remote))) => Ok((Arc::new(Descriptor::new(fd, share)?), said(remote)?)),
        Ok((_, None)) => Err(ErrorCode::Unknown),
        Err(error) => Err(accept_error(error)),
    }
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
pub(in crate::host) fn is_listening<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::from(matches!(call.borrowed::<TcpSocket<F>>(1)?.state, State::Listening(_))))
}

/// `set-listen-backlog-size(self, value: u64) -> result<_, error-code>`
pub(in crate::host) fn set_backlog<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = call.args.u64(2);
    let backlog = i32::try_from(value).unwrap_or(BACKLOG_MAX).min(BACKLOG_MAX);
    let tcp = call.borrowed::<TcpSocket<F>>(1)?;
    let result = match &tcp.state {
        _ if value == 0 => Err(ErrorCode::InvalidArgument),
        State::ConnectStarted | State::Connecting(..) | State::Connected(_) | State::Accepted(_) | State::Failed(_) => {
            Err(ErrorCode::InvalidState)
        }
        State::None | State::ListenStarted => {
            tcp.backlog = Some(backlog);
            Ok(())
        }
        // The system takes another size at any time.
        State::Listening(_) => listen(&tcp.socket, backlog).map_err(ErrorCode::from),
    };
    answer::<F, _>(call, 3, result)
}
