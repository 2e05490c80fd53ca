//! Child processes that cannot hang a test: whatever is waited for has a deadline, and an end is an event, not a poll.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a program left when it had ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error, as text.
    pub stderr: String,
}

impl Finished {
    /// Exit status as a shell shows it: 128 + signal when one killed the program.
    #[must_use]
    pub fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Runs a program to its end.
///
/// # Panics
/// When it cannot be started or is not done in time; then it is killed.
pub fn run(command: &mut Command, stdin: &[u8], time: Duration) -> Finished {
    let what = format!("{command:?}");
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut input = child.stdin.take().expect("standard input is piped");
    let stdin = stdin.to_vec();
    // A program need not read its input: a broken pipe is no failure.
    let writer = std::thread::spawn(move || drop(input.write_all(&stdin)));
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child, time);
    if status.is_none() {
        kill(&mut child);
    }
    let stdout = stdout.join().unwrap_or_default();
    let stderr = String::from_utf8_lossy(&stderr.join().unwrap_or_default()).into_owned();
    drop(writer);
    let Some(status) = status else {
        panic!("{what}: not done after {time:?}\nstdout: {}\nstderr: {stderr}", String::from_utf8_lossy(&stdout))
    };
    Finished { status, stdout, stderr }
}

/// Runs a program to its end, with a standard output that has no reader.
///
/// # Panics
/// As [`run`].
pub fn run_unread(command: &mut Command, time: Duration) -> Finished {
    let what = format!("{command:?}");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let spawned = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn();
    let mut child = spawned.unwrap_or_else(|error| panic!("{what}: {error}"));
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child, time);
    if status.is_none() {
        kill(&mut child);
    }
    let stderr = String::from_utf8_lossy(&stderr.join().unwrap_or_default()).into_owned();
    let Some(status) = status else { panic!("{what}: not done after {time:?}\nstderr: {stderr}") };
    Finished { status, stdout: Vec::new(), stderr }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // An error ends the text; what came before is what there is.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// What a program writes; no read of it waits longer than that.
#[derive(Debug)]
pub struct Timed<R>(pub R, pub Duration);

impl<R: Read + AsFd> Read for Timed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let time = Timespec::try_from(self.1).expect("a short time");
        if rustix::event::poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&time))? == 0 {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.0.read(buffer)
    }
}

/// Waits for a child's end; none when it is not there in time.
///
/// # Panics
/// When the system refuses to wait.
pub fn wait(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + time;
    let pidfd = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("pidfd_open");
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("a short time");
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => return None,
            Ok(_) => return Some(child.wait().expect("wait for a child that has ended")),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Kills a child and waits for its end.
pub fn kill(child: &mut Child) {
    // Both fail only when it has ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Sends a signal to a child that was not waited for yet.
///
/// # Panics
/// When the system refuses.
pub fn signal(child: &Child, signal: Signal) {
    rustix::process::kill_process(Pid::from_child(child), signal).expect("kill");
}
