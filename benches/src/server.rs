//! `sledge serve` as a child process: started on a port that the system chooses, stopped by SIGTERM.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::{checkout, child};

/// What stands in its log before the address of its metrics.
const METRICS: &str = "metrics address=";
/// What the server prints on its standard output when it is ready, before the address.
const READY: &str = "listening on http://";

/// Longest that the server may take to load its functions and listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest that it may take to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Lines of its log that an error shows.
const LOG_LINES: usize = 20;

/// A function that the server is to offer at `/NAME`.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    /// Its name, from which its route follows.
    pub name: &'a str,
    /// The artifact.
    pub path: &'a Path,
    /// The content type of its replies.
    pub content_type: &'a str,
}

/// A running server. Dropping it kills the process; [`Server::stop`] ends it as an operator would.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Writes a configuration for `functions` into `folder` and starts `sledge serve` with it; returns
    /// when it listens. Its log goes to `sledge.log` there.
    ///
    /// # Errors
    ///
    /// If `sledge` is not built, ends, or does not say that it listens; the error shows the log's end.
    pub fn start(folder: &Path, functions: &[Function<'_>]) -> Result<Server> {
        Server::start_config(folder, &config_of(functions))
    }

    /// The same with a whole configuration (TOML), which must listen on a port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// As for [`Server::start`].
    pub fn start_config(folder: &Path, text: &str) -> Result<Server> {
        Server::start_by(&checkout::program("sledge")?, folder, text)
    }

    /// The same by a program of one's own.
    ///
    /// # Errors
    ///
    /// As for [`Server::start`].
    pub fn start_by(program: &Path, folder: &Path, text: &str) -> Result<Server> {
        let config = folder.join("sledge.toml");
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let log = folder.join("sledge.log");
        let log_file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut child = Command::new(program)
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let ready = watch_output(&mut child);
        let placeholder = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server { child, address: placeholder, log };
        match ready.recv_timeout(START_TIMEOUT) {
            Ok(address) => server.address = address,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                bail!("sledge serve did not print '{READY}ADDRESS' within {START_TIMEOUT:?}{}", server.log_end())
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = server.child.wait().context("cannot wait for sledge serve")?;
                bail!("sledge serve ended before it listened ({status}){}", server.log_end())
            }
        }
        Ok(server)
    }

    /// Where it serves its metrics, which it has written into its log: with `metrics_listen = "127.0.0.1:0"`. A port that was found free before it started may be taken by then.
    ///
    /// # Errors
    ///
    /// If it does not say that.
    pub fn metrics(&self) -> Result<SocketAddr> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let text = fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
            // A line that is there as a whole.
            let line = text.split_once(METRICS).and_then(|(_, rest)| rest.split_once('\n'));
            if let Some(address) = line.and_then(|(line, _)| line.split_whitespace().next()?.parse().ok()) {
                return Ok(address);
            }
            // It says that when it listens already.
            if Instant::now() > deadline {
                bail!("sledge serve did not log '{METRICS}ADDRESS' within {START_TIMEOUT:?}{}", self.log_end());
            }
            thread::sleep(Duration::from_millis(1));
        }
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
        child::resident_bytes(self.child.id())
    }

    /// How many file descriptors it has open.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn descriptors(&self) -> Result<usize> {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.child.id())).context("what has the server open?")?;
        Ok(folder.count())
    }

    /// Processor time that its threads have used until now.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn processor_time(&self) -> Result<Duration> {
        child::processor_time(self.child.id())
    }

    /// The end of its log, for an error message; empty if it logged nothing.
    pub fn log_end(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        if last.is_empty() {
            String::new()
        } else {
            format!("; the end of its log, {}:\n{}", self.log.display(), last.join("\n"))
        }
    }

    /// Sends SIGTERM and waits until the process has ended; how long that took.
    ///
    /// # Errors
    ///
    /// If it had ended before, does not end in time, or ends with another status than 0.
    pub fn stop(mut self) -> Result<Duration> {
        if let Some(status) = self.child.try_wait().context("cannot wait for sledge serve")? {
            bail!("sledge serve had ended by itself ({status}){}", self.log_end());
        }
        let pid = Pid::from_child(&self.child);
        let start = Instant::now();
        kill_process(pid, Signal::TERM).context("cannot send SIGTERM to sledge serve")?;
        let status = self.wait(pid)?;
        if !status.success() {
            bail!("sledge serve ended with {status} after SIGTERM, expected is exit status 0{}", self.log_end());
        }
        Ok(start.elapsed())
    }

    fn wait(&mut self, pid: Pid) -> Result<ExitStatus> {
        let process = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch sledge serve")?;
        let timeout = Timespec { tv_sec: STOP_TIMEOUT.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
        let ended = loop {
            match rustix::event::poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other.context("cannot watch sledge serve")?,
            }
        };
        if ended == 0 {
            bail!("sledge serve did not end within {STOP_TIMEOUT:?} of SIGTERM{}", self.log_end());
        }
        self.child.wait().context("cannot wait for sledge serve")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail harmlessly when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the child's standard output to its end in a thread, and sends the address it announces.
pub(crate) fn watch_output(child: &mut Child) -> Receiver<SocketAddr> {
    let (sender, receiver) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                match line {
                    Ok(line) => {
                        if let Some(address) = address_in(&line) {
                            // The receiver takes only the first address.
                            let _ = sender.send(address);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::InvalidData => {}
                    Err(_) => break,
                }
            }
        });
    }
    receiver
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(READY)?;
    rest.split(|c: char| c == '/' || c.is_whitespace()).next()?.parse().ok()
}

fn config_of(functions: &[Function<'_>]) -> String {
    let mut config = String::from("listen = \"127.0.0.1:0\"\n");
    for function in functions {
        config.push_str(&format!(
            "\n[[functions]]\nname = {}\npath = {}\ncontent_type = {}\n",
            quoted(function.name),
            quoted(&function.path.display().to_string()),
            quoted(function.content_type),
        ));
    }
    config
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_what_the_server_prints() {
        let expected = "127.0.0.1:4711".parse().ok();
        assert_eq!(address_in("listening on http://127.0.0.1:4711"), expected);
        assert_eq!(address_in("listening on http://127.0.0.1:4711/ with 2 functions"), expected);
        assert_eq!(address_in("loading gps-ekf"), None);
        assert_eq!(address_in("listening on http://nowhere"), None);
    }

    #[test]
    fn the_configuration_is_toml_with_any_path() {
        let path = Path::new("/tmp/a \"quoted\" folder/f.so");
        let text = config_of(&[Function { name: "f", path, content_type: "image/png" }]);
        let config: toml::Table = text.parse().unwrap();
        assert_eq!(config["functions"][0]["path"].as_str(), path.to_str());
        assert_eq!(config["listen"].as_str(), Some("127.0.0.1:0"));
    }
}
