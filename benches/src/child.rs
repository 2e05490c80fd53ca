//! A server that is measured, as a child process.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::server::watch_output;

/// Longest that it may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often one that does not say when it listens is tried.
const TRY_AGAIN: Duration = Duration::from_millis(20);
/// Lines of its log that an error shows.
const LOG_LINES: usize = 8;

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Listener {
    child: Child,
    address: SocketAddr,
    log: Option<PathBuf>,
}

impl Listener {
    /// Starts a server that prints `listening on http://ADDRESS` and ends with its standard input. It runs where this thread is pinned to; its
    /// standard error goes to `log`, or where this process's goes.
    ///
    /// # Errors
    ///
    /// If it does not start, ends, or does not say that it listens.
    pub fn announced(command: Command, log: Option<&Path>) -> Result<Listener> {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listener = Listener::spawn(command, nowhere, log, Stdio::piped())?;
        match watch_output(&mut listener.child).recv_timeout(START_TIMEOUT) {
            Ok(address) => listener.address = address,
            Err(RecvTimeoutError::Timeout) => {
                bail!("it did not say within {START_TIMEOUT:?} that it listens{}", listener.log_end())
            }
            Err(RecvTimeoutError::Disconnected) => bail!("it did not say that it listens{}", listener.log_end()),
        }
        Ok(listener)
    }

    /// Starts a server that has been told to listen on `address`; returns when it does.
    ///
    /// # Errors
    ///
    /// If it does not start, ends, or does not listen.
    pub fn polled(command: Command, address: SocketAddr, log: &Path) -> Result<Listener> {
        let mut listener = Listener::spawn(command, address, Some(log), Stdio::null())?;
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = listener.child.try_wait().context("cannot wait for it")? {
                bail!("it ended before it listened ({status}){}", listener.log_end());
            }
            if start.elapsed() > START_TIMEOUT {
                bail!("it did not listen on {address} within {START_TIMEOUT:?}{}", listener.log_end());
            }
            thread::sleep(TRY_AGAIN);
        }
        Ok(listener)
    }

    fn spawn(mut command: Command, address: SocketAddr, log: Option<&Path>, output: Stdio) -> Result<Listener> {
        let errors = match log {
            Some(log) => File::create(log).with_context(|| format!("cannot write {}", log.display()))?.into(),
            None => Stdio::inherit(),
        };
        let child = command
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        Ok(Listener { child, address, log: log.map(Path::to_owned) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its number among processes.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Memory that it has now, in bytes.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.child.id())
    }

    /// The end of its log, for an error message; empty if it logged nothing.
    pub fn log_end(&self) -> String {
        let text = self.log.as_ref().and_then(|log| fs::read(log).ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        if last.is_empty() { String::new() } else { format!("; its log ends with: {}", last.join(" / ")) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Both fail harmlessly when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Memory that a process has now, in bytes.
///
/// # Errors
///
/// If the system does not say.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmRSS:")
}

/// Memory of a process that it shares with no other, in bytes.
///
/// # Errors
///
/// If the system does not say.
pub fn private_bytes(pid: u32) -> Result<u64> {
    let file = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let kilobytes = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    lines.map(|line| Ok(kilobytes(line).with_context(|| format!("{file}: {line:?}"))? << 10)).sum()
}

/// Of that what belongs to no file.
///
/// # Errors
///
/// If the system does not say.
pub fn anonymous_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "RssAnon:")
}

fn status_bytes(pid: u32, key: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("what does the server use?")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key} in its status"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().with_context(|| format!("{key}{line}"))?;
    Ok(kilobytes * 1024)
}

/// Processor time that a process's threads have used until now.
///
/// # Errors
///
/// If the system does not say.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task")).context("what does the server use?")? {
        // Of one that has just ended nothing is known any more.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
        sum += Duration::from_nanos(nanoseconds.with_context(|| format!("schedstat: {text:?}"))?);
    }
    Ok(sum)
}

/// An address of this machine on which no process listens now.
///
/// # Errors
///
/// If the system gives none.
pub fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    listener.local_addr().context("which port is it?")
}
