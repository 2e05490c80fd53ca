//! A process that tries seeds, and the handle by which the driver asks it: a crash or a hang costs one seed, not the run.

use crate::check::{self, Difference, Report};
use crate::features::Features;
use crate::wit::{self, Kind};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sledge_tests::spec::Mode;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// For one seed.
const SEED_TIME_MAX: Duration = Duration::from_secs(240);

/// Seeds of one process: its memory is given back with it.
const SEEDS_EACH: u32 = 300;

/// What a worker says: a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// It begins with a mode.
    Begin(String),
    Done(Box<Report>),
}

/// The worker's side: seeds come by standard input, a line each.
pub(crate) fn serve(kind: Kind, all_modes: bool) -> Result<()> {
    let features = Features::probe();
    for line in std::io::stdin().lock().lines() {
        let seed = line?.trim().parse().context("a seed")?;
        let begin = &mut |mode: Mode| say(&Message::Begin(mode.to_string()));
        let report = match kind {
            Kind::Modules => check::seed(seed, &features, &check::modes(seed, all_modes), begin),
            _ => wit::seed(kind, seed, &wit::modes(kind, seed, all_modes), begin),
        };
        say(&Message::Done(Box::new(report)));
    }
    Ok(())
}

fn say(message: &Message) {
    let line = serde_json::to_string(message).expect("a message is JSON");
    // The driver is gone: so is the reason to go on.
    if writeln!(std::io::stdout().lock(), "{line}").is_err() {
        std::process::exit(1);
    }
}

/// The driver's side.
pub(crate) struct Worker {
    kind: Kind,
    all_modes: bool,
    process: Option<Process>,
}

struct Process {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Message>,
    seeds: u32,
}

impl Drop for Process {
    fn drop(&mut self) {
        sledge_tests::process::kill(&mut self.child);
    }
}

impl Worker {
    pub(crate) fn new(kind: Kind, all_modes: bool) -> Worker {
        Worker { kind, all_modes, process: None }
    }

    /// Has a seed tried.
    pub(crate) fn try_seed(&mut self, seed: u64) -> Result<Report> {
        let mut process = match self.process.take() {
            Some(process) if process.seeds < SEEDS_EACH => process,
            _ => Process::start(self.kind, self.all_modes)?,
        };
        process.seeds += 1;
        // Should it be gone, its messages end.
        let _ = writeln!(process.stdin, "{seed}");
        let deadline = Instant::now() + SEED_TIME_MAX;
        let mut mode = None;
        let how = loop {
            match process.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Message::Begin(begun)) => mode = Some(begun),
                Ok(Message::Done(report)) => {
                    self.process = Some(process);
                    return Ok(*report);
                }
                Err(RecvTimeoutError::Timeout) => break format!("nothing after {SEED_TIME_MAX:?}"),
                Err(RecvTimeoutError::Disconnected) => break format!("the process died: {}", process.child.wait()?),
            }
        };
        let mut report = Report { seed, ..Report::default() };
        match mode {
            Some(mode) => {
                let expected = "the process lives".to_string();
                report.differences.push(Difference { mode, at: "module".to_string(), expected, got: how });
            }
            None => report.unusable = Some(format!("before the first mode: {how}")),
        }
        Ok(report)
    }
}

impl Process {
    fn start(kind: Kind, all_modes: bool) -> Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--worker", "--kind", kind.name()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if all_modes {
            command.arg("--all-modes");
        }
        let mut child = command.spawn().context("starting a worker")?;
        let stdin = child.stdin.take().context("no pipe")?;
        let stdout = child.stdout.take().context("no pipe")?;
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.map_while(|line| serde_json::from_str(&line).ok()).try_for_each(|message| sender.send(message))
        });
        Ok(Process { child, stdin, messages, seeds: 0 })
    }
}
