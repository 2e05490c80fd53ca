//! The in-process request of two builds, side by side: `scripts/pairs COMMIT` builds this program twice and runs it.
//!
//! ```text
//!   pairs BASE HEAD FOLDER   --starts both again for each pair-->   pairs --loop ARTIFACT BODY_BYTES COUNT
//! ```
//!
//! A processor's speed changes within minutes, and a program's with where the system puts it. So both are started anew for each pair, and measured in
//! turns of some 20 ms.
#![forbid(unsafe_code)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use sledge_benches::warm::{self, Warm};

const PAIRS: usize = 40;
/// Turns of each program in a pair; the best one counts.
const TURNS: usize = 3;
/// Function, bytes of the body, requests in a turn.
const CASES: [(&str, usize, u32); 3] = [("empty", 0, 60_000), ("hello", 0, 30_000), ("echo", 1_000, 30_000)];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--loop", artifact, bytes, count] => serve(Path::new(artifact), bytes.parse()?, count.parse()?),
        [base, head, folder] => compare([base, head], Path::new(folder)),
        _ => bail!("usage: pairs BASE HEAD FOLDER; scripts/pairs COMMIT does all of it"),
    }
}

/// Measures a turn for each line of the input; the answer is nanoseconds a request.
fn serve(artifact: &Path, bytes: usize, count: u32) -> Result<()> {
    let _worker = warm::worker()?;
    let mut warm = Warm::new(artifact)?;
    let body = Bytes::from(vec![b'x'; bytes]);
    let mut turn = || -> Result<f64> {
        let begin = Instant::now();
        for _ in 0..count {
            ensure!(warm.request(&body)?.outcome.is_ok(), "a request failed");
        }
        Ok(begin.elapsed().as_nanos() as f64 / f64::from(count))
    };
    turn()?;
    let mut lines = std::io::stdin().lock().lines();
    println!("ready");
    while lines.next().transpose()?.is_some() {
        println!("{}", turn()?);
    }
    Ok(())
}

/// A program that measures when it is asked to.
struct Subject {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Subject {
    fn start(program: &str, artifact: &Path, bytes: usize, count: u32) -> Result<Subject> {
        let mut command = Command::new(program);
        command.arg("--loop").arg(artifact).args([bytes.to_string(), count.to_string()]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {program}"))?;
        let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) else { bail!("no pipes to {program}") };
        let mut subject = Subject { child, ask, answers: BufReader::new(answers) };
        ensure!(subject.line()? == "ready", "{program} cannot measure {}", artifact.display());
        Ok(subject)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn turn(&mut self) -> Result<f64> {
        self.ask.write_all(b"\n")?;
        self.line()?.parse().context("the answer is no time")
    }

    fn end(mut self) -> Result<()> {
        drop(self.ask);
        self.child.wait()?;
        Ok(())
    }
}

/// The best turns of both, in nanoseconds a request.
fn pair(programs: [&str; 2], artifact: &Path, bytes: usize, count: u32) -> Result<[f64; 2]> {
    let [mut base, mut head] =
        [Subject::start(programs[0], artifact, bytes, count)?, Subject::start(programs[1], artifact, bytes, count)?];
    let mut best = [f64::INFINITY; 2];
    for turn in 0..2 * TURNS {
        // Base, head, head, base: neither is always first.
        let is_head = [false, true, true, false][turn % 4];
        let (subject, best) = if is_head { (&mut head, &mut best[1]) } else { (&mut base, &mut best[0]) };
        *best = best.min(subject.turn()?);
    }
    base.end()?;
    head.end()?;
    Ok(best)
}

fn compare(programs: [&str; 2], folder: &Path) -> Result<()> {
    println!("{PAIRS} pairs; nanoseconds a request in process");
    println!("function   base     difference  upper 95 % bound");
    for (name, bytes, count) in CASES {
        let artifact = folder.join(name).with_extension("so");
        let pairs: Vec<[f64; 2]> = (0..PAIRS).map(|_| pair(programs, &artifact, bytes, count)).collect::<Result<_>>()?;
        let mean = |of: &dyn Fn(&[f64; 2]) -> f64| pairs.iter().map(of).sum::<f64>() / PAIRS as f64;
        let (base, difference) = (mean(&|pair| pair[0]), mean(&|pair| pair[1] - pair[0]));
        let variance = mean(&|pair| (pair[1] - pair[0] - difference).powi(2)) * PAIRS as f64 / (PAIRS - 1) as f64;
        let bound = difference + 1.96 * (variance / PAIRS as f64).sqrt();
        println!("{name:8} {base:7.1} {difference:+11.1} {bound:+11.1} ({:+.1} %)", 100.0 * bound / base);
    }
    Ok(())
}
