//! Connections over which a thread asks Redis and waits, beside those of the workers' runtimes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Client, Connection, FromRedisValue, RedisError, ScriptInvocation};

/// How long it may take to connect, to send a request, and to get the next part of its answer.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
const IO_TIME_MAX: Duration = Duration::from_secs(2);
/// Connections that are kept for what is asked later.
const IDLE_MAX: usize = 4;

/// Connections to one server: each is one thread's while it asks, so that a slow answer holds up no other thread.
#[derive(Clone)]
pub(super) struct Connections {
    client: Arc<Client>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

impl Connections {
    pub(super) fn new(client: &Arc<Client>) -> Connections {
        Connections { client: Arc::clone(client), idle: Arc::default() }
    }

    /// What a script answers that only reads: it is sent again where a connection that was kept turns out to be broken.
    pub(super) fn ask<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, RedisError> {
        while let Some(connection) = self.take() {
            match self.ask_over(connection, script) {
                Err(error) if error.is_connection_dropped() => {}
                answered => return answered,
            }
        }
        let connection = self.client.get_connection_with_timeout(CONNECT_TIME_MAX)?;
        connection.set_read_timeout(Some(IO_TIME_MAX))?;
        connection.set_write_timeout(Some(IO_TIME_MAX))?;
        self.ask_over(connection, script)
    }

    fn ask_over<T: FromRedisValue>(&self, mut connection: Connection, script: &ScriptInvocation<'_>) -> Result<T, RedisError> {
        let answered = script.invoke(&mut connection);
        // The answer to this request may still come over a connection that was too slow: it must not be taken for that to the next.
        let is_good =
            !answered.as_ref().is_err_and(|error| error.is_io_error() || error.is_timeout() || error.is_connection_dropped());
        let mut idle = self.idle();
        if is_good && idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        answered
    }

    fn take(&self) -> Option<Connection> {
        self.idle().pop()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // Single insertions and removals, which cannot be half done.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
