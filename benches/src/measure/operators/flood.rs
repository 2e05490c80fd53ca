//! The group `operators`: what a client costs that sends frames of HTTP/2 which carry nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::checkout;
use crate::compiler;
use crate::measure::Bench;
use crate::server::{Function, Server};

/// How long each flood goes on, if it is let.
const TIME: Duration = Duration::from_secs(3);
/// What such a connection begins with: the preface, and SETTINGS that set nothing.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// PING, and SETTINGS again: both are answered.
const FRAMES: [&[u8]; 2] = [b"\0\0\x08\x06\0\0\0\0\0abcdefgh", b"\0\0\0\x04\0\0\0\0\0"];
/// Sent at once.
const BLOCK_FRAMES: usize = 1_000;

/// Processor time of the server, in seconds, for the costlier of the two floods.
pub(in crate::measure) fn cpu_s(bench: &mut Bench) -> Result<f64> {
    let artifact = bench.folder.path().join("ping-flooded.so");
    compiler::compile(&checkout::root().join("benches/functions/ping.wat"), &artifact)?;
    let function = Function { name: "ping", path: &artifact, content_type: "text/plain" };
    let server = Server::start(bench.folder.path(), &[function])?;
    let mut worst = Duration::ZERO;
    for frame in FRAMES {
        let before = server.processor_time()?;
        let frames = flood(server.address(), frame)?;
        let spent = server.processor_time()? - before;
        eprintln!("{frames} frames of kind {}: {:.3} s", frame[3], spent.as_secs_f64());
        worst = worst.max(spent);
    }
    Ok(worst.as_secs_f64())
}

/// Sends one frame again and again, and reads what is answered, until the server has gone or the time is over; how many were sent.
fn flood(server: SocketAddr, frame: &[u8]) -> Result<usize> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_write_timeout(Some(2 * TIME))?;
    let mut reader = stream.try_clone()?;
    let answers = thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while matches!(reader.read(&mut buffer), Ok(1..)) {}
    });
    stream.write_all(BEGIN)?;
    let (block, start, mut frames) = (frame.repeat(BLOCK_FRAMES), Instant::now(), 0);
    while start.elapsed() < TIME && stream.write_all(&block).is_ok() {
        frames += BLOCK_FRAMES;
    }
    let _ = stream.shutdown(Shutdown::Both);
    ensure!(answers.join().is_ok() && frames > 0, "nothing was sent");
    Ok(frames)
}
