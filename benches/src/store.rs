//! A Redis server of one's own, a place from which it is farther away, and a way to it on which round trips are counted.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// How long redis-server may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes that are passed on at a time.
const BUFFER_BYTES: usize = 128 << 10;

/// A Redis server that keeps nothing on disk. Dropping it kills it.
#[derive(Debug)]
pub struct Redis {
    _folder: tempfile::TempDir,
    child: Child,
    address: SocketAddr,
}

impl Redis {
    /// Starts one on a free port.
    ///
    /// # Errors
    ///
    /// If redis-server is not installed, or does not listen in time.
    pub fn start() -> Result<Redis> {
        let folder = tempfile::tempdir()?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder.path());
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("redis-server, which scripts/setup installs")?;
        let redis = Redis { _folder: folder, child, address };
        let end = Instant::now() + START_TIME_MAX;
        while TcpStream::connect(address).is_err() {
            ensure!(Instant::now() < end, "redis-server does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(redis)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forgets all that it has.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    pub fn clear(&self) -> Result<()> {
        let mut connection = redis::Client::open(format!("redis://{}", self.address))?.get_connection()?;
        redis::cmd("FLUSHALL").exec(&mut connection).context("FLUSHALL")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Both fail harmlessly when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A place from which a server is farther away: what it answers comes later.
#[derive(Debug)]
pub struct Far(SocketAddr);

impl Far {
    /// For as long as this process lives: threads on the cores on which the caller is.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub fn start(server: SocketAddr, delay: Duration) -> Result<Far> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for near in listener.incoming() {
                // What cannot be passed on is closed, and the client learns that.
                let _ = near.and_then(|near| connect(near, server, delay));
            }
        });
        Ok(Far(address))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0
    }
}

fn connect(near: TcpStream, server: SocketAddr, delay: Duration) -> io::Result<()> {
    let far = TcpStream::connect(server)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (from_near, from_far) = (near.try_clone()?, far.try_clone()?);
    thread::spawn(move || {
        copy(from_near, |bytes| (&far).write_all(&bytes));
        // The server ends its side when it has answered.
        let _ = far.shutdown(Shutdown::Write);
    });
    // Threads sleep more exactly than tokio's timer, which knows milliseconds.
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        copy(from_far, |bytes| sender.send((Instant::now() + delay, bytes)).map_err(|_| io::ErrorKind::BrokenPipe.into()));
    });
    thread::spawn(move || {
        for (at, bytes) in receiver {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if (&near).write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = near.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// A way to a server on which round trips are counted: questions that are answered before the next one is asked.
#[derive(Debug)]
pub struct Counted {
    address: SocketAddr,
    trips: Arc<Trips>,
}

#[derive(Debug, Default)]
struct Trips {
    /// Something was asked since the last answer.
    is_asked: AtomicBool,
    count: AtomicU64,
}

impl Counted {
    /// For as long as this process lives.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub fn start(server: SocketAddr) -> Result<Counted> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let counted = Counted { address: listener.local_addr()?, trips: Arc::default() };
        let trips = Arc::clone(&counted.trips);
        thread::spawn(move || {
            for near in listener.incoming() {
                // As for one that is farther away.
                let _ = near.and_then(|near| pass_counting(near, server, &trips));
            }
        });
        Ok(counted)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many there were, of all connections together: where one question is under way at a time.
    pub fn round_trips(&self) -> u64 {
        self.trips.count.load(Ordering::SeqCst)
    }
}

fn pass_counting(near: TcpStream, server: SocketAddr, trips: &Arc<Trips>) -> io::Result<()> {
    let far = TcpStream::connect(server)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (from_near, from_far) = (near.try_clone()?, far.try_clone()?);
    let (asks, answers) = (Arc::clone(trips), Arc::clone(trips));
    thread::spawn(move || {
        copy(from_near, |bytes| {
            asks.is_asked.store(true, Ordering::SeqCst);
            (&far).write_all(&bytes)
        });
        let _ = far.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        copy(from_far, |bytes| {
            if answers.is_asked.swap(false, Ordering::SeqCst) {
                answers.count.fetch_add(1, Ordering::SeqCst);
            }
            (&near).write_all(&bytes)
        });
        let _ = near.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Passes on what comes, until the connection or what takes it ends.
fn copy(mut from: TcpStream, mut to: impl FnMut(Vec<u8>) -> io::Result<()>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to(buffer[..count].to_vec()).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_are_sent_together_are_one_round_trip() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let way = Counted::start(server.local_addr().unwrap()).unwrap();
        let mut client = TcpStream::connect(way.address()).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        let (mut question, mut answer) = ([0; 3], [0; 2]);
        for round in 1..=4 {
            client.write_all(b"a\nb").unwrap();
            accepted.read_exact(&mut question).unwrap();
            // In two pieces.
            accepted.write_all(b"A").unwrap();
            client.read_exact(&mut answer[..1]).unwrap();
            accepted.write_all(b"B").unwrap();
            client.read_exact(&mut answer[1..]).unwrap();
            assert_eq!((way.round_trips(), &answer), (round, b"AB"));
        }
    }

    #[test]
    fn answers_come_later_and_whole() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let delay = Duration::from_millis(20);
        let far = Far::start(server.local_addr().unwrap(), delay).unwrap();
        let mut client = TcpStream::connect(far.address()).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| at as u8).collect();
        let begin = Instant::now();
        let answering = thread::spawn({
            let sent = sent.clone();
            move || {
                let mut question = [0; 3];
                accepted.read_exact(&mut question).unwrap();
                accepted.write_all(&sent).unwrap();
                question
            }
        });
        client.write_all(b"all").unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        assert!(begin.elapsed() >= delay, "{:?}", begin.elapsed());
        assert!(received == sent, "{} bytes", received.len());
        assert_eq!(&answering.join().unwrap(), b"all");
    }
}
