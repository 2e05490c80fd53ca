//! A Redis server of a test's own, and a way to it on which answers are lost.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, FromRedisValue};
use rustix::process::{Pid, Signal, kill_process};

use crate::kv::{KvLimits, Redis};

/// How long redis-server may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(30);

/// A redis-server process, gone with the test.
pub(crate) struct OwnServer {
    port: u16,
    child: Child,
    _folder: tempfile::TempDir,
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

impl OwnServer {
    pub(crate) fn start() -> OwnServer {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string(), "--dir"]);
        command.arg(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("redis-server, which scripts/setup installs");
        let own = OwnServer { port, child, _folder: folder };
        let end = Instant::now() + START_TIME_MAX;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < end, "redis-server does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        own
    }

    /// A client of it, as a server has one.
    pub(crate) fn client(&self) -> Redis {
        redis_at(self.port)
    }

    /// Where it listens.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Stops it, or lets it go on: it answers nothing meanwhile, and connections stay.
    pub(crate) fn freeze(&self, frozen: bool) {
        let signal = if frozen { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it answers to a command.
    pub(crate) fn ask<T: FromRedisValue>(&self, words: &[&[u8]]) -> T {
        let mut connection = Client::open(url(self.port)).unwrap().get_connection().unwrap();
        let mut command = redis::cmd(std::str::from_utf8(words[0]).unwrap());
        words[1..].iter().for_each(|word| {
            command.arg(*word);
        });
        command.query(&mut connection).unwrap()
    }
}

impl OwnServer {
    /// All that it has at this moment. Keys that live for a time have as much of it again when they are [restored](OwnServer::restore).
    pub(crate) fn copy(&self) -> Vec<Dumped> {
        let keys: Vec<Vec<u8>> = self.ask(&[b"KEYS", b"*"]);
        let dumped = |key: Vec<u8>| {
            let left: i64 = self.ask(&[b"PTTL", &key]);
            let value: Option<Vec<u8>> = self.ask(&[b"DUMP", &key]);
            value.map(|value| (key, left.max(0), value))
        };
        keys.into_iter().filter_map(dumped).collect()
    }

    /// It has that again and nothing else, as a replica that takes its place and has not received what came later.
    pub(crate) fn restore(&self, copy: &[Dumped]) {
        const ALL: &[u8] = b"redis.call('FLUSHALL')
            for i = 1, #KEYS do redis.call('RESTORE', KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]) end";
        let (count, times) = (copy.len().to_string(), copy.iter().map(|(_, left, _)| left.to_string()).collect::<Vec<_>>());
        let mut words: Vec<&[u8]> = vec![b"EVAL", ALL, count.as_bytes()];
        words.extend(copy.iter().map(|(key, ..)| &**key));
        for ((.., value), left) in copy.iter().zip(&times) {
            words.extend([left.as_bytes(), value]);
        }
        let _: Option<String> = self.ask(&words);
    }
}

/// A key, how many milliseconds it has left (for ever: none), and its value.
pub(crate) type Dumped = (Vec<u8>, i64, Vec<u8>);

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn redis_at(port: u16) -> Redis {
    Redis::new(&url(port), KvLimits::default(), String::new).unwrap()
}

/// A way to a server on which connections break when an answer comes.
pub(crate) struct Lossy {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Answers that are still to be lost.
    losses: AtomicU32,
    is_over: AtomicBool,
}

impl Lossy {
    pub(crate) fn to(server: &OwnServer) -> Lossy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (port, target, state) = (listener.local_addr().unwrap().port(), server.port, Arc::new(State::default()));
        let own = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if own.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (client, server) = (client.unwrap(), TcpStream::connect((Ipv4Addr::LOCALHOST, target)));
                // A server that has gone takes no connection.
                let Ok(server) = server else { continue };
                let (up, down) = ((client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client));
                let state = Arc::clone(&own);
                thread::spawn(move || carry(up, |_| true));
                thread::spawn(move || carry(down, |_| !state.loses()));
            }
        });
        Lossy { port, state }
    }

    pub(crate) fn client(&self) -> Redis {
        redis_at(self.port)
    }

    /// So many answers are lost from now on, each with its connection.
    pub(crate) fn lose(&self, answers: u32) {
        self.state.losses.store(answers, Ordering::Relaxed);
    }
}

impl State {
    fn loses(&self) -> bool {
        self.losses.try_update(Ordering::Relaxed, Ordering::Relaxed, |losses| losses.checked_sub(1)).is_ok()
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

/// Carries bytes from one connection to the other for as long as that is wanted; then both are closed.
fn carry((mut from, mut to): (TcpStream, TcpStream), mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut bytes = [0; 1 << 16];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(count) if goes_on(&bytes[..count]) && to.write_all(&bytes[..count]).is_ok() => {}
            Ok(_) | Err(_) => break,
        }
    }
    for end in [&from, &to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}
