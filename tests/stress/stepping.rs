//! A signal at every single instruction of a guest, the very first and the very last among them, and at many of the host's around it: in host calls,
//! in `memory.fill` and `memory.copy`, while memory and stack grow, while it traps. Nothing that it computes changes, and what is killed there leaves
//! nothing to the next request.

use nix::sys::signal::Signal;
use sledge_tests::programs;
use sledge_tests::traced::Stepped;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What is called.
const GUESTS: [&str; 8] = ["nothing", "compute", "bulk", "grow", "host", "deep", "out_of_bounds", "unreachable"];
/// For the instructions of the host, of which there are many more, and for each of [`GUESTS`].
const HOST_TIME: Duration = Duration::from_millis(400);

/// `stepped`, under control.
struct Subject {
    child: Child,
    thread: Stepped,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Subject {
    fn start(artifact: &std::path::Path) -> Subject {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepped"));
        let mut child = command.arg(artifact).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("stepped");
        let input = child.stdin.take().expect("piped");
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let thread = output.next().expect("a line").expect("text").parse().expect("a number");
        Subject { child, thread: Stepped::seize(thread), input, output }
    }

    /// Lets it begin a call, up to its first instruction.
    fn begin(&mut self, guest: &str, what: &str) {
        writeln!(self.input, "{guest} {what}").expect("it reads");
        assert_eq!(self.thread.stopped(), Signal::SIGUSR1);
    }

    /// Lets it go on to the end of the call, with a signal if there is one; what came of it.
    fn end(&mut self, signal: Option<Signal>) -> String {
        self.thread.resume(signal);
        loop {
            match self.thread.stopped() {
                Signal::SIGUSR2 => break,
                // Its traps are signals too.
                other => self.thread.resume(Some(other)),
            }
        }
        self.answer()
    }

    fn answer(&mut self) -> String {
        self.thread.resume(None);
        self.output.next().expect("a line").expect("text")
    }

    /// Carries a call out one instruction at a time: the address of each.
    fn addresses(&mut self, guest: &str) -> Vec<u64> {
        self.begin(guest, "resume");
        let mut addresses = Vec::new();
        let mut signal = None;
        loop {
            let stopped = self.thread.step(signal);
            signal = (stopped != Signal::SIGTRAP).then_some(stopped);
            if stopped == Signal::SIGUSR2 {
                self.answer();
                return addresses;
            }
            addresses.push(self.thread.program_counter());
        }
    }

    /// Calls a guest with a tick before its instruction `at`.
    fn tick_at(&mut self, at: usize, guest: &str, what: &str) -> String {
        self.begin(guest, what);
        let mut signal = None;
        for _ in 0..=at {
            let stopped = self.thread.step(signal);
            signal = (stopped != Signal::SIGTRAP).then_some(stopped);
            if stopped == Signal::SIGUSR2 {
                return self.answer();
            }
        }
        // In place of a signal that is under way nothing can be delivered: the next instruction will do.
        if signal.is_some() {
            let _ = self.thread.step(signal);
        }
        self.end(Some(Signal::SIGALRM))
    }

    /// Addresses of guests' code: the only pages to be executed that no file is behind.
    fn code(&self) -> Vec<Range<u64>> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id())).expect("/proc");
        let address = |text: &str| u64::from_str_radix(text, 16).expect("an address");
        let is_code = |line: &&str| line.contains(" r-xp ") && line.split_whitespace().count() == 5;
        let range = |line: &str| line.split_whitespace().next()?.split_once('-').map(|(from, to)| address(from)..address(to));
        maps.lines().filter(is_code).filter_map(range).collect()
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_tick_at_any_instruction_changes_nothing_and_a_kill_there_leaves_nothing() {
    for bounds in ["guard", "software"] {
        let options = ["--bounds", bounds, "--allow-unknown-imports"];
        let mut subject = Subject::start(&programs::function_with("../../stress/stepped.wat", &options));
        subject.begin("fresh", "resume");
        let fresh = subject.end(None);
        let mut where_it_counted = BTreeMap::new();
        for guest in GUESTS {
            for _ in 0..3 {
                subject.begin(guest, "resume");
                let _ = subject.end(None);
            }
            subject.begin(guest, "resume");
            let expected = subject.end(None);
            let outcome = expected.split(';').next().expect("an outcome").to_owned();
            let addresses = subject.addresses(guest);
            let code = subject.code();
            let is_guest = |at: &usize| code.iter().any(|range| range.contains(&addresses[*at]));
            let (guests, hosts): (Vec<usize>, Vec<usize>) = (0..addresses.len()).partition(is_guest);
            assert!(!guests.is_empty() && !hosts.is_empty(), "{guest}: {} and {}", guests.len(), hosts.len());
            // All of the guest's; of the host's as many as there is time for, evenly.
            let until = Instant::now() + HOST_TIME;
            let spread = (0..hosts.len()).map(|turn| hosts[turn * 7919 % hosts.len()]).take_while(|_| Instant::now() < until);
            for at in guests.iter().copied().chain(spread) {
                for what in ["resume", "kill"] {
                    let answer = subject.tick_at(at, guest, what);
                    let told = format!(
                        "{guest} {options:?}: {what} at instruction {at} of {}: {answer}, not {expected}",
                        addresses.len()
                    );
                    let (end, counts) = answer.split_once(';').expect(&told);
                    let suspended = counts.contains("suspended 1");
                    assert!(end == if suspended && what == "kill" { "killed" } else { &outcome }, "{told}");
                    *where_it_counted.entry(counts.trim().to_owned()).or_insert(0) += 1;
                    subject.begin("fresh", "resume");
                    assert_eq!(subject.end(None), fresh, "after {told}");
                }
            }
            println!("{guest} {options:?}: {} instructions of the guest, {} of the host", guests.len(), hosts.len());
        }
        println!("{where_it_counted:?}");
        let count =
            |what: &str| where_it_counted.iter().filter(|(counts, _)| counts.contains(what)).map(|(_, count)| count).sum::<i32>();
        assert!(count("suspended 1") > 100 && count("noted 1") > 20, "{where_it_counted:?}");
    }
}
