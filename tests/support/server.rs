//! A `sledge` of one's own, on a free port, gone with the test.

use crate::admin::Admin;
use crate::http::{Client, TIME_MAX};
use crate::process;
use crate::programs::sledge_command;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The first of the ports that tests choose from.
const PORT_MIN: u16 = 12_000;

/// From the start of the program to the line that says where it listens.
const START_TIME_MAX: Duration = Duration::from_secs(120);

/// What stands before the address in that line.
const LISTENING: &str = "listening on ";

/// What a server has written, and the event that there is more.
#[derive(Debug, Default)]
struct Log {
    text: Mutex<String>,
    more: Condvar,
}

impl Log {
    fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn wait_for(&self, words: &str) {
        let deadline = Instant::now() + TIME_MAX;
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        while !text.contains(words) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{words:?} is not in the log:\n{text}");
            text = self.more.wait_timeout(text, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    log: Arc<Log>,
    ends: Mutex<[Receiver<SocketAddr>; 2]>,
    config: Option<tempfile::TempDir>,
}

impl Server {
    /// Starts one with a configuration (JSON; `listen` is added) and waits until it listens.
    ///
    /// # Panics
    /// When it does not come to that.
    #[must_use]
    pub fn start(mut config: Value) -> Server {
        config["listen"] = "127.0.0.1:0".into();
        let folder = tempfile::tempdir().expect("a folder");
        if config.get("admin").is_none() {
            config["admin"] = folder.path().join("admin.sock").to_string_lossy().into();
        }
        let file = folder.path().join("sledge.json");
        std::fs::write(&file, config.to_string()).expect("write the configuration");
        let mut server = Self::start_with(sledge_command(&["serve", "--config"]).arg(&file));
        server.config = Some(folder);
        server
    }

    /// Starts one by a command of one's own, which must listen on 127.0.0.1:0.
    ///
    /// # Panics
    /// When it does not come to listen.
    #[must_use]
    pub fn start_with(command: &mut Command) -> Server {
        Server::start_within(command, START_TIME_MAX)
    }

    /// The same for one that may take so long.
    ///
    /// # Panics
    /// When it does not come to listen.
    #[must_use]
    pub fn start_within(command: &mut Command, time: Duration) -> Server {
        Server::start_helped(command, "", || (), time)
    }

    /// The same for one that listens only after `help`, which is called when it has written `words`.
    ///
    /// # Panics
    /// When it writes something else, or does not come to listen.
    #[must_use]
    pub fn start_waiting(command: &mut Command, words: &str, help: impl FnOnce()) -> Server {
        Server::start_helped(command, words, help, START_TIME_MAX)
    }

    fn start_helped(command: &mut Command, words: &str, help: impl FnOnce(), time: Duration) -> Server {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let log = Arc::new(Log::default());
        let stdout = child.stdout.take().expect("standard output is piped");
        let stderr = child.stderr.take().expect("standard error is piped");
        let addresses = follow(stdout, Arc::clone(&log));
        let errors = follow(stderr, Arc::clone(&log));
        log.wait_for(words);
        help();
        let deadline = Instant::now() + time;
        // Either the address comes, or both streams end because the program has, or the time is over.
        let address = addresses.recv_timeout(time);
        let address = address.or_else(|_| errors.recv_timeout(deadline.saturating_duration_since(Instant::now())));
        let Ok(address) = address else {
            process::kill(&mut child);
            panic!("{command:?} does not listen:\n{}", log.text());
        };
        Server { child, address, log, ends: Mutex::new([addresses, errors]), config: None }
    }

    /// A client with the usual deadline.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.address, TIME_MAX)
    }

    /// Its admin API, where [`Server::start`] put it.
    ///
    /// # Panics
    /// When it was started in another way.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(self.folder().join("admin.sock"))
    }

    /// The folder of its configuration, `sledge.json`.
    ///
    /// # Panics
    /// When it was started without one.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.config.as_ref().expect("a configuration").path()
    }

    /// Its number among processes.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until it has written that.
    ///
    /// # Panics
    /// When it does not in time.
    pub fn wait_for_log(&self, words: &str) {
        self.log.wait_for(words);
    }

    /// Everything it has written, after it has ended.
    ///
    /// # Panics
    /// When its output does not end.
    #[must_use]
    pub fn whole_log(self) -> String {
        for end in self.ends.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // Each thread that follows a stream drops its sender at the stream's end.
            let ended = end.recv_timeout(TIME_MAX);
            assert_ne!(ended, Err(mpsc::RecvTimeoutError::Timeout), "the output of a program that has ended does not end");
        }
        self.log()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        process::signal(&self.child, signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When that is not there in time.
    pub fn wait(&mut self, time: Duration) -> ExitStatus {
        process::wait(&mut self.child, time).unwrap_or_else(|| panic!("still running after {time:?}:\n{}", self.log()))
    }

    /// Stops it as an operator does and expects a good end.
    ///
    /// # Panics
    /// When it does not end, or not well.
    pub fn stop(mut self) {
        self.end();
    }

    /// The same; gives everything it has written. Its log comes beside its replies, so only here all of it is known.
    ///
    /// # Panics
    /// As for [`Server::stop`], and when its output does not end.
    #[must_use]
    pub fn stop_for_log(mut self) -> String {
        self.end();
        self.whole_log()
    }

    fn end(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait(TIME_MAX);
        assert!(status.success(), "{status}:\n{}", self.log());
    }

    /// Processor time it has used, of all its threads.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("/proc");
        // The name may hold anything, parentheses too.
        cpu_time(stat.rsplit_once(')').expect("a name").1)
    }

    /// Bytes of it that are in memory.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("/proc");
        1024 * number_of("VmRSS", &status)
    }

    /// The same without what its sandboxes share of their images, and files.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn private_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("/proc");
        1024 * number_of("RssAnon", &status)
    }

    /// How often its threads have started or stopped waiting so far, altogether. A thread that sleeps does neither.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn context_switches(&self) -> u64 {
        self.threads()
            .iter()
            // One that has ended since is not counted.
            .filter_map(|(_, id)| self.thread_status(*id))
            .map(|status| number_of("voluntary_ctxt_switches", &status))
            .sum()
    }

    /// Page faults of a thread so far.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn page_faults(&self, thread: u32) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/task/{thread}/stat", self.child.id())).expect("/proc");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
        // Minor and major ones: 10 and 12, counted from the first; behind the name begins the third.
        [7, 9].iter().map(|&field| fields[field].parse::<u64>().expect("faults")).sum()
    }

    /// Its threads: names and numbers.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn threads(&self) -> Vec<(String, u32)> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("/proc");
        let id = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        let name = |id: u32| std::fs::read_to_string(format!("/proc/{}/task/{id}/comm", self.child.id())).unwrap_or_default();
        threads.filter_map(id).map(|id| (name(id).trim_end().to_string(), id)).collect()
    }

    fn thread_status(&self, id: u32) -> Option<String> {
        std::fs::read_to_string(format!("/proc/{}/task/{id}/status", self.child.id())).ok()
    }

    /// Processor time of each of its threads whose name begins like that, by name. The clock's resolution is 10 ms.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn thread_cpu_times(&self, name: &str) -> Vec<Duration> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("/proc");
        let mut times: Vec<(String, Duration)> = threads
            .filter_map(|thread| {
                let stat = std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
                let (head, fields) = stat.rsplit_once(')')?;
                let thread_name = head.split_once('(')?.1.to_string();
                thread_name.starts_with(name).then(|| (thread_name, cpu_time(fields)))
            })
            .collect();
        times.sort();
        times.into_iter().map(|(_, time)| time).collect()
    }
}

/// A line `NAME: NUMBER` of proc_pid_status(5).
fn number_of(name: &str, status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("the line");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Time in user and system mode, of the fields of proc_pid_stat(5) behind the name: 14 and 15, counted from the first.
fn cpu_time(fields: &str) -> Duration {
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime");
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

impl Drop for Server {
    fn drop(&mut self) {
        process::kill(&mut self.child);
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.log());
        }
    }
}

/// Collects a stream's lines; sends the address it announces.
fn follow(stream: impl Read + Send + 'static, log: Arc<Log>) -> Receiver<SocketAddr> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once(LISTENING)
                && let Ok(address) = address.trim_start_matches("https://").trim_start_matches("http://").parse()
            {
                // The receiver takes only the first announcement.
                let _ = sender.send(address);
            }
            let mut text = log.text.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(&line);
            text.push('\n');
            log.more.notify_all();
        }
    });
    receiver
}

/// An address of this machine on which no process listens now, with a port that the system gives to none by itself: other tests that listen on port 0 do not
/// get it before it is used.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("the range of ports");
    let first: u16 = range.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a number");
    let own = (PORT_MIN..first.max(PORT_MIN + 1000)).collect::<Vec<_>>();
    // Each process begins elsewhere.
    let begin = std::process::id() as usize * 97;
    let ports = std::iter::repeat_with(|| own[(begin + usize::from(NEXT.fetch_add(1, Ordering::Relaxed))) % own.len()]);
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?.local_addr().ok();
    ports.take(own.len()).find_map(free).expect("a free port")
}
