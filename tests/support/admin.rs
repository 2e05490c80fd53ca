//! Asking at a server's admin API, by hand: HTTP on a Unix socket.

use crate::http::{Reply, TIME_MAX, read_reply};
use serde_json::Value;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A server's admin API.
#[derive(Clone, Debug)]
pub struct Admin {
    path: PathBuf,
}

impl Admin {
    /// The door there.
    #[must_use]
    pub fn new(path: PathBuf) -> Admin {
        Admin { path }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A connection, for tests that write the bytes of a request themselves.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
        stream.set_write_timeout(Some(TIME_MAX)).expect("a timeout");
        stream
    }

    /// Asks, with more header lines if there are any.
    ///
    /// # Panics
    /// When there is no answer in time.
    #[must_use]
    pub fn ask(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let head = format!("{method} {target} HTTP/1.1\r\nhost: sledge\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
        // A server that refuses before the body has come may have closed its side: the answer counts.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        read_reply(&mut BufReader::new(stream)).expect("an answer")
    }

    /// GET.
    #[must_use]
    pub fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "", b"")
    }

    /// Deploys a module.
    #[must_use]
    pub fn deploy(&self, name: &str, settings: &Value, module: &[u8]) -> Reply {
        self.ask("PUT", &format!("/functions/{name}"), &format!("sledge-settings: {settings}\r\n"), module)
    }

    /// What it says of a function; none when there is no such function.
    ///
    /// # Panics
    /// When it answers something else.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<Value> {
        let reply = self.get(&format!("/functions/{name}"));
        assert!(matches!(reply.status, 200 | 404), "{reply:?}");
        (reply.status == 200).then(|| reply.json())
    }
}
