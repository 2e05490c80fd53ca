//! `tcp-socket`: its states, and connecting. Listening is in [`listen`](super::listen).
//!
//! ```text
//!   None --start-connect--> ConnectStarted, Connecting --finish-connect--> Connected | Failed
//!   None, bound --start-listen--> ListenStarted --finish-listen--> Listening --accept--> Connected | Accepted --first use--> Connected
//! ```

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use awsm_abi::types::ValType::I32;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{SocketType, connect};

use super::address::{Address, is_unicast};
use super::network::Network;
use super::socket::{
    Binding, Socket, SocketResource, address_family, finish_bind, local_address, open, reaches, start_bind, watched_then,
};
use super::watched::Watched;
use super::{Connection, ErrorCode, Form, TCP, Wasi2, answer};
use crate::host::Effect::{External, Stream};
use crate::host::canonical::{Look, Own, Resource, Typed, canonical, number};
use crate::host::wasi2::streams::{InputStream, OutputStream, subscribe};
use crate::host::{Call, Flat, HostFunction, Stop};

/// The interfaces, but for listening and options.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical("wasi:sockets/tcp-create-socket@0.2", "create-tcp-socket", &[I32, I32, I32], &[], External, create::<Wasi2>),
    canonical(
        TCP,
        "[method]tcp-socket.start-bind",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        start_bind::<TcpSocket<Wasi2>>,
    ),
    canonical(TCP, "[method]tcp-socket.finish-bind", &[I32, I32, I32], &[], External, finish_bind::<TcpSocket<Wasi2>>),
    canonical(
        TCP,
        "[method]tcp-socket.start-connect",
        &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
        &[],
        External,
        start_connect,
    ),
    canonical(TCP, "[method]tcp-socket.finish-connect", &[I32, I32, I32], &[], Stream, finish_connect),
    canonical(TCP, "[method]tcp-socket.local-address", &[I32, I32, I32], &[], Stream, local_address::<TcpSocket<Wasi2>>),
    canonical(TCP, "[method]tcp-socket.remote-address", &[I32, I32, I32], &[], Stream, remote_address::<Wasi2>),
    canonical(TCP, "[method]tcp-socket.address-family", &[I32, I32], &[I32], Stream, address_family::<TcpSocket<Wasi2>>),
    canonical(TCP, "[method]tcp-socket.subscribe", &[I32, I32], &[I32], Stream, subscribe::<TcpSocket<Wasi2>>),
    canonical(TCP, "[method]tcp-socket.shutdown", &[I32, I32, I32, I32], &[], Stream, shutdown),
];

/// A `tcp-socket`, in a version's form.
#[derive(Debug)]
pub(in crate::host) struct TcpSocket<F> {
    /// What it has in common with those of UDP.
    pub(in crate::host) socket: Socket,
    /// What it is.
    pub(in crate::host) state: State,
    /// Connections that wait to be accepted: what was set, if it was.
    pub(in crate::host) backlog: Option<i32>,
    /// Whether the component may still send by it, and not only by the stream that it got of it.
    pub(in crate::host) may_send: bool,
    /// The same of receiving, where that is said.
    pub(in crate::host) may_receive: bool,
    form: PhantomData<fn() -> F>,
}

/// What a socket of TCP is.
#[derive(Debug)]
pub(in crate::host) enum State {
    /// Nothing yet; it may be bound.
    None,
    /// A connection was begun, which the runtime does not watch yet.
    ConnectStarted,
    /// On the way to a connection.
    Connecting(Arc<Watched>, SocketAddr),
    /// One end of a connection.
    Connected(Arc<Connection>),
    /// The same, accepted from there, before its first use.
    Accepted(SocketAddr),
    /// `start-listen` was called.
    ListenStarted,
    /// Where connections come.
    Listening(Arc<Watched>),
    /// It could not be connected; what `finish-connect` says, once.
    Failed(Option<ErrorCode>),
}

impl<F: Form> TcpSocket<F> {
    /// One that is that already.
    pub(in crate::host) const fn new(socket: Socket, state: State) -> TcpSocket<F> {
        TcpSocket { socket, state, backlog: None, may_send: true, may_receive: true, form: PhantomData }
    }

    /// Whether it may be connected to that address, as far as its state and the address say.
    fn check_connect(&self, address: SocketAddr) -> Result<(), ErrorCode> {
        match (&self.state, self.socket.binding) {
            (State::None, Binding::None | Binding::Bound { .. }) => {}
            (State::None | State::ConnectStarted | State::Connecting(..) | State::ListenStarted, _) => {
                return Err(ErrorCode::ConcurrencyConflict);
            }
            (State::Connected(_) | State::Accepted(_) | State::Listening(_) | State::Failed(_), _) => {
                return Err(ErrorCode::InvalidState);
            }
        }
        self.socket.family.check_remote(address)?;
        if is_unicast(address) { Ok(()) } else { Err(ErrorCode::InvalidArgument) }
    }

    /// Goes on with the connection that was begun.
    ///
    /// # Errors
    /// `would-block` as long as it is not made, or why it could not be.
    pub(in crate::host) fn connected(&mut self) -> Result<Arc<Connection>, ErrorCode> {
        let (watched, remote) = match &mut self.state {
            State::Connecting(watched, remote) => (Arc::clone(watched), *remote),
            State::Failed(error) => return Err(error.take().unwrap_or(ErrorCode::NotInProgress)),
            _ => return Err(ErrorCode::NotInProgress),
        };
        if !watched.can_write() {
            return Err(ErrorCode::WouldBlock);
        }
        if let Err(error) = socket_error(&self.socket).and_then(|error| error) {
            self.state = State::Failed(None);
            return Err(connect_error(error));
        }
        let connection = Arc::new(Connection::new(watched, remote));
        self.state = State::Connected(Arc::clone(&connection));
        Ok(connection)
    }
}

impl<F: Form> Resource for TcpSocket<F> {
    fn dropped(&mut self) {
        if let State::Connected(connection) = &self.state
            && self.may_send
        {
            connection.drop_writer();
        }
    }

    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        Ok(match &self.state {
            State::Connecting(watched, _) => watched.write_ready(look),
            State::Listening(watched) => watched.read_ready(look),
            State::None
            | State::ConnectStarted
            | State::Connected(_)
            | State::Accepted(_)
            | State::ListenStarted
            | State::Failed(_) => true,
        })
    }
}

impl<F: Form> Typed for TcpSocket<F> {
    const NUMBER: u32 = number(F::TCP, "tcp-socket");
}

impl<F: Form> SocketResource for TcpSocket<F> {
    type Form = F;
    const IS_UNICAST: bool = true;

    fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    fn check_bind(&self) -> Result<(), ErrorCode> {
        match self.state {
            State::None => Ok(()),
            State::ConnectStarted | State::Connecting(..) | State::ListenStarted => Err(ErrorCode::ConcurrencyConflict),
            State::Connected(_) | State::Accepted(_) | State::Listening(_) | State::Failed(_) => Err(ErrorCode::InvalidState),
        }
    }
}

/// Why there is no connection.
fn connect_error(error: Errno) -> ErrorCode {
    match error {
        // The system has no port for its end.
        Errno::ADDRNOTAVAIL | Errno::AGAIN => ErrorCode::AddressInUse,
        other => other.into(),
    }
}

/// `create-tcp-socket(address-family) -> result<tcp-socket, error-code>`
pub(in crate::host) fn create<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let family = call.family(1)?;
    let socket = match open(call, family, SocketType::STREAM)? {
        Ok(socket) => Ok(call.give(TcpSocket::<F>::new(socket, State::None))?),
        Err(code) => Err(code),
    };
    answer::<F, _>(call, 2, socket)
}

/// `start-connect(self, network: borrow<network>, remote-address: ip-socket-address) -> result<_, error-code>`
fn start_connect(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<Network>(2)?;
    let address = call.address(3)?;
    connect_then::<Wasi2>(call, address, |call, result| call.lower(15, result))
}

/// Begins to connect the socket of argument 1, and goes on with whether it may be; what becomes of it says [`TcpSocket::connected`].
pub(in crate::host) fn connect_then<F: Form>(
    call: &mut Call<'_>,
    address: SocketAddr,
    then: impl FnOnce(&mut Call<'_>, Result<(), ErrorCode>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let representation = call.representation::<TcpSocket<F>>(1)?;
    let allowed = match call.borrowed::<TcpSocket<F>>(1)?.check_connect(address) {
        Ok(()) => reaches(call, address)?,
        error => error,
    };
    if allowed.is_err() {
        return then(call, allowed);
    }
    let tcp = call.borrowed::<TcpSocket<F>>(1)?;
    match connect(&tcp.socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => {
            tcp.state = State::Failed(Some(connect_error(error)));
            return then(call, Ok(()));
        }
    }
    if tcp.socket.binding == Binding::None {
        tcp.socket.binding = Binding::Bound { is_open: false };
    }
    tcp.state = State::ConnectStarted;
    // The runtime takes a socket that has not begun to connect for one that has ended, so it is not told before.
    watched_then::<TcpSocket<F>>(call, representation, move |call, watched| {
        let tcp = call.context.ports.resource::<TcpSocket<F>>(representation)?;
        tcp.state = match watched {
            Ok(watched) => State::Connecting(watched, address),
            Err(code) => State::Failed(Some(code)),
        };
        then(call, Ok(()))
    })
}

/// `finish-connect(self) -> result<tuple<input-stream, output-stream>, error-code>`
fn finish_connect(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let streams = match call.borrowed::<TcpSocket<Wasi2>>(1)?.connected() {
        Ok(connection) => Ok(give_streams(call, &connection)?),
        Err(code) => Err(code),
    };
    call.lower(2, streams)
}

/// The two directions of a connection.
pub(in crate::host) fn give_streams(call: &mut Call<'_>, connection: &Arc<Connection>) -> Result<(Own, Own), Stop> {
    connection.add_writer();
    let input = call.give(InputStream::Socket(Arc::clone(connection)))?;
    let output = call.give(OutputStream::Socket(Arc::clone(connection)))?;
    Ok((input, output))
}

/// `remote-address(self) -> result<ip-socket-address, error-code>`
pub(in crate::host) fn remote_address<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let address = match &call.borrowed::<TcpSocket<F>>(1)?.state {
        State::Connected(connection) => Ok(Address(connection.remote)),
        State::Accepted(remote) => Ok(Address(*remote)),
        _ => Err(ErrorCode::InvalidState),
    };
    answer::<F, _>(call, 2, address)
}

/// `shutdown(self, shutdown-type) -> result<_, error-code>`
fn shutdown(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let case = call.case(2, 3)?;
    let result = match &call.borrowed::<TcpSocket<Wasi2>>(1)?.state {
        State::Connected(connection) => connection.shutdown(case != 1, case != 0),
        _ => Err(ErrorCode::InvalidState),
    };
    call.lower(3, result)
}
