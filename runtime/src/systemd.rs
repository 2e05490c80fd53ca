//! What a service manager wants to know, and what it gives: readiness (sd_notify(3)) and sockets that listen already (sd_listen_fds(3)).

use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use sd_notify::NotifyState;

/// The socket with which this process was started, once for each of `count` threads: all accept from the same queue. None when there is none.
///
/// # Errors
/// When what was given is no TCP socket that listens.
pub fn inherited(count: usize) -> io::Result<Option<Vec<TcpListener>>> {
    let mut given = ListenFd::from_env();
    if given.len() == 0 {
        return Ok(None);
    }
    if given.len() > 1 {
        tracing::warn!(sockets = given.len(), "several sockets were passed; only the first is used");
    }
    let Some(listener) = given.take_tcp_listener(0)? else { return Ok(None) };
    listener.set_nonblocking(true)?;
    let mut listeners = Vec::with_capacity(count);
    for _ in 1..count {
        listeners.push(listener.try_clone()?);
    }
    listeners.push(listener);
    Ok(Some(listeners))
}

/// Says that requests are answered.
pub fn ready(address: SocketAddr) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("serving on {address}"))]);
}

/// Says that the server ends.
pub fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("finishing what runs")]);
}

/// Says that the configuration is read anew; [`ready`] says that it was.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "the service manager could not be told"),
    }
}

fn notify(states: &[NotifyState<'_>]) {
    // Without a manager this does nothing.
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}
